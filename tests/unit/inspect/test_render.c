/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "../made_objects.h"
#include "inspect/locals.h"
#include "inspect/render.h"

/* Real objects of each version are met in tests/integration/test_locals.py. */
static struct made made;
static struct object_reader reader;
static struct render_options options;

static void start(unsigned int minor, bool is_free_threaded)
{
	made_init(&made, minor, is_free_threaded);
	assert_int_equal(object_reader_init(&reader, &made.off, 100000, made_read, &made), 0);
	options = (struct render_options){ .limits = &render_short };
}

static void expect(const char *version, uint64_t object, const char *want)
{
	struct strbuf out = STRBUF_INIT;

	assert_int_equal(render_object(&reader, object, &options, &out), 0);
	if (strcmp(strbuf_str(&out), want))
		fail_msg("%s: got %s, want %s", version, strbuf_str(&out), want);
	strbuf_release(&out);
}

static void check_values(const char *version)
{
	uint64_t one = made_long(&made, 1), word = made_str(&made, "w"), none, pair[4], list;

	none = made_object(&made, made_type(&made, "NoneType", 0), 8);
	expect(version, one, "1");
	expect(version, made_long(&made, INT64_MIN), "-9223372036854775808");
	expect(version, word, "'w'");
	expect(version, none, "None");
	expect(version, made_tuple(&made, &one, 1), "(1,)");
	pair[0] = one;
	pair[1] = word;
	pair[2] = none;
	pair[3] = list = made_list(&made, pair, 3);
	expect(version, list, "[1, 'w', None]");
	expect(version, made_set(&made, pair, 2), "{1, 'w'}");
	expect(version, made_tuple(&made, pair, 4), "(1, 'w', None, [1, 'w', None])");
	expect(version, made_dict(&made, pair + 1, 1, true), "{'w': None}");
	expect(version, made_dict(&made, pair, 2, false), "{1: 'w', None: [1, 'w', None]}");
	expect(version, 0, "<unreadable>");
	expect(version, 0x1234, "<unreadable>");
}

static void test_render_object_in_each_layout(void **state)
{
	(void)state;
	made_in_each_layout(start, check_values);
}

static void check_attributes(const char *version)
{
	uint64_t inner, pairs[] = { made_str(&made, "a"),        made_long(&made, 1),
				    made_str(&made, "password"), made_str(&made, "x"),
				    made_str(&made, "self"),     0 };
	char want[80];

	pairs[5] = inner = made_instance(&made, "Inner", pairs, 1, true);
	snprintf(want, sizeof(want), "<Outer a=1 password=<masked str> self=<Inner at 0x%llx>>",
		 (unsigned long long)inner);
	for (int has_dict = 0; has_dict <= 1; has_dict++)
		expect(version, made_instance(&made, "Outer", pairs, 3, has_dict), want);
	options.has_secrets = true;
	expect(version, made_instance(&made, "Outer", pairs, 2, false), "<Outer a=1 password='x'>");
	options.is_flat = true;
	snprintf(want, sizeof(want), "<Inner at 0x%llx>", (unsigned long long)inner);
	expect(version, inner, want);
	options.is_flat = false;
	options.has_secrets = false;
	expect(version, made_slots(&made, "api_key", pairs[1]), "<Slots api_key=<masked int>>");
}

static void test_render_attributes(void **state)
{
	(void)state;
	made_in_each_layout(start, check_attributes);
}

