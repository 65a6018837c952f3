/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "profile/labeltab.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/vec.h"
#include "profile/idmap.h"

struct labeltab {
	struct idmap map; /* without entry 0 */
	VEC(struct label_entry) entries;
};

int labeltab_new(struct labeltab **out)
{
	struct labeltab *t = calloc(1, sizeof(*t));

	if (!t || vec_push(&t->entries, ((struct label_entry){ 0 })) < 0) {
		free(t);
		return -ENOMEM;
	}
	*out = t;
	return 0;
}

void labeltab_free(struct labeltab *t)
{
	if (!t)
		return;
	vec_release(&t->entries);
	idmap_release(&t->map);
	free(t);
}

/* The set behind whose labels, all of lower names, this one comes. */
static int intern(struct labeltab *t, uint32_t parent, uint32_t name, uint32_t value, uint32_t *id)
{
	struct label_entry e = { parent, name, value };
	uint64_t hash = hash_combine((uint64_t)parent << 32 | name, value);
	size_t at = IDMAP_START;
	uint32_t found;

	while ((found = idmap_next(&t->map, hash, &at)) != IDMAP_NONE) {
		const struct label_entry *other = &t->entries.items[found];

		if (other->parent == parent && other->name == name && other->value == value) {
			*id = found;
			return 0;
		}
	}
	if (t->entries.len >= IDMAP_NONE)
		return -EOVERFLOW;
	if (idmap_reserve(&t->map) < 0 || vec_push(&t->entries, e) < 0)
		return -ENOMEM;
	*id = (uint32_t)t->entries.len - 1;
	idmap_insert(&t->map, hash, *id);
	return 0;
}

int labeltab_add(struct labeltab *t, uint32_t set, uint32_t name, uint32_t value, uint32_t *id)
{
	struct label_entry
		behind[LABEL_SET_MAX]; /* the labels of higher names, the last one first */
	size_t count = 0, before = 0;
	uint32_t made;
	int r;

	assert(set < t->entries.len);
	for (; set && t->entries.items[set].name > name; set = t->entries.items[set].parent)
		behind[count++] = t->entries.items[set];
	if (set && t->entries.items[set].name == name)
		set = t->entries.items[set].parent;
	for (uint32_t at = set; at; at = t->entries.items[at].parent)
		before++;
	if (before + 1 + count > LABEL_SET_MAX)
		return -E2BIG;
	r = intern(t, set, name, value, &made);
	while (count-- && !r)
		r = intern(t, made, behind[count].name, behind[count].value, &made);
	if (!r)
		*id = made;
	return r;
}

const struct label_entry *labeltab_entries(const struct labeltab *t)
{
	return t->entries.items;
}

uint32_t labeltab_count(const struct labeltab *t)
{
	return (uint32_t)t->entries.len;
}

size_t labeltab_bytes(const struct labeltab *t)
{
	return sizeof(*t) + idmap_bytes(&t->map) + t->entries.cap * sizeof(*t->entries.items);
}
