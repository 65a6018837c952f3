/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/source.h"

#include <stdio.h>

#include "base/clock.h"

const struct source sources[SOURCE_COUNT_] = {
	[SOURCE_TICKS] = { .prefix = "",
			   .events = "ticks",
			   .losses = loss_ticks,
			   .unit = UNIT_COUNT,
			   .expected = session_expected_ticks,
			   .unwatched = session_unwatched_ticks,
			   .left_out = session_left_out_ticks },
	[SOURCE_SWITCHES] = { .prefix = "switch_",
			      .events = "spans",
			      .losses = loss_spans,
			      .unit = UNIT_NS },
	[SOURCE_EVENTS] = { .prefix = EVENT_COUNTERS,
			    .events = "events",
			    .losses = loss_events,
			    .unit = UNIT_COUNT },
};

uint64_t source_counter(const struct source *source, const struct profile *p, const char *name)
{
	char prefixed[COUNTER_NAME_MAX + 1];

	snprintf(prefixed, sizeof(prefixed), "%s%s", source->prefix, name);
	return profile_counter(p, prefixed);
}

#define THINNED_PART \
	20 /* of the ticks that were sampled, that others are skipped is worth saying */

/* The largest one that is not larger; 0: none is. */
static uint32_t usual_rate(double hz)
{
	static const uint32_t rates[] = { 9999, 4999, 1999, 999, 499, 199, 99, 49, 19, 9 };

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
		if (rates[i] <= hz)
			return rates[i];
	return 0;
}

bool source_find_thinned(const struct profile *p, struct thinned_ticks *out)
{
	uint64_t sampled =
		profile_counter(p, "recorded") + profile_counter(p, "task_work_recorded");
	uint64_t skipped = profile_counter(p, "skipped");
	uint64_t interval_ns = profile_recording(p)->interval_ns;
	struct thinned_ticks t = { 0 };

	if (!sampled || !interval_ns || skipped < sampled / THINNED_PART)
		return false;
	t.sample_ns = profile_counter(p, "run_ns") / sampled;
	t.ticks = (double)(sampled + skipped) / (double)sampled;
	t.rate_hz = (uint32_t)(NS_PER_SECOND / interval_ns);
	t.rate_fit_hz = usual_rate((double)NS_PER_SECOND / BUDGET_SHARE / (double)t.sample_ns);
	if (!t.rate_fit_hz || t.rate_fit_hz >= t.rate_hz)
		return false;
	*out = t;
	return true;
}