static void check_numpy(const char *version)
{
	static const struct {
		const char *type;
		uint64_t value;
		const char *want;
	} cases[] = {
		{ "numpy.int8", 0xff, "np.int8(-1)" },
		{ "numpy.uint8", 0xff, "np.uint8(255)" },
		{ "numpy.int64", 1ULL << 63, "np.int64(-9223372036854775808)" },
		{ "numpy.uint64", UINT64_MAX, "np.uint64(18446744073709551615)" },
		{ "numpy.float32", 0x3dcccccd, "np.float32(0.1)" },
		{ "numpy.float64", 0x3fb999999999999a, "np.float64(0.1)" },
		{ "numpy.bool", 1, "np.True_" },
	};
	static const struct {
		char kind, order;
		uint32_t number;
		uint64_t bytes, unit; /* and how many of it, in the upper half */
		const char *want;
	} types[] = {
		{ 'i', '=', 3, 2, 0, "int16" },
		{ 'f', '>', 3, 8, 0, ">f8" },
		{ 'c', '=', 3, 16, 0, "complex128" },
		{ 'U', '=', 3, 20, 0, "<U5" },
		{ 'S', '|', 3, 3, 0, "|S3" },
		{ 'V', '|', 3, 7, 0, "|V7" },
		{ 'M', '=', 3, 8, 10 | 1ULL << 32, "datetime64[ns]" },
		{ 'm', '=', 3, 8, 7 | 25ULL << 32, "timedelta64[25s]" },
		{ 'M', '>', 3, 8, 4 | 1ULL << 32, ">M8[D]" },
		{ 'M', '=', 3, 8, 14 | 1ULL << 32, "datetime64" },
		{ 'M', '=', 3, 8, 15 | 1ULL << 32, "datetime64" },
		{ 'M', '=', 3, 8, 3 | 1ULL << 32, "datetime64" },
		{ 'M', '=', 3, 8, 10, "datetime64" },
		{ 'm', '=', 3, 8, -1ULL, "timedelta64" },
		{ 0, 0, 3, 8, 0, "bool" },
		{ 'i', '=', -1U, 8, 0, "bool" },
	};
	static const struct {
		const char *type;
		uint64_t value, unit;
		const char *want;
	} times[] = {
		{ "numpy.datetime64", 0, 7 | 1ULL << 32, "np.datetime64('1970-01-01T00:00:00')" },
		{ "numpy.datetime64", -1ULL, 10 | 1ULL << 32,
		  "np.datetime64('1969-12-31T23:59:59.999999999')" },
		{ "numpy.datetime64", INT64_MAX, 13 | (uint64_t)INT32_MAX << 32,
		  "np.datetime64('2597-08-29T03:43:39.342712359383728129','2147483647as')" },
		{ "numpy.datetime64", INT64_MAX, 4 | (uint64_t)INT32_MAX << 32, "<unreadable>" },
		{ "numpy.datetime64", 1ULL << 63, 4 | 1ULL << 32, "np.datetime64('NaT','D')" },
		{ "numpy.datetime64", 5, 3 | 1ULL << 32, "<unreadable>" },
		{ "numpy.datetime64", 5, -1ULL, "<unreadable>" },
		{ "numpy.datetime64", 5, 4, "<unreadable>" },
		{ "numpy.timedelta64", -5ULL, 0 | 1ULL << 32, "np.timedelta64(-5,'Y')" },
		{ "numpy.timedelta64", 5, 14 | 1ULL << 32, "np.timedelta64(5)" },
		{ "numpy.timedelta64", 1ULL << 63, 10 | 1ULL << 32, "np.timedelta64('NaT','ns')" },
	};
	uint64_t object, shape = made_room(&made, 16), descriptor, metadata = made_room(&made, 48);

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		object = made_object(&made, made_type(&made, cases[i].type, 0), 8);
		made_put(&made, object + made.head, cases[i].value, 8);
		expect(version, object, cases[i].want);
	}
	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
		object = made_object(&made, made_type(&made, times[i].type, 0), 16);
		made_put(&made, object + made.head, times[i].value, 8);
		made_put(&made, object + made.head + 8, times[i].unit, 8);
		expect(version, object, times[i].want);
	}
	made_put(&made, shape, 3, 8);
	made_put(&made, shape + 8, 4, 8);
	descriptor = made_object(&made, made_type(&made, "numpy.dtype", 0), 104);
	made_put(&made, descriptor + made.head, made_type(&made, "numpy.bool_", 0), 8);
	object = made_object(&made, made_type(&made, "numpy.ndarray", 0), 48);
	made_put(&made, object + made.head + 8, 2, 4);
	made_put(&made, object + made.head + 16, shape, 8);
	made_put(&made, object + made.head + 40, descriptor, 8);
	expect(version, object, "<numpy.ndarray shape=(3, 4) dtype=bool>");
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		char want[80];

		made_put(&made, descriptor + made.head + 8, (uint8_t)types[i].kind, 1);
		made_put(&made, descriptor + made.head + 10, (uint8_t)types[i].order, 1);
		made_put(&made, descriptor + made.head + 12, types[i].number, 4);
		made_put(&made, metadata + 32, types[i].unit, 8);
		made_put(&made, descriptor + made.head + 16, types[i].bytes | 1ULL << 32, 8);
		made_put(&made, descriptor + made.head + 32, 0, 8);
		made_put(&made, descriptor + made.head + 64, metadata, 8);
		snprintf(want, sizeof(want), "<numpy.ndarray shape=(3, 4) dtype=%s>",
			 types[i].want);
		expect(version, object, want); /* NumPy 1 */
		made_put(&made, descriptor + made.head + 16, 0, 8);
		made_put(&made, descriptor + made.head + 24, types[i].bytes, 8);
		made_put(&made, descriptor + made.head + 32, 8, 8);
		made_put(&made, descriptor + made.head + 64, 0, 8);
		made_put(&made, descriptor + made.head + 96, metadata, 8);
		expect(version, object, want); /* NumPy 2 */
	}
	made_put(&made, object + made.head + 8, 65, 4);
	expect(version, object, "<unreadable>");
}

