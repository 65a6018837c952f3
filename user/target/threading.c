/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/threading.h"

#include <errno.h>
#include <string.h>

#define INTERPRETERS_MAX 64
#define ENTRIES_MAX (1u << 20) /* of one dict */
#define INDEX_LOG_MAX 28

/* clang-format off */
#define OLD_KEYS                                                                       \
	.keys_size = 8, .keys_kind = OFF_NONE_8, .keys_nentries = 32, .keys_indices = 40
#define NEW_KEYS                                                                       \
	.keys_are_logs = true, .keys_size = 9, .keys_kind = 10, .keys_nentries = 24,   \
	.keys_indices = 32
#define OBJECTS                                                                        \
	.dict_keys = 16, .dict_values = 24, .type_flags = 152, .type_dictoffset = 272

static const struct threading_layout layouts[] = {
	{ 6, 10, ATTRIBUTES_DICT, OLD_KEYS, OBJECTS, .type_cached_keys = OFF_NONE },
	{ 11, 11, ATTRIBUTES_POINTERS, NEW_KEYS, OBJECTS, .type_cached_keys = 856 },
	{ 12, 12, ATTRIBUTES_TAGGED, NEW_KEYS, OBJECTS, .type_cached_keys = 864 },
	{ 13, 14, ATTRIBUTES_INLINE, NEW_KEYS, OBJECTS, .values_items = 8,
	  .type_cached_keys = 864 },
	{ 15, 15, ATTRIBUTES_INLINE, NEW_KEYS, OBJECTS, .values_items = 8,
	  .type_cached_keys = 872 },
};
/* clang-format on */

const struct threading_layout *threading_layout_find(const struct py_offsets *off)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++)
		if (off->minor >= layouts[i].minor_first && off->minor <= layouts[i].minor_last)
			return &layouts[i];
	return NULL;
}

struct look {
	const struct threading_process *process;
	const struct py_offsets *off;
	const struct threading_layout *layout;
	uint64_t head; /* sizeof(PyObject) */
	uint32_t reads;
};

static int get(struct look *l, uint64_t addr, void *buf, size_t len)
{
	if (++l->reads > THREADING_READS_MAX)
		return -E2BIG;
	if (!addr || addr + len < addr)
		return -EFAULT;
	return l->process->read(l->process->arg, addr, buf, len);
}

static int get_pointer(struct look *l, uint64_t addr, uint64_t *out)
{
	return get(l, addr, out, sizeof(*out));
}

/* The last field of PyObject. */
static int get_type(struct look *l, uint64_t object, uint64_t *type)
{
	return get_pointer(l, object + l->head - 8, type);
}

/* A field that is no pointer of a block that was read. */
static uint64_t field(const uint8_t *block, size_t at, size_t bytes)
{
	uint64_t value = 0;

	memcpy(&value, block + at, bytes);
	return value;
}

/* --- dicts ------------------------------------------------------------------------------------ */

/* The entries of a dict in the order they were added, those since removed among them. */
struct entries {
	uint64_t first;
	uint64_t values; /* of a dict that shares its keys with others: apart; 0: with the keys */
	uint32_t count;
	bool has_hash;
};

struct entry {
	uint64_t hash; /* only where has_hash */
	uint64_t key, value;
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

static int entries_of_keys(struct look *l, uint64_t keys, uint64_t values, struct entries *out)
{
	const struct threading_layout *layout = l->layout;
	uint8_t block[48];
	uint64_t size, index, count;
	int r = get(l, keys, block, layout->keys_indices);

	if (r < 0)
		return r;
	size = field(block, layout->keys_size, layout->keys_are_logs ? 1 : 8);
	if (size > (layout->keys_are_logs ? INDEX_LOG_MAX : 1u << INDEX_LOG_MAX))
		return -EBADMSG;
	index = layout->keys_are_logs ? 1ULL << size : index_bytes(size);
	count = field(block, layout->keys_nentries, 8);
	if (count > ENTRIES_MAX || count > index)
		return -EBADMSG;
	*out = (struct entries){ .first = keys + layout->keys_indices + index,
				 .values = values,
				 .count = count,
				 .has_hash = layout->keys_kind == OFF_NONE_8 ||
					     !block[layout->keys_kind] };
	return 0;
}

static int entries_of_dict(struct look *l, uint64_t dict, struct entries *out)
{
	uint64_t pointers[2]; /* ma_keys, ma_values */
	int r;

	if (!dict)
		return -ENOENT;
	r = get(l, dict + l->head + l->layout->dict_keys, pointers, sizeof(pointers));
	if (r < 0)
		return r;
	return entries_of_keys(l, pointers[0],
			       pointers[1] ? pointers[1] + l->layout->values_items : 0, out);
}

static struct entry entry_at(const struct entries *e, const uint8_t *block, size_t i)
{
	const uint8_t *p = block + i * entry_bytes(e);
	struct entry entry = { 0 };

