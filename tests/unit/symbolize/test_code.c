/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/code.h"
#include "symbolize/linetable.h"

#define ASCII(text)                                                                  \
	{                                                                            \
		.bytes = (const uint8_t *)(text), .len = sizeof(text) - 1, .kind = 1 \
	}
#define UNREAD            \
	{                 \
		.kind = 0 \
	}

static struct code_table *table_new(size_t bytes_max)
{
	struct code_table *t = NULL;

	assert_int_equal(code_table_new(bytes_max, &t), 0);
	return t;
}

static void test_code_table_add_names_what_it_can(void **state)
{
	static const char long_name[STRING_BYTES_MAX + 1];
	static const struct {
		const char *name;
		struct pystring qualname, file;
		int32_t first_line;
		uint32_t lines_total;
		const char *want_name, *want_file;
		uint32_t want_name_len;
		int32_t want_first_line;
		uint32_t want_flags;
	} cases[] = {
		{ "plain", ASCII("A.run"), ASCII("/a.py"), 7, 0, "A.run", "/a.py", 5, 7, 0 },
		{ "empty names are names", ASCII(""), ASCII(""), 7, 0, "", "", 0, 7, 0 },
		{ "name unread", UNREAD, ASCII("/a.py"), 7, 0, "<unknown>", "/a.py", 9, 7,
		  CODE_NAME_MISSING },
		{ "file unread", ASCII("f"), UNREAD, 7, 0, "f", "<unknown>", 1, 7,
		  CODE_FILE_MISSING },
		{ "hostile kind",
		  { .len = 3, .kind = 9 },
		  ASCII("/a.py"),
		  7,
		  0,
		  "<unknown>",
		  "/a.py",
		  9,
		  7,
		  CODE_NAME_MISSING },
		{ "name cut",
		  { .bytes = (const uint8_t *)"abc", .len = 3, .kind = 1, .is_cut = true },
		  ASCII("/a.py"),
		  7,
		  0,
		  "abc\u2026",
		  "/a.py",
		  6,
		  7,
		  CODE_NAME_CUT },
		{ "file cut",
		  ASCII("f"),
		  { .bytes = (const uint8_t *)"/a", .len = 2, .kind = 1, .is_cut = true },
		  7,
		  0,
		  "f",
		  "/a\u2026",
		  1,
		  7,
		  CODE_FILE_CUT },
		{ "name over the limit is cut",
		  { .bytes = (const uint8_t *)long_name, .len = sizeof(long_name), .kind = 1 },
		  ASCII("/a.py"),
		  7,
		  0,
		  "",
		  "/a.py",
		  STRING_BYTES_MAX + 3,
		  7,
		  CODE_NAME_CUT },
		{ "def line 0", ASCII("f"), ASCII("/a.py"), 0, 0, "f", "/a.py", 1, 1, 0 },
		{ "def line below 0", ASCII("f"), ASCII("/a.py"), INT32_MIN, 0, "f", "/a.py", 1, 1,
		  0 },
		{ "lines unread", ASCII("f"), ASCII("/a.py"), 7, CODE_LINES_UNKNOWN, "f", "/a.py",
		  1, 7, CODE_LINES_MISSING },
		{ "table over the limit", ASCII("f"), ASCII("/a.py"), 7, LINETABLE_BYTES_MAX + 1,
		  "f", "/a.py", 1, 7, CODE_LINES_MISSING },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct code_table *t = table_new(CODE_TABLE_BYTES_DEFAULT);
		struct code_desc d = { .identity = i,
				       .format = LINES_LOCATIONS,
				       .first_line = cases[i].first_line,
				       .lines_total = cases[i].lines_total,
				       .name = cases[i].qualname,
				       .file = cases[i].file };
		const struct code *c;
		enum line_state line_state;
		int line;

		assert_int_equal(code_table_add(t, &d), 0);
		c = code_find(t, i);
		assert_non_null(c);
		if (strcmp(c->name, cases[i].want_name) != 0 ||
		    c->name_len != cases[i].want_name_len)
			fail_msg("%s: name \"%s\" (%u)", cases[i].name, c->name, c->name_len);
		if (strcmp(c->file, cases[i].want_file) != 0 || c->file_len != strlen(c->file))
			fail_msg("%s: file \"%s\"", cases[i].name, c->file);
		if (c->first_line != cases[i].want_first_line || c->flags != cases[i].want_flags)
			fail_msg("%s: def line %d, flags %u", cases[i].name, c->first_line,
				 c->flags);
		line = code_line(c, 0, &line_state);
		if (line != c->first_line ||
		    line_state != (c->flags & CODE_LINES_MISSING ? LINE_UNKNOWN : LINE_EXACT))
			fail_msg("%s: line %d, state %d", cases[i].name, line, line_state);
		code_table_free(t);
	}
}

