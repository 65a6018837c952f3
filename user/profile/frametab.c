/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "profile/frametab.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/vec.h"
#include "profile/idmap.h"

struct frametab {
	struct idmap map;
	VEC(struct frame) frames;
};

int frametab_new(struct frametab **out)
{
	struct frametab *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	*out = t;
	return 0;
}

void frametab_free(struct frametab *t)
{
	if (!t)
		return;
	vec_release(&t->frames);
	idmap_release(&t->map);
	free(t);
}

static bool frame_equal(const struct frame *a, const struct frame *b)
{
	return a->name == b->name && a->file == b->file && a->line == b->line &&
	       a->first_line == b->first_line && a->offset == b->offset && a->kind == b->kind &&
	       a->flags == b->flags;
}

int frametab_intern(struct frametab *t, const struct frame *f, uint32_t *id)
{
	uint64_t hash = hash_combine((uint64_t)f->name << 32 | f->line,
				     ((uint64_t)f->file << 32 | f->first_line) ^
					     (uint64_t)f->kind << 56 ^ (uint64_t)f->flags << 48);
	size_t at = IDMAP_START;
	uint32_t found;

	if (f->offset)
		hash = hash_combine(hash, f->offset);
	while ((found = idmap_next(&t->map, hash, &at)) != IDMAP_NONE) {
		if (frame_equal(&t->frames.items[found], f)) {
			*id = found;
			return 0;
		}
	}
	if (t->frames.len >= IDMAP_NONE)
		return -EOVERFLOW;
	if (idmap_reserve(&t->map) < 0 || vec_push(&t->frames, *f) < 0)
		return -ENOMEM;
	*id = (uint32_t)t->frames.len - 1;
	idmap_insert(&t->map, hash, *id);
	return 0;
}

const struct frame *frametab_get(const struct frametab *t, uint32_t id)
{
	return &t->frames.items[id];
}

uint32_t frametab_count(const struct frametab *t)
{
	return (uint32_t)t->frames.len;
}

size_t frametab_bytes(const struct frametab *t)
{
	return sizeof(*t) + idmap_bytes(&t->map) + t->frames.cap * sizeof(*t->frames.items);
}
