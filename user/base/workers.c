/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/clock.h"
#include "base/thread.h"
#include "base/workers.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

const char workers_late_words[] =
	"its memory or its files do not answer: a network mount that hangs?";

enum work_state { WORK_WAITS, WORK_RUNS, WORK_DONE, WORK_LATE };

struct workers {
	int (*context_new)(void **context);
	void (*context_free)(void *context);
	pthread_mutex_t lock;   /* of all that follows */
	pthread_cond_t changed; /* somebody waits for a work, or for its end */
	struct work *waiting;   /* the one that a thread is to take; NULL: none */
	struct work *done;      /* that were late, in no order */
	size_t late;            /* threads that are at one nobody waits for */
	size_t users;           /* threads, and the owner: the last one frees */
	bool has_idle;          /* one thread waits for work, or will */
	bool is_ending;
};

static void release(struct workers *ws)
{
	bool is_last;

	pthread_mutex_lock(&ws->lock);
	is_last = !--ws->users;
	pthread_cond_broadcast(&ws->changed);
	pthread_mutex_unlock(&ws->lock);
	if (!is_last)
		return;
	for (struct work *w = ws->done, *next; w; w = next) {
		next = w->next;
		w->free(w);
	}
	pthread_cond_destroy(&ws->changed);
	pthread_mutex_destroy(&ws->lock);
	free(ws);
}

/* A thread whose work was late is not needed any more: another has taken its place. */
static bool finish(struct workers *ws, struct work *w)
{
	if (w->state != WORK_LATE) {
		w->state = WORK_DONE;
		pthread_cond_broadcast(&ws->changed);
		return true;
	}
	w->next = ws->done;
	ws->done = w;
	ws->late--;
	return false;
}

static void *work_all_the_time(void *arg)
{
	struct workers *ws = arg;
	void *context = NULL;
	bool has_context = !ws->context_new || !ws->context_new(&context);
	bool is_needed = has_context;

	pthread_mutex_lock(&ws->lock);
	if (!has_context) {
		ws->has_idle = false;
		pthread_cond_broadcast(&ws->changed);
	}
	while (is_needed && !ws->is_ending) {
		struct work *w = ws->waiting;

		if (!w) {
			pthread_cond_wait(&ws->changed, &ws->lock);
			continue;
		}
		ws->waiting = NULL;
		w->state = WORK_RUNS;
		pthread_mutex_unlock(&ws->lock);
		w->run(w, context);
		pthread_mutex_lock(&ws->lock);
		is_needed = finish(ws, w);
	}
	pthread_mutex_unlock(&ws->lock);
	if (has_context && ws->context_free)
		ws->context_free(context);
	release(ws);
	return NULL;
}

/* Under the lock. */
static int start_thread(struct workers *ws)
{
	int r = thread_start(work_all_the_time, ws, NULL);

	if (r < 0)
		return r == -EAGAIN ? r : -ENOMEM;
	ws->users++;
	ws->has_idle = true;
	return 0;
}

int workers_new(int (*context_new)(void **context), void (*context_free)(void *context),
		struct workers **out)
{
	struct workers *ws = calloc(1, sizeof(*ws));

	if (!ws)
		return -ENOMEM;
	ws->context_new = context_new;
	ws->context_free = context_free;
	ws->users = 1;
	pthread_mutex_init(&ws->lock, NULL);
	cond_init_monotonic(&ws->changed);
	*out = ws;
	return 0;
}

void workers_free(struct workers *ws)
{
	if (!ws)
		return;
	pthread_mutex_lock(&ws->lock);
	ws->is_ending = true;
	pthread_cond_broadcast(&ws->changed);
	while (ws->users > 1 + ws->late)
		pthread_cond_wait(&ws->changed, &ws->lock);
	pthread_mutex_unlock(&ws->lock);
	release(ws);
}

int workers_run(struct workers *ws, struct work *w, uint64_t ns)
{
	struct timespec end = timespec_of(monotonic_ns() + ns);
	int r = 0;

	pthread_mutex_lock(&ws->lock);
	if (!ws->has_idle)
		r = ws->late < WORKERS_MAX ? start_thread(ws) : -EAGAIN;
	if (r < 0) {
		pthread_mutex_unlock(&ws->lock);
		return r;
	}
	w->state = WORK_WAITS;
	ws->waiting = w;
	pthread_cond_broadcast(&ws->changed);
	while (w->state != WORK_DONE && (ws->has_idle || w->state != WORK_WAITS) && !r)
		r = -pthread_cond_timedwait(&ws->changed, &ws->lock, &end);
	if (w->state == WORK_DONE) {
		r = 0;
	} else if (w->state == WORK_WAITS) { /* its thread has not come to it */
		ws->waiting = NULL;
		r = -EAGAIN;
	} else {
		w->state = WORK_LATE;
		ws->late++;
		ws->has_idle = false;
		r = -EINPROGRESS;
	}
	pthread_mutex_unlock(&ws->lock);
	return r;
}

struct work *workers_next(struct workers *ws)
{
	struct work *w;

	pthread_mutex_lock(&ws->lock);
	w = ws->done;
	if (w)
		ws->done = w->next;
	pthread_mutex_unlock(&ws->lock);
	return w;
}

size_t workers_late(struct workers *ws)
{
	size_t late;

	pthread_mutex_lock(&ws->lock);
	late = ws->late;
	pthread_mutex_unlock(&ws->lock);
	return late;
}