static void test_code_table_add_keeps_the_first(void **state)
{
	struct code_table *t = table_new(CODE_TABLE_BYTES_DEFAULT);
	struct code_desc d = {
		.identity = 5, .first_line = 3, .name = ASCII("f"), .file = ASCII("a")
	};
	struct code_desc other = {
		.identity = 5, .first_line = 9, .name = ASCII("g"), .file = ASCII("b")
	};
	const struct code *c;

	(void)state;
	assert_int_equal(code_table_add(t, &d), 0);
	c = code_find(t, 5);
	assert_int_equal(code_table_add(t, &other), 0);
	assert_ptr_equal(code_find(t, 5), c);
	assert_string_equal(c->name, "f");
	assert_int_equal(c->first_line, 3);
	assert_int_equal(code_table_stats(t)->added, 1);
	assert_int_equal(code_table_stats(t)->duplicates, 1);
	assert_null(code_find(t, 6));
	code_table_free(t);
}

/* Strings on a page that was not present come with a later description. */
static void test_code_table_add_fills_in_what_was_missing(void **state)
{
	static const uint8_t lines[] = { 2, 1, 2, 1 };
	struct code_table *t = table_new(CODE_TABLE_BYTES_DEFAULT);
	struct code_desc d = { .identity = 5,
			       .format = LINES_DELTAS,
			       .first_line = 3,
			       .lines_total = sizeof(lines),
			       .name = UNREAD,
			       .file = ASCII("a") };
	const struct code *c;
	enum line_state line_state;

	(void)state;
	assert_int_equal(code_table_add(t, &d), 0);
	assert_int_equal(code_table_add_lines(t, 5, 2, lines + 2, 2), 0);
	d.file = (struct pystring)UNREAD;
	d.name = (struct pystring)ASCII("f");
	d.lines_total = CODE_LINES_UNKNOWN;
	assert_int_equal(code_table_add(t, &d), 0);
	c = code_find(t, 5);
	assert_string_equal(c->name, "f");
	assert_string_equal(c->file, "a");
	assert_int_equal(c->flags, 0);

	assert_int_equal(code_table_add_lines(t, 5, 0, lines, 2), 0);
	c = code_find(t, 5);
	assert_int_equal(code_line(c, 2, &line_state), 5);
	assert_int_equal(line_state, LINE_EXACT);
	assert_int_equal(code_table_stats(t)->codes, 1);
	assert_int_equal(code_table_stats(t)->evicted, 0);
	code_table_free(t);
}

static void test_code_table_add_refuses_unknown_formats(void **state)
{
	struct code_table *t = table_new(CODE_TABLE_BYTES_DEFAULT);
	struct code_desc d = { .identity = 5, .format = (enum lines_format)3 };

	(void)state;
	assert_int_equal(code_table_add(t, &d), -EINVAL);
	assert_int_equal(code_table_stats(t)->codes, 0);
	code_table_free(t);
}

/* 3.10 table: 8 entries of 2 bytes, instruction 2i on line 11 + i. */
#define STEPS 8

