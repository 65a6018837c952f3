/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/sender.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "agent/batch.h"
#include "agent/push.h"
#include "base/chance.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/units.h"

#define DRAIN_NS (10 * NS_PER_SECOND)      /* pods have 30 s to end, units 90 s */
#define SILENCE_NS (3 * NS_PER_SECOND / 2) /* then what is left is given up: two seconds in all */
#define WAIT_MS_MAX 60000

struct sender {
	const struct config_output *config;
	uint64_t age_max_ns;
	struct spool *spool;
	struct metrics_output *metrics;
	struct pusher *pusher;
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;
	/* With the lock held: */
	bool has_new, should_stop, is_running;
	uint64_t stop_by_ns; /* CLOCK_MONOTONIC, as all here */
	/* Of the thread: */
	uint64_t stopping_since_ns; /* 0: it is not */
	uint64_t answered_ns;       /* the last time that something was stored */
	uint64_t pause_until_ns;
	uint32_t failures; /* in a row */
	bool is_empty;     /* nothing waits: not looked again until it is woken */
};

/* What others have said meanwhile. */
static void hear(struct sender *s)
{
	pthread_mutex_lock(&s->lock);
	if (s->should_stop && !s->stopping_since_ns)
		s->stopping_since_ns = monotonic_ns();
	if (s->has_new)
		s->is_empty = false;
	s->has_new = false;
	pthread_mutex_unlock(&s->lock);
}

static bool may_begin(const struct sender *s)
{
	if (s->stopping_since_ns)
		return !s->failures && monotonic_ns() < s->stop_by_ns;
	return monotonic_ns() >= s->pause_until_ns;
}

/* When it ends, whatever is under way; only while it is to. */
static uint64_t end_ns(const struct sender *s)
{
	uint64_t sign =
		s->answered_ns > s->stopping_since_ns ? s->answered_ns : s->stopping_since_ns;

	return sign + SILENCE_NS < s->stop_by_ns ? sign + SILENCE_NS : s->stop_by_ns;
}

static bool is_over(const struct sender *s)
{
	if (!s->stopping_since_ns)
		return false;
	return (!pusher_count(s->pusher) && (s->is_empty || !may_begin(s))) ||
	       monotonic_ns() >= end_ns(s);
}

static void batch_free(struct batch *b)
{
	if (b)
		batch_release(b);
	free(b);
}
DEFINE_CLEANUP(struct batch *, batch_free)

static void give_back(struct sender *s, const struct batch *b)
{
	for (size_t i = 0; i < b->count; i++)
		spool_return(s->spool, &b->entries[i]);
}

/* 1: the batch has one more; 0: it is full, or nothing waits; or -ENOMEM. */
static int take_entry(struct sender *s, struct batch *b)
{
	_cleanup_(freep) void *body = NULL;
	struct spool_entry e;
	size_t len;
	int r = spool_take(s->spool, clock_ns(CLOCK_REALTIME), &e, &body, &len);

	if (r <= 0) {
		s->is_empty = !r;
		return r;
	}
	r = batch_add(b, s->config->engine, &e, body, len);
	if (r <= 0)
		spool_return(s->spool, &e);
	return r;
}

/* As many entries as fit into one request. */
static int take_batch(struct sender *s, struct batch *b)
{
	int r;

	while ((r = take_entry(s, b)) > 0)
		;
	if (!r && b->count)
		r = batch_finish(b, s->config->engine);
	return r;
}

/* Requests that were under way when a pause began fail for the same reason: that is one failure. */
static void pause_sending(struct sender *s, const char *what, uint64_t asked_ns)
{
	uint64_t pause, now = monotonic_ns();

	if (now < s->pause_until_ns) {
		if (s->pause_until_ns < now + asked_ns)
			s->pause_until_ns = now + asked_ns;
		return;
	}
	pause = verdict_pause_ns(++s->failures, asked_ns, chance_u64());
	s->pause_until_ns = now + pause;
	log_warning("push%s: %s; retrying in %s", config_output_label(s->config).s, what,
		    units_ns(pause).s);
}

/* False: nothing was begun. */
static bool begin(struct sender *s)
{
	_cleanup_(batch_freep) struct batch *b = calloc(1, sizeof(*b));
	int r = b ? take_batch(s, b) : -ENOMEM;

	if (!r && b->count)
		r = pusher_begin(s->pusher, b->body.bytes, b->body.len, b);
	if (r < 0) {
		if (b)
			give_back(s, b);
		pause_sending(s, err_message(r), 0);
		return false;
	}
	if (!b->count)
		return false;
	take_ptr(b);
	return true;
}

/* One alone finds out whether the engine is back. */
static void fill(struct sender *s)
{
	while (!s->is_empty && may_begin(s) && pusher_has_room(s->pusher) &&
	       (!s->failures || !pusher_count(s->pusher)))
		if (!begin(s))
			break;
}

static uint64_t count_samples(const struct batch *b, uint64_t which)
{
	uint64_t samples = 0;

	for (size_t i = 0; i < b->count; i++)
		if (which >> i & 1)
			samples += b->entries[i].samples;
	return samples;
}

/* Has the one entry failed so often that it must be its own fault? */
static bool is_given_up(struct batch *b, const struct push_result *r)
{
	if (r->verdict.action == ACTION_DROP && (b->count == 1 || !r->status))
		return true;
	if (b->count > 1)
		return false; /* whose fault is it? Each is tried alone. */
	return r->verdict.action == ACTION_RETRY_A_FEW &&
	       b->entries[0].failures++ >= RETRIES_OF_A_FEW;
}

