/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "hamt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "bpf/context_layout.h"

#define TYPE_BYTES 256
#define FLAGS_INT (1u << 24)
#define FLAGS_STR (1u << 28)
#define OBJECT_BYTES 64
#define ARRAY_MIN 17 /* entries, from which on a bitmap becomes an array */

static __u16 head(const struct world *w)
{
	return w->off->str_length;
}

static __u64 type_new(struct world *w, const char *name, __u64 flags)
{
	__u64 type = world_alloc(w, TYPE_BYTES);

	memory_write_u64(w->m, type + head(w) + TYPE_NAME,
			 world_bytes(w, name, strlen(name) + 1) + w->off->bytes_data);
	memory_write_u64(w->m, type + head(w) + TYPE_FLAGS, flags);
	return type;
}

void hamt_types_init(struct world *w, struct hamt_types *types)
{
	*types = (struct hamt_types){
		.bitmap = type_new(w, "hamt_bitmap_node", 0),
		.array = type_new(w, "hamt_array_node", 0),
		.collision = type_new(w, "hamt_collision_node", 0),
		.text = type_new(w, "str", FLAGS_STR),
		.integer = type_new(w, "int", FLAGS_INT),
		.boolean = type_new(w, "bool", FLAGS_INT),
		.none = type_new(w, "NoneType", 0),
		.other = type_new(w, "UUID", 0),
	};
}

static void set_type(struct world *w, __u64 object, __u64 type)
{
	memory_write_u64(w->m, object + head(w) - 8, type);
}

__u64 hamt_object(struct world *w, __u64 type)
{
	__u64 object = world_alloc(w, OBJECT_BYTES);

	set_type(w, object, type);
	return object;
}

bool hamt_world(struct world *w, struct hamt_types *types, const struct py_offsets *off)
{
	if (off->tstate_context == OFF_NONE)
		return false;
	world_init(w, off);
	world_enter(w);
	world_push(w, world_code(w, "main"), 2);
	world_publish(w);
	hamt_types_init(w, types);
	return true;
}

__u64 hamt_var(struct world *w, __u64 name, __u64 hash)
{
	__u64 var = world_alloc(w, OBJECT_BYTES);

	memory_write_u64(w->m, var + head(w) + CONTEXTVAR_NAME, name);
	memory_write_u64(w->m, var + w->off->contextvar_hash, hash);
	return var;
}

void hamt_enter(struct world *w, __u64 root)
{
	__u64 hamt = world_alloc(w, OBJECT_BYTES), context = world_alloc(w, OBJECT_BYTES);

	memory_write_u64(w->m, hamt + head(w) + HAMT_ROOT, root);
	memory_write_u64(w->m, context + head(w) + CONTEXT_VARS, hamt);
	memory_write_u64(w->m, w->tstate + w->off->tstate_context, context);
}

__u64 hamt_node(struct world *w, __u64 type, __u64 size, __u32 bitmap, size_t words)
{
	__u64 node = world_alloc(w, head(w) + HAMT_PAIRS + 8 * words);

	set_type(w, node, type);
	memory_write_u64(w->m, node + head(w) + HAMT_SIZE, size);
	memory_write_u32(w->m, node + head(w) + HAMT_BITS, bitmap);
	return node;
}

void hamt_set(struct world *w, __u64 node, __u64 type, const struct hamt_types *types, size_t word,
	      __u64 value)
{
	__u64 items = node + head(w) + (type == types->array ? HAMT_CHILDREN : HAMT_PAIRS);

	memory_write_u64(w->m, items + 8 * word, value);
}

static void set_pair(struct world *w, const struct hamt_types *types, __u64 node, size_t at,
		     __u64 key, __u64 value)
{
	hamt_set(w, node, types->bitmap, types, 2 * at, key);
	hamt_set(w, node, types->bitmap, types, 2 * at + 1, value);
}

static __u64 collision_of(struct world *w, const struct hamt_types *types,
			  const struct hamt_item *items, size_t count)
{
	__u64 node = hamt_node(w, types->collision, 2 * count, items->hash, 2 * count);

	for (size_t i = 0; i < count; i++)
		set_pair(w, types, node, i, items[i].var, items[i].value);
	return node;
}

static bool share_hash(const struct hamt_item *items, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (items[i].hash != items[0].hash)
			return false;
	return true;
}

static __u64 tree_below(struct world *w, const struct hamt_types *types,
			const struct hamt_item *items, size_t count, unsigned shift)
{
	struct hamt_item *groups[32];
	size_t counts[32] = { 0 };
	unsigned used = 0, at = 0;
	__u32 bitmap = 0;
	__u64 node, child;
	bool is_array;

	if (shift && count > 1 && share_hash(items, count))
		return collision_of(w, types, items, count);
	for (unsigned g = 0; g < 32; g++) {
		groups[g] = calloc(count, sizeof(*items));
		assert_non_null(groups[g]);
		for (size_t i = 0; i < count; i++)
			if ((items[i].hash >> shift & 31) == g)
				groups[g][counts[g]++] = items[i];
		used += counts[g] > 0;
		bitmap |= (__u32)(counts[g] > 0) << g;
	}
	is_array = used >= ARRAY_MIN;
	node = is_array ? hamt_node(w, types->array, 0, 0, 32)
			: hamt_node(w, types->bitmap, 2 * used, bitmap, 2 * used);
	for (unsigned g = 0; g < 32; g++) {
		bool is_leaf = counts[g] == 1 && !is_array;

		if (is_array)
			hamt_set(w, node, types->array, types, g, 0);
		if (counts[g]) {
			child = is_leaf ? groups[g]->value
					: tree_below(w, types, groups[g], counts[g], shift + 5);
			if (is_array)
				hamt_set(w, node, types->array, types, g, child);
			else
				set_pair(w, types, node, at++, is_leaf ? groups[g]->var : 0, child);
		}
		free(groups[g]);
	}
	return node;
}

__u64 hamt_tree(struct world *w, const struct hamt_types *types, const struct hamt_item *items,
		size_t count)
{
	return count ? tree_below(w, types, items, count, 0) : 0;
}

__u64 hamt_text(struct world *w, const struct hamt_types *types, enum text_shape shape,
		unsigned kind, const void *chars, size_t length)
{
	__u64 text = world_text(w, shape, kind, chars, length, -1);

	set_type(w, text, types->text);
	return text;
}

__u64 hamt_int(struct world *w, __u64 type, bool is_negative, const __u32 *digits, size_t count)
{
	__u64 object = world_alloc(w, head(w) + INT_DIGITS + 4 * count);
	__u64 tag = is_negative ? -count : count;

	if (w->off->minor >= 12)
		tag = count << 3 | (is_negative ? 2 : !count);
	set_type(w, object, type);
	memory_write_u64(w->m, object + head(w) + INT_TAG, tag);
	memory_write(w->m, object + head(w) + INT_DIGITS, digits, 4 * count);
	return object;
}
