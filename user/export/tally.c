/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/tally.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

static int add_row(struct tally *t, const struct profile *p, const struct sample *s)
{
	struct tally_row row = { .thread = p->threads.items[s->thread].same, .stack = s->stack };
	uint64_t hash = hash_u64((uint64_t)row.thread << 32 | s->stack);
	size_t at = IDMAP_START;
	uint32_t id;

	while ((id = idmap_next(&t->map, hash, &at)) != IDMAP_NONE)
		if (t->rows.items[id].thread == row.thread && t->rows.items[id].stack == s->stack)
			break;
	if (id == IDMAP_NONE) {
		if (t->rows.len == IDMAP_NONE || idmap_reserve(&t->map) < 0 ||
		    vec_push(&t->rows, row) < 0)
			return -ENOMEM;
		id = (uint32_t)t->rows.len - 1;
		idmap_insert(&t->map, hash, id);
	}
	t->rows.items[id].ticks += s->value;
	return 0;
}

static int add_threads(struct tally *t, const struct profile *p)
{
	while (t->threads.len < p->threads.len)
		if (vec_push(&t->threads, ((struct tally_thread){ 0 })) < 0)
			return -ENOMEM;
	for (size_t i = 0; i < p->samples.len && t->threads.len; i++) {
		const struct sample *s = &p->samples.items[i];
		struct tally_thread *thread = &t->threads.items[p->threads.items[s->thread].same];

		if (!thread->ticks || s->time_ns < thread->first_ns)
			thread->first_ns = s->time_ns;
		if (s->time_ns > thread->last_ns)
			thread->last_ns = s->time_ns;
		thread->ticks += s->value;
	}
	return 0;
}

int tally_add(struct tally *t, const struct profile *p)
{
	int r = stack_weights_add(&t->stacks, p);

	if (!r)
		r = add_threads(t, p);
	for (size_t i = 0; t->by_thread && i < p->samples.len && !r; i++)
		r = add_row(t, p, &p->samples.items[i]);
	return r || !t->by_time ? r : slots_add(&t->slots, p);
}

static int compare_rows(const void *a, const void *b)
{
	const struct tally_row *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->stack < y->stack ? -1 : x->stack > y->stack;
}

int tally_finish(struct tally *t)
{
	int r = 0;

	idmap_release(&t->map);
	for (size_t i = 0; !t->by_thread && i < t->stacks.len && !r; i++) {
		struct tally_row row = { TALLY_NO_THREAD, (uint32_t)i, t->stacks.items[i] };

		if (row.ticks)
			r = vec_push(&t->rows, row);
	}
	if (t->by_thread && t->rows.len)
		qsort(t->rows.items, t->rows.len, sizeof(*t->rows.items), compare_rows);
	return r;
}

void tally_release(struct tally *t)
{
	stack_weights_release(&t->stacks);
	vec_release(&t->rows);
	vec_release(&t->threads);
	idmap_release(&t->map);
	slots_release(&t->slots);
}
