/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* One thread that computes and one that waits. */
static pid_t start_python(void)
{
	static const char program[] = "import threading, time\n"
				      "threading.Thread(target=time.sleep, args=(60,)).start()\n"
				      "print(flush=True)\n"
				      "while True: pass\n";
	int fds[2];
	char line;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		execl("/usr/bin/python3", "python3", "-c", program, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &line, 1), 1);
	close(fds[0]);
	return pid;
}

/* Until both threads have begun, as it is known that they run Python. */
static void step_until_threads(struct recorder *rec)
{
	uint64_t threads;

	do {
		assert_true(recorder_step(rec, -1, 50) >= 0);
		assert_int_equal(recorder_catch_up(rec), 0);
		threads = recorder_times(rec)->threads;
	} while (threads < 2);
}

/* Nothing begins after the end of its part; of the last one no thread has more time than that took.
 */
static void check_times(const struct profile *p, bool is_last)
{
	const struct recording *m = &p->recordings.items[0];
	uint64_t sums[8] = { 0 };

	assert_true(p->samples.len >= 2 && p->threads.len <= 8);
	for (size_t i = 0; i < p->samples.len; i++) {
		const struct sample *s = &p->samples.items[i];

		if (s->time_ns > m->duration_ns)
			fail_msg("%llu ns of %llu", (unsigned long long)s->time_ns,
				 (unsigned long long)m->duration_ns);
		sums[s->thread] += s->value;
	}
	for (size_t i = 0; is_last && i < p->threads.len; i++)
		if (sums[i] > m->duration_ns)
			fail_msg("a thread of %llu ns in %llu", (unsigned long long)sums[i],
				 (unsigned long long)m->duration_ns);
}

static void test_recorder_parts_have_no_time_beyond_their_end(void **state)
{
	pid_t pid = start_python();
	const struct pids pids = { .items = &pid, .len = 1 };
	struct recorder_opts opts = {
		.session = { .modes = MODE_WALL, .freq_hz = FREQ_HZ, .ring_bytes = 1 << 20 },
		.pids = &pids
	};
	_cleanup_(recorder_freep) struct recorder *rec = NULL;
	bool can_record = open_recorder(&opts, &rec);

	(void)state;
	if (can_record) {
		begin_all(rec);
		step_until_threads(rec);
		assert_int_equal(recorder_cut(rec), 0);
		check_times(recorder_profile(rec), false);
		assert_int_equal(recorder_begin(rec), 0);
		step_until_ticks(rec);
		assert_int_equal(recorder_finish(rec), 0);
		check_times(recorder_profile(rec), true);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (!can_record)
		SKIP("needs what recording needs");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recorder_knows_what_it_does),
		cmocka_unit_test(test_recorder_aim_names_a_process_that_is_not_there),
		cmocka_unit_test(test_recorder_parts_follow_each_other),
		cmocka_unit_test(test_recorder_clear_goes_on_with_the_part),
		cmocka_unit_test(test_recorder_parts_have_no_time_beyond_their_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