/* The engine has these, or will not. */
static void settle(struct sender *s, const struct batch *b, uint64_t which)
{
	for (size_t i = 0; i < b->count; i++)
		if (which >> i & 1)
			spool_remove(s->spool, b->entries[i].number);
}

static void log_failure(const struct sender *s, const struct push_result *r, const char *what)
{
	log_error("push%s: %s, status %d%s%s: %s", config_output_label(s->config).s,
		  r->verdict.outcome, r->status, r->message[0] ? ": " : "", r->message, what);
}

/* It was not stored, or not all of it. */
static void take_failure(struct sender *s, struct batch *b, const struct push_result *r)
{
	bool is_own_fault = r->verdict.action != ACTION_RETRY;
	char what[512];

	for (size_t i = 0; i < b->count; i++)
		b->entries[i].is_suspect |= is_own_fault;
	give_back(s, b);
	s->is_empty = false;
	if (s->stopping_since_ns) {
		s->failures++;
		log_failure(s, r, "kept in the spool");
	} else if (is_own_fault && b->count > 1) {
		log_failure(s, r, "each profile of this request is sent alone");
	} else {
		snprintf(what, sizeof(what), "%s, status %d%s%s", r->verdict.outcome, r->status,
			 r->message[0] ? ": " : "", r->message);
		pause_sending(s, what, verdict_asked_ns(r->retry_after_s, s->age_max_ns));
	}
}

static void take_answer(struct sender *s, struct batch *b, const struct push_result *r)
{
	uint64_t all = b->count < 64 ? (UINT64_C(1) << b->count) - 1 : UINT64_MAX;
	bool is_stored = r->verdict.action == ACTION_STORED, is_dropped = is_given_up(b, r);
	uint64_t stored = is_stored ? all : r->failed_series ? all & ~r->failed_series : 0;
	char what[64];

	metrics_add_push(
		s->metrics, r, b->body.len,
		&(struct push_samples){ .stored = count_samples(b, stored),
					.dropped = is_dropped ? count_samples(b, all) : 0 });
	settle(s, b, is_dropped ? all : stored);
	if (stored) {
		s->answered_ns = monotonic_ns();
		s->failures = 0;
	}
	if (is_stored) {
		log_note("push: stored %" PRIu64 " samples of %zu profiles, %zu bytes, in %s",
			 count_samples(b, all), b->count, b->body.len, units_ns(r->took_ns).s);
	} else if (is_dropped) {
		snprintf(what, sizeof(what), "%" PRIu64 " samples dropped", count_samples(b, all));
		log_failure(s, r, what);
	} else {
		take_failure(s, b, r);
	}
}

static void take_answers(struct sender *s)
{
	struct push_result r;
	struct batch *b;

	while ((b = pusher_next(s->pusher, &r))) {
		take_answer(s, b, &r);
		batch_free(b);
	}
	metrics_set_in_flight(s->metrics, pusher_count(s->pusher));
}

static int timeout_ms(const struct sender *s)
{
	uint64_t now = monotonic_ns(), until = now + WAIT_MS_MAX * UINT64_C(1000000);

	if (s->stopping_since_ns)
		until = end_ns(s);
	else if (!s->is_empty && s->pause_until_ns > now && s->pause_until_ns < until)
		until = s->pause_until_ns;
	return until > now ? (int)((until - now) / 1000000) + 1 : 0;
}

static void *run(void *arg)
{
	struct sender *s = arg;

	for (;;) {
		hear(s);
		fill(s);
		if (is_over(s))
			break;
		pusher_wait(s->pusher, timeout_ms(s));
		take_answers(s);
	}
	pusher_abort(s->pusher);
	take_answers(s);
	pthread_mutex_lock(&s->lock);
	s->is_running = false;
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static void release(struct sender *s)
{
	pthread_mutex_destroy(&s->lock);
	pusher_free(s->pusher);
	free(s);
}

int sender_new(const struct config_output *c, uint64_t age_max_ns, struct spool *spool,
	       struct metrics_output *m, struct sender **out)
{
	struct sender *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	*s = (struct sender){ .config = c, .age_max_ns = age_max_ns, .spool = spool, .metrics = m };
	pthread_mutex_init(&s->lock, NULL);
	r = pusher_new(c, &s->pusher);
	if (r < 0)
		release(s);
	else
		*out = s;
	return r;
}

int sender_start(struct sender *s)
{
	int r;

	s->is_running = true; /* until the thread says that it has ended */
	r = thread_start_or_say(run, s, &s->thread);
	if (r < 0)
		s->is_running = false;
	else
		s->has_thread = true;
	return r;
}

void sender_wake(struct sender *s)
{
	pthread_mutex_lock(&s->lock);
	s->has_new = true;
	pthread_mutex_unlock(&s->lock);
	pusher_wake(s->pusher);
}

void sender_stop(struct sender *s)
{
	pthread_mutex_lock(&s->lock);
	if (!s->should_stop)
		s->stop_by_ns = monotonic_ns() + DRAIN_NS;
	s->should_stop = true;
	pthread_mutex_unlock(&s->lock);
	pusher_wake(s->pusher);
}

bool sender_has_ended(struct sender *s)
{
	bool has_ended;

	pthread_mutex_lock(&s->lock);
	has_ended = !s->is_running;
	pthread_mutex_unlock(&s->lock);
	return has_ended;
}

void sender_free(struct sender *s)
{
	if (!s)
		return;
	sender_stop(s);
	if (s->has_thread)
		pthread_join(s->thread, NULL);
	release(s);
}
