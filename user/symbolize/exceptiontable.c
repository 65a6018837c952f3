/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "symbolize/exceptiontable.h"

#include <errno.h>
#include <limits.h>

#define CODE_UNIT 2 /* bytes in a _Py_CODEUNIT */
#define VARINT_BYTES_MAX 5

/* Six bits a byte, the highest first; bit 6 means "more", bit 7 begins an entry. */
static int next_varint(const uint8_t **at, const uint8_t *end, uint32_t *out)
{
	uint32_t value = 0;

	for (int i = 0; i < VARINT_BYTES_MAX && *at < end; i++) {
		uint8_t byte = *(*at)++;

		value = value << 6 | (byte & 63);
		if (!(byte & 64)) {
			*out = value;
			return 0;
		}
	}
	return -EBADMSG;
}

int exceptiontable_depth(const uint8_t *table, size_t len, uint32_t instr)
{
	const uint8_t *at = table, *end = table + len;
	const uint32_t unit = instr / CODE_UNIT;

	while (at < end) {
		uint32_t start, length, target, depth;

		if (next_varint(&at, end, &start) < 0 || next_varint(&at, end, &length) < 0 ||
		    next_varint(&at, end, &target) < 0 || next_varint(&at, end, &depth) < 0)
			return -EBADMSG;
		if (unit < start)
			return -ENOENT; /* they are in order */
		if (unit - start < length)
			return depth / 2 <= INT_MAX ? (int)(depth / 2) : -EBADMSG;
	}
	return -ENOENT;
}
