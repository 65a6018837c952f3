/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DIFF_FUNCTIONS_H
#define DIFF_FUNCTIONS_H

#include "diff/diff.h"
#include "diff/identity.h"

/*
 * Keys of the union's nodes become d->functions, largest change first, which nodes are told. 0 or
 * -ENOMEM.
 */
int functions_make(struct diff *d, const struct identity *id);

#endif
