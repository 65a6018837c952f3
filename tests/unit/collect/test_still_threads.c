/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
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

/*
 * Threads that do not switch while they are recorded: what the iterator of bpf/remote.bpf.c says of
 * them. The kernel is real here. PYEBPF_TEST_PYTHON: another interpreter than python3.
 */

#define FREQ_HZ 100
#define DEPTH 46 /* of f() or g() */
#define STILL_NS 50000000
#define WINDOW_NS 80000000
#define RUN_NS (30 * NS_PER_SECOND)
#define CUTS 100
#define THREADS_MAX 8
#define CODES_MAX 512
#define NAME_BYTES 32

/* Each thread waits for what its function says, below DEPTH calls of f(), for ever. */
static const char still_program[] =
	"import os, threading, time\n"
	"l = threading.Lock(); l.acquire()\n"
	"r, w = os.pipe()\n"
	"def sleeper(): time.sleep(1000)\n"
	"def locker(): l.acquire()\n"
	"def reader(): os.read(r, 1)\n"
	"def f(n, then): f(n - 1, then) if n > 1 else then()\n"
	"for then in (sleeper, locker, reader):\n"
	"    threading.Thread(target=f, args=(46, then), daemon=True).start()\n"
	"time.sleep(1000)\n";

/* Threads that sleep below f() and g() in turn: 0.2 ms each time. */
static const char turning_program[] =
	"import threading, time\n"
	"def f(n): f(n - 1) if n > 1 else time.sleep(2e-4)\n"
	"def g(n): g(n - 1) if n > 1 else time.sleep(2e-4)\n"
	"def turn():\n"
	"    while True: f(46); g(46)\n"
	"for i in range(3): threading.Thread(target=turn, daemon=True).start()\n"
	"time.sleep(1000)\n";

/* The main thread keeps the GIL while it sleeps in C, and WANTERS want it. */
#define WANTERS 2
static const char holding_program[] =
	"import ctypes, threading, time\n"
	"def want():\n"
	"    while True: time.sleep(0.001)\n"
	"def hold(): ctypes.PyDLL(None).usleep(1000000000)\n"
	"for i in range(2): threading.Thread(target=want, daemon=True).start()\n"
	"time.sleep(0.05)\n"
	"hold()\n";

static const struct known_wait {
	const char *leaf;
	enum wait_reason reason;
	unsigned int deep; /* calls of f() */
} waits[] = {
	{ "<module>", WAIT_SLEEP, 0 },
	{ "sleeper", WAIT_SLEEP, DEPTH },
	{ "locker", WAIT_LOCK, DEPTH },
	{ "reader", WAIT_READ_PIPE, DEPTH },
};
#define WAITS (sizeof(waits) / sizeof(*waits))

/* A span that has ended, as its sample tells. */
struct span {
	uint32_t tid;
	uint8_t reason;
	uint64_t begin_ns, end_ns, value, blocked_ns;
	uint32_t flags;
	char leaf[NAME_BYTES];
	unsigned int f, g; /* frames of these */
};

struct seen {
	struct session *session;
	struct discovery *discovery;
	struct code {
		uint64_t id;
		char name[NAME_BYTES];
	} codes[CODES_MAX];
	size_t code_count;
	struct span spans[THREADS_MAX]; /* of the last window: the first ones */
	size_t span_count, open, incomplete;
	size_t torn, whole;
};

static void see_code(struct seen *s, const struct code_event *e)
{
	struct code *c = &s->codes[s->code_count];
	const char *name = (const char *)(e + 1) + e->filename_bytes;

	if (s->code_count == CODES_MAX)
		return;
	snprintf(c->name, sizeof(c->name), "%.*s", e->name_bytes, name);
	c->id = e->code;
	s->code_count++;
}

static const char *name_of(const struct seen *s, uint64_t id)
{
	for (size_t i = 0; i < s->code_count; i++)
		if (s->codes[i].id == id)
			return s->codes[i].name;
	return "?";
}

