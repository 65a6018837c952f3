/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_MADE_OBJECTS_H
#define TESTS_MADE_OBJECTS_H

/* Objects of any version as they lie in a process: made in memory that a reader reads from. */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../made_offsets.h"
#include "target/object.h"

#define MADE_BASE 0x10000
#define MADE_BYTES (256 * 1024)

struct made {
	struct py_offsets off;
	const struct object_layout *layout;
	uint64_t head;
	uint8_t bytes[MADE_BYTES]; /* at MADE_BASE */
	uint64_t end;              /* bytes that are taken */
	uint64_t types[8];
};

enum {
	MADE_TYPE,
	MADE_STR,
	MADE_LONG,
	MADE_TUPLE,
	MADE_LIST,
	MADE_DICT,
	MADE_SET,
	MADE_BYTES_TYPE
};

static inline int made_read(void *arg, uint64_t addr, void *buf, size_t len)
{
	const struct made *m = arg;

	if (len > OBJECT_READ_BYTES || addr < MADE_BASE || addr - MADE_BASE > MADE_BYTES ||
	    len > MADE_BYTES - (addr - MADE_BASE))
		return -EFAULT;
	memcpy(buf, m->bytes + (addr - MADE_BASE), len);
	return 0;
}

/* The next free memory, with as much before it for what lies before an object. */
static inline uint64_t made_room(struct made *m, size_t bytes)
{
	uint64_t at = m->end + 64;

	m->end = (at + bytes + 15) & ~15ULL;
	return m->end <= MADE_BYTES ? MADE_BASE + at : 0;
}

static inline void made_put(struct made *m, uint64_t addr, uint64_t value, size_t bytes)
{
	memcpy(m->bytes + (addr - MADE_BASE), &value, bytes);
}

static inline uint64_t made_object(struct made *m, uint64_t type, size_t bytes)
{
	uint64_t object = made_room(m, m->head + bytes);

	made_put(m, object + m->head - 8, type, 8);
	return object;
}

static inline uint64_t made_chars(struct made *m, const char *text)
{
	uint64_t at = made_room(m, strlen(text) + 1);

	memcpy(m->bytes + (at - MADE_BASE), text, strlen(text) + 1);
	return at;
}

static inline uint64_t made_type(struct made *m, const char *name, uint64_t flags)
{
	uint64_t type = made_object(m, m->types[MADE_TYPE], 1024);

	made_put(m, type + m->head + OBJECT_TYPE_NAME, made_chars(m, name), 8);
	made_put(m, type + m->head + OBJECT_TYPE_BASICSIZE, m->head + 16, 8);
	made_put(m, type + m->head + OBJECT_TYPE_FLAGS, OBJECT_TYPE_READY | flags, 8);
	return type;
}

static inline void made_init(struct made *m, unsigned int minor, bool is_free_threaded)
{
	static const struct {
		const char *name;
		uint32_t flag;
	} types[] = {
		[MADE_TYPE] = { "type", OBJECT_IS_TYPE },
		[MADE_STR] = { "str", OBJECT_IS_STR },
		[MADE_LONG] = { "int", OBJECT_IS_LONG },
		[MADE_TUPLE] = { "tuple", OBJECT_IS_TUPLE },
		[MADE_LIST] = { "list", OBJECT_IS_LIST },
		[MADE_DICT] = { "dict", OBJECT_IS_DICT },
		[MADE_SET] = { "set", 0 },
		[MADE_BYTES_TYPE] = { "bytes", OBJECT_IS_BYTES },
	};

	memset(m, 0, sizeof(*m));
	m->off = made_offsets(minor, is_free_threaded);
	m->layout = object_layout_find(&m->off);
	m->head = m->off.str_length;
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		m->types[i] = made_type(m, types[i].name, types[i].flag);
		made_put(m, m->types[i] + m->head - 8, m->types[MADE_TYPE], 8);
	}
}

/* The layouts there are: starts anew in each, and calls fn, with objects to be made. */
static inline void made_in_each_layout(void (*start)(unsigned int minor, bool is_free_threaded),
				       void (*fn)(const char *version))
{
	for (unsigned int minor = 6; minor <= 15; minor++) {
		for (int is_free_threaded = 0; is_free_threaded <= (minor >= 13);
		     is_free_threaded++) {
			char version[16];

			snprintf(version, sizeof(version), "3.%u%s", minor,
				 is_free_threaded ? "t" : "");
			start(minor, is_free_threaded);
			fn(version);
		}
	}
}

