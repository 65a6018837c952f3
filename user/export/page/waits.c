/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/* What a page with kinds knows of its nodes: sums of those that are shown, what of them waits. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "export/page/page.h"
#include "profile/idle.h"
#include "profile/kinds.h"

static int add_kind(struct page *page, const uint32_t *node_of, uint16_t kind)
{
	_cleanup_(freep) uint64_t *values = calloc(page->stack_count, sizeof(*values));
	uint64_t factor = page_factor(page, kind);

	if (!values)
		return -ENOMEM;
	cube_sum_stacks(page->cube, CUBE_BOTH_SIDES, kind, values);
	for (size_t i = 0; i < page->stack_count; i++) {
		page->nodes.items[node_of[i]].self[CUBE_CURRENT] += values[i] * factor;
		if (page->waits && page->kinds->roles.items[kind] & KIND_IS_OFF_CPU)
			page->waits[node_of[i]] += values[i] * factor;
	}
	return 0;
}

/* The tree is of all kinds, what nodes are as large as is of those that are shown. */
static int sum_nodes(struct page *page, const uint32_t *node_of)
{
	const struct kinds *k = page->kinds;
	int r = 0;

	if (k && k->name && !strcmp(k->name, KINDS_WALL)) {
		page->waits = calloc(page->nodes.len, sizeof(*page->waits));
		r = page->waits ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < page->nodes.len; i++)
		page->nodes.items[i].self[CUBE_CURRENT] = 0;
	for (uint16_t kind = 0; kind <= page->profile->kinds.len && !r; kind++)
		if (page_factor(page, kind))
			r = add_kind(page, node_of, kind);
	return r;
}

static void idle_releasep(struct idle *idle)
{
	idle_release(idle);
}

/* Which waits say nothing: a page leaves them out when it is asked to. */
static int find_idle(struct page *page, const uint32_t *node_of)
{
	_cleanup_(idle_releasep) struct idle idle = { 0 };
	bool has_some = false;
	int r = idle_judge(&idle, page->profile);

	page->idle = calloc(page->nodes.len, sizeof(*page->idle));
	if (r < 0 || !page->idle)
		return -ENOMEM;
	for (uint32_t i = 0; i < page->stack_count; i++) {
		uint8_t rule = idle_rule_of(&idle, i);

		if (!rule || !node_of[i])
			continue;
		page->idle[node_of[i]] = rule;
		has_some = true;
	}
	if (!has_some)
		free(take_ptr(page->idle));
	return 0;
}

/* --- order ------------------------------------------------------------------------------------ */

/* Of each node, with all below it. */
struct order {
	uint64_t *total, *waits;
	uint32_t *size;     /* how many nodes */
	uint32_t *start;    /* by node + 1: where its children are */
	uint32_t *children; /* of all nodes, each one's in order */
	uint32_t *place;    /* where it comes to */
};

static void order_release(struct order *o)
{
	free(o->total);
	free(o->waits);
	free(o->size);
	free(o->start);
	free(o->children);
	free(o->place);
}

static int order_init(struct order *o, const struct page *page)
{
	const struct page_node *nodes = page->nodes.items;
	size_t count = page->nodes.len;

	o->total = calloc(count, sizeof(*o->total));
	o->waits = calloc(count, sizeof(*o->waits));
	o->size = calloc(count, sizeof(*o->size));
	o->start = calloc(count + 2, sizeof(*o->start));
	o->children = calloc(count, sizeof(*o->children));
	o->place = calloc(count, sizeof(*o->place));
	if (!o->total || !o->waits || !o->size || !o->start || !o->children || !o->place)
		return -ENOMEM;
	for (size_t i = count; i-- > 0;) {
		o->total[i] += nodes[i].self[CUBE_CURRENT];
		o->waits[i] += page->waits[i];
		o->size[i]++;
		if (!i)
			break;
		o->total[nodes[i].parent] += o->total[i];
		o->waits[nodes[i].parent] += o->waits[i];
		o->size[nodes[i].parent] += o->size[i];
		o->start[nodes[i].parent + 1]++;
	}
	for (size_t i = 0; i < count; i++)
		o->start[i + 1] += o->start[i];
	return 0;
}

/* What mostly waits comes first, then what has most. */
static int compare_siblings(const void *a, const void *b, void *order)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct order *o = order;
	bool x_waits = o->waits[x] > o->total[x] / 2, y_waits = o->waits[y] > o->total[y] / 2;

	if (x_waits != y_waits)
		return x_waits ? -1 : 1;
	if (o->total[x] != o->total[y])
		return o->total[x] > o->total[y] ? -1 : 1;
	return x < y ? -1 : x > y;
}

static void place_nodes(struct order *o, const struct page *page)
{
	const struct page_node *nodes = page->nodes.items;
	size_t count = page->nodes.len;

	for (uint32_t i = 1; i < count; i++) /* place: how many of a node's are there */
		o->children[o->start[nodes[i].parent] + o->place[nodes[i].parent]++] = i;
	o->place[0] = 0;
	for (size_t i = 0; i < count; i++) {
		uint32_t next = o->place[i] + 1;

		qsort_r(o->children + o->start[i], o->start[i + 1] - o->start[i],
			sizeof(*o->children), compare_siblings, o);
		for (uint32_t c = o->start[i]; c < o->start[i + 1]; c++) {
			o->place[o->children[c]] = next;
			next += o->size[o->children[c]];
		}
	}
}

static int move_nodes(const struct order *o, struct page *page, uint32_t *node_of)
{
	size_t count = page->nodes.len;
	_cleanup_(freep) struct page_node *nodes = malloc(count * sizeof(*nodes));
	_cleanup_(freep) uint64_t *waits = malloc(count * sizeof(*waits));

	if (!nodes || !waits)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		nodes[o->place[i]] = page->nodes.items[i];
		nodes[o->place[i]].parent = o->place[page->nodes.items[i].parent];
		waits[o->place[i]] = page->waits[i];
	}
	memcpy(page->nodes.items, nodes, count * sizeof(*nodes));
	memcpy(page->waits, waits, count * sizeof(*waits));
	for (size_t i = 0; i < page->stack_count; i++)
		node_of[i] = o->place[node_of[i]];
	return 0;
}

/* So that what waits of a node lies on the left of it, as a page draws it. */
static int order_nodes(struct page *page, uint32_t *node_of)
{
	_cleanup_(order_release) struct order o = { 0 };
	int r = order_init(&o, page);

	if (r < 0)
		return r;
	place_nodes(&o, page);
	return move_nodes(&o, page, node_of);
}

int page_tell_kinds(struct page *page, uint32_t *node_of)
{
	int r = sum_nodes(page, node_of);

	if (!r && page->waits)
		r = order_nodes(page, node_of);
	return r ? r : find_idle(page, node_of);
}
