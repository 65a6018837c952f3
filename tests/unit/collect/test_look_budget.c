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

enum { ALICE = 1001, MALLORY };

static struct look_target of(pid_t pid, uint64_t owner)
{
	return (struct look_target){ .pid = pid, .owner = owner };
}

static void test_of_a_second(void **state)
{
	/* One after the other: what is asked at a time, whether it may, and what it takes then. */
	static const struct {
		const char *name;
		pid_t pid; /* each has an owner of its own */
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

		is_allowed = look_budget_ask(&b, LOOK_READ, of(cases[i].pid, cases[i].pid), now,
					     cases[i].bytes, &is_first) > 0;
		if (is_allowed != cases[i].is_allowed || is_first != cases[i].is_first)
			fail_msg("%s: allowed %d, first %d", cases[i].name, is_allowed, is_first);
		if (is_allowed)
			look_budget_spend(&b, LOOK_READ, of(cases[i].pid, cases[i].pid), now,
					  &(struct look_cost){ .ns = cases[i].took_ms * MS_NS,
							       .bytes = cases[i].bytes });
	}
}

#define TARGETS 20

/* CPU time that a target takes which takes all it gets. */
static uint64_t take(struct look_budget *b, enum look_kind kind, struct look_target target,
		     uint64_t now)
{
	bool is_first;
	uint64_t cpu_ns = look_budget_ask(b, kind, target, now, 0, &is_first);

	if (cpu_ns)
		look_budget_spend(b, kind, target, now,
				  &(struct look_cost){ .ns = 1, .cpu_ns = cpu_ns });
	return cpu_ns;
}

/*
 * Of targets that take all they get, each ms: the CPU time of all within so long. Their PIDs are so
 * far from each other.
 */
static uint64_t take_all(struct look_budget *b, pid_t distance, uint64_t from_ms, uint64_t ms)
{
	uint64_t taken = 0;

	for (uint64_t at = from_ms; at < from_ms + ms; at++)
		for (pid_t pid = 1; pid <= 1 + (TARGETS - 1) * distance; pid += distance)
			taken += take(b, LOOK_SEARCH, of(pid, MALLORY), BEGIN_NS + at * MS_NS);
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
	/* A 100th of a CPU, and a thousandth for each. */
	if (later > 60000 * MS_NS / 100 * 4 + LOOK_GRANT_MAX_NS)
		fail_msg("%d apart: %llu ms of a minute", distance,
			 (unsigned long long)(later / MS_NS));
	/* Another one has its own, and each has more for reads. */
	assert_true(look_budget_ask(b, LOOK_SEARCH, of(TARGETS + 1, MALLORY),
				    BEGIN_NS + 61000 * MS_NS, 0, &is_first) == LOOK_OWN_NS);
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

	(void)state;
	for (uint64_t at = 0; at < 60000; at += 10) {
		uint64_t cpu_ns = take(&b, LOOK_SEARCH, of(1, ALICE), BEGIN_NS + at * MS_NS);

		most = cpu_ns > most ? cpu_ns : most;
	}
	assert_true(most == LOOK_GRANT_MAX_NS);
}

/* CPU time of new targets all the time, ten each ms; what is left for one more of each owner. */
static void check_new_targets(enum look_kind kind, uint64_t own_ns, uint64_t owner_ns,
			      uint64_t share)
{
	_cleanup_(freep) struct look_budget *b = calloc(1, sizeof(*b));
	uint64_t first = 0, later = 0, end = BEGIN_NS + 61000 * MS_NS;
	pid_t pid = 100;
	bool is_first;

	assert_non_null(b);
	for (uint64_t at = 0; at < 61000; at++)
		for (int i = 0; i < 10; i++)
			*(at < 1000 ? &first : &later) +=
				take(b, kind, of(pid++, MALLORY), BEGIN_NS + at * MS_NS);
	if (first > owner_ns * 11 / 10 + LOOK_PURSE_NS + LOOK_GRANT_MAX_NS)
		fail_msg("%d: %llu ms at first", kind, (unsigned long long)(first / MS_NS));
	if (later > 60000 * MS_NS / share + 60000 * MS_NS / LOOK_PURSE_SHARE + LOOK_GRANT_MAX_NS)
		fail_msg("%d: %llu ms of a minute", kind, (unsigned long long)(later / MS_NS));
	assert_true(look_budget_ask(b, kind, of(1, ALICE), end, 0, &is_first) == own_ns);
	assert_true(look_budget_ask(b, kind, of(2, MALLORY), end, 0, &is_first) < own_ns);
}

static void test_who_starts_processes_takes_nothing_from_others(void **state)
{
	(void)state;
	check_new_targets(LOOK_SEARCH, LOOK_OWN_NS, LOOK_OWNER_NS, LOOK_OWNER_SHARE);
	check_new_targets(LOOK_READ, LOOK_OWN_READS_NS, LOOK_OWNER_READS_NS,
			  LOOK_OWNER_READS_SHARE);
}

#define FLOODS 4
#define FLOOD_MS 60000

/*
 * Owners with new targets all the time: in the second minute all together have little more than
 * one has alone, and another owner's new targets all that a target has.
 */
