/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/governor.h"

#define BUDGET_PPM 10000 /* 1 % */
#define CAPACITY_NS 1000000000ULL
#define PERCENT (CAPACITY_NS / 100)

static void test_governor_update_sets_the_stride(void **state)
{
	static const struct {
		const char *name;
		uint32_t stride, want;
		uint64_t cost_ns, capacity_ns;
	} cases[] = {
		{ "within the budget", 1, 1, PERCENT, CAPACITY_NS },
		{ "just over it", 1, 2, PERCENT + 1000, CAPACITY_NS },
		{ "three times as much", 1, 4, 3 * PERCENT, CAPACITY_NS },
		{ "over it with a stride", 4, 9, 2 * PERCENT, CAPACITY_NS },
		{ "far over it", 1, 19, 100 * PERCENT, CAPACITY_NS },
		{ "at the lowest rate", 19, 19, 100 * PERCENT, CAPACITY_NS },
		{ "half of it: too near to go back", 8, 8, PERCENT / 2, CAPACITY_NS },
		{ "less: back by half", 8, 4, PERCENT * 45 / 100, CAPACITY_NS },
		{ "odd", 3, 2, 0, CAPACITY_NS },
		{ "at the full rate", 1, 1, 0, CAPACITY_NS },
		{ "no time has passed", 2, 2, PERCENT, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct governor g;
		bool is_new;

		governor_init(&g, BUDGET_PPM, 19, 1);
		g.stride = cases[i].stride;
		is_new = governor_update(&g, cases[i].cost_ns, cases[i].capacity_ns);
		if (g.stride != cases[i].want || is_new != (cases[i].want != cases[i].stride))
			fail_msg("%s: %u, is_new %d", cases[i].name, g.stride, is_new);
	}
}

static void test_governor_init_keeps_the_lowest_rate(void **state)
{
	static const struct {
		uint64_t rate, rate_min;
		uint32_t want;
	} cases[] = { { 19, 1, 19 }, { 199, 19, 10 }, { 10, 100, 1 }, { 10000, 0, 10000 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct governor g;

		governor_init(&g, BUDGET_PPM, cases[i].rate, cases[i].rate_min);
		assert_int_equal(g.stride_max, cases[i].want);
		assert_int_equal(g.stride, 1);
	}
}

/* Cost that is partly fixed, partly of the rate: the stride comes to rest within the budget. */
static void test_governor_update_comes_to_rest(void **state)
{
	(void)state;
	for (uint64_t fixed = 0; fixed <= PERCENT * 8 / 10; fixed += PERCENT / 10) {
		for (uint64_t full = PERCENT / 4; full < 64 * PERCENT; full *= 2) {
			uint64_t cost = 0;
			int changes = 0;
			struct governor g;

			governor_init(&g, BUDGET_PPM, 10000, 1);
			g.stride = 700;
			for (int i = 0; i < 100; i++) {
				cost = fixed + full / g.stride;
				changes += governor_update(&g, cost, CAPACITY_NS) && i >= 50;
			}
			assert_int_equal(changes, 0);
			assert_true(cost <= PERCENT);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_governor_update_sets_the_stride),
		cmocka_unit_test(test_governor_init_keeps_the_lowest_rate),
		cmocka_unit_test(test_governor_update_comes_to_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
