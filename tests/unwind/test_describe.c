/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Descriptions of code objects: what user space gets to name frames with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "rows.h"
#include "world.h"

#define ID 0x1122334455667789ull
#define TABLE_BYTES (180 * 1024)
#define NO_LINES ((const __u8 *)"")

struct text_case {
	const char *name;
	enum text_shape shape;
	unsigned kind;
	size_t length; /* characters */
	bool is_cut;
};

static void fill(__u8 *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (__u8)(i * 7 + i / 251 + 1);
}

/* Describes a code object with these texts, which are told apart by their first byte. */
static void check_text(const struct row *row, const struct text_case *c)
{
	static const __u8 lines[] = { 9, 8, 7 };
	struct code_event e;
	struct code_parts parts = { .first_line = 42 };
	const __u8 *message = unwinder_scratch()->message;
	size_t bytes = c->length * c->kind, want = bytes;
	__u8 *name = malloc(bytes + 1), *file = malloc(bytes + 1);
	struct world w;
	__u64 code;
	int n;

	assert_non_null(name);
	assert_non_null(file);
	fill(name, bytes);
	fill(file, bytes);
	file[0] = 0xee;
	if (want > STRING_BYTES_MAX)
		want = STRING_BYTES_MAX;
	if (c->shape == TEXT_LEGACY)
		want = 0;

	world_init(&w, &row->off);
	parts.name = world_text(&w, c->shape, c->kind, name, c->length, -1);
	parts.qualname = parts.name;
	parts.filename = world_text(&w, c->shape, c->kind, file, c->length, -1);
	parts.lines = world_bytes(&w, lines, sizeof(lines));
	code = world_code_of(&w, &parts);
	unwinder_scratch()->walk.process = WORLD_PROCESS;
	n = unwinder_describe(w.off, ID, code);
	memcpy(&e, message, sizeof(e));
	if (n != (int)(sizeof(e) + 2 * want + sizeof(lines)))
		world_fail(row->name, c->name, "%d bytes, want %zu", n,
			   sizeof(e) + 2 * want + sizeof(lines));
	else if (e.kind != EVENT_CODE || e.code != ID || e.process != WORLD_PROCESS ||
		 e.first_line != 42)
		world_fail(row->name, c->name, "wrong head");
	else if (e.filename_bytes != want || e.name_bytes != want ||
		 e.lines_bytes != sizeof(lines) || e.lines_total != sizeof(lines))
		world_fail(row->name, c->name, "lengths %u, %u, %u of %u", e.filename_bytes,
			   e.name_bytes, e.lines_bytes, e.lines_total);
	else if (e.filename_kind != (c->shape == TEXT_LEGACY ? 0 : c->kind) ||
		 e.name_kind != e.filename_kind)
		world_fail(row->name, c->name, "kinds %u, %u", e.filename_kind, e.name_kind);
	else if (e.is_cut != (c->is_cut ? 3 : 0))
		world_fail(row->name, c->name, "is_cut %u", e.is_cut);
	else if (memcmp(message + sizeof(e), file, want) ||
		 memcmp(message + sizeof(e) + want, name, want) ||
		 memcmp(message + sizeof(e) + 2 * want, lines, sizeof(lines)))
		world_fail(row->name, c->name, "wrong bytes");
	else if (e.lines_addr != parts.lines + w.off->bytes_data)
		world_fail(row->name, c->name, "wrong address of the line table");
	world_release(&w);
	free(name);
	free(file);
}

