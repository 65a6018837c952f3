/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DIFF_DISPERSION_H
#define DIFF_DISPERSION_H

#include <stdbool.h>
#include <stddef.h>

#include "diff/counts.h"
#include "diff/measure.h"
#include "diff/noise.h"

/*
 * How far counts scatter, counted in units (diff_unit()). Replicates of one side, time blocks of a
 * run or runs, should share a thing's ticks by their exposures; phi is the mean square of what they
 * miss that by, over what Poisson's law would have: 1 for independent samples, more for bursts, and
 * for costs that differ from run to run.
 */

struct dispersion {
	const struct diff *d; /* borrowed */
	enum diff_dispersion by;
	enum exposure exposure;
	double block; /* how long a replicate is, in ticks of one thread; 0: they are runs */
	struct measure_side side[DIFF_SIDES];
	double *phi[COUNTED_KINDS];   /* as measured, in units; NULL where not asked for */
	float *growth[COUNTED_KINDS]; /* see dispersion_growth(); NULL: of runs there is none */
	struct noise noise[COUNTED_KINDS]; /* the law of each kind; totals have that of own ticks */
};

/* presumed: by which share things are off where that is not to be measured; of_nodes: also the two
 * kinds of nodes. 0 or -ENOMEM; release x in any case. */
int dispersion_measure(struct dispersion *x, const struct diff *d, enum exposure exposure,
		       double presumed, bool of_nodes);
void dispersion_release(struct dispersion *x);

/*
 * Variance of the sum over one side of weights[function] times its self ticks, as replicates have
 * it: things that come and go together are seen to. 0 where nothing can be measured. 0 or -ENOMEM.
 */
int dispersion_of_sum(const struct dispersion *x, const struct diff *d, int side,
		      const double *weights, double *out);

/* Degrees of freedom of its scatter; 0: no side that has ticks of it has replicates. */
double dispersion_degrees(const struct dispersion *x, struct counts n);

/* phi and mean of a thing, as noise.h has them. */
struct scatter dispersion_scatter(const struct dispersion *x, enum counted kind, size_t at,
				  struct counts n);

/*
 * By how much its variance would be larger than that of blocks says, as far as that can be told:
 * 1, unless it is still growing from the blocks to blocks of twice the length. Then work lasts for
 * longer than a block, and the variance is taken to go on growing up to the length of the run.
 */
double dispersion_growth(const struct dispersion *x, enum counted kind, size_t at);

#endif
