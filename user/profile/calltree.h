/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_CALLTREE_H
#define PROFILE_CALLTREE_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "profile/cube.h"
#include "profile/profile.h"

/*
 * Self and total values of one kind, by call path and by function: one pass over a cube's sums from
 * the leaves up.
 */
enum calltree_key {
	CALLTREE_BY_FUNCTION, /* one node for all lines of a function on a path */
	CALLTREE_BY_LINE,
};

/* All frames with one (name, file, kind). */
struct calltree_function {
	uint32_t name; /* string ids */
	uint32_t file;
	uint8_t kind;   /* enum frame_type */
	uint32_t frame; /* the first of its frames in the profile: def line, flags */
	uint64_t self;
	uint64_t total; /* a stack counts once, however often the function is in it */
};

/*
 * Preorder: the subtree of node i is i .. end - 1, its first child i + 1 (if below end), the next
 * sibling of a child c is nodes[c].end. Siblings: largest total first, then by frame id.
 */
struct calltree_node {
	uint32_t parent;   /* index; of the root: 0 */
	uint32_t end;      /* index after the subtree */
	uint32_t function; /* index; of the root: UINT32_MAX */
	uint32_t frame; /* frame id: the line, or the function's `frame`; of the root: UINT32_MAX */
	uint64_t self;
	uint64_t total; /* > 0, but for the root of an empty tree */
};

/* node_count >= 1: node 0 is the root, its self the value of empty stacks. */
struct calltree {
	struct calltree_node *nodes;
	size_t node_count;
	struct calltree_function *functions; /* those with total > 0, largest total first */
	size_t function_count;
	uint32_t *node_of; /* by stack id: its node; 0 for stacks without value in or below them */
	size_t stack_count;
};

/*
 * Of all runs. Linear in the tables of p but for the ordering of siblings. 0, or -ENOMEM with *out
 * untouched. Keeps no reference to p or c.
 */
int calltree_new(const struct profile *p, const struct cube *c, uint16_t kind,
		 enum calltree_key key, struct calltree **out);
void calltree_free(struct calltree *t);
DEFINE_CLEANUP(struct calltree *, calltree_free)

#endif
