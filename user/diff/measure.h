/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DIFF_MEASURE_H
#define DIFF_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "diff/counts.h"
#include "diff/replicates.h"

/* What each thing's replicates miss its mean by: one pass over all cells for each side. */

/* What is asked of each node, packed for the sake of speed. */
struct measure_path {
	uint32_t parent;
	uint32_t function;
	uint32_t outermost; /* its function; UINT32_MAX: below another node of it */
};

/* Ends in measure_release(). */
struct measure {
	const struct diff *d; /* borrowed */
	enum diff_dispersion by;
	enum exposure exposure;
	bool of_nodes;              /* also the two kinds of nodes */
	struct measure_path *paths; /* by node */
};
int measure_init(struct measure *how, const struct diff *d, enum diff_dispersion by,
		 enum exposure exposure, bool of_nodes);
void measure_release(struct measure *how);

struct measure_side {
	double df;    /* replicates less one; 0 where there is but one */
	double share; /* sum of the squares of their shares: 1 / replicates, where they are alike */
};

/* Functions of some weight, and what each of their replicates misses the mean by. */
struct large {
	VEC(uint32_t) functions;
	double *off[DIFF_SIDES]; /* by function and replicate, in Poisson's standard deviations */
	size_t replicates[DIFF_SIDES];
};

int large_find(struct large *l, const struct diff *d);
void large_release(struct large *l);

/* chi^2 of each thing, both sides together. */
struct chi {
	double *of[COUNTED_KINDS]; /* NULL where not asked for */
	struct measure_side side[DIFF_SIDES];
};

void chi_release(struct chi *chi);

/*
 * times: by blocks of so many times the usual length; large: NULL, or its `off` is filled in. 0 or
 * -ENOMEM; release chi and large in any case.
 */
int measure_chi(const struct measure *how, uint32_t times, struct large *large, struct chi *chi);

#endif
