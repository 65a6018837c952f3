/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "../made_objects.h"

/* Real processes of each version are met in tests/integration. */
static struct made made;
static struct object_reader reader;

static void start(unsigned int minor, bool is_free_threaded)
{
	made_init(&made, minor, is_free_threaded);
	assert_int_equal(object_reader_init(&reader, &made.off, 1000, made_read, &made), 0);
}

static void check_long(const char *version)
{
	static const int64_t values[] = { 0,         1,         -1,        1 << 30,
					  1LL << 60, INT64_MAX, INT64_MIN, -(1LL << 30) };
	static const uint32_t beyond[] = { 0, 0, 8 };
	int64_t got;

	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		if (object_long(&reader, made_long(&made, values[i]), &got) || got != values[i])
			fail_msg("%s: %lld", version, (long long)values[i]);
	got = 5;
	if (object_long(&reader, made_digits(&made, beyond, 3, false), &got) != -ERANGE ||
	    object_long(&reader, made_str(&made, "7"), &got) != -EBADMSG || got != 5)
		fail_msg("%s: no int of 64 bits is one", version);
	if (object_long(&reader, made_digits(&made, beyond, 3, true), &got) || got != INT64_MIN)
		fail_msg("%s: the smallest int", version);
}

static void test_object_long(void **state)
{
	(void)state;
	made_in_each_layout(start, check_long);
}

static void check_str(const char *version)
{
	static const uint16_t wide[] = { 0x20ac, 'x' };
	struct object_text text;
	char buf[8];
	uint64_t apart = made_text(&made, "???", 3, 1, false);

	if (object_str(&reader, made_str(&made, "abc"), buf, 8, &text) || text.chars != 3 ||
	    text.kind != 1 || text.len != 3 || text.is_cut || memcmp(buf, "abc", 3))
		fail_msg("%s: ascii", version);
	if (object_str(&reader, made_str(&made, "abcdefghi"), buf, 8, &text) || text.chars != 9 ||
	    text.len != 8 || !text.is_cut)
		fail_msg("%s: cut", version);
	if (object_str(&reader, made_text(&made, wide, 2, 2, false), buf, 7, &text) ||
	    text.kind != 2 || text.len != 4 || memcmp(buf, wide, 4))
		fail_msg("%s: wide", version);
	made_put(&made, apart + made.off.str_state, 1u << made.off.str_kind_shift, 4);
	made_put(&made, apart + made.off.str_compact_data, made_chars(&made, "abc"), 8);
	if (object_str(&reader, apart, buf, 8, &text) || text.len != 3 || memcmp(buf, "abc", 3))
		fail_msg("%s: of a subtype", version);
	if (object_str(&reader, made_long(&made, 1), buf, 8, &text) != -EBADMSG)
		fail_msg("%s: no str", version);
	if (object_str_is(&reader, made_str(&made, "abc"), "abc") != 1 ||
	    object_str_is(&reader, made_str(&made, "abcd"), "abc") != 0 ||
	    object_str_is(&reader, 8, "abc") != 0)
		fail_msg("%s: is it", version);
}

static void test_object_str(void **state)
{
	(void)state;
	made_in_each_layout(start, check_str);
}

struct seen {
	uint64_t items[16];
	size_t count, max;
};

static int see(struct object_reader *r, uint64_t item, void *arg)
{
	struct seen *seen = arg;

	(void)r;
	seen->items[seen->count++] = item;
	return seen->count == seen->max;
}

static int see_entry(struct object_reader *r, const struct object_entry *entry, void *arg)
{
	return see(r, entry->key, arg) ?: see(r, entry->value, arg);
}

static void expect_seen(const char *version, const char *what, int r, struct seen *seen,
			const uint64_t *want, size_t count)
{
	if (r || seen->count != count || memcmp(seen->items, want, count * sizeof(*want)))
		fail_msg("%s: %s: %d, %zu items", version, what, r, seen->count);
	memset(seen, 0, sizeof(*seen));
}

static void check_containers(const char *version)
{
	uint64_t items[6], length = 0, tuple, dict, value;
	struct seen seen = { 0 };

	for (size_t i = 0; i < 6; i++)
		items[i] = made_str(&made, (char[]){ 'a' + i, '\0' });
	tuple = made_tuple(&made, items, 6);
	expect_seen(version, "tuple", object_sequence_each(&reader, tuple, see, &seen), &seen,
		    items, 6);
	expect_seen(version, "list",
		    object_sequence_each(&reader, made_list(&made, items, 6), see, &seen), &seen,
		    items, 6);
	expect_seen(version, "set", object_set_each(&reader, made_set(&made, items, 5), see, &seen),
		    &seen, items, 5);
	for (int is_text = 0; is_text <= 1; is_text++) {
		dict = made_dict(&made, items, 3, is_text);
		expect_seen(version, "dict", object_dict_each(&reader, dict, see_entry, &seen),
			    &seen, items, 6);
		if (object_dict_get_str(&reader, dict, "c", &value) || value != items[3] ||
		    object_dict_get_str(&reader, dict, "b", &value) != -ENOENT)
			fail_msg("%s: a value by its key", version);
	}
	if (object_length(&reader, tuple, &length) || length != 6 ||
	    object_length(&reader, dict, &length) || length != 3)
		fail_msg("%s: length", version);
	seen.max = 2;
	if (object_sequence_each(&reader, tuple, see, &seen) != 1 || seen.count != 2)
		fail_msg("%s: it went on", version);
	if (object_sequence_each(&reader, dict, see, &seen) != -EBADMSG)
		fail_msg("%s: no sequence", version);
}

