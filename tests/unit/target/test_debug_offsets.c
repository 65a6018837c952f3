/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* On tables of real interpreters, from the fuzzer's corpus. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "target/debug_offsets.h"

#define VERSION_AT 8
#define FREE_THREADED_AT 16

static size_t read_corpus(const char *name, uint8_t bytes[DEBUG_OFFSETS_BYTES])
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[4096];
	size_t n;

	snprintf(path, sizeof(path), PYEBPF_CORPUS "/debug_offsets/%s", name);
	f = fopen(path, "re");
	if (!f)
		fail_msg("%s: %s", path, strerror(errno));
	n = fread(bytes, 1, DEBUG_OFFSETS_BYTES, f);
	assert_true(n > 0);
	return n;
}

static void set_word(uint8_t *bytes, size_t at, uint64_t value)
{
	memcpy(bytes + at, &value, sizeof(value));
}

static void test_debug_offsets_parse_reads_real_tables(void **state)
{
	static const struct {
		const char *name;
		uint8_t minor, tagged_mask;
		uint16_t interpreters_head, owner, firsttraceable, thread_id;
		uint32_t threads_head, generation_is_known;
	} cases[] = {
		{ "3.13", 13, 0, 632, 70, 184, 152, 7344, 0 },
		{ "3.14", 14, 3, 808, 74, 192, 152, 7344, 1 },
		{ "3.15", 15, 3, 936, 74, 192, 176, 7336, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint8_t bytes[DEBUG_OFFSETS_BYTES];
		size_t len = read_corpus(cases[i].name, bytes);
		struct py_offsets off;

		if (debug_offsets_parse(bytes, len, &off) < 0)
			fail_msg("%s: refused", cases[i].name);
		if (off.minor != cases[i].minor || off.tagged_mask != cases[i].tagged_mask ||
		    off.runtime_interpreters_head != cases[i].interpreters_head ||
		    off.frame_owner != cases[i].owner ||
		    off.code_firsttraceable != cases[i].firsttraceable ||
		    off.tstate_thread_id != cases[i].thread_id ||
		    off.interp_threads_head != cases[i].threads_head || off.is_best_effort ||
		    off.is_free_threaded || off.frame_kind != FRAME_INTERNAL ||
		    (off.interp_code_generation != 0) != cases[i].generation_is_known)
			fail_msg("%s: another layout than expected", cases[i].name);
	}
}

static void test_debug_offsets_parse_judges_versions(void **state)
{
	static const struct {
		const char *name;
		const char *table;
		uint32_t version;
		int want;
		bool is_best_effort;
		const char *message;
	} cases[] = {
		{ "release candidate", "3.15", 0x030f00c1, 0, false, NULL },
		{ "beta", "3.15", 0x030f00b2, 0, true, NULL },
		{ "the next minor, same table", "3.15", 0x031000f0, 0, true, NULL },
		{ "the next minor, another table", "3.14", 0x031000f0, -EBADMSG, false, "is cut" },
		{ "beta with another table", "3.15a3-shape-of-3.14", 0x030f00a3, -ENOTSUP, false,
		  "CPython 3.15.0a3 is not supported: _Py_DebugOffsets: " },
		{ "3.14 is no 3.13", "3.14", 0x030d00f0, -EBADMSG, false,
		  "CPython 3.13.0: _Py_DebugOffsets: " },
		{ "3.13 is no 3.14", "3.15a3-shape-of-3.14", 0x030f00f0, -EBADMSG, false,
		  "CPython 3.15.0: _Py_DebugOffsets: " },
		{ "before there was one", "3.13", 0x030c00f0, -ENOTSUP, false,
		  "CPython 3.12.0: not a version with _Py_DebugOffsets" },
		{ "4.0", "3.13", 0x040000f0, -ENOTSUP, false, "CPython 4.0.0" },
		{ "0", "3.13", 0, -ENOTSUP, false, "CPython 0.0.0" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint8_t bytes[DEBUG_OFFSETS_BYTES];
		size_t len = read_corpus(cases[i].table, bytes);
		struct py_offsets off = { .minor = 99 };
		int r;

		set_word(bytes, VERSION_AT, cases[i].version);
		r = debug_offsets_parse(bytes, len, &off);
		if (r != cases[i].want)
			fail_msg("%s: got %d, want %d", cases[i].name, r, cases[i].want);
		if (r < 0 && (!strstr(err_message(r), cases[i].message) || off.minor != 99))
			fail_msg("%s: %s", cases[i].name, err_message(r));
		if (r < 0)
			continue;
		if (off.is_best_effort != cases[i].is_best_effort)
			fail_msg("%s: is_best_effort %d", cases[i].name, off.is_best_effort);
		/* What only the headers of that very version say is not guessed. */
		if ((off.code_firsttraceable == OFF_NONE) != cases[i].is_best_effort ||
		    (off.code_version == OFF_NONE) != cases[i].is_best_effort)
			fail_msg("%s: guessed", cases[i].name);
	}
}

/* Each number that is used, one at a time, given values that no interpreter has. */
static void test_debug_offsets_parse_refuses_each_wild_number(void **state)
{
	static const uint64_t wild[] = {
		1,          3,          OFF_NONE,         0x10000,    0x100000,
		UINT32_MAX, 1ull << 32, (1ull << 32) + 8, 1ull << 63, UINT64_MAX - 7,
		UINT64_MAX
	};
	static const char *const tables[] = { "3.13", "3.14", "3.15" };

	(void)state;
	for (size_t t = 0; t < sizeof(tables) / sizeof(*tables); t++) {
		const struct debug_shape *shape = debug_shape_find(13 + t);
		uint8_t bytes[DEBUG_OFFSETS_BYTES], copy[DEBUG_OFFSETS_BYTES];
		size_t len = read_corpus(tables[t], bytes);
		/* The members behind bytes are all uint16_t. */
		const uint16_t *at = &shape->runtime_size;
		const size_t count =
			(sizeof(*shape) - offsetof(struct debug_shape, runtime_size)) / 2;

		for (size_t i = 0; i < count; i++) {
			for (size_t w = 0; at[i] && w < sizeof(wild) / sizeof(*wild); w++) {
				struct py_offsets off;

				/* Sizes and places in PyInterpreterState may be large, owner odd,
				 * and the places of a free-threaded build are not read. */
				if (at[i] == shape->runtime_size || at[i] == shape->frame_owner ||
				    at[i] == shape->frame_tlbc_index || at[i] == shape->code_tlbc ||
				    ((at[i] >= shape->interp_size && at[i] < shape->tstate_size) &&
				     wild[w] <= 0x100000))
					continue;
				memcpy(copy, bytes, sizeof(copy));
				set_word(copy, at[i], wild[w]);
				if (debug_offsets_parse(copy, len, &off) != -EBADMSG)
					fail_msg("%s: %llu at %u accepted", tables[t],
						 (unsigned long long)wild[w], at[i]);
			}
		}
	}
}

static void test_debug_offsets_parse_refuses_what_is_no_table(void **state)
{
	uint8_t bytes[DEBUG_OFFSETS_BYTES];
	size_t len = read_corpus("3.14", bytes);
	struct py_offsets off;
	uint32_t version;

	(void)state;
	for (size_t cut = 0; cut < len; cut++)
		assert_int_equal(debug_offsets_parse(bytes, cut, &off),
				 cut < DEBUG_OFFSETS_HEAD ? -ENODATA : -EBADMSG);
	assert_true(debug_offsets_version(bytes, DEBUG_OFFSETS_HEAD, &version));
	assert_int_equal(version, 0x030e0af0);

	/* Objects of a free-threaded build are larger, so a wrong flag shows. */
	set_word(bytes, FREE_THREADED_AT, 1);
	assert_int_equal(debug_offsets_parse(bytes, len, &off), -EBADMSG);
	set_word(bytes, FREE_THREADED_AT, 2);
	assert_int_equal(debug_offsets_parse(bytes, len, &off), -EBADMSG);
	bytes[0] ^= 1;
	assert_int_equal(debug_offsets_parse(bytes, len, &off), -ENODATA);
	memset(bytes, 0, sizeof(bytes)); /* what 3.12 has there */
	assert_int_equal(debug_offsets_parse(bytes, len, &off), -ENODATA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_debug_offsets_parse_reads_real_tables),
		cmocka_unit_test(test_debug_offsets_parse_judges_versions),
		cmocka_unit_test(test_debug_offsets_parse_refuses_each_wild_number),
		cmocka_unit_test(test_debug_offsets_parse_refuses_what_is_no_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
