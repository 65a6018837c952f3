/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Context variables: trees of all shapes, values of all kinds, memory that is none of these. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "hamt.h"
#include "rows.h"

#define VARS_MAX 3000
#define HASH 0x123456789abcdef0ull
#define DIGIT 0x3fffffffu /* the largest */
#define SECOND 1000000000ull
#define READS_MAX 8192 /* of one sample, whatever the memory is */

struct setting {
	struct world w;
	struct hamt_types types;
	__u64 now_ns;
};

static bool begin(struct setting *s, const struct py_offsets *off)
{
	if (!hamt_world(&s->w, &s->types, off))
		return false;
	s->now_ns = 1000 * SECOND;
	unwinder_set_time(s->now_ns);
	return true;
}

static __u64 var_named(struct setting *s, const char *name, __u64 hash)
{
	return hamt_var(&s->w, world_str(&s->w, name), hash);
}

static __u64 small_int(struct setting *s, __u32 value)
{
	return hamt_int(&s->w, s->types.integer, false, &value, value > 0);
}

/* A sample, ten seconds later than the last one: nothing keeps it from a search. */
static const struct labels_event *sample(struct setting *s)
{
	s->now_ns += 10 * SECOND;
	unwinder_set_time(s->now_ns);
	memory_use(s->w.m);
	world_unwind(&s->w);
	return &unwinder_scratch()->labels;
}

/* The value of label `number`, NULL: it has none. */
static const struct label_value *value_of(const struct labels_event *e, unsigned number)
{
	for (unsigned i = 0; i < e->count; i++)
		if (e->values[i].number == number)
			return &e->values[i];
	return NULL;
}

static void check_int(const char *row, const char *name, const struct labels_event *e,
		      unsigned number, __s64 want)
{
	const struct label_value *v = value_of(e, number);

	if (want < 0 && v)
		world_fail(row, name, "label %u has a value", number);
	if (want < 0 || (v && v->kind == LABEL_INT && *(const __u32 *)v->value == want))
		return;
	world_fail(row, name, "label %u: %s", number, v ? "another value" : "none");
}

/* Sets `count` variables, of which the one at `wanted` is the first label's. */
static void enter_with(struct setting *s, const __u32 *hashes, size_t count, size_t wanted)
{
	static struct hamt_item items[VARS_MAX];

	assert_true(count <= VARS_MAX);
	for (size_t i = 0; i < count; i++)
		items[i] = (struct hamt_item){
			.var = var_named(s, i == wanted ? unwinder_variables[0] : "other",
					 hashes[i]),
			.value = small_int(s, (__u32)i + 1),
			.hash = hashes[i],
		};
	hamt_enter(&s->w, hamt_tree(&s->w, &s->types, items, count));
}

/* Low hash bits say the shape; the variable is found wherever it is, by its name and by its hash.
 */
static void test_read_labels_finds_it_in_every_tree(void **state)
{
	static const struct {
		const char *name;
		size_t count;
		__u32 step, first; /* of the hashes */
		bool is_one_hash;
	} cases[] = {
		{ "alone", 1, 1, 7, false },
		{ "one node", 16, 1, 0, false },
		{ "an array", 17, 1, 0, false },
		{ "a full array", 32, 1, 0, false },
		{ "two levels", 64, 1, 0, false },
		{ "an array of arrays", 400, 1, 5, false },
		{ "scattered", 400, 0x9e3779b1, 5, false },
		{ "as deep as it goes", 4, 1u << 30, 0, false },
		{ "one hash", 5, 0, 0xfffffffe, true },
	};

	(void)state;
	for (unsigned i = 0; i < row_count; i++)
		for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
			size_t count = cases[c].count, stride = count > 40 ? 37 : 3;
			__u32 hashes[VARS_MAX];

			for (size_t n = 0; n < count; n++)
				hashes[n] = cases[c].first + (__u32)n * cases[c].step;
			for (size_t wanted = 0; wanted < count; wanted += stride) {
				struct setting s;

				if (!begin(&s, &rows[i].off))
					break;
				enter_with(&s, hashes, count, wanted);
				/* The second time it is known, and no name is looked at. */
				for (int again = 0; again < 2; again++)
					check_int(rows[i].name, cases[c].name, sample(&s), 0,
						  (__s64)wanted + 1);
				world_release(&s.w);
			}
		}
}