static void test_code_line_with_pieces_in_any_order(void **state)
{
	static const struct {
		const char *name;
		struct {
			uint32_t offset, len;
		} pieces[6];
		int known; /* instructions whose line is known after them */
	} cases[] = {
		{ "none", { { 0, 0 } }, 0 },
		{ "one", { { 0, 16 } }, 8 },
		{ "in order", { { 0, 4 }, { 4, 4 }, { 8, 8 } }, 8 },
		{ "backward", { { 8, 8 }, { 4, 4 }, { 0, 4 } }, 8 },
		{ "middle last", { { 12, 4 }, { 0, 4 }, { 4, 8 } }, 8 },
		{ "twice", { { 4, 12 }, { 4, 12 }, { 0, 4 }, { 0, 4 } }, 8 },
		{ "overlapping", { { 2, 6 }, { 6, 6 }, { 10, 6 }, { 0, 3 } }, 8 },
		{ "one over many",
		  { { 2, 2 }, { 6, 2 }, { 10, 2 }, { 1, 14 }, { 0, 1 }, { 15, 1 } },
		  8 },
		{ "inside an entry", { { 0, 3 }, { 3, 13 } }, 8 },
		{ "first missing", { { 4, 12 } }, 0 },
		{ "hole", { { 0, 4 }, { 8, 8 } }, 2 },
		{ "end missing", { { 0, 15 } }, 7 },
	};
	uint8_t lines[2 * STEPS];

	(void)state;
	for (int i = 0; i < STEPS; i++) {
		lines[2 * i] = 2;
		lines[2 * i + 1] = 1;
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct code_table *t = table_new(CODE_TABLE_BYTES_DEFAULT);
		struct code_desc d = { .identity = 1,
				       .format = LINES_DELTAS,
				       .first_line = 10,
				       .lines_total = sizeof(lines),
				       .name = ASCII("f"),
				       .file = ASCII("a") };

		assert_int_equal(code_table_add(t, &d), 0);
		for (size_t p = 0; p < 6; p++)
			assert_int_equal(code_table_add_lines(t, 1, cases[i].pieces[p].offset,
							      lines + cases[i].pieces[p].offset,
							      cases[i].pieces[p].len),
					 0);
		for (int step = 0; step < STEPS; step++) {
			bool is_known = step < cases[i].known;
			enum line_state line_state;
			int line = code_line(code_find(t, 1), 2 * (uint32_t)step, &line_state);

			if (line != (is_known ? 11 + step : 10) ||
			    line_state != (is_known ? LINE_EXACT : LINE_TO_COME))
				fail_msg("%s: step %d: line %d, state %d", cases[i].name, step,
					 line, line_state);
		}
		code_table_free(t);
	}
}

static void test_code_line_without_a_line_is_the_def_line(void **state)
{
	static const uint8_t lines[] = { 0x80 + 15 * 8, 0x80 + 11 * 8, 0, 0 };
	struct code_table *t = table_new(CODE_TABLE_BYTES_DEFAULT);
	struct code_desc d = { .identity = 1,
			       .format = LINES_LOCATIONS,
			       .first_line = 10,
			       .lines_total = sizeof(lines),
			       .name = ASCII("f"),
			       .file = ASCII("a") };
	enum line_state line_state = LINE_UNKNOWN;

	(void)state;
	assert_int_equal(code_table_add(t, &d), 0);
	assert_int_equal(code_table_add_lines(t, 1, 0, lines, sizeof(lines)), 0);
	assert_int_equal(code_line(code_find(t, 1), 0, &line_state), 10);
	assert_int_equal(line_state, LINE_EXACT);
	assert_int_equal(code_line(code_find(t, 1), 2, &line_state), 11);
	assert_int_equal(code_line(code_find(t, 1), 4, &line_state), 10);
	assert_int_equal(code_line(code_find(t, 1), UINT32_MAX, &line_state), 10);
	assert_int_equal(line_state, LINE_EXACT);
	code_table_free(t);
}

