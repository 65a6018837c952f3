/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/source.h"

#include <stdio.h>

const struct source sources[SOURCE_COUNT_] = {
	[SOURCE_TICKS] = { .prefix = "",
			   .events = "ticks",
			   .losses = loss_ticks,
			   .unit = UNIT_COUNT,
			   .expected = session_expected_ticks,
			   .unwatched = session_unwatched_ticks },
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
