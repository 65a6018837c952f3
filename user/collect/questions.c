/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/questions.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"

/* First in, first out. */
struct question_list {
	struct question *first, **end;
};

struct questions {
	pthread_mutex_t lock;   /* of all that follows */
	pthread_cond_t changed; /* there is a question, an answer, or the end */
	struct question_list asked, answered;
	size_t unanswered; /* asked, or being looked at */
	size_t used;       /* the answered ones as well */
	size_t most;       /* of used, since the last questions_usage() */
	uint64_t refused;
	bool has_ended;
};

static void list_init(struct question_list *l)
{
	*l = (struct question_list){ .end = &l->first };
}

static void list_push(struct question_list *l, struct question *q)
{
	q->next = NULL;
	*l->end = q;
	l->end = &q->next;
}

static struct question *list_pop(struct question_list *l)
{
	struct question *q = l->first;

	if (!q)
		return NULL;
	l->first = q->next;
	if (!l->first)
		l->end = &l->first;
	return q;
}

static void list_free(struct question_list *l)
{
	struct question *q;

	while ((q = list_pop(l)))
		q->free(q);
}

int questions_new(struct questions **out)
{
	struct questions *qs = calloc(1, sizeof(*qs));

	if (!qs)
		return -ENOMEM;
	pthread_mutex_init(&qs->lock, NULL);
	cond_init_monotonic(&qs->changed);
	list_init(&qs->asked);
	list_init(&qs->answered);
	*out = qs;
	return 0;
}

void questions_free(struct questions *qs)
{
	if (!qs)
		return;
	list_free(&qs->asked);
	list_free(&qs->answered);
	pthread_cond_destroy(&qs->changed);
	pthread_mutex_destroy(&qs->lock);
	free(qs);
}

int questions_ask(struct questions *qs, struct question *q)
{
	bool is_full;

	pthread_mutex_lock(&qs->lock);
	is_full = qs->used >= QUESTIONS_MAX;
	if (is_full) {
		qs->refused++;
	} else {
		list_push(&qs->asked, q);
		qs->unanswered++;
		if (++qs->used > qs->most)
			qs->most = qs->used;
	}
	pthread_mutex_unlock(&qs->lock);
	pthread_cond_broadcast(&qs->changed); /* who is woken would wait for the lock */
	if (is_full)
		q->free(q);
	return is_full ? -EAGAIN : 0;
}

struct question *questions_next(struct questions *qs, uint64_t until_ns)
{
	struct timespec until = deadline_of(until_ns);
	struct question *q = NULL;
	int r = 0;

	pthread_mutex_lock(&qs->lock);
	while (!r && !qs->has_ended && !(q = list_pop(&qs->asked)))
		r = pthread_cond_timedwait(&qs->changed, &qs->lock, &until);
	pthread_mutex_unlock(&qs->lock);
	return q;
}

void questions_answer(struct questions *qs, struct question *q)
{
	pthread_mutex_lock(&qs->lock);
	list_push(&qs->answered, q);
	if (!--qs->unanswered)
		pthread_cond_broadcast(&qs->changed);
	pthread_mutex_unlock(&qs->lock);
}

void questions_end(struct questions *qs)
{
	pthread_mutex_lock(&qs->lock);
	qs->has_ended = true;
	pthread_cond_broadcast(&qs->changed);
	pthread_mutex_unlock(&qs->lock);
}

bool questions_has_ended(struct questions *qs)
{
	bool has_ended;

	pthread_mutex_lock(&qs->lock);
	has_ended = qs->has_ended;
	pthread_mutex_unlock(&qs->lock);
	return has_ended;
}

struct question *questions_take(struct questions *qs)
{
	struct question *q;

	pthread_mutex_lock(&qs->lock);
	q = list_pop(&qs->answered);
	qs->used -= q != NULL;
	pthread_mutex_unlock(&qs->lock);
	return q;
}

void questions_wait(struct questions *qs, uint64_t ns)
{
	struct timespec until = deadline_of(monotonic_ns() + ns);
	int r = 0;

	pthread_mutex_lock(&qs->lock);
	while (!r && qs->unanswered)
		r = pthread_cond_timedwait(&qs->changed, &qs->lock, &until);
	pthread_mutex_unlock(&qs->lock);
}

struct usage questions_usage(struct questions *qs)
{
	struct usage u = { .name = "questions", .max = QUESTIONS_MAX };

	pthread_mutex_lock(&qs->lock);
	u.used = qs->most;
	qs->most = qs->used;
	pthread_mutex_unlock(&qs->lock);
	return u;
}

uint64_t questions_refused(struct questions *qs)
{
	uint64_t refused;

	pthread_mutex_lock(&qs->lock);
	refused = qs->refused;
	pthread_mutex_unlock(&qs->lock);
	return refused;
}
