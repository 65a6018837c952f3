/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef STORE_MODEL_H
#define STORE_MODEL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "profile/stacktab.h"
#include "store/format.h"

/*
 * What writer and reader both know of a segment so far, each updating it by the same steps: it is
 * how a sample or a stack entry is told in few bits. FORMAT.md, "Model". Ids are the file's own.
 */
#define MODEL_NONE UINT32_MAX
#define MODEL_NO_TIME UINT64_MAX

/* The frames latest seen under one frame, newest first; MODEL_NONE: none yet. */
struct recent {
	uint32_t frame[CHILD_RECENT];
};

/* What the lines of one function share. */
struct function {
	uint32_t name; /* string ids */
	uint32_t file;
	uint32_t first_line;
	uint8_t kind;
};

/*
 * What a row takes in memory at most, bytes: ids here, the row and its share of a hash table in the
 * profile, its nodes in a report's tree or its row in a page's; strings take their text as well.
 * FORMAT.md, "Paying for rows".
 */
enum row_cost {
	COST_STRING = 48,
	COST_FRAME = 128,
	COST_STACK = 128,
	COST_PROCESS = 160,
	COST_THREAD = 96,
	COST_SAMPLE = 32,
	COST_CHANGE = 32, /* a sample of another thread or stack than the one before it */
	COST_PLACE = 32,  /* none of its own, but time */
	COST_SOURCE = 32,
	COST_KIND = 64,
	COST_LABELS = 96,
};
#define COST_FREE (UINT64_C(16) << 20) /* before any byte is read */
#define COST_OF_BYTE 512               /* the densest profile of FORMAT.md, "Size", takes 250 */

struct model {
	VEC(struct function) functions; /* in order of their first frame */
	VEC(struct recent) recent;      /* by parent's frame + 1; 0: under the empty stack */
	VEC(struct stack_entry) stacks; /* [0] is the empty stack */
	VEC(uint32_t) sampled;          /* stacks with samples, often used ones in front */
	VEC(uint64_t) thread_phase;     /* a grid point, by thread; MODEL_NO_TIME: none yet */
	VEC(uint64_t) cpu_phase;        /* by CPU */
	VEC(uint64_t) thread_last;      /* time of its last sample, by thread */
	uint32_t next_frame;            /* no entry has used it or any above */
	uint64_t interval_ns;
	uint64_t cost; /* of all rows so far: of the file, not of the segment */
};

/* What rows may cost in the file's first `bytes`. */
static inline uint64_t model_budget(uint64_t bytes)
{
	return COST_FREE + bytes * COST_OF_BYTE;
}

static inline void model_release(struct model *m)
{
	vec_release(&m->functions);
	vec_release(&m->recent);
	vec_release(&m->stacks);
	vec_release(&m->sampled);
	vec_release(&m->thread_phase);
	vec_release(&m->cpu_phase);
	vec_release(&m->thread_last);
	m->next_frame = 0;
}

static inline size_t model_bytes(const struct model *m)
{
	return m->functions.cap * sizeof(struct function) + m->recent.cap * sizeof(struct recent) +
	       m->stacks.cap * sizeof(struct stack_entry) + m->sampled.cap * sizeof(uint32_t) +
	       (m->thread_phase.cap + m->cpu_phase.cap + m->thread_last.cap) * sizeof(uint64_t);
}

/* At the start of a segment. 0 or -ENOMEM. */
static inline int model_restart(struct model *m, uint64_t interval_ns)
{
	struct recent none;

	model_release(m);
	m->interval_ns = interval_ns ? interval_ns : INTERVAL_DEFAULT_NS;
	memset(&none, 0xff, sizeof(none));
	if (vec_push(&m->stacks, ((struct stack_entry){ 0, MODEL_NONE })) < 0 ||
	    vec_push(&m->recent, none) < 0)
		return -ENOMEM;
	return 0;
}

/* Makes room for frames below count, threads below count, CPU number cpu. */
static inline int model_cover_frames(struct model *m, size_t count)
{
	size_t more = count + 1 > m->recent.len ? count + 1 - m->recent.len : 0;

	if (vec_reserve(&m->recent, more) < 0)
		return -ENOMEM;
	memset(m->recent.items + m->recent.len, 0xff, more * sizeof(*m->recent.items));
	m->recent.len += more;
	return 0;
}

