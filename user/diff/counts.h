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
 * Events, and bytes of memory, are counted: all are seen, but for what a sample stands for beside
 * the one that it met. What varies is the program, from run to run. So of one run a side nothing
 * can be measured where whole runs are compared: its parts of time do different things. They are
 * presumed to be off by a share (DIFF_PRESUMED), and to come in lumps: a page, or a call, of
 * which there is a need anyway falls to whichever line comes first (docs/diff.md has how it was
 * measured).
 */
bool diff_is_presumed(const struct diff *d);

/* Of both sides together, ticks^2, of each thing: what runs are off by whatever its size, and what
 * was lost, which may have been of one thing, as at a program's start. 0: of time. */
double diff_variance_of_runs(const struct diff *d);

/*
 * The least that counts may scatter, over what independent samples would: 1 of ticks, as whoever
 * draws lots has that much. What was measured may come regularly, a loop's sleep, and be as sure as
 * replicates show; but of blocks it is no less than one of its waits in each could be off by, at
 * their ends. block: ticks of a thread that waits through all of one; 0: replicates are runs.
 */
double diff_least_scatter(const struct diff *d, enum counted kind, size_t at, double block);

struct counts diff_counts(const struct diff *d, enum counted kind, size_t at);
/* Is it of no code: time that no sample stands for? Part of totals, and never a finding. */
bool diff_is_unsampled(const struct diff *d, enum counted kind, size_t at);

/* Has it samples enough to be tested? What is of no code has not. */
bool diff_is_enough(const struct diff *d, enum counted kind, size_t at, struct counts n);

/* Finds the units, once nodes and functions are there. 0 or -ENOMEM. */
int diff_find_units(struct diff *d);

size_t diff_count_of(const struct diff *d, enum counted kind);

#endif
