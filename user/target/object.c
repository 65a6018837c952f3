/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/object.h"

#include <errno.h>
#include <string.h>

#define SIZE_LOG_MAX 40 /* of a table; beyond: no table */
#define BASES_MAX 32    /* types above a type */
#define MEMBERS_MAX 256 /* of one type */
#define TEXT_BYTES_MAX (16 * OBJECT_READ_BYTES)

/* clang-format off */
#define OLD_KEYS                                                                       \
	.keys_size = 8, .keys_kind = OFF_NONE_8, .keys_nentries = 32, .keys_indices = 40
#define NEW_KEYS                                                                       \
	.keys_are_logs = true, .keys_size = 9, .keys_kind = 10, .keys_nentries = 24,   \
	.keys_indices = 32
#define OLD_FUNCTION .func_code = 0, .func_qualname = 88, .func_closure = 32
#define NEW_FUNCTION .func_code = 32, .func_qualname = 24, .func_closure = 56
#define OLD_CODE                                                                       \
	.code_argcount = 0, .code_kwonlyargcount = 4, .code_locals = 8, .code_flags = 16, \
	.code_names = 48, .code_freevars = 56, .code_cellvars = 64, .code_kinds = OFF_NONE_8
#define POSITIONAL_CODE                                                                \
	.code_argcount = 0, .code_kwonlyargcount = 8, .code_locals = 12, .code_flags = 20, \
	.code_names = 56, .code_freevars = 64, .code_cellvars = 72, .code_kinds = OFF_NONE_8
#define NEW_CODE(locals)                                                               \
	.code_flags = 32, .code_locals = locals, .code_names = 80, .code_kinds = 88,   \
	.code_freevars = OFF_NONE_8, .code_cellvars = OFF_NONE_8,                      \
	.frame_localsplus = OFF_NONE

static const struct object_layout layouts[] = {
	{ 6, 6, ATTRIBUTES_DICT, OLD_KEYS, OLD_FUNCTION, OLD_CODE, .frame_localsplus = 360,
	  .frame_locals = 40, .gen_qualname = 40, .tuple_items = 8, .type_qualname = 832,
	  .type_cached_keys = OFF_NONE },
	{ 7, 7, ATTRIBUTES_DICT, OLD_KEYS, OLD_FUNCTION, OLD_CODE, .frame_localsplus = 344,
	  .frame_locals = 40, .gen_qualname = 40, .tuple_items = 8, .type_qualname = 832,
	  .type_cached_keys = OFF_NONE },
	{ 8, 8, ATTRIBUTES_DICT, OLD_KEYS, OLD_FUNCTION, POSITIONAL_CODE, .frame_localsplus = 344,
	  .frame_locals = 40, .gen_qualname = 40, .tuple_items = 8, .type_qualname = 848,
	  .type_cached_keys = OFF_NONE },
	{ 9, 9, ATTRIBUTES_DICT, OLD_KEYS, OLD_FUNCTION, POSITIONAL_CODE, .frame_localsplus = 344,
	  .frame_locals = 40, .gen_qualname = 40, .tuple_items = 8, .type_qualname = 840,
	  .type_cached_keys = OFF_NONE },
	{ 10, 10, ATTRIBUTES_DICT, OLD_KEYS, NEW_FUNCTION, POSITIONAL_CODE,
	  .frame_localsplus = 336, .frame_locals = 40, .gen_qualname = 32, .tuple_items = 8, .type_qualname = 848,
	  .type_cached_keys = OFF_NONE },
	{ 11, 11, ATTRIBUTES_POINTERS, NEW_KEYS, NEW_FUNCTION, NEW_CODE(60), .code_argcount = 40,
	  .code_kwonlyargcount = 48, .frame_locals = 24, .gen_qualname = 24, .tuple_items = 8, .type_qualname = 848,
	  .type_cached_keys = 856 },
	{ 12, 12, ATTRIBUTES_TAGGED, NEW_KEYS, NEW_FUNCTION, NEW_CODE(56), .code_argcount = 36,
	  .code_kwonlyargcount = 44, .frame_locals = 40, .gen_qualname = 16, .tuple_items = 8, .long_is_tagged = true,
	  .type_qualname = 856, .type_cached_keys = 864 },
	{ 13, 13, ATTRIBUTES_INLINE, NEW_KEYS, NEW_FUNCTION, NEW_CODE(56), .code_argcount = 36,
	  .code_kwonlyargcount = 44, .frame_locals = 40, .gen_qualname = 16, .values_items = 8, .tuple_items = 8,
	  .long_is_tagged = true, .type_qualname = 856, .type_cached_keys = 864 },
	{ 14, 14, ATTRIBUTES_INLINE, NEW_KEYS, NEW_FUNCTION, NEW_CODE(56), .code_argcount = 36,
	  .code_kwonlyargcount = 44, .frame_locals = 40, .gen_qualname = 16, .values_items = 8, .tuple_items = 16,
	  .long_is_tagged = true, .type_qualname = 856, .type_cached_keys = 864 },
	{ 15, 15, ATTRIBUTES_INLINE, NEW_KEYS, NEW_FUNCTION, NEW_CODE(56), .code_argcount = 36,
	  .code_kwonlyargcount = 44, .frame_locals = 40, .gen_qualname = 16, .values_items = 8, .tuple_items = 16,
	  .long_is_tagged = true, .type_qualname = 864, .type_cached_keys = 872 },
};
/* clang-format on */

