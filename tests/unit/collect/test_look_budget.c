/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "collect/look_budget.h"

#define BEGIN_NS 7000000000ULL
#define MS_NS 1000000ULL

static void test_of_a_second(void **state)
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
		{ "one of the same places has its own", 3 + LOOK_BUDGET_SLOTS, 1503, 1, 1, true, false },
		{ "and takes nothing from what it spent", 3, 1504, 1, 1, false, false },
		/* clang-format on */
	};
	static struct look_budget b;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t now = BEGIN_NS + cases[i].at_ms * MS_NS;
		bool is_first, is_allowed;

		is_allowed = look_budget_ask(&b, LOOK_READ, cases[i].pid, now, cases[i].bytes,
					     &is_first) > 0;
		if (is_allowed != cases[i].is_allowed || is_first != cases[i].is_first)
			fail_msg("%s: allowed %d, first %d", cases[i].name, is_allowed, is_first);
		if (is_allowed)
			look_budget_spend(&b, LOOK_READ, cases[i].pid, now,
					  cases[i].took_ms * MS_NS, 0, cases[i].bytes);
	}
}

#define TARGETS 20

/*
 * Of targets that take all they get, each ms: the CPU time of all within so long. Their PIDs are so
 * far from each other.
 */
static uint64_t take_all(struct look_budget *b, pid_t distance, uint64_t from_ms, uint64_t ms)
{
	uint64_t taken = 0;
	bool is_first;

	for (uint64_t at = from_ms; at < from_ms + ms; at++)
		for (pid_t pid = 1; pid <= 1 + (TARGETS - 1) * distance; pid += distance) {
			uint64_t now = BEGIN_NS + at * MS_NS;
			uint64_t cpu_ns = look_budget_ask(b, LOOK_SEARCH, pid, now, 0, &is_first);

			if (!cpu_ns)
				continue;
			look_budget_spend(b, LOOK_SEARCH, pid, now, 1, cpu_ns, 0);
			taken += cpu_ns;
		}
	return taken;
}

static void check_cpu_time_of_many(pid_t distance)
{
	_cleanup_(freep) struct look_budget *b = calloc(1, sizeof(*b));
	uint64_t first, later;
	bool is_first;

	assert_non_null(b);
	first = take_all(b, distance, 0, 1000);
	later = take_all(b, distance, 1000, 60000);
	/* What each has, the purse, and one grant more than there was in it. */
	if (first > TARGETS * LOOK_OWN_NS + LOOK_PURSE_NS + LOOK_GRANT_MAX_NS)
		fail_msg("%d apart: %llu ms at first", distance,
			 (unsigned long long)(first / MS_NS));
	/* A 64th of a CPU, and a thousandth for each. */
	if (later > 60000 * MS_NS / 100 * 4 + LOOK_GRANT_MAX_NS)
		fail_msg("%d apart: %llu ms of a minute", distance,
			 (unsigned long long)(later / MS_NS));
	/* Another one has its own, and each has more for reads. */
	assert_true(look_budget_ask(b, LOOK_SEARCH, TARGETS + 1, BEGIN_NS + 61000 * MS_NS, 0,
				    &is_first) == LOOK_OWN_NS);
}

static void test_cpu_time_of_many(void **state)
{
	(void)state;
	check_cpu_time_of_many(1);
}

/* More of them than there are places: who takes turns in one has no more by that. */
static void test_cpu_time_of_many_in_few_places(void **state)
{
	(void)state;
	check_cpu_time_of_many(LOOK_BUDGET_SLOTS);
}

static void test_a_costly_one_gets_more(void **state)
{
	static struct look_budget b;
	uint64_t most = 0;
	bool is_first;

	(void)state;
	for (uint64_t at = 0; at < 60000; at += 10) {
		uint64_t now = BEGIN_NS + at * MS_NS;
		uint64_t cpu_ns = look_budget_ask(&b, LOOK_SEARCH, 1, now, 0, &is_first);

		most = cpu_ns > most ? cpu_ns : most;
		if (cpu_ns)
			look_budget_spend(&b, LOOK_SEARCH, 1, now, 1, cpu_ns, 0);
	}
	assert_true(most == LOOK_GRANT_MAX_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_a_second),
		cmocka_unit_test(test_cpu_time_of_many),
		cmocka_unit_test(test_cpu_time_of_many_in_few_places),
		cmocka_unit_test(test_a_costly_one_gets_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
