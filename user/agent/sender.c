/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/sender.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "agent/push.h"
#include "base/err.h"
#include "base/log.h"
#include "base/units.h"

#define GRACE_NS 10000000000ULL

struct sender {
	const struct config *config;
	struct spool *spool;
	struct metrics *metrics;
	struct pusher *pusher;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool has_new, should_stop;
	uint64_t stop_by_ns;      /* CLOCK_MONOTONIC */
	uint32_t failures;        /* in a row */
	uint64_t failed_number;   /* the entry of the last failure */
	uint32_t failed_attempts; /* of that entry with ACTION_RETRY_A_FEW */
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* Until stop, or has_new if wait_for_new, or the time has come (0: none). */
static void wait(struct sender *s, uint64_t until_ns, bool wait_for_new)
{
	struct timespec t = { .tv_sec = (time_t)(until_ns / 1000000000ULL),
			      .tv_nsec = (long)(until_ns % 1000000000ULL) };
	int r = 0;

	pthread_mutex_lock(&s->lock);
	while (!s->should_stop && !(wait_for_new && s->has_new) && r != ETIMEDOUT)
		r = until_ns ? pthread_cond_timedwait(&s->changed, &s->lock, &t)
			     : pthread_cond_wait(&s->changed, &s->lock);
	s->has_new = false;
	pthread_mutex_unlock(&s->lock);
}

static bool is_over(struct sender *s, bool is_going_well)
{
	bool is_over;

	pthread_mutex_lock(&s->lock);
	is_over = s->should_stop && (!is_going_well || clock_ns(CLOCK_MONOTONIC) >= s->stop_by_ns);
	pthread_mutex_unlock(&s->lock);
	return is_over;
}

/* Has the entry failed so often that it must be its own fault? */
static bool is_given_up(struct sender *s, const struct spool_entry *e, const struct push_result *r)
{
	if (r->verdict.action == ACTION_DROP)
		return true;
	if (r->verdict.action != ACTION_RETRY_A_FEW)
		return false;
	if (s->failed_number != e->number)
		s->failed_attempts = 0;
	s->failed_number = e->number;
	return s->failed_attempts++ >= RETRIES_OF_A_FEW;
}

static void pause_after(struct sender *s, const struct push_result *r)
{
	uint64_t random, pause;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		random = clock_ns(CLOCK_MONOTONIC);
	pause = verdict_pause_ns(++s->failures, r->retry_after_s, random);
	log_warning("push: %s, status %d%s%s; again in %s", r->verdict.outcome, r->status,
		    r->message[0] ? ": " : "", r->message, units_ns(pause).s);
	wait(s, clock_ns(CLOCK_MONOTONIC) + pause, false);
}

/* Sends one entry. False: it went badly, and a pause has been made. */
static bool send_entry(struct sender *s, const struct spool_entry *e, const void *body, size_t len)
{
	struct push_result r = { .verdict = { ACTION_RETRY, "failed" } };
	int error = pusher_send(s->pusher, body, len, &r);
	bool is_given_up_on;

	if (error < 0) {
		log_error("push: %s", err_message(error));
		wait(s, clock_ns(CLOCK_MONOTONIC) + verdict_pause_ns(++s->failures, 0, 0), false);
		return false;
	}
	is_given_up_on = is_given_up(s, e, &r);
	metrics_add_push(s->metrics, &r, len, is_given_up_on ? e->samples : 0);
	if (r.verdict.action == ACTION_STORED || is_given_up_on)
		spool_remove(s->spool, e->number);
	if (r.verdict.action == ACTION_STORED) {
		log_note("push: stored %" PRIu64 " samples, %zu bytes, in %s", e->samples, len,
			 units_ns(r.took_ns).s);
		s->failures = 0;
		return true;
	}
	if (is_given_up_on) {
		log_error("push: %s, status %d%s%s: %" PRIu64 " samples dropped", r.verdict.outcome,
			  r.status, r.message[0] ? ": " : "", r.message, e->samples);
		return true;
	}
	pause_after(s, &r);
	return false;
}

static void *run(void *arg)
{
	struct sender *s = arg;
	bool is_going_well = true;

	while (!is_over(s, is_going_well)) {
		struct spool_entry e;
		void *body = NULL;
		size_t len;
		int n = spool_next(s->spool, clock_ns(CLOCK_REALTIME), &e, &body, &len);

		if (n > 0) {
			is_going_well = send_entry(s, &e, body, len);
			free(body);
			continue;
		}
		if (is_over(s, false))
			break;
		/* -ENOMEM may pass */
		wait(s, n < 0 ? clock_ns(CLOCK_MONOTONIC) + 1000000000ULL : 0, true);
	}
	return NULL;
}

static int init_sync(struct sender *s)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->changed, &attr);
	pthread_condattr_destroy(&attr);
	return 0;
}

static void release(struct sender *s)
{
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->changed);
	pusher_free(s->pusher);
	free(s);
}

int sender_new(const struct config *c, struct spool *spool, struct metrics *m, struct sender **out)
{
	struct sender *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	*s = (struct sender){ .config = c, .spool = spool, .metrics = m };
	init_sync(s);
	r = pusher_new(c, &s->pusher);
	if (!r)
		r = -pthread_create(&s->thread, NULL, run, s);
	if (r < 0) {
		release(s);
		return r;
	}
	*out = s;
	return 0;
}

void sender_wake(struct sender *s)
{
	pthread_mutex_lock(&s->lock);
	s->has_new = true;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

void sender_free(struct sender *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->should_stop = true;
	s->stop_by_ns = clock_ns(CLOCK_MONOTONIC) + GRACE_NS;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	release(s);
}