#define MODEL_COVER_TIMES(v, count)                                                    \
	({                                                                             \
		size_t more_ = (count) > (v)->len ? (count) - (v)->len : 0;            \
		int cover_r_ = vec_reserve(v, more_);                                  \
		if (!cover_r_) {                                                       \
			memset((v)->items + (v)->len, 0xff, more_ * sizeof(uint64_t)); \
			(v)->len += more_;                                             \
		}                                                                      \
		cover_r_;                                                              \
	})

/* The list of recent frames below stack `parent`. */
static inline struct recent *model_recent(const struct model *m, uint32_t parent)
{
	return &m->recent.items[(uint32_t)(m->stacks.items[parent].frame + 1)];
}

/* Moves slot `at` (or, for CHILD_RECENT, a newcomer that pushes the oldest out) to the front. */
static inline void recent_promote(struct recent *list, unsigned int at, uint32_t frame)
{
	for (unsigned int i = at < CHILD_RECENT ? at : CHILD_RECENT - 1; i > 0; i--)
		list->frame[i] = list->frame[i - 1];
	list->frame[0] = frame;
}

static inline uint32_t model_promoted_place(uint32_t place)
{
	return place - (place + 3) / 4;
}

/*
 * A sample has the stack at `place`: it moves a quarter of the way to the front, so that what is
 * frequent now has a low place. Returns the place it left to the stack that was there.
 */
static inline uint32_t model_promote_stack(struct model *m, uint32_t place)
{
	uint32_t to = model_promoted_place(place), other = m->sampled.items[to];

	m->sampled.items[to] = m->sampled.items[place];
	m->sampled.items[place] = other;
	return to;
}

/* To the nearest multiple. Most are 0, which saves the division. */
static inline uint64_t round_to_interval(uint64_t distance, uint64_t interval_ns)
{
	uint64_t half = interval_ns / 2;

	return distance < interval_ns - half ? 0 : (distance + half) / interval_ns * interval_ns;
}

/* The grid point nearest to t; all arithmetic is modulo 2^64. */
static inline uint64_t grid_nearest(uint64_t phase, uint64_t t, uint64_t interval_ns)
{
	uint64_t after = t - phase, before = phase - t;

	if (after <= before)
		return phase + round_to_interval(after, interval_ns);
	return phase - round_to_interval(before, interval_ns);
}

/*
 * One thread's next tick. base is what `ticks` counts from: the grid point nearest to the
 * thread's last sample. The phase follows small deviations slowly, so that jitter does not move
 * the grid, and large ones at once.
 */
struct tick {
	uint64_t *phase; /* of the sample's grid */
	uint64_t *last;  /* of its thread */
};

/* start_ns: what a grid or thread without a past begins at. */
static inline struct tick model_tick(struct model *m, enum grid grid, uint32_t thread, uint16_t cpu,
				     uint64_t start_ns)
{
	struct tick tick = {
		.phase = grid == GRID_CPU ? &m->cpu_phase.items[cpu]
					  : &m->thread_phase.items[thread],
		.last = &m->thread_last.items[thread],
	};

	if (*tick.phase == MODEL_NO_TIME)
		*tick.phase = start_ns;
	if (*tick.last == MODEL_NO_TIME)
		*tick.last = start_ns;
	return tick;
}

/* Moves the model on; the sample's time is then *tick.last. */
static inline void model_advance(const struct model *m, struct tick tick, int64_t ticks,
				 int64_t units)
{
	uint64_t point = grid_nearest(*tick.phase, *tick.last, m->interval_ns) +
			 (uint64_t)ticks * m->interval_ns;
	uint64_t off_ns = (uint64_t)units * TIME_UNIT_NS;

	*tick.last = point + off_ns;
	*tick.phase = point +
		      (units >= -4 && units <= 4 ? (uint64_t)(units * (TIME_UNIT_NS / 8)) : off_ns);
}

#endif
