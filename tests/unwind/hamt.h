/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef UNWIND_HAMT_H
#define UNWIND_HAMT_H

/* Contexts in a world, as Python/context.c and Python/hamt.c make them. */

#include <stddef.h>

#include "world.h"

/* A variable that is set. */
struct hamt_item {
	__u64 var, value; /* addresses of objects */
	__u32 hash;       /* of the HAMT: hamt_hash() */
};

/* The types of what is in contexts, each made once in a world. */
struct hamt_types {
	__u64 bitmap, array, collision, text, integer, boolean, none, other;
};

void hamt_types_init(struct world *w, struct hamt_types *types);

/* A world with a thread that has a stack, and these types. False: this version has no contexts. */
bool hamt_world(struct world *w, struct hamt_types *types, const struct py_offsets *off);

/* A ContextVar. */
__u64 hamt_var(struct world *w, __u64 name, __u64 hash);

/* The root of a tree of these; 0 of none. */
__u64 hamt_tree(struct world *w, const struct hamt_types *types, const struct hamt_item *items,
		size_t count);

/* The thread runs in a context with this tree from now on. */
void hamt_enter(struct world *w, __u64 root);

/* A node of a kind, with as many pairs or places as it takes, all empty. size: what it says. */
__u64 hamt_node(struct world *w, __u64 type, __u64 size, __u32 bitmap, size_t words);
void hamt_set(struct world *w, __u64 node, __u64 type, const struct hamt_types *types, size_t word,
	      __u64 value);

/* Values. */
__u64 hamt_text(struct world *w, const struct hamt_types *types, enum text_shape shape,
		unsigned kind, const void *chars, size_t length);
__u64 hamt_int(struct world *w, __u64 type, bool is_negative, const __u32 *digits, size_t count);
__u64 hamt_object(struct world *w, __u64 type);

#endif