const struct object_layout *object_layout_find(const struct py_offsets *off)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++)
		if (off->minor >= layouts[i].minor_first && off->minor <= layouts[i].minor_last)
			return &layouts[i];
	return NULL;
}

void object_layout_tell(struct py_offsets *off)
{
	const struct object_layout *layout = object_layout_find(off);

	off->objects = (struct py_object_offsets){ 0 };
	if (!layout)
		return;
	off->objects = (struct py_object_offsets){ .attributes = layout->attributes,
						   .keys_are_logs = layout->keys_are_logs,
						   .keys_size = layout->keys_size,
						   .keys_kind = layout->keys_kind,
						   .keys_nentries = layout->keys_nentries,
						   .keys_indices = layout->keys_indices,
						   .values_items = layout->values_items,
						   .tuple_items = layout->tuple_items,
						   .type_cached_keys = layout->type_cached_keys };
}

int object_reader_init(struct object_reader *r, const struct py_offsets *off, uint32_t reads,
		       int (*read)(void *arg, uint64_t addr, void *buf, size_t len), void *arg)
{
	const struct object_layout *layout = object_layout_find(off);

	if (!layout)
		return -ENOTSUP;
	*r = (struct object_reader){ .read = read,
				     .arg = arg,
				     .off = off,
				     .layout = layout,
				     .head = off->str_length,
				     .reads_left = reads };
	return 0;
}

int object_get(struct object_reader *r, uint64_t addr, void *buf, size_t len)
{
	if (!r->reads_left)
		return -E2BIG;
	r->reads_left--;
	if (!addr || addr + len < addr)
		return -EFAULT;
	return r->read(r->arg, addr, buf, len);
}

int object_get_pointer(struct object_reader *r, uint64_t addr, uint64_t *out)
{
	uint64_t value;
	int e = object_get(r, addr, &value, sizeof(value));

	if (e < 0)
		return e;
	*out = value;
	return 0;
}

/* A field of a block that was read. */
static uint64_t field(const uint8_t *block, size_t at, size_t bytes)
{
	uint64_t value = 0;

	memcpy(&value, block + at, bytes);
	return value;
}

