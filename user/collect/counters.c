/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/counters.h"

static const char *const stat_names[] = {
#define X(id, name, words) [id] = name,
	TICK_STATS(X) DETAIL_STATS(X)
#undef X
};

int counters_read(struct session *s, const struct pipeline *p, struct counters *out)
{
	const struct pipeline_stats *consumed = pipeline_stats(p);
	struct counters c = { .unnamed = consumed->unnamed, .malformed = consumed->malformed };
	int r;

	/* Expected first: ticks that come in between must not show as lost. */
	if ((r = session_expected_ticks(s, &c.expected)) < 0 || (r = session_stats(s, c.stats)) < 0)
		return r;
	*out = c;
	return 0;
}

uint64_t counters_sampler_ns(const struct counters *c)
{
	return c->stats[STAT_RUN_NS];
}

int counters_store(const struct counters *now, const struct counters *since,
		   struct profile *profile)
{
	uint64_t expected = now->expected - since->expected;
	uint64_t idle_missed = now->stats[STAT_IDLE_MISSED] - since->stats[STAT_IDLE_MISSED];
	uint64_t ticks = 0, accounted;
	int r;

	for (int i = 0; i < STAT_COUNT_; i++) {
		uint64_t count = now->stats[i] - since->stats[i];

		if (i < STAT_TICK_END)
			ticks += count;
		if ((r = profile_set_counter(profile, stat_names[i], count)) < 0)
			return r;
	}
	accounted = ticks + idle_missed;
	if ((r = profile_set_counter(profile, "ticks", ticks)) < 0 ||
	    (r = profile_set_counter(profile, "expected", expected)) < 0 ||
	    (r = profile_set_counter(profile, "not_delivered",
				     expected > accounted ? expected - accounted : 0)) < 0 ||
	    (r = profile_set_counter(profile, "unnamed", now->unnamed - since->unnamed)) < 0)
		return r;
	return profile_set_counter(profile, "malformed", now->malformed - since->malformed);
}
