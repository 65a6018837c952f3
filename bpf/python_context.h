/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PYTHON_CONTEXT_H
#define BPF_PYTHON_CONTEXT_H

/*
 * Labels of a sample: what context variables (contextvars.ContextVar) are set to in the context
 * that the thread runs in, str or int.
 *
 * A context keeps its values in a HAMT (Python/hamt.c): a tree whose nodes never change, by 5 bits
 * of the variable's hash a level. A variable is found by its name once, among all that a context
 * has; from then on by its address and its hash, some reads deep. Both are checked each time: the
 * hash mixes the address with the name's own, so that another variable at that address has another.
 * Memory may be anything: each loop is bounded, and what cannot be read is no label.
 */

#include "bpf/cache.h"
#include "bpf/context_layout.h"
#include "bpf/python.h"
#include "bpf/python_state.h"
#include "bpf/python_trace.h"
#include "bpf/thread_context.h"

/* Defined by whoever runs the unwinder. */
extern const volatile struct label_config label_configs[CONTEXT_LABELS_MAX];

#define HAMT_WIDTH 32          /* HAMT_ARRAY_NODE_SIZE */
#define HAMT_FIND_STEPS 32     /* a node a level, and keys that share a hash */
#define HAMT_SEARCH_STEPS 1024 /* of a larger tree another part each time */
#define HAMT_CHEAP_STEPS 4     /* a search of no more costs about what keeping from it would */
#define HAMT_ENTRIES_MAX 64    /* of a node; CPython makes more only of keys that share a hash */

/* What a type is called tells a node's kind: there need not be symbols. */
#define NAME_HAMT_BITMAP_0 0x7469625f746d6168ULL /* "hamt_bitmap_node" */
#define NAME_HAMT_BITMAP_1 0x65646f6e5f70616dULL
#define NAME_HAMT_ARRAY_0 0x7272615f746d6168ULL /* "hamt_array_node" */
#define NAME_HAMT_ARRAY_1 0x0065646f6e5f7961ULL
#define NAME_HAMT_COLLISION_0 0x6c6f635f746d6168ULL /* "hamt_collision_n..." */
#define NAME_HAMT_COLLISION_1 0x6e5f6e6f6973696cULL
#define NAME_BOOL 0x6c6f6f62u /* "bool" */

enum hamt_kind { HAMT_NONE, HAMT_BITMAP, HAMT_ARRAY, HAMT_COLLISION };

/* Of a label: variables are an interpreter's. Needs s->tstate. */
static __always_inline __u64 label_key(struct py_loop *l, __u32 number, enum context_fact fact)
{
	__u64 interp = tstate_u64(l->s, l->off->tstate_interp);

	return context_key(hash_mix(l->s->walk.process, interp), number, fact);
}

/* --- the HAMT --------------------------------------------------------------------------------- */

static __always_inline enum hamt_kind hamt_kind_of_name(__u64 first, __u64 second)
{
	if (first == NAME_HAMT_BITMAP_0 && second == NAME_HAMT_BITMAP_1)
		return HAMT_BITMAP;
	if (first == NAME_HAMT_ARRAY_0 && second == NAME_HAMT_ARRAY_1)
		return HAMT_ARRAY;
	if (first == NAME_HAMT_COLLISION_0 && second == NAME_HAMT_COLLISION_1)
		return HAMT_COLLISION;
	return HAMT_NONE;
}

/* These types are the interpreter's own, and stay. */
static __always_inline __u32 hamt_kind_of(struct py_loop *l, __u64 type)
{
	struct py_scratch *s = l->s;
	struct door door = l->door;
	__u64 key = context_key(s->walk.process, type, FACT_HAMT_KIND), at;
	__u64 *name = s->context.type_name;
	__u32 kind = cache_get(context_cache, CONTEXT_SLOTS, key);

	if (kind)
		return kind;
	at = read_pointer(door, s, type + l->off->str_length + TYPE_NAME);
	if (!at || py_read(door, s, name, sizeof(s->context.type_name), at))
		return HAMT_NONE;
	kind = hamt_kind_of_name(name[0], name[1]);
	if (kind)
		cache_put(context_cache, CONTEXT_SLOTS, key, kind);
	return kind;
}

