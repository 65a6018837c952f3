/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/counters.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/clock.h"
#include "collect/source.h"

static const char *const stat_names[] = {
#define X(id, name, words) [id] = name,
	TICK_STATS(X) DETAIL_STATS(X)
#undef X
};

static int read_source(struct session *s, enum sample_source source, struct source_counters *out)
{
	out->is_on = session_has_source(s, source);
	if (!out->is_on)
		return 0;
	if (sources[source].expected) /* first: later ones must not show as lost */
		out->expected = sources[source].expected(s);
	if (sources[source].unwatched)
		out->unwatched = sources[source].unwatched(s);
	if (sources[source].left_out)
		out->left_out = sources[source].left_out(s);
	out->pending = session_pending(s, source);
	return session_stats(s, source, out->stats);
}

int counters_read(struct session *s, const struct pipeline *p, struct counters *out)
{
	const struct pipeline_stats *consumed = pipeline_stats(p);
	struct counters c = {
		.of[SOURCE_TICKS] = { .interval_ns = session_interval_ns(s) },
		.unnamed = consumed->unnamed,
		.approximate = consumed->approximate,
		.malformed = consumed->malformed,
		.refused = consumed->refused,
		.rows_refused = session_rows_refused(s),
	};
	int r = session_cpu_time(s, &c.cpu_ns);

	for (int i = 0; i < SOURCE_COUNT_ && r >= 0; i++) {
		c.of[i].found_outside = consumed->found_outside[i];
		c.of[i].found_left_out = consumed->found_left_out[i];
		c.of[i].found_other = consumed->found_other[i];
		r = read_source(s, i, &c.of[i]);
	}
	if (r < 0)
		return r;
	*out = c;
	return 0;
}

int counters_read_cost(struct session *s, uint64_t *ns)
{
	uint64_t stats[STAT_COUNT_], sum_ns = 0;

	for (int i = 0; i < SOURCE_COUNT_; i++) {
		int r;

		if (!session_has_source(s, i))
			continue;
		r = session_stats(s, i, stats);
		if (r < 0)
			return r;
		sum_ns += stats[STAT_RUN_NS];
	}
	*ns = sum_ns;
	return 0;
}

#define SCATTER 1.25 /* of the number of ticks, by that of independent ones: 1.0 to 1.25 */

/* What ticks were lost on the way to the sampler? All values since the counters before. */
struct delivery {
	uint64_t missed;    /* as the sampler saw from the gaps */
	uint64_t unwatched; /* on CPUs that had just come online, at most */
	uint64_t left_out;  /* on CPUs that were to have none, at most */
	uint64_t seen;      /* ticks of the targets, also those without Python */
	uint64_t all;       /* and of all others */
	uint64_t used;      /* ticks of the CPU time that the targets used; 0: not known */
};

/*
 * No doubt is allowed for here: there was such a CPU. Where it is not known how much the targets
 * used, they had the share of it that they had of the rest.
 */
static uint64_t count_unwatched(const struct delivery *d)
{
	uint64_t unseen = difference(d->used, d->seen);

	if (!d->used)
		return d->all ? d->unwatched * d->seen / d->all : d->unwatched;
	return d->unwatched < unseen ? d->unwatched : unseen;
}

/* Ticks by which their number and the CPU time may differ: 2 % for what one clock counts and the
 * other does not, and so many sigma of chance. */
static uint64_t doubt_of(const struct delivery *d, int sigmas)
{
	return (uint64_t)(sigmas * SCATTER * sqrt((double)d->used)) + d->used / 50 + 1;
}

/* Returns the CPU time without ticks, if it is beyond two sigma of chance. */
static uint64_t count_left_out(const struct delivery *d)
{
	uint64_t unseen = difference(d->used, d->seen + count_unwatched(d));

	if (unseen <= doubt_of(d, 2))
		return 0;
	return d->left_out < unseen ? d->left_out : unseen;
}

/* The targets' own CPU time has the last word, as far as five sigma of chance leave no doubt. */
static uint64_t count_not_delivered(const struct delivery *d)
{
	uint64_t lost = d->missed;
	uint64_t unseen = difference(d->used, d->seen + count_unwatched(d) + count_left_out(d));
	uint64_t doubt = doubt_of(d, 5);

	if (!d->used)
		return lost;
	if (lost > unseen + doubt)
		lost = unseen + doubt;
	return unseen > lost + doubt ? unseen : lost;
}

