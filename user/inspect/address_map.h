/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_ADDRESS_MAP_H
#define INSPECT_ADDRESS_MAP_H

#include <stddef.h>
#include <stdint.h>

/* From an address of a target, or an identity, to an index. Starts as zeros. */
struct address_slot {
	uint64_t address; /* 0: free */
	uint32_t index;
};

struct address_map {
	struct address_slot *slots; /* owned */
	size_t capacity;            /* a power of two, or 0 */
	size_t len;
};

void address_map_release(struct address_map *m);

/* Empties it, and keeps its memory. */
void address_map_clear(struct address_map *m);

#define ADDRESS_NONE UINT32_MAX

/* ADDRESS_NONE: not there. */
uint32_t address_map_get(const struct address_map *m, uint64_t address);

/* address is not 0. One that is there gets the new index. 0 or -ENOMEM. */
int address_map_put(struct address_map *m, uint64_t address, uint32_t index);

#endif
