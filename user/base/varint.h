/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_VARINT_H
#define BASE_VARINT_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Unsigned LEB128: seven bits a byte, low ones first, the top bit set on all but the last. As in
 * DWARF 5 (7.6) and protobuf. Signed numbers go through zigzag: 0, -1, 1, -2 become 0, 1, 2, 3.
 *
 * All functions take the cursor by pointer and move it only when they succeed.
 */
#define VARINT_MAX_BYTES 10 /* of a 64-bit number */

static inline uint64_t zigzag_encode(int64_t v)
{
	return ((uint64_t)v << 1) ^ (v < 0 ? UINT64_MAX : 0);
}

static inline int64_t zigzag_decode(uint64_t v)
{
	return (int64_t)((v >> 1) ^ (0 - (v & 1)));
}

static inline size_t varint_size(uint64_t v)
{
	return (size_t)(63 - __builtin_clzll(v | 1)) / 7 + 1;
}

/* Writes at p, where there is room for it, and returns what is behind it. */
static inline uint8_t *varint_write(uint8_t *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (uint8_t)v | 0x80;
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

/* Writes at *p, before end. -ENOBUFS if it does not fit, with nothing written. */
static inline int varint_put(uint8_t **p, const uint8_t *end, uint64_t v)
{
	if ((size_t)(end - *p) < varint_size(v))
		return -ENOBUFS;
	*p = varint_write(*p, v);
	return 0;
}

/*
 * Reads at *p, before end; the bytes may be anything. -EBADMSG if the number is cut off or needs
 * more than 64 bits. Zero-padded forms are accepted up to VARINT_MAX_BYTES.
 */
static inline int varint_get(const uint8_t **p, const uint8_t *end, uint64_t *v)
{
	const uint8_t *q = *p;
	uint64_t sum = 0;

	for (unsigned int shift = 0; q < end && shift < 70; shift += 7) {
		uint64_t byte = *q++;

		if (shift == 63 && byte > 1)
			return -EBADMSG;
		sum |= (byte & 0x7f) << shift;
		if (byte < 0x80) {
			*p = q;
			*v = sum;
			return 0;
		}
	}
	return -EBADMSG;
}

/* The same for a number that must be at most max: lengths, indices. -EBADMSG beyond it. */
static inline int varint_get_max(const uint8_t **p, const uint8_t *end, uint64_t max, uint64_t *v)
{
	const uint8_t *q = *p;
	uint64_t value = 0; /* gcc 12 at -Os does not see that it is set with 0 */

	if (varint_get(&q, end, &value) < 0 || value > max)
		return -EBADMSG;
	*p = q;
	*v = value;
	return 0;
}

/* Zigzag, as above. */
static inline int varint_put_signed(uint8_t **p, const uint8_t *end, int64_t v)
{
	return varint_put(p, end, zigzag_encode(v));
}

static inline int varint_get_signed(const uint8_t **p, const uint8_t *end, int64_t *v)
{
	uint64_t raw;
	int r = varint_get(p, end, &raw);

	if (!r)
		*v = zigzag_decode(raw);
	return r;
}

#endif
