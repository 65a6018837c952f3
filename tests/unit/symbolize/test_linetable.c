/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/linetable.h"

/* Head byte of a 3.11+ entry that covers `units` code units, 1..8. */
#define ENTRY(kind, units) (0x7f + 8 * (kind) + (units))
#define MINUS(n) (256 - (n))

static const struct {
	const char *name;
	enum lines_format format;
	uint8_t table[16];
	size_t len;
	int first;
	uint32_t instr;
	int want;
} cases[] = {
	/* lnotab: pairs of byte delta, line delta */
	{ "lnotab: empty table is one line", LINES_LNOTAB, { 0 }, 0, 10, 4, 10 },
	{ "lnotab: before the first step", LINES_LNOTAB, { 6, 1 }, 2, 10, 4, 10 },
	{ "lnotab: at the first step", LINES_LNOTAB, { 6, 1 }, 2, 10, 6, 11 },
	{ "lnotab: no byte delta changes the start", LINES_LNOTAB, { 0, 1, 8, 2 }, 4, 10, 0, 11 },
	{ "lnotab: lines go backward", LINES_LNOTAB, { 6, MINUS(3) }, 2, 10, 6, 7 },
	{ "lnotab: line jump over 127", LINES_LNOTAB, { 6, 127, 0, 73 }, 4, 10, 6, 210 },
	{ "lnotab: byte jump over 255", LINES_LNOTAB, { 255, 0, 45, 1 }, 4, 10, 299, 10 },
	{ "lnotab: behind a jump over 255", LINES_LNOTAB, { 255, 0, 45, 1 }, 4, 10, 300, 11 },
	{ "lnotab: last line has no end", LINES_LNOTAB, { 6, 1 }, 2, 10, INT32_MAX, 11 },
	{ "lnotab: line below 1", LINES_LNOTAB, { 6, MINUS(20) }, 2, 10, 6, 0 },
	{ "lnotab: half a pair", LINES_LNOTAB, { 6, 1, 6 }, 3, 10, 6, -EBADMSG },
	{ "lnotab: before half a pair", LINES_LNOTAB, { 6, 1, 6 }, 3, 10, 4, 10 },

	/* 3.10: pairs of length, line delta */
	{ "3.10: empty table", LINES_DELTAS, { 0 }, 0, 10, 0, 0 },
	{ "3.10: delta holds at once", LINES_DELTAS, { 4, 1, 2, 1 }, 4, 10, 0, 11 },
	{ "3.10: second entry", LINES_DELTAS, { 4, 1, 2, 1 }, 4, 10, 4, 12 },
	{ "3.10: past the end", LINES_DELTAS, { 4, 1, 2, 1 }, 4, 10, 6, 0 },
	{ "3.10: -128 is no line", LINES_DELTAS, { 4, 1, 2, 128, 2, 1 }, 6, 10, 4, 0 },
	{ "3.10: -128 keeps the running line", LINES_DELTAS, { 4, 1, 2, 128, 2, 1 }, 6, 10, 6, 12 },
	{ "3.10: empty ranges add up", LINES_DELTAS, { 0, 127, 0, 127, 2, 1 }, 6, 10, 0, 265 },
	{ "3.10: lines go backward", LINES_DELTAS, { 4, 5, 2, MINUS(4) }, 4, 10, 4, 11 },
	{ "3.10: long range continues", LINES_DELTAS, { 254, 1, 254, 0 }, 4, 10, 300, 11 },
	{ "3.10: half a pair", LINES_DELTAS, { 4, 1, 2 }, 3, 10, 4, -EBADMSG },

	/* 3.11+: location entries */
	{ "short form keeps the line", LINES_LOCATIONS, { ENTRY(0, 1), 0 }, 2, 10, 0, 10 },
	{ "one-line form adds 0..2", LINES_LOCATIONS, { ENTRY(12, 1), 0, 0 }, 3, 10, 0, 12 },
	{ "no-columns form is signed", LINES_LOCATIONS, { ENTRY(13, 1), 3 }, 2, 10, 0, 9 },
	{ "long form skips three varints",
	  LINES_LOCATIONS,
	  { ENTRY(14, 1), 4, 0, 65, 1, 1, ENTRY(11, 1), 0, 0 },
	  9,
	  10,
	  2,
	  13 },
	{ "no location", LINES_LOCATIONS, { ENTRY(15, 1) }, 1, 10, 0, 0 },
	{ "no location keeps the running line",
	  LINES_LOCATIONS,
	  { ENTRY(12, 1), 0, 0, ENTRY(15, 1), ENTRY(0, 1), 0 },
	  6,
	  10,
	  4,
	  12 },
	{ "second entry", LINES_LOCATIONS, { ENTRY(0, 2), 0, ENTRY(11, 1), 0, 0 }, 5, 10, 4, 11 },
	{ "eight units", LINES_LOCATIONS, { ENTRY(0, 8), 0, ENTRY(11, 1), 0, 0 }, 5, 10, 15, 10 },
	{ "past the end", LINES_LOCATIONS, { ENTRY(0, 1), 0 }, 2, 10, 2, 0 },
	{ "empty table", LINES_LOCATIONS, { 0 }, 0, 10, 0, 0 },
	{ "line 0 of a module", LINES_LOCATIONS, { ENTRY(13, 1), 3 }, 2, 1, 0, 0 },
	{ "two-byte varint", LINES_LOCATIONS, { ENTRY(13, 1), 64 | 2, 3 }, 3, 10, 0, 107 },
	{ "torn entry", LINES_LOCATIONS, { ENTRY(14, 1), 4, 0 }, 3, 10, 0, -EBADMSG },
	{ "head inside an entry",
	  LINES_LOCATIONS,
	  { ENTRY(13, 1), ENTRY(0, 1), 0 },
	  3,
	  10,
	  0,
	  -EBADMSG },
	{ "no head", LINES_LOCATIONS, { 5, 5 }, 2, 10, 0, -EBADMSG },
	{ "varint without end",
	  LINES_LOCATIONS,
	  { ENTRY(13, 1), 64, 64, 64, 64, 64, 64, 0 },
	  8,
	  10,
	  0,
	  -EBADMSG },
	{ "line beyond 31 bits",
	  LINES_LOCATIONS,
	  { ENTRY(13, 1), 126, 127, 127, 127, 127, 3 },
	  7,
	  10,
	  0,
	  0 },
	{ "a frame that has not started", LINES_LNOTAB, { 6, 1 }, 2, 10, UINT32_MAX, 0 },
	{ "unknown format", (enum lines_format)7, { 6, 1 }, 2, 10, 0, -EBADMSG },
};

