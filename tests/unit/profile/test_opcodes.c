/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "profile/opcodes.h"

/* lint/opcodes compares all names with the interpreters; here: what there is beside them. */
static void test_opcode_name_is_that_of_the_version(void **state)
{
	static const struct {
		const char *name;
		unsigned int minor, opcode;
		const char *want;
	} cases[] = {
		{ "oldest version", 6, 23, "BINARY_ADD" },
		{ "the same number later", 13, 23, "LOAD_ASSERTION_ERROR" },
		{ "specialised", 12, 7, "BINARY_OP_ADD_INT" },
		{ "no such instruction", 6, 0, NULL },
		{ "last number", 6, 255, NULL },
		{ "more than a byte", 12, 256, NULL },
		{ "before the table", 5, 23, NULL },
		{ "version 0", 0, 23, NULL },
		{ "behind the table", 16, 23, NULL },
		{ "no version at all", 255, 23, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *got = opcode_name(cases[i].minor, cases[i].opcode);

		if (!got != !cases[i].want || (got && strcmp(got, cases[i].want)))
			fail_msg("%s: got %s", cases[i].name, got ? got : "none");
	}
}

static void test_opcode_calls_c_but_not_python(void **state)
{
	static const struct {
		const char *name;
		unsigned int minor;
		bool is_free_threaded;
		unsigned int opcode;
		bool want;
	} cases[] = {
		{ "up to 3.10 one cannot know: CALL_FUNCTION", 10, false, 131, false },
		{ "3.12: CALL", 12, false, 171, true },
		{ "3.13: CALL", 13, false, 53, true },
		{ "3.13 specialises none without the GIL", 13, true, 53, false },
		{ "no such instruction", 13, false, 256, false },
	};
	unsigned int calls = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (opcode_calls_c(cases[i].minor, cases[i].is_free_threaded, cases[i].opcode) !=
		    cases[i].want)
			fail_msg("%s", cases[i].name);
	/* By name: numbers are another in each version. */
	for (unsigned int minor = 6; minor <= 15; minor++)
		for (unsigned int opcode = 0; opcode < 256; opcode++) {
			const char *name = opcode_name(minor, opcode);
			bool is_c = opcode_calls_c(minor, false, opcode);

			calls += is_c;
			if (name && is_c &&
			    (strstr(name, "_PY_") || strstr(name, "INTRINSIC") ||
			     !strstr(name, "CALL")))
				if (!strstr(name, "NON_PY"))
					fail_msg("3.%u: %s", minor, name);
			if (name && !is_c && minor >= 11 && strstr(name, "CALL_BUILTIN"))
				fail_msg("3.%u: not %s", minor, name);
		}
	assert_in_range(calls, 80, 140);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_opcode_name_is_that_of_the_version),
		cmocka_unit_test(test_opcode_calls_c_but_not_python),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
