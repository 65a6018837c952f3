/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/address_map.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

void address_map_release(struct address_map *m)
{
	free(m->slots);
	*m = (struct address_map){ 0 };
}

void address_map_clear(struct address_map *m)
{
	if (m->slots)
		memset(m->slots, 0, m->capacity * sizeof(*m->slots));
	m->len = 0;
}

/* Where it is, or would be. There is a free slot. */
static struct address_slot *slot_of(struct address_slot *slots, size_t capacity, uint64_t address)
{
	size_t i = hash_u64(address) & (capacity - 1);

	while (slots[i].address && slots[i].address != address)
		i = (i + 1) & (capacity - 1);
	return &slots[i];
}

uint32_t address_map_get(const struct address_map *m, uint64_t address)
{
	const struct address_slot *slot;

	if (!m->capacity || !address)
		return ADDRESS_NONE;
	slot = slot_of(m->slots, m->capacity, address);
	return slot->address ? slot->index : ADDRESS_NONE;
}

static int map_grow(struct address_map *m)
{
	size_t capacity = m->capacity ? 2 * m->capacity : 64;
	struct address_slot *slots = calloc(capacity, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < m->capacity; i++)
		if (m->slots[i].address)
			*slot_of(slots, capacity, m->slots[i].address) = m->slots[i];
	free(m->slots);
	m->slots = slots;
	m->capacity = capacity;
	return 0;
}

int address_map_put(struct address_map *m, uint64_t address, uint32_t index)
{
	struct address_slot *slot;
	int r;

	assert(address);
	if (m->len >= m->capacity / 2 && (r = map_grow(m)) < 0)
		return r;
	slot = slot_of(m->slots, m->capacity, address);
	m->len += !slot->address;
	*slot = (struct address_slot){ .address = address, .index = index };
	return 0;
}
