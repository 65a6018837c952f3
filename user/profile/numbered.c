/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "profile/numbered.h"

void numbered_release(struct numbered *n)
{
	strtab_free(n->names);
	n->names = NULL;
	vec_release(&n->count);
}

int numbered_next(struct numbered *n, const char *name, size_t len, uint32_t *number)
{
	uint32_t id;
	int r = n->names ? 0 : strtab_new(&n->names);

	if (!r)
		r = strtab_intern(n->names, name, len, &id);
	while (!r && n->count.len <= id)
		r = vec_push(&n->count, 0);
	if (!r)
		*number = ++n->count.items[id];
	return r;
}
