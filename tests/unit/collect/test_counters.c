/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "collect/counters.h"
#include "collect/source.h"

static void test_counters_store_not_delivered(void **state)
{
	static const struct {
		const char *name;
		struct source_counters now, since;
		uint64_t ticks, expected, not_delivered, cpu_unwatched, cpu_left_out;
	} cases[] = {
		/* clang-format off */
		{ "all came",
		  { .expected = 100, .stats = { [STAT_RECORDED] = 90, [STAT_IDLE] = 10 } }, { .expected = 0 },
		  100, 100, 0, 0, 0 },
		{ "a CPU slept",
		  { .expected = 1000, .stats = { [STAT_RECORDED] = 20, [STAT_IDLE] = 80 } }, { .expected = 0 },
		  100, 1000, 0, 0, 0 },
		{ "the sampler saw a gap",
		  { .expected = 100, .stats = { [STAT_RECORDED] = 90, [STAT_MISSED] = 10 } }, { .expected = 0 },
		  90, 100, 10, 0, 0 },
		{ "what came before does not count",
		  { .expected = 300, .stats = { [STAT_RECORDED] = 150, [STAT_MISSED] = 70 } },
		  { .expected = 200, .stats = { [STAT_RECORDED] = 100, [STAT_MISSED] = 50 } },
		  50, 100, 20, 0, 0 },
		{ "CPU time and ticks agree as far as chance lets them",
		  { .interval_ns = 1000, .stats = { [STAT_RECORDED] = 9400 } }, { .expected = 0 },
		  9400, 0, 0, 0, 0 },
		{ "CPU time without ticks",
		  { .interval_ns = 1000, .stats = { [STAT_RECORDED] = 5000 } }, { .expected = 0 },
		  5000, 0, 5000, 0, 0 },
		{ "ticks of others are none of theirs",
		  { .interval_ns = 1000,
		    .stats = { [STAT_RECORDED] = 5000, [STAT_IDLE] = 5000, [STAT_FILTERED] = 5000 } }, { .expected = 0 },
		  15000, 0, 5000, 0, 0 },
		{ "a target without Python had the rest",
		  { .interval_ns = 1000,
		    .stats = { [STAT_RECORDED] = 5000, [STAT_NOT_PYTHON] = 5000 } }, { .expected = 0 },
		  10000, 0, 0, 0, 0 },
		{ "gaps, but no CPU time for them",
		  { .interval_ns = 1000,
		    .stats = { [STAT_RECORDED] = 10000, [STAT_MISSED] = 5000 } }, { .expected = 0 },
		  10000, 0, 826, 0, 0 },
		{ "a CPU came back, and the targets ran there for a part of the time until it was seen",
		  { .interval_ns = 1000, .unwatched = 1000, .stats = { [STAT_RECORDED] = 9400 } }, { .expected = 0 },
		  9400, 0, 0, 600, 0 },
		{ "a CPU came back, which does not explain all",
		  { .interval_ns = 1000, .unwatched = 1000, .stats = { [STAT_RECORDED] = 5000 } }, { .expected = 0 },
		  5000, 0, 4000, 1000, 0 },
		{ "the CPU that came back was idle",
		  { .interval_ns = 1000, .unwatched = 1000, .stats = { [STAT_RECORDED] = 10100 } }, { .expected = 0 },
		  10100, 0, 0, 0, 0 },
		{ "a CPU came back, and nobody knows how much the targets used",
		  { .unwatched = 1000, .stats = { [STAT_RECORDED] = 300, [STAT_IDLE] = 700 } }, { .expected = 0 },
		  1000, 0, 0, 300, 0 },
		{ "it came back before",
		  { .interval_ns = 1000, .unwatched = 1000, .stats = { [STAT_RECORDED] = 9400 } }, { .unwatched = 1000 },
		  9400, 0, 0, 0, 0 },
		{ "half of the CPU time was on CPUs that are left out",
		  { .interval_ns = 1000, .left_out = 10000, .stats = { [STAT_RECORDED] = 5000 } }, { .expected = 0 },
		  5000, 0, 0, 0, 5000 },
		{ "the other CPUs had less time than is missing",
		  { .interval_ns = 1000, .left_out = 1000, .stats = { [STAT_RECORDED] = 5000 } }, { .expected = 0 },
		  5000, 0, 4000, 0, 1000 },
		{ "chance may have made that few ticks",
		  { .interval_ns = 1000, .left_out = 10000, .stats = { [STAT_RECORDED] = 9600 } }, { .expected = 0 },
		  9600, 0, 0, 0, 0 },
		/* clang-format on */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct counters now = { .of[SOURCE_TICKS] = cases[i].now, .cpu_ns = 10000000 };
		const struct counters since = { .of[SOURCE_TICKS] = cases[i].since };
		_cleanup_(profile_freep) struct profile *p = NULL;

		now.of[SOURCE_TICKS].is_on = true;
		assert_int_equal(profile_new(&p), 0);
		assert_int_equal(counters_store(&now, &since, p), 0);
		if (profile_counter(p, "ticks") != cases[i].ticks ||
		    profile_counter(p, "expected") != cases[i].expected ||
		    profile_counter(p, "not_delivered") != cases[i].not_delivered ||
		    profile_counter(p, "cpu_unwatched") != cases[i].cpu_unwatched ||
		    profile_counter(p, "cpu_left_out") != cases[i].cpu_left_out)
			fail_msg("%s: ticks %d, expected %d, not delivered %d, unwatched %d",
				 cases[i].name, (int)profile_counter(p, "ticks"),
				 (int)profile_counter(p, "expected"),
				 (int)profile_counter(p, "not_delivered"),
				 (int)profile_counter(p, "cpu_unwatched"));
	}
}