static void check_flooding_owners(enum look_kind kind, uint64_t own_ns, uint64_t owner_ns,
				  uint64_t share)
{
	_cleanup_(freep) struct look_budget *b = calloc(1, sizeof(*b));
	uint64_t first = 0, later = 0, his = 0;
	pid_t pid = 100;

	assert_non_null(b);
	for (uint64_t at = 0; at < 2 * FLOOD_MS; at++) {
		uint64_t now = BEGIN_NS + at * MS_NS;

		for (uint64_t owner = 0; owner < FLOODS; owner++)
			*(at < FLOOD_MS ? &first : &later) +=
				take(b, kind, of(pid++, MALLORY + owner), now);
		if (at % 30000 == 0)
			his += take(b, kind, of(pid++, ALICE), now) / 4;
	}
	if (first > FLOODS * (owner_ns * 11 / 10 + LOOK_PURSE_NS) + FLOOD_MS * MS_NS / share)
		fail_msg("%d: %llu ms of the first minute", kind,
			 (unsigned long long)(first / MS_NS));
	if (later > FLOOD_MS * MS_NS / share)
		fail_msg("%d: %llu ms of a minute", kind, (unsigned long long)(later / MS_NS));
	if (his < own_ns * 9 / 10)
		fail_msg("%d: another owner: %llu ms each", kind,
			 (unsigned long long)(his / MS_NS));
}

static void test_several_owners_that_flood_share(void **state)
{
	(void)state;
	check_flooding_owners(LOOK_SEARCH, LOOK_OWN_NS, LOOK_OWNER_NS, 20);
	check_flooding_owners(LOOK_READ, LOOK_OWN_READS_NS, LOOK_OWNER_READS_NS, 12);
}

/* Looks that slept are waited for half of each second of an owner, those that got no CPU are not
 * counted. */
static void test_time_of_an_owner(void **state)
{
	static const struct {
		const char *name;
		uint64_t at_ms, slept_ms;
		pid_t pid;
		uint64_t owner;
		bool is_allowed;
	} cases[] = {
		/* clang-format off */
		{ "nothing was spent", 0, 250, 1, MALLORY, true },
		{ "another target of hers", 250, 250, 2, MALLORY, true },
		{ "a third one", 500, 0, 3, MALLORY, false },
		{ "another owner's", 500, 0, 4, ALICE, true },
		{ "the next second", 1000, 0, 3, MALLORY, true },
		/* clang-format on */
	};
	static struct look_budget b;
	bool is_first;

	(void)state;
	for (pid_t pid = 10; pid < 100; pid++)
		look_budget_spend(&b, LOOK_READ, of(pid, MALLORY), BEGIN_NS,
				  &(struct look_cost){ .ns = 50 * MS_NS });
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t now = BEGIN_NS + cases[i].at_ms * MS_NS, ns = cases[i].slept_ms * MS_NS;
		struct look_target target = of(cases[i].pid, cases[i].owner);

		if ((look_budget_ask(&b, LOOK_READ, target, now, 0, &is_first) > 0) !=
		    cases[i].is_allowed)
			fail_msg("%s: not %d", cases[i].name, cases[i].is_allowed);
		look_budget_spend(&b, LOOK_READ, target, now,
				  &(struct look_cost){ .ns = ns, .asleep_ns = ns });
	}
}

/* More owners than there are places: who takes turns in one has no more by that. */
static void test_owners_in_few_places(void **state)
{
	_cleanup_(freep) struct look_budget *b = calloc(1, sizeof(*b));
	uint64_t taken = 0;
	pid_t pid = 100;

	(void)state;
	assert_non_null(b);
	for (uint64_t at = 0; at < 10000; at++)
		for (uint64_t owner = 1; owner <= 20; owner++)
			taken += take(b, LOOK_SEARCH, of(pid++, owner * LOOK_OWNER_SLOTS),
				      BEGIN_NS + at * MS_NS);
	/* Spends like LOOK_BUDGET_WAYS owners. */
	if (taken > LOOK_BUDGET_WAYS *
			    (LOOK_OWNER_NS * 11 / 10 + LOOK_PURSE_NS + LOOK_GRANT_MAX_NS +
			     10000 * MS_NS / LOOK_OWNER_SHARE + 10000 * MS_NS / LOOK_PURSE_SHARE))
		fail_msg("%llu ms", (unsigned long long)(taken / MS_NS));
}

/* A look that was late costs CPU time when it comes back, with no time that anybody waited. */
static void test_what_was_late_is_charged_when_it_is_back(void **state)
{
	static struct look_budget b;
	bool is_first;

	(void)state;
	look_budget_spend(&b, LOOK_SEARCH, of(1, ALICE), BEGIN_NS,
			  &(struct look_cost){ .ns = 50 * MS_NS });
	assert_true(look_budget_ask(&b, LOOK_SEARCH, of(1, ALICE), BEGIN_NS, 0, &is_first) ==
		    LOOK_OWN_NS);
	look_budget_spend(&b, LOOK_SEARCH, of(1, ALICE), BEGIN_NS,
			  &(struct look_cost){ .cpu_ns = LOOK_OWN_NS / 2 });
	assert_true(look_budget_ask(&b, LOOK_SEARCH, of(1, ALICE), BEGIN_NS, 0, &is_first) ==
		    LOOK_OWN_NS / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_a_second),
		cmocka_unit_test(test_cpu_time_of_many),
		cmocka_unit_test(test_cpu_time_of_many_in_few_places),
		cmocka_unit_test(test_a_costly_one_gets_more),
		cmocka_unit_test(test_who_starts_processes_takes_nothing_from_others),
		cmocka_unit_test(test_several_owners_that_flood_share),
		cmocka_unit_test(test_time_of_an_owner),
		cmocka_unit_test(test_owners_in_few_places),
		cmocka_unit_test(test_what_was_late_is_charged_when_it_is_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
