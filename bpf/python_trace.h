/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PYTHON_TRACE_H
#define BPF_PYTHON_TRACE_H

/*
 * The ids of the span that a thread is in, as OpenTelemetry's own API for Python keeps it
 * (opentelemetry/context/contextvars_context.py, trace/propagation, trace/span.py; alike
 * since 1.0):
 *
 *   ContextVar("current_context") -> a dict: "current-span-..." -> a span: _context
 *     -> a SpanContext, which is a tuple: trace_id, span_id, ...
 *
 * Needs the value of the variable, py_context.value. Any of it may be something else: each step is
 * of the kind that it has to be, or there are no ids.
 */

#include "bpf/cache.h"
#include "bpf/context_layout.h"
#include "bpf/python.h"

#define ENTRIES_MAX 64 /* of a dict or an object that are looked at */
#define KEYS_HEAD_BYTES 40
#define KEYS_LOG_MAX 40 /* beyond: no table */

/* "current-span-", of 13 bytes, and "_context" with its NUL. */
#define NAME_SPAN_0 0x2d746e6572727563ULL
#define NAME_SPAN_1 0x2d6e617073ULL
#define NAME_SPAN_BYTES 13
#define NAME_CONTEXT_0 0x747865746e6f635fULL
#define NAME_CONTEXT_BYTES 9

/* tp_flags of an object's type, and that; 0: it has none, or not to be read. */
static __always_inline __u64 type_flags_of(struct py_loop *l, __u64 object, __u64 *type)
{
	struct door door = l->door;
	__u32 head = l->off->str_length;

	*type = object ? read_pointer(door, l->s, object + head - 8) : 0;
	return *type ? read_pointer(door, l->s, *type + head + TYPE_FLAGS) : 0;
}

/* Bytes of an index up to 3.10, of which each place takes as many as numbers up to size need. */
static __always_inline __u64 old_index_bytes(__u64 size)
{
	return size <= 0xff ? size : size <= 0xffff ? 2 * size : 4 * size;
}

/* Into c->entries; none: its count is 0. values: where they are apart, else 0. */
static __always_inline void read_keys(struct py_loop *l, __u64 keys, __u64 values)
{
	const struct py_object_offsets *o = &l->off->objects;
	struct py_scratch *s = l->s;
	struct py_entries *e = &s->context.entries;
	struct door door = l->door;
	__u64 size, count, index;
	bool has_hash = true;

	e->count = 0;
	if (!keys || py_read(door, s, s->text, KEYS_HEAD_BYTES, keys))
		return;
	size = field_u64(s->text, o->keys_size, STRING_HEAD_BYTES - 1);
	count = field_u64(s->text, o->keys_nentries, STRING_HEAD_BYTES - 1);
	if (o->keys_are_logs)
		size &= 0xff;
	if (size > (o->keys_are_logs ? KEYS_LOG_MAX : 1ULL << KEYS_LOG_MAX))
		return;
	index = o->keys_are_logs ? 1ULL << size : old_index_bytes(size);
	if (o->keys_kind != OFF_NONE_8)
		has_hash = !(field_u32(s->text, o->keys_kind, STRING_HEAD_BYTES - 1) & 0xff);
	e->first = keys + o->keys_indices + index + (has_hash ? 8 : 0);
	e->bytes = has_hash ? 24 : 16;
	e->values = values;
	e->count = count > ENTRIES_MAX ? ENTRIES_MAX : count;
}

static __always_inline void read_dict(struct py_loop *l, __u64 dict)
{
	struct py_scratch *s = l->s;
	struct hamt_pair *tables = &s->context.pair; /* ma_keys, ma_values */
	struct door door = l->door;
	__u64 values;

	s->context.entries.count = 0;
	if (!dict ||
	    py_read(door, s, tables, sizeof(*tables), dict + l->off->str_length + DICT_KEYS))
		return;
	values = tables->value ? tables->value + l->off->objects.values_items : 0;
	read_keys(l, tables->key, values);
}

/* From 3.13 on the values of an object without a dict are behind its fields. */
static __always_inline __u64 inline_values(struct py_loop *l, __u64 object, __u64 type, __u64 flags)
{
	struct door door = l->door;
	__u8 is_valid = 0;
	__u64 size;

	if (!(flags & TYPE_HAS_VALUES))
		return 0;
	size = read_pointer(door, l->s, type + l->off->str_length + TYPE_BASICSIZE);
	if (!size || py_read(door, l->s, &is_valid, 1, object + size + VALUES_VALID))
		return 0;
	return is_valid ? object + size : 0;
}