/* kind 1 with ascii, else as given: units in host order. */
static inline uint64_t made_text(struct made *m, const void *units, uint64_t chars, unsigned kind,
				 bool is_ascii)
{
	const struct py_offsets *off = &m->off;
	uint64_t data = is_ascii ? off->str_ascii_data : off->str_compact_data;
	uint64_t object = made_object(m, m->types[MADE_STR], data + (chars + 1) * kind);

	made_put(m, object + off->str_length, chars, 8);
	made_put(m, object + off->str_state,
		 (uint32_t)kind << off->str_kind_shift | 1u << off->str_compact_bit |
			 (uint32_t)is_ascii << off->str_ascii_bit,
		 4);
	memcpy(m->bytes + (object + data - MADE_BASE), units, chars * kind);
	return object;
}

static inline uint64_t made_str(struct made *m, const char *text)
{
	return made_text(m, text, strlen(text), 1, true);
}

/* An int of these 30-bit digits, least significant first. */
static inline uint64_t made_digits(struct made *m, const uint32_t *digits, uint64_t count,
				   bool is_negative)
{
	uint64_t object = made_object(m, m->types[MADE_LONG], 8 + 4 * count + 4);
	uint64_t size = is_negative ? -count : count;

	if (m->layout->long_is_tagged)
		size = count << 3 | (count ? 2 * is_negative : 1);
	made_put(m, object + m->head + OBJECT_SIZE, size, 8);
	for (uint64_t i = 0; i < count; i++)
		made_put(m, object + m->head + OBJECT_LONG_DIGITS + 4 * i, digits[i], 4);
	return object;
}

static inline uint64_t made_long(struct made *m, int64_t value)
{
	uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
	uint32_t digits[3];
	uint64_t count = 0;

	for (; rest; rest >>= OBJECT_DIGIT_BITS)
		digits[count++] = rest & ((1u << OBJECT_DIGIT_BITS) - 1);
	return made_digits(m, digits, count, value < 0);
}

static inline uint64_t made_tuple(struct made *m, const uint64_t *items, uint64_t count)
{
	uint64_t object = made_object(m, m->types[MADE_TUPLE], m->layout->tuple_items + 8 * count);

	made_put(m, object + m->head + OBJECT_SIZE, count, 8);
	for (uint64_t i = 0; i < count; i++)
		made_put(m, object + m->head + m->layout->tuple_items + 8 * i, items[i], 8);
	return object;
}

static inline uint64_t made_list(struct made *m, const uint64_t *items, uint64_t count)
{
	uint64_t object = made_object(m, m->types[MADE_LIST], 24);
	uint64_t table = made_room(m, 8 * count);

	made_put(m, object + m->head + OBJECT_SIZE, count, 8);
	made_put(m, object + m->head + OBJECT_LIST_ITEMS, table, 8);
	for (uint64_t i = 0; i < count; i++)
		made_put(m, table + 8 * i, items[i], 8);
	return object;
}

/* Keys of so many pairs, after one that was removed; values 0 where they are apart. */
static inline uint64_t made_keys(struct made *m, const uint64_t *pairs, uint64_t count,
				 bool is_text)
{
	const struct object_layout *l = m->layout;
	bool has_hash = l->keys_kind == OFF_NONE_8 || !is_text;
	uint64_t places = 8, log = 3, bytes = has_hash ? 24 : 16, keys, at;

	for (; places * 2 / 3 < count + 1; log++)
		places *= 2;
	keys = made_room(m, l->keys_indices + places * 2 + (count + 1) * bytes);
	made_put(m, keys + l->keys_size, l->keys_are_logs ? log : places, l->keys_are_logs ? 1 : 8);
	made_put(m, keys + l->keys_nentries, count + 1, 8);
	if (l->keys_kind != OFF_NONE_8)
		made_put(m, keys + l->keys_kind, is_text, 1);
	at = keys + l->keys_indices + places + bytes;
	for (uint64_t i = 0; i < count; i++, at += bytes) {
		if (has_hash)
			made_put(m, at, i + 1, 8);
		made_put(m, at + bytes - 16, pairs[2 * i], 8);
		made_put(m, at + bytes - 8, pairs[2 * i + 1], 8);
	}
	return keys;
}