static void test_object_containers(void **state)
{
	(void)state;
	made_in_each_layout(start, check_containers);
}

static void check_attributes(const char *version)
{
	uint64_t one = made_long(&made, 1), value, object, offset, found;
	uint64_t pairs[] = { made_str(&made, "first"), made.types[0], made_str(&made, "second"),
			     one };
	char name[32];

	for (int has_dict = 0; has_dict <= 1; has_dict++) {
		object = made_instance(&made, "Thing", pairs, 2, has_dict);
		if (object_attribute(&reader, object, "second", &value) || value != one ||
		    object_attribute(&reader, object, "third", &value) != -ENOENT)
			fail_msg("%s: in a %s", version, has_dict ? "dict" : "values");
		if (object_type(&reader, object, &value) ||
		    object_type_name(&reader, value, name, sizeof(name)) != 5 ||
		    strcmp(name, "Thing"))
			fail_msg("%s: its type", version);
	}
	object = made_slots(&made, "place", one);
	if (object_attribute(&reader, object, "place", &value) || value != one ||
	    object_attribute(&reader, object, "plac", &value) != -ENOENT)
		fail_msg("%s: in a slot", version);
	if (object_type(&reader, object, &value) || object_slot(&reader, value, "place", &offset) ||
	    object_get_pointer(&reader, object + offset, &found) || found != one ||
	    object_slot(&reader, value, "plac", &offset) != -ENOENT)
		fail_msg("%s: where a slot is", version);
}

static void test_object_attribute(void **state)
{
	(void)state;
	made_in_each_layout(start, check_attributes);
}

/* A word that is another: each of them ends, in time, and with an error where one is due. */
static void test_object_hostile(void **state)
{
	uint64_t items[2], list, set, dict, keys, length;
	struct seen seen = { .max = 1 };

	(void)state;
	start(12, false);
	items[0] = items[1] = made_str(&made, "x");
	list = made_list(&made, items, 2);
	set = made_set(&made, items, 2);
	dict = made_dict(&made, items, 1, true);
	keys = made_keys(&made, items, 1, true);
	made_put(&made, dict + made.head + OBJECT_DICT_KEYS, keys, 8);
	const struct {
		const char *name;
		uint64_t addr, value;
		uint64_t object;
		int want;
	} cases[] = {
		{ "a list of 2^60", list + made.head, 1ULL << 60, list, 1 },
		{ "a list that is not there", list + made.head + OBJECT_LIST_ITEMS, 1ULL << 60,
		  list, -EFAULT },
		{ "a list at NULL", list + made.head + OBJECT_LIST_ITEMS, 0, list, -EFAULT },
		{ "a mask that is none", set + made.head + OBJECT_SET_MASK, 6, set, -EBADMSG },
		{ "a mask of 2^60 - 1", set + made.head + OBJECT_SET_MASK, (1ULL << 60) - 1, set,
		  -EBADMSG },
		{ "more used than places", set + made.head + OBJECT_SET_USED, 9, set, -EBADMSG },
		{ "more entries than places", keys + made.layout->keys_nentries, 1ULL << 60, dict,
		  -EBADMSG },
		{ "a type that is not ready", made.types[MADE_LIST] + made.head + OBJECT_TYPE_FLAGS,
		  OBJECT_IS_LIST, list, -EBADMSG },
		{ "a type that is not there", list + 8, 0, list, -EFAULT },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct made saved = made;
		int r;

		seen.count = 0;
		made_put(&made, cases[i].addr, cases[i].value, 8);
		assert_int_equal(object_reader_init(&reader, &made.off, 100, made_read, &made), 0);
		r = cases[i].object == list  ? object_sequence_each(&reader, list, see, &seen)
		    : cases[i].object == set ? object_set_each(&reader, set, see, &seen)
					     : object_dict_each(&reader, dict, see_entry, &seen);
		made = saved;
		/* The start of what is too long may be seen before its end is missed. */
		if (r != cases[i].want && !(cases[i].want == 1 && r == -EFAULT))
			fail_msg("%s: got %d, want %d", cases[i].name, r, cases[i].want);
	}
	reader.reads_left = 1;
	assert_int_equal(object_length(&reader, list, &length), -E2BIG);
}

static void test_object_of_an_unknown_version(void **state)
{
	struct py_offsets off = made_offsets(12, false);

	(void)state;
	off.minor = 16;
	assert_int_equal(object_reader_init(&reader, &off, 1, made_read, &made), -ENOTSUP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_object_long),
		cmocka_unit_test(test_object_str),
		cmocka_unit_test(test_object_containers),
		cmocka_unit_test(test_object_attribute),
		cmocka_unit_test(test_object_hostile),
		cmocka_unit_test(test_object_of_an_unknown_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