static void test_render_of_numpy(void **state)
{
	(void)state;
	made_in_each_layout(start, check_numpy);
}

/* array.array: size, items, allocated, descriptor: its code and the size of an item. */
static uint64_t make_array(const char *code, uint64_t item_bytes, uint64_t size, uint64_t items)
{
	uint64_t descriptor = made_chars(&made, code);
	uint64_t object = made_object(&made, made_type(&made, "array.array", 0), 56);

	made_put(&made, descriptor + 4, item_bytes, 4);
	made_put(&made, object + made.head, size, 8);
	made_put(&made, object + made.head + 8, items, 8);
	made_put(&made, object + made.head + 24, descriptor, 8);
	return object;
}

static void check_array(const char *version)
{
	uint64_t at = made_room(&made, 32);

	made_put(&made, at, 0xc000800000000001, 8);
	made_put(&made, at + 8, 0x41, 8);
	expect(version, make_array("i", 4, 2, at), "array('i', [1, -1073709056])");
	expect(version, make_array("H", 2, 4, at), "array('H', [1, 0, 32768, 49152])");
	expect(version, make_array("b", 1, 1, at), "array('b', [1])");
	expect(version, make_array("q", 8, 1, at + 8), "array('q', [65])");
	expect(version, make_array("Q", 8, 0, 0), "array('Q')");
	expect(version, make_array("e", 2, 4, at),
	       "array('e', [5.960464477539063e-08, 0.0, -0.0, -2.0])");
	expect(version, make_array("w", 4, 1, at + 8), "array('w', 'A')");
	expect(version, make_array("Zf", 8, 1, at + 8), "array('Zf', [(9.10844001811131e-44+0j)])");
	expect(version, make_array("i", 4, 1ULL << 60, 8), "array('i', [<unreadable>])");
	expect(version, make_array("w", 4, 1ULL << 62, 8), "<unreadable>");
	expect(version, make_array("i", 8, 1, at), "<unreadable>");
	expect(version, make_array("\x1b", 4, 1, at), "<unreadable>");
}

static void test_render_of_arrays(void **state)
{
	(void)state;
	made_in_each_layout(start, check_array);
}

