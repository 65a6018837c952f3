/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_TIMELINE_H
#define EXPORT_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "profile/kinds.h"
#include "profile/profile.h"

/*
 * The samples of each thread, kind by kind, one after the other in time: for formats that have a
 * list a thread, while recordings have those of all threads mixed. Packed as they come, some six
 * bytes each, so that ten million fit into memory; a recorder may be ten seconds late with some.
 */

struct timeline_entry {
	uint64_t time_ns; /* since the start of the first recording */
	uint64_t duration_ns;
	uint64_t value; /* in the unit of its list: kinds_scaled() */
	uint32_t stack, labels;
	uint16_t cpu, flags;
};

/* One thread's of one kind. */
struct timeline_list {
	uint32_t thread; /* index, the first of those that are the same */
	uint16_t kind;   /* as samples have it, but for TIMELINE_TIME */
	uint8_t unit;    /* enum sample_unit */
	bool has_waits;  /* of TIMELINE_TIME: not CPU time alone */
	bool has_times;  /* else all are at 0: sums from text */
	uint64_t total;  /* of the values; saturates */
	uint64_t count;
	uint64_t order; /* given to entries as they come */
	struct timeline_pending {
		struct timeline_slot {
			struct timeline_entry entry;
			uint64_t order;
		} * items; /* a VEC: a heap, the earliest first */
		size_t len;
		size_t cap;
	} pending;
	struct timeline_entry last; /* of those that are packed */
	VEC(uint8_t) packed;
};

/* What a thread computed and what it waited are one list, its time. */
#define TIMELINE_TIME KIND_TICKS

/* Starts as zeros, ends in timeline_release(). Of one profile. */
struct timeline {
	VEC(struct timeline_list)
	lists;                 /* in order of their first samples, until timeline_finish() */
	VEC(uint32_t) list_of; /* by thread * (kinds so far) + kind: see timeline.c */
	uint32_t kinds;
};
void timeline_release(struct timeline *t);

/* The samples that p holds. kinds: NULL: all are ticks. 0 or -ENOMEM. */
int timeline_add(struct timeline *t, const struct profile *p, const struct kinds *kinds);

/* After the last: lists stand by process and thread, as p has them, then by kind. 0 or -ENOMEM. */
int timeline_finish(struct timeline *t, const struct profile *p);

/* Reads a list of a finished timeline. */
struct timeline_cursor {
	const uint8_t *at, *end;
	struct timeline_entry entry;
};
struct timeline_cursor timeline_begin(const struct timeline_list *list);
bool timeline_next(struct timeline_cursor *c); /* false: that was the last */

#endif
