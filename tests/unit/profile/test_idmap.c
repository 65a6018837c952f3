/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Keys that were chosen to lie in one place under a hash without a key: probes, not time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "profile/idmap.h"

#define NAMES 40000u

/* Steps from where an entry would like to be to where it is, summed over all. */
static uint64_t probes_of(const struct idmap *m)
{
	uint64_t probes = 0;

	for (size_t i = 0; i < m->size; i++)
		if (m->slots[i])
			probes += (i - (size_t)(m->slots[i] >> 32)) & (m->size - 1);
	return probes;
}

static uint64_t probes_after(const uint64_t *hashes, uint32_t count)
{
	struct idmap m = { 0 };
	uint64_t probes;

	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(idmap_reserve(&m), 0);
		idmap_insert(&m, hashes[i], i);
	}
	probes = probes_of(&m);
	idmap_release(&m);
	return probes;
}

/* What wyhash makes of numbers with the constants that everybody knows. */
static uint64_t hash_without_key(uint64_t v)
{
	const uint64_t a = UINT64_C(0x2d358dccaa6c78a5), b = UINT64_C(0x8bb84b93962eacc9);

	return hash_fold(v ^ a, hash_fold(v ^ b, a));
}

/* The n-th number, as of parent and frame, whose hash without a key ends like that of the first. */
static uint64_t chosen_number(uint64_t *from)
{
	while (hash_without_key((*from)++) & 0xfff)
		;
	return *from - 1;
}

enum { SHARED, CANCELLED, LENGTHS };

/*
 * SHARED: all but the last bytes are equal. CANCELLED: eight bytes that are a constant of wyhash:
 * the product is 0 whatever stands beside them. LENGTHS: zeros. Returns the length.
 */
static size_t chosen_name(int kind, uint32_t i, char *name)
{
	static const uint64_t constant = UINT64_C(0x8bb84b93962eacc9);

	memset(name, 0, 64);
	switch (kind) {
	case SHARED:
		memset(name, 'a', 64);
		snprintf(name + 40, 16, "%u", i);
		return 56;
	case CANCELLED:
		memcpy(name + 16, &constant, 8);
		snprintf(name, 16, "%u", i);
		return 40;
	default:
		memcpy(name + 60, &i, 4);
		return 64;
	}
}

static void test_idmap_probes_are_linear_in_chosen_keys(void **state)
{
	static const struct {
		const char *name;
		int kind; /* -1: numbers */
	} cases[] = {
		{ "names that share most bytes", SHARED },
		{ "names that cancel out what stands before", CANCELLED },
		{ "names that differ in their last bytes", LENGTHS },
		{ "numbers that share their low bits", -1 },
	};
	static uint64_t hashes[NAMES];

	(void)state;
	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		uint64_t number = 0, quarter, all;
		char name[64];

		for (uint32_t i = 0; i < NAMES; i++) {
			if (cases[k].kind < 0)
				hashes[i] = hash_u64(chosen_number(&number));
			else
				hashes[i] =
					hash_bytes(name, chosen_name(cases[k].kind, i, name), 0);
		}
		quarter = probes_after(hashes, NAMES / 4);
		all = probes_after(hashes, NAMES);
		/* Random ones at 3/4 full take 1.5 steps each, at most. */
		if (quarter > NAMES / 4 * 3 || all > NAMES * 3)
			fail_msg("%s: %llu and %llu steps", cases[k].name,
				 (unsigned long long)quarter, (unsigned long long)all);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_idmap_probes_are_linear_in_chosen_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
