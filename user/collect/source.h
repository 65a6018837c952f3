/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_SOURCE_H
#define COLLECT_SOURCE_H

#include <stdint.h>

#include "bpf/events.h"
#include "collect/session.h"
#include "profile/loss.h"

/*
 * What makes the sampler run, a row each: what is counted, stored, served and summarised goes
 * through this table.
 */
struct source {
	const char *prefix; /* of the names that its counters have in files and /metrics */
	const char *events; /* counter of those that reached the sampler, without the prefix */
	const struct loss_row *losses; /* counters of those that should have been samples */
	uint8_t unit; /* enum sample_unit: what they count; events, if UNIT_COUNT */

	/* How many it must have made since session_start(); NULL: as many as it has. */
	uint64_t (*expected)(struct session *s);

	/* How many it may not have made where there was nothing to make them; NULL: none. */
	uint64_t (*unwatched)(struct session *s);
	uint64_t (*left_out)(struct session *s); /* likewise, where there was to be nothing */
};

extern const struct source sources[SOURCE_COUNT_];

/* One of its counters in a profile. */
uint64_t source_counter(const struct source *source, const struct profile *p, const char *name);

/* Ticks that were too many for the sampler's share of a CPU. */
struct thinned_ticks {
	uint64_t sample_ns;   /* that a sample takes, on average */
	double ticks;         /* that it represents, on average */
	uint32_t rate_hz;     /* of the recording */
	uint32_t rate_fit_hz; /* usual, at which each tick would be sampled */
};

/* False: of nearly all ticks there are samples, or what samples take is not why there are fewer. */
bool source_find_thinned(const struct profile *p, struct thinned_ticks *out);

#endif