/* Up to the end of a page, and then of the next: what follows the string may not be there. */
int object_chars(struct object_reader *r, uint64_t addr, char *out, size_t size)
{
	size_t len = 0;

	while (len < size - 1) {
		size_t n = OBJECT_READ_BYTES - (addr + len) % OBJECT_READ_BYTES;
		int e;

		n = n < size - 1 - len ? n : size - 1 - len;
		e = object_get(r, addr + len, out + len, n);
		if (e < 0)
			return e;
		n = strnlen(out + len, n);
		len += n;
		if (len < size - 1 && !out[len])
			break;
	}
	out[len] = '\0';
	return (int)len;
}

/* --- types ------------------------------------------------------------------------------------ */

/* The last field of PyObject. */
int object_type(struct object_reader *r, uint64_t object, uint64_t *type)
{
	return object_get_pointer(r, object + r->head - 8, type);
}

int object_type_get(struct object_reader *r, uint64_t type, const struct object_type **out)
{
	struct object_type *t = &r->types[type / 16 % OBJECT_TYPES];
	uint8_t block[OBJECT_TYPE_DICTOFFSET + 8 - OBJECT_TYPE_NAME];
	int e;
#define TYPE_FIELD(which) field(block, OBJECT_TYPE_##which - OBJECT_TYPE_NAME, 8)

	if (type && t->address == type) {
		*out = t;
		return 0;
	}
	e = object_get(r, type + r->head + OBJECT_TYPE_NAME, block, sizeof(block));
	if (e < 0)
		return e;
	if (!(TYPE_FIELD(FLAGS) & OBJECT_TYPE_READY))
		return -EBADMSG;
	*t = (struct object_type){ .address = type,
				   .name = TYPE_FIELD(NAME),
				   .basicsize = TYPE_FIELD(BASICSIZE),
				   .itemsize = TYPE_FIELD(ITEMSIZE),
				   .flags = TYPE_FIELD(FLAGS),
				   .members = TYPE_FIELD(MEMBERS),
				   .base = TYPE_FIELD(BASE),
				   .dict = TYPE_FIELD(DICT),
				   .dictoffset = (int64_t)TYPE_FIELD(DICTOFFSET) };
#undef TYPE_FIELD
	*out = t;
	return 0;
}

int object_type_of(struct object_reader *r, uint64_t object, const struct object_type **out)
{
	uint64_t type;
	int e = object_type(r, object, &type);

	return e < 0 ? e : object_type_get(r, type, out);
}

int object_type_name(struct object_reader *r, uint64_t type, char *out, size_t size)
{
	const struct object_type *t;
	int e = object_type_get(r, type, &t);

	return e < 0 ? e : object_chars(r, t->name, out, size);
}

/* Is the object of this type or a subtype? */
static int check_flag(struct object_reader *r, uint64_t object, uint32_t flag)
{
	const struct object_type *t;
	int e = object_type_of(r, object, &t);

	if (e < 0)
		return e;
	return t->flags & flag ? 0 : -EBADMSG;
}

/* --- str -------------------------------------------------------------------------------------- */

static bool state_bit(uint32_t state, uint8_t bit)
{
	return state >> bit & 1;
}

/* Where the characters are: behind the fields, or (subtypes, and old ways to make one) apart. */
static int str_data(struct object_reader *r, uint64_t object, uint32_t state, uint64_t *data)
{
	const struct py_offsets *off = r->off;

	if (!state_bit(state, off->str_compact_bit))
		return object_get_pointer(r, object + off->str_compact_data, data);
	*data = object + (state_bit(state, off->str_ascii_bit) ? off->str_ascii_data
							       : off->str_compact_data);
	return 0;
}

static int get_blocks(struct object_reader *r, uint64_t addr, uint8_t *buf, size_t len)
{
	for (size_t at = 0, n; at < len; at += n) {
		int e;

		n = len - at < OBJECT_READ_BYTES ? len - at : OBJECT_READ_BYTES;
		e = object_get(r, addr + at, buf + at, n);
		if (e < 0)
			return e;
	}
	return 0;
}

int object_str(struct object_reader *r, uint64_t object, void *buf, size_t size,
	       struct object_text *out)
{
	struct object_text text;
	uint8_t block[192];
	uint64_t data, fit;
	uint32_t state;
	int e;