/* kind is HAMT_NONE where there is no node. */
static __always_inline void hamt_read_node(struct py_loop *l, __u64 addr, struct hamt_node *node)
{
	struct py_scratch *s = l->s;
	struct door door = l->door;
	__u32 head = l->off->str_length;
	__u64 entries;

	node->addr = addr;
	node->kind = HAMT_NONE;
	node->at = 0;
	if (head + HAMT_HEAD_BYTES > STRING_HEAD_BYTES ||
	    py_read(door, s, s->text, head + HAMT_HEAD_BYTES, addr))
		return;
	entries = field_u64(s->text, head + HAMT_SIZE, STRING_HEAD_BYTES - 1) / 2;
	node->bitmap = field_u32(s->text, head + HAMT_BITS, STRING_HEAD_BYTES - 1);
	node->kind = hamt_kind_of(l, field_u64(s->text, head - 8, STRING_HEAD_BYTES - 1));
	node->entries = node->kind == HAMT_ARRAY     ? HAMT_WIDTH
			: entries > HAMT_ENTRIES_MAX ? HAMT_ENTRIES_MAX
						     : entries;
}

/* An entry, into s->context.pair. 0 or PY_FAULT. */
static __always_inline int hamt_read_pair(struct py_loop *l, const struct hamt_node *node, __u32 at)
{
	struct hamt_pair *pair = &l->s->context.pair;
	__u64 items = node->addr + l->off->str_length;
	struct door door = l->door;

	if (node->kind != HAMT_ARRAY)
		return py_read(door, l->s, pair, sizeof(*pair), items + HAMT_PAIRS + 16ULL * at);
	pair->key = 0;
	return py_read(door, l->s, &pair->value, sizeof(pair->value),
		       items + HAMT_CHILDREN + 8ULL * at);
}

/* Where in the node the bits of the hash lead; node->entries: nowhere. */
static __always_inline __u32 hamt_place(const struct hamt_node *node, __u32 bits)
{
	__u32 bit = bits & (HAMT_WIDTH - 1);

	if (node->kind == HAMT_ARRAY)
		return bit;
	if (node->kind == HAMT_COLLISION)
		return node->at;
	if (!(node->bitmap >> bit & 1))
		return node->entries;
	return __builtin_popcount(node->bitmap & ((1U << bit) - 1));
}

/* One node on the way to c->var, or one more of the keys that share its hash. */
static int hamt_find_step(__u32 i, struct py_loop *l)
{
	struct py_context *c = &l->s->context;
	struct hamt_node *node = &c->node;
	__u32 place;

	if (!node->kind)
		return LOOP_STOP;
	place = hamt_place(node, c->bits);
	if (place >= node->entries || hamt_read_pair(l, node, place))
		return LOOP_STOP;
	if (c->pair.key == c->var) {
		c->value = c->pair.value;
		return LOOP_STOP;
	}
	if (node->kind == HAMT_COLLISION) {
		node->at++;
		return LOOP_NEXT;
	}
	if (c->pair.key || !c->pair.value)
		return LOOP_STOP;
	c->bits >>= 5;
	hamt_read_node(l, c->pair.value, node);
	return LOOP_NEXT;
}

LOOP_STEP(hamt_find_step)

/* As hamt_hash() in Python/hamt.c folds what hash() gives. */
static __always_inline __u32 hamt_hash(__u64 hash)
{
	__u32 folded = (__u32)hash ^ (__u32)(hash >> 32);

	return folded == 0xffffffff ? 0xfffffffe : folded;
}

/* --- variables by their names ----------------------------------------------------------------- */

/* Labels that there are, a bit each. */
static __always_inline __u32 labels_wanted(void)
{
	__u32 labels = 0;

	for (__u32 number = 0; number < CONTEXT_LABELS_MAX; number++)
		labels |= (__u32) !!label_configs[number].name_bytes << number;
	return labels;
}

/* Those whose variable is called like what is in s->message, with zeros behind it. */
VERIFIED_ONCE int labels_of_name(struct py_scratch *s, __u32 bytes)
{
	const __u64 *name;
	__u32 labels = 0;

	if (!s || !label_configs[0].name_bytes)
		return 0; /* for the verifier, as in take_own_labels() */
	name = (const __u64 *)s->message;
	for (__u32 number = 0; number < CONTEXT_LABELS_MAX; number++) {
		__u64 differs = label_configs[number].name_bytes ^ bytes;

		for (__u32 i = 0; i < LABEL_NAME_BYTES / 8; i++)
			differs |= name[i] ^ label_configs[number].name[i];
		labels |= (__u32)!differs << number;
	}
	return labels;
}