/* More than one search goes through: each begins elsewhere. Returns the samples that it took. */
static unsigned find_in_large_tree(const struct row *row, const __u32 *hashes, size_t wanted)
{
	unsigned samples = 1;
	struct setting s;

	if (!begin(&s, &row->off))
		return 2;
	enter_with(&s, hashes, VARS_MAX, wanted);
	for (; samples < 100 && !sample(&s)->count; samples++)
		s.now_ns += 12345678;
	check_int(row->name, "in the end", sample(&s), 0, (__s64)wanted + 1);
	world_release(&s.w);
	return samples;
}

static void test_read_labels_finds_it_in_a_large_tree(void **state)
{
	static __u32 hashes[VARS_MAX];

	(void)state;
	for (size_t n = 0; n < VARS_MAX; n++)
		hashes[n] = (__u32)(n * 0x9e3779b1u);
	for (unsigned i = 0; i < row_count; i++) {
		unsigned most = 0;

		for (size_t wanted = 0; wanted < VARS_MAX; wanted += VARS_MAX / 8) {
			unsigned samples = find_in_large_tree(&rows[i], hashes, wanted);

			most = samples > most ? samples : most;
		}
		if (most < 2)
			world_fail(rows[i].name, "each at once", "the tree is too small");
	}
}

static void check_value(const char *row, const char *name, const struct labels_event *e,
			const struct label_value *want)
{
	const struct label_value *v = value_of(e, 0);

	if (!v)
		world_fail(row, name, "no value");
	else if (memcmp(v, want, sizeof(*v)) != 0)
		world_fail(row, name, "kind %u, %u bytes of %u, cut %u, negative %u; want %u, %u",
			   v->kind, v->bytes, v->char_bytes, v->is_cut, v->is_negative, want->kind,
			   want->bytes);
}