static void test_linetable_line_reads_each_entry_form(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int got = linetable_line(cases[i].format, cases[i].table, cases[i].len,
					 cases[i].first, cases[i].instr);

		if (got != cases[i].want)
			fail_msg("%s: got %d, want %d", cases[i].name, got, cases[i].want);
	}
}

static void test_lines_find_agrees_with_linetable_line(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct lines l;
		int got;

		lines_init(&l, cases[i].format, cases[i].first);
		lines_extend(&l, cases[i].table, cases[i].len, cases[i].len);
		got = lines_find(&l, cases[i].instr);
		if (got != cases[i].want)
			fail_msg("%s: got %d, want %d", cases[i].name, got, cases[i].want);
		lines_release(&l);
	}
}

/* Byte by byte: what is known is right, what is not says so, the end is that of one call. */
static void test_lines_extend_takes_any_prefix(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct lines l;
		int got = 0;

		lines_init(&l, cases[i].format, cases[i].first);
		for (size_t len = 0; len <= cases[i].len; len++) {
			lines_extend(&l, cases[i].table, len, cases[i].len);
			got = lines_find(&l, cases[i].instr);
			if (got != cases[i].want && (got != -ENODATA || len == cases[i].len))
				fail_msg("%s: %zu bytes: got %d, want %d", cases[i].name, len, got,
					 cases[i].want);
		}
		if (cases[i].len && l.state == LINES_PARTIAL)
			fail_msg("%s: never finished", cases[i].name);
		lines_release(&l);
	}
}