/* The same by the variable's name, a str; -1 if that cannot be read. */
static __always_inline int labels_of_var(struct py_loop *l, __u64 var)
{
	struct py_scratch *s = l->s;
	struct door door = l->door;
	const struct py_offsets *off = l->off;
	__u64 name = read_pointer(door, s, var + off->str_length + CONTEXTVAR_NAME), length;
	__u32 size = off->str_state + 8;

	if (!name || size > STRING_HEAD_BYTES || py_read(door, s, s->text, size, name))
		return -1;
	length = field_u64(s->text, off->str_length, STRING_HEAD_BYTES - 1);
	if (!length || length > LABEL_NAME_BYTES ||
	    !(field_u32(s->text, off->str_state, STRING_HEAD_BYTES - 1) >>
		      (off->str_ascii_bit & 31) &
	      1))
		return 0;
	length = at_most(length, LABEL_NAME_BYTES);
	__builtin_memset(s->message, 0, LABEL_NAME_BYTES);
	if (py_read(door, s, s->message, length, name + off->str_ascii_data))
		return -1;
	return labels_of_name(s, length);
}

/*
 * A variable that was met in a search, for labels that are missing. Those that no label wants are
 * looked at once in 8 s.
 */
static __always_inline void learn_var(struct py_loop *l, __u64 var)
{
	struct py_scratch *s = l->s;
	struct door door = l->door;
	__u64 seen = hash_mix(hash_mix(s->walk.process, var), s->sample.ktime_ns >> 33) | 1, hash;
	int labels;

	if (is_sent(seen))
		return;
	labels = labels_of_var(l, var);
	if (!labels)
		mark_sent(seen);
	if (labels > 0)
		labels &= ~s->context.found;
	if (labels <= 0 || py_read(door, s, &hash, sizeof(hash), var + l->off->contextvar_hash))
		return;
	for (__u32 number = 0; number < CONTEXT_LABELS_MAX; number++) {
		if (!(labels >> number & 1))
			continue;
		cache_put(context_cache, CONTEXT_SLOTS, label_key(l, number, FACT_VAR), var);
		cache_put(context_cache, CONTEXT_SLOTS, label_key(l, number, FACT_HASH), hash);
	}
	s->context.learned |= labels;
}

/* One entry of the tree, or back from a node that has no more. */
static int hamt_search_step(__u32 i, struct py_loop *l)
{
	struct py_context *c = &l->s->context;
	struct hamt_node *node = &c->levels[c->depth & (HAMT_LEVELS - 1)];
	__u32 place;

	if (py_is_late(&l->s->walk))
		return LOOP_STOP;
	c->steps++;
	if (!node->kind || node->at >= node->entries) {
		if (!c->depth)
			return LOOP_STOP;
		c->depth--;
		return LOOP_NEXT;
	}
	place = node->at++;
	if (!c->depth)
		place = (place + c->first) % node->entries;
	if (hamt_read_pair(l, node, place))
		return LOOP_NEXT;
	if (c->pair.key) {
		learn_var(l, c->pair.key);
	} else if (c->pair.value && c->depth + 1 < HAMT_LEVELS) {
		c->depth++;
		hamt_read_node(l, c->pair.value, &c->levels[c->depth & (HAMT_LEVELS - 1)]);
	}
	return LOOP_NEXT;
}

LOOP_STEP(hamt_search_step)

/*
 * Whether there was a variable of a label among all that this context has. A search of more than
 * some steps is not made twice in 67 ms at the same ones, and not within 8 ms of one that found
 * nothing in the same process.
 */
static __always_inline bool search_vars(struct py_loop *l)
{
	struct py_scratch *s = l->s;
	struct py_context *c = &s->context;
	__u64 now = s->sample.ktime_ns;
	__u64 tree = hash_mix(hash_mix(s->walk.process, c->root), now >> 26) | 1;
	__u64 in_vain = hash_mix(hash_mix(s->walk.process, FACT_VAR), now >> 23) | 1;

	if (is_sent(tree) || is_sent(in_vain))
		return false;
	c->learned = 0;
	c->depth = 0;
	c->steps = 0;
	c->first = now >> 7;
	hamt_read_node(l, c->root, &c->levels[0]);
	LOOP(HAMT_SEARCH_STEPS, hamt_search_step, l);
	if (c->steps <= HAMT_CHEAP_STEPS)
		return c->learned;
	mark_sent(tree);
	if (!c->learned)
		mark_sent(in_vain);
	return c->learned;
}