	if ((e = check_flag(r, object, OBJECT_IS_STR)) < 0 ||
	    (e = object_get(r, object, block, r->off->str_ascii_data)) < 0)
		return e;
	state = field(block, r->off->str_state, 4);
	text.chars = field(block, r->off->str_length, 8);
	text.kind = state >> r->off->str_kind_shift & 7;
	if (text.kind != 1 && text.kind != 2 && text.kind != 4)
		return -EBADMSG;
	size = size < TEXT_BYTES_MAX ? size : TEXT_BYTES_MAX;
	fit = size / text.kind;
	text.is_cut = text.chars > fit;
	text.len = (text.is_cut ? fit : text.chars) * text.kind;
	if ((e = str_data(r, object, state, &data)) < 0 ||
	    (e = get_blocks(r, data, buf, text.len)) < 0)
		return e;
	*out = text;
	return 0;
}

int object_str_is(struct object_reader *r, uint64_t object, const char *text)
{
	const size_t len = strlen(text);
	const uint32_t at = r->off->str_ascii_data;
	uint8_t block[192];
	uint32_t state;
	int e;

	if (at + len > sizeof(block))
		return 0;
	e = object_get(r, object, block, at + len);
	if (e < 0)
		return e == -E2BIG ? e : 0;
	state = field(block, r->off->str_state, 4);
	return field(block, r->off->str_length, 8) == len &&
	       state_bit(state, r->off->str_compact_bit) &&
	       state_bit(state, r->off->str_ascii_bit) && !memcmp(block + at, text, len);
}

/* --- int -------------------------------------------------------------------------------------- */

int object_long_digits(struct object_reader *r, uint64_t object, struct object_digits *out)
{
	uint64_t size;
	int e;

	if ((e = check_flag(r, object, OBJECT_IS_LONG)) < 0 ||
	    (e = object_get_pointer(r, object + r->head + OBJECT_SIZE, &size)) < 0)
		return e;
	out->digits = object + r->head + OBJECT_LONG_DIGITS;
	if (r->layout->long_is_tagged) {
		out->count = (size & 3) == 1 ? 0 : size >> 3;
		out->is_negative = (size & 3) == 2;
	} else {
		out->is_negative = (int64_t)size < 0;
		out->count = out->is_negative ? -size : size;
	}
	return 0;
}

int object_long(struct object_reader *r, uint64_t object, int64_t *out)
{
	struct object_digits d;
	uint32_t digits[3] = { 0 };
	unsigned __int128 value = 0;
	int e = object_long_digits(r, object, &d);

	if (e < 0)
		return e;
	if (d.count > 3)
		return -ERANGE;
	if (d.count && (e = object_get(r, d.digits, digits, d.count * sizeof(*digits))) < 0)
		return e;
	for (int i = 2; i >= 0; i--) {
		if (digits[i] >> OBJECT_DIGIT_BITS)
			return -EBADMSG;
		value = value << OBJECT_DIGIT_BITS | digits[i];
	}
	if (value > (uint64_t)INT64_MAX + d.is_negative)
		return -ERANGE;
	*out = d.is_negative ? (int64_t) - (uint64_t)value : (int64_t)value;
	return 0;
}

/* --- tuple, list, set ------------------------------------------------------------------------- */

static int items_each(struct object_reader *r, uint64_t items, uint64_t count, object_item_fn fn,
		      void *arg)
{
	uint64_t block[OBJECT_READ_BYTES / 8];
	const uint32_t at_once = OBJECT_READ_BYTES / 8;
	int e = 0;

	for (uint64_t i = 0; i < count && !e; i++) {
		uint64_t left = count - i;

		if (i % at_once == 0)
			e = object_get(r, items + 8 * i, block,
				       8 * (left < at_once ? left : at_once));
		e = e < 0 ? e : fn(r, block[i % at_once], arg);
	}
	return e;
}

