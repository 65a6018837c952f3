/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/governor.h"

#define BUDGET_PPM 10000 /* 1 % */
#define S 1000000000ULL

static void test_governor_update_sets_the_stride(void **state)
{
	static const struct {
		const char *name;
		uint32_t stride, want;
		double percent; /* of the CPU time in the window */
		uint64_t window_ns;
	} cases[] = {
		{ "within the budget", 1, 1, 1, 30 * S },
		{ "just over it", 1, 2, 1.001, 30 * S },
		{ "just over it for seconds", 1, 1, 1.001, 5 * S },
		{ "three times as much", 1, 4, 3, 30 * S },
		{ "three times as much for a second", 1, 4, 3, S },
		{ "over it with a stride", 4, 8, 1.9, 30 * S },
		{ "far over it", 1, 19, 100, S },
		{ "at the lowest rate", 19, 19, 100, S },
		{ "half of it: too near to go back", 8, 8, 0.5, 60 * S },
		{ "less: back by half", 8, 4, 0.45, 60 * S },
		{ "less, but not yet for a minute", 8, 8, 0.45, 59 * S },
		{ "odd", 3, 2, 0, 60 * S },
		{ "at the full rate", 1, 1, 0, 60 * S },
		{ "no time has passed", 2, 2, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t cost_ns = (uint64_t)((double)cases[i].window_ns * cases[i].percent / 100);
		struct governor g;
		bool is_new;

		governor_init(&g, BUDGET_PPM, 19, 1);
		g.stride = cases[i].stride;
		is_new = governor_update(&g, cost_ns, cases[i].window_ns, 1);
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
	const uint64_t percent = 60 * S / 100;

	(void)state;
	for (uint64_t fixed = 0; fixed <= percent * 8 / 10; fixed += percent / 10) {
		for (uint64_t full = percent / 4; full < 64 * percent; full *= 2) {
			uint64_t cost = 0;
			int changes = 0;
			struct governor g;

			governor_init(&g, BUDGET_PPM, 10000, 1);
			g.stride = 700;
			for (int i = 0; i < 100; i++) {
				cost = fixed + full / g.stride;
				changes += governor_update(&g, cost, 60 * S, 1) && i >= 50;
			}
			assert_int_equal(changes, 0);
			assert_true(cost <= percent);
		}
	}
}

/* From -1 to 1. */
static double draw(uint64_t *random)
{
	*random = *random * 6364136223846793005u + 1442695040888963407u;
	return (double)(int64_t)*random / 9.3e18;
}

/*
 * An hour at 99 Hz in windows of 5 s, on a load that is steady but for the windows: what it costs
 * is near the budget, and varies by a third from one to the next.
 */
static void test_governor_update_does_not_flap(void **state)
{
	(void)state;
	for (int full = 60; full <= 240; full += 5) {
		uint64_t random = (uint64_t)full, spent = 0;
		int changes = 0;
		struct governor g;

		governor_init(&g, BUDGET_PPM, 99, 1);
		for (int window = 0; window < 720; window++) {
			double percent = (0.1 + full / 100.0 / g.stride) * (1 + draw(&random) / 3);
			uint64_t cost = (uint64_t)(5 * S * percent / 100);

			spent += cost;
			changes += governor_update(&g, cost, 5 * S, 1);
		}
		if (changes > 12 || spent > 3600 * S / 100)
			fail_msg("%d.%02d %%: %d changes, %g %%", full / 100, full % 100, changes,
				 (double)spent / S / 36);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_governor_update_sets_the_stride),
		cmocka_unit_test(test_governor_init_keeps_the_lowest_rate),
		cmocka_unit_test(test_governor_update_comes_to_rest),
		cmocka_unit_test(test_governor_update_does_not_flap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
