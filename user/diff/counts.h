/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DIFF_COUNTS_H
#define DIFF_COUNTS_H

#include <stddef.h>
#include <stdint.h>

#include "diff/diff.h"

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

struct counts diff_counts(const struct diff *d, enum counted kind, size_t at);
size_t diff_count_of(const struct diff *d, enum counted kind);

#endif
