/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/sweeper.h"

/*
 * This program is no Python, so that each look at it fails, and is tried again: what is tested is
 * who is looked at, when, and what becomes of what was seen. What sweeps see:
 * tests/integration/test_tasks.py.
 */

#define PATIENCE_NS (30 * NS_PER_SECOND)
#define REST 115

static struct target_id own(uint64_t process)
{
	return (struct target_id){ .process = process, .pid = (uint32_t)getpid() };
}

/* The next one that comes. */
static struct sweep *await_sweep(struct sweeper *s)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	uint64_t end_ns = monotonic_ns() + PATIENCE_NS;
	struct sweep *sw;

	while (!(sw = sweeper_take(s)) && monotonic_ns() < end_ns)
		nanosleep(&pause, NULL);
	assert_non_null(sw);
	return sw;
}

static void drain(struct sweeper *s)
{
	struct sweep *sw;

	while ((sw = sweeper_take(s)))
		sweep_free(sw);
}

static void test_sweeper_looks_again_and_tells_what_is_wrong(void **state)
{
	_cleanup_(sweeper_freep) struct sweeper *s = NULL;
	const struct target_id target = own(1);
	uint64_t last_ns = monotonic_ns();

	(void)state;
	assert_int_equal(sweeper_new(&s), 0);
	assert_null(sweeper_take(s));
	assert_int_equal(sweeper_set_targets(s, &target, 1), 0);
	for (int i = 0; i < 3; i++) {
		_cleanup_(sweep_freep) struct sweep *sw = await_sweep(s);

		assert_int_equal(sw->target.pid, getpid());
		assert_int_equal(sw->target.process, 1);
		assert_true(sw->r < 0);
		assert_non_null(strstr(sw->text, "no Python runtime"));
		assert_true(last_ns <= sw->begin_ns && sw->begin_ns <= sw->end_ns);
		assert_int_equal(sw->tasks.tasks.len, 0);
		last_ns = sw->end_ns;
	}
}

/* A look that is under way when its process is none of them any more is nobody's. */
static void test_sweeper_set_targets_forgets_others(void **state)
{
	_cleanup_(sweeper_freep) struct sweeper *s = NULL;

	(void)state;
	assert_int_equal(sweeper_new(&s), 0);
	for (uint64_t process = 1; process <= 50; process++) {
		const struct target_id targets[] = { own(process), own(process + 1000) };
		bool is_seen[2] = { false };

		assert_int_equal(sweeper_set_targets(s, targets, 2), 0);
		drain(s);
		while (!is_seen[0] || !is_seen[1]) {
			_cleanup_(sweep_freep) struct sweep *sw = await_sweep(s);

			assert_true(sw->target.process == process ||
				    sw->target.process == process + 1000);
			is_seen[sw->target.process > 1000] = true;
		}
	}
	assert_int_equal(sweeper_set_targets(s, NULL, 0), 0);
	drain(s);
	assert_null(sweeper_take(s));
}

/* Who stays a target is not looked at anew because of that: its next look is as far off as it was.
 */
static void test_sweeper_set_targets_keeps_who_stays(void **state)
{
	_cleanup_(sweeper_freep) struct sweeper *s = NULL;
	const struct target_id target = own(1);
	uint64_t looks = 0, began_ns = monotonic_ns(), most;

	(void)state;
	assert_int_equal(sweeper_new(&s), 0);
	for (int i = 0; i < 200; i++) {
		struct sweep *sw;

		assert_int_equal(sweeper_set_targets(s, &target, 1), 0);
		nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
		while ((sw = sweeper_take(s))) {
			looks++;
			sweep_free(sw);
		}
	}
	most = (monotonic_ns() - began_ns) / 20000000 + 2; /* 20 ms apart and more */
	if (looks > most)
		fail_msg("%llu looks, %llu at most", (unsigned long long)looks,
			 (unsigned long long)most);
}

/*
 * CPU time that was charged is rested for, 115 times as long, by half to one and a half; the first
 * three looks at a process have CPU time of their own.
 */
static void test_sweeper_charge_is_rested_for(void **state)
{
	_cleanup_(sweeper_freep) struct sweeper *s = NULL;
	const struct target_id target = own(1);
	const uint64_t charged_ns = 30000000; /* rested for 1.7 to 5.2 s */
	uint64_t from_ns;

	(void)state;
	assert_int_equal(sweeper_new(&s), 0);
	from_ns = monotonic_ns();
	sweeper_charge(s, charged_ns);
	assert_int_equal(sweeper_set_targets(s, &target, 1), 0);
	{
		_cleanup_(sweep_freep) struct sweep *first = await_sweep(s);
		_cleanup_(sweep_freep) struct sweep *second = await_sweep(s);
		_cleanup_(sweep_freep) struct sweep *third = await_sweep(s);
		_cleanup_(sweep_freep) struct sweep *fourth = await_sweep(s);

		assert_true(first->begin_ns <= second->begin_ns);
		assert_true(second->begin_ns <= third->begin_ns);
		assert_true(third->begin_ns < from_ns + REST * charged_ns / 2);
		assert_true(fourth->begin_ns >= from_ns + REST * charged_ns / 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sweeper_looks_again_and_tells_what_is_wrong),
		cmocka_unit_test(test_sweeper_set_targets_forgets_others),
		cmocka_unit_test(test_sweeper_set_targets_keeps_who_stays),
		cmocka_unit_test(test_sweeper_charge_is_rested_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