	if (e->has_hash)
		entry.hash = field(p, 0, 8);
	p += e->has_hash ? 8 : 0;
	entry.key = field(p, 0, 8);
	entry.value = field(p, 8, 8);
	return entry;
}

/* Is this the one? 1: yes; 0: no; a negative errno ends the search. */
typedef int (*is_wanted_fn)(struct look *l, const struct entry *entry, const void *wanted);

/* The first entry that is_wanted(), with its value, which may be 0. -ENOENT if there is none. */
static int find_entry(struct look *l, const struct entries *e, is_wanted_fn is_wanted,
		      const void *wanted, struct entry *out)
{
	uint8_t block[THREADING_READ_BYTES];
	const uint32_t at_once = sizeof(block) / entry_bytes(e);
	int r = 0;

	for (uint32_t i = 0; i < e->count && !r; i++) {
		uint32_t left = e->count - i, n = left < at_once ? left : at_once;

		if (i % at_once == 0)
			r = get(l, e->first + (uint64_t)i * entry_bytes(e), block,
				n * entry_bytes(e));
		if (r < 0)
			return r;
		*out = entry_at(e, block, i % at_once);
		r = out->key ? is_wanted(l, out, wanted) : 0;
		if (r > 0 && e->values)
			r = get_pointer(l, e->values + 8ULL * i, &out->value) ?: 1;
	}
	return r < 0 ? r : r ? 0 : -ENOENT;
}

/* --- str -------------------------------------------------------------------------------------- */

static bool state_bit(uint32_t state, uint8_t bit)
{
	return state >> bit & 1;
}

/* Is the key this ASCII text? One that cannot be read is not. */
static int is_text(struct look *l, const struct entry *entry, const void *text)
{
	const size_t len = strlen(text);
	const uint32_t at = l->off->str_ascii_data;
	uint8_t block[192];
	uint32_t state;
	int r;

	if (at + len > sizeof(block))
		return 0;
	r = get(l, entry->key, block, at + len);
	if (r < 0)
		return r == -E2BIG ? r : 0;
	state = field(block, l->off->str_state, 4);
	return field(block, l->off->str_length, 8) == len &&
	       state_bit(state, l->off->str_compact_bit) &&
	       state_bit(state, l->off->str_ascii_bit) && !memcmp(block + at, text, len);
}

static int find_text(struct look *l, const struct entries *e, const char *text, struct entry *out)
{
	int r = find_entry(l, e, is_text, text, out);

	return r < 0 ? r : out->value ? 0 : -ENOENT;
}

static int get_name(struct look *l, uint64_t object, struct threading_name *out)
{
	const struct py_offsets *off = l->off;
	uint8_t block[192];
	uint64_t chars;
	uint32_t state, data;
	int r = get(l, object, block, off->str_ascii_data);

	if (r < 0)
		return r;
	chars = field(block, off->str_length, 8);
	state = field(block, off->str_state, 4);
	out->kind = state >> off->str_kind_shift & 7;
	data = state_bit(state, off->str_ascii_bit) ? off->str_ascii_data : off->str_compact_data;
	if (!state_bit(state, off->str_compact_bit) || !chars ||
	    (out->kind != 1 && out->kind != 2 && out->kind != 4))
		return -ENOENT;
	out->is_cut = chars > THREADING_CHARS_MAX;
	out->len = (out->is_cut ? THREADING_CHARS_MAX : chars) * out->kind;
	return get(l, object + data, out->bytes, out->len);
}

/* --- attributes ------------------------------------------------------------------------------- */

/* The attributes of an object whose type says where its dict is. */
static int plain_attributes(struct look *l, uint64_t object, uint64_t type, struct entries *out)
{
	uint64_t offset, dict;
	int r = get_pointer(l, type + l->head + l->layout->type_dictoffset, &offset);

	if (r < 0)
		return r;
	if (offset < l->head || offset > THREADING_READ_BYTES)
		return -ENOENT; /* none; or counted from the end of one that varies in size */
	r = get_pointer(l, object + offset, &dict);
	return r < 0 ? r : entries_of_dict(l, dict, out);
}

/* Values without a dict: their names are with the type. */
static int shared_attributes(struct look *l, uint64_t type, uint64_t values, struct entries *out)
{
	uint64_t keys;
	int r = get_pointer(l, type + l->head + l->layout->type_cached_keys, &keys);

	return r < 0 ? r : entries_of_keys(l, keys, values + l->layout->values_items, out);
}

/* Behind the head, while there is no dict. */
static int inline_attributes(struct look *l, uint64_t object, uint64_t type, uint64_t flags,
			     struct entries *out)
{
	uint8_t valid;
	int r;

	if (!(flags & THREADING_INLINE_VALUES))
		return -ENOENT;
	r = get(l, object + l->head + THREADING_VALUES_VALID, &valid, sizeof(valid));
	if (r < 0)
		return r;
	return valid ? shared_attributes(l, type, object + l->head, out) : -ENOENT;
}

static int managed_attributes(struct look *l, uint64_t object, uint64_t type, uint64_t flags,
			      struct entries *out)
{
	uint64_t before = THREADING_DICT_BEFORE(l->off->is_free_threaded);
	uint64_t dict, values = 0;
	int r = get_pointer(l, object - before, &dict);

