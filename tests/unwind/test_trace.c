/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Spans of OpenTelemetry in a context: attributes wherever a version has them, and what is no span.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "bpf/context_layout.h"
#include "hamt.h"
#include "rows.h"

#define SECOND 1000000000ull
#define TYPE_BYTES 1024   /* of a heap type; cached keys are at 888 at the latest */
#define BASIC_BYTES 64    /* tp_basicsize of a span */
#define BEFORE_BYTES 64   /* an object has its dict and its values there */
#define ATTRIBUTES_MOST 8 /* of a span here */
#define SPAN_KEY "current-span-9c1a2f50-4be2-4a7e-9d19-6b8f5fd3a7b1"
#define READS_MAX 1024 /* of one sample, whatever the memory is */

/* Where the attributes are: a version has some of these. */
enum place {
	IN_VALUES, /* as an object begins, but up to 3.10 in a dict whose keys are shared */
	IN_DICT,   /* of its own: keys and values in one table */
	IN_MOVED,  /* from 3.13 on: there are values, but they have moved */
};

/* What is wrong with it. */
enum flaw {
	SOUND,
	NO_DICT,      /* the variable is set to an int */
	NO_KEY,       /* the Context has other keys alone */
	NO_ATTRIBUTE, /* the span has no _context */
	UNSET,        /* it has the name, and no value */
	NO_TUPLE,     /* what _context is set to */
	SHORT_TUPLE,
	NO_INTS, /* but two str */
	ZEROS,   /* the span that is none */
	FLAWS
};

struct setting {
	struct world w;
	struct hamt_types types;
	__u64 now_ns;
};

struct entry {
	const char *name;
	__u64 value;
};

static __u16 head(const struct setting *s)
{
	return s->w.off->str_length;
}

static void put(struct setting *s, __u64 at, __u64 value)
{
	memory_write_u64(s->w.m, at, value);
}

static __u64 type_new(struct setting *s, __u64 flags)
{
	__u64 type = world_alloc(&s->w, TYPE_BYTES);

	put(s, type + head(s) + TYPE_FLAGS, flags);
	put(s, type + head(s) + TYPE_BASICSIZE, BASIC_BYTES);
	return type;
}

static __u64 object_new(struct setting *s, __u64 type)
{
	__u64 object = world_alloc(&s->w, 512) + BEFORE_BYTES;

	put(s, object + head(s) - 8, type);
	return object;
}

/* A table of keys; with values where these are not apart. */
static __u64 keys_new(struct setting *s, const struct entry *entries, size_t count, bool has_values)
{
	const struct py_object_offsets *o = &s->w.off->objects;
	__u64 keys = world_alloc(&s->w, 512), at = keys + o->keys_indices + 8;
	bool has_hash = !o->keys_are_logs;
	__u64 size = o->keys_are_logs ? 3 : 8; /* an index of 8 places, 1 byte each */

	put(s, keys + 8, 0);
	if (o->keys_are_logs)
		put(s, keys + 8, size << 8 * (o->keys_size - 8) | 1ull << 8 * (o->keys_kind - 8));
	else
		put(s, keys + o->keys_size, size);
	put(s, keys + o->keys_nentries, count);
	for (size_t i = 0; i < count; i++) {
		__u64 key = entries[i].name ? world_str(&s->w, entries[i].name) : 0;

		if (has_hash)
			put(s, at, 0x1234567);
		at += has_hash ? 8 : 0;
		put(s, at, key);
		put(s, at + 8, has_values ? entries[i].value : 0);
		at += 16;
	}
	return keys;
}

/* PyDictValues, or what ma_values up to 3.12 points to. */
static void values_write(struct setting *s, __u64 at, const struct entry *entries, size_t count)
{
	const struct py_object_offsets *o = &s->w.off->objects;

	if (o->values_items)
		put(s, at, 1ull << 8 * VALUES_VALID);
	for (size_t i = 0; i < count; i++)
		put(s, at + o->values_items + 8 * i, entries[i].value);
}

static __u64 dict_new(struct setting *s, __u64 type, __u64 keys, __u64 values)
{
	__u64 dict = object_new(s, type);

	put(s, dict + head(s) + DICT_KEYS, keys);
	put(s, dict + head(s) + DICT_KEYS + 8, values);
	return dict;
}

