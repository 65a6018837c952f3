/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "collect/discover.h"
#include "collect/session.h"
#include "tests/unit/skip.h"

/* Spans of waiting and the times of threads, as they come out of the kernel: of a Python program
 * whose waits are known. The kernel is real here. */

#define FREQ_HZ 100
#define WAIT_NS 60000000ULL
#define COUNTED_NS 30000000ULL /* who is waited for may have begun before */
#define RUN_NS (30 * NS_PER_SECOND)

/* Waits for 60 ms for each of waits[], in a thread of its own: its name says for which. Once more
 * where a busy machine let it come too late to wait. */
static const char all_waits[] =
	"import os, select, socket, subprocess, sys, threading, time\n"
	"D = 0.06\n"
	"def later(f): threading.Timer(D, f).start()\n"
	"def timed(f, *a):\n"
	"    begin = time.monotonic(); f(*a); return time.monotonic() - begin\n"
	"def lock():\n"
	"    l = threading.Lock(); l.acquire(); later(l.release); return timed(l.acquire)\n"
	"def sleep(): return timed(time.sleep, D)\n"
	"def poll():\n"
	"    p = select.poll(); p.register(os.pipe()[0]); return timed(p.poll, D * 1000)\n"
	"def pipe():\n"
	"    r, w = os.pipe(); later(lambda: os.write(w, b'x')); return timed(os.read, r, 1)\n"
	"def sock():\n"
	"    a, b = socket.socketpair(); later(lambda: b.send(b'x')); return timed(a.recv, 1)\n"
	"def full():\n"
	"    r, w = os.pipe(); later(lambda: os.read(r, 65536))\n"
	"    return timed(os.write, w, bytes(65536 + 1))\n"
	"def child(): return timed(subprocess.call, ['sleep', str(D)])\n"
	"sys.stdin.read(1)\n"
	"for f in (sleep, lock, poll, pipe, sock, full, child):\n"
	"    open('/proc/thread-self/comm', 'w').write(f.__name__)\n"
	"    while f() < 0.75 * D: pass\n";

static const struct known_wait {
	const char *name;
	enum wait_reason reason;
	enum wait_class class;
	unsigned int at_least; /* spans: timers wait for locks, too */
} waits[] = {
	{ "sleep", WAIT_SLEEP, CLASS_SLEEP, 1 },
	{ "lock", WAIT_LOCK, CLASS_LOCK, 1 + 4 },
	{ "poll", WAIT_POLL, CLASS_POLL, 1 },
	{ "read of a pipe", WAIT_READ_PIPE, CLASS_READ, 1 },
	{ "read of a socket", WAIT_READ_SOCKET, CLASS_READ, 1 },
	{ "write to a pipe", WAIT_WRITE_PIPE, CLASS_WRITE, 1 },
	{ "child", WAIT_PROCESS, CLASS_PROCESS, 1 },
};
#define WAITS (sizeof(waits) / sizeof(*waits))

/* Waits so often for 2 ms, which is a fifth of a tick. */
#define NAPS 300
#define NAP_NS 2000000ULL
static const char naps[] = "import sys, time\n"
			   "sys.stdin.read(1)\n"
			   "for i in range(300): time.sleep(0.002)\n";

/*
 * Threads that fall asleep for 60 ms on a CPU that they have had more than their part of: the
 * kernel keeps most of them in line for a moment. In it they are moved to another CPU.
 */
#define MOVED 80
static const char moved_in_their_sleep[] =
	"import contextlib, os, signal, sys, threading, time\n"
	"sys.stdin.read(1)\n"
	"here, there = sorted(os.sched_getaffinity(0))[:2]\n"
	"parent, hog = os.getpid(), os.fork()\n"
	"if not hog: os.sched_setaffinity(0, {here})\n"
	"while not hog and os.getppid() == parent: pass\n"
	"if not hog: os._exit(0)\n"
	"os.sched_setaffinity(0, {there})\n"
	"falls_asleep, tids, threads = threading.Semaphore(0), [], []\n"
	"def nap(i):\n"
	"    tids.append(threading.get_native_id())\n"
	"    os.sched_setaffinity(0, {here})\n"
	"    end = time.thread_time() + (1 + i % 4) / 1000\n"
	"    while time.thread_time() < end: pass\n"
	"    falls_asleep.release()\n"
	"    time.sleep(0.06)\n"
	"for i in range(80):\n"
	"    threads.append(threading.Thread(target=nap, args=(i,)))\n"
	"    threads[-1].start()\n"
	"    falls_asleep.acquire()\n"
	"    with contextlib.suppress(ProcessLookupError):\n" /* it has slept already */
	"        os.sched_setaffinity(tids[-1], {there})\n"
	"for t in threads: t.join()\n"
	"os.kill(hog, signal.SIGKILL)\n"
	"os.waitpid(hog, 0)\n";