static void test_code_table_add_lines_refuses(void **state)
{
	static const struct {
		const char *name;
		uint64_t identity;
		uint32_t offset;
		size_t len;
		int want;
	} cases[] = {
		{ "inside", 1, 2, 2, 0 },
		{ "nothing at the end", 1, 4, 0, 0 },
		{ "unknown code object", 9, 0, 2, -ENOENT },
		{ "unread table", 2, 0, 2, -ENODATA },
		{ "over the end", 1, 2, 3, -EBADMSG },
		{ "behind the end", 1, 5, 0, -EBADMSG },
		{ "offset that wraps", 1, UINT32_MAX, 2, -EBADMSG },
		{ "length that wraps", 1, 2, SIZE_MAX, -EBADMSG },
		{ "length of 32 bits and more", 1, 2, ((size_t)1 << 32) + 2, -EBADMSG },
	};
	static const uint8_t bytes[2];
	struct code_table *t = table_new(CODE_TABLE_BYTES_DEFAULT);
	struct code_desc d = { .identity = 1, .lines_total = 4 };

	(void)state;
	assert_int_equal(code_table_add(t, &d), 0);
	d.identity = 2;
	d.lines_total = CODE_LINES_UNKNOWN;
	assert_int_equal(code_table_add(t, &d), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int got = code_table_add_lines(t, cases[i].identity, cases[i].offset, bytes,
					       cases[i].len);

		if (got != cases[i].want)
			fail_msg("%s: got %d, want %d", cases[i].name, got, cases[i].want);
	}
	assert_int_equal(code_table_stats(t)->unknown_pieces, 1);
	assert_int_equal(code_table_stats(t)->rejected_pieces, 5);
	code_table_free(t);
}

