/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "profile/fixture.h"
#include "profile/select.h"

#define PACKAGES "/venv/lib/python3.12/site-packages"
#define FIXTURES PACKAGES "/_pytest/fixtures.py"
#define CASE "/usr/lib/python3.12/unittest/case.py"

static uint32_t intern(struct profile *p, const char *s)
{
	uint32_t id;

	assert_int_equal(strtab_intern(p->strings, s, strlen(s), &id), 0);
	return id;
}

static void test_fixture_role_of_is_by_file_and_name(void **state)
{
	static const struct {
		const char *name, *file;
		enum fixture_role want;
	} cases[] = {
		{ "call_fixture_func", FIXTURES, FIXTURE_CALLER },
		{ "_callSetUp", CASE, FIXTURE_CALLER },
		{ "TestCase._callSetUp", CASE, FIXTURE_CALLER },
		{ "TestCase._callTestMethod", CASE, FIXTURE_RUNNER },
		{ "FixtureDef.finish", FIXTURES, FIXTURE_RUNNER },
		{ "Function.runtest", PACKAGES "/_pytest/python.py", FIXTURE_RUNNER },
		{ "isfunction", "/usr/lib/python3.12/inspect.py", FIXTURE_RUNNER },
		{ "tmp_path", PACKAGES "/_pytest/tmpdir.py", FIXTURE_NONE },
		{ "call_fixture_func", "/srv/fixtures.py", FIXTURE_NONE },
		{ "_callSetUp", FIXTURES, FIXTURE_RUNNER },
	};
	struct profile *p;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct frame f = { .name = intern(p, cases[i].name),
				   .file = intern(p, cases[i].file) };
		uint32_t frame;

		assert_int_equal(frametab_intern(p->frames, &f, &frame), 0);
		if (fixture_role_of(p, frame) != cases[i].want)
			fail_msg("%s of %s", cases[i].name, cases[i].file);
	}
	profile_free(p);
}

static void test_fixture_is_of_tests_wants_a_glob_of_tests(void **state)
{
	static const char *const yes[] = { "test_*", "test*", "TestCart.test_*",
					   "test_a.py:test_*" };
	static const char *const no[] = { "test_price", "handle_*",      "*",
					  "",           "test_*.py:run", "*_test" };

	(void)state;
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		if (!fixture_is_of_tests(yes[i]))
			fail_msg("%s", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		if (fixture_is_of_tests(no[i]))
			fail_msg("%s", no[i]);
}

/* --- stacks ----------------------------------------------------------------------------------- */

static struct profile *make_profile(const char *const (*frames)[2])
{
	struct process process = { .pid = 1 };
	struct thread thread = { .tid = 1 };
	struct sample s = { .value = 1 };
	struct profile *p;

	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(profile_add_process(p, &process, &thread.process), 0);
	assert_int_equal(profile_add_thread(p, &thread, &s.thread), 0);
	for (; (*frames)[0]; frames++) {
		struct frame f = { .name = intern(p, (*frames)[0]),
				   .file = intern(p, (*frames)[1]) };
		uint32_t frame;

		assert_int_equal(frametab_intern(p->frames, &f, &frame), 0);
		assert_int_equal(stacktab_intern(p->stacks, s.stack, frame, &s.stack), 0);
	}
	assert_int_equal(profile_add_sample(p, &s), 0);
	return p;
}

/* The name of the outermost frame; "-": nothing is left. */
static const char *root_name(const struct profile *p)
{
	const struct stack_entry *entries = stacktab_entries(p->stacks);
	uint32_t at = p->samples.len ? p->samples.items[0].stack : 0;

	while (at && entries[at].parent)
		at = entries[at].parent;
	return at ? strtab_get(p->strings, frametab_get(p->frames, entries[at].frame)->name) : "-";
}

static void check_root(const char *const (*frames)[2], const char *pattern, const char *want)
{
	struct select s = { .query.patterns[SELECT_GROUP] = { &pattern, 1 } };
	struct profile *p = make_profile(frames);

	assert_int_equal(select_samples(&s, p), 0);
	if (strcmp(root_name(p), want) != 0)
		fail_msg("%s: %s instead of %s", pattern, root_name(p), want);
	select_release(&s);
	profile_free(p);
}

static void test_roots_are_tests_and_their_fixtures(void **state)
{
	static const struct {
		const char *frames[6][2];
		const char *of_tests, *of_one; /* roots by "test_*", by "test_a" */
	} cases[] = {
		{ { { "run", CASE }, { "test_a", "/t.py" }, { "f", "/t.py" } },
		  "test_a",
		  "test_a" },
		{ { { "call_fixture_func", FIXTURES }, { "cart", "/t.py" }, { "f", "/t.py" } },
		  "fixture cart",
		  "-" },
		{ { { "call_fixture_func", FIXTURES },
		    { "wrapper", PACKAGES "/_pytest/python.py" },
		    { "C.setup_method", "/t.py" } },
		  "fixture C.setup_method",
		  "-" },
		{ { { "call_fixture_func", FIXTURES }, { "test_client", "/t.py" } },
		  "fixture test_client",
		  "-" },
		{ { { "test_a", "/t.py" }, { "call_fixture_func", FIXTURES }, { "cart", "/t.py" } },
		  "test_a",
		  "test_a" },
		{ { { "_callSetUp", CASE } }, "-", "-" },
		{ { { "main", "/t.py" } }, "-", "-" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		check_root(cases[i].frames, "test_*", cases[i].of_tests);
		check_root(cases[i].frames, "test_a", cases[i].of_one);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fixture_role_of_is_by_file_and_name),
		cmocka_unit_test(test_fixture_is_of_tests_wants_a_glob_of_tests),
		cmocka_unit_test(test_roots_are_tests_and_their_fixtures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
