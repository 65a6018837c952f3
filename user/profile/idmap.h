/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_IDMAP_H
#define PROFILE_IDMAP_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * Hash -> dense id, for the interning tables of this folder: open addressing, linear probing, at
 * most 3/4 full. The map knows hashes and ids only; the keys stay in the owner's array, which
 * compares them:
 *
 *	size_t at = IDMAP_START;
 *	while ((id = idmap_next(m, hash, &at)) != IDMAP_NONE)
 *		if (items[id] is the key) return id;
 */
struct idmap {
	uint64_t *slots; /* low half of the hash << 32 | id + 1; 0: free */
	size_t size;     /* of slots, a power of two, or 0 */
	size_t used;
};

#define IDMAP_NONE UINT32_MAX /* hence at most UINT32_MAX ids: 0 .. UINT32_MAX - 1 */
#define IDMAP_START SIZE_MAX

static inline void idmap_release(struct idmap *m)
{
	free(m->slots);
	*m = (struct idmap){ 0 };
}

static inline size_t idmap_bytes(const struct idmap *m)
{
	return m->size * sizeof(*m->slots);
}

/* The next id whose hash agrees in 32 bits, or IDMAP_NONE. */
static inline uint32_t idmap_next(const struct idmap *m, uint64_t hash, size_t *at)
{
	size_t mask = m->size - 1, i;

	if (!m->size)
		return IDMAP_NONE;
	i = *at == IDMAP_START ? (uint32_t)hash & mask : (*at + 1) & mask;
	for (; m->slots[i]; i = (i + 1) & mask) {
		if (m->slots[i] >> 32 == (uint32_t)hash) {
			*at = i;
			return (uint32_t)m->slots[i] - 1;
		}
	}
	return IDMAP_NONE;
}

/* For an idmap_next() to come. */
static inline void idmap_prefetch(const struct idmap *m, uint64_t hash)
{
	if (m->size)
		__builtin_prefetch(&m->slots[(uint32_t)hash & (m->size - 1)]);
}

static inline void idmap_place_(struct idmap *m, uint64_t slot)
{
	size_t mask = m->size - 1, i = (slot >> 32) & mask;

	while (m->slots[i])
		i = (i + 1) & mask;
	m->slots[i] = slot;
}

/*
 * Zeros that are written: pages of calloc() that are read first, as slots are, get the kernel's
 * page of zeros, and are copied at the first write, all threads on other CPUs being interrupted for
 * it.
 */
static inline uint64_t *idmap_slots_(size_t size)
{
	size_t bytes = size * sizeof(uint64_t);
	uint64_t *slots = aligned_alloc(64, bytes); /* gcc makes malloc() and memset() a calloc() */

	return slots ? memset(slots, 0, bytes) : NULL;
}

/* Room for one more. 0 or -ENOMEM, the map unchanged. */
static inline int idmap_reserve(struct idmap *m)
{
	struct idmap old = *m, grown = { .size = old.size ? old.size * 2 : 64, .used = old.used };

	if (old.size && old.used < old.size / 4 * 3)
		return 0;
	grown.slots = idmap_slots_(grown.size);
	if (!grown.slots)
		return -ENOMEM;
	for (size_t i = 0; i < old.size; i++)
		if (old.slots[i])
			idmap_place_(&grown, old.slots[i]);
	free(old.slots);
	*m = grown;
	return 0;
}

/* Adds id, which must not be there. After idmap_reserve(). */
static inline void idmap_insert(struct idmap *m, uint64_t hash, uint32_t id)
{
	idmap_place_(m, (uint64_t)(uint32_t)hash << 32 | (id + 1));
	m->used++;
}

#endif
