/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/base64.h"

/* RFC 4648, section 10, and bytes beyond ASCII. */
static void test_base64_append_pads(void **state)
{
	static const struct {
		const char *bytes, *want;
	} cases[] = {
		{ "", "" },
		{ "f", "Zg==" },
		{ "fo", "Zm8=" },
		{ "foo", "Zm9v" },
		{ "foob", "Zm9vYg==" },
		{ "foobar", "Zm9vYmFy" },
		{ "\xff\xfe\xfd\xfb", "//79+w==" },
		{ "Aladdin:open sesame", "QWxhZGRpbjpvcGVuIHNlc2FtZQ==" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct strbuf out = STRBUF_INIT;

		assert_int_equal(base64_append(&out, cases[i].bytes, strlen(cases[i].bytes)), 0);
		assert_string_equal(strbuf_str(&out), cases[i].want);
		strbuf_release(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_base64_append_pads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