static void check_memoryview(const char *version)
{
	uint64_t text = made_chars(&made, "ab"), format = made_chars(&made, "\x1b"), sizes, view;

	sizes = made_room(&made, 16);
	made_put(&made, sizes, 2, 8);
	view = made_object(&made, made_type(&made, "memoryview", 0), 128);
	made_put(&made, view + made.head + 24, 2, 4); /* contiguous */
	made_put(&made, view + made.head + 40, text, 8);
	made_put(&made, view + made.head + 56, 2, 8);
	made_put(&made, view + made.head + 76, 1, 4);
	made_put(&made, view + made.head + 88, sizes, 8);
	made_put(&made, view + made.head + 96, sizes, 8);
	expect(version, view, "<memoryview shape=(2,) format='B' b'ab'>");
	made_put(&made, view + made.head + 80, format, 8);
	expect(version, view, "<memoryview shape=(2,) format='\\x1b' b'ab'>");
	made_put(&made, view + made.head + 24, 0, 4);
	expect(version, view, "<memoryview shape=(2,) format='\\x1b' strides=(2,)>");
	made_put(&made, view + made.head + 76, 65, 4);
	expect(version, view, "<unreadable>");
	made_put(&made, view + made.head + 76, -1ULL, 4);
	expect(version, view, "<unreadable>");
	made_put(&made, view + made.head + 76, 1, 4);
	made_put(&made, view + made.head + 88, 8, 8);
	expect(version, view, "<unreadable>");
}

static void test_render_of_memoryviews(void **state)
{
	(void)state;
	made_in_each_layout(start, check_memoryview);
}

static void check_decimal(const char *version)
{
	static const struct {
		const char *name;
		uint64_t flags;
		int64_t exponent, digits, len;
		uint64_t words[2];
		const char *want;
	} cases[] = {
		{ "a number", 0, -2, 3, 1, { 125 }, "Decimal('1.25')" },
		{ "below 0", 1, 0, 1, 1, { 7 }, "Decimal('-7')" },
		{ "zero", 0, -3, 1, 1, { 0 }, "Decimal('0.000')" },
		{ "two words", 0, 0, 21, 2, { 5, 10 }, "Decimal('100000000000000000005')" },
		{ "an exponent", 0, 5, 2, 1, { 15 }, "Decimal('1.5E+6')" },
		{ "small", 0, -9, 1, 1, { 3 }, "Decimal('3E-9')" },
		{ "infinite", 3, 0, 0, 0, { 0 }, "Decimal('-Infinity')" },
		{ "nan", 4, 0, 0, 0, { 0 }, "Decimal('NaN')" },
		{ "payload", 8, 0, 2, 1, { 12 }, "Decimal('sNaN12')" },
		{ "more digits than it says", 0, 0, 1, 1, { 125 }, "<unreadable>" },
		{ "a word that is none", 0, 0, 19, 1, { UINT64_MAX }, "<unreadable>" },
		{ "fewer words", 0, 0, 20, 1, { 1 }, "<unreadable>" },
		{ "no digits", 0, 0, 0, 1, { 1 }, "<unreadable>" },
		{ "below no words", 0, 0, 1, -1, { 1 }, "<unreadable>" },
		{ "any exponent", 0, INT64_MAX, 1, 1, { 1 }, "<unreadable>" },
		{ "any exponent below", 0, INT64_MIN, 1, 1, { 1 }, "<unreadable>" },
		{ "any size", 0, 0, INT64_MAX, INT64_MAX / 19 + 1, { 1 }, "<unreadable>" },
	};
	uint64_t object = made_object(&made, made_type(&made, "decimal.Decimal", 0), 96);
	uint64_t at = object + made.head + 8, words = made_room(&made, 16);

	made_put(&made, at + 40, words, 8);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char name[64];

		made_put(&made, at, cases[i].flags, 1);
		made_put(&made, at + 8, (uint64_t)cases[i].exponent, 8);
		made_put(&made, at + 16, (uint64_t)cases[i].digits, 8);
		made_put(&made, at + 24, (uint64_t)cases[i].len, 8);
		made_put(&made, words, cases[i].words[0], 8);
		made_put(&made, words + 8, cases[i].words[1], 8);
		snprintf(name, sizeof(name), "%s, %s", version, cases[i].name);
		expect(name, object, cases[i].want);
	}
}

static void test_render_of_decimals(void **state)
{
	(void)state;
	made_in_each_layout(start, check_decimal);
}

