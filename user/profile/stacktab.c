/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "profile/stacktab.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/vec.h"
#include "profile/idmap.h"

struct stacktab {
	struct idmap map; /* without entry 0 */
	VEC(struct stack_entry) entries;
};

int stacktab_new(struct stacktab **out)
{
	struct stacktab *t = calloc(1, sizeof(*t));

	if (!t || vec_push(&t->entries, ((struct stack_entry){ 0, 0 })) < 0) {
		free(t);
		return -ENOMEM;
	}
	*out = t;
	return 0;
}

void stacktab_free(struct stacktab *t)
{
	if (!t)
		return;
	vec_release(&t->entries);
	idmap_release(&t->map);
	free(t);
}

static uint64_t hash_of(uint32_t parent, uint32_t frame)
{
	return hash_u64((uint64_t)parent << 32 | frame);
}

void stacktab_prefetch(const struct stacktab *t, uint32_t parent, uint32_t frame)
{
	idmap_prefetch(&t->map, hash_of(parent, frame));
}

int stacktab_intern(struct stacktab *t, uint32_t parent, uint32_t frame, uint32_t *id)
{
	struct stack_entry e = { parent, frame };
	uint64_t hash = hash_of(parent, frame);
	size_t at = IDMAP_START;
	uint32_t found;

	assert(parent < t->entries.len);
	while ((found = idmap_next(&t->map, hash, &at)) != IDMAP_NONE) {
		if (t->entries.items[found].parent == parent &&
		    t->entries.items[found].frame == frame) {
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

const struct stack_entry *stacktab_entries(const struct stacktab *t)
{
	return t->entries.items;
}

uint32_t stacktab_count(const struct stacktab *t)
{
	return (uint32_t)t->entries.len;
}

size_t stacktab_bytes(const struct stacktab *t)
{
	return sizeof(*t) + idmap_bytes(&t->map) + t->entries.cap * sizeof(*t->entries.items);
}
