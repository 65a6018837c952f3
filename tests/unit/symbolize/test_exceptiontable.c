/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "symbolize/exceptiontable.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

/* start, length, target: code units; depth << 1 | lasti. Bit 7 begins an entry, bit 6: more. */
#define ENTRY(start, length, target, depth) 0x80 | (start), length, target, (depth) << 1

static void test_depth_is_that_of_the_innermost_block(void **state)
{
	static const struct {
		const char *name;
		uint8_t table[16];
		size_t len;
		uint32_t instr;
		int want;
	} cases[] = {
		{ "before all", { ENTRY(4, 2, 9, 1) }, 4, 6, -ENOENT },
		{ "the first of it", { ENTRY(4, 2, 9, 1) }, 4, 8, 1 },
		{ "the last of it", { ENTRY(4, 2, 9, 1) }, 4, 11, 1 },
		{ "behind it", { ENTRY(4, 2, 9, 1) }, 4, 12, -ENOENT },
		{ "the second", { ENTRY(4, 2, 9, 1), ENTRY(8, 8, 9, 3) }, 8, 30, 3 },
		{ "between two", { ENTRY(4, 2, 9, 1), ENTRY(8, 8, 9, 3) }, 8, 14, -ENOENT },
		{ "a long start", { 0x80 | 64 | 1, 2, 1, 9, 2 << 1 }, 5, 2 * (64 + 2), 2 },
		{ "lasti is no part of it", { ENTRY(0, 2, 9, 1) | 1 }, 4, 0, 1 },
		{ "no table", { 0 }, 0, 0, -ENOENT },
		{ "cut", { ENTRY(4, 2, 9, 1) }, 3, 8, -EBADMSG },
		{ "a number without end", { 0xc0, 64, 64, 64, 64, 64, 64, 64 }, 8, 8, -EBADMSG },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int got = exceptiontable_depth(cases[i].table, cases[i].len, cases[i].instr);

		if (got != cases[i].want)
			fail_msg("%s: got %d, want %d", cases[i].name, got, cases[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_depth_is_that_of_the_innermost_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