/* --- values ----------------------------------------------------------------------------------- */

/* The digits of an int; true: it is no larger than a value may be. */
static __always_inline bool read_int(struct py_loop *l, __u64 object, struct label_value *v)
{
	struct py_scratch *s = l->s;
	struct door door = l->door;
	__u32 head = l->off->str_length;
	__u64 tag = field_u64(s->text, head + INT_TAG, STRING_HEAD_BYTES - 1), digits;

	if (l->off->minor >= 12) { /* Include/cpython/longintrepr.h: 2 negative, 1 zero */
		v->is_negative = (tag & 3) == 2;
		digits = tag >> 3;
	} else {
		v->is_negative = (__s64)tag < 0;
		digits = v->is_negative ? -tag : tag;
	}
	if (digits > LABEL_BYTES_MAX / 4)
		return false;
	digits = at_most(digits * 4, LABEL_BYTES_MAX);
	v->bytes = digits;
	return !digits || !py_read(door, s, v->value, digits, object + head + INT_DIGITS);
}

/* The characters of a str. Those of a subclass are elsewhere: what follows the head points there.
 */
static __always_inline bool read_text(struct py_loop *l, __u64 object, struct label_value *v)
{
	struct py_scratch *s = l->s;
	struct door door = l->door;
	const struct py_offsets *off = l->off;
	__u64 length = field_u64(s->text, off->str_length, STRING_HEAD_BYTES - 1), at, bytes;
	__u32 state = field_u32(s->text, off->str_state, STRING_HEAD_BYTES - 1);
	__u32 kind = state >> (off->str_kind_shift & 31) & 7;

	if (kind != 1 && kind != 2 && kind != 4)
		return false;
	if (!(state >> (off->str_compact_bit & 31) & 1))
		at = read_pointer(door, s, object + off->str_compact_data);
	else
		at = object + (state >> (off->str_ascii_bit & 31) & 1 ? off->str_ascii_data
								      : off->str_compact_data);
	v->is_cut = length > LABEL_BYTES_MAX / kind;
	bytes = v->is_cut ? LABEL_BYTES_MAX : length * kind;
	bytes = at_most(bytes, LABEL_BYTES_MAX);
	v->char_bytes = kind;
	v->bytes = bytes;
	return !bytes || !py_read(door, s, v->value, bytes, at);
}

/* Is the type, of ints, bool? */
static __always_inline bool is_bool(struct py_loop *l, __u64 type)
{
	struct door door = l->door;
	__u64 at = read_pointer(door, l->s, type + l->off->str_length + TYPE_NAME);
	__u8 name[8];

	return at && !read_user(door, name, sizeof("bool"), at) && *(__u32 *)name == NAME_BOOL &&
	       !name[4];
}

/* What kind of object it is, and its value: true; false: none that is a label. */
static __always_inline bool read_value(struct py_loop *l, __u64 object, struct label_value *v)
{
	struct py_scratch *s = l->s;
	struct door door = l->door;
	__u32 head = l->off->str_length, size = l->off->str_state + 8;
	__u64 type, flags;

	if (size > STRING_HEAD_BYTES || head + 8 > size)
		return false;
	/* An int is shorter than the head of a str, and may be the last thing on its page. */
	if (read_user(door, s->text, size, object) && py_read(door, s, s->text, head + 8, object))
		return false;
	type = field_u64(s->text, head - 8, STRING_HEAD_BYTES - 1);
	if (py_read(door, s, &flags, sizeof(flags), type + head + TYPE_FLAGS))
		return false;
	if (flags & TYPE_IS_STR) {
		v->kind = LABEL_TEXT;
		return read_text(l, object, v);
	}
	if (!(flags & TYPE_IS_INT))
		return false;
	v->kind = is_bool(l, type) ? LABEL_BOOL : LABEL_INT;
	return read_int(l, object, v);
}

/* --- labels ----------------------------------------------------------------------------------- */

/* The variable of a label, if it is known and still the one that it was. */
static __always_inline bool find_var(struct py_loop *l, __u32 number)
{
	struct py_scratch *s = l->s;
	struct py_context *c = &s->context;
	struct door door = l->door;
	__u64 var = cache_get(context_cache, CONTEXT_SLOTS, label_key(l, number, FACT_VAR));
	__u64 known = cache_get(context_cache, CONTEXT_SLOTS, label_key(l, number, FACT_HASH));
	__u64 hash;

	if (!var || py_read(door, s, &hash, sizeof(hash), var + l->off->contextvar_hash) ||
	    hash != known)
		return false;
	c->var = var;
	c->bits = hamt_hash(hash);
	return true;
}

