/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "profile/calltree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/vec.h"
#include "profile/idmap.h"

#define NONE UINT32_MAX

/* The tree while it grows: parents before children, no order among siblings. */
struct draft {
	uint32_t parent;
	uint32_t frame;
	uint32_t function;
	uint64_t self;
	uint64_t total;
};

struct builder {
	const struct profile *p;
	struct idmap map;
	uint32_t *function_of; /* by frame id */
	uint64_t *self;        /* by stack id */
	uint64_t *totals;      /* the same */
	uint32_t *draft_of;    /* by stack id */
	uint32_t *start;       /* by draft + 1: where its children are in order */
	uint32_t *order;       /* drafts grouped by parent, siblings sorted */
	uint32_t *place;       /* draft -> preorder index */
	uint32_t *size;        /* of a draft's subtree */
	VEC(struct calltree_function) functions;
	VEC(struct draft) drafts;
};

static void builder_release(struct builder *b)
{
	idmap_release(&b->map);
	free(b->function_of);
	free(b->self);
	free(b->totals);
	free(b->draft_of);
	free(b->start);
	free(b->order);
	free(b->place);
	free(b->size);
	vec_release(&b->functions);
	vec_release(&b->drafts);
}

static int group_functions(struct builder *b)
{
	uint32_t count = frametab_count(b->p->frames);

	b->function_of = calloc((size_t)count + 1, sizeof(*b->function_of));
	if (!b->function_of)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		const struct frame *f = frametab_get(b->p->frames, i);
		uint64_t hash = hash_combine((uint64_t)f->name << 32 | f->file, f->kind);
		size_t at = IDMAP_START;
		uint32_t id;

		while ((id = idmap_next(&b->map, hash, &at)) != IDMAP_NONE) {
			const struct calltree_function *fn = &b->functions.items[id];

			if (fn->name == f->name && fn->file == f->file && fn->kind == f->kind)
				break;
		}
		if (id == IDMAP_NONE) {
			struct calltree_function fn = {
				.name = f->name, .file = f->file, .kind = f->kind, .frame = i
			};

			id = (uint32_t)b->functions.len;
			if (idmap_reserve(&b->map) < 0 || vec_push(&b->functions, fn) < 0)
				return -ENOMEM;
			idmap_insert(&b->map, hash, id);
		}
		b->function_of[i] = id;
	}
	idmap_release(&b->map);
	return 0;
}

/* The child of draft `parent` that stands for stack entry e: found, or made with no weight. */
static int draft_intern(struct builder *b, uint32_t parent, const struct stack_entry *e,
			enum calltree_key key, uint32_t *id)
{
	uint32_t function = b->function_of[e->frame];
	uint32_t frame = key == CALLTREE_BY_LINE ? e->frame : b->functions.items[function].frame;
	struct draft d = { .parent = parent, .frame = frame, .function = function };
	uint64_t hash = hash_u64((uint64_t)parent << 32 | frame);
	size_t at = IDMAP_START;
	uint32_t found;

	/* By line every entry of the prefix tree is a path of its own: nothing to merge. */
	while (key == CALLTREE_BY_FUNCTION &&
	       (found = idmap_next(&b->map, hash, &at)) != IDMAP_NONE) {
		if (b->drafts.items[found].parent == parent &&
		    b->drafts.items[found].frame == frame) {
			*id = found;
			return 0;
		}
	}
	if (idmap_reserve(&b->map) < 0 || vec_push(&b->drafts, d) < 0)
		return -ENOMEM;
	*id = (uint32_t)b->drafts.len - 1;
	if (key == CALLTREE_BY_FUNCTION)
		idmap_insert(&b->map, hash, *id);
	return 0;
}

static int draft_tree(struct builder *b, const struct cube *c, uint16_t kind, enum calltree_key key)
{
	const struct stack_entry *entries = stacktab_entries(b->p->stacks);
	uint32_t count = stacktab_count(b->p->stacks);
	struct draft root = { .frame = NONE, .function = NONE };

	b->self = calloc(count, sizeof(*b->self));
	b->totals = calloc(count, sizeof(*b->totals));
	b->draft_of = calloc(count, sizeof(*b->draft_of));
	if (!b->self || !b->totals || !b->draft_of || vec_push(&b->drafts, root) < 0)
		return -ENOMEM;
	cube_sum_stacks(c, CUBE_BOTH_SIDES, kind, b->self);
	memcpy(b->totals, b->self, count * sizeof(*b->totals));
	for (uint32_t i = count - 1; i > 0; i--)
		b->totals[entries[i].parent] += b->totals[i];
	b->drafts.items[0].self = b->self[0];
	b->drafts.items[0].total = b->totals[0];
	for (uint32_t i = 1; i < count; i++) {
		uint32_t id;

		if (!b->totals[i])
			continue;
		if (draft_intern(b, b->draft_of[entries[i].parent], &entries[i], key, &id) < 0)
			return -ENOMEM;
		b->draft_of[i] = id;
		b->drafts.items[id].self += b->self[i];
		b->drafts.items[id].total += b->totals[i];
	}
	return 0;
}

