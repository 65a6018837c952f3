/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_TOP_INSIDE_H
#define CMD_TOP_INSIDE_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "cmd/top_model.h"
#include "profile/idmap.h"
#include "profile/imports.h"
#include "profile/merge.h"

/* What the files of the model (top_model, top_sums, top_detail) have of each other. */

/* What the values of a cell have in common; its values are ns. */
struct key {
	uint32_t stack, thread, labels;
	uint16_t kind;
};

struct cell {
	uint32_t key; /* index */
	uint64_t ns;
};

struct slice {
	uint64_t from_ns, to_ns; /* CLOCK_MONOTONIC */
	struct top_counts counts;
	VEC(struct cell) cells;
};

/* Kinds of samples that are summed, once they are selected. */
enum summed_kind { SUMMED_CPU, SUMMED_WAIT, SUMMED_TASK };

struct top_model {
	uint64_t window_ns;
	uint64_t since_ns, now_ns; /* 0: nothing has come */
	uint32_t generation;
	struct profile *profile; /* its samples are those that were summed last */
	struct profile_ids ids;
	struct kinds kinds; /* of the profile that samples come from */
	struct import_fold imports;
	struct select select;
	struct top_counts counts; /* since the start */
	bool has_waits;
	bool is_held;
	uint64_t held_until_ns; /* what has come meanwhile, is in held_values, held_counts */
	struct top_counts held_counts;

	VEC(struct key) keys;
	struct idmap key_map;
	VEC(uint64_t) values[TOP_SPANS], held_values; /* by key */
	VEC(uint32_t) hints;      /* by key: where its cell in the newest slice may be */
	VEC(struct slice) slices; /* oldest first; the last one is being filled */

	/* by id, as far as they were looked at */
	VEC(uint32_t) function_of; /* frame: the first one of its function */
	VEC(uint32_t) thread_of;   /* thread: the first entry of its process and tid */
	VEC(uint32_t) newest_of;   /* such an entry: the last one */
	struct idmap function_map, thread_map;
};

/* Time of a row, by what it was in or waited for. */
struct part {
	uint32_t row, what;
	uint64_t ns;
	uint64_t wanted_ns; /* of that of the column that counts */
};

struct parts {
	struct part *items; /* a VEC */
	size_t len, cap;
};

static inline void parts_releasep(struct parts *p)
{
	vec_release(p);
}

/* Sums up parts of one row and thing: in order of these then. */
void parts_fold(struct parts *p);

/* The largest of a row from *at on, where the next one begins then. After parts_fold(). */
const struct part *parts_largest_of_row(const struct parts *p, size_t *at);

/* Slices and the start have one of these. */
void top_counts_add(struct top_counts *to, const struct top_counts *from);

#endif