/* What was seen. */
struct seen {
	struct discovery *discovery;
	uint64_t long_ns[WAIT_COUNT_]; /* spans of at least COUNTED_NS, by reason */
	unsigned int spans[WAIT_COUNT_];
	uint64_t value_ns, open, ends;
	uint64_t whole_ns;             /* T0 */
	uint64_t ran_ns;               /* how long the program took */
	unsigned int naps;             /* spans of at least NAP_NS that were kept by chance */
	struct thread_times_event sum; /* of all threads that have ended */
	unsigned int threads;
	uint64_t life_ns;
};

/*
 * Waits of one kind may be one sample, where the thread was in the kernel all along. A long one is
 * kept by chance only where spans are sampled at their begin.
 */
static void check_value(const struct seen *s, uint64_t ns, uint64_t value, uint32_t flags)
{
	if (flags & SAMPLE_WEIGHTED)
		assert_true(value >= 2 * s->whole_ns);
	else if (flags & SAMPLE_SHORT && ns >= s->whole_ns)
		assert_true(value % ns == 0 && value > ns);
	else
		assert_int_equal(value, ns < s->whole_ns ? s->whole_ns : ns);
}

static void see_span(struct seen *s, uint8_t wait, uint64_t ns, uint64_t value, uint32_t flags)
{
	assert_true(wait > WAIT_NONE && wait < WAIT_COUNT_);
	s->value_ns += value;
	check_value(s, ns, value, flags);
	s->naps += ns >= NAP_NS && ns < s->whole_ns;
	if (ns < COUNTED_NS)
		return;
	s->long_ns[wait] += ns;
	s->spans[wait]++;
}

static void see_sample(struct seen *s, const struct sample_event *e)
{
	const struct sample_part *part = (const struct sample_part *)(e + 1);

	if (e->source != SOURCE_SWITCHES || part->status == UNWIND_UNIDENTIFIED)
		return;
	assert_true(part->depth || part->status != UNWIND_COMPLETE);
	if (e->flags & SAMPLE_OPEN)
		s->open++;
	else
		see_span(s, e->wait, e->duration_ns, e->value, e->flags);
}

static void see_end(struct seen *s, const struct span_end_event *e)
{
	s->ends++;
	if (e->value)
		see_span(s, e->wait, e->ktime_ns - e->begin_ns, e->value, e->flags);
}

/* A thread's times are all of its life. */
static void see_times(struct seen *s, const struct thread_times_event *e)
{
	uint64_t sum = e->cpu_ns + e->unseen_ns;

	for (int i = 0; i < CLASS_COUNT_; i++) {
		sum += e->short_ns[i] + e->long_ns[i];
		s->sum.short_ns[i] += e->short_ns[i];
		s->sum.long_ns[i] += e->long_ns[i];
	}
	assert_int_equal(sum, e->ktime_ns - e->since_ns);
	s->life_ns += sum;
	s->sum.cpu_ns += e->cpu_ns;
	s->threads++;
}

static int see_record(void *arg, const void *record, size_t size)
{
	struct seen *s = arg;

	(void)size;
	switch (*(const uint8_t *)record) {
	case EVENT_SAMPLE:
		see_sample(s, record);
		break;
	case EVENT_SPAN_END:
		see_end(s, record);
		break;
	case EVENT_THREAD_TIMES:
		see_times(s, record);
		break;
	case EVENT_WHO:
		return discovery_answer(s->discovery, record);
	}
	return 0;
}

/* A program, which begins when a byte is written to *go. */
static pid_t start_program(const char *program, int *go)
{
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* also where a check fails */
		dup2(fds[0], STDIN_FILENO);
		close(fds[1]);
		execl("/usr/bin/python3", "python3", "-c", program, (char *)NULL);
		_exit(127);
	}
	close(fds[0]);
	*go = fds[1];
	return pid;
}

/* It reads from the pipe: it has begun, and runs Python. */
static void wait_until_it_reads(pid_t pid)
{
	const uint64_t until = monotonic_ns() + RUN_NS;
	char path[64], call[8];

	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	do {
		FILE *f = fopen(path, "re");

		assert_non_null(f);
		if (!fgets(call, sizeof(call), f))
			call[0] = '\0';
		fclose(f);
		usleep(1000);
	} while (strncmp(call, "0 0x0 ", 6) && monotonic_ns() < until);
}

