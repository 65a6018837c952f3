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

/* stderr goes to a file from capture_start() on. */
struct capture {
	FILE *file;
	int saved;
};

static struct capture capture_start(int level)
{
	struct capture c = { tmpfile(), dup(STDERR_FILENO) };

	assert_non_null(c.file);
	assert_true(c.saved >= 0);
	dup2(fileno(c.file), STDERR_FILENO);
	log_set_level(level);
	return c;
}

static void capture_end(struct capture *c, char *out, size_t size)
{
	size_t n;

	dup2(c->saved, STDERR_FILENO);
	close(c->saved);
	rewind(c->file);
	n = fread(out, 1, size - 1, c->file);
	out[n] = '\0';
	fclose(c->file);
	log_set_level(LOG_LEVEL_WARNING);
}

/* What one call of every level writes to stderr. */
static void capture(int level, char *out, size_t size)
{
	struct capture c = capture_start(level);

	log_error("broken %d", 1);
	log_warning("odd\x1b[2J\n");
	log_note("seen");
	log_debug("detail");
	capture_end(&c, out, size);
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

static void test_log_line_defuses(void **state)
{
	static const struct {
		const char *name, *text, *want;
	} cases[] = {
		{ "plain", "caf\xc3\xa9 \xef\xbf\xbd", "x: caf\xc3\xa9 \xef\xbf\xbd\n" },
		{ "C0", "a\tb\x7f", "x: a?b?\n" },
		{ "C1: a terminal may take U+009B for ESC [",
		  "a\xc2\x9b"
		  "2Jb",
		  "x: a?2Jb\n" },
		{ "not UTF-8", "a\x9b\xff\xc3", "x: a???\n" },
		{ "overlong", "\xc0\x9b", "x: ??\n" },
		{ "right to left",
		  "a\xe2\x80\xae"
		  "b\xe2\x81\xa6"
		  "c",
		  "x: a?b?c\n" },
		{ "line separator",
		  "a\xe2\x80\xa8"
		  "b",
		  "x: a?b\n" },
	};
	char got[256];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct capture c = capture_start(LOG_LEVEL_WARNING);

		log_line("x: ", cases[i].text);
		capture_end(&c, got, sizeof(got));
		if (strcmp(got, cases[i].want))
			fail_msg("%s: got \"%s\"", cases[i].name, got);
	}
}

/* 1,000 bytes and the newline, the middle left out between characters. */
static void test_log_line_keeps_both_ends(void **state)
{
	static const struct {
		const char *name, *fill, *end;
		size_t len_min;
	} cases[] = {
		{ "one byte a character", "/", ": No space left", 1001 },
		{ "two", "\xc3\xa9", "\xc3\xa9", 998 },
		{ "three", "\xe2\x82\xac", "\xe2\x82\xac", 995 },
	};
	char text[8000], got[2000];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct capture c = capture_start(LOG_LEVEL_WARNING);

		snprintf(text, sizeof(text), "pid 412: ");
		while (strlen(text) < 5000)
			strncat(text, cases[i].fill, 4);
		strncat(text, cases[i].end, 100);
		log_warning("%s", text);
		capture_end(&c, got, sizeof(got));
		if (strlen(got) > 1001 || strlen(got) < cases[i].len_min ||
		    strncmp(got, "pyebpf: warning: pid 412: ", 26) || !strstr(got, "...") ||
		    strchr(got, '?') || !strstr(got + 900, cases[i].end))
			fail_msg("%s: %zu bytes: %s", cases[i].name, strlen(got), got);
	}
}

static void test_log_lines_keeps_the_last(void **state)
{
	static const struct {
		const char *name, *text;
		size_t max;
		const char *want;
	} cases[] = {
		{ "all", "a\nb\n", 2, "pyebpf: debug: a\npyebpf: debug: b\n" },
		{ "without a newline at its end", "a\nb", 2,
		  "pyebpf: debug: a\npyebpf: debug: b\n" },
		{ "the last", "a\nb\nverdict\n\n", 1,
		  "pyebpf: debug: (2 lines before this)\npyebpf: debug: verdict\n" },
		{ "empty lines count", "a\n\nb\nc", 2,
		  "pyebpf: debug: (2 lines before this)\npyebpf: debug: b\npyebpf: debug: c\n" },
		{ "nothing", "\n", 2, "" },
	};
	char got[512];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct capture c = capture_start(LOG_LEVEL_DEBUG);

		log_lines(LOG_LEVEL_DEBUG, cases[i].text, cases[i].max);
		log_set_level(LOG_LEVEL_NOTE);
		log_lines(LOG_LEVEL_DEBUG, "not seen", 1);
		capture_end(&c, got, sizeof(got));
		if (strcmp(got, cases[i].want))
			fail_msg("%s: got \"%s\"", cases[i].name, got);
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

static void test_log_set_json(void **state)
{
	static const char message[] = "\"level\":\"warning\",\"message\":\"a \\\"b\\\" \\\\ ?\"}\n";
	struct capture c = capture_start(LOG_LEVEL_WARNING);
	int year, month, day, hour, minute, second, ms, len = 0;
	char out[4096], text[2000];

	(void)state;
	log_set_json(true);
	log_warning("a \"b\" \\ \n");
	memset(text, '"', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	log_warning("%s", text); /* the longest there is */
	log_set_json(false);
	capture_end(&c, out, sizeof(out));
	assert_int_equal(sscanf(out, "{\"time\":\"%4d-%2d-%2dT%2d:%2d:%2d.%3dZ\",%n", &year, &month,
				&day, &hour, &minute, &second, &ms, &len),
			 7);
	assert_int_equal(strncmp(out + len, message, strlen(message)), 0);
	assert_string_equal(out + strlen(out) - 5, "\\\"\"}\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_log_level_decides_what_is_printed),
		cmocka_unit_test(test_log_line_defuses),
		cmocka_unit_test(test_log_line_keeps_both_ends),
		cmocka_unit_test(test_log_lines_keeps_the_last),
		cmocka_unit_test(test_log_skips_arguments_of_silent_levels),
		cmocka_unit_test(test_log_print_keeps_errno),
		cmocka_unit_test(test_log_set_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