static void test_code_table_counts_torn_tables_once(void **state)
{
	static const uint8_t lines[] = { 0x80 + 11 * 8, 0, 0, 0x80 + 14 * 8, 4, 5 };
	struct code_table *t = table_new(CODE_TABLE_BYTES_DEFAULT);
	struct code_desc d = { .identity = 1,
			       .format = LINES_LOCATIONS,
			       .first_line = 10,
			       .lines_total = sizeof(lines),
			       .name = ASCII("f"),
			       .file = ASCII("a") };
	enum line_state line_state;

	(void)state;
	assert_int_equal(code_table_add(t, &d), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(code_table_add_lines(t, 1, 0, lines, sizeof(lines)), 0);
	assert_int_equal(code_table_stats(t)->torn_tables, 1);
	assert_int_equal(code_line(code_find(t, 1), 0, &line_state), 11);
	assert_int_equal(line_state, LINE_EXACT);
	assert_int_equal(code_line(code_find(t, 1), 2, &line_state), 10);
	assert_int_equal(line_state, LINE_UNKNOWN);
	code_table_free(t);
}

static void count_forgotten(void *arg, uint64_t identity)
{
	((uint8_t *)arg)[identity]++;
}

/* 20,000 code objects through a table for about 1,000: what is asked for all the time stays. */
static void test_code_table_forgets_what_is_not_asked_for(void **state)
{
	enum { COUNT = 20000, HOT = 50, BYTES_MAX = 256 * 1024 };
	static const uint8_t lines[] = { 2, 1, 2, 1, 2, 1 };
	struct code_table *t = table_new(BYTES_MAX);
	const struct code_stats *stats = code_table_stats(t);
	uint8_t *told = calloc(COUNT, 1);
	size_t held = 0;

	(void)state;
	assert_non_null(told);
	code_table_tell(t, count_forgotten, told);
	for (uint64_t i = 0; i < COUNT; i++) {
		struct code_desc d = { .identity = i,
				       .format = LINES_DELTAS,
				       .first_line = 1,
				       .lines_total = sizeof(lines),
				       .name = ASCII("name"),
				       .file = ASCII("file.py") };

		assert_int_equal(code_table_add(t, &d), 0);
		assert_int_equal(code_table_add_lines(t, i, 0, lines, sizeof(lines)), 0);
		assert_true(stats->bytes <= BYTES_MAX);
		assert_non_null(code_find(t, i));
		for (uint64_t hot = 0; hot < HOT && hot <= i; hot++)
			if (!code_find(t, hot))
				fail_msg("%d: %d was forgotten", (int)i, (int)hot);
	}
	for (uint64_t i = 0; i < COUNT; i++) {
		assert_int_equal(told[i], !code_find(t, i));
		held += !told[i];
	}
	assert_int_equal(held, stats->codes);
	assert_int_equal(stats->evicted, COUNT - held);
	assert_true(held > 500 && held < 2000);
	code_table_free(t);
	free(told);
}

/* One table that takes more than all the memory: the others go, it stays, the next one ends it. */
static void test_code_table_survives_one_that_fills_it(void **state)
{
	enum { LEN = 256 * 1024, BYTES_MAX = 64 * 1024 };
	uint8_t *lines = malloc(LEN);
	struct code_table *t = table_new(BYTES_MAX);
	struct code_desc d = { .identity = 1,
			       .format = LINES_DELTAS,
			       .first_line = 1,
			       .lines_total = 0,
			       .name = ASCII("f"),
			       .file = ASCII("a") };
	enum line_state line_state;

	(void)state;
	assert_non_null(lines);
	for (size_t i = 0; i < LEN; i += 2) {
		lines[i] = 2;
		lines[i + 1] = 1;
	}
	assert_int_equal(code_table_add(t, &d), 0);
	d.identity = 2;
	d.lines_total = LEN;
	assert_int_equal(code_table_add(t, &d), 0);
	assert_int_equal(code_table_add_lines(t, 2, 0, lines, LEN), 0);
	assert_null(code_find(t, 1));
	assert_int_equal(code_line(code_find(t, 2), LEN - 2, &line_state), 1 + LEN / 2);

	for (d.identity = 3; d.identity < 5; d.identity++)
		assert_int_equal(code_table_add(t, &d), 0);
	assert_null(code_find(t, 2));
	assert_true(code_table_stats(t)->bytes <= BYTES_MAX);
	code_table_free(t);
	free(lines);
}

static bool is_even(void *arg, uint64_t process)
{
	++*(size_t *)arg;
	return process % 2 == 0;
}

static void test_code_table_retain_forgets_processes(void **state)
{
	struct code_table *t = table_new(CODE_TABLE_BYTES_DEFAULT);
	size_t empty = code_table_stats(t)->bytes, asked = 0;
	struct code_desc d = { .format = LINES_LOCATIONS,
			       .name = ASCII("f"),
			       .file = ASCII("/f.py") };

	(void)state;
	for (uint64_t i = 0; i < 100; i++) {
		d.identity = 1000 + i;
		d.process = i / 10;
		assert_int_equal(code_table_add(t, &d), 0);
	}
	code_table_retain(t, is_even, &asked);
	assert_int_equal(asked, 100);
	assert_int_equal(code_table_stats(t)->codes, 100); /* all of them are new */
	assert_non_null(code_find(t, 1010));
	code_table_retain(t, is_even, &asked);
	assert_int_equal(code_table_stats(t)->codes, 51);
	for (uint64_t i = 0; i < 100; i++)
		if ((code_find(t, 1000 + i) == NULL) != (i / 10 % 2 == 1 && i != 10))
			fail_msg("code object %d", (int)i);
	d.identity = 1000; /* known, from another process: it is that one's now */
	d.process = 1;
	code_table_add(t, &d);
	code_table_retain(t, is_even, &asked);
	assert_int_equal(code_table_stats(t)->codes, 51);
	code_table_retain(t, is_even, &asked);
	assert_int_equal(code_table_stats(t)->codes, 49);
	code_table_free(t);

	t = table_new(CODE_TABLE_BYTES_DEFAULT);
	assert_int_equal(code_table_add(t, &d), 0);
	code_table_retain(t, is_even, &asked);
	code_table_retain(t, is_even, &asked);
	assert_int_equal(code_table_stats(t)->bytes, empty);
	code_table_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_code_table_retain_forgets_processes),
		cmocka_unit_test(test_code_table_add_names_what_it_can),
		cmocka_unit_test(test_code_table_add_keeps_the_first),
		cmocka_unit_test(test_code_table_add_fills_in_what_was_missing),
		cmocka_unit_test(test_code_table_add_refuses_unknown_formats),
		cmocka_unit_test(test_code_line_with_pieces_in_any_order),
		cmocka_unit_test(test_code_line_without_a_line_is_the_def_line),
		cmocka_unit_test(test_code_table_add_lines_refuses),
		cmocka_unit_test(test_code_table_counts_torn_tables_once),
		cmocka_unit_test(test_code_table_forgets_what_is_not_asked_for),
		cmocka_unit_test(test_code_table_survives_one_that_fills_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