int object_sequence_each(struct object_reader *r, uint64_t object, object_item_fn fn, void *arg)
{
	const struct object_type *t;
	uint64_t block[2]; /* ob_size; a list's ob_item */
	int e;

	if ((e = object_type_of(r, object, &t)) < 0)
		return e;
	if (!(t->flags & (OBJECT_IS_TUPLE | OBJECT_IS_LIST)))
		return -EBADMSG;
	if (t->flags & OBJECT_IS_TUPLE) {
		e = object_get_pointer(r, object + r->head + OBJECT_SIZE, block);
		block[1] = object + r->head + r->layout->tuple_items;
	} else {
		e = object_get(r, object + r->head + OBJECT_SIZE, block, sizeof(block));
	}
	return e < 0 ? e : items_each(r, block[1], block[0], fn, arg);
}

struct set_walk {
	object_item_fn fn;
	void *arg;
	uint64_t left; /* that were not seen yet */
	uint64_t key;  /* of the pair that is read */
	bool is_key_next;
	bool is_end;
};

/* A table is pairs of a key and its hash, which is -1 only where one was removed. */
static int set_word(struct object_reader *r, uint64_t word, void *arg)
{
	struct set_walk *w = arg;
	int e;

	w->is_key_next = !w->is_key_next;
	if (!w->is_key_next) {
		w->key = word;
		return 0;
	}
	if (!w->key || word == UINT64_MAX)
		return 0;
	e = w->fn(r, w->key, w->arg);
	w->is_end = !e && !--w->left;
	return w->is_end ? 1 : e;
}

int object_set_each(struct object_reader *r, uint64_t object, object_item_fn fn, void *arg)
{
	struct set_walk walk = { .fn = fn, .arg = arg, .is_key_next = true };
	uint64_t block[3]; /* used, mask, table */
	int e = object_get(r, object + r->head + OBJECT_SET_USED, block, sizeof(block));

	if (e < 0)
		return e;
	if (block[1] >= 1ULL << SIZE_LOG_MAX || block[1] & (block[1] + 1) ||
	    block[0] > block[1] + 1)
		return -EBADMSG;
	walk.left = block[0];
	if (!walk.left)
		return 0;
	e = items_each(r, block[2], 2 * (block[1] + 1), set_word, &walk);
	return walk.is_end ? 0 : e;
}

int object_length(struct object_reader *r, uint64_t object, uint64_t *out)
{
	const struct object_type *t;
	uint32_t at = OBJECT_SET_USED;
	int e = object_type_of(r, object, &t);

	if (e < 0)
		return e;
	if (t->flags & (OBJECT_IS_TUPLE | OBJECT_IS_LIST))
		at = OBJECT_SIZE;
	else if (t->flags & OBJECT_IS_DICT)
		at = OBJECT_DICT_USED;
	return object_get_pointer(r, object + r->head + at, out);
}

/* --- dict ------------------------------------------------------------------------------------- */

/* The entries of a dict in the order they were added, those since removed among them. */
struct entries {
	uint64_t first;
	uint64_t values; /* of a dict that shares its keys with others: apart; 0: with the keys */
	uint64_t count;
	bool has_hash;
};

static uint32_t entry_bytes(const struct entries *e)
{
	return e->has_hash ? 24 : 16;
}

/* Bytes of the index of a keys object, by the number of its places (<= 3.10, dictobject.c). */
static uint64_t index_bytes(uint64_t places)
{
	return places * (places <= 0xff ? 1 : places <= 0xffff ? 2 : places <= 0xffffffff ? 4 : 8);
}

static int entries_of_keys(struct object_reader *r, uint64_t keys, uint64_t values,
			   struct entries *out)
{
	const struct object_layout *layout = r->layout;
	uint8_t block[48];
	uint64_t size, index, count;
	int e = object_get(r, keys, block, layout->keys_indices);