static bool is_of_others(int stat)
{
	return stat == STAT_IDLE || stat == STAT_NO_MM || stat == STAT_FILTERED;
}

static uint64_t sum_events(const uint64_t stats[STAT_COUNT_], bool has_others)
{
	uint64_t sum = 0;

	for (int i = 0; i < STAT_TICK_END; i++)
		if (has_others || !is_of_others(i))
			sum += stats[i];
	return sum;
}

uint64_t counters_of_targets(const struct counters *c)
{
	uint64_t sum = 0;

	for (int i = 0; i < SOURCE_COUNT_; i++)
		sum += sum_events(c->of[i].stats, false);
	return sum;
}

/* Since the counters before; what became of ticks whose process was not known at first comes later.
 */
static void subtract(const struct source_counters *now, const struct source_counters *since,
		     uint64_t stats[STAT_COUNT_])
{
	uint64_t outside = difference(now->found_outside, since->found_outside);
	uint64_t left_out = difference(now->found_left_out, since->found_left_out);
	uint64_t other = difference(now->found_other, since->found_other);
	uint64_t unknown;

	for (int i = 0; i < STAT_COUNT_; i++)
		stats[i] = now->stats[i] - since->stats[i];
	unknown = stats[STAT_UNKNOWN];
	stats[STAT_UNKNOWN] = difference(unknown, outside + left_out + other);
	stats[STAT_RECORDED] += outside;
	stats[STAT_WEIGHT] += outside;
	stats[STAT_OUTSIDE] += outside;
	stats[STAT_NOT_ASKED] += left_out;
	stats[STAT_NOT_PYTHON] += other;
}

static int put(struct profile *p, const struct source *source, const char *name, uint64_t value)
{
	char prefixed[COUNTER_NAME_MAX + 1];

	snprintf(prefixed, sizeof(prefixed), "%s%s", source->prefix, name);
	return profile_set_counter(p, prefixed, value);
}

static int store_source(const struct source *source, const struct source_counters *now,
			const struct source_counters *since, uint64_t cpu_ns, struct profile *p)
{
	uint64_t stats[STAT_COUNT_];
	struct delivery d = { .used = now->interval_ns ? cpu_ns / now->interval_ns : 0,
			      .unwatched = difference(now->unwatched, since->unwatched),
			      .left_out = difference(now->left_out, since->left_out) };
	int r = 0;

	subtract(now, since, stats);
	d.missed = stats[STAT_MISSED];
	d.seen = sum_events(stats, false);
	d.all = sum_events(stats, true);
	for (int i = 0; i < STAT_COUNT_ && r >= 0; i++)
		r = put(p, source, stat_names[i], stats[i]);
	if (r < 0 || (r = put(p, source, source->events, d.all)) < 0 ||
	    (r = put(p, source, "expected", difference(now->expected, since->expected))) < 0 ||
	    (r = put(p, source, "cpu_unwatched", count_unwatched(&d))) < 0 ||
	    (r = put(p, source, "cpu_left_out", count_left_out(&d))) < 0 ||
	    (r = put(p, source, "not_delivered", count_not_delivered(&d))) < 0 ||
	    (r = put(p, source, "task_work_pending", difference(now->pending, since->pending))) < 0)
		return r;
	return put(p, source, "skipped_lost", difference(stats[STAT_SKIPPED], stats[STAT_CARRIED]));
}

int counters_store(const struct counters *now, const struct counters *since,
		   struct profile *profile)
{
	uint64_t cpu_ns = difference(now->cpu_ns, since->cpu_ns);
	int r = 0;

	for (int i = 0; i < SOURCE_COUNT_ && r >= 0; i++)
		if (now->of[i].is_on)
			r = store_source(&sources[i], &now->of[i], &since->of[i], cpu_ns, profile);
	if (r < 0 || (r = profile_set_counter(profile, "cpu_ns", cpu_ns)) < 0 ||
	    (r = profile_set_counter(profile, "unnamed", now->unnamed - since->unnamed)) < 0 ||
	    (r = profile_set_counter(profile, "approximate_lines",
				     now->approximate - since->approximate)) < 0 ||
	    (r = profile_set_counter(profile, "looks_refused", now->refused - since->refused)) <
		    0 ||
	    (r = profile_set_counter(profile, "rows_refused",
				     now->rows_refused - since->rows_refused)) < 0)
		return r;
	return profile_set_counter(profile, "malformed", now->malformed - since->malformed);
}