static void record(struct session *session, const char *program, struct seen *s)
{
	const uint64_t until = monotonic_ns() + RUN_NS;
	int go, status;
	pid_t pid = start_program(program, &go);
	uint64_t begin_ns;

	wait_until_it_reads(pid);
	assert_int_equal(discovery_new(session, &s->discovery), 0);
	assert_int_equal(discovery_add_target(s->discovery, pid), 0);
	begin_ns = monotonic_ns();
	assert_int_equal(session_start(session), 0);
	assert_int_equal(write(go, "x", 1), 1);
	close(go);
	while (!waitpid(pid, &status, WNOHANG) && monotonic_ns() < until) {
		assert_true(session_consume(session, 20, see_record, s) >= 0);
		assert_int_equal(session_visit_threads(session), 0);
	}
	s->ran_ns = monotonic_ns() - begin_ns;
	session_stop(session);
	assert_int_equal(session_drain(session, see_record, s), 0);
	assert_int_equal(status, 0);
	discovery_free(s->discovery);
}

/* Returns the ns that are lost by name. A kernel may not report one switch of some hundred: the
 * wait that it ended has no sample. Nor has a wait where earlier samples took too long. */
static uint64_t lost_by_name(struct session *session)
{
	static const enum stat_kind losses[] = { STAT_UNSEEN, STAT_SKIPPED, STAT_TSTATE_FAULT,
						 STAT_TSTATE_LATE, STAT_TW_FAILED };
	uint64_t stats[STAT_COUNT_], lost_ns = 0;

	assert_int_equal(session_stats(session, SOURCE_SWITCHES, stats), 0);
	for (size_t i = 0; i < sizeof(losses) / sizeof(*losses); i++)
		lost_ns += stats[losses[i]];
	return lost_ns;
}

/* Returns whether lost_ns can be the waits that have no span. */
static bool are_lost(const struct known_wait *w, unsigned int spans, uint64_t lost_ns)
{
	return spans >= w->at_least || lost_ns >= COUNTED_NS * (w->at_least - spans);
}

static void check_waits(const struct seen *s, struct session *session, bool no_exit_hook)
{
	const uint64_t least_ns = WAITS * WAIT_NS, lost_by_name_ns = lost_by_name(session);
	uint64_t late_ns = s->ran_ns > least_ns ? s->ran_ns - least_ns : 0;

	for (size_t i = 0; i < WAITS; i++) {
		const struct known_wait *w = &waits[i];
		uint64_t ns = s->long_ns[w->reason], lost_ns = lost_by_name_ns;

		/* Where spans are sampled at their begin, some have no sample on a busy machine,
		 * but are in the sums of short ones: else those are less than 10 ms. */
		if (no_exit_hook)
			lost_ns += s->sum.short_ns[w->class];
		if (!are_lost(w, s->spans[w->reason], lost_ns) ||
		    ns + lost_ns < COUNTED_NS * w->at_least)
			fail_msg("%s: %u spans, %llu ns, %llu ns lost", w->name,
				 s->spans[w->reason], (unsigned long long)ns,
				 (unsigned long long)lost_ns);
		if (ns > (WAIT_NS + late_ns) * (w->at_least + 2)) /* the machine is busy */
			fail_msg("%s: %llu ns", w->name, (unsigned long long)ns);
		if (s->sum.long_ns[w->class] + s->sum.short_ns[w->class] < ns)
			fail_msg("%s: the threads' times have less than their spans", w->name);
	}
}

static void check(bool no_exit_hook, bool no_slots)
{
	const struct session_opts opts = { .modes = MODE_WALL,
					   .freq_hz = FREQ_HZ,
					   .follow_children = true,
					   .no_exit_hook = no_exit_hook,
					   .no_slots = no_slots,
					   .ring_bytes = 1 << 20 };
	_cleanup_(session_freep) struct session *session = NULL;
	struct seen s = { .whole_ns = NS_PER_SECOND / FREQ_HZ };
	int r = session_open(&opts, &session);

	if (r == -EPERM || r == -EOPNOTSUPP)
		SKIP("needs what recording needs");
	assert_int_equal(r, 0);
	assert_int_equal(session_attach(session), 0);
	record(session, all_waits, &s);
	check_waits(&s, session, no_exit_hook);
	assert_true(s.threads >= 1 + 4); /* and a timer for each wait that has one */
	assert_true(s.sum.cpu_ns && s.sum.cpu_ns < s.life_ns);
	/* Else only those are that last long enough for a pass to see them. */
	assert_true(s.open || !no_exit_hook);
	assert_true(s.ends <= s.open);
}