static void test_read_labels_tells_values(void **state)
{
	enum what { TEXT, SUBCLASS, INT, BOOL };
	static const struct {
		const char *name;
		enum what what;
		unsigned char_bytes;
		const char *bytes; /* characters, or digits of an int */
		size_t count;      /* of characters or digits */
		bool is_negative;
	} cases[] = {
		{ "empty str", TEXT, 1, "", 0, false },
		{ "str", TEXT, 1, "/orders", 7, false },
		{ "as long as it may be", TEXT, 1,
		  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", 64, false },
		{ "longer", TEXT, 1,
		  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef!", 65, false },
		{ "two bytes a character", TEXT, 2, "\xac\x20/\0", 2, false },
		{ "four bytes a character", TEXT, 4, "\x00\xf6\x01\0a\0\0\0", 2, false },
		{ "a subclass of str", SUBCLASS, 1, "/enum", 5, false },
		{ "zero", INT, 0, "", 0, false },
		{ "int", INT, 0, "\x2a\0\0\0", 1, false },
		{ "negative", INT, 0, "\x2a\0\0\0", 1, true },
		{ "a trace's id", INT, 0, "\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\5\0\0\0", 5, false },
		{ "False", BOOL, 0, "", 0, false },
		{ "True", BOOL, 0, "\1\0\0\0", 1, false },
	};

	(void)state;
	for (unsigned i = 0; i < row_count; i++)
		for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
			size_t unit = cases[c].what >= INT ? 4 : cases[c].char_bytes;
			size_t bytes = cases[c].count * unit;
			struct label_value want = {
				.kind = cases[c].what == INT    ? LABEL_INT
					: cases[c].what == BOOL ? LABEL_BOOL
								: LABEL_TEXT,
				.char_bytes = cases[c].what >= INT ? 0 : cases[c].char_bytes,
				.is_negative = cases[c].is_negative,
				.is_cut = bytes > LABEL_BYTES_MAX,
				.bytes = bytes > LABEL_BYTES_MAX ? LABEL_BYTES_MAX : bytes,
			};
			struct hamt_item item = { .hash = 3 };
			struct setting s;
			__u64 chars;

			if (!begin(&s, &rows[i].off))
				continue;
			memcpy(want.value, cases[c].bytes, want.bytes);
			item.var = var_named(&s, unwinder_variables[0], 3);
			if (cases[c].what >= INT)
				item.value = hamt_int(
					&s.w,
					cases[c].what == BOOL ? s.types.boolean : s.types.integer,
					cases[c].is_negative, (const __u32 *)cases[c].bytes,
					cases[c].count);
			else
				item.value = hamt_text(&s.w, &s.types,
						       cases[c].what == SUBCLASS ? TEXT_LEGACY
						       : unit == 1               ? TEXT_ASCII
										 : TEXT_COMPACT,
						       cases[c].char_bytes, cases[c].bytes,
						       cases[c].count);
			if (cases[c].what == SUBCLASS) { /* its characters are elsewhere */
				chars = world_bytes(&s.w, cases[c].bytes, bytes) +
					rows[i].off.bytes_data;
				memory_write_u64(s.w.m, item.value + rows[i].off.str_compact_data,
						 chars);
			}
			hamt_enter(&s.w, hamt_tree(&s.w, &s.types, &item, 1));
			check_value(rows[i].name, cases[c].name, sample(&s), &want);
			world_release(&s.w);
		}
}

/* What is no str and no int is told as such, but for None. */
static void test_read_labels_leaves_other_values_out(void **state)
{
	static const __u32 digits[LABEL_BYTES_MAX / 4 + 1] = { 1, 1, 1, 1, DIGIT };
	const char *const names[] = { "None", "another type", "a very large int",
				      "an int of 2^60 digits" };

	(void)state;
	for (unsigned i = 0; i < row_count; i++)
		for (unsigned c = 0; c < sizeof(names) / sizeof(names[0]); c++) {
			const struct labels_event *e;
			struct hamt_item item = { .hash = 3 };
			struct setting s;
			unsigned flags;

			if (!begin(&s, &rows[i].off))
				continue;
			item.var = var_named(&s, unwinder_variables[0], 3);
			item.value = c < 2 ? hamt_object(&s.w, c ? s.types.other : s.types.none)
					   : hamt_int(&s.w, s.types.integer, false, digits,
						      LABEL_BYTES_MAX / 4 + 1);
			if (c == 3)
				memory_write_u64(s.w.m, item.value + rows[i].off.str_length,
						 1ull << 60);
			hamt_enter(&s.w, hamt_tree(&s.w, &s.types, &item, 1));
			e = sample(&s);
			flags = unwinder_scratch()->walk.flags;
			if (e->count || e->labels)
				world_fail(rows[i].name, names[c], "has a value");
			if (!(flags & SAMPLE_LABEL_TYPE) == (c > 0))
				world_fail(rows[i].name, names[c], "flags %#x", flags);
			world_release(&s.w);
		}
}

/* Each label has its variable; sets are told apart by all that is in them. */
static void test_read_labels_tells_sets_apart(void **state)
{
	(void)state;
	for (unsigned i = 0; i < row_count; i++) {
		struct hamt_item items[UNWINDER_LABELS];
		const struct labels_event *e;
		__u64 ids[4];
		struct setting s;

		if (!begin(&s, &rows[i].off))
			continue;
		for (unsigned n = 0; n < UNWINDER_LABELS; n++)
			items[n] = (struct hamt_item){
				.var = var_named(&s, unwinder_variables[n], HASH + n),
				.value = small_int(&s, n + 1),
				.hash = hamt_hash(HASH + n),
			};
		hamt_enter(&s.w, hamt_tree(&s.w, &s.types, items, UNWINDER_LABELS));
		e = sample(&s);
		ids[0] = e->labels;
		for (unsigned n = 0; n < UNWINDER_LABELS; n++)
			check_int(rows[i].name, "all", e, n, n + 1);
		hamt_enter(&s.w, hamt_tree(&s.w, &s.types, items + 1, UNWINDER_LABELS - 1));
		e = sample(&s);
		ids[1] = e->labels;
		check_int(rows[i].name, "all but the first", e, 0, -1);
		check_int(rows[i].name, "all but the first", e, 1, 2);
		items[2].value = items[1].value;
		hamt_enter(&s.w, hamt_tree(&s.w, &s.types, items, UNWINDER_LABELS));
		ids[2] = sample(&s)->labels;
		items[2].value = small_int(&s, 3);
		hamt_enter(&s.w, hamt_tree(&s.w, &s.types, items, UNWINDER_LABELS));
		ids[3] = sample(&s)->labels;
		if (!ids[0] || !ids[1] || ids[0] == ids[1] || ids[0] == ids[2] || ids[1] == ids[2])
			world_fail(rows[i].name, "sets", "one identity");
		if (ids[0] != ids[3])
			world_fail(rows[i].name, "equal sets", "two identities");
		hamt_enter(&s.w, hamt_tree(&s.w, &s.types, items, 0));
		if (sample(&s)->labels)
			world_fail(rows[i].name, "empty set", "an identity");
		world_release(&s.w);
	}
}

/* The variable was freed, and another one, or something else, has its place. */
static void test_read_labels_believes_no_other_variable(void **state)
{
	(void)state;
	for (unsigned i = 0; i < row_count; i++) {
		const struct py_offsets *off = &rows[i].off;
		struct hamt_item item = { .hash = 3 };
		struct setting s;

		if (!begin(&s, off))
			continue;
		item.var = var_named(&s, unwinder_variables[0], 3);
		item.value = small_int(&s, 1);
		hamt_enter(&s.w, hamt_tree(&s.w, &s.types, &item, 1));
		check_int(rows[i].name, "at first", sample(&s), 0, 1);
		memory_write_u64(s.w.m, item.var + off->str_length, world_str(&s.w, "another"));
		memory_write_u64(s.w.m, item.var + off->contextvar_hash, 3 + (1ull << 33));
		check_int(rows[i].name, "another in its place", sample(&s), 0, -1);
		item.var = var_named(&s, unwinder_variables[0], 4);
		item.hash = 4;
		hamt_enter(&s.w, hamt_tree(&s.w, &s.types, &item, 1));
		check_int(rows[i].name, "and made again", sample(&s), 0, 1);
		world_release(&s.w);
	}
}

static void set_pair(struct setting *s, __u64 node, size_t at, __u64 key, __u64 value)
{
	hamt_set(&s->w, node, s->types.bitmap, &s->types, 2 * at, key);
	hamt_set(&s->w, node, s->types.bitmap, &s->types, 2 * at + 1, value);
}

/* Trees that no interpreter makes: bounded, and nothing but what is there is found. */
static __u64 hostile_tree(struct setting *s, unsigned which, __u64 var)
{
	const __u64 sizes[] = { 1ull << 60, -1ull, 0 };
	__u64 node, value = small_int(s, 1);

	switch (which) {
	case 0: /* a node in itself, at each of its places */
		node = hamt_node(&s->w, s->types.bitmap, 64, 0xffffffff, 64);
		for (size_t at = 0; at < 32; at++)
			set_pair(s, node, at, 0, node);
		return node;
	case 1: /* an array of itself */
		node = hamt_node(&s->w, s->types.array, 0, 0, 32);
		for (size_t at = 0; at < 32; at++)
			hamt_set(&s->w, node, s->types.array, &s->types, at, node);
		return node;
	case 2:
	case 3:
	case 4: /* of a size that cannot be */
		node = hamt_node(&s->w, s->types.collision, sizes[which - 2], 0, 512);
		for (size_t at = 0; at < 256; at++)
			set_pair(s, node, at, value, value);
		return node;
	case 5: /* a bitmap that has fewer pairs than bits */
		node = hamt_node(&s->w, s->types.bitmap, 2, 0xffffffff, 2);
		set_pair(s, node, 0, value, value);
		return node;
	case 6: /* a node of no such type */
		node = hamt_node(&s->w, s->types.other, 2, 1u << 3, 2);
		set_pair(s, node, 0, var, value);
		return node;
	case 7: /* nothing there */
		return 0x123450;
	default: /* children that are not there */
		node = hamt_node(&s->w, s->types.bitmap, 64, 0xffffffff, 64);
		for (size_t at = 0; at < 32; at++)
			set_pair(s, node, at, 0, 0x7f9900000000ull + at * PAGE_BYTES);
		return node;
	}
}

#define HOSTILE_TREES 9

static void test_read_labels_ends(void **state)
{
	(void)state;
	for (unsigned i = 0; i < row_count; i++)
		for (unsigned which = 0; which < HOSTILE_TREES; which++) {
			struct setting s;
			char name[] = { 't', 'r', 'e', 'e', ' ', (char)('0' + which), 0 };

			if (!begin(&s, &rows[i].off))
				continue;
			hamt_enter(&s.w, hostile_tree(&s, which,
						      var_named(&s, unwinder_variables[0], 3)));
			for (int again = 0; again < 2; again++) {
				if (sample(&s)->count)
					world_fail(rows[i].name, name, "has a value");
				if (memory_reads(s.w.m) > READS_MAX)
					world_fail(rows[i].name, name, "%zu reads",
						   memory_reads(s.w.m));
			}
			world_release(&s.w);
		}
}

/* A variable that nobody wants is not asked for its name each time. */
static void test_read_labels_looks_at_names_once(void **state)
{
	(void)state;
	for (unsigned i = 0; i < row_count; i++) {
		__u32 hashes[100];
		size_t first, then;
		struct setting s;

		if (!begin(&s, &rows[i].off))
			continue;
		for (__u32 n = 0; n < 100; n++)
			hashes[n] = n * 0x9e3779b1;
		enter_with(&s, hashes, 100, 100);
		sample(&s);
		first = memory_reads(s.w.m);
		unwinder_set_time(s.now_ns + SECOND / 4);
		memory_use(s.w.m);
		world_unwind(&s.w);
		then = memory_reads(s.w.m);
		if (then > first - 250)
			world_fail(rows[i].name, "next search", "%zu reads, %zu the first time",
				   then, first);
		unwinder_set_time(s.now_ns + SECOND / 4 + 1000000);
		memory_use(s.w.m);
		world_unwind(&s.w);
		if (memory_reads(s.w.m) > 40)
			world_fail(rows[i].name, "soon after", "%zu reads", memory_reads(s.w.m));
		world_release(&s.w);
	}
}

/*
 * Where one label is set and another is not, searches for the latter are in vain, and seldom where
 * they cost something.
 */
static void test_read_labels_searches_for_what_is_missing(void **state)
{
	(void)state;
	for (unsigned i = 0; i < row_count; i++) {
		struct hamt_item items[8];
		struct setting s;

		if (!begin(&s, &rows[i].off))
			continue;
		for (__u32 n = 0; n < 8; n++)
			items[n] = (struct hamt_item){
				.var = var_named(&s, n ? "other" : unwinder_variables[0], n),
				.value = small_int(&s, n + 1),
				.hash = n,
			};
		hamt_enter(&s.w, hamt_tree(&s.w, &s.types, items, 8));
		check_int(rows[i].name, "at first", sample(&s), 0, 1);
		s.now_ns += 10 * SECOND;
		for (unsigned n = 0; n < 3; n++) {
			/* A new tree each time, as where a variable is set. */
			hamt_enter(&s.w, hamt_tree(&s.w, &s.types, items, 8));
			unwinder_set_time(s.now_ns + n * 1000);
			memory_use(s.w.m);
			world_unwind(&s.w);
			check_int(rows[i].name, "again", &unwinder_scratch()->labels, 0, 1);
			if (n && is_sent(hash_mix(hash_mix(WORLD_PROCESS,
							   unwinder_scratch()->context.root),
						  (s.now_ns + n * 1000) >> 26) |
					 1))
				world_fail(rows[i].name, "again", "searched");
		}
		world_release(&s.w);
	}
}

/* A variable that is set right after a look at a small tree is not missed. */
static void test_read_labels_searches_small_trees(void **state)
{
	(void)state;
	for (unsigned i = 0; i < row_count; i++) {
		static const __u32 hashes[] = { 3, 4 };
		struct setting s;

		if (!begin(&s, &rows[i].off))
			continue;
		enter_with(&s, hashes, 2, 2);
		check_int(rows[i].name, "before", sample(&s), 0, -1);
		enter_with(&s, hashes, 2, 1);
		unwinder_set_time(s.now_ns + 1000);
		memory_use(s.w.m);
		world_unwind(&s.w);
		check_int(rows[i].name, "after", &unwinder_scratch()->labels, 0, 2);
		world_release(&s.w);
	}
}

/* What is swapped out is waited for, where that can be: then no label is missing. */
static void test_read_labels_notes_missing_pages(void **state)
{
	(void)state;
	for (unsigned i = 0; i < row_count; i++) {
		struct hamt_item item = { .hash = 3 };
		struct setting s;
		struct unwind_result r;

		if (!begin(&s, &rows[i].off))
			continue;
		item.var = var_named(&s, unwinder_variables[0], 3);
		world_new_page(&s.w);
		item.value = small_int(&s, 1);
		world_new_page(&s.w);
		hamt_enter(&s.w, hamt_tree(&s.w, &s.types, &item, 1));
		memory_swap_out(s.w.m, item.value, 1);
		check_int(rows[i].name, "swapped out", sample(&s), 0, -1);
		if (!unwinder_scratch()->walk.faults)
			world_fail(rows[i].name, "swapped out", "nothing noted");
		r = unwind_paged(s.w.off, &s.w.thread);
		if (r.error)
			world_fail(rows[i].name, "read in", "error %d", r.error);
		check_int(rows[i].name, "read in", &unwinder_scratch()->labels, 0, 1);
		world_release(&s.w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_read_labels_finds_it_in_every_tree),
		WORLD_TEST(test_read_labels_finds_it_in_a_large_tree),
		WORLD_TEST(test_read_labels_tells_values),
		WORLD_TEST(test_read_labels_leaves_other_values_out),
		WORLD_TEST(test_read_labels_tells_sets_apart),
		WORLD_TEST(test_read_labels_believes_no_other_variable),
		WORLD_TEST(test_read_labels_ends),
		WORLD_TEST(test_read_labels_looks_at_names_once),
		WORLD_TEST(test_read_labels_searches_for_what_is_missing),
		WORLD_TEST(test_read_labels_searches_small_trees),
		WORLD_TEST(test_read_labels_notes_missing_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