static void set_dict(struct setting *s, __u64 object, __u64 type, __u64 dict)
{
	if (s->w.off->objects.attributes == ATTRIBUTES_DICT) {
		put(s, type + head(s) + TYPE_DICTOFFSET, BASIC_BYTES);
		put(s, object + BASIC_BYTES, dict);
	} else {
		put(s, object - DICT_BEFORE(s->w.off->is_free_threaded), dict);
	}
}

/* An object without a dict, or up to 3.10 with one that shares its keys. */
static void set_values(struct setting *s, __u64 object, __u64 type, const struct entry *entries,
		       size_t count)
{
	const struct py_object_offsets *o = &s->w.off->objects;
	__u64 keys = keys_new(s, entries, count, false);
	__u64 values =
		o->attributes == ATTRIBUTES_INLINE ? object + BASIC_BYTES : world_alloc(&s->w, 128);

	values_write(s, values, entries, count);
	if (o->attributes != ATTRIBUTES_DICT)
		put(s, type + head(s) + o->type_cached_keys, keys);
	if (o->attributes == ATTRIBUTES_DICT)
		set_dict(s, object, type, dict_new(s, 0, keys, values));
	else if (o->attributes == ATTRIBUTES_POINTERS)
		put(s, object - VALUES_BEFORE, values);
	else if (o->attributes == ATTRIBUTES_TAGGED)
		set_dict(s, object, type, values - 1);
}

static __u64 span_new(struct setting *s, enum place place, const struct entry *entries,
		      size_t count)
{
	__u64 type = type_new(s, TYPE_HAS_DICT | TYPE_HAS_VALUES);
	__u64 span = object_new(s, type);

	if (place != IN_DICT)
		set_values(s, span, type, entries, count);
	if (place == IN_MOVED)
		put(s, span + BASIC_BYTES, 0);
	if (place != IN_VALUES)
		set_dict(s, span, type, dict_new(s, 0, keys_new(s, entries, count, true), 0));
	return span;
}

static __u64 int_new(struct setting *s, __u32 digit)
{
	const __u32 digits[] = { digit, 2, 3, 4, 5 };

	return hamt_int(&s->w, s->types.integer, false, digits, digit ? 5 : 0);
}

static __u64 ids_new(struct setting *s, enum flaw flaw)
{
	__u64 ids = object_new(s, type_new(s, flaw == NO_TUPLE ? 0 : TYPE_IS_TUPLE));
	__u64 items = ids + head(s) + s->w.off->objects.tuple_items;

	put(s, ids + head(s) + TUPLE_SIZE, flaw == SHORT_TUPLE ? 1 : 6);
	for (__u32 i = 0; i < 2; i++)
		put(s, items + 8 * i,
		    flaw == NO_INTS ? hamt_text(&s->w, &s->types, TEXT_ASCII, 1, "7", 1)
				    : int_new(s, flaw == ZEROS ? 0 : i + 7));
	return ids;
}

/* The value of the variable: a Context with a span. at: where among its attributes _context is. */
static __u64 context_new(struct setting *s, enum place place, size_t at, enum flaw flaw)
{
	struct entry attributes[ATTRIBUTES_MOST], keys[3] = { { NULL, 0 }, { "baggage-1", 1 } };

	if (flaw == NO_DICT)
		return int_new(s, 1);
	for (size_t i = 0; i < ATTRIBUTES_MOST; i++)
		attributes[i] = (struct entry){ i % 2 ? "_contexts" : "_name", 0x1111 };
	attributes[at] = (struct entry){ flaw == NO_ATTRIBUTE ? "_Context" : "_context",
					 flaw == UNSET ? 0 : ids_new(s, flaw) };
	keys[2] = (struct entry){ flaw == NO_KEY ? "current-spam" : SPAN_KEY,
				  span_new(s, place, attributes, ATTRIBUTES_MOST) };
	return dict_new(s, type_new(s, TYPE_IS_DICT), keys_new(s, keys, 3, true), 0);
}

