/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/workers.h"

#define LONG_NS 20000000000ULL

/* Takes a byte, which takes until somebody gives it. */
struct reading {
	struct work work;
	const char *from;
	char byte;
	void *context;
};

static int freed;

static void read_byte(struct work *w, void *context)
{
	struct reading *r = (struct reading *)w;

	r->context = context;
	while (!(r->byte = __atomic_load_n(r->from, __ATOMIC_ACQUIRE)))
		sched_yield();
}

static void free_reading(struct work *w)
{
	free(w);
	__atomic_fetch_add(&freed, 1, __ATOMIC_RELEASE);
}

static struct work *new_reading(const char *from)
{
	struct reading *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->work = (struct work){ .run = read_byte, .free = free_reading };
	r->from = from;
	return &r->work;
}

static int contexts, contexts_made; /* that there are, and were */

static int new_context(void **context)
{
	*context = malloc(1);
	__atomic_fetch_add(&contexts, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&contexts_made, 1, __ATOMIC_RELAXED);
	return *context ? 0 : -ENOMEM;
}

static void free_context(void *context)
{
	free(context);
	__atomic_fetch_sub(&contexts, 1, __ATOMIC_RELAXED);
}

static void give(char *to, char byte)
{
	__atomic_store_n(to, byte, __ATOMIC_RELEASE);
}

static char take(struct work *w)
{
	char byte = ((struct reading *)w)->byte;

	w->free(w);
	return byte;
}

static const struct workers_kind with_context = { .context_new = new_context,
						  .context_free = free_context };

static void test_workers_run_waits_for_what_comes_in_time(void **state)
{
	struct workers *ws;
	char slot;

	(void)state;
	contexts = freed = 0;
	assert_int_equal(workers_new(&with_context, &ws), 0);
	for (int i = 0; i < 100; i++) {
		struct work *w = new_reading(&slot);

		give(&slot, (char)('a' + i % 26));
		assert_int_equal(workers_run(ws, w, LONG_NS), 0);
		assert_int_equal(take(w), 'a' + i % 26);
	}
	assert_null(workers_next(ws));
	assert_int_equal(contexts, 1); /* one process did it all */
	workers_free(ws);
	assert_int_equal(contexts, 0); /* and has ended */
}

static void test_workers_run_leaves_behind_what_hangs(void **state)
{
	char slots[WORKERS_MAX + 1] = { 0 };
	struct work *w;
	struct workers *ws;
	int r;

	(void)state;
	contexts = contexts_made = freed = 0;
	assert_int_equal(workers_new(&with_context, &ws), 0);
	for (size_t i = 0; i < WORKERS_MAX; i++) {
		w = new_reading(&slots[i]);
		do { /* on a busy machine a process may not have come to it by then */
			r = workers_run(ws, w, 1000000);
		} while (r == -EAGAIN);
		assert_int_equal(r, -EINPROGRESS);
		assert_int_equal(workers_late(ws), i + 1);
	}
	assert_null(workers_next(ws));

	/* No more processes than that. */
	w = new_reading(&slots[WORKERS_MAX]);
	assert_int_equal(workers_run(ws, w, LONG_NS), -EAGAIN);

	/* A late process comes back: its work is handed out, and there is room again for a process
	 * that continues with its context. */
	give(&slots[3], 'x');
	while (workers_late(ws) == WORKERS_MAX)
		sched_yield();
	give(&slots[WORKERS_MAX], 'y');
	assert_int_equal(workers_run(ws, w, LONG_NS), 0);
	assert_int_equal(take(w), 'y');
	assert_int_equal(contexts_made, WORKERS_MAX);
	w = workers_next(ws);
	assert_non_null(w);
	assert_int_equal(take(w), 'x');
	assert_null(workers_next(ws));

	/* The others go on, and free what they have when they end. */
	workers_free(ws);
	for (int i = 0; i <= WORKERS_MAX; i++)
		give(&slots[i], 'z');
	while (__atomic_load_n(&freed, __ATOMIC_ACQUIRE) < WORKERS_MAX + 1)
		sched_yield();
}

/* Sleeps until somebody posts, or spins until then. */
struct waiting {
	struct work work;
	sem_t *sem;
	bool is_spinning;
};

static void wait_for_post(struct work *w, void *context)
{
	struct waiting *r = (struct waiting *)w;

	(void)context;
	if (!r->is_spinning)
		sem_wait(r->sem);
	while (r->is_spinning && sem_trywait(r->sem))
		;
}

static void free_waiting(struct work *w)
{
	free(w);
}