static void check_views(const char *version)
{
	static const struct {
		const char *type, *want;
	} cases[] = {
		{ "dict_keys", "dict_keys(['password', 'a'])" },
		{ "dict_values", "dict_values([<masked str>, 'b'])" },
		{ "dict_items", "dict_items([('password', <masked str>), ('a', 'b')])" },
		{ "odict_values", "odict_values([<masked str>, 'b'])" },
	};
	uint64_t pairs[] = { made_str(&made, "password"), made_str(&made, "x"),
			     made_str(&made, "a"), made_str(&made, "b") };
	uint64_t dict = made_dict(&made, pairs, 2, true), view = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		view = made_object(&made, made_type(&made, cases[i].type, 0), 8);
		made_put(&made, view + made.head, dict, 8);
		expect(version, view, cases[i].want);
	}
	made_put(&made, view + made.head, pairs[0], 8);
	expect(version, view, "<unreadable>");
	pairs[3] = view;
	dict = made_dict(&made, pairs, 2, true);
	made_put(&made, view + made.head, dict, 8);
	expect(version, dict, "{'password': <masked str>, 'a': odict_values([...])}");
}

static void test_render_of_views(void **state)
{
	(void)state;
	made_in_each_layout(start, check_views);
}

static void test_render_masks_by_name(void **state)
{
	struct strbuf out = STRBUF_INIT;
	uint64_t items[] = { 0, 0 }, pair, none;

	(void)state;
	start(13, false);
	none = made_object(&made, made_type(&made, "NoneType", 0), 8);
	items[0] = made_str(&made, "Authorization");
	items[1] = made_str(&made, "Bearer x");
	expect("dict", made_dict(&made, items, 1, true), "{'Authorization': <masked str>}");
	pair = made_tuple(&made, items, 2);
	expect("pair", made_list(&made, &pair, 1), "[('Authorization', <masked str>)]");
	assert_int_equal(render_named(&reader, items[0], items[1], &options, &out), 0);
	assert_string_equal(strbuf_str(&out), "<masked str>");
	strbuf_release(&out);
	items[1] = none;
	expect("nothing to hide", made_dict(&made, items, 1, true), "{'Authorization': None}");
}

static void test_render_is_bounded(void **state)
{
	static const struct render_limits tiny = {
		.depth = 2, .objects = 1, .entries = 3, .chars = 4, .bytes = 60, .reads = 60
	};
	uint64_t items[8] = { 0 }, object, deep;
	uint32_t before;

	(void)state;
	start(12, false);
	options.limits = &tiny;
	for (size_t i = 0; i < 8; i++)
		items[i] = made_long(&made, (int64_t)i);
	expect("entries", made_list(&made, items, 8), "[0, 1, 2, ...+5]");
	expect("chars", made_str(&made, "abcdef"), "'abcd'...+2");
	expect("digits", made_long(&made, 123456), "1234...+2");
	for (size_t i = 0; i < 8; i++)
		items[i] = made_str(&made, "abcdef");
	object = made_list(&made, items, 1);
	expect("chars of items", object, "['ab'...+4]");
	deep = made_list(&made, &object, 1);
	deep = made_list(&made, &deep, 1);
	expect("depth", deep, "[[[...+1]]]");

	object = made_list(&made, items, 2);
	made_put(&made, object + made.head + OBJECT_SIZE, 1ULL << 60, 8);
	expect("a size that is no size", object,
	       "['ab'...+4, 'ab'...+4, <unreadable>, "
	       "...+1152921504606846973]");
	made_put(&made, object + made.head + OBJECT_LIST_ITEMS, 8, 8);
	expect("items that are not there", object, "[<unreadable>]");
	object = made_str(&made, "x");
	made_put(&made, object + made.off.str_length, 1ULL << 60, 8);
	made_put(&made, object + made.off.str_state, 7 << 2, 4);
	expect("a str of no kind", object, "<unreadable>");
	object = made_digits(&made, (uint32_t[]){ 1, 2, 3 }, 3, false);
	made_put(&made, object + made.head, 1ULL << 60, 8);
	expect("an int that is not there", object, "<unreadable>");

	reader.reads_left = 5;
	before = reader.reads_left;
	object = made_list(&made, items, 8);
	expect("reads", object, "[...]");
	assert_true(reader.reads_left <= before);
	reader.reads_left = 0;
	expect("no reads", object, "...");
}

/* Makes an object the first item of a list. */
static void put_first(uint64_t list, uint64_t item)
{
	uint64_t items;

	made_read(&made, list + made.head + OBJECT_LIST_ITEMS, &items, 8);
	made_put(&made, items, item, 8);
}

