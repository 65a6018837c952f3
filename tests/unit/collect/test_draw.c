/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/draw.h"

/*
 * One CPU's ticks, simulated over a long time as the kernel makes them: a period from the moment it
 * is set, and what is left of it at the next redraw is lost.
 */
struct simulation {
	struct draw_plan plan;
	struct draw draw;
	uint64_t random;
	double late_ns; /* each redraw, up to this: the thread that draws is not woken at once */
};

static double chance(struct simulation *s)
{
	s->random = s->random * 6364136223846793005ULL + 1442695040888963407ULL; /* Knuth's MMIX */
	return (double)(s->random >> 11) / (double)(1ULL << 53);
}

#define SECOND_NS 1000000000ULL

/* Ticks in `seconds`, and how many of them met the first half of a loop of loop_ns. */
static uint64_t simulate(struct simulation *s, uint64_t seconds, uint64_t loop_ns, uint64_t *in_a)
{
	uint64_t end = seconds * SECOND_NS, due = 0, set = 0, all = 0;

	*in_a = 0;
	while (set < end) {
		uint64_t period = draw_period_ns(&s->plan, &s->draw, chance(s));
		uint64_t next;

		due = draw_next_ns(&s->plan, due, set, chance(s));
		next = due + (uint64_t)(s->late_ns * chance(s));

		for (uint64_t tick = set + period; tick < next && tick < end; tick += period) {
			*in_a += tick % loop_ns < loop_ns / 2;
			all++;
		}
		set = next;
	}
	return all;
}

static void test_draw_gives_the_rate_and_no_step(void **state)
{
	static const uint32_t rates[] = { 1, 7, 19, 50, 99, 100, 200, 999, 1000, 10000 };
	static const int cpus[] = { 1, 20, 64, 1000 };

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		for (size_t k = 0; k < sizeof(cpus) / sizeof(cpus[0]); k++) {
			struct simulation s = { .plan = draw_plan(rates[i], cpus[k]), .random = 1 };
			uint64_t seconds = 200000 / rates[i] + 1000, in_a,
				 loops_ns = SECOND_NS / rates[i];
			double asked = (double)(seconds * rates[i]);
			double got = (double)simulate(&s, seconds, loops_ns, &in_a);

			if (fabs(got / asked - 1) > 0.01)
				fail_msg("%u Hz, %d CPUs: %.0f ticks, not %.0f", rates[i], cpus[k],
					 got, asked);
			if (fabs((double)in_a / got - 0.5) > 0.02)
				fail_msg("%u Hz, %d CPUs: %.1f %% in one half of a loop", rates[i],
					 cpus[k], 100 * (double)in_a / got);
		}
	}
}

/* A busy machine has no more ticks than an idle one, at any rate. */
static void test_draw_gives_the_rate_when_late(void **state)
{
	static const uint32_t rates[] = { 19, 99, 199, 997 };

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct simulation s = { .plan = draw_plan(rates[i], 2),
					.random = 1,
					.late_ns = 0.04 * SECOND_NS };
		uint64_t seconds = 1000000 / rates[i], in_a;
		double asked = (double)(seconds * rates[i]);
		double got = (double)simulate(&s, seconds, SECOND_NS, &in_a);

		if (fabs(got / asked - 1) > 0.003)
			fail_msg("%u Hz: %.0f ticks, not %.0f", rates[i], got, asked);
	}
}

/* Eight seconds at 1 kHz, many times: what absolute times are worth. */
static void test_draw_scatters_little(void **state)
{
	struct simulation s = { .plan = draw_plan(1000, 2), .random = 7 };
	double sum = 0, squares = 0, mean, deviation;
	const int runs = 400;
	uint64_t in_a;

	(void)state;
	for (int i = 0; i < runs; i++) {
		double n = (double)simulate(&s, 8, SECOND_NS, &in_a);

		sum += n;
		squares += n * n;
	}
	mean = sum / runs;
	deviation = sqrt(squares / runs - mean * mean);
	if (fabs(mean / 8000 - 1) > 0.002 || deviation / mean > 0.006)
		fail_msg("%.0f ticks +- %.2f %%", mean, 100 * deviation / mean);
}

static void test_draw_period_is_at_least_what_the_kernel_takes(void **state)
{
	struct draw_plan plan = draw_plan(100000, 1);
	struct draw d = { 0 };

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_true(draw_period_ns(&plan, &d, i / 100.0) >= PERIOD_MIN_NS);
}

static void test_draw_count_ticks(void **state)
{
	static const struct {
		const char *name;
		uint64_t set, period, from, to, ticks;
	} cases[] = {
		{ "from the start", 1000, 100, 1000, 1999, 9 },
		{ "the last one counts", 1000, 100, 1000, 2000, 10 },
		{ "what was counted before does not", 1000, 100, 1550, 2000, 5 },
		{ "none yet", 1000, 100, 1000, 1099, 0 },
		{ "asked before it was set", 1000, 100, 0, 900, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (draw_count_ticks(cases[i].set, cases[i].period, cases[i].from, cases[i].to) !=
		    cases[i].ticks)
			fail_msg("%s", cases[i].name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_draw_gives_the_rate_and_no_step),
		cmocka_unit_test(test_draw_gives_the_rate_when_late),
		cmocka_unit_test(test_draw_scatters_little),
		cmocka_unit_test(test_draw_period_is_at_least_what_the_kernel_takes),
		cmocka_unit_test(test_draw_count_ticks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