static bool begin(struct setting *s, const struct py_offsets *off)
{
	if (!hamt_world(&s->w, &s->types, off))
		return false;
	s->now_ns = 1000 * SECOND;
	return true;
}

static const struct labels_event *sample(struct setting *s, __u64 value)
{
	struct hamt_item item = {
		.var = hamt_var(&s->w, world_str(&s->w, "current_context"), 3),
		.value = value,
		.hash = 3,
	};

	hamt_enter(&s->w, hamt_tree(&s->w, &s->types, &item, 1));
	s->now_ns += 10 * SECOND;
	unwinder_set_time(s->now_ns);
	memory_use(s->w.m);
	world_unwind(&s->w);
	if (memory_reads(s->w.m) > READS_MAX)
		world_fail("any", "any", "%zu reads", memory_reads(s->w.m));
	return &unwinder_scratch()->labels;
}

static bool has_id(const struct labels_event *e, unsigned at, unsigned number, __u32 digit)
{
	const struct label_value *v = &e->values[at];
	const __u32 *digits = (const __u32 *)v->value;

	return v->number == number && v->kind == LABEL_INT && v->bytes == 20 && !v->is_negative &&
	       digits[0] == digit && digits[1] == 2 && digits[4] == 5;
}

static bool has_ids(const struct labels_event *e)
{
	return e->count == 2 && e->labels && has_id(e, 0, UNWINDER_TRACE, 7) &&
	       has_id(e, 1, UNWINDER_SPAN, 8);
}

static void test_read_labels_finds_spans(void **state)
{
	static const struct {
		const char *name;
		enum place place;
		unsigned minor_first;
	} cases[] = {
		{ "in values", IN_VALUES, 7 },
		{ "in a dict", IN_DICT, 7 },
		{ "moved to a dict", IN_MOVED, 13 },
	};

	(void)state;
	for (unsigned i = 0; i < row_count; i++)
		for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
			struct setting s;

			if (rows[i].off.minor < cases[c].minor_first || !begin(&s, &rows[i].off))
				continue;
			/* Each time elsewhere: what is remembered of the last one is wrong. */
			for (size_t at = 0; at < ATTRIBUTES_MOST; at += 3)
				if (!has_ids(
					    sample(&s, context_new(&s, cases[c].place, at, SOUND))))
					world_fail(rows[i].name, cases[c].name, "attribute %zu",
						   at);
			world_release(&s.w);
		}
}

static void test_read_labels_finds_no_other_span(void **state)
{
	static const char *const names[FLAWS] = {
		[NO_DICT] = "no dict",          [NO_KEY] = "no span",
		[NO_ATTRIBUTE] = "no ids",      [UNSET] = "ids that are unset",
		[NO_TUPLE] = "no tuple",        [SHORT_TUPLE] = "a short tuple",
		[NO_INTS] = "ids that are str", [ZEROS] = "the invalid span",
	};

	(void)state;
	for (unsigned i = 0; i < row_count; i++)
		for (enum flaw flaw = SOUND + 1; flaw < FLAWS; flaw++) {
			const struct labels_event *e;
			struct setting s;

			if (!begin(&s, &rows[i].off))
				break;
			e = sample(&s, context_new(&s, IN_DICT, 1, flaw));
			if (e->count || e->labels)
				world_fail(rows[i].name, names[flaw], "%u labels", e->count);
			world_release(&s.w);
		}
}

/* Tables of all sizes that there are not, and pointers into the dark. */
static void test_read_labels_ends_in_any_table(void **state)
{
	static const __u64 wild[] = { ~0ull, 1ull << 63, 1ull << 40, 0xffff, 41, 0, 0x8000000000 };

	(void)state;
	for (unsigned i = 0; i < row_count; i++)
		for (size_t c = 0; c < sizeof(wild) / sizeof(wild[0]); c++) {
			struct setting s;
			__u64 context, keys;

			if (!begin(&s, &rows[i].off))
				break;
			context = context_new(&s, IN_VALUES, 1, SOUND);
			keys = keys_new(&s, &(struct entry){ "baggage-1", 1 }, 1, true);
			for (__u64 at = 8; at < 40; at += 8) {
				put(&s, keys + at, wild[c]);
				put(&s, context + head(&s) + DICT_KEYS, keys);
				sample(&s, context);
			}
			put(&s, context + head(&s) + DICT_KEYS, wild[c]);
			sample(&s, context);
			world_release(&s.w);
		}
}