static void test_counters_store_subtracts_what_was_before(void **state)
{
	const struct counters since = { .of[SOURCE_TICKS].expected = 10,
					.unnamed = 1,
					.approximate = 7,
					.malformed = 2,
					.refused = 4,
					.rows_refused = 20 };
	const struct counters now = {
		.of[SOURCE_TICKS] = { .is_on = true,
				      .stats = { [STAT_RECORDED] = 3 },
				      .expected = 15 },
		.unnamed = 1,
		.approximate = 9,
		.malformed = 5,
		.refused = 6,
		.rows_refused = 23,
	};
	_cleanup_(profile_freep) struct profile *profile = NULL;

	(void)state;
	assert_int_equal(profile_new(&profile), 0);
	assert_int_equal(counters_store(&now, &since, profile), 0);
	assert_int_equal(profile_counter(profile, "ticks"), 3);
	assert_int_equal(profile_counter(profile, "expected"), 5);
	assert_int_equal(profile_counter(profile, "unnamed"), 0);
	assert_int_equal(profile_counter(profile, "approximate_lines"), 2);
	assert_int_equal(profile_counter(profile, "malformed"), 3);
	assert_int_equal(profile_counter(profile, "looks_refused"), 2);
	assert_int_equal(profile_counter(profile, "rows_refused"), 3);
}

static void test_counters_of_targets_leaves_others_out(void **state)
{
	const struct counters c = {
		.of[SOURCE_TICKS].stats = { [STAT_RECORDED] = 3,
					    [STAT_NOT_PYTHON] = 2,
					    [STAT_IDLE] = 10,
					    [STAT_NO_MM] = 20,
					    [STAT_FILTERED] = 40,
					    [STAT_FRAMES] = 80 },
	};

	(void)state;
	assert_int_equal(counters_of_targets(&c), 5);
}

/* Names are what readers of files and of /metrics go by: no two sources may share one. */
static void test_sources_have_names_of_their_own(void **state)
{
	(void)state;
	for (int i = 0; i < SOURCE_COUNT_; i++) {
		assert_non_null(sources[i].events);
		assert_non_null(sources[i].losses);
		for (int j = 0; j < i; j++)
			assert_string_not_equal(sources[i].prefix, sources[j].prefix);
	}
	assert_string_equal(sources[SOURCE_TICKS].prefix, "");
	assert_string_equal(sources[SOURCE_TICKS].events, "ticks");
}

static void test_source_find_thinned(void **state)
{
	static const struct {
		const char *name;
		uint64_t interval_ns, recorded, task_work, skipped, run_ns;
		uint32_t rate_fit_hz; /* 0: not thinned */
	} cases[] = {
		{ "nothing recorded", 200000, 0, 0, 100, 0, 0 },
		{ "an event without time", 0, 100, 0, 100, 100000000, 0 },
		{ "nearly each tick has its sample", 200000, 1000, 0, 49, 1000000000, 0 },
		{ "a quarter of a CPU at a usual rate", 200000, 0, 1000, 1000, 250250250, 999 },
		{ "a bit more is the next lower one", 200000, 500, 500, 1000, 250500000, 499 },
		{ "samples are cheap: the ring was full", 200000, 1000, 0, 1000, 5000000, 0 },
		{ "the rate is low already", 10101010, 1000, 0, 3000, 1000000000, 0 },
		{ "no usual rate is low enough", 10101010, 10, 0, 300, 1000000000, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(profile_freep) struct profile *p = NULL;
		struct thinned_ticks got = { 0 };

		assert_int_equal(profile_new(&p), 0);
		profile_recording(p)->interval_ns = cases[i].interval_ns;
		assert_int_equal(profile_set_counter(p, "recorded", cases[i].recorded), 0);
		assert_int_equal(profile_set_counter(p, "task_work_recorded", cases[i].task_work),
				 0);
		assert_int_equal(profile_set_counter(p, "skipped", cases[i].skipped), 0);
		assert_int_equal(profile_set_counter(p, "run_ns", cases[i].run_ns), 0);
		if (source_find_thinned(p, &got) != (cases[i].rate_fit_hz > 0) ||
		    got.rate_fit_hz != cases[i].rate_fit_hz)
			fail_msg("%s: got %u Hz", cases[i].name, got.rate_fit_hz);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counters_store_not_delivered),
		cmocka_unit_test(test_counters_store_subtracts_what_was_before),
		cmocka_unit_test(test_counters_of_targets_leaves_others_out),
		cmocka_unit_test(test_sources_have_names_of_their_own),
		cmocka_unit_test(test_source_find_thinned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
