/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/workers.h"

#define LONG_NS 20000000000ULL

/* Reads a byte from a descriptor, which takes until somebody writes it. */
struct reading {
	struct work work;
	int fd;
	char byte;
	void *context;
};

static int freed;

static void read_byte(struct work *w, void *context)
{
	struct reading *r = (struct reading *)w;

	r->context = context;
	if (read(r->fd, &r->byte, 1) != 1)
		r->byte = '\0';
}

static void free_reading(struct work *w)
{
	free(w);
	__atomic_fetch_add(&freed, 1, __ATOMIC_RELEASE);
}

static struct work *new_reading(int fd)
{
	struct reading *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->work = (struct work){ .run = read_byte, .free = free_reading };
	r->fd = fd;
	return &r->work;
}

static int contexts; /* that there are */

static int new_context(void **context)
{
	*context = malloc(1);
	__atomic_fetch_add(&contexts, 1, __ATOMIC_RELAXED);
	return *context ? 0 : -ENOMEM;
}

static void free_context(void *context)
{
	free(context);
	__atomic_fetch_sub(&contexts, 1, __ATOMIC_RELAXED);
}

static void give(int fd, char byte)
{
	assert_int_equal(write(fd, &byte, 1), 1);
}

static char take(struct work *w)
{
	char byte = ((struct reading *)w)->byte;

	w->free(w);
	return byte;
}

static void test_workers_run_waits_for_what_comes_in_time(void **state)
{
	struct workers *ws;
	int pipe_fds[2];

	(void)state;
	contexts = freed = 0;
	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(workers_new(new_context, free_context, &ws), 0);
	for (int i = 0; i < 100; i++) {
		struct work *w = new_reading(pipe_fds[0]);

		give(pipe_fds[1], (char)('a' + i % 26));
		assert_int_equal(workers_run(ws, w, LONG_NS), 0);
		assert_int_equal(take(w), 'a' + i % 26);
	}
	assert_null(workers_next(ws));
	assert_int_equal(contexts, 1); /* one thread did it all */
	workers_free(ws);
	assert_int_equal(contexts, 0); /* and has ended */
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

static void test_workers_run_leaves_behind_what_hangs(void **state)
{
	int pipes[WORKERS_MAX + 1][2];
	struct work *w;
	struct workers *ws;
	int r;

	(void)state;
	contexts = freed = 0;
	assert_int_equal(workers_new(new_context, free_context, &ws), 0);
	for (int i = 0; i <= WORKERS_MAX; i++)
		assert_int_equal(pipe(pipes[i]), 0);
	for (size_t i = 0; i < WORKERS_MAX; i++) {
		w = new_reading(pipes[i][0]);
		do { /* on a busy machine a thread may not have come to it by then */
			r = workers_run(ws, w, 1000000);
		} while (r == -EAGAIN);
		assert_int_equal(r, -EINPROGRESS);
		assert_int_equal(workers_late(ws), i + 1);
	}
	assert_null(workers_next(ws));

	/* No more threads than that. */
	w = new_reading(pipes[WORKERS_MAX][0]);
	assert_int_equal(workers_run(ws, w, LONG_NS), -EAGAIN);

	/* One comes back: its work is handed out, and there is room again. */
	give(pipes[3][1], 'x');
	while (workers_late(ws) == WORKERS_MAX)
		sched_yield();
	give(pipes[WORKERS_MAX][1], 'y');
	assert_int_equal(workers_run(ws, w, LONG_NS), 0);
	assert_int_equal(take(w), 'y');
	w = workers_next(ws);
	assert_non_null(w);
	assert_int_equal(take(w), 'x');
	assert_null(workers_next(ws));

	/* The others go on, and free what they have when they end. */
	workers_free(ws);
	for (int i = 0; i <= WORKERS_MAX; i++)
		close(pipes[i][1]);
	while (__atomic_load_n(&freed, __ATOMIC_ACQUIRE) < WORKERS_MAX + 1)
		sched_yield();
	for (int i = 0; i <= WORKERS_MAX; i++)
		close(pipes[i][0]);
}

static int no_context(void **context)
{
	(void)context;
	return -ENOMEM;
}

static void test_workers_run_without_a_context(void **state)
{
	struct workers *ws;
	struct work *w;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(workers_new(no_context, free, &ws), 0);
	w = new_reading(ends[0]);
	for (int i = 0; i < 2; i++)
		assert_int_equal(workers_run(ws, w, LONG_NS), -EAGAIN);
	w->free(w);
	workers_free(ws);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_workers_run_waits_for_what_comes_in_time),
		cmocka_unit_test(test_workers_run_leaves_behind_what_hangs),
		cmocka_unit_test(test_workers_run_without_a_context),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
