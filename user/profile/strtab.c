/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "profile/strtab.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/vec.h"
#include "profile/idmap.h"

#define BLOCK_BYTES 65536

struct entry {
	char *s;
	uint32_t len;
};

struct strtab {
	struct idmap map;
	VEC(struct entry) entries;
	VEC(char *) blocks; /* strings never move; the last block has room */
	size_t block_left;
	size_t block_bytes; /* sum over blocks */
};

DEFINE_CLEANUP(struct strtab *, strtab_free)

int strtab_new(struct strtab **out)
{
	_cleanup_(strtab_freep) struct strtab *t = calloc(1, sizeof(*t));
	uint32_t id;
	int r;

	if (!t)
		return -ENOMEM;
	r = strtab_intern(t, "", 0, &id);
	if (r < 0)
		return r;
	*out = take_ptr(t);
	return 0;
}

void strtab_free(struct strtab *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->blocks.len; i++)
		free(t->blocks.items[i]);
	vec_release(&t->blocks);
	vec_release(&t->entries);
	idmap_release(&t->map);
	free(t);
}

/* size bytes at the end of the last block, or NULL. They are taken when block_left shrinks. */
static char *arena_room(struct strtab *t, size_t size)
{
	size_t block = size > BLOCK_BYTES ? size : BLOCK_BYTES;
	char *bytes;

	if (t->blocks.len && t->block_left >= size)
		return t->blocks.items[t->blocks.len - 1];
	bytes = malloc(block);
	if (!bytes || vec_push(&t->blocks, bytes) < 0) {
		free(bytes);
		return NULL;
	}
	t->block_left = block;
	t->block_bytes += block;
	return bytes;
}

int strtab_intern(struct strtab *t, const char *s, size_t len, uint32_t *id)
{
	uint64_t hash = hash_bytes(s, len, 0);
	size_t at = IDMAP_START;
	uint32_t found;
	char *copy;

	while ((found = idmap_next(&t->map, hash, &at)) != IDMAP_NONE) {
		const struct entry *e = &t->entries.items[found];

		if (e->len == len && !memcmp(e->s, s, len)) {
			*id = found;
			return 0;
		}
	}
	if (len > STRTAB_LEN_MAX)
		return -EMSGSIZE;
	if (t->entries.len >= IDMAP_NONE)
		return -EOVERFLOW;
	if (vec_reserve(&t->entries, 1) < 0 || idmap_reserve(&t->map) < 0)
		return -ENOMEM;
	copy = arena_room(t, len + 1);
	if (!copy)
		return -ENOMEM;
	/* Filled from its end: where the next string starts is then known by block_left alone. */
	t->block_left -= len + 1;
	copy += t->block_left;
	memcpy(copy, s, len);
	copy[len] = '\0';
	*id = (uint32_t)t->entries.len;
	t->entries.items[t->entries.len++] = (struct entry){ copy, (uint32_t)len };
	idmap_insert(&t->map, hash, *id);
	return 0;
}

static bool is_continuation(char byte)
{
	return (byte & 0xc0) == 0x80;
}

/* Both ends of a long name, cut between characters. Returns the length, at most that of room. */
static size_t cut_middle(const char *s, size_t len, char room[STRTAB_NAME_BYTES_MAX])
{
	static const char ellipsis[] = "\xe2\x80\xa6";
	size_t dots = sizeof(ellipsis) - 1, head = (STRTAB_NAME_BYTES_MAX - dots) / 2, tail = head;
	char *at = room;

	while (head && is_continuation(s[head]))
		head--;
	while (tail && is_continuation(s[len - tail]))
		tail--;
	at = mempcpy(at, s, head);
	at = mempcpy(at, ellipsis, dots);
	at = mempcpy(at, s + len - tail, tail);
	return (size_t)(at - room);
}

int strtab_intern_name(struct strtab *t, const char *s, size_t len, uint32_t *id)
{
	char room[STRTAB_NAME_BYTES_MAX];

	if (len <= STRTAB_NAME_BYTES_MAX || len > STRTAB_LEN_MAX)
		return strtab_intern(t, s, len, id);
	len = cut_middle(s, len, room);
	return strtab_intern(t, room, len, id);
}

const char *strtab_get(const struct strtab *t, uint32_t id)
{
	return t->entries.items[id].s;
}

size_t strtab_len(const struct strtab *t, uint32_t id)
{
	return t->entries.items[id].len;
}

uint32_t strtab_count(const struct strtab *t)
{
	return (uint32_t)t->entries.len;
}

size_t strtab_bytes(const struct strtab *t)
{
	return sizeof(*t) + idmap_bytes(&t->map) + t->entries.cap * sizeof(*t->entries.items) +
	       t->blocks.cap * sizeof(*t->blocks.items) + t->block_bytes;
}