static void test_render_of_cycles(void **state)
{
	struct strbuf out = STRBUF_INIT;
	uint64_t pair[2], list, dict, object;

	(void)state;
	start(12, false);
	pair[0] = made_str(&made, "me");
	pair[1] = list = made_list(&made, pair, 1);
	dict = made_dict(&made, pair, 1, true);
	put_first(list, dict);
	expect("through a dict", dict, "{'me': [{...}]}");
	put_first(list, list);
	expect("a list in itself", list, "[[...]]");

	/* A bound method of itself is bounded in depth. */
	object = made_object(&made, made_type(&made, "method", 0), 32);
	made_put(&made, object + made.head + OBJECT_METHOD_FUNC, object, 8);
	made_put(&made, object + made.head + OBJECT_METHOD_SELF, object, 8);
	assert_int_equal(render_object(&reader, object, &options, &out), 0);
	assert_true(out.len < 1000);
	strbuf_release(&out);
}

/* A code object and a frame: argument, a cell of it, a variable, one without a value, one shared.
 */
static void check_locals(const char *version)
{
	static const char *const names[] = { "self", "arg", "var", "none", "outer" };
	static const uint8_t kinds[] = { 0x20, 0x60, 0x20, 0x20, 0x80 };
	const struct object_layout *l = made.layout;
	struct locals_options o = { .render = options };
	struct inspect_locals got;
	uint64_t texts[5], code = made_object(&made, made_type(&made, "code", 0), 256), frame;
	uint64_t cell_type = made_type(&made, "cell", 0), cell[2], slots, bytes, values[5] = { 0 };
	uint64_t mask = made.off.tagged_mask;

	for (size_t i = 0; i < 5; i++)
		texts[i] = made_str(&made, names[i]);
	for (size_t i = 0; i < 2; i++) {
		cell[i] = made_object(&made, cell_type, 16);
		made_put(&made, cell[i] + made.head, made_long(&made, 10 + (int64_t)i), 8);
	}
	made_put(&made, code + made.head + l->code_argcount, 2, 4);
	made_put(&made, code + made.head + l->code_flags, 1, 4); /* CO_OPTIMIZED */
	values[0] = made_instance(&made, "Me", texts, 1, true);
	values[1] = cell[0];
	values[2] = made_str(&made, "v");
	values[4] = cell[1];
	frame = made_room(&made, 600);
	if (l->code_kinds != OFF_NONE_8) {
		bytes = made_object(&made, made.types[MADE_BYTES_TYPE], 64);
		made_put(&made, bytes + made.off.bytes_size, 5, 8);
		memcpy(made.bytes + (bytes + made.off.bytes_data - MADE_BASE), kinds, 5);
		made_put(&made, code + made.head + l->code_names, made_tuple(&made, texts, 5), 8);
		made_put(&made, code + made.head + l->code_kinds, bytes, 8);
		slots = frame + made.off.frame_size;
		for (size_t i = 0; i < 5; i++)
			made_put(&made, slots + 8 * i, values[i] | (mask && values[i] ? 1 : 0), 8);
	} else { /* arg has moved to its cell, behind the variables */
		made_put(&made, code + made.head + l->code_names, made_tuple(&made, texts, 4), 8);
		made_put(&made, code + made.head + l->code_cellvars,
			 made_tuple(&made, texts + 1, 1), 8);
		made_put(&made, code + made.head + l->code_freevars,
			 made_tuple(&made, texts + 4, 1), 8);
		slots = frame + made.head + l->frame_localsplus;
		made_put(&made, slots, values[0], 8);
		made_put(&made, slots + 16, values[2], 8);
		made_put(&made, slots + 32, values[1], 8);
		made_put(&made, slots + 40, values[4], 8);
	}
	if (locals_read(&reader, frame, code, &o, &got) || got.len != 5 || got.left_out)
		fail_msg("%s: %zu variables", version, got.len);
	for (size_t i = 0; i < 5; i++)
		if (strcmp(got.items[i].name, names[i]))
			fail_msg("%s: %zu is %s", version, i, got.items[i].name);
	if (strncmp(got.items[0].value, "<Me at 0x", 9) || strcmp(got.items[1].value, "10") ||
	    strcmp(got.items[2].value, "'v'") || got.items[3].value ||
	    strcmp(got.items[4].value, "11"))
		fail_msg("%s: %s %s %s", version, got.items[0].value, got.items[1].value,
			 got.items[4].value);
	if (got.items[1].kind != LOCAL_ARGUMENT || !got.items[1].is_cell ||
	    got.items[2].kind != LOCAL_VARIABLE || got.items[2].is_cell ||
	    got.items[4].kind != LOCAL_FREE || !got.items[4].is_cell)
		fail_msg("%s: kinds", version);
	if (strcmp(got.items[0].type, "Me") || got.items[3].type)
		fail_msg("%s: types", version);
	locals_release(&got);
	o.has_self = true;
	assert_int_equal(locals_read(&reader, frame, code, &o, &got), 0);
	if (strncmp(got.items[0].value, "<Me self=", 9))
		fail_msg("%s: %s", version, got.items[0].value);
	locals_release(&got);
	assert_true(locals_read(&reader, 8, code, &o, &got) < 0);
	locals_release(&got);
	assert_true(locals_read(&reader, frame, frame, &o, &got) < 0 || !got.len);
	locals_release(&got);
	o.render.limits = &(const struct render_limits){ .bytes = 0, .entries = 9, .reads = 99 };
	assert_int_equal(locals_read(&reader, frame, code, &o, &got), 0);
	if (!got.left_out || got.len + got.left_out != 5)
		fail_msg("%s: %zu bytes", version, got.bytes);
	locals_release(&got);
	o.render.limits = &render_short;
	reader.reads_left = 14; /* for the names, and little more */
	if (!locals_read(&reader, frame, code, &o, &got))
		assert_true(got.len + got.left_out == 5);
	locals_release(&got);
	reader.reads_left = 100000;
}

