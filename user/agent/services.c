/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/services.h"

#include <errno.h>
#include <stdlib.h>

#include "base/vec.h"

struct place {
	uint64_t identity, owner;
	uint64_t seen_ns; /* when it had samples last */
};

struct services {
	uint64_t max;
	VEC(struct place) places;
};

int services_new(uint64_t max, struct services **out)
{
	struct services *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->max = max;
	*out = s;
	return 0;
}

void services_free(struct services *s)
{
	if (!s)
		return;
	vec_release(&s->places);
	free(s);
}

void services_take(struct services *s, struct services *before)
{
	typeof(s->places) own = s->places;

	s->places = before->places;
	before->places = own;
}

static struct place *find(struct services *s, uint64_t identity)
{
	for (size_t i = 0; i < s->places.len; i++)
		if (s->places.items[i].identity == identity)
			return &s->places.items[i];
	return NULL;
}

static void forget_old(struct services *s, uint64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->places.len; i++)
		if (difference(now_ns, s->places.items[i].seen_ns) < SERVICES_KEPT_NS)
			s->places.items[kept++] = s->places.items[i];
	s->places.len = kept;
}

static bool has_room(const struct services *s, uint64_t owner)
{
	uint64_t own = 0, most = s->max / SERVICES_OWNER_SHARE;

	if (s->places.len >= s->max)
		return false;
	if (owner == SERVICES_NO_OWNER)
		return true;
	for (size_t i = 0; i < s->places.len; i++)
		own += s->places.items[i].owner == owner;
	return own < (most ?: 1);
}

bool services_admit(struct services *s, uint64_t identity, uint64_t owner, uint64_t now_ns)
{
	const struct place new = { identity, owner, now_ns };
	struct place *known = find(s, identity);

	if (known) {
		known->seen_ns = now_ns;
		return true;
	}
	forget_old(s, now_ns);
	return has_room(s, owner) && !vec_push(&s->places, new);
}