	if (!r && l->layout->attributes == ATTRIBUTES_POINTERS)
		r = get_pointer(l, object - THREADING_VALUES_BEFORE, &values);
	if (r < 0)
		return r;
	if (l->layout->attributes == ATTRIBUTES_TAGGED && dict & 1)
		values = dict + 1;
	if (values)
		return shared_attributes(l, type, values, out);
	if (!dict && l->layout->attributes == ATTRIBUTES_INLINE)
		return inline_attributes(l, object, type, flags, out);
	return entries_of_dict(l, dict, out);
}

static int find_attribute(struct look *l, uint64_t object, const char *name, struct entry *out)
{
	struct entries e;
	uint64_t type, flags;
	int r;

	if ((r = get_type(l, object, &type)) < 0 ||
	    (r = get_pointer(l, type + l->head + l->layout->type_flags, &flags)) < 0)
		return r;
	if (l->layout->attributes != ATTRIBUTES_DICT && flags & THREADING_MANAGED_DICT)
		r = managed_attributes(l, object, type, flags, &e);
	else
		r = plain_attributes(l, object, type, &e);
	return r < 0 ? r : find_text(l, &e, name, out);
}

/* --- threads ---------------------------------------------------------------------------------- */

/* An int below 2^61 - 1 is its own hash (Objects/longobject.c): its object need not be read. */
static int is_ident(struct look *l, const struct entry *entry, const void *ident)
{
	(void)l;
	return entry->hash == *(const uint64_t *)ident;
}

/* Name and the attribute's name are of one type: str, and nothing that looks like one. */
static int name_of_thread(struct look *l, uint64_t thread, struct threading_name *out)
{
	struct entry attribute;
	uint64_t type, str;
	int r;

	if ((r = find_attribute(l, thread, "_name", &attribute)) < 0 ||
	    (r = get_type(l, attribute.key, &str)) < 0 ||
	    (r = get_type(l, attribute.value, &type)) < 0)
		return r;
	return type == str ? get_name(l, attribute.value, out) : -ENOENT;
}

static int name_in_dict(struct look *l, uint64_t active, uint64_t ident, struct threading_name *out)
{
	struct entries e;
	struct entry entry;
	int r = entries_of_dict(l, active, &e);

	if (r < 0)
		return r;
	if (!e.has_hash)
		return -ENOENT; /* keys are all str: none of them is an ident */
	r = find_entry(l, &e, is_ident, &ident, &entry);
	if (r < 0)
		return r;
	return entry.value ? name_of_thread(l, entry.value, out) : -ENOENT;
}

/* threading._active of one interpreter. */
static int find_active(struct look *l, uint64_t interp, uint64_t *active)
{
	uint64_t modules, dict;
	struct entries e;
	struct entry entry;
	int r;

	if ((r = get_pointer(l, interp + l->off->interp_modules, &modules)) < 0 ||
	    (r = entries_of_dict(l, modules, &e)) < 0 ||
	    (r = find_text(l, &e, "threading", &entry)) < 0 ||
	    (r = get_pointer(l, entry.value + l->head, &dict)) < 0 || /* md_dict */
	    (r = entries_of_dict(l, dict, &e)) < 0 || (r = find_text(l, &e, "_active", &entry)) < 0)
		return r;
	*active = entry.value;
	return 0;
}

static int name_in_process(struct look *l, uint64_t ident, struct threading_name *out,
			   uint64_t *active)
{
	uint64_t interp, found;
	int r = get_pointer(l, l->process->runtime + l->off->runtime_interpreters_head, &interp);
	int result = r < 0 ? r : -ENOENT;

	for (int i = 0; i < INTERPRETERS_MAX && !r && interp; i++) {
		r = find_active(l, interp, &found);
		if (!r)
			r = name_in_dict(l, found, ident, out);
		if (!r)
			*active = found;
		if (!r || r == -E2BIG)
			return r;
		if (r != -ENOENT)
			result = r;
		r = get_pointer(l, interp + l->off->interp_next, &interp);
	}
	return result;
}

int threading_name(struct threading_process *p, uint64_t ident, struct threading_name *out)
{
	struct look l = { .process = p,
			  .off = p->off,
			  .layout = threading_layout_find(p->off),
			  .head = p->off->str_length };
	struct threading_name name = { 0 };
	int r = -ENOENT;

	if (!l.layout || !p->off->interp_modules)
		return -ENOTSUP;
	if (p->active)
		r = name_in_dict(&l, p->active, ident, &name);
	if (r < 0 && r != -E2BIG)
		r = name_in_process(&l, ident, &name, &p->active);
	if (!r)
		*out = name;
	return r;
}