/* A span that is none has the ids 0. */
static __always_inline bool is_id(const struct label_value *v)
{
	return v->kind == LABEL_INT && v->bytes && !v->is_negative;
}

/* One label. */
static int label_step(__u32 number, struct py_loop *l)
{
	struct py_scratch *s = l->s;
	struct py_context *c = &s->context;
	struct label_value *v;

	if (number >= CONTEXT_LABELS_MAX || !label_configs[number].name_bytes)
		return LOOP_STOP;
	if (c->found >> number & 1)
		return LOOP_NEXT;
	if (label_configs[number].part && c->spanned) { /* of the same variable */
		c->spanned |= 1U << number;
		c->found |= 1U << number;
		return LOOP_NEXT;
	}
	if (!find_var(l, number))
		return LOOP_NEXT;
	c->value = 0;
	hamt_read_node(l, c->root, &c->node);
	LOOP(HAMT_FIND_STEPS, hamt_find_step, l);
	if (!c->value)
		return LOOP_NEXT;
	c->found |= 1U << number;
	if (label_configs[number].part) {
		c->spanned |= 1U << number;
		c->span = c->value;
		return LOOP_NEXT;
	}
	v = next_value(s);
	if (!v)
		return LOOP_STOP;
	v->number = number;
	if (read_value(l, c->value, v))
		s->labels.count++;
	else if (py_is_some(l, c->value))
		s->walk.flags |= SAMPLE_LABEL_TYPE;
	return LOOP_NEXT;
}

LOOP_STEP(label_step)

/* One id of a span. */
static int id_step(__u32 number, struct py_loop *l)
{
	struct py_scratch *s = l->s;
	struct py_context *c = &s->context;
	struct door door = l->door;
	struct label_value *v;

	if (number >= CONTEXT_LABELS_MAX || !c->span)
		return LOOP_STOP;
	if (!(c->spanned >> number & 1))
		return LOOP_NEXT;
	v = next_value(s);
	if (!v)
		return LOOP_STOP;
	v->number = number;
	c->value = read_pointer(door, s,
				c->span + (label_configs[number].part == LABEL_SPAN_ID ? 8 : 0));
	if (c->value && read_value(l, c->value, v))
		s->labels.count += is_id(v);
	return LOOP_NEXT;
}

LOOP_STEP(id_step)

/* Identity of the set that was read; 0: it is empty. */
VERIFIED_ONCE __u64 labels_identity(struct py_scratch *s)
{
	__u64 h;

	if (!s || !s->labels.count)
		return 0;
	h = s->walk.process;
	for (__u32 i = 0; i < CONTEXT_LABELS_MAX && i < s->labels.count; i++) {
		const struct label_value *v = &s->labels.values[i];

		h = hash_mix(h, *(const __u64 *)v);
		for (__u32 word = 0; word < LABEL_BYTES_MAX / 8; word++)
			h = hash_mix(h, v->value[word]);
	}
	return h | 1;
}

/*
 * The labels of the thread, into s->labels: of what is set in the context that it runs in, and is
 * not there yet. Needs s->tstate, and py_read_thread_context() before it; where labels are of a
 * span, py_find_span() and py_read_ids() follow, and labels_identity() at last.
 */
static __always_inline void py_read_labels(struct py_loop *l)
{
	struct py_scratch *s = l->s;
	struct py_context *c = &s->context;
	struct door door = l->door;
	__u32 head = l->off->str_length;
	__u64 context, hamt;

	c->spanned = 0;
	if (l->off->tstate_context == OFF_NONE || l->off->contextvar_hash == OFF_NONE)
		return;
	context = tstate_u64(s, l->off->tstate_context);
	hamt = context ? read_pointer(door, s, context + head + CONTEXT_VARS) : 0;
	c->root = hamt ? read_pointer(door, s, hamt + head + HAMT_ROOT) : 0;
	if (!c->root)
		return;
	LOOP(CONTEXT_LABELS_MAX, label_step, l);
	if (c->found != labels_wanted() && search_vars(l))
		LOOP(CONTEXT_LABELS_MAX, label_step, l);
}

static __always_inline void py_read_ids(struct py_loop *l)
{
	LOOP(CONTEXT_LABELS_MAX, id_step, l);
}

#endif
