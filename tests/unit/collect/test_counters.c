/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "collect/counters.h"

static void test_counters_store_not_delivered(void **state)
{
	static const struct {
		const char *name;
		struct counters now, since;
		uint64_t ticks, expected, not_delivered, idle_missed;
	} cases[] = {
		{ "all came",
		  { .expected = 100, .stats = { [STAT_RECORDED] = 90, [STAT_IDLE] = 10 } },
		  { .expected = 0 },
		  100,
		  100,
		  0,
		  0 },
		{ "some did not",
		  { .expected = 100, .stats = { [STAT_RECORDED] = 90 } },
		  { .expected = 0 },
		  90,
		  100,
		  10,
		  0 },
		{ "an idle CPU slept through them",
		  { .expected = 1000,
		    .stats = { [STAT_RECORDED] = 20, [STAT_IDLE] = 80, [STAT_IDLE_MISSED] = 897 } },
		  { .expected = 0 },
		  100,
		  1000,
		  3,
		  897 },
		{ "one more than there should be",
		  { .expected = 100, .stats = { [STAT_IDLE] = 99, [STAT_IDLE_MISSED] = 2 } },
		  { .expected = 0 },
		  99,
		  100,
		  0,
		  2 },
		{ "what came before does not count",
		  { .expected = 300,
		    .stats = { [STAT_RECORDED] = 150, [STAT_IDLE] = 60, [STAT_IDLE_MISSED] = 70 } },
		  { .expected = 200,
		    .stats = { [STAT_RECORDED] = 100, [STAT_IDLE] = 40, [STAT_IDLE_MISSED] = 50 } },
		  70,
		  100,
		  10,
		  20 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(profile_freep) struct profile *p = NULL;

		assert_int_equal(profile_new(&p), 0);
		assert_int_equal(counters_store(&cases[i].now, &cases[i].since, p), 0);
		if (profile_counter(p, "ticks") != cases[i].ticks ||
		    profile_counter(p, "expected") != cases[i].expected ||
		    profile_counter(p, "not_delivered") != cases[i].not_delivered ||
		    profile_counter(p, "idle_missed") != cases[i].idle_missed)
			fail_msg("%s: ticks %d, expected %d, not delivered %d, idle %d",
				 cases[i].name, (int)profile_counter(p, "ticks"),
				 (int)profile_counter(p, "expected"),
				 (int)profile_counter(p, "not_delivered"),
				 (int)profile_counter(p, "idle_missed"));
	}
}

static void test_counters_store_subtracts_what_was_before(void **state)
{
	const struct counters since = { .expected = 10, .unnamed = 1, .malformed = 2 };
	const struct counters now = {
		.stats = { [STAT_RECORDED] = 3 }, .expected = 15, .unnamed = 1, .malformed = 5
	};
	_cleanup_(profile_freep) struct profile *profile = NULL;

	(void)state;
	assert_int_equal(profile_new(&profile), 0);
	assert_int_equal(counters_store(&now, &since, profile), 0);
	assert_int_equal(profile_counter(profile, "ticks"), 3);
	assert_int_equal(profile_counter(profile, "not_delivered"), 2);
	assert_int_equal(profile_counter(profile, "unnamed"), 0);
	assert_int_equal(profile_counter(profile, "malformed"), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counters_store_not_delivered),
		cmocka_unit_test(test_counters_store_subtracts_what_was_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