static void test_locals_read_in_each_layout(void **state)
{
	(void)state;
	made_in_each_layout(start, check_locals);
}

/* At module level: a dict in f_locals. */
static void check_namespace(const char *version)
{
	const struct object_layout *l = made.layout;
	const struct locals_options o = { .render = options };
	const bool is_object = l->frame_localsplus != OFF_NONE;
	uint64_t code = made_object(&made, made_type(&made, "code", 0), 256);
	uint64_t frame = made_room(&made, 600);
	uint64_t pairs[] = { made_str(&made, "__name__"), made_str(&made, "m"),
			     made_str(&made, "total"),    made_long(&made, 7),
			     made_str(&made, "os"),       0 };
	struct inspect_locals got;

	pairs[5] = made_object(&made, made_type(&made, "module", 0), 8);
	made_put(&made, frame + (is_object ? made.head : 0) + l->frame_locals,
		 made_dict(&made, pairs, 3, true), 8);
	if (locals_read(&reader, frame, code, &o, &got) || got.len != 1 ||
	    strcmp(got.items[0].name, "total") || strcmp(got.items[0].value, "7"))
		fail_msg("%s: %zu variables", version, got.len);
	locals_release(&got);
}

static void test_locals_read_of_a_module(void **state)
{
	(void)state;
	made_in_each_layout(start, check_namespace);
}

static void test_locals_read_tagged_references(void **state)
{
	(void)state;
	start(15, false);
	made.off.tagged_mask = 3;
	check_locals("3.15, tagged");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_render_object_in_each_layout),
		cmocka_unit_test(test_render_attributes),
		cmocka_unit_test(test_render_of_numpy),
		cmocka_unit_test(test_render_of_arrays),
		cmocka_unit_test(test_render_of_memoryviews),
		cmocka_unit_test(test_render_of_decimals),
		cmocka_unit_test(test_render_of_views),
		cmocka_unit_test(test_render_masks_by_name),
		cmocka_unit_test(test_render_is_bounded),
		cmocka_unit_test(test_render_of_cycles),
		cmocka_unit_test(test_locals_read_in_each_layout),
		cmocka_unit_test(test_locals_read_of_a_module),
		cmocka_unit_test(test_locals_read_tagged_references),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