	if (e < 0)
		return e;
	size = field(block, layout->keys_size, layout->keys_are_logs ? 1 : 8);
	if (size > (layout->keys_are_logs ? SIZE_LOG_MAX : 1ULL << SIZE_LOG_MAX))
		return -EBADMSG;
	index = layout->keys_are_logs ? 1ULL << size : index_bytes(size);
	count = field(block, layout->keys_nentries, 8);
	if (count > index)
		return -EBADMSG;
	*out = (struct entries){ .first = keys + layout->keys_indices + index,
				 .values = values,
				 .count = count,
				 .has_hash = layout->keys_kind == OFF_NONE_8 ||
					     !block[layout->keys_kind] };
	return 0;
}

static int entries_of_dict(struct object_reader *r, uint64_t dict, struct entries *out)
{
	uint64_t pointers[2]; /* ma_keys, ma_values */
	int e;

	if (!dict)
		return -ENOENT;
	e = object_get(r, dict + r->head + OBJECT_DICT_KEYS, pointers, sizeof(pointers));
	if (e < 0)
		return e;
	return entries_of_keys(r, pointers[0],
			       pointers[1] ? pointers[1] + r->layout->values_items : 0, out);
}

/* The entries that are read at once. */
struct entries_block {
	uint8_t keys[OBJECT_READ_BYTES];
	uint64_t values[OBJECT_READ_BYTES / 16]; /* where they are apart */
};

static int get_entries(struct object_reader *r, const struct entries *e, uint64_t from, uint32_t n,
		       struct entries_block *out)
{
	int error = object_get(r, e->first + from * entry_bytes(e), out->keys, n * entry_bytes(e));

	if (!error && e->values)
		error = object_get(r, e->values + 8 * from, out->values, 8 * n);
	return error;
}

static struct object_entry entry_at(const struct entries *e, const struct entries_block *block,
				    uint32_t i)
{
	const uint8_t *p = block->keys + i * entry_bytes(e);
	struct object_entry entry = { 0 };

	if (e->has_hash)
		entry.hash = field(p, 0, 8);
	p += e->has_hash ? 8 : 0;
	entry.key = field(p, 0, 8);
	entry.value = e->values ? block->values[i] : field(p, 8, 8);
	return entry;
}

static int entries_each(struct object_reader *r, const struct entries *e, object_entry_fn fn,
			void *arg)
{
	struct entries_block block;
	const uint32_t at_once = sizeof(block.keys) / entry_bytes(e);
	int error = 0;

	for (uint64_t i = 0; i < e->count && !error; i++) {
		uint64_t left = e->count - i;
		struct object_entry entry;

		if (i % at_once == 0)
			error = get_entries(r, e, i, left < at_once ? left : at_once, &block);
		if (error < 0)
			return error;
		entry = entry_at(e, &block, i % at_once);
		if (entry.key && entry.value)
			error = fn(r, &entry, arg);
	}
	return error;
}

int object_dict_each(struct object_reader *r, uint64_t dict, object_entry_fn fn, void *arg)
{
	struct entries e;
	int error = entries_of_dict(r, dict, &e);

	return error < 0 ? error : entries_each(r, &e, fn, arg);
}

struct text_search {
	const char *text;
	uint64_t value;
};

static int find_text(struct object_reader *r, const struct object_entry *entry, void *arg)
{
	struct text_search *search = arg;
	int e;

	if (entry->key) {
		e = object_str_is(r, entry->key, search->text);
	} else {
		char name[128];

		e = object_chars(r, entry->slot_name, name, sizeof(name));
		e = e < 0 ? e : !strcmp(name, search->text);
	}
	if (e > 0)
		search->value = entry->value;
	return e;
}

static int search_result(int e, const struct text_search *search, uint64_t *value)
{
	if (e <= 0)
		return e < 0 ? e : -ENOENT;
	*value = search->value;
	return 0;
}

int object_dict_get_str(struct object_reader *r, uint64_t dict, const char *name, uint64_t *value)
{
	struct text_search search = { name, 0 };

	return search_result(object_dict_each(r, dict, find_text, &search), &search, value);
}