/* --- OTEP 4947 -------------------------------------------------------------------------------- */

#define MODULE 5

/* A thread whose variable leads to a record, and where it is. */
static void publish(struct setting *s, bool is_static, const void *record, size_t bytes)
{
	struct thread_context_row *row = &unwinder_scratch()->context.slot;
	__u64 at = world_alloc(&s->w, 1024), table = world_alloc(&s->w, 1024);
	__u64 block = world_alloc(&s->w, 1024);

	*row = (struct thread_context_row){ .process = WORLD_PROCESS, .offset = -16 };
	s->w.thread.pointer = block + 512;
	memory_write(s->w.m, at, record, bytes);
	if (is_static) {
		put(s, block + 512 - 16, at);
		return;
	}
	*row = (struct thread_context_row){ .process = WORLD_PROCESS,
					    .offset = 24,
					    .module = MODULE,
					    .table_at = 8,
					    .table_step = 16 };
	put(s, block + 512 + 8, table);
	put(s, table + MODULE * 16, block);
	put(s, block + 24, at);
}

static bool is_text(const struct label_value *v, unsigned key, const char *text)
{
	return v->kind == LABEL_ATTRIBUTE && v->key == key && v->bytes == strlen(text) &&
	       !memcmp(v->value, text, v->bytes);
}

static void test_read_thread_context_tells_what_is_published(void **state)
{
#define IDS "0123456789abcdefABCDEFGH"
#define NONE "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
	static const struct {
		const char *name;
		const char *record;
		size_t bytes;
		bool has_ids;
		unsigned attributes;
	} cases[] = {
		{ "ids", IDS "\1\1\0\0", 28, true, 0 },
		{ "ids and attributes", IDS "\1\1\x9\0\0\2/a\3\3xyz", 37, true, 2 },
		{ "attributes alone", NONE "\1\1\x9\0\0\2/a\3\3xyz", 37, false, 2 },
		{ "being written", IDS "\0\1\x9\0\0\2/a\3\3xyz", 37, false, 0 },
		{ "another state", IDS "\2\1\0\0", 28, false, 0 },
		{ "an attribute is cut", IDS "\1\1\x8\0\0\2/a\3\3xyz", 37, true, 1 },
		{ "more than there is", IDS "\1\1\xff\xff\0\2/a\3\xffxyz", 37, true, 6 },
	};

	(void)state;
	for (unsigned i = 0; i < 2 * row_count; i++)
		for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
			const struct row *row = &rows[i / 2];
			struct py_scratch *scratch = unwinder_scratch();
			const struct labels_event *e = &scratch->labels;
			unsigned at = cases[c].has_ids ? 2 : 0;
			struct setting s;

			if (!begin(&s, &row->off))
				break;
			publish(&s, i % 2, cases[c].record, cases[c].bytes);
			memory_use(s.w.m);
			scratch->thread.pointer = s.w.thread.pointer;
			scratch->walk.process = WORLD_PROCESS;
			py_read_thread_context(&(struct py_loop){ .s = scratch, .off = &row->off });
			if (e->count != at + cases[c].attributes)
				world_fail(row->name, cases[c].name, "%u labels", e->count);
			if (cases[c].has_ids &&
			    (e->values[0].kind != LABEL_ID || e->values[0].bytes != 16 ||
			     memcmp(e->values[0].value, IDS, 16) != 0 || e->values[1].bytes != 8 ||
			     memcmp(e->values[1].value, &IDS[16], 8) != 0))
				world_fail(row->name, cases[c].name, "other ids");
			if (cases[c].attributes && !is_text(&e->values[at], 0, "/a"))
				world_fail(row->name, cases[c].name, "another attribute");
			world_release(&s.w);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_read_labels_finds_spans),
		WORLD_TEST(test_read_labels_finds_no_other_span),
		WORLD_TEST(test_read_labels_ends_in_any_table),
		WORLD_TEST(test_read_thread_context_tells_what_is_published),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
