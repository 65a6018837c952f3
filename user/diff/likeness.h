/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DIFF_LIKENESS_H
#define DIFF_LIKENESS_H

#include "diff/dispersion.h"
#include "diff/measure.h"

/*
 * The mean squared correlation of the large functions, each counted as far as tau2 makes it
 * scatter. The sum of the squared products of all things is that of the matrix of the replicates'
 * products, which is small. By chance a squared correlation is 1 / df. *out is 0 .. 1.
 * 0 or -ENOMEM.
 */
int likeness_measure(const struct dispersion *x, const struct diff *d, const struct large *l,
		     double *out);

#endif
