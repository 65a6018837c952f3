/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/timeline.h"

#include <errno.h>
#include <stdlib.h>

#include "base/varint.h"

#define PENDING_MAX 65536 /* entries of a list that are put in order */

/* What of an entry is not as in the one before it. */
enum field {
	FIELD_DURATION = 1 << 0,
	FIELD_VALUE = 1 << 1,
	FIELD_STACK = 1 << 2,
	FIELD_LABELS = 1 << 3,
	FIELD_CPU = 1 << 4,
	FIELD_FLAGS = 1 << 5,
};
#define ENTRY_BYTES_MAX (7 * VARINT_MAX_BYTES + 1)

void timeline_release(struct timeline *t)
{
	for (size_t i = 0; i < t->lists.len; i++) {
		vec_release(&t->lists.items[i].pending);
		vec_release(&t->lists.items[i].packed);
	}
	vec_release(&t->lists);
	vec_release(&t->list_of);
}

/* --- packing ---------------------------------------------------------------------------------- */

static int pack(struct timeline_list *l, const struct timeline_entry *e)
{
	const struct timeline_entry *o = &l->last;
	uint8_t fields = (uint8_t)((e->duration_ns != o->duration_ns ? FIELD_DURATION : 0) |
				   (e->value != o->value ? FIELD_VALUE : 0) |
				   (e->stack != o->stack ? FIELD_STACK : 0) |
				   (e->labels != o->labels ? FIELD_LABELS : 0) |
				   (e->cpu != o->cpu ? FIELD_CPU : 0) |
				   (e->flags != o->flags ? FIELD_FLAGS : 0));
	uint8_t *p;

	if (vec_reserve(&l->packed, ENTRY_BYTES_MAX) < 0)
		return -ENOMEM;
	p = l->packed.items + l->packed.len;
	*p++ = fields;
	p = varint_write(p, zigzag_encode((int64_t)(e->time_ns - o->time_ns)));
	if (fields & FIELD_DURATION)
		p = varint_write(p, e->duration_ns);
	if (fields & FIELD_VALUE)
		p = varint_write(p, e->value);
	if (fields & FIELD_STACK)
		p = varint_write(p, zigzag_encode((int64_t)e->stack - o->stack));
	if (fields & FIELD_LABELS)
		p = varint_write(p, e->labels);
	if (fields & FIELD_CPU)
		p = varint_write(p, e->cpu);
	if (fields & FIELD_FLAGS)
		p = varint_write(p, e->flags);
	l->packed.len = (size_t)(p - l->packed.items);
	l->last = *e;
	return 0;
}

static uint64_t number(struct timeline_cursor *c)
{
	uint64_t v = 0;

	varint_get(&c->at, c->end, &v); /* as pack() wrote it */
	return v;
}

struct timeline_cursor timeline_begin(const struct timeline_list *list)
{
	return (struct timeline_cursor){ .at = list->packed.items,
					 .end = list->packed.items + list->packed.len };
}

bool timeline_next(struct timeline_cursor *c)
{
	struct timeline_entry *e = &c->entry;
	uint8_t fields;

	if (c->at == c->end)
		return false;
	fields = *c->at++;
	e->time_ns += (uint64_t)zigzag_decode(number(c));
	if (fields & FIELD_DURATION)
		e->duration_ns = number(c);
	if (fields & FIELD_VALUE)
		e->value = number(c);
	if (fields & FIELD_STACK)
		e->stack += (uint32_t)zigzag_decode(number(c));
	if (fields & FIELD_LABELS)
		e->labels = (uint32_t)number(c);
	if (fields & FIELD_CPU)
		e->cpu = (uint16_t)number(c);
	if (fields & FIELD_FLAGS)
		e->flags = (uint16_t)number(c);
	return true;
}

/* --- order ------------------------------------------------------------------------------------ */

static bool is_earlier(const struct timeline_slot *a, const struct timeline_slot *b)
{
	return a->entry.time_ns != b->entry.time_ns ? a->entry.time_ns < b->entry.time_ns
						    : a->order < b->order;
}

static void swap(struct timeline_slot *a, struct timeline_slot *b)
{
	struct timeline_slot other = *a;

	*a = *b;
	*b = other;
}