/* --- attributes ------------------------------------------------------------------------------- */

/* ob_size of an object that varies in size: an int's has its sign there, or is a tag. */
static int items_of(struct object_reader *r, uint64_t object, const struct object_type *t,
		    uint64_t *count)
{
	uint64_t size;
	int e = object_get_pointer(r, object + r->head + OBJECT_SIZE, &size);

	if (e < 0)
		return e;
	if (t->flags & OBJECT_IS_LONG && r->layout->long_is_tagged)
		size >>= 3;
	*count = (int64_t)size < 0 ? -size : size;
	return *count > UINT32_MAX ? -EBADMSG : 0;
}

/* The attributes of an object whose type says where its dict is: < 0, counted from its end. */
static int plain_attributes(struct object_reader *r, uint64_t object, const struct object_type *t,
			    struct entries *out)
{
	int64_t offset = t->dictoffset;
	uint64_t dict, count;
	int e;

	if (offset < 0 && t->itemsize <= OBJECT_READ_BYTES) {
		e = items_of(r, object, t, &count);
		if (e < 0)
			return e;
		offset += (t->basicsize + count * t->itemsize + 7) & ~7ULL;
	}
	if (offset < r->head || offset > (int64_t)UINT32_MAX)
		return -ENOENT;
	e = object_get_pointer(r, object + offset, &dict);
	return e < 0 ? e : entries_of_dict(r, dict, out);
}

/* Values without a dict: their names are with the type. */
static int shared_attributes(struct object_reader *r, const struct object_type *t, uint64_t values,
			     struct entries *out)
{
	uint64_t keys;
	int e = object_get_pointer(r, t->address + r->head + r->layout->type_cached_keys, &keys);

	return e < 0 ? e : entries_of_keys(r, keys, values + r->layout->values_items, out);
}

/* Behind the object's fields, while there is no dict. */
static int inline_attributes(struct object_reader *r, uint64_t object, const struct object_type *t,
			     struct entries *out)
{
	uint8_t valid;
	int e;

	if (!(t->flags & OBJECT_TYPE_INLINE_VALUES))
		return -ENOENT;
	e = object_get(r, object + t->basicsize + OBJECT_VALUES_VALID, &valid, sizeof(valid));
	if (e < 0)
		return e;
	return valid ? shared_attributes(r, t, object + t->basicsize, out) : -ENOENT;
}

static int managed_attributes(struct object_reader *r, uint64_t object, const struct object_type *t,
			      struct entries *out)
{
	uint64_t before = OBJECT_DICT_BEFORE(r->off->is_free_threaded);
	uint64_t dict, values = 0;
	int e = object_get_pointer(r, object - before, &dict);

	if (!e && r->layout->attributes == ATTRIBUTES_POINTERS)
		e = object_get_pointer(r, object - OBJECT_VALUES_BEFORE, &values);
	if (e < 0)
		return e;
	if (r->layout->attributes == ATTRIBUTES_TAGGED && dict & 1)
		values = dict + 1;
	if (values)
		return shared_attributes(r, t, values, out);
	if (!dict && r->layout->attributes == ATTRIBUTES_INLINE)
		return inline_attributes(r, object, t, out);
	return entries_of_dict(r, dict, out);
}

/* structmember.h */
struct member {
	uint64_t name; /* 0: the end */
	uint32_t kind, pad;
	uint64_t offset;
	uint32_t flags, pad2;
	uint64_t doc;
};

/* Members of a type that are objects: its __slots__, or what a type made in C shows. */
static bool is_slot(const struct object_reader *r, const struct object_type *t,
		    const struct member *m)
{
	enum { KIND_OBJECT = 6, KIND_OBJECT_EX = 16, IS_RELATIVE = 8 };

	return (m->kind == KIND_OBJECT || m->kind == KIND_OBJECT_EX) && !(m->flags & IS_RELATIVE) &&
	       m->offset >= r->head && m->offset < t->basicsize;
}