static void see_sample(struct seen *s, const struct sample_event *e)
{
	const struct sample_part *part = (const struct sample_part *)(e + 1);
	const struct frame_record *frames = (const struct frame_record *)(part + 1);
	struct span span = { .tid = e->tid,
			     .reason = e->wait,
			     .begin_ns = e->ktime_ns - e->duration_ns,
			     .end_ns = e->ktime_ns,
			     .value = e->value,
			     .blocked_ns = e->blocked_ns,
			     .flags = e->flags };

	if (e->source != SOURCE_SWITCHES)
		return;
	if (e->flags & SAMPLE_OPEN) {
		s->open++;
		return;
	}
	s->incomplete += part->status != UNWIND_COMPLETE;
	for (uint32_t i = 0; i < part->depth; i++) {
		span.f += !strcmp(name_of(s, frames[i].code), "f");
		span.g += !strcmp(name_of(s, frames[i].code), "g");
	}
	if (part->depth)
		snprintf(span.leaf, sizeof(span.leaf), "%s", name_of(s, frames[0].code));
	s->torn += span.f && span.g;
	s->whole += span.f == DEPTH || span.g == DEPTH;
	if (s->span_count < THREADS_MAX)
		s->spans[s->span_count++] = span;
}

static int see_record(void *arg, const void *record, size_t size)
{
	struct seen *s = arg;

	(void)size;
	if (*(const uint8_t *)record == EVENT_CODE)
		see_code(s, record);
	else if (*(const uint8_t *)record == EVENT_SAMPLE)
		see_sample(s, record);
	else if (*(const uint8_t *)record == EVENT_WHO)
		return discovery_answer(s->discovery, record);
	return 0;
}

/* --- The program ------------------------------------------------------------------------------ */

static pid_t start_program(const char *program)
{
	const char *python = getenv("PYEBPF_TEST_PYTHON");
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* also where a check fails */
		execlp(python ? python : "python3", "python3", "-c", program, (char *)NULL);
		_exit(127);
	}
	return pid;
}

