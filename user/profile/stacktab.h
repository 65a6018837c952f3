/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_STACKTAB_H
#define PROFILE_STACKTAB_H

#include <stddef.h>
#include <stdint.h>

/*
 * Stacks as a prefix tree. A stack is the id of its leaf entry: frame is the innermost frame,
 * parent the stack without it. Id 0 is the empty stack. Ids are dense, never move, and a parent's
 * id is always lower than its children's: one pass from high to low sums a tree bottom up.
 */
struct stacktab;

struct stack_entry {
	uint32_t parent;
	uint32_t frame; /* frame id; meaningless in entry 0 */
};

int stacktab_new(struct stacktab **out);
void stacktab_free(struct stacktab *t);

/*
 * The stack that is parent (< stacktab_count()) plus one inner frame. Returns 0 and *id, or with
 * *id untouched: -ENOMEM, -EOVERFLOW (4 G stacks).
 */
int stacktab_intern(struct stacktab *t, uint32_t parent, uint32_t frame, uint32_t *id);

/* For a stacktab_intern() to come, of which many find nothing in the cache. */
void stacktab_prefetch(const struct stacktab *t, uint32_t parent, uint32_t frame);

/* All entries, by id. Borrowed: valid until the next stacktab_intern(). */
const struct stack_entry *stacktab_entries(const struct stacktab *t);
uint32_t stacktab_count(const struct stacktab *t); /* >= 1 */
size_t stacktab_bytes(const struct stacktab *t);   /* memory it holds */

#endif