/* Of just this type: 1 and *offset, 0: it has no such one. */
static int find_slot(struct object_reader *r, const struct object_type *t, const char *name,
		     uint64_t *offset)
{
	struct member member;
	char chars[128];
	int e = 0;

	for (uint32_t i = 0; e >= 0 && t->members && i < MEMBERS_MAX; i++) {
		e = object_get(r, t->members + i * sizeof(member), &member, sizeof(member));
		if (e < 0 || !member.name)
			break;
		if (!is_slot(r, t, &member))
			continue;
		e = object_chars(r, member.name, chars, sizeof(chars));
		if (e >= 0 && !strcmp(chars, name)) {
			*offset = member.offset;
			return 1;
		}
	}
	return e < 0 ? e : 0;
}

int object_slot(struct object_reader *r, uint64_t type, const char *name, uint64_t *offset)
{
	const struct object_type *t;
	int e = 0;

	for (int i = 0; i < BASES_MAX && type && !e; i++) {
		if ((e = object_type_get(r, type, &t)) < 0)
			return e;
		type = t->base;
		e = find_slot(r, t, name, offset);
	}
	return e < 0 ? e : e ? 0 : -ENOENT;
}

static int members_each(struct object_reader *r, uint64_t object, const struct object_type *t,
			object_entry_fn fn, void *arg)
{
	struct member member;
	int e = 0;

	for (uint32_t i = 0; t->members && i < MEMBERS_MAX && !e; i++) {
		struct object_entry entry = { 0 };

		e = object_get(r, t->members + i * sizeof(member), &member, sizeof(member));
		if (e < 0 || !member.name)
			return e;
		if (!is_slot(r, t, &member))
			continue;
		entry.slot_name = member.name;
		e = object_get_pointer(r, object + member.offset, &entry.value);
		if (!e && entry.value)
			e = fn(r, &entry, arg);
	}
	return e;
}

static int slots_each(struct object_reader *r, uint64_t object, uint64_t type, object_entry_fn fn,
		      void *arg)
{
	int e = 0;

	for (int i = 0; i < BASES_MAX && type && !e; i++) {
		const struct object_type *found;
		struct object_type t;

		e = object_type_get(r, type, &found);
		if (e < 0)
			return e;
		t = *found; /* the callback reads types, too */
		e = members_each(r, object, &t, fn, arg);
		type = t.base;
	}
	return e;
}

int object_attributes_each(struct object_reader *r, uint64_t object, object_entry_fn fn, void *arg)
{
	const struct object_type *t;
	struct entries entries;
	uint64_t type;
	int e = object_type_of(r, object, &t);

	if (e < 0)
		return e;
	type = t->address;
	if (r->layout->attributes != ATTRIBUTES_DICT && t->flags & OBJECT_TYPE_MANAGED_DICT)
		e = managed_attributes(r, object, t, &entries);
	else
		e = plain_attributes(r, object, t, &entries);
	if (!e)
		e = entries_each(r, &entries, fn, arg);
	else if (e == -ENOENT)
		e = 0;
	return e ? e : slots_each(r, object, type, fn, arg);
}

int object_attribute(struct object_reader *r, uint64_t object, const char *name, uint64_t *value)
{
	struct text_search search = { name, 0 };

	return search_result(object_attributes_each(r, object, find_text, &search), &search, value);
}

int object_global(struct object_reader *r, uint64_t interp, const char *module, const char *name,
		  uint64_t *value)
{
	uint64_t modules, object, dict;
	int e;

	if ((e = object_get_pointer(r, interp + r->off->interp_modules, &modules)) < 0 ||
	    (e = object_dict_get_str(r, modules, module, &object)) < 0 ||
	    (e = object_get_pointer(r, object + r->head + OBJECT_MODULE_DICT, &dict)) < 0)
		return e;
	return object_dict_get_str(r, dict, name, value);
}
