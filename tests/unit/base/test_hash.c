/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Names as profiles have them: collisions of 2^17 keys in 64 bits would be a bug, not bad luck. */
static void test_hash_bytes_keeps_names_apart(void **state)
{
	enum { COUNT = 1 << 17 };
	uint64_t *hashes = calloc(COUNT, sizeof(*hashes));
	uint32_t *buckets = calloc(COUNT, sizeof(*buckets));
	uint32_t fullest = 0;

	(void)state;
	assert_non_null(hashes);
	assert_non_null(buckets);
	for (uint32_t i = 0; i < COUNT; i++) {
		char name[64];
		int n = snprintf(name, sizeof(name), "%.*sf%u (m.py:%u)", (int)(i % 24),
				 "pkg.module.Class.method.", i, i % 97);

		hashes[i] = hash_bytes(name, n, 0);
		if (++buckets[hashes[i] % COUNT] > fullest)
			fullest = buckets[hashes[i] % COUNT];
	}
	assert_true(fullest <= 12); /* Poisson(1): 13 or more has odds of 8e-6 in 2^17 buckets */
	qsort(hashes, COUNT, sizeof(*hashes), compare_u64);
	for (uint32_t i = 1; i < COUNT; i++)
		assert_true(hashes[i] != hashes[i - 1]);
	free(hashes);
	free(buckets);
}

/* Any single input bit flips about half of the output bits, at every length and position. */
static void test_hash_bytes_every_bit_counts(void **state)
{
	unsigned char key[70], changed[70];

	(void)state;
	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = (unsigned char)(i * 37 + 11);
	for (size_t len = 1; len <= sizeof(key); len++) {
		for (size_t bit = 0; bit < len * 8; bit++) {
			uint64_t diff;

			memcpy(changed, key, len);
			changed[bit / 8] ^= (unsigned char)(1 << bit % 8);
			diff = hash_bytes(key, len, 5) ^ hash_bytes(changed, len, 5);
			if (__builtin_popcountll(diff) < 8)
				fail_msg("length %zu, bit %zu: %d output bits change", len, bit,
					 __builtin_popcountll(diff));
		}
	}
}

static void test_hash_depends_on_length_seed_and_order(void **state)
{
	static const unsigned char zeros[64];

	(void)state;
	for (size_t len = 1; len < sizeof(zeros); len++)
		if (hash_bytes(zeros, len, 0) == hash_bytes(zeros, len - 1, 0))
			fail_msg("lengths %zu and %zu", len - 1, len);
	assert_true(hash_string("name", 1) != hash_string("name", 2));
	assert_true(hash_string("name", 1) == hash_bytes("name", 4, 1));
	assert_true(hash_combine(hash_u64(1), 2) != hash_combine(hash_u64(2), 1));
}

static void test_hash_u64_spreads_small_numbers(void **state)
{
	enum { COUNT = 1 << 16 };
	static uint8_t low[COUNT], high[COUNT];

	(void)state;
	for (uint64_t i = 0; i < COUNT; i++) {
		uint64_t h = hash_u64(i * 4096); /* page addresses */

		low[h % COUNT]++;
		high[h >> 48]++;
	}
	for (uint32_t i = 0; i < COUNT; i++)
		assert_true(low[i] <= 12 && high[i] <= 12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hash_bytes_keeps_names_apart),
		cmocka_unit_test(test_hash_bytes_every_bit_counts),
		cmocka_unit_test(test_hash_depends_on_length_seed_and_order),
		cmocka_unit_test(test_hash_u64_spreads_small_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