static struct work *new_waiting(sem_t *sem, bool is_spinning)
{
	struct waiting *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	*r = (struct waiting){ { .run = wait_for_post, .free = free_waiting }, sem, is_spinning };
	return &r->work;
}

/* A work that its process has begun, and for which nobody waits any more. */
static void leave(struct workers *ws, struct work *w)
{
	int r;

	do {
		r = workers_run(ws, w, 1000000);
	} while (r == -EAGAIN);
	assert_int_equal(r, -EINPROGRESS);
}

static struct work *await_late(struct workers *ws)
{
	struct work *w;

	while (!(w = workers_next(ws)))
		sched_yield();
	return w;
}

/* A process that waits for something is blocked; one that uses a CPU or waits for one is late. */
static void test_workers_is_blocked_tells_who_waits(void **state)
{
	_cleanup_(workers_freep) struct workers *ws = NULL;
	struct work_wait wait = { 0 }, first, again;
	struct work *w;
	sem_t sem;

	(void)state;
	sem_init(&sem, 0, 0);
	assert_int_equal(workers_new(&(struct workers_kind){ 0 }, &ws), 0);
	w = new_waiting(&sem, false);
	leave(ws, w);
	while (!workers_is_blocked(w, &wait)) /* as long as it gets no CPU to sleep on */
		sched_yield();
	do { /* its last switch may have been counted a little later */
		first = again = wait;
		assert_true(workers_is_blocked(w, &again));
		wait = again;
	} while (again.switches != first.switches);
	assert_int_equal(again.since_ns, first.since_ns);
	assert_string_equal(workers_late_words(w), WORK_BLOCKED_WORDS);
	sem_post(&sem);
	w = await_late(ws);
	assert_true(w->asleep_ns > 0);
	w->free(w);

	w = new_waiting(&sem, true);
	leave(ws, w);
	wait = (struct work_wait){ 0 };
	for (int i = 0; i < 1000; i++)
		if (!workers_is_blocked(w, &wait))
			assert_int_equal(wait.since_ns, 0);
	while (workers_is_blocked(w, &wait)) /* a page of the program may have to come in */
		sched_yield();
	sem_post(&sem);
	w = await_late(ws);
	w->free(w);
	sem_destroy(&sem);
}

static int no_context(void **context)
{
	(void)context;
	return -ENOMEM;
}

#define SLOW_NS 300000000L

static int slow_context(void **context)
{
	nanosleep(&(struct timespec){ .tv_nsec = SLOW_NS }, NULL);
	return new_context(context);
}

/* A process that comes to the work after longer than is waited for the work itself. */
static void test_workers_run_patiently_waits_for_the_process(void **state)
{
	static const struct workers_kind slow = { .context_new = slow_context,
						  .context_free = free_context };
	struct workers *ws;
	struct work *w = new_reading("a");

	(void)state;
	assert_int_equal(workers_new(&slow, &ws), 0);
	assert_int_equal(workers_run(ws, w, SLOW_NS / 2), -EAGAIN);
	workers_free(ws);
	assert_int_equal(workers_new(&slow, &ws), 0);
	assert_int_equal(workers_run_patiently(ws, w, SLOW_NS / 2), 0);
	assert_int_equal(take(w), 'a');
	workers_free(ws);
}

#define CALL_NS 500000000ULL

static void compute(void *arg)
{
	uint64_t end_ns = monotonic_ns() + CALL_NS + CALL_NS / 2;

	while (monotonic_ns() < end_ns)
		sched_yield();
	*(int *)arg = 1;
}

static void wait_for_good(void *arg)
{
	sem_wait(arg);
}

static void test_workers_call_waits_longer_for_what_computes(void **state)
{
	static sem_t posted;
	int is_done = 0;

	(void)state;
	assert_int_equal(workers_call(compute, &is_done, CALL_NS), 0);
	assert_int_equal(is_done, 1);
	assert_int_equal(sem_init(&posted, 0, 0), 0);
	assert_int_equal(workers_call(wait_for_good, &posted, CALL_NS), -ETIMEDOUT);
	sem_post(&posted);
}

static void test_workers_run_without_a_context(void **state)
{
	struct workers *ws;
	struct work *w;
	const struct workers_kind kind = { .context_new = no_context, .context_free = free };
	char slot = 0;

	(void)state;
	assert_int_equal(workers_new(&kind, &ws), 0);
	w = new_reading(&slot);
	for (int i = 0; i < 2; i++)
		assert_int_equal(workers_run(ws, w, LONG_NS), -EAGAIN);
	w->free(w);
	workers_free(ws);
}

