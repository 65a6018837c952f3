/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DIFF_CENTRE_H
#define DIFF_CENTRE_H

#include "diff/dispersion.h"

/*
 * The robust centre: where the sides are made equal by time or by share, one function that gets
 * faster makes all others look slower. What most functions did, by their own ticks, is no change:
 * the median of their log ratios. The variance of a median is pi / 2 times that of the mean, or
 * less. A median that may be noise itself is no centre, but what it may be off by counts in any
 * case.
 */
struct centre {
	double ratio; /* that means no change; 1: none is taken off */
	double error; /* standard, of its logarithm */
};
#define CENTRE_NONE ((struct centre){ .ratio = 1 })

/* scale: what a base tick is worth in ticks of current. 0 or -ENOMEM. */
int centre_find(struct centre *out, const struct diff *d, const struct dispersion *x, double scale);

#endif
