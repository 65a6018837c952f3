/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

/* What one call of every level writes to stderr. */
static void capture(int level, char *out, size_t size)
{
	FILE *file = tmpfile();
	int saved = dup(STDERR_FILENO);
	size_t n;

	assert_non_null(file);
	assert_true(saved >= 0);
	dup2(fileno(file), STDERR_FILENO);
	log_set_level(level);
	log_error("broken %d", 1);
	log_warning("odd\x1b[2J\n");
	log_note("seen");
	log_debug("detail");
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(file);
	n = fread(out, 1, size - 1, file);
	out[n] = '\0';
	fclose(file);
	log_set_level(LOG_LEVEL_WARNING);
}

static void test_log_level_decides_what_is_printed(void **state)
{
	static const struct {
		const char *name;
		int level;
		const char *want;
	} cases[] = {
		{ "quiet", LOG_LEVEL_ERROR, "pyebpf: broken 1\n" },
		{ "below quiet is quiet", -5, "pyebpf: broken 1\n" },
		{ "default; control characters are defused", LOG_LEVEL_WARNING,
		  "pyebpf: broken 1\npyebpf: warning: odd?[2J?\n" },
		{ "verbose", LOG_LEVEL_NOTE,
		  "pyebpf: broken 1\npyebpf: warning: odd?[2J?\npyebpf: seen\n" },
		{ "beyond debug is debug", 99,
		  "pyebpf: broken 1\npyebpf: warning: odd?[2J?\npyebpf: seen\n"
		  "pyebpf: debug: detail\n" },
	};
	char got[512];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		capture(cases[i].level, got, sizeof(got));
		if (strcmp(got, cases[i].want))
			fail_msg("%s: got \"%s\", want \"%s\"", cases[i].name, got, cases[i].want);
	}
}

static void test_log_skips_arguments_of_silent_levels(void **state)
{
	int evaluated = 0;

	(void)state;
	log_debug("%d", ++evaluated);
	assert_int_equal(evaluated, 0);
}

static void test_log_print_keeps_errno(void **state)
{
	(void)state;
	errno = ENOSPC;
	log_error("expected line in the test output");
	assert_int_equal(errno, ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_log_level_decides_what_is_printed),
		cmocka_unit_test(test_log_skips_arguments_of_silent_levels),
		cmocka_unit_test(test_log_print_keeps_errno),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
