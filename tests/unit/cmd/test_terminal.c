/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "cmd/terminal.h"

static void test_line_put_tail_cuts_folders_first(void **state)
{
	static const struct {
		const char *name, *text, *suffix;
		size_t columns;
		const char *want;
	} cases[] = {
		{ "it fits", "a/b.py", ":12", 9, "a/b.py:12" },
		{ "no limit", "a/b.py", ":12", SIZE_MAX, "a/b.py:12" },
		{ "one folder less", "django/db/base.py", ":12", 16, "../db/base.py:12" },
		{ "two", "django/db/base.py", ":12", 15, "../base.py:12" },
		{ "the file's own name", "django/db/base.py", ":12", 11, "..ase.py:12" },
		{ "no folders", "<frozen importlib>", ":1165", 12, "..tlib>:1165" },
		{ "the number alone", "base.py", ":1165", 7, ":1165" },
		{ "more than there is room for", "base.py", ":1165", 2, ":1165" },
		{ "not within a character", "\xd1\x80\xd0\xb0\xd0\xb1\xd0\xbe\xd1\x82\xd0\xb0", "",
		  5, "..\xd0\xbe\xd1\x82\xd0\xb0" },
		{ "wide ones", "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", "", 5, "..\xe8\xaa\x9e" },
		{ "escaped before it is cut", "a\x1b[31mred", "", 8, "..31mred" },
		{ "nothing", "", "", 0, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct terminal t = { .width = 0 };
		struct line l = LINE_INIT(&t);

		line_put_tail(&l, STYLE_PLAIN, cases[i].text, strlen(cases[i].text),
			      cases[i].suffix, cases[i].columns);
		if (strcmp(strbuf_str(&l.text), cases[i].want))
			fail_msg("%s: %s, not %s", cases[i].name, strbuf_str(&l.text),
				 cases[i].want);
		line_release(&l);
	}
}

static void test_line_put_escapes_whoever_prints(void **state)
{
	static const char hostile[] = "\033]0;x\a\xc2\x9b"
				      "1m\xe2\x80\xaez\xff\n";
	static const char want[] = "\\x1b]0;x\\x07\\xc2\\x9b1m\\xe2\\x80\\xaez\\xff\\x0a";
	const struct terminal t = { .has_colour = true };
	struct line l = LINE_INIT(&t);

	(void)state;
	line_put(&l, STYLE_PLAIN, hostile);
	assert_string_equal(strbuf_str(&l.text), want);
	line_clear(&l);
	line_putf(&l, STYLE_PLAIN, "%s", hostile);
	assert_string_equal(strbuf_str(&l.text), want);
	line_clear(&l);
	line_put_tail(&l, STYLE_PLAIN, "a", 1, hostile, SIZE_MAX);
	assert_string_equal(strbuf_str(&l.text) + 1, want);
	line_clear(&l);
	line_put(&l, STYLE_BOLD, "b");
	assert_string_equal(strbuf_str(&l.text), "\033[1mb\033[0m");
	line_release(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line_put_tail_cuts_folders_first),
		cmocka_unit_test(test_line_put_escapes_whoever_prints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
