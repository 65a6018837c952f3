/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "diff/union.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "profile/idmap.h"

#define NONE UINT32_MAX

/* A node while the tree grows: parents before children until the alignment moves some. */
struct draft {
	uint32_t parent;
	uint32_t key;
	uint32_t first_child; /* NONE: none */
	uint32_t next;        /* sibling; NONE: the last */
	uint32_t before;      /* sibling; NONE: the first */
	uint32_t into;        /* NONE: alive; else the draft it was merged into */
	uint8_t match;
	uint64_t self[DIFF_SIDES];
	uint64_t total[DIFF_SIDES];
};

struct builder {
	struct diff *d;
	const struct identity *id;
	VEC(struct draft) drafts;
	struct idmap map;       /* of drafts, by parent and key */
	uint32_t *place_of_key; /* by key: a child of the node at hand, + 1; 0: none */
	uint32_t *child_of_key; /* the same, of a node that is merged into */
	VEC(uint32_t) children; /* of the node at hand, on one side only */
	VEC(uint32_t) common;   /* of the node at hand, on both, with callees */
	VEC(uint32_t) work;
	VEC(uint64_t) merges; /* from << 32 | to */
	uint32_t *place;
};

static void builder_release(struct builder *b)
{
	vec_release(&b->drafts);
	idmap_release(&b->map);
	free(b->place_of_key);
	free(b->child_of_key);
	vec_release(&b->children);
	vec_release(&b->common);
	vec_release(&b->work);
	vec_release(&b->merges);
	free(b->place);
}

/* --- paths of equal keys ---------------------------------------------------------------------- */

static void link_first(struct builder *b, uint32_t at, uint32_t parent)
{
	struct draft *drafts = b->drafts.items;
	uint32_t next = drafts[parent].first_child;

	drafts[at].parent = parent;
	drafts[at].before = NONE;
	drafts[at].next = next;
	if (next != NONE)
		drafts[next].before = at;
	drafts[parent].first_child = at;
}

static int draft_intern(struct builder *b, uint32_t parent, uint32_t key, uint32_t *out)
{
	struct draft fresh = { .key = key, .first_child = NONE, .into = NONE };
	uint64_t hash = hash_u64((uint64_t)parent << 32 | key);
	size_t at = IDMAP_START;

	while ((*out = idmap_next(&b->map, hash, &at)) != IDMAP_NONE)
		if (b->drafts.items[*out].parent == parent && b->drafts.items[*out].key == key)
			return 0;
	if (b->drafts.len == NONE)
		return -EOVERFLOW;
	if (idmap_reserve(&b->map) < 0 || vec_push(&b->drafts, fresh) < 0)
		return -ENOMEM;
	*out = (uint32_t)b->drafts.len - 1;
	link_first(b, *out, parent);
	idmap_insert(&b->map, hash, *out);
	return 0;
}

/* Where the stack is of which the other side has all above it in the same place, too; else 0. */
static uint32_t place_of_other(const struct builder *b, int side, uint32_t stack,
			       const struct stack_entry *e)
{
	const uint32_t *own = b->d->node_of[side], *other = b->d->node_of[!side];
	bool is_same = other && own[e->parent] == other[e->parent] &&
		       b->id->key_of[0][e->frame] == b->id->key_of[1][e->frame];

	return is_same ? other[stack] : 0;
}

static int add_side(struct builder *b, int side, const uint64_t *self, const uint64_t *totals)
{
	const struct profile *p = b->d->input->profile;
	const struct stack_entry *entries = stacktab_entries(p->stacks);
	uint32_t *node_of = b->d->node_of[side];

	b->drafts.items[0].self[side] += self[0];
	b->drafts.items[0].total[side] += totals[0];
	for (uint32_t i = 1; i < b->d->stack_count; i++) {
		uint32_t at;
		int r = 0;

		if (!totals[i])
			continue;
		if (b->id->key_of[side][entries[i].frame] == IDENTITY_INLINED) {
			node_of[i] = node_of[entries[i].parent];
			b->drafts.items[node_of[i]].self[side] += self[i];
			continue;
		}
		at = place_of_other(b, side, i, &entries[i]);
		if (!at)
			r = draft_intern(b, node_of[entries[i].parent],
					 b->id->key_of[side][entries[i].frame], &at);
		if (r < 0)
			return r;
		node_of[i] = at;
		b->drafts.items[at].self[side] += self[i];
		b->drafts.items[at].total[side] += totals[i];
	}
	return 0;
}

