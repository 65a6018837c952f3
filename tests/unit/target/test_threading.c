/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "target/object.h"
#include "target/offsets.h"
#include "target/threading.h"

/*
 * A process with one interpreter and one thread, as it lies in memory, and what becomes of it where
 * a word is another. Real processes of each version are met in tests/integration.
 */
#define IDENT 0x7f0000001000
#define RUNTIME 0x100
#define INTERP 0x200
#define NEXT_INTERP 0x600
#define MODULES 0xa00
#define MODULE 0xb00
#define MODULE_DICT 0xc00
#define ACTIVE 0xd00
#define THREAD 0xe00
#define ATTRIBUTES 0xf00
#define VALUES 0x1000
#define TYPE 0x1100
#define STR_TYPE 0x1500
#define KEYS 0x1600 /* one each 0x200 */
#define NAME 0x1e00
#define TEXTS 0x1f00
#define MEMORY_BYTES 0x2300

struct memory {
	uint8_t bytes[MEMORY_BYTES];
	uint32_t reads;
};

static int read_memory(void *arg, uint64_t addr, void *buf, size_t len)
{
	struct memory *m = arg;

	m->reads++;
	assert_true(len <= OBJECT_READ_BYTES);
	if (addr >= sizeof(m->bytes) || len > sizeof(m->bytes) - addr)
		return -EFAULT;
	memcpy(buf, m->bytes + addr, len);
	return 0;
}

static void put(struct memory *m, uint64_t addr, uint64_t value, size_t bytes)
{
	assert_true(addr + bytes <= sizeof(m->bytes));
	memcpy(m->bytes + addr, &value, bytes);
}

static void put_text(struct memory *m, const struct py_offsets *off, uint64_t addr,
		     const char *text)
{
	put(m, addr + off->str_length - 8, STR_TYPE, 8);
	put(m, addr + off->str_length, strlen(text), 8);
	put(m, addr + off->str_state,
	    1u << off->str_kind_shift | 1u << off->str_compact_bit | 1u << off->str_ascii_bit, 4);
	memcpy(m->bytes + addr + off->str_ascii_data, text, strlen(text));
}

/* Keys with one removed entry, and then one entry: 8 places. */
static void put_keys(struct memory *m, const struct object_layout *l, uint64_t keys, bool is_text,
		     uint64_t key, uint64_t hash, uint64_t value)
{
	bool has_hash = l->keys_kind == OFF_NONE_8 || !is_text;
	uint64_t entry = keys + l->keys_indices + 8 + (has_hash ? 24 : 16);

	put(m, keys + l->keys_size, l->keys_are_logs ? 3 : 8, l->keys_are_logs ? 1 : 8);
	put(m, keys + l->keys_nentries, 2, 8);
	if (l->keys_kind != OFF_NONE_8)
		put(m, keys + l->keys_kind, is_text, 1);
	if (has_hash)
		put(m, entry, hash, 8);
	entry += has_hash ? 8 : 0;
	put(m, entry, key, 8);
	put(m, entry + 8, value, 8);
}

static void put_dict(struct memory *m, const struct py_offsets *off, uint64_t dict, uint64_t keys,
		     uint64_t values)
{
	put(m, dict + off->str_length + OBJECT_DICT_KEYS, keys, 8);
	put(m, dict + off->str_length + OBJECT_DICT_VALUES, values, 8);
}

static struct py_offsets offsets_of(unsigned int minor)
{
	struct py_offsets off = { 0 };

	assert_int_equal(
		offsets_find(VERSION_HEX(3, minor < 12 ? minor : 12, 4, VERSION_LEVEL_FINAL), 0,
			     false, &off),
		0);
	off.minor = minor; /* what is read here of 3.13 and later is where 3.12 has it */
	if (minor == 6)
		off.runtime_interpreters_head = 16;
	return off;
}