static void test_lines_extend_keeps_what_is_before_a_tear(void **state)
{
	static const uint8_t table[] = { ENTRY(11, 1), 0, 0, ENTRY(14, 1), 4 };
	struct lines l;

	(void)state;
	lines_init(&l, LINES_LOCATIONS, 10);
	assert_int_equal(lines_extend(&l, table, sizeof(table), sizeof(table)), -EBADMSG);
	assert_int_equal(l.state, LINES_TORN);
	assert_int_equal(lines_find(&l, 0), 11);
	assert_int_equal(lines_find(&l, 2), -EBADMSG);
	assert_int_equal(lines_extend(&l, table, sizeof(table), sizeof(table)), -EBADMSG);
	lines_release(&l);
}

static void test_lines_extend_joins_ranges_on_one_line(void **state)
{
	static const uint8_t table[] = { ENTRY(0, 8), 0, ENTRY(0, 8), 0, ENTRY(10, 8), 0, 0 };
	struct lines l;

	(void)state;
	lines_init(&l, LINES_LOCATIONS, 10);
	assert_int_equal(lines_extend(&l, table, sizeof(table), sizeof(table)), 0);
	assert_int_equal(l.count, 1);
	assert_int_equal(l.capacity, 1);
	assert_int_equal(l.ranges[0].end, 48);
	assert_int_equal(lines_bytes(&l), sizeof(struct lines_range));
	lines_release(&l);
}

/* The worst bytes a table of the largest size can hold, in each format. */
static void test_lines_extend_is_bounded(void **state)
{
	static const struct {
		const char *name;
		enum lines_format format;
		uint8_t pattern[8];
		size_t len;
	} worst[] = {
		{ "lnotab: a range in each pair", LINES_LNOTAB, { 2, 127, 2, 127 }, 4 },
		{ "3.10: a range in each pair", LINES_DELTAS, { 2, 128, 2, 127 }, 4 },
		{ "3.11: largest delta up",
		  LINES_LOCATIONS,
		  { ENTRY(13, 1), 126, 127, 127, 127, 127, 3, ENTRY(15, 1) },
		  8 },
		{ "3.11: a range in 1.5 bytes",
		  LINES_LOCATIONS,
		  { ENTRY(13, 1), 2, ENTRY(15, 1) },
		  3 },
	};
	uint8_t *table = malloc(LINETABLE_BYTES_MAX);

	(void)state;
	assert_non_null(table);
	for (size_t i = 0; i < sizeof(worst) / sizeof(worst[0]); i++) {
		size_t len = LINETABLE_BYTES_MAX / worst[i].len * worst[i].len;
		struct lines l;
		int r;

		for (size_t at = 0; at < len; at += worst[i].len)
			memcpy(table + at, worst[i].pattern, worst[i].len);
		lines_init(&l, worst[i].format, INT32_MAX);
		r = lines_extend(&l, table, len, len);
		if (r != 0 || l.state != LINES_WHOLE)
			fail_msg("%s: %d", worst[i].name, r);
		if (lines_bytes(&l) > 8 * (size_t)LINETABLE_BYTES_MAX)
			fail_msg("%s: %zu bytes", worst[i].name, lines_bytes(&l));
		if (linetable_line(worst[i].format, table, len, INT32_MIN, INT32_MAX) < 0)
			fail_msg("%s: refused", worst[i].name);
		lines_release(&l);
	}
	free(table);
}

static void test_linetable_refuses_tables_beyond_the_limit(void **state)
{
	struct lines l;

	(void)state;
	lines_init(&l, LINES_LNOTAB, 1);
	assert_int_equal(linetable_line(LINES_LNOTAB, NULL, LINETABLE_BYTES_MAX + 1, 1, 0), -E2BIG);
	assert_int_equal(lines_extend(&l, NULL, 0, LINETABLE_BYTES_MAX + 1), -E2BIG);
	lines_release(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_linetable_line_reads_each_entry_form),
		cmocka_unit_test(test_lines_find_agrees_with_linetable_line),
		cmocka_unit_test(test_lines_extend_takes_any_prefix),
		cmocka_unit_test(test_lines_extend_keeps_what_is_before_a_tear),
		cmocka_unit_test(test_lines_extend_joins_ranges_on_one_line),
		cmocka_unit_test(test_lines_extend_is_bounded),
		cmocka_unit_test(test_linetable_refuses_tables_beyond_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
