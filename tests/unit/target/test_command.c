/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/command.h"

static char folder[] = "/tmp/test_command-XXXXXX";

static void put(const char *name, const char *text, mode_t mode)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	assert_int_equal(chmod(path, mode), 0);
}

static int setup(void **state)
{
	char path[PATH_MAX];

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "/nonexistent:%s::/bin", folder);
	setenv("PATH", path, 1);
	put("ours", "", 0755);
	put("closed", "", 0644);
	return 0;
}

static int teardown(void **state)
{
	static const char *const names[] = { "ours", "closed", "circle", "gone" };
	char path[PATH_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		assert_int_equal(unlink(path), 0);
	}
	return rmdir(folder);
}

static void test_find_looks_where_execvp_does(void **state)
{
	char path[PATH_MAX], want[PATH_MAX];

	(void)state;
	assert_int_equal(command_find("ours", path), 0);
	snprintf(want, sizeof(want), "%s/ours", folder);
	assert_string_equal(path, want);
	assert_int_equal(command_find("sh", path), 0);
	assert_string_equal(path, "/bin/sh");
	assert_int_equal(command_find("no-such-command", path), -ENOENT);
	assert_int_equal(command_find("./no-such-command", path), -ENOENT);
	assert_int_equal(command_find("/etc/passwd", path), -EACCES);
	assert_int_equal(command_find("/bin/sh", path), 0);
	unsetenv("PATH");
	assert_int_equal(command_find("sh", path), 0);
	assert_string_equal(path, "/bin/sh");
	setenv("PATH", "", 1);
	assert_int_equal(command_find("sh", path), -ENOENT);
	snprintf(path, sizeof(path), "%s:/bin", folder);
	setenv("PATH", path, 1);
}

static void test_first_lines(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "#!/usr/bin/python3\nimport os", "/usr/bin/python3" },
		{ "#! /usr/bin/python3 -u", "/usr/bin/python3" },
		{ "#!\t/bin/sh", "/bin/sh" },
		{ "#!/usr/bin/env python3\n", "python3" },
		{ "#!/usr/bin/env -S A=1 B= python3.12 -X dev\n", "python3.12" },
		{ "#!/bin/envy\n", "/bin/envy" },
		{ "#!/usr/bin/env\npython3\n", NULL },
		{ "#!\n/bin/sh\n", NULL },
		{ "#", NULL },
		{ "", NULL },
		{ "\177ELF", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[128];
		const char *got;

		snprintf(text, sizeof(text), "%s", cases[i].text);
		got = command_of_script(text);
		if ((got != NULL) != (cases[i].want != NULL) || (got && strcmp(got, cases[i].want)))
			fail_msg("%s: '%s'", cases[i].text, got ? got : "none");
	}
}

/* What is no Python, cannot be read, or leads in a circle is nothing found. */
static void test_nothing_to_be_found(void **state)
{
	static const char *const names[] = { "sh",   "circle",          "ours", "closed",
					     "gone", "no-such-command", "/",    "/proc/self/mem" };
	struct command_runtime found;
	struct runtime_cache *cache;

	(void)state;
	put("circle", "#!/usr/bin/env circle\n", 0755);
	put("gone", "#!/no/such/python\n", 0755);
	assert_int_equal(runtime_cache_new(&cache), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (command_find_runtime(cache, names[i], &found) != -ENOENT)
			fail_msg("%s", names[i]);
	runtime_cache_free(cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find_looks_where_execvp_does),
		cmocka_unit_test(test_first_lines),
		cmocka_unit_test(test_nothing_to_be_found),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
