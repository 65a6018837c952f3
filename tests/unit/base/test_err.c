/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"

static void test_err_wrap_puts_context_in_front(void **state)
{
	struct file_map *m = NULL;
	int r = file_map_open("/nonexistent", &m);

	(void)state;
	assert_int_equal(r, -ENOENT);
	assert_null(m);
	assert_int_equal(err_wrap(r, "pid %d", 412), -ENOENT);
	assert_string_equal(err_message(r), "pid 412: /nonexistent: No such file or directory");
}

static void test_err_message_falls_back_to_strerror(void **state)
{
	(void)state;
	err_clear();
	assert_string_equal(err_message(-EPERM), "Operation not permitted");
	err_set(-ENOENT, "something else");
	assert_string_equal(err_message(-EPERM), "Operation not permitted");
}

static void test_err_wrap_marks_what_it_cuts(void **state)
{
	char long_text[ERR_BYTES + 100];
	const char *got;

	(void)state;
	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	err_set(-EIO, "%s", long_text);
	err_wrap(-EIO, "outer");
	got = err_message(-EIO);
	assert_memory_equal(got, "outer: xxx", 10);
	assert_string_equal(got + strlen(got) - 4, "x...");
	err_set(-EIO, "%s", long_text);
	got = err_message(-EIO);
	assert_string_equal(got + strlen(got) - 4, "x...");
}

/* What to do about an error stands behind the path. */
static void test_err_wrap_keeps_what_follows_the_longest_path(void **state)
{
	char path[PATH_MAX];

	(void)state;
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	err_set(-ENOSPC, "No space left on device");
	err_wrap(-ENOSPC, "%s , but converting it failed", path);
	assert_non_null(
		strstr(err_message(-ENOSPC), "x , but converting it failed: No space left"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_err_wrap_puts_context_in_front),
		cmocka_unit_test(test_err_message_falls_back_to_strerror),
		cmocka_unit_test(test_err_wrap_marks_what_it_cuts),
		cmocka_unit_test(test_err_wrap_keeps_what_follows_the_longest_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