static void end_program(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* The sum over its threads of what a file of each tells, as parse returns it of a line or is 0; and
 * how many threads there are. */
static unsigned long sum_of_threads(pid_t pid, const char *file,
				    unsigned long (*parse)(const char *), unsigned int *threads)
{
	char path[300], line[128];
	const struct dirent *entry;
	unsigned long sum = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	*threads = 0;
	while (dir && (entry = readdir(dir))) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/task/%s/%s", pid, entry->d_name, file);
		f = entry->d_name[0] == '.' ? NULL : fopen(path, "re");
		while (f && fgets(line, sizeof(line), f))
			sum += parse(line);
		*threads += !!f;
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
	return sum;
}

static unsigned long parse_switches(const char *line)
{
	unsigned long n;

	return sscanf(line, "voluntary_ctxt_switches: %lu", &n) == 1 ? n : 0;
}

static unsigned long parse_queued(const char *line)
{
	unsigned long n;

	return sscanf(line, "%*u %lu", &n) == 1 ? n : 0;
}

/* Switches that its threads wanted so far, and how many threads there are. */
static unsigned long count_switches(pid_t pid, unsigned int *threads)
{
	return sum_of_threads(pid, "status", parse_switches, threads);
}

/* For how long they were in line for a CPU. */
static uint64_t queued_ns(pid_t pid)
{
	unsigned int threads;

	return sum_of_threads(pid, "schedstat", parse_queued, &threads);
}

/* Whoever waits for the GIL switches every 5 ms: all threads have come where they wait. */
static void wait_until_still(pid_t pid, unsigned int threads)
{
	const uint64_t until = monotonic_ns() + RUN_NS;
	unsigned long before, now = 0;
	unsigned int count;

	do {
		before = now;
		usleep(STILL_NS / 1000);
		now = count_switches(pid, &count);
	} while ((count < threads || now != before) && monotonic_ns() < until);
	assert_int_equal(count, threads);
}

/* --- The session ------------------------------------------------------------------------------ */

static bool open_session(struct seen *s, bool no_exit_hook)
{
	const struct session_opts opts = { .modes = MODE_OFF_CPU,
					   .freq_hz = FREQ_HZ,
					   .follow_children = true,
					   .no_exit_hook = no_exit_hook,
					   .ring_bytes = 1 << 20 };
	int r = session_open(&opts, &s->session);

	if (r == -EPERM || r == -EOPNOTSUPP)
		return false;
	if (r < 0)
		fail_msg("open: %s", err_message(r));
	assert_int_equal(session_attach(s->session), 0);
	assert_int_equal(discovery_new(s->session, &s->discovery), 0);
	return true;
}

static void close_session(struct seen *s)
{
	session_stop(s->session);
	assert_int_equal(session_drain(s->session, see_record, s), 0);
	discovery_free(s->discovery);
	session_free(s->session);
}

/* Waits, and has what waits told. */
static void see_window(struct seen *s, uint64_t ns)
{
	uint64_t at_ns;
	int left;

	usleep(ns / 1000);
	at_ns = monotonic_ns();
	assert_true(session_consume(s->session, 0, see_record, s) >= 0);
	s->span_count = 0;
	do {
		left = session_close_spans(s->session, at_ns);
		assert_true(left >= 0);
		assert_true(session_consume(s->session, 0, see_record, s) >= 0);
	} while (left);
}

static const struct span *span_of(const struct seen *s, const char *leaf)
{
	for (size_t i = 0; i < s->span_count; i++)
		if (!strcmp(s->spans[i].leaf, leaf))
			return &s->spans[i];
	return NULL;
}

static const struct span *find_span(const struct seen *s, const char *leaf)
{
	const struct span *span = span_of(s, leaf);

	if (!span)
		fail_msg("no span in %s", leaf);
	return span;
}

static void check_window(const struct seen *s, uint64_t ns)
{
	assert_int_equal(s->span_count, WAITS);
	assert_int_equal(s->incomplete, 0);
	for (size_t i = 0; i < WAITS; i++) {
		const struct known_wait *w = &waits[i];
		const struct span *span = find_span(s, w->leaf);

		if (span->reason != w->reason)
			fail_msg("%s: reason %u, not %u", w->leaf, span->reason, w->reason);
		if (span->f != w->deep)
			fail_msg("%s: %u calls, not %u", w->leaf, span->f, w->deep);
		if (span->end_ns - span->begin_ns < ns)
			fail_msg("%s: %llu ns", w->leaf,
				 (unsigned long long)(span->end_ns - span->begin_ns));
		assert_int_equal(span->value, span->end_ns - span->begin_ns);
	}
}

/* All its time up to the last end is in one of its sums. */
static int check_times(const struct thread_times_event *e, void *arg)
{
	const struct seen *s = arg;
	uint64_t sum = e->cpu_ns + e->unseen_ns;
	size_t i = 0;

	for (int class = 0; class < CLASS_COUNT_; class ++)
		sum += e->short_ns[class] + e->long_ns[class];
	while (i < s->span_count && s->spans[i].tid != e->tid)
		i++;
	assert_true(i < s->span_count);
	assert_int_equal(e->since_ns + sum, s->spans[i].end_ns);
	return 0;
}

/* --- Tests ------------------------------------------------------------------------------------ */

static void check_still(bool no_exit_hook)
{
	struct seen s = { 0 };
	struct span before[WAITS];
	pid_t pid;

	if (!open_session(&s, no_exit_hook))
		SKIP("needs what recording needs");
	pid = start_program(still_program);
	wait_until_still(pid, WAITS);
	assert_int_equal(discovery_add_target(s.discovery, pid), 0);
	assert_int_equal(session_start(s.session), 0);
	see_window(&s, WINDOW_NS);
	check_window(&s, WINDOW_NS);
	for (size_t i = 0; i < WAITS; i++)
		before[i] = *find_span(&s, waits[i].leaf);
	see_window(&s, WINDOW_NS);
	check_window(&s, WINDOW_NS);
	for (size_t i = 0; i < WAITS; i++)
		assert_int_equal(find_span(&s, waits[i].leaf)->begin_ns, before[i].end_ns);
	assert_int_equal(session_list_thread_times(s.session, check_times, &s), 0);
	if (no_exit_hook || s.open) /* or the kernel has none */
		assert_int_equal(s.open, 3 * WAITS);
	close_session(&s);
	end_program(pid);
}

static void test_still_threads_wait_all_the_time(void **state)
{
	(void)state;
	check_still(false);
}

/* As on kernels before 6.16: each span's stack is told as it begins. */
static void test_still_threads_are_sampled_at_the_start(void **state)
{
	(void)state;
	check_still(true);
}

/* A process that is found later is in from then on. */
static void test_still_threads_of_a_process_that_is_added(void **state)
{
	struct seen s = { 0 };
	uint64_t added_ns;
	pid_t pid;

	(void)state;
	if (!open_session(&s, false))
		SKIP("needs what recording needs");
	pid = start_program(still_program);
	wait_until_still(pid, WAITS);
	assert_int_equal(session_start(s.session), 0);
	see_window(&s, 0);
	assert_int_equal(s.span_count, 0);
	added_ns = monotonic_ns();
	assert_int_equal(discovery_add_target(s.discovery, pid), 0);
	see_window(&s, WINDOW_NS);
	check_window(&s, WINDOW_NS);
	for (size_t i = 0; i < s.span_count; i++)
		assert_true(s.spans[i].begin_ns >= added_ns);
	close_session(&s);
	end_program(pid);
}

static void test_still_threads_that_are_stopped(void **state)
{
	struct seen s = { 0 };
	int status;
	pid_t pid;

	(void)state;
	if (!open_session(&s, false))
		SKIP("needs what recording needs");
	pid = start_program(still_program);
	wait_until_still(pid, WAITS);
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	wait_until_still(pid, WAITS);
	assert_int_equal(discovery_add_target(s.discovery, pid), 0);
	assert_int_equal(session_start(s.session), 0);
	see_window(&s, WINDOW_NS);
	assert_int_equal(s.span_count, WAITS);
	for (size_t i = 0; i < WAITS; i++)
		assert_int_equal(find_span(&s, waits[i].leaf)->reason, WAIT_STOPPED);
	close_session(&s);
	end_program(pid);
}

/* What is walked while its thread comes back is thrown away: no stack is of two moments. */
static void test_still_threads_are_never_torn(void **state)
{
	struct seen s = { 0 };
	unsigned int threads;
	pid_t pid;

	(void)state;
	if (!open_session(&s, false))
		SKIP("needs what recording needs");
	pid = start_program(turning_program);
	do
		count_switches(pid, &threads);
	while (threads < 4);
	assert_int_equal(discovery_add_target(s.discovery, pid), 0);
	assert_int_equal(session_start(s.session), 0);
	for (int i = 0; i < CUTS; i++)
		see_window(&s, 1000000);
	assert_int_equal(s.torn, 0);
	assert_true(s.whole > CUTS / 10);
	close_session(&s);
	end_program(pid);
}

/* A thread that keeps the GIL and does not come back: what others waited for it is told at the cut.
 */
static void test_still_threads_that_hold_the_gil(void **state)
{
	const uint64_t until = monotonic_ns() + RUN_NS;
	struct seen s = { 0 };
	const struct span *hold;
	uint64_t ns, queued;
	pid_t pid;

	(void)state;
	if (!open_session(&s, false))
		SKIP("needs what recording needs");
	pid = start_program(holding_program);
	assert_int_equal(session_start(s.session), 0);
	while (discovery_add_target(s.discovery, pid) < 0 && monotonic_ns() < until)
		usleep(1000); /* it is not Python yet */
	do
		see_window(&s, WINDOW_NS);
	while (!span_of(&s, "hold") && monotonic_ns() < until);
	queued = queued_ns(pid);
	see_window(&s, 4 * WINDOW_NS);
	queued = queued_ns(pid) - queued;
	hold = find_span(&s, "hold");
	ns = hold->end_ns - hold->begin_ns;
	assert_true(hold->flags & SAMPLE_HOLDS_GIL);
	assert_int_equal(hold->reason, WAIT_SLEEP);
	/* Every 5 ms they look whether it is free, for which they are in line for a CPU. */
	if (hold->blocked_ns + queued < WANTERS * ns / 10 * 6 ||
	    hold->blocked_ns > WANTERS * ns / 10 * 11)
		fail_msg("blocked for %llu of %llu ns, %llu in line for a CPU",
			 (unsigned long long)hold->blocked_ns, (unsigned long long)(WANTERS * ns),
			 (unsigned long long)queued);
	close_session(&s);
	end_program(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_still_threads_wait_all_the_time),
		cmocka_unit_test(test_still_threads_are_sampled_at_the_start),
		cmocka_unit_test(test_still_threads_of_a_process_that_is_added),
		cmocka_unit_test(test_still_threads_that_are_stopped),
		cmocka_unit_test(test_still_threads_are_never_torn),
		cmocka_unit_test(test_still_threads_that_hold_the_gil),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