static void test_spans_at_their_end(void **state)
{
	(void)state;
	check(false, false);
}

/* As on kernels before 6.16. */
static void test_spans_at_their_begin(void **state)
{
	(void)state;
	check(true, false);
}

/* As of threads whose slot is another's. */
static void test_spans_of_threads_without_a_slot(void **state)
{
	(void)state;
	check(false, true);
}

/* The kernel says that such a thread is in line for a CPU from when it was moved. */
static void test_sleep_of_a_thread_that_is_moved(void **state)
{
	const struct session_opts opts = { .modes = MODE_WALL,
					   .freq_hz = FREQ_HZ,
					   .ring_bytes = 1 << 20 };
	_cleanup_(session_freep) struct session *session = NULL;
	struct seen s = { .whole_ns = NS_PER_SECOND / FREQ_HZ };
	uint64_t lost_ns;
	cpu_set_t cpus;
	int r;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	if (CPU_COUNT(&cpus) < 2)
		SKIP("needs two CPUs");
	r = session_open(&opts, &session);
	if (r == -EPERM || r == -EOPNOTSUPP)
		SKIP("needs what recording needs");
	assert_int_equal(r, 0);
	assert_int_equal(session_attach(session), 0);
	record(session, moved_in_their_sleep, &s);
	lost_ns = lost_by_name(session);
	if (s.spans[WAIT_SLEEP] + lost_ns / COUNTED_NS < MOVED)
		fail_msg("%u of %u sleeps, %llu ns lost; %u long spans for a CPU",
			 s.spans[WAIT_SLEEP], MOVED, (unsigned long long)lost_ns,
			 s.spans[WAIT_RUNNABLE]);
}

/* How many of the naps are kept where a tick stands for so many. */
static unsigned int kept_naps(uint32_t stride, bool no_exit_hook)
{
	const struct session_opts opts = { .modes = MODE_WALL,
					   .freq_hz = FREQ_HZ,
					   .no_exit_hook = no_exit_hook,
					   .ring_bytes = 1 << 20 };
	_cleanup_(session_freep) struct session *session = NULL;
	struct seen s = { .whole_ns = stride * NS_PER_SECOND / FREQ_HZ };
	int r = session_open(&opts, &session);

	if (r == -EPERM || r == -EOPNOTSUPP)
		SKIP("needs what recording needs");
	assert_int_equal(r, 0);
	assert_int_equal(session_attach(session), 0);
	assert_int_equal(session_set_stride(session, stride), 0);
	record(session, naps, &s);
	assert_true(s.sum.short_ns[CLASS_SLEEP] >= NAPS * NAP_NS);
	return s.naps;
}

/* A stride thins spans, too: those of a fifth of a tick are a 50th of ten. */
static void test_stride_keeps_fewer_short_spans(void **state)
{
	(void)state;
	for (int no_exit_hook = 0; no_exit_hook < 2; no_exit_hook++) {
		unsigned int all = kept_naps(1, no_exit_hook), few = kept_naps(10, no_exit_hook);

		if (all < NAPS / 10 || few > all / 2)
			fail_msg("%u naps are kept, of ten ticks %u", all, few);
	}
}

/* Where nothing of it is asked for, nothing is loaded, and no thread has times. */
static int count_times(const struct thread_times_event *e, void *arg)
{
	(void)e;
	++*(int *)arg;
	return 0;
}

static void test_spans_are_not_where_they_are_not_asked_for(void **state)
{
	const struct session_opts opts = { .freq_hz = FREQ_HZ, .ring_bytes = 1 << 20 };
	_cleanup_(session_freep) struct session *session = NULL;
	int r = session_open(&opts, &session), count = 0;

	(void)state;
	if (r == -EPERM || r == -EOPNOTSUPP)
		SKIP("needs what recording needs");
	assert_int_equal(r, 0);
	assert_false(session_has_source(session, SOURCE_SWITCHES));
	assert_int_equal(session_list_thread_times(session, count_times, &count), 0);
	assert_int_equal(count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spans_at_their_end),
		cmocka_unit_test(test_spans_at_their_begin),
		cmocka_unit_test(test_spans_of_threads_without_a_slot),
		cmocka_unit_test(test_sleep_of_a_thread_that_is_moved),
		cmocka_unit_test(test_stride_keeps_fewer_short_spans),
		cmocka_unit_test(test_spans_are_not_where_they_are_not_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
