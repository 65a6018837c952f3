/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "profile/fixture.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "profile/module.h"

/* In the last ones coroutines run. */
static const char *const runner_files[] = {
	"/_pytest/fixtures.py",      "/_pytest/python.py",  "/_pytest/unittest.py",
	"/unittest/case.py",         "/unittest/suite.py",  "/unittest/async_case.py",
	"/pytest_asyncio/plugin.py", "/asyncio/runners.py", "/asyncio/base_events.py",
	"/asyncio/events.py",
};

/* The last part of their names; "finish" runs finalizers, "teardown" is that of pytest 3 and 4. */
static const char *const caller_names[] = {
	"call_fixture_func",
	"_teardown_yield_fixture",
	"teardown",
	"finish",
	"_callSetUp",
	"_callTearDown",
	"_callCleanup",
	"_handleClassSetUp",
	"_handleModuleFixture",
	"_handleModuleTearDown",
	"_tearDownPreviousClass",
};

enum fixture_role fixture_role_of(const char *name, const char *file)
{
	const char *dot = strrchr(name, '.'), *last = dot ? dot + 1 : name;
	bool is_runner = false;

	for (size_t i = 0; i < sizeof(runner_files) / sizeof(runner_files[0]); i++)
		is_runner = is_runner || path_ends_in(file, strlen(file), runner_files[i]);
	if (!is_runner)
		return FIXTURE_NONE;
	for (size_t i = 0; i < sizeof(caller_names) / sizeof(caller_names[0]); i++)
		if (!strcmp(last, caller_names[i]))
			return FIXTURE_CALLER;
	return FIXTURE_RUNNER;
}

bool fixture_is_of_tests(const char *pattern)
{
	const char *last = pattern;

	for (const char *at = pattern; *at; at++)
		if (*at == '.' || *at == ':')
			last = at + 1;
	return !strncmp(last, "test", strlen("test")) && strchr(last, '*');
}

int fixture_frame(struct profile *p, uint32_t frame, uint32_t *made)
{
	_cleanup_(strbuf_releasep) struct strbuf name = STRBUF_INIT;
	struct frame f = *frametab_get(p->frames, frame);
	int r;

	strbuf_puts(&name, FIXTURE_PREFIX);
	strbuf_append(&name, strtab_get(p->strings, f.name), strtab_len(p->strings, f.name));
	r = strbuf_error(&name);
	if (!r)
		r = strtab_intern(p->strings, strbuf_str(&name), name.len, &f.name);
	return r ? r : frametab_intern(p->frames, &f, made);
}
