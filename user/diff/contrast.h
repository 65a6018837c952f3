/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DIFF_CONTRAST_H
#define DIFF_CONTRAST_H

#include "diff/dispersion.h"
#include "diff/distribution.h"

/*
 * How counts of one thing compare. The caller sets the first five, then
 *
 *	contrast_prepare(&c, x, kind);
 *	for each thing: contrast_choose(&c, at, n), and ask
 *
 * The sides' ticks n, counted in units, have the variance phi n + tau2 n^2 share, share being that
 *of a replicate in its side (struct dispersion_side).
 */
struct contrast {
	double scale;        /* what a base tick is worth in ticks of current */
	double centre;       /* the ratio that means no change */
	double centre_error; /* standard, of its logarithm */
	double alpha;        /* chance that an interval misses, both ends together */
	bool is_alone;       /* by its own scatter only: the whole has nothing to borrow from */

	double unit;      /* in ticks: diff_unit() */
	double phi, tau2; /* moderated; phi >= 1 */
	double df;        /* of them, >= 1 */
	double t;         /* half the interval, in standard errors */

	const struct dispersion *dispersion;
	enum counted kind;
	struct student_table quantiles;
};

void contrast_prepare(struct contrast *c, const struct dispersion *x, enum counted kind);
void contrast_choose(struct contrast *c, size_t at, struct counts n);

double contrast_ratio(const struct contrast *c, struct counts n); /* NAN where both are 0 */
double contrast_error(const struct contrast *c, struct counts n); /* standard, of log(ratio) */

/* current - base, in ticks of current, and its standard error if there is no change. */
double contrast_difference(const struct contrast *c, struct counts n);
double contrast_difference_error(const struct contrast *c, struct counts n);

/* Standard error of so many ticks that belong to it, in ticks. */
double contrast_ticks_error(const struct contrast *c, double ticks);

/* low <= ratio <= high; 0 and INFINITY where a side has no ticks. Of both 0: NAN. */
void contrast_interval(const struct contrast *c, struct counts n, double *low, double *high);

/* That counts differ as much without a change. */
double contrast_chance(const struct contrast *c, struct counts n);

/* That the side without ticks has none only by accident; 1 where both have some. */
double contrast_missed(const struct contrast *c, struct counts n);

/* What a change must be to be found. Begins with demand_init(). */
struct demand {
	double above;   /* the ratio itself, or the lower end of its interval, is above this */
	bool is_of_low; /* the latter */
	double ticks;   /* of current that it costs, at least */
	struct student_table by_chance;
};

/* chance: that counts differ as much without a change, at most; 1: need not be small. */
void demand_init(struct demand *demand, double chance);

/* The smallest ratio that would be found nine times in ten, with base's ticks as they are. Of
 * none: INFINITY. */
double contrast_detectable(const struct contrast *c, uint64_t base, struct demand *demand);

#endif
