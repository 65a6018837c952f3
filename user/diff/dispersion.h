/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DIFF_DISPERSION_H
#define DIFF_DISPERSION_H

#include <stdbool.h>
#include <stddef.h>

#include "diff/diff.h"
#include "diff/distribution.h"

/*
 * How far counts scatter beyond Poisson's law. Replicates of one side, time blocks of a run or
 * runs, should share a thing's ticks by their exposures; phi is the mean square of what they miss
 * that by, over what Poisson's law would have: 1 for independent samples, more for bursts.
 */

/* Why a replicate may have more ticks than another. */
enum exposure {
	EXPOSURE_EQUAL, /* runs are alike; of blocks: their time */
	EXPOSURE_TIME,
	EXPOSURE_TICKS, /* as many as it has in all */
	EXPOSURE_WORK,  /* of blocks: their time */
};

/* Things that are counted. */
enum counted {
	COUNTED_NODE,
	COUNTED_NODE_SELF,
	COUNTED_FUNCTION, /* totals: of the outermost nodes of each path */
	COUNTED_FUNCTION_SELF,
};
#define COUNTED_KINDS (COUNTED_FUNCTION_SELF + 1)

/* Ticks of both sides. */
struct counts {
	uint64_t base, current;
};

struct dispersion {
	enum diff_dispersion by;
	enum exposure exposure;
	double df[DIFF_SIDES];      /* replicates less one; 0 where there is but one */
	double *phi[COUNTED_KINDS]; /* as measured; NULL where not asked for */
	struct variance_prior prior[COUNTED_KINDS];
};

/* of_nodes: also the two kinds of nodes. 0 or -ENOMEM; release x in any case. */
int dispersion_measure(struct dispersion *x, const struct diff *d, enum exposure exposure,
		       bool of_nodes);
void dispersion_release(struct dispersion *x);

/*
 * Variance of the sum over one side of weights[function] times its self ticks, as replicates have
 * it: things that come and go together are seen to. 0 where nothing can be measured. 0 or -ENOMEM.
 */
int dispersion_of_sum(const struct dispersion *x, const struct diff *d, int side,
		      const double *weights, double *out);

struct counts diff_counts(const struct diff *d, enum counted kind, size_t at);

/*
 * How counts of one thing compare. The caller sets the first four, then
 *
 *	contrast_prepare(&c, x, kind);
 *	for each thing: contrast_choose(&c, at, n), and ask
 */
struct contrast {
	double scale;        /* what a base tick is worth in ticks of current */
	double centre;       /* the ratio that means no change */
	double centre_error; /* standard, of its logarithm */
	double alpha;        /* chance that an interval misses, both ends together */

	double phi; /* moderated, not below 1 */
	double df;  /* of it */
	double t;   /* half the interval, in standard errors */

	const struct dispersion *dispersion;
	enum counted kind;
	double df_of[4], t_of[4]; /* by contrast_sides() */
};

/* The sides that have ticks: base 1, current 2. */
unsigned int contrast_sides(struct counts n);

void contrast_prepare(struct contrast *c, const struct dispersion *x, enum counted kind);
void contrast_choose(struct contrast *c, size_t at, struct counts n);

double contrast_ratio(const struct contrast *c, struct counts n); /* NAN where both are 0 */
double contrast_error(const struct contrast *c, struct counts n); /* standard, of log(ratio) */

/* low <= ratio <= high; 0 and INFINITY where a side has no ticks. Of both 0: NAN. */
void contrast_interval(const struct contrast *c, struct counts n, double *low, double *high);

/* That counts differ as much without a change. */
double contrast_chance(const struct contrast *c, struct counts n);

/* That the side without ticks has none only by accident; 1 where both have some. */
double contrast_missed(const struct contrast *c, struct counts n);

#endif