/* Where the thread's attributes are. */
static void put_thread(struct memory *m, const struct py_offsets *off, bool has_dict)
{
	const struct object_layout *l = object_layout_find(off);
	uint64_t head = off->str_length, keys = KEYS + 0x600, values = VALUES + l->values_items + 8;

	put(m, THREAD + head - 8, TYPE, 8);
	put_text(m, off, TEXTS + 0x200, "_name");
	put_text(m, off, NAME, "a worker");
	put_keys(m, l, keys, true, TEXTS + 0x200, 0, has_dict ? NAME : 0);
	put(m, STR_TYPE + head + OBJECT_TYPE_FLAGS, OBJECT_TYPE_READY | OBJECT_IS_STR, 8);
	put(m, TYPE + head + OBJECT_TYPE_BASICSIZE, head, 8);
	put(m, TYPE + head + OBJECT_TYPE_FLAGS,
	    OBJECT_TYPE_READY | (l->attributes == ATTRIBUTES_DICT ? 0 : OBJECT_TYPE_MANAGED_DICT) |
		    (l->attributes == ATTRIBUTES_INLINE ? OBJECT_TYPE_INLINE_VALUES : 0),
	    8);
	put(m, TYPE + head + OBJECT_TYPE_DICTOFFSET, head, 8);
	put_dict(m, off, ATTRIBUTES, keys, has_dict ? 0 : VALUES);
	if (l->type_cached_keys != OFF_NONE)
		put(m, TYPE + head + l->type_cached_keys, keys, 8);
	if (l->attributes == ATTRIBUTES_DICT)
		put(m, THREAD + head, ATTRIBUTES, 8);
	else if (has_dict)
		put(m, THREAD - OBJECT_DICT_BEFORE(false), ATTRIBUTES, 8);
	else if (l->attributes == ATTRIBUTES_POINTERS)
		put(m, THREAD - OBJECT_VALUES_BEFORE, VALUES, 8);
	else if (l->attributes == ATTRIBUTES_TAGGED)
		put(m, THREAD - OBJECT_DICT_BEFORE(false), VALUES - 1, 8);
	else
		values = THREAD + head + l->values_items + 8;
	put(m, values, NAME, 8);
	if (l->attributes == ATTRIBUTES_INLINE)
		put(m, THREAD + head + OBJECT_VALUES_VALID, !has_dict, 1);
}

static void put_process(struct memory *m, const struct py_offsets *off, bool has_dict)
{
	const struct object_layout *l = object_layout_find(off);
	uint64_t head = off->str_length;

	memset(m, 0, sizeof(*m));
	put(m, RUNTIME + off->runtime_interpreters_head, INTERP, 8);
	put(m, INTERP + off->interp_modules, MODULES, 8);
	put_text(m, off, TEXTS, "threading");
	put_text(m, off, TEXTS + 0x100, "_active");
	put_dict(m, off, MODULES, KEYS, 0);
	put_keys(m, l, KEYS, true, TEXTS, 0, MODULE);
	put(m, MODULE + head, MODULE_DICT, 8);
	put_dict(m, off, MODULE_DICT, KEYS + 0x200, 0);
	put_keys(m, l, KEYS + 0x200, true, TEXTS + 0x100, 0, ACTIVE);
	put_dict(m, off, ACTIVE, KEYS + 0x400, 0);
	put_keys(m, l, KEYS + 0x400, false, 1, IDENT, THREAD);
	put_thread(m, off, has_dict);
}

static int look(struct memory *m, const struct py_offsets *off, uint64_t ident, uint64_t *active,
		struct threading_name *name)
{
	struct threading_process p = {
		.read = read_memory, .arg = m, .runtime = RUNTIME, .off = off, .active = *active
	};
	int r = threading_name(&p, ident, name);

	*active = p.active;
	return r;
}

static void test_threading_name_finds_it_in_each_layout(void **state)
{
	static struct memory m;

	(void)state;
	for (unsigned int minor = 6; minor <= 15; minor++) {
		for (int has_dict = 0; has_dict <= 1; has_dict++) {
			struct py_offsets off = offsets_of(minor);
			struct threading_name name;
			uint64_t active = 0, reads;
			int r;

			put_process(&m, &off, has_dict);
			r = look(&m, &off, IDENT, &active, &name);
			if (r || name.kind != 1 || name.is_cut || name.len != 8 ||
			    memcmp(name.bytes, "a worker", 8) || active != ACTIVE)
				fail_msg("3.%u, %s: %d", minor, has_dict ? "dict" : "values", r);
			reads = m.reads;
			if (look(&m, &off, IDENT, &active, &name) || m.reads - reads >= reads)
				fail_msg("3.%u: the second time takes as long", minor);
			if (look(&m, &off, IDENT + 8, &active, &name) != -ENOENT)
				fail_msg("3.%u: a name for a thread there is not", minor);
			active = STR_TYPE; /* something else by now */
			if (look(&m, &off, IDENT, &active, &name) || active != ACTIVE)
				fail_msg("3.%u: what was kept is trusted", minor);
		}
	}
}

static void test_threading_name_of_one_moment_searches_once(void **state)
{
	static struct memory m;
	const struct py_offsets off = offsets_of(12);
	struct threading_process p = { .read = read_memory,
				       .arg = &m,
				       .runtime = RUNTIME,
				       .off = &off,
				       .active = ACTIVE,
				       .is_of_one_moment = true };
	struct threading_name name;
	uint64_t reads;

	(void)state;
	put_process(&m, &off, false);
	assert_int_equal(threading_name(&p, IDENT + 8, &name), -ENOENT);
	reads = m.reads;
	assert_int_equal(threading_name(&p, IDENT + 8, &name), -ENOENT);
	assert_true(m.reads - reads < reads);
	assert_int_equal(threading_name(&p, IDENT, &name), 0);
}