/* --- one frame more or less ------------------------------------------------------------------- */

static bool is_only(const struct draft *d, int side)
{
	return d->total[side] && !d->total[!side];
}

/* Takes a draft out of its parent's list. */
static void unlink_draft(struct builder *b, uint32_t at)
{
	struct draft *drafts = b->drafts.items;
	struct draft *d = &drafts[at];

	if (d->before == NONE)
		drafts[d->parent].first_child = d->next;
	else
		drafts[d->before].next = d->next;
	if (d->next != NONE)
		drafts[d->next].before = d->before;
}

/* What both have is to be merged as well, the rest moves. */
static int merge_children(struct builder *b, uint32_t from, uint32_t to)
{
	struct draft *drafts = b->drafts.items;
	uint32_t *child_of_key = b->child_of_key, next;
	int r = 0;

	for (uint32_t c = drafts[to].first_child; c != NONE; c = drafts[c].next)
		child_of_key[drafts[c].key] = c + 1;
	for (uint32_t c = drafts[from].first_child; c != NONE && !r; c = next) {
		uint32_t same = child_of_key[drafts[c].key];

		next = drafts[c].next;
		if (same)
			r = vec_push(&b->merges, (uint64_t)c << 32 | (same - 1));
		else
			link_first(b, c, to);
	}
	for (uint32_t c = drafts[to].first_child; c != NONE; c = drafts[c].next)
		child_of_key[drafts[c].key] = 0;
	return r;
}

/* Adds the subtree of `from`, which leaves its parent's list, to that of `to`. */
static int merge_drafts(struct builder *b, uint32_t from, uint32_t to)
{
	struct draft *drafts = b->drafts.items;
	int r;

	unlink_draft(b, from);
	b->merges.len = 0;
	r = vec_push(&b->merges, (uint64_t)from << 32 | to);
	while (b->merges.len && !r) {
		uint64_t pair = b->merges.items[--b->merges.len];
		uint32_t source = (uint32_t)(pair >> 32), target = (uint32_t)pair;

		for (int s = 0; s < DIFF_SIDES; s++) {
			drafts[target].self[s] += drafts[source].self[s];
			drafts[target].total[s] += drafts[source].total[s];
		}
		drafts[source].into = target;
		r = merge_children(b, source, target);
	}
	return r;
}

static const char *key_name(const struct builder *b, uint32_t key)
{
	const struct profile *p = b->d->input->profile;
	const uint32_t *frame = b->id->keys.items[key].frame;
	uint32_t any = frame[DIFF_BASE] != NONE ? frame[DIFF_BASE] : frame[DIFF_CURRENT];

	return strtab_get(p->strings, frametab_get(p->frames, any)->name);
}

/* Ties by name and not by number: which side is which must not matter. */
static int compare_weights(const void *a, const void *b, void *context)
{
	const struct builder *builder = context;
	const struct draft *x = &builder->drafts.items[*(const uint32_t *)a];
	const struct draft *y = &builder->drafts.items[*(const uint32_t *)b];
	uint64_t i = x->total[0] + x->total[1], j = y->total[0] + y->total[1];
	int order = i > j ? -1 : i < j;

	if (!order)
		order = strcmp(key_name(builder, x->key), key_name(builder, y->key));
	return order ? order : x->key < y->key ? -1 : x->key > y->key;
}

static void order_by_weight(struct builder *b, uint32_t *drafts, size_t count)
{
	if (count)
		qsort_r(drafts, count, sizeof(*drafts), compare_weights, b);
}

/* Children of parent that one side lacks, all in place_of_key, and those that both have; the
 * heaviest first. None where nothing could be passed over. */
