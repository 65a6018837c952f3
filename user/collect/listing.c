/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/listing.h"

#include <errno.h>

#include "base/hash.h"

#define KEPT 2 /* listings without it */

static uint64_t hash_of(uint32_t pid, uint32_t exec_id, uint64_t start_ns)
{
	return hash_combine((uint64_t)exec_id << 32 | pid, start_ns);
}

static void forget_places(struct listing *l)
{
	idmap_release(&l->rows);
	address_map_clear(&l->processes);
}

void listing_release(struct listing *l)
{
	vec_release(&l->items);
	idmap_release(&l->rows);
	address_map_release(&l->processes);
}

static int add_places(struct listing *l, uint32_t at)
{
	const struct listed *p = &l->items.items[at];
	int r = idmap_reserve(&l->rows);

	if (r < 0)
		return r;
	idmap_insert(&l->rows, hash_of(p->pid, p->exec_id, p->start_ns), at);
	return address_map_put(&l->processes, p->process, at);
}

int listing_begin(struct listing *l)
{
	size_t kept = 0, count = l->items.len;
	int r = 0;

	l->number++;
	for (size_t i = 0; i < count; i++)
		if (l->number - l->items.items[i].seen <= KEPT)
			l->items.items[kept++] = l->items.items[i];
	l->items.len = kept;
	if (kept == count)
		return 0;
	forget_places(l);
	for (uint32_t i = 0; i < kept && !r; i++)
		r = add_places(l, i);
	return r;
}

const struct listed *listing_find(struct listing *l, uint32_t pid, uint32_t exec_id,
				  uint64_t start_ns)
{
	uint64_t hash = hash_of(pid, exec_id, start_ns);
	size_t at = IDMAP_START;
	uint32_t found;

	while ((found = idmap_next(&l->rows, hash, &at)) != IDMAP_NONE) {
		struct listed *p = &l->items.items[found];

		if (p->pid != pid || p->exec_id != exec_id || p->start_ns != start_ns)
			continue;
		p->seen = l->number;
		return p;
	}
	return NULL;
}

int listing_add(struct listing *l, const struct listed *process)
{
	struct listed p = *process;
	int r;

	p.seen = l->number;
	r = vec_push(&l->items, p);
	return r < 0 ? r : add_places(l, (uint32_t)l->items.len - 1);
}

static struct listed *find(const struct listing *l, uint64_t process)
{
	uint32_t at = address_map_get(&l->processes, process);

	return at == ADDRESS_NONE ? NULL : &l->items.items[at];
}

void listing_end(struct listing *l, uint64_t process, uint64_t until_ns)
{
	struct listed *p = find(l, process);

	if (p)
		p->until_ns = until_ns;
}

const struct listed *listing_get(const struct listing *l, uint64_t process)
{
	return find(l, process);
}
