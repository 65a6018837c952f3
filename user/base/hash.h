/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * 64-bit hashes for tables in memory, under a key that is drawn anew in each process: who chooses
 * what is put into a table, a target or the author of a file, does not choose where it comes to
 * lie. Values differ from run to run: never store them, and never let the order of a table reach an
 * output.
 *
 * Text, which may be anything, goes through SipHash-1-3 (Aumasson, Bernstein; what CPython and Rust
 * hash strings with). Numbers go through folded 64x64 -> 128 multiplications with secret operands
 * (the step that wyhash made known, with constants: what cancels them out is known then too): two
 * such steps cost a third of SipHash, and a table of stacks is little else than its hash.
 */
struct hash_key {
	uint64_t of_text[2];
	uint64_t of_numbers[2];
};

/* Drawn before main() by hash.c; a constant from then on. */
extern struct hash_key hash_key;

/* For tests of what depends on it: before anything is hashed. */
void hash_set_key(const struct hash_key *key);

static inline uint64_t hash_fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t hash_u64(uint64_t v)
{
	return hash_fold(v ^ hash_key.of_numbers[0],
			 hash_fold(v ^ hash_key.of_numbers[1], hash_key.of_numbers[0]));
}

/* Order matters: (a, b) and (b, a) differ. */
static inline uint64_t hash_combine(uint64_t h, uint64_t v)
{
	return hash_fold(h ^ hash_key.of_numbers[0], v ^ hash_key.of_numbers[1]) ^ hash_u64(v);
}

/* Of count times eight bytes: for many of them, as of a stack. */
uint64_t hash_words(const void *words, size_t count, uint64_t seed);

/* SipHash-1-3 under hash_key, seed in it. */
uint64_t hash_bytes(const void *bytes, size_t len, uint64_t seed);

static inline uint64_t hash_string(const char *s, uint64_t seed)
{
	return hash_bytes(s, strlen(s), seed);
}

#endif
