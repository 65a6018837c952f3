/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef STORE_COLUMN_H
#define STORE_COLUMN_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

/* Bytes under construction. */
struct bytes {
	uint8_t *items;
	size_t len;
	size_t cap;
};

int bytes_put_varint(struct bytes *b, uint64_t v); /* 0 or -ENOMEM */

/* Numbers of one column, in memory. */
struct numbers {
	uint64_t *items;
	size_t len;
	size_t cap;
};

/* zstd contexts and work space: one for encoding, one for decoding. */
struct column_coder {
	struct ZSTD_CCtx_s *compress;
	struct ZSTD_DCtx_s *decompress;
	struct bytes planes;
	struct bytes packed;
};

void column_coder_release(struct column_coder *z);

/*
 * Columns of unsigned numbers, FORMAT.md "Columns". The encoder picks the smallest encoding; an
 * empty column takes no bytes. 0 or -ENOMEM. z starts zeroed.
 */
int column_encode(struct column_coder *z, struct bytes *out, const uint64_t *values, size_t count);

/*
 * Reads count numbers at *p, before end, into values. The bytes may be anything; *p moves only on
 * success. 0; -EBADMSG: cut off, unknown encoding, a number above max, runs that do not add up;
 * -ENOMEM. Decompresses to what count says at most, whatever the bytes claim.
 */
int column_decode(struct column_coder *z, const uint8_t **p, const uint8_t *end, uint64_t max,
		  uint64_t *values, size_t count);

/* The same for a column of bytes. *text is borrowed: until the next call or from *p's buffer. */
int text_encode(struct column_coder *z, struct bytes *out, const uint8_t *text, size_t count);
int text_decode(struct column_coder *z, const uint8_t **p, const uint8_t *end, size_t count,
		const uint8_t **text);

#endif
