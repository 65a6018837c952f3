/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "export/diff_words.h"

static void test_change(void **state)
{
	static const struct {
		double ratio;
		const char *want;
	} cases[] = {
		{ 1, "0%" },
		{ 1.0004, "0%" },
		{ 1.012, "+1.2%" },
		{ 1.5, "+50%" },
		{ 0.5, "-50%" },
		{ 9.99, "+899%" },
		{ 53.5, "x 53.5" },
		{ 999, "x 999" },
		{ 1000, "over x 1000" },
		{ 5.35e9, "over x 1000" }, /* a bound of next to nothing */
		{ INFINITY, "any" },
		{ NAN, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct units_text got = diff_change(cases[i].ratio);

		if (strcmp(got.s, cases[i].want))
			fail_msg("%g: '%s', not '%s'", cases[i].ratio, got.s, cases[i].want);
	}
}

static void test_interval(void **state)
{
	(void)state;
	assert_string_equal(diff_interval(0.9, 5.35e9).s, "-10% to over x 1000");
	assert_string_equal(diff_interval(0, INFINITY).s, "-100% to any");
	assert_string_equal(diff_interval(NAN, 1).s, "");
}

static void test_certainty(void **state)
{
	(void)state;
	assert_string_equal(diff_certainty(0.001), "certain");
	assert_string_equal(diff_certainty(0.01), "likely");
	assert_string_equal(diff_certainty(0.011), "unsure");
	assert_string_equal(diff_certainty(NAN), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_change),
		cmocka_unit_test(test_interval),
		cmocka_unit_test(test_certainty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