/* What a work sees of our descriptors, and whose process it is. */
struct seeing {
	struct work work;
	int asked;
	struct stat file; /* of the descriptor, here */
	bool has_it, has_output;
	pid_t pid;
};

static void see(struct work *w, void *context)
{
	struct seeing *s = (struct seeing *)w;
	struct stat st;
	char place[64];
	ssize_t n = readlink("/proc/self/fd/1", place, sizeof(place) - 1);

	(void)context;
	/* The process has files of its own, which may have the same number. */
	s->has_it =
		!fstat(s->asked, &st) && st.st_dev == s->file.st_dev && st.st_ino == s->file.st_ino;
	s->has_output = n <= 0 || n != 9 || memcmp(place, "/dev/null", 9);
	s->pid = getpid();
}

static void test_workers_run_in_a_process_with_few_files(void **state)
{
	static const struct {
		enum apart_files files;
		bool is_work_fd, has_it;
	} cases[] = {
		{ APART_NO_FILES, true, false },
		{ APART_ONE_FILE, true, true },
		{ APART_ONE_FILE, false, false },
		{ APART_ALL_FILES, false, true },
	};
	int fds[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_true((fds[i] = dup(STDIN_FILENO)) >= 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct workers_kind kind = { .files = cases[i].files };
		struct seeing s = { .work = { .run = see, .fd = fds[1] } };
		struct workers *ws;

		s.asked = cases[i].is_work_fd ? fds[1] : fds[i % 2 * 2];
		assert_int_equal(fstat(s.asked, &s.file), 0);
		assert_int_equal(workers_new(&kind, &ws), 0);
		assert_int_equal(workers_run(ws, &s.work, LONG_NS), 0);
		workers_free(ws);
#ifndef __SANITIZE_THREAD__
		assert_int_equal(s.has_it, cases[i].has_it);
		assert_false(s.has_output);
		assert_int_not_equal(s.pid, getpid());
#endif
		assert_true(fcntl(s.asked, F_GETFD) >= 0); /* here it is open still */
	}
	for (int i = 0; i < 3; i++)
		close(fds[i]);
}

static void test_workers_with_the_same_file_have_one_process(void **state)
{
	static const struct {
		const char *name;
		bool has_same_file;
	} cases[] = { { "a file each", false }, { "the same file", true } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct workers_kind kind = { .files = APART_ONE_FILE,
						   .has_same_file = cases[i].has_same_file };
		struct seeing s = { .work = { .run = see, .fd = dup(STDIN_FILENO) } };
		struct workers *ws;
		pid_t first;

		s.asked = s.work.fd;
		assert_int_equal(fstat(s.asked, &s.file), 0);
		assert_int_equal(workers_new(&kind, &ws), 0);
		assert_int_equal(workers_run(ws, &s.work, LONG_NS), 0);
		first = s.pid;
		assert_int_equal(workers_run(ws, &s.work, LONG_NS), 0);
		workers_free(ws);
		assert_true(s.has_it);
#ifdef __SANITIZE_THREAD__
		(void)first;
#else
		if ((s.pid == first) != cases[i].has_same_file)
			fail_msg("%s: processes %d and %d", cases[i].name, first, s.pid);
#endif
		close(s.asked);
	}
}

static void test_workers_renew_ends_the_idle_process(void **state)
{
	struct seeing s = { .work = { .run = see } };
	struct workers *ws;
	pid_t first;

	(void)state;
	contexts = 0;
	assert_int_equal(workers_new(&with_context, &ws), 0);
	assert_int_equal(workers_run(ws, &s.work, LONG_NS), 0);
	first = s.pid;
	workers_renew();
	assert_int_equal(workers_run(ws, &s.work, LONG_NS), 0);
#ifndef __SANITIZE_THREAD__
	assert_int_not_equal(s.pid, first);
#else
	(void)first; /* TSan's workers are threads */
#endif
	workers_free(ws);
	assert_int_equal(contexts, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_workers_run_waits_for_what_comes_in_time),
		cmocka_unit_test(test_workers_run_leaves_behind_what_hangs),
		cmocka_unit_test(test_workers_is_blocked_tells_who_waits),
		cmocka_unit_test(test_workers_run_patiently_waits_for_the_process),
		cmocka_unit_test(test_workers_call_waits_longer_for_what_computes),
		cmocka_unit_test(test_workers_run_without_a_context),
		cmocka_unit_test(test_workers_run_in_a_process_with_few_files),
		cmocka_unit_test(test_workers_with_the_same_file_have_one_process),
		cmocka_unit_test(test_workers_renew_ends_the_idle_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
