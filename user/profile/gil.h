/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_GIL_H
#define PROFILE_GIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "profile/idmap.h"
#include "profile/kinds.h"
#include "profile/profile.h"

/*
 * Who waited for a GIL, and who held it meanwhile.
 *
 * Samples of kind gil-contention say how long others waited while a thread held it, spans of
 * waiting for it who waited when. What each of the former stands for is dealt out over the spans of
 * the same GIL that overlap it in time, by the time that each of these stands for, but no more than
 * that; what is left, as few short spans are kept, over all that was waited for that GIL, as far as
 * that is left. So no more is dealt out than was waited. Where nobody was seen to hold it, and of
 * the locks of free-threaded builds, the holder is not known.
 *
 * A process has one GIL, or several, by interpreter (3.12+). Of which one a sample is may be
 * unknown, always in recordings of older recorders: it is of the only one, or of one by itself.
 *
 * Memory is bounded: what is older than a quarter of GIL_PENDING_MAX spans and samples is settled.
 */
#define GIL_PENDING_MAX (1u << 20)
#define GIL_NOBODY UINT32_MAX

/* A function: all frames of one name and file. */
struct gil_function {
	uint32_t name, file; /* string ids */
	uint32_t frame;      /* the first of its frames that was met */
};

struct gil_row {
	uint32_t waiter, holder; /* indices of functions; GIL_NOBODY: not known */
	double ns;
	double episodes; /* of waiting, that began while it was held there */
};

/* Starts as zeros, ends in gil_release(). Of one profile. */
struct gil_group;
struct gil {
	VEC(struct gil_function) functions;
	VEC(struct gil_row) rows; /* after gil_finish() largest first */
	double waited_ns;         /* for the GIL, of what is selected */
	double episodes;
	double lock_ns;        /* for locks, in free-threaded builds, likewise */
	bool is_free_threaded; /* some process is */

	/* inside */
	VEC(struct gil_group *) processes; /* by index: its GILs; NULL: no sample is of any */
	VEC(uint32_t) function_of;         /* by stack id: index + 1; 0: not looked up */
	struct idmap function_map, row_map;
	size_t pending;
};
void gil_release(struct gil *g);

/*
 * A sample that p holds, of any kind, in about the order of time. Rows are made of waits that are
 * selected, but dealt out by all of them: those of a process are to be given all or not at all. 0,
 * -ENOMEM, -EOVERFLOW.
 */
int gil_add(struct gil *g, const struct kinds *k, const struct profile *p, const struct sample *s,
	    bool is_selected);

/* After the last. 0, -ENOMEM, -EOVERFLOW. */
int gil_finish(struct gil *g);

/* The rows by holder alone, largest first: those of *out have no waiter. 0 or -ENOMEM. */
struct gil_rows {
	struct gil_row *items; /* a VEC */
	size_t len;
	size_t cap;
};
int gil_by_holder(const struct gil *g, struct gil_rows *out);

#endif
