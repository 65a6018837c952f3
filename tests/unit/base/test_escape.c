/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/escape.h"

static void test_escape_append_escapes_what_is_hostile(void **state)
{
	static const struct {
		const char *name, *text;
		size_t len;
		const char *special, *want;
	} cases[] = {
		{ "empty", "", 0, ";\\", "" },
		{ "plain", "Shop.price <locals>", 19, ";\\", "Shop.price <locals>" },
		{ "special", "a;b\\c", 5, ";\\", "a\\x3bb\\x5cc" },
		{ "backslash alone", "a\\c", 3, "", "a\\c" },
		{ "C0 and NUL", "a\0\n\x1b", 4, "", "a\\x00\\x0a\\x1b" },
		{ "DEL", "\x7f", 1, "", "\\x7f" },
		{ "first and last of C1", "\xc2\x80\xc2\x9f\xc2\xa0", 6, "",
		  "\\xc2\\x80\\xc2\\x9f\xc2\xa0" },
		{ "line separators", "\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xa9", 9, "",
		  "\xe2\x80\xa7\\xe2\\x80\\xa8\\xe2\\x80\\xa9" },
		{ "bidi override", "\xe2\x80\xae", 3, "", "\\xe2\\x80\\xae" },
		{ "bidi isolate", "\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaa", 9, "",
		  "\\xe2\\x81\\xa6\\xe2\\x81\\xa9\xe2\x81\xaa" },
		{ "bidi marks", "\xd8\x9c\xe2\x80\x8e\xe2\x80\x8f", 8, "",
		  "\\xd8\\x9c\\xe2\\x80\\x8e\\xe2\\x80\\x8f" },
		{ "other UTF-8", "\xc3\xa4\xe6\x97\xa5\xf0\x9f\x90\x8d", 9, ";",
		  "\xc3\xa4\xe6\x97\xa5\xf0\x9f\x90\x8d" },
		{ "broken UTF-8", "a\xff\xc3z\xe6\x97", 6, "", "a\\xff\\xc3z\\xe6\\x97" },
		{ "surrogate", "\xed\xb2\x80", 3, "", "\\xed\\xb2\\x80" },
		{ "a real U+FFFD", "\xef\xbf\xbd", 3, "", "\xef\xbf\xbd" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(strbuf_releasep) struct strbuf out = STRBUF_INIT;

		assert_int_equal(escape_append(&out, cases[i].text, cases[i].len, cases[i].special),
				 0);
		if (strcmp(strbuf_str(&out), cases[i].want))
			fail_msg("%s: got %s", cases[i].name, strbuf_str(&out));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_escape_append_escapes_what_is_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