static inline uint64_t made_dict(struct made *m, const uint64_t *pairs, uint64_t count,
				 bool is_text)
{
	uint64_t object = made_object(m, m->types[MADE_DICT], 32);

	made_put(m, object + m->head + OBJECT_DICT_USED, count, 8);
	made_put(m, object + m->head + OBJECT_DICT_KEYS, made_keys(m, pairs, count, is_text), 8);
	return object;
}

/* A table of 8 places (at most 5 items), one of which was removed. */
static inline uint64_t made_set(struct made *m, const uint64_t *items, uint64_t count)
{
	uint64_t object = made_object(m, m->types[MADE_SET], 192);
	uint64_t table = made_room(m, 8 * 16);

	made_put(m, object + m->head + OBJECT_SET_USED, count, 8);
	made_put(m, object + m->head + OBJECT_SET_MASK, 7, 8);
	made_put(m, object + m->head + OBJECT_SET_TABLE, table, 8);
	made_put(m, table, m->types[MADE_SET], 8);
	made_put(m, table + 8, UINT64_MAX, 8);
	for (uint64_t i = 0; i < count; i++) {
		made_put(m, table + 16 * (i + 2), items[i], 8);
		made_put(m, table + 16 * (i + 2) + 8, i + 1, 8);
	}
	return object;
}

/* An instance with attributes in its dict, or as values apart from their names. */
static inline uint64_t made_instance(struct made *m, const char *type_name, const uint64_t *pairs,
				     uint64_t count, bool has_dict)
{
	const struct object_layout *l = m->layout;
	bool is_managed = l->attributes != ATTRIBUTES_DICT;
	uint64_t type = made_type(
		m, type_name,
		(is_managed ? OBJECT_TYPE_MANAGED_DICT : 0) |
			(l->attributes == ATTRIBUTES_INLINE ? OBJECT_TYPE_INLINE_VALUES : 0) |
			OBJECT_TYPE_HEAP);
	uint64_t object = made_object(m, type, 512), keys = made_keys(m, pairs, count, true);
	uint64_t values = made_room(m, 8 * (count + 4)), dict;

	made_put(m, type + m->head + OBJECT_TYPE_DICTOFFSET, is_managed ? UINT64_MAX : m->head, 8);
	made_put(m, type + m->head + OBJECT_TYPE_BASICSIZE, m->head + (is_managed ? 0 : 8), 8);
	dict = made_object(m, m->types[MADE_DICT], 32);
	made_put(m, dict + m->head + OBJECT_DICT_KEYS, keys, 8);
	made_put(m, dict + m->head + OBJECT_DICT_USED, count, 8);
	if (!is_managed) {
		made_put(m, object + m->head, dict, 8);
		made_put(m, dict + m->head + OBJECT_DICT_VALUES, has_dict ? 0 : values, 8);
	} else if (has_dict) {
		made_put(m, object - OBJECT_DICT_BEFORE(m->off.is_free_threaded), dict, 8);
	} else {
		made_put(m, type + m->head + l->type_cached_keys, keys, 8);
		if (l->attributes == ATTRIBUTES_POINTERS)
			made_put(m, object - OBJECT_VALUES_BEFORE, values, 8);
		else if (l->attributes == ATTRIBUTES_TAGGED)
			made_put(m, object - OBJECT_DICT_BEFORE(false), values - 1, 8);
		else
			values = object + m->head;
		if (l->attributes == ATTRIBUTES_INLINE)
			made_put(m, values + OBJECT_VALUES_VALID, 1, 1);
	}
	if (!has_dict)
		for (uint64_t i = 0; i < count; i++)
			made_put(m, values + l->values_items + 8 * (i + 1), pairs[2 * i + 1], 8);
	return object;
}

/* An instance with one attribute, in a slot of its type's base. */
static inline uint64_t made_slots(struct made *m, const char *slot, uint64_t value)
{
	enum { KIND_OBJECT_EX = 16 };
	uint64_t base = made_type(m, "Base", OBJECT_TYPE_HEAP);
	uint64_t type = made_type(m, "Slots", OBJECT_TYPE_HEAP);
	uint64_t members = made_room(m, 80), object = made_object(m, type, 16);

	made_put(m, type + m->head + OBJECT_TYPE_BASE, base, 8);
	made_put(m, base + m->head + OBJECT_TYPE_MEMBERS, members, 8);
	made_put(m, members, made_chars(m, slot), 8);
	made_put(m, members + 8, KIND_OBJECT_EX, 4);
	made_put(m, members + 16, m->head + 8, 8);
	made_put(m, object + m->head + 8, value, 8);
	return object;
}

#endif
