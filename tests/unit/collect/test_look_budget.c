/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "collect/look_budget.h"

#define BEGIN_NS 7000000000ULL
#define MS_NS 1000000ULL

static void test_look_budget_allows_so_much_of_a_second(void **state)
{
	/* One after the other: what is asked at a time, whether it may, and what it takes then. */
	static const struct {
		const char *name;
		pid_t pid;
		uint64_t at_ms, took_ms;
		size_t bytes;
		bool is_allowed, is_first;
	} cases[] = {
		/* clang-format off */
		{ "nothing was spent", 1, 0, 400, 0, true, false },
		{ "some is left", 1, 400, 150, 0, true, false },
		{ "all is spent", 1, 550, 0, 0, false, true },
		{ "said once", 1, 600, 0, 0, false, false },
		{ "another target", 2, 610, 10, 0, true, false },
		{ "the next second", 1, 1001, 10, 0, true, false },
		{ "still said", 1, 1100, 900, 0, true, false },
		{ "spent again", 1, 1500, 0, 0, false, false },
		{ "all bytes at once", 3, 1500, 1, LOOK_BUDGET_BYTES, true, false },
		{ "one too many", 3, 1501, 1, 1, false, true },
		{ "none is none too many", 3, 1502, 1, 0, true, false },
		{ "whoever takes its place begins anew", 3 + LOOK_BUDGET_SLOTS, 1503, 1, 1, true, false },
		{ "so does it", 3, 1504, 1, 1, true, false },
		/* clang-format on */
	};
	static struct look_budget b;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t now = BEGIN_NS + cases[i].at_ms * MS_NS;
		bool is_first, is_allowed;

		is_allowed = look_budget_allows(&b, cases[i].pid, now, cases[i].bytes, &is_first);
		if (is_allowed != cases[i].is_allowed || is_first != cases[i].is_first)
			fail_msg("%s: allowed %d, first %d", cases[i].name, is_allowed, is_first);
		if (is_allowed)
			look_budget_spend(&b, cases[i].pid, now, cases[i].took_ms * MS_NS,
					  cases[i].bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_look_budget_allows_so_much_of_a_second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
