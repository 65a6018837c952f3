/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IMPORT_KEY_MAP_H
#define IMPORT_KEY_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "profile/idmap.h"

/*
 * Numbers of a file's own, any 64 bits, to what they stand for. A scope is what they are of: a
 * process where each has its own; else 0. Starts as zeros, ends in key_map_release().
 */
struct key_row {
	uint64_t scope, key;
	uint32_t value;
};

struct key_map {
	VEC(struct key_row) rows;
	struct idmap map;
};
void key_map_release(struct key_map *m);

bool key_map_find(const struct key_map *m, uint64_t scope, uint64_t key, uint32_t *value);

/* Adds it, or gives it another value. 0, -ENOMEM; -E2BIG with a message: INTAKE_ROWS_MAX. */
int key_map_set(struct key_map *m, uint64_t scope, uint64_t key, uint32_t value);

#endif