static void test_threading_name_of_another_shape(void **state)
{
	const struct py_offsets off = offsets_of(12);
	const struct object_layout *l = object_layout_find(&off);
	const struct {
		const char *name;
		uint64_t addr, value;
		size_t bytes;
		int want;
	} cases[] = {
		{ "as it is", MEMORY_BYTES - 8, 0, 8, 0 },
		{ "no interpreter", RUNTIME + off.runtime_interpreters_head, 0, 8, -ENOENT },
		{ "one that is not there", RUNTIME + off.runtime_interpreters_head, 1ULL << 60, 8,
		  -EFAULT },
		{ "keys that are not there", MODULES + 16 + OBJECT_DICT_KEYS, UINT64_MAX - 7, 8,
		  -EFAULT },
		{ "more entries than places", KEYS + 0x400 + l->keys_nentries, 9, 8, -EBADMSG },
		{ "entries without end", KEYS + 0x400 + l->keys_nentries, INT64_MAX, 8, -EBADMSG },
		{ "an index without end", KEYS + 0x400 + l->keys_size, 63, 1, -EBADMSG },
		{ "no thread", KEYS + 0x400 + l->keys_indices + 8 + 24 + 16, 0, 8, -ENOENT },
		{ "keys of text alone", KEYS + 0x400 + l->keys_kind, 1, 1, -ENOENT },
		{ "a name of another type", NAME + 8, TYPE, 8, -EBADMSG },
		{ "no name", NAME + off.str_length, 0, 8, -ENOENT },
		{ "a name of no kind", NAME + off.str_state, 1u << off.str_compact_bit | 3 << 2, 4,
		  -EBADMSG },
		{ "a name apart that is not there", NAME + off.str_state, 1 << 2, 4, -EFAULT },
		{ "module gone", KEYS + l->keys_indices + 8 + 16 + 8, 0, 8, -ENOENT },
	};
	static struct memory m;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct threading_name name = { .len = 99 };
		uint64_t active = 0;
		int r;

		put_process(&m, &off, false);
		put(&m, cases[i].addr, cases[i].value, cases[i].bytes);
		r = look(&m, &off, IDENT, &active, &name);
		if (r != cases[i].want)
			fail_msg("%s: got %d, want %d", cases[i].name, r, cases[i].want);
		if (r && name.len != 99)
			fail_msg("%s: its output was touched", cases[i].name);
	}
}

static void test_threading_name_ends(void **state)
{
	const struct py_offsets off = offsets_of(12);
	const struct object_layout *l = object_layout_find(&off);
	struct threading_name name;
	static struct memory m;
	uint64_t active = 0;

	(void)state;
	put_process(&m, &off, false);
	put(&m, NAME + off.str_length, 1ULL << 40, 8);
	assert_int_equal(look(&m, &off, IDENT, &active, &name), 0);
	assert_true(name.is_cut && name.len == THREADING_CHARS_MAX);

	/* A ring of interpreters, each with a sys.modules of a million entries that are all there.
	 */
	put_process(&m, &off, false);
	put(&m, INTERP + off.interp_next, INTERP, 8);
	put(&m, KEYS + l->keys_size, 20, 1);
	put(&m, KEYS + l->keys_nentries, 1 << 20, 8);
	active = 0;
	assert_true(look(&m, &off, IDENT, &active, &name) < 0);
	assert_true(m.reads <= THREADING_READS_MAX);

	put_process(&m, &off, false);
	put(&m, INTERP + off.interp_next, NEXT_INTERP, 8);
	put(&m, NEXT_INTERP + off.interp_next, INTERP, 8);
	active = 0;
	assert_int_equal(look(&m, &off, IDENT + 8, &active, &name), -ENOENT);
	assert_true(m.reads <= THREADING_READS_MAX);
}

static void test_threading_name_of_an_unknown_version(void **state)
{
	struct py_offsets off = offsets_of(12);
	struct threading_name name;
	static struct memory m;
	uint64_t active = 0;

	(void)state;
	off.minor = 16;
	assert_int_equal(look(&m, &off, IDENT, &active, &name), -ENOTSUP);
	assert_int_equal(m.reads, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threading_name_finds_it_in_each_layout),
		cmocka_unit_test(test_threading_name_of_one_moment_searches_once),
		cmocka_unit_test(test_threading_name_of_another_shape),
		cmocka_unit_test(test_threading_name_ends),
		cmocka_unit_test(test_threading_name_of_an_unknown_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
