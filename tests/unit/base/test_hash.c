/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* Of numbers, as the table of a stack's callers is asked. */
static void test_hash_words_every_bit_counts(void **state)
{
	uint64_t words[7], changed[7];

	(void)state;
	for (size_t i = 0; i < 7; i++)
		words[i] = i % 2 ? 0 : UINT64_C(0x7f0012345678) + 4096 * i;
	for (size_t count = 1; count <= 7; count++) {
		for (size_t bit = 0; bit < count * 64; bit++) {
			uint64_t differ;

			memcpy(changed, words, sizeof(words));
			changed[bit / 64] ^= UINT64_C(1) << bit % 64;
			differ = hash_words(words, count, 5) ^ hash_words(changed, count, 5);
			if (__builtin_popcountll(differ) < 8)
				fail_msg("%zu words, bit %zu: %d output bits change", count, bit,
					 __builtin_popcountll(differ));
		}
		assert_true(hash_words(words, count, 5) != hash_words(words, count - 1, 5));
	}
}

/* What CPython 3.11 and later say with PYTHONHASHSEED=0, whose key is 0: hash(b"...") % 2**64. */
static void test_hash_bytes_is_siphash_1_3(void **state)
{
	static const struct {
		const char *text;
		uint64_t want;
	} cases[] = {
		{ "a", UINT64_C(0x407448d2b89b1813) },
		{ "abc", UINT64_C(0xc03bc3a0042630f2) },
		{ "name", UINT64_C(0xa8ff84c12d48cfa6) },
		{ "1234567", UINT64_C(0xa33d651594fdae81) },
		{ "12345678", UINT64_C(0x3489982430560a87) },
		{ "123456789", UINT64_C(0x0fbc0f0007965fcf) },
		{ "/usr/lib/python3.11/threading.py", UINT64_C(0x1b1a7e2244232eba) },
		{ "Thread._bootstrap_inner", UINT64_C(0x9bd20756515fdf34) },
	};
	const struct hash_key drawn = hash_key, zero = { { 0 }, { 0 } };

	(void)state;
	hash_set_key(&zero);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (hash_string(cases[i].text, 0) != cases[i].want)
			fail_msg("%s", cases[i].text);
	hash_set_key(&drawn);
}

/* This program started anew. */
static struct hash_key key_of_another_process(void)
{
	struct hash_key key;
	int ends[2], status;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(ends[1], STDOUT_FILENO);
		execl("/proc/self/exe", "test_hash", "key", (char *)NULL);
		_exit(1);
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &key, sizeof(key)), sizeof(key));
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return key;
}

static void test_hash_key_is_another_in_each_process(void **state)
{
	const struct hash_key here = hash_key, there = key_of_another_process();

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_true(here.of_text[i] != there.of_text[i]);
		assert_true(here.of_numbers[i] != there.of_numbers[i]);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hash_bytes_keeps_names_apart),
		cmocka_unit_test(test_hash_bytes_every_bit_counts),
		cmocka_unit_test(test_hash_depends_on_length_seed_and_order),
		cmocka_unit_test(test_hash_u64_spreads_small_numbers),
		cmocka_unit_test(test_hash_words_every_bit_counts),
		cmocka_unit_test(test_hash_bytes_is_siphash_1_3),
		cmocka_unit_test(test_hash_key_is_another_in_each_process),
	};

	if (argc == 2 && !strcmp(argv[1], "key"))
		return write(STDOUT_FILENO, &hash_key, sizeof(hash_key)) != sizeof(hash_key);

	return cmocka_run_group_tests(tests, NULL, NULL);
}
