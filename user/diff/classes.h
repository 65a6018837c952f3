/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DIFF_CLASSES_H
#define DIFF_CLASSES_H

#include "diff/dispersion.h"

/*
 * How each node and function of d changed, and the whole: measures, classes, what would have been
 * found. d has its tree, functions, scale and centre. 0 or -ENOMEM.
 */
int classes_find(struct diff *d, const struct dispersion *x);

#endif
