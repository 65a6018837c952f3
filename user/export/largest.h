/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_LARGEST_H
#define EXPORT_LARGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"

/* What is left of a list for readers with little room. Zeros: all. */
struct largest {
	uint32_t limit;     /* so many rows; 0: all */
	double min_percent; /* none that is less of the whole than this */
};

/* What is not, of which the reader is told. */
struct left_out {
	uint64_t count;
	double share; /* of the whole, 0 to 1 */
};

/*
 * Marks in kept[] the rows that are left, the largest, of those alike the first ones. So of a tree
 * in preorder, in which no row is larger than the one it is in, none is left without that one.
 * Returns 0 and *count, or -ENOMEM.
 */
int largest_keep(const struct largest *of, const uint64_t *weights, size_t rows, uint64_t whole,
		 bool *kept, size_t *count);

/* Adds a row that is left out. */
void left_out_add(struct left_out *sum, uint64_t weight, uint64_t whole);

/* A key of the object `left_out`. */
void json_left_out(struct json *j, const char *key, const struct left_out *sum);

#endif
