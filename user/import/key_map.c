/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "import/key_map.h"

#include <errno.h>

#include "base/err.h"
#include "base/hash.h"
#include "import/intake.h"

void key_map_release(struct key_map *m)
{
	vec_release(&m->rows);
	idmap_release(&m->map);
}

static struct key_row *find(const struct key_map *m, uint64_t scope, uint64_t key, uint64_t hash)
{
	size_t at = IDMAP_START;
	uint32_t id;

	while ((id = idmap_next(&m->map, hash, &at)) != IDMAP_NONE) {
		struct key_row *row = &m->rows.items[id];

		if (row->scope == scope && row->key == key)
			return row;
	}
	return NULL;
}

bool key_map_find(const struct key_map *m, uint64_t scope, uint64_t key, uint32_t *value)
{
	const struct key_row *row = find(m, scope, key, hash_combine(scope, key));

	if (row)
		*value = row->value;
	return row;
}

int key_map_set(struct key_map *m, uint64_t scope, uint64_t key, uint32_t value)
{
	uint64_t hash = hash_combine(scope, key);
	struct key_row *row = find(m, scope, key, hash);

	if (row) {
		row->value = value;
		return 0;
	}
	if (m->rows.len >= INTAKE_ROWS_MAX)
		return err_set(-E2BIG, "a table of more than %u rows", INTAKE_ROWS_MAX);
	if (idmap_reserve(&m->map) < 0 ||
	    vec_push(&m->rows, ((struct key_row){ scope, key, value })) < 0)
		return -ENOMEM;
	idmap_insert(&m->map, hash, (uint32_t)m->rows.len - 1);
	return 0;
}