static int heap_push(struct timeline_pending *h, const struct timeline_slot *slot)
{
	size_t i = h->len;

	if (vec_push(h, *slot) < 0)
		return -ENOMEM;
	for (; i && is_earlier(&h->items[i], &h->items[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&h->items[i], &h->items[(i - 1) / 2]);
	return 0;
}

static struct timeline_entry heap_pop(struct timeline_pending *h)
{
	struct timeline_entry first = h->items[0].entry;

	h->items[0] = h->items[--h->len];
	for (size_t i = 0, least;; i = least) {
		size_t left = 2 * i + 1, right = left + 1;

		least = left < h->len && is_earlier(&h->items[left], &h->items[i]) ? left : i;
		if (right < h->len && is_earlier(&h->items[right], &h->items[least]))
			least = right;
		if (least == i)
			return first;
		swap(&h->items[i], &h->items[least]);
	}
}

static int pack_until(struct timeline_list *l, size_t left)
{
	int r = 0;

	while (l->pending.len > left && !r) {
		struct timeline_entry e = heap_pop(&l->pending);

		r = pack(l, &e);
	}
	return r;
}

/* --- lists ------------------------------------------------------------------------------------ */

/* Places in list_of for each thread and kind that p has by now; 0: no list, else index + 1. */
static int make_room(struct timeline *t, const struct profile *p)
{
	uint32_t kinds = (uint32_t)p->kinds.len + 1;
	size_t wanted = p->threads.len * kinds;

	if (t->kinds != kinds)
		t->list_of.len = 0;
	if (t->list_of.len >= wanted)
		return 0;
	if (vec_reserve(&t->list_of, wanted - t->list_of.len) < 0)
		return -ENOMEM;
	memset(t->list_of.items + t->list_of.len, 0,
	       (wanted - t->list_of.len) * sizeof(*t->list_of.items));
	t->list_of.len = wanted;
	if (t->kinds == kinds)
		return 0;
	t->kinds = kinds;
	for (size_t i = 0; i < t->lists.len; i++)
		t->list_of
			.items[(size_t)t->lists.items[i].thread * kinds + t->lists.items[i].kind] =
			(uint32_t)i + 1;
	return 0;
}

static const struct recording *recording_of(const struct profile *p, const struct sample *s)
{
	const struct process *process = &p->processes.items[p->threads.items[s->thread].process];

	return &p->recordings.items[process->recording];
}

static struct timeline_list *list_of(struct timeline *t, const struct profile *p,
				     const struct sample *s, uint8_t roles)
{
	const struct recording *of = recording_of(p, s);
	struct timeline_list new = {
		.thread = p->threads.items[s->thread].same,
		.kind = roles & (KIND_IS_CPU | KIND_IS_OFF_CPU) ? TIMELINE_TIME : s->kind,
		.unit = s->kind ? p->kinds.items[s->kind - 1].unit : recording_value_unit(of).unit,
		.has_times = !of->is_summed,
	};
	uint32_t *place;

	if (make_room(t, p) < 0)
		return NULL;
	place = &t->list_of.items[(size_t) new.thread * t->kinds + new.kind];
	if (!*place) {
		if (vec_push(&t->lists, new) < 0)
			return NULL;
		*place = (uint32_t)t->lists.len;
	}
	return &t->lists.items[*place - 1];
}

/* Since the start of the first recording: a recorder may have written several files. */
static uint64_t time_of(const struct profile *p, const struct sample *s)
{
	uint64_t first = profile_recording(p)->start_realtime_ns;
	uint64_t start = recording_of(p, s)->start_realtime_ns;
	uint64_t later = start > first ? start - first : 0;

	return later < SAMPLE_TIME_MAX - s->time_ns ? s->time_ns + later : SAMPLE_TIME_MAX;
}

static int add_sample(struct timeline *t, const struct profile *p, const struct kinds *kinds,
		      const struct sample *s)
{
	uint8_t roles = kinds ? kinds->roles.items[s->kind] : 0;
	struct timeline_list *l = list_of(t, p, s, roles);
	struct timeline_slot slot = {
		.entry = { time_of(p, s), s->duration_ns, kinds_scaled(p, s), s->stack, s->labels,
			   s->cpu, s->flags },
	};

	if (!l)
		return -ENOMEM;
	slot.order = l->order++;
	l->count++;
	l->has_waits |= roles & KIND_IS_OFF_CPU;
	if (__builtin_add_overflow(l->total, slot.entry.value, &l->total))
		l->total = UINT64_MAX;
	if (l->pending.len >= PENDING_MAX && pack_until(l, PENDING_MAX / 2) < 0)
		return -ENOMEM;
	return heap_push(&l->pending, &slot);
}

int timeline_add(struct timeline *t, const struct profile *p, const struct kinds *kinds)
{
	int r = 0;

	for (size_t i = 0; i < p->samples.len && !r; i++)
		r = add_sample(t, p, kinds, &p->samples.items[i]);
	return r;
}

static int compare_lists(const void *a, const void *b, void *profile)
{
	const struct profile *p = profile;
	const struct timeline_list *x = a, *y = b;
	uint32_t of_x = p->threads.items[x->thread].process,
		 of_y = p->threads.items[y->thread].process;

	if (of_x != of_y)
		return of_x < of_y ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->kind < y->kind ? -1 : x->kind > y->kind;
}

int timeline_finish(struct timeline *t, const struct profile *p)
{
	int r = 0;

	for (size_t i = 0; i < t->lists.len && !r; i++) {
		r = pack_until(&t->lists.items[i], 0);
		vec_release(&t->lists.items[i].pending);
	}
	if (t->lists.len)
		qsort_r(t->lists.items, t->lists.len, sizeof(*t->lists.items), compare_lists,
			(void *)p);
	return r;
}
