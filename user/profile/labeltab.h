/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_LABELTAB_H
#define PROFILE_LABELTAB_H

#include <stddef.h>
#include <stdint.h>

/*
 * Sets of labels, name = value, as samples have them. A set is the id of its last entry: that one
 * label, and the set without it. Id 0 is the empty set. Labels of a set are in order of their
 * names' ids, so that a set has one id however it was put together. Ids are dense and never move; a
 * parent's is lower than its children's.
 */
struct labeltab;

struct label_entry {
	uint32_t parent;
	uint32_t name, value; /* string ids; meaningless in entry 0 */
};

#define LABEL_SET_MAX 64 /* of a set */

int labeltab_new(struct labeltab **out);
void labeltab_free(struct labeltab *t);

/*
 * The set (< labeltab_count()) with this label as well; one of that name is replaced. Returns 0 and
 * *id, or with *id untouched: -ENOMEM, -EOVERFLOW (4 G sets), -E2BIG (more than LABEL_SET_MAX).
 */
int labeltab_add(struct labeltab *t, uint32_t set, uint32_t name, uint32_t value, uint32_t *id);

/* All entries, by id. Borrowed: valid until the next labeltab_add(). */
const struct label_entry *labeltab_entries(const struct labeltab *t);
uint32_t labeltab_count(const struct labeltab *t); /* >= 1 */
size_t labeltab_bytes(const struct labeltab *t);   /* memory it holds */

#endif