/* The attributes of an object, but for slots. */
static __always_inline void read_attributes(struct py_loop *l, __u64 object)
{
	const struct py_object_offsets *o = &l->off->objects;
	struct py_scratch *s = l->s;
	struct door door = l->door;
	__u32 head = l->off->str_length;
	__u64 type, flags = type_flags_of(l, object, &type), dict = 0, values = 0;

	s->context.entries.count = 0;
	if (!flags)
		return;
	if (o->attributes == ATTRIBUTES_DICT) {
		__s64 at = read_pointer(door, s, type + head + TYPE_DICTOFFSET);

		dict = at > 0 ? read_pointer(door, s, object + at) : 0;
	} else if (flags & TYPE_HAS_DICT) {
		dict = read_pointer(door, s, object - DICT_BEFORE(l->off->is_free_threaded));
		if (o->attributes == ATTRIBUTES_POINTERS)
			values = read_pointer(door, s, object - VALUES_BEFORE);
		else if (o->attributes == ATTRIBUTES_TAGGED && dict & 1)
			values = dict + 1;
		else if (o->attributes == ATTRIBUTES_INLINE && !dict)
			values = inline_values(l, object, type, flags);
	}
	if (values)
		read_keys(l, read_pointer(door, s, type + head + o->type_cached_keys),
			  values + o->values_items);
	else
		read_dict(l, dict);
}

/* Is it the one? Its value into c->value. */
static int entries_find_step(__u32 i, struct py_loop *l)
{
	struct py_scratch *s = l->s;
	struct py_context *c = &s->context;
	struct py_entries *e = &c->entries;
	struct door door = l->door;
	__u64 at, bytes = at_most(e->name_bytes, sizeof(c->type_name));

	if (i >= e->count)
		return LOOP_STOP;
	at = e->at < e->count ? e->at : 0;
	e->at = at + 1;
	if (py_read(door, s, &c->pair, sizeof(c->pair), e->first + at * e->bytes))
		return LOOP_STOP;
	c->type_name[0] = 0;
	c->type_name[1] = 0;
	if (!c->pair.key ||
	    py_read(door, s, c->type_name, bytes, c->pair.key + l->off->str_ascii_data) ||
	    c->type_name[0] != e->name[0] || c->type_name[1] != e->name[1])
		return LOOP_NEXT;
	c->value = e->values ? read_pointer(door, s, e->values + 8 * at) : c->pair.value;
	return LOOP_STOP;
}

LOOP_STEP(entries_find_step)

/* The value of what is called e->name, of c->entries; 0: there is none. */
static __always_inline __u64 entries_find(struct py_loop *l, __u32 from)
{
	struct py_context *c = &l->s->context;

	c->value = 0;
	c->entries.at = from;
	LOOP(ENTRIES_MAX, entries_find_step, l);
	return c->value;
}

static __always_inline void entries_look_for(struct py_loop *l, __u64 first, __u64 second,
					     __u32 bytes)
{
	struct py_entries *e = &l->s->context.entries;

	e->name[0] = first;
	e->name[1] = second;
	e->name_bytes = bytes;
}

/* What a span says of itself. All spans of a process have it at the same place, by and large. */
static __always_inline __u64 context_of_span(struct py_loop *l, __u64 span)
{
	struct py_scratch *s = l->s;
	__u64 key = context_key(s->walk.process, 0, FACT_SPAN_AT), value;
	__u64 hint = cache_get(context_cache, CONTEXT_SLOTS, key);

	entries_look_for(l, NAME_CONTEXT_0, 0, NAME_CONTEXT_BYTES);
	read_attributes(l, span);
	value = entries_find(l, hint ? hint - 1 : 0);
	if (value && s->context.entries.at != hint)
		cache_put(context_cache, CONTEXT_SLOTS, key, s->context.entries.at);
	return value;
}

/* Where the ids of the span in a Context are; 0: it has none. */
static __always_inline __u64 ids_of_context(struct py_loop *l, __u64 context)
{
	struct py_scratch *s = l->s;
	struct door door = l->door;
	__u32 head = l->off->str_length;
	__u64 type, span, ids;

	if (!(type_flags_of(l, context, &type) & TYPE_IS_DICT))
		return 0;
	entries_look_for(l, NAME_SPAN_0, NAME_SPAN_1, NAME_SPAN_BYTES);
	read_dict(l, context);
	span = entries_find(l, 0);
	ids = span ? context_of_span(l, span) : 0;
	if (!ids || !(type_flags_of(l, ids, &type) & TYPE_IS_TUPLE) ||
	    (__s64)read_pointer(door, s, ids + head + TUPLE_SIZE) < 2)
		return 0;
	return ids + head + l->off->objects.tuple_items;
}

/* From the Context, which is what labels that are of a span have found. */
static __always_inline void py_find_span(struct py_loop *l)
{
	struct py_context *c = &l->s->context;

	c->span = ids_of_context(l, c->span);
}

#endif