static int find_one_sided(struct builder *b, uint32_t parent)
{
	const struct draft *drafts = b->drafts.items;
	bool has_side[DIFF_SIDES] = { false };
	int r = 0;

	b->children.len = b->common.len = 0;
	for (uint32_t c = drafts[parent].first_child; c != NONE && !r; c = drafts[c].next) {
		const struct draft *d = &drafts[c];

		if (d->total[DIFF_BASE] && d->total[DIFF_CURRENT]) {
			if (d->first_child != NONE)
				r = vec_push(&b->common, c);
			continue;
		}
		has_side[is_only(d, DIFF_CURRENT)] = true;
		r = vec_push(&b->children, c);
	}
	if (!(has_side[DIFF_BASE] && has_side[DIFF_CURRENT]) && !b->common.len)
		b->children.len = 0;
	if (!b->children.len)
		b->common.len = 0;
	order_by_weight(b, b->children.items, b->children.len);
	order_by_weight(b, b->common.items, b->common.len);
	for (size_t i = 0; i < b->children.len; i++)
		b->place_of_key[drafts[b->children.items[i]].key] = b->children.items[i] + 1;
	return r;
}

/*
 * Is `between` a frame above children of one side that the other has directly below its parent?
 * It may be of that side alone, or stand above other calls on both: a decorator that was put on
 * one more function.
 */
static int pass_over(struct builder *b, uint32_t between, int side)
{
	struct draft *drafts = b->drafts.items;
	uint32_t next;
	int r = 0;

	for (uint32_t c = drafts[between].first_child; c != NONE && !r; c = next) {
		uint32_t found = b->place_of_key[drafts[c].key] - 1;

		next = drafts[c].next;
		if (found == NONE || !is_only(&drafts[c], side) ||
		    !is_only(&drafts[found], !side) || drafts[found].into != NONE)
			continue;
		if (is_only(&drafts[between], side))
			drafts[between].match =
				side == DIFF_CURRENT ? DIFF_MATCH_INSERTED : DIFF_MATCH_DELETED;
		drafts[between].total[!side] += drafts[found].total[!side];
		r = merge_drafts(b, found, c);
	}
	return r;
}

static int align_children(struct builder *b, uint32_t parent)
{
	const struct draft *drafts = b->drafts.items;
	int r = find_one_sided(b, parent);

	for (size_t i = 0; i < b->children.len && !r; i++) {
		uint32_t at = b->children.items[i];

		if (drafts[at].into == NONE)
			r = pass_over(b, at,
				      drafts[at].total[DIFF_CURRENT] ? DIFF_CURRENT : DIFF_BASE);
	}
	for (size_t i = 0; i < b->common.len && !r; i++)
		for (int side = 0; side < DIFF_SIDES && !r; side++)
			r = pass_over(b, b->common.items[i], side);
	for (size_t i = 0; i < b->children.len; i++)
		b->place_of_key[drafts[b->children.items[i]].key] = 0;
	return r;
}

/* From the root down, as what was merged may want merging again. */
static int align(struct builder *b)
{
	int r = vec_push(&b->work, 0);

	b->place_of_key = calloc(b->id->keys.len + 1, sizeof(*b->place_of_key));
	b->child_of_key = calloc(b->id->keys.len + 1, sizeof(*b->child_of_key));
	if (!b->place_of_key || !b->child_of_key)
		return -ENOMEM;
	while (b->work.len && !r) {
		uint32_t at = b->work.items[--b->work.len];

		r = align_children(b, at);
		for (uint32_t c = b->drafts.items[at].first_child; c != NONE && !r;
		     c = b->drafts.items[c].next)
			if (b->drafts.items[c].total[0] && b->drafts.items[c].total[1])
				r = vec_push(&b->work, c);
	}
	return r;
}

/* --- in order --------------------------------------------------------------------------------- */

struct order {
	const struct draft *drafts;
	double scale;
};

static double larger_side(const struct order *o, const struct draft *d)
{
	double base = (double)d->total[DIFF_BASE] * o->scale;

	return base > (double)d->total[DIFF_CURRENT] ? base : (double)d->total[DIFF_CURRENT];
}