static void test_describe_copies_every_kind_of_text(void **state)
{
	static const struct text_case cases[] = {
		{ "ASCII", TEXT_ASCII, 1, 12, false },
		{ "ASCII, empty", TEXT_ASCII, 1, 0, false },
		{ "ASCII, one", TEXT_ASCII, 1, 1, false },
		{ "Latin-1", TEXT_COMPACT, 1, 12, false },
		{ "UCS-2", TEXT_COMPACT, 2, 12, false },
		{ "UCS-4", TEXT_COMPACT, 4, 12, false },
		{ "ASCII, the longest", TEXT_ASCII, 1, STRING_BYTES_MAX, false },
		{ "UCS-2, the longest", TEXT_COMPACT, 2, STRING_BYTES_MAX / 2, false },
		{ "UCS-4, the longest", TEXT_COMPACT, 4, STRING_BYTES_MAX / 4, false },
		{ "ASCII, one too long", TEXT_ASCII, 1, STRING_BYTES_MAX + 1, true },
		{ "UCS-2, one too long", TEXT_COMPACT, 2, STRING_BYTES_MAX / 2 + 1, true },
		{ "UCS-4, one too long", TEXT_COMPACT, 4, STRING_BYTES_MAX / 4 + 1, true },
		{ "10000 of ASCII", TEXT_ASCII, 1, 10000, true },
		{ "10000 of UCS-4", TEXT_COMPACT, 4, 10000, true },
		{ "not compact", TEXT_LEGACY, 1, 12, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (unsigned v = 0; v < row_count; v++)
			check_text(&rows[v], &cases[i]);
}

/* The name shown: qualname from 3.11. */
static void test_describe_prefers_the_qualified_name(void **state)
{
	(void)state;
	for (unsigned v = 0; v < row_count; v++) {
		const char *want = rows[v].off.minor >= 11 ? "Outer.name" : "name";
		const __u8 *message = unwinder_scratch()->message;
		struct code_event e;
		struct code_parts parts;
		struct world w;
		int n;

		world_init(&w, &rows[v].off);
		parts = (struct code_parts){ .name = world_str(&w, "name"),
					     .qualname = world_str(&w, "Outer.name"),
					     .filename = world_str(&w, "f"),
					     .lines = world_bytes(&w, NO_LINES, 0) };
		n = unwinder_describe(w.off, ID, world_code_of(&w, &parts));
		memcpy(&e, message, sizeof(e));
		if (n < 0 || e.name_bytes != strlen(want) ||
		    memcmp(message + sizeof(e) + e.filename_bytes, want, strlen(want)))
			world_fail(rows[v].name, "qualified name", "another name");
		world_release(&w);
	}
}

/* Lengths and states that no str has. */
static void test_describe_refuses_wild_texts(void **state)
{
	static const struct {
		const char *name;
		unsigned kind; /* in the state word */
		__u64 length;
		unsigned want_bytes, want_kind;
		bool is_cut;
	} cases[] = {
		{ "kind 0", 0, 4, 0, 0, false },
		{ "kind 3", 3, 4, 0, 0, false },
		{ "kind 7", 7, 4, 0, 0, false },
		{ "length -1", 1, UINT64_MAX, STRING_BYTES_MAX, 1, true },
		{ "length 2^63, kind 4", 4, 1ull << 63, STRING_BYTES_MAX, 4, true },
		{ "length 2^32, kind 2", 2, 1ull << 32, STRING_BYTES_MAX, 2, true },
		{ "length 2^62, kind 4", 4, 1ull << 62, STRING_BYTES_MAX, 4, true },
	};
	static const __u8 text[STRING_BYTES_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (unsigned v = 0; v < row_count; v++) {
			const struct py_offsets *off = &rows[v].off;
			struct code_event e;
			struct code_parts parts;
			struct world w;
			int n;

			world_init(&w, off);
			parts = (struct code_parts){
				.filename = world_str(&w, "f"),
				.name = world_text(&w, TEXT_COMPACT, 1, text, sizeof(text), 1),
				.lines = world_bytes(&w, NO_LINES, 0),
			};
			parts.qualname = parts.name;
			memory_write_u64(w.m, parts.name + off->str_length, cases[i].length);
			memory_write_u32(w.m, parts.name + off->str_state,
					 cases[i].kind << off->str_kind_shift |
						 1u << off->str_compact_bit);
			n = unwinder_describe(off, ID, world_code_of(&w, &parts));
			memcpy(&e, unwinder_scratch()->message, sizeof(e));
			if (n < 0 || e.name_bytes != cases[i].want_bytes ||
			    e.name_kind != cases[i].want_kind ||
			    e.is_cut != (cases[i].is_cut ? 2 : 0))
				world_fail(rows[v].name, cases[i].name,
					   "%d: %u bytes of kind %u, is_cut %u", n, e.name_bytes,
					   e.name_kind, e.is_cut);
			world_release(&w);
		}
}

/* --- Line tables --------------------------------------------------------------------------------
 */

static void test_describe_sends_line_tables_in_pieces(void **state)
{
	static const size_t lengths[] = { 0,
					  1,
					  LINES_CHUNK - 1,
					  LINES_CHUNK,
					  LINES_CHUNK + 1,
					  2 * LINES_CHUNK,
					  LINES_CHUNK * LINES_CHUNKS_MAX + 5,
					  TABLE_BYTES };
	static __u8 table[TABLE_BYTES], got[TABLE_BYTES];
	const __u8 *message = unwinder_scratch()->message;

	(void)state;
	fill(table, sizeof(table));
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (unsigned v = 0; v < row_count; v++) {
			size_t len = lengths[i], have;
			struct code_event e;
			struct code_parts parts;
			struct world w;
			int n;

			world_init(&w, &rows[v].off);
			parts = (struct code_parts){ .name = world_str(&w, "generated"),
						     .qualname = world_str(&w, "generated"),
						     .filename = world_str(&w, "<string>"),
						     .lines = world_bytes(&w, table, len) };
			n = unwinder_describe(w.off, ID, world_code_of(&w, &parts));
			memcpy(&e, message, sizeof(e));
			if (n < 0 || e.lines_total != len ||
			    e.lines_bytes != (len < LINES_CHUNK ? len : LINES_CHUNK)) {
				world_fail(rows[v].name, "line table", "%d: %u of %u, want %zu", n,
					   e.lines_bytes, e.lines_total, len);
				world_release(&w);
				continue;
			}
			have = e.lines_bytes;
			memcpy(got, message + n - have, have);
			for (unsigned chunk = 1; have < len; chunk++) {
				struct lines_event l;

				n = unwinder_describe_lines(ID, e.lines_addr, e.lines_total, chunk);
				if (n < (int)sizeof(l))
					break;
				memcpy(&l, message, sizeof(l));
				if (l.kind != EVENT_LINES || l.code != ID || l.offset != have ||
				    l.bytes != n - sizeof(l) || l.bytes > LINES_CHUNK)
					break;
				memcpy(got + have, message + sizeof(l), l.bytes);
				have += l.bytes;
			}
			if (have != len || memcmp(got, table, len))
				world_fail(rows[v].name, "line table", "%zu bytes right of %zu",
					   have, len);
			if (unwinder_describe_lines(ID, e.lines_addr, e.lines_total,
						    (len + LINES_CHUNK - 1) / LINES_CHUNK) !=
			    PY_FAULT)
				world_fail(rows[v].name, "line table", "a piece behind its end");
			world_release(&w);
		}
}

/* A length that no bytes object has: described without lines, whatever lies there. */
static void test_describe_sends_no_lines_of_a_wild_table(void **state)
{
	static __u8 table[2 * LINES_CHUNK];
	static const __u64 lengths[] = { UINT64_MAX, 1ull << 63, 1ull << 32, 0x80000000 };

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (unsigned v = 0; v < row_count; v++) {
			struct code_event e;
			struct code_parts parts;
			struct world w;
			int n;

			world_init(&w, &rows[v].off);
			parts = (struct code_parts){ .name = world_str(&w, "wild"),
						     .qualname = world_str(&w, "wild"),
						     .filename = world_str(&w, "<string>"),
						     .lines = world_bytes(&w, table,
									  sizeof(table)) };
			memory_write_u64(w.m, parts.lines + w.off->bytes_size, lengths[i]);
			n = unwinder_describe(w.off, ID, world_code_of(&w, &parts));
			memcpy(&e, unwinder_scratch()->message, sizeof(e));
			if (n < 0 || e.lines_total || e.lines_bytes)
				world_fail(rows[v].name, "wild length", "%d: %u bytes of %u", n,
					   e.lines_bytes, e.lines_total);
			world_release(&w);
		}
}

/* --- Missing pages ------------------------------------------------------------------------------
 */

enum part { PART_CODE, PART_FILENAME, PART_NAME, PART_LINES, PART_COUNT };

/* Nothing is sent of what cannot be read whole; task work reads it in. */
static void test_describe_needs_every_part(void **state)
{
	static const char *const names[] = { "code object", "file name", "name", "line table" };
	static __u8 table[2 * LINES_CHUNK];

	(void)state;
	for (unsigned v = 0; v < row_count; v++)
		for (enum part part = 0; part < PART_COUNT; part++) {
			__u64 at[PART_COUNT];
			struct code_parts parts = { .first_line = 1 };
			struct world w;
			int n;

			world_init(&w, &rows[v].off);
			world_new_page(&w);
			at[PART_FILENAME] = parts.filename = world_str(&w, "file");
			world_new_page(&w);
			at[PART_NAME] = parts.name = parts.qualname = world_str(&w, "name");
			world_new_page(&w);
			at[PART_LINES] = parts.lines = world_bytes(&w, table, sizeof(table));
			world_new_page(&w);
			at[PART_CODE] = world_code_of(&w, &parts);
			memory_swap_out(w.m, at[part], 16);
			unwinder_scratch()->walk.faults = 0;
			n = unwinder_describe(w.off, ID, at[PART_CODE]);
			if (n != PY_FAULT)
				world_fail(rows[v].name, names[part], "%d, want PY_FAULT", n);
			for (__u32 i = 0; i < unwinder_scratch()->walk.faults; i++)
				memory_read_in(unwinder_scratch()->faults[i].addr,
					       unwinder_scratch()->faults[i].bytes);
			n = unwinder_describe(w.off, ID, at[PART_CODE]);
			if (n < 0)
				world_fail(rows[v].name, names[part], "not read in: %d", n);
			world_release(&w);
		}
}

/* A name that ends with its page: no byte behind it is asked for. */
static void test_describe_reads_no_byte_behind_the_objects(void **state)
{
	(void)state;
	for (unsigned v = 0; v < row_count; v++) {
		const struct py_offsets *off = &rows[v].off;
		struct code_parts parts = { .first_line = 1 };
		const char *name = "last_on_its_page";
		__u64 end = WORLD_HEAP + 0x10000000;
		struct world w;
		int n;

		world_init(&w, off);
		parts.name = end + PAGE_BYTES - off->str_ascii_data - strlen(name);
		parts.qualname = parts.filename = parts.name;
		memory_write_u64(w.m, parts.name + off->str_length, strlen(name));
		memory_write_u32(w.m, parts.name + off->str_state,
				 1u << off->str_kind_shift | 1u << off->str_compact_bit |
					 1u << off->str_ascii_bit);
		memory_write(w.m, parts.name + off->str_ascii_data, name, strlen(name));
		parts.lines = end + 0x100000 + PAGE_BYTES - off->bytes_data;
		memory_write_u64(w.m, parts.lines + off->bytes_size, 0);
		n = unwinder_describe(off, ID, world_code_of(&w, &parts));
		if (n != (int)(sizeof(struct code_event) + 2 * strlen(name)))
			world_fail(rows[v].name, "end of a page", "%d", n);
		world_release(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_describe_copies_every_kind_of_text),
		WORLD_TEST(test_describe_prefers_the_qualified_name),
		WORLD_TEST(test_describe_refuses_wild_texts),
		WORLD_TEST(test_describe_sends_line_tables_in_pieces),
		WORLD_TEST(test_describe_sends_no_lines_of_a_wild_table),
		WORLD_TEST(test_describe_needs_every_part),
		WORLD_TEST(test_describe_reads_no_byte_behind_the_objects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
