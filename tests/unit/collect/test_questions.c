/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"
#include "collect/questions.h"

#define LONG_NS (20 * NS_PER_SECOND)

static int freed;

static void free_question(struct question *q)
{
	free(q);
	freed++;
}

static struct question *new_question(uint32_t pid)
{
	struct question *q = calloc(1, sizeof(*q));

	assert_non_null(q);
	q->target.pid = pid;
	q->free = free_question;
	return q;
}

/* What is to be answered next, without a wait; 0: nothing. */
static uint32_t next_pid(struct questions *qs)
{
	struct question *q = questions_next(qs, 0);
	uint32_t pid = q ? q->target.pid : 0;

	if (q)
		questions_answer(qs, q);
	return pid;
}

static uint32_t taken_pid(struct questions *qs)
{
	struct question *q = questions_take(qs);
	uint32_t pid = q ? q->target.pid : 0;

	if (q)
		q->free(q);
	return pid;
}

static void test_questions_are_answered_in_their_order(void **state)
{
	_cleanup_(questions_freep) struct questions *qs = NULL;

	(void)state;
	assert_int_equal(questions_new(&qs), 0);
	assert_int_equal(next_pid(qs), 0);
	assert_int_equal(taken_pid(qs), 0);
	for (uint32_t pid = 1; pid <= 3; pid++)
		assert_int_equal(questions_ask(qs, new_question(pid)), 0);
	assert_int_equal(taken_pid(qs), 0);
	assert_int_equal(next_pid(qs), 1);
	assert_int_equal(next_pid(qs), 2);
	assert_int_equal(taken_pid(qs), 1);
	assert_int_equal(next_pid(qs), 3);
	assert_int_equal(next_pid(qs), 0);
	assert_int_equal(taken_pid(qs), 2);
	assert_int_equal(taken_pid(qs), 3);
	assert_int_equal(taken_pid(qs), 0);
}

static void test_questions_ask_refuses_what_is_too_much(void **state)
{
	_cleanup_(questions_freep) struct questions *qs = NULL;

	(void)state;
	assert_int_equal(questions_new(&qs), 0);
	for (uint32_t pid = 1; pid <= QUESTIONS_MAX; pid++)
		assert_int_equal(questions_ask(qs, new_question(pid)), 0);
	freed = 0;
	assert_int_equal(questions_ask(qs, new_question(7)), -EAGAIN);
	assert_int_equal(freed, 1);
	assert_int_equal(next_pid(qs), 1);
	assert_int_equal(questions_ask(qs, new_question(7)), -EAGAIN); /* its answer takes room */
	assert_int_equal(questions_refused(qs), 2);
	assert_int_equal(taken_pid(qs), 1);
	assert_int_equal(questions_ask(qs, new_question(7)), 0);
	assert_int_equal(questions_usage(qs).used, QUESTIONS_MAX);
	assert_int_equal(questions_usage(qs).max, QUESTIONS_MAX);
	freed = 0;
	questions_free(qs);
	qs = NULL;
	assert_int_equal(freed, QUESTIONS_MAX);
}

static void test_questions_usage_is_the_most_since_the_last(void **state)
{
	_cleanup_(questions_freep) struct questions *qs = NULL;

	(void)state;
	assert_int_equal(questions_new(&qs), 0);
	for (uint32_t pid = 1; pid <= 3; pid++)
		assert_int_equal(questions_ask(qs, new_question(pid)), 0);
	for (uint32_t pid = 1; pid <= 2; pid++) {
		assert_int_equal(next_pid(qs), pid);
		assert_int_equal(taken_pid(qs), pid);
	}
	assert_int_equal(questions_usage(qs).used, 3);
	assert_int_equal(questions_usage(qs).used, 1);
}

static void *answer_all(void *arg)
{
	struct questions *qs = arg;
	struct question *q;

	while ((q = questions_next(qs, monotonic_ns() + LONG_NS)))
		questions_answer(qs, q);
	return NULL;
}

static void test_questions_wait_for_all_answers(void **state)
{
	_cleanup_(questions_freep) struct questions *qs = NULL;
	pthread_t thread;

	(void)state;
	assert_int_equal(questions_new(&qs), 0);
	assert_int_equal(thread_start(answer_all, qs, &thread), 0);
	for (uint32_t pid = 1; pid <= 100; pid++)
		assert_int_equal(questions_ask(qs, new_question(pid)), 0);
	questions_wait(qs, LONG_NS);
	for (uint32_t pid = 1; pid <= 100; pid++)
		assert_int_equal(taken_pid(qs), pid);
	assert_false(questions_has_ended(qs));
	questions_end(qs);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(questions_has_ended(qs));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_questions_are_answered_in_their_order),
		cmocka_unit_test(test_questions_ask_refuses_what_is_too_much),
		cmocka_unit_test(test_questions_usage_is_the_most_since_the_last),
		cmocka_unit_test(test_questions_wait_for_all_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
