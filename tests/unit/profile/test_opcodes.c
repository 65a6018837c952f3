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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_opcode_name_is_that_of_the_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
