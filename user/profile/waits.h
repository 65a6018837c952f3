/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_WAITS_H
#define PROFILE_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "profile/kinds.h"
#include "profile/profile.h"

/*
 * What threads did with their time: computed, or waited, for what. That is the marker at the leaf
 * of a span of waiting.
 */

#define WAIT_MARKER_GIL "<GIL>"
#define WAIT_MARKER_LOCK "<lock>"

/* Is the frame such a marker, and not code or another one? */
bool wait_is_marker(const struct profile *p, uint32_t frame);

/* String id of the marker at the leaf of a stack; 0: there is none. */
uint32_t wait_of_stack(const struct profile *p, uint32_t stack);

/* One thing that threads did. */
struct waits_row {
	uint32_t marker; /* string id; 0: nobody knows what for, or it is no waiting */
	uint64_t ns;
	VEC(uint64_t) of_thread; /* by index, as far as it has any */
};

/* Starts as zeros, ends in waits_release(). Of one profile. */
#define WAITS_CPU 0     /* computed */
#define WAITS_UNKNOWN 1 /* waited: no marker says for what, or there are too many of them */
#define WAITS_MAX 64
struct waits {
	VEC(struct waits_row) rows; /* none, or these two and one for each marker */
	VEC(uint8_t) row_of;        /* by stack id: index + 1; 0: not looked up */
};
void waits_release(struct waits *w);

/* A sample that p holds; of kinds that are no time of a thread nothing becomes. 0 or -ENOMEM. */
int waits_add(struct waits *w, const struct kinds *k, const struct profile *p,
	      const struct sample *s);

/* Of a row, and of all but the first. */
static inline uint64_t waits_ns(const struct waits *w, size_t row)
{
	return row < w->rows.len ? w->rows.items[row].ns : 0;
}
uint64_t waits_waited_ns(const struct waits *w);

/* Adds up what a row has of each thread as it is shown: ns[0 .. p->threads.len - 1]. */
void waits_sum_threads(const struct waits *w, const struct profile *p, size_t row, uint64_t *ns);

#endif
