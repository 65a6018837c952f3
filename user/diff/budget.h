/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DIFF_BUDGET_H
#define DIFF_BUDGET_H

#include "diff/diff.h"

/*
 * Cost that moved. What a caller lost of its own time, and in calls that are gone, is a budget that
 * is spent once: on what its own code took over, then on the calls it makes now, new ones first,
 * then the largest rise, and on within those. Another call that got faster releases nothing: that
 * is a gain of its own.
 *
 * *paid: by function, in ticks of current: what of its cost came from there, of the outermost nodes
 * on each path; to be freed. unit: what a base tick is worth; rises below least are left alone. 0
 * or -ENOMEM.
 */
int budget_spend(const struct diff *d, double unit, double least, double **paid);

#endif
