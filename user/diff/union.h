/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DIFF_UNION_H
#define DIFF_UNION_H

#include <stddef.h>
#include <stdint.h>

#include "diff/diff.h"
#include "diff/identity.h"

/*
 * The union of both sides' call trees: paths of equal keys are one node; then, under each node that
 * both sides have, one inserted or deleted frame is passed over where the keys below it match; also
 * where it stands there on both sides, above other calls.
 *
 * Fills d->nodes (parent, end, match, ticks), node_count, node_of and stack_count; node->function
 * is a key of id for now. self: ticks by stack id, of each side; totals: the same with all that is
 * above. d->scale orders siblings. 0, -EOVERFLOW or -ENOMEM.
 */
int union_make(struct diff *d, const struct identity *id, const uint64_t *const self[DIFF_SIDES],
	       const uint64_t *const totals[DIFF_SIDES]);

#endif