static int compare_siblings(const void *a, const void *b, void *order)
{
	const struct order *o = order;
	const struct draft *x = &o->drafts[*(const uint32_t *)a];
	const struct draft *y = &o->drafts[*(const uint32_t *)b];
	double i = larger_side(o, x), j = larger_side(o, y);

	if (i != j)
		return i > j ? -1 : 1;
	return x->key < y->key ? -1 : x->key > y->key;
}

static struct diff_node make_node(const struct builder *b, const struct draft *d, uint32_t parent)
{
	struct diff_node n = {
		.parent = parent,
		.function = d->key,
		.match = d->match,
		.base_self = d->self[DIFF_BASE],
		.base_total = d->total[DIFF_BASE],
		.self = d->self[DIFF_CURRENT],
		.total = d->total[DIFF_CURRENT],
	};

	if (!n.match && n.base_total && n.total)
		n.match = d->key != NONE && b->id->keys.items[d->key].is_renamed
				  ? DIFF_MATCH_RENAMED
				  : DIFF_MATCH_EXACT;
	return n;
}

/* A stack of what is still to be placed: its top is placed next, and its children go on top. */
static int place_nodes(struct builder *b)
{
	struct order o = { b->drafts.items, b->d->scale };
	struct diff_node *nodes = b->d->nodes;
	uint32_t count = 0;

	b->work.len = 0;
	if (vec_push(&b->work, 0) < 0)
		return -ENOMEM;
	while (b->work.len) {
		uint32_t at = b->work.items[--b->work.len];
		const struct draft *d = &b->drafts.items[at];

		b->place[at] = count;
		nodes[count++] = make_node(b, d, at ? b->place[d->parent] : 0);
		b->children.len = 0;
		for (uint32_t c = d->first_child; c != NONE; c = b->drafts.items[c].next)
			if (vec_push(&b->children, c) < 0)
				return -ENOMEM;
		if (b->children.len > 1)
			qsort_r(b->children.items, b->children.len, sizeof(uint32_t),
				compare_siblings, &o);
		while (b->children.len)
			if (vec_push(&b->work, b->children.items[--b->children.len]) < 0)
				return -ENOMEM;
	}
	b->d->node_count = count;
	for (uint32_t i = 0; i < count; i++)
		nodes[i].end = i + 1;
	for (uint32_t i = count - 1; i > 0; i--)
		if (nodes[nodes[i].parent].end < nodes[i].end)
			nodes[nodes[i].parent].end = nodes[i].end;
	return 0;
}

/* Where the stacks' drafts have come to. */
static void place_stacks(struct builder *b)
{
	for (int s = 0; s < DIFF_SIDES; s++)
		for (size_t i = 0; i < b->d->stack_count; i++) {
			uint32_t at = b->d->node_of[s][i];

			while (b->drafts.items[at].into != NONE)
				at = b->drafts.items[at].into;
			b->d->node_of[s][i] = b->place[at];
		}
}

int union_make(struct diff *d, const struct identity *id, const uint64_t *const self[DIFF_SIDES],
	       const uint64_t *const totals[DIFF_SIDES])
{
	_cleanup_(builder_release) struct builder b = { .d = d, .id = id };
	struct draft root = {
		.key = NONE,
		.first_child = NONE,
		.next = NONE,
		.before = NONE,
		.into = NONE,
		.match = DIFF_MATCH_EXACT,
	};
	int r = vec_push(&b.drafts, root);

	d->stack_count = stacktab_count(d->input->profile->stacks);
	for (int s = 0; s < DIFF_SIDES && !r; s++) {
		d->node_of[s] = calloc(d->stack_count, sizeof(uint32_t));
		r = d->node_of[s] ? add_side(&b, s, self[s], totals[s]) : -ENOMEM;
	}
	idmap_release(&b.map);
	if (!r)
		r = align(&b);
	if (r < 0)
		return r;
	b.place = calloc(b.drafts.len, sizeof(*b.place));
	d->nodes = calloc(b.drafts.len, sizeof(*d->nodes));
	if (!b.place || !d->nodes)
		return -ENOMEM;
	r = place_nodes(&b);
	if (!r)
		place_stacks(&b);
	return r;
}
