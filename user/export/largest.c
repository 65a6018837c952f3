/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/largest.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static int compare_weights(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x > y ? -1 : x < y;
}

int largest_keep(const struct largest *of, const uint64_t *weights, size_t rows, uint64_t whole,
		 bool *kept, size_t *count)
{
	size_t limit = of->limit && of->limit < rows ? of->limit : rows;
	uint64_t least = (uint64_t)ceil(of->min_percent / 100 * (double)whole);
	size_t equal = rows; /* of the last one's size, that still fit in */

	*count = 0;
	if (limit < rows) {
		_cleanup_(freep) uint64_t *sorted = calloc(rows, sizeof(*sorted));

		if (!sorted)
			return -ENOMEM;
		memcpy(sorted, weights, rows * sizeof(*sorted));
		qsort(sorted, rows, sizeof(*sorted), compare_weights);
		if (least < sorted[limit - 1])
			least = sorted[limit - 1];
		equal = 0;
		for (size_t i = limit; i > 0 && sorted[i - 1] == least; i--)
			equal++;
	}
	for (size_t i = 0; i < rows; i++) {
		kept[i] = weights[i] > least || (weights[i] == least && equal);
		equal -= weights[i] == least && equal;
		*count += kept[i];
	}
	return 0;
}

void left_out_add(struct left_out *sum, uint64_t weight, uint64_t whole)
{
	sum->count++;
	sum->share += whole ? (double)weight / (double)whole : 0;
}

void json_left_out(struct json *j, const char *key, const struct left_out *sum)
{
	json_key(j, key);
	json_object(j);
	json_key_u64(j, "count", sum->count);
	/* six digits: sums of shares have no more */
	json_key_double(j, "share", round(sum->share * 1e6) / 1e6);
	json_end(j);
}
