/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "profile/fixture.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "profile/module.h"

/* Names are the last part of the functions'; "teardown" is that of pytest 3 and 4. */
static const struct {
	const char *file, *name;
} callers[] = {
	{ "/_pytest/fixtures.py", "call_fixture_func" },
	{ "/_pytest/fixtures.py", "_teardown_yield_fixture" },
	{ "/_pytest/fixtures.py", "teardown" },
	{ "/unittest/case.py", "_callSetUp" },
	{ "/unittest/case.py", "_callTearDown" },
	{ "/unittest/case.py", "_callCleanup" },
	{ "/unittest/async_case.py", "_callSetUp" },
	{ "/unittest/async_case.py", "_callTearDown" },
	{ "/unittest/async_case.py", "_callCleanup" },
	{ "/unittest/suite.py", "_handleClassSetUp" },
	{ "/unittest/suite.py", "_tearDownPreviousClass" },
	{ "/unittest/suite.py", "_handleModuleFixture" },
	{ "/unittest/suite.py", "_handleModuleTearDown" },
};

/* No standard library's, which is no fixture anyway: unittest, asyncio, inspect. */
static const char *const runner_files[] = {
	"/_pytest/fixtures.py", "/_pytest/python.py",        "/_pytest/unittest.py",
	"/_pytest/compat.py",   "/pytest_asyncio/plugin.py",
};

static bool is_caller(const char *name, const char *file)
{
	const char *dot = strrchr(name, '.');

	name = dot ? dot + 1 : name;
	for (size_t i = 0; i < sizeof(callers) / sizeof(callers[0]); i++)
		if (!strcmp(name, callers[i].name) &&
		    path_ends_in(file, strlen(file), callers[i].file))
			return true;
	return false;
}

enum fixture_role fixture_role_of(const struct profile *p, uint32_t frame)
{
	const struct frame *f = frametab_get(p->frames, frame);
	const char *file = strtab_get(p->strings, f->file);
	enum origin origin = origin_of(p, f->name, f->file, f->kind);

	if (is_caller(strtab_get(p->strings, f->name), file))
		return FIXTURE_CALLER;
	for (size_t i = 0; i < sizeof(runner_files) / sizeof(runner_files[0]); i++)
		if (path_ends_in(file, strlen(file), runner_files[i]))
			return FIXTURE_RUNNER;
	return origin == ORIGIN_OWN || origin == ORIGIN_LIBRARY ? FIXTURE_NONE : FIXTURE_RUNNER;
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
