/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DIFF_COUNTS_H
#define DIFF_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diff/diff.h"

/* Ticks of both sides. */
struct counts {
	uint64_t base, current;
};

/*
 * Each tick comes by itself, so that it counts as one. Where samples have values, times or bytes,
 * what counts as one is the sum of their squares over their sum: the variance of the sum over the
 * sum, where they come independently. So dispersion is told in units of it, and a count of them is
 * as good as so many ticks. A wait of ten seconds among short ones is nearly all of the thing, and
 * one sample.
 */
static inline double diff_unit(const struct diff *d, enum counted kind, size_t at)
{
	return d->unit[kind] ? (double)d->unit[kind][at].ticks : 1;
}

/*
 * The least that counts may scatter, over what independent samples would: 1 of ticks, as whoever
 * draws lots has that much. What was measured may come regularly, a loop's sleep, and be as sure as
 * replicates show; but of blocks it is no less than one of its waits in each could be off by, at
 * their ends. block: ticks of a thread that waits through all of one; 0: replicates are runs.
 */
double diff_least_scatter(const struct diff *d, enum counted kind, size_t at, double block);

struct counts diff_counts(const struct diff *d, enum counted kind, size_t at);
/* Has it samples enough to be tested? */
bool diff_is_enough(const struct diff *d, enum counted kind, size_t at, struct counts n);

/* Finds the units, once nodes and functions are there. 0 or -ENOMEM. */
int diff_find_units(struct diff *d);

size_t diff_count_of(const struct diff *d, enum counted kind);

#endif
