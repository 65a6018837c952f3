/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_LOSS_H
#define PROFILE_LOSS_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/profile.h"

/*
 * Where the ticks went that are not in the samples, and what is to be said of those that are: the
 * counters of a recording by name, as the recorder stored them (bpf/events.h, enum stat_kind).
 */
struct loss_row {
	const char *counter;
	const char *words;
};

/* Ticks that should have been samples. Ends in { NULL }. */
extern const struct loss_row loss_ticks[];
extern const struct loss_row loss_spans[];  /* of waiting: likewise */
extern const struct loss_row loss_events[]; /* perf events that the user named */
#define EVENT_COUNTERS "event_"             /* so all counters of these begin */

/* Samples that are less than whole. */
extern const struct loss_row loss_quality[];

/* Whether any of them was counted, be it 0. */
bool loss_is_known(const struct profile *p, const struct loss_row *rows);
uint64_t loss_sum(const struct profile *p, const struct loss_row *rows);
uint64_t loss_sum_of(const struct recording *r, const struct loss_row *rows);

#endif