static int compare_siblings(const void *a, const void *b, void *drafts)
{
	const struct draft *x = (const struct draft *)drafts + *(const uint32_t *)a;
	const struct draft *y = (const struct draft *)drafts + *(const uint32_t *)b;

	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return x->frame < y->frame ? -1 : x->frame > y->frame;
}

/* Counting sort by parent, then each group by weight; sizes bottom up; places top down. */
static int order_tree(struct builder *b)
{
	const struct draft *drafts = b->drafts.items;
	size_t count = b->drafts.len;

	b->start = calloc(count + 1, sizeof(*b->start));
	b->order = calloc(count, sizeof(*b->order));
	b->place = calloc(count, sizeof(*b->place));
	b->size = calloc(count, sizeof(*b->size));
	if (!b->start || !b->order || !b->place || !b->size)
		return -ENOMEM;
	for (size_t i = 1; i < count; i++)
		b->start[drafts[i].parent]++;
	for (size_t i = 0, sum = 0; i <= count; i++) {
		size_t children = b->start[i];

		b->start[i] = (uint32_t)sum;
		sum += children;
	}
	for (size_t i = 1; i < count; i++)
		b->order[b->start[drafts[i].parent] + b->size[drafts[i].parent]++] = (uint32_t)i;
	for (size_t i = 0; i < count; i++) {
		if (b->size[i] > 1)
			qsort_r(b->order + b->start[i], b->size[i], sizeof(*b->order),
				compare_siblings, b->drafts.items);
		b->size[i] = 1; /* held the number of children until here */
	}
	for (size_t i = count - 1; i > 0; i--)
		b->size[drafts[i].parent] += b->size[i];
	for (size_t i = 0; i < count; i++) {
		uint32_t next = b->place[i] + 1;

		for (uint32_t c = b->start[i]; c < b->start[i + 1]; c++) {
			b->place[b->order[c]] = next;
			next += b->size[b->order[c]];
		}
	}
	return 0;
}

static int compare_functions(const void *a, const void *b)
{
	const struct calltree_function *x = a, *y = b;

	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	if (x->self != y->self)
		return x->self < y->self ? 1 : -1;
	return x->frame < y->frame ? -1 : x->frame > y->frame;
}

/*
 * Sums each function over the preorder nodes. Only the outermost node of a function on a path
 * adds to its total: inside[f] is the end of that subtree, so any node below it is nested.
 */
static int sum_functions(struct builder *b, struct calltree *t)
{
	_cleanup_(freep) uint32_t *renamed = calloc(b->functions.len + 1, sizeof(*renamed));
	_cleanup_(freep) uint32_t *inside = calloc(b->functions.len + 1, sizeof(*inside));
	size_t kept = 0;

	if (!renamed || !inside)
		return -ENOMEM;
	for (uint32_t i = 1; i < t->node_count; i++) {
		const struct calltree_node *n = &t->nodes[i];
		struct calltree_function *f = &b->functions.items[n->function];

		f->self += n->self;
		if (i >= inside[n->function]) {
			f->total += n->total;
			inside[n->function] = n->end;
		}
	}
	if (b->functions.len)
		qsort(b->functions.items, b->functions.len, sizeof(*b->functions.items),
		      compare_functions);
	while (kept < b->functions.len && b->functions.items[kept].total)
		kept++;
	for (size_t i = 0; i < kept; i++)
		renamed[b->function_of[b->functions.items[i].frame]] = (uint32_t)i;
	for (size_t i = 1; i < t->node_count; i++)
		t->nodes[i].function = renamed[t->nodes[i].function];
	t->functions = b->functions.items;
	t->function_count = kept;
	b->functions.items = NULL;
	return 0;
}

int calltree_new(const struct profile *p, const struct cube *c, uint16_t kind,
		 enum calltree_key key, struct calltree **out)
{
	_cleanup_(builder_release) struct builder b = { .p = p };
	_cleanup_(calltree_freep) struct calltree *t = calloc(1, sizeof(*t));

	if (!t || group_functions(&b) < 0 || draft_tree(&b, c, kind, key) < 0 || order_tree(&b) < 0)
		return -ENOMEM;
	t->node_count = b.drafts.len;
	t->nodes = calloc(t->node_count, sizeof(*t->nodes));
	if (!t->nodes)
		return -ENOMEM;
	for (size_t i = 0; i < t->node_count; i++) {
		const struct draft *d = &b.drafts.items[i];

		t->nodes[b.place[i]] = (struct calltree_node){
			.parent = b.place[d->parent],
			.end = b.place[i] + b.size[i],
			.function = d->function,
			.frame = d->frame,
			.self = d->self,
			.total = d->total,
		};
	}
	if (sum_functions(&b, t) < 0)
		return -ENOMEM;
	t->stack_count = stacktab_count(p->stacks);
	for (size_t i = 0; i < t->stack_count; i++)
		b.draft_of[i] = b.place[b.draft_of[i]];
	t->node_of = take_ptr(b.draft_of);
	*out = take_ptr(t);
	return 0;
}

void calltree_free(struct calltree *t)
{
	if (!t)
		return;
	free(t->nodes);
	free(t->functions);
	free(t->node_of);
	free(t);
}
