/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DIFF_REPLICATES_H
#define DIFF_REPLICATES_H

#include <stddef.h>
#include <stdint.h>

#include "diff/diff.h"

/*
 * What scatter is measured by: runs of a side, or parts of the time of one. They should have a
 * thing's ticks in the proportion of their exposures.
 */

/* Why a replicate may have more ticks than another. */
enum exposure {
	EXPOSURE_EQUAL, /* runs are alike; of blocks: their time */
	EXPOSURE_TIME,
	EXPOSURE_TICKS, /* as many as it has in all */
	EXPOSURE_WORK,  /* of blocks: their time */
};

/* A block of a run or several, or a whole run. Borrowed from the input. */
struct replicate {
	const struct cube_run *run;
	const struct cube_block *blocks;
	uint32_t block_count;
	double exposure;
	double share; /* of its side's */
};

/* Starts as zeros, ends in replicates_release(). */
struct replicates {
	struct replicate *items; /* a VEC */
	size_t len;
	size_t cap;
};

/*
 * Of one side, in order of time, without those that have no exposure. times: blocks of so many
 * times the usual length. 0 or -ENOMEM.
 */
int replicates_find(struct replicates *out, const struct diff *d, enum diff_side side,
		    enum diff_dispersion by, enum exposure exposure, uint32_t times);

/* How long blocks are at least, of both sides. */
double replicates_block_ns(const struct diff *d);
void replicates_release(struct replicates *r);

#endif
