/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "collect/recorder.h"
#include "tests/unit/skip.h"

/* The kernel is real here: whoever runs the machine, ticks come. */

#define FREQ_HZ 499
#define TICKS 20

static struct recorder_opts all_of_the_machine(void)
{
	return (struct recorder_opts){
		.session = { .freq_hz = FREQ_HZ, .is_system_wide = true, .ring_bytes = 1 << 20 }
	};
}

/* False: nobody may record here. */
static bool open_recorder(const struct recorder_opts *opts, struct recorder **out)
{
	int r = recorder_open(opts, out);

	if (r == -EPERM || r == -EOPNOTSUPP)
		return false;
	if (r < 0)
		fail_msg("open: %s", err_message(r));
	return true;
}

static uint64_t counter(const struct recorder *rec, const char *name)
{
	return profile_counter(recorder_profile(rec), name);
}

static void step_until_ticks(struct recorder *rec)
{
	do {
		assert_true(recorder_step(rec, -1, 50) >= 0);
		assert_int_equal(recorder_store_counters(rec), 0);
	} while (counter(rec, "ticks") < TICKS);
}

static void begin_all(struct recorder *rec)
{
	assert_int_equal(recorder_attach(rec), 0);
	assert_int_equal(recorder_aim(rec), 0);
	assert_int_equal(recorder_begin(rec), 0);
	assert_int_equal(recorder_start(rec), 0);
}

static void test_recorder_knows_what_it_does(void **state)
{
	const struct recorder_opts opts = all_of_the_machine();
	_cleanup_(recorder_freep) struct recorder *rec = NULL;
	const struct recording *m;

	(void)state;
	if (!open_recorder(&opts, &rec))
		SKIP("needs what recording needs");
	m = profile_recording(recorder_profile(rec));
	assert_int_equal(m->rate_hz, FREQ_HZ);
	assert_int_equal(m->interval_ns, 1000000000 / FREQ_HZ);
	assert_true(m->cpus > 0);
	assert_string_equal(m->mode, "cpu");
	assert_string_equal(m->event, "cpu-clock");
	assert_string_equal(m->version, PYEBPF_VERSION);
	assert_non_null(m->kernel);
	assert_non_null(m->machine);
}

static void test_recorder_aim_names_a_process_that_is_not_there(void **state)
{
	pid_t beyond_all = PROC_PIDS_MAX; /* the highest is one less */
	const struct pids pids = { .items = &beyond_all, .len = 1 };
	const struct recorder_opts opts = {
		.session = { .freq_hz = FREQ_HZ, .ring_bytes = 1 << 20 }, .pids = &pids
	};
	_cleanup_(recorder_freep) struct recorder *rec = NULL;

	(void)state;
	if (!open_recorder(&opts, &rec))
		SKIP("needs what recording needs");
	assert_int_equal(recorder_attach(rec), 0);
	assert_int_equal(recorder_aim(rec), -ESRCH);
	assert_non_null(strstr(err_message(-ESRCH), "pid 4194304"));
}

/* Not "ticks": those of a process that is known in the second part only were counted in the first.
 */
static void test_recorder_parts_follow_each_other(void **state)
{
	static const char *const summed[] = { "expected", "recorded", "idle", "run_ns" };
	const struct recorder_opts opts = all_of_the_machine();
	_cleanup_(recorder_freep) struct recorder *rec = NULL;
	_cleanup_(profile_freep) struct profile *total = NULL, *last = NULL;
	uint64_t first[sizeof(summed) / sizeof(summed[0])], end_ns;
	const struct recording *m;

	(void)state;
	if (!open_recorder(&opts, &rec))
		SKIP("needs what recording needs");
	begin_all(rec);
	m = profile_recording(recorder_profile(rec));
	step_until_ticks(rec);
	assert_int_equal(m->has_ended, 0);
	assert_int_equal(recorder_cut(rec), 0);
	assert_int_equal(m->has_ended, 1);
	assert_true(m->duration_ns > 0);
	for (size_t i = 0; i < sizeof(summed) / sizeof(summed[0]); i++)
		first[i] = counter(rec, summed[i]);
	end_ns = m->start_monotonic_ns + m->duration_ns;

	assert_int_equal(recorder_begin(rec), 0);
	assert_true(m->start_monotonic_ns == end_ns);
	assert_int_equal(m->has_ended, 0);
	assert_int_equal(m->duration_ns, 0);
	assert_int_equal(recorder_profile(rec)->samples.len, 0);
	assert_int_equal(recorder_profile(rec)->processes.len, 0);
	step_until_ticks(rec);
	assert_int_equal(recorder_finish(rec), 0);
	assert_int_equal(m->has_ended, 1);

	assert_int_equal(profile_new(&total), 0);
	assert_int_equal(recorder_store_total(rec, total), 0);
	for (size_t i = 0; i < sizeof(summed) / sizeof(summed[0]); i++)
		if (profile_counter(total, summed[i]) != first[i] + counter(rec, summed[i]))
			fail_msg("%s: the parts are not the whole", summed[i]);
	assert_true(profile_counter(total, "ticks") >= TICKS);
	assert_true(recorder_target_events(rec) <= profile_counter(total, "ticks"));

	last = recorder_take_profile(rec);
	assert_non_null(last);
	assert_null(recorder_profile(rec));
}

static void test_recorder_clear_goes_on_with_the_part(void **state)
{
	const struct recorder_opts opts = all_of_the_machine();
	_cleanup_(recorder_freep) struct recorder *rec = NULL;
	const struct recording *m;
	uint64_t start_ns, ticks;

	(void)state;
	if (!open_recorder(&opts, &rec))
		SKIP("needs what recording needs");
	begin_all(rec);
	m = profile_recording(recorder_profile(rec));
	start_ns = m->start_monotonic_ns;
	step_until_ticks(rec);
	ticks = counter(rec, "ticks");
	assert_int_equal(recorder_clear(rec), 0);
	assert_int_equal(recorder_profile(rec)->processes.len, 0);
	assert_true(m->start_monotonic_ns == start_ns);
	assert_int_equal(recorder_finish(rec), 0);
	assert_true(counter(rec, "ticks") >= ticks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recorder_knows_what_it_does),
		cmocka_unit_test(test_recorder_aim_names_a_process_that_is_not_there),
		cmocka_unit_test(test_recorder_parts_follow_each_other),
		cmocka_unit_test(test_recorder_clear_goes_on_with_the_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
