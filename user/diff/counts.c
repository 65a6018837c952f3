/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "diff/counts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"

struct counts diff_counts(const struct diff *d, enum counted kind, size_t at)
{
	switch (kind) {
	case COUNTED_NODE:
		return (struct counts){ d->nodes[at].base_total, d->nodes[at].total };
	case COUNTED_NODE_SELF:
		return (struct counts){ d->nodes[at].base_self, d->nodes[at].self };
	case COUNTED_FUNCTION:
		return (struct counts){ d->functions[at].base_total, d->functions[at].total };
	case COUNTED_FUNCTION_SELF:
		break;
	}
	return (struct counts){ d->functions[at].base_self, d->functions[at].self };
}

size_t diff_count_of(const struct diff *d, enum counted kind)
{
	return kind <= COUNTED_NODE_SELF ? d->node_count : d->function_count;
}

bool diff_is_enough(const struct diff *d, enum counted kind, size_t at, struct counts n)
{
	return (double)(n.base + n.current) >= DIFF_TICKS_MIN * diff_unit(d, kind, at);
}

/* --- units ------------------------------------------------------------------------------------ */

#define LEAST_SCATTER 1e-4 /* clocks and starts of runs are off, too */

double diff_least_scatter(const struct diff *d, enum counted kind, size_t at, double block)
{
	double drawn = d->unit[kind] ? (double)d->unit[kind][at].drawn : 1, measured = 0;

	if (block > 0)
		measured = fmin(diff_unit(d, kind, at) / block, 1);
	return fmax(drawn + (1 - drawn) * measured, LEAST_SCATTER);
}

/* Of each thing of a kind. */
struct squares {
	struct diff_squares *items; /* owned */
};

static void squares_free(struct squares *all)
{
	for (int k = 0; k < COUNTED_KINDS; k++)
		free(all[k].items);
}

static void add_squares(struct diff_squares *to, const struct diff_squares *from)
{
	to->all += from->all;
	to->drawn += from->drawn;
}

/* Of both sides, from the leaves up. */
static void sum_nodes(const struct diff *d, struct diff_squares *self, struct diff_squares *totals)
{
	for (int s = 0; s < DIFF_SIDES; s++)
		for (size_t i = 0; i < d->input->squares[s].len; i++)
			add_squares(&self[d->node_of[s][i]], &d->input->squares[s].items[i]);
	for (size_t i = d->node_count; i-- > 0;) {
		add_squares(&totals[i], &self[i]);
		if (i)
			add_squares(&totals[d->nodes[i].parent], &totals[i]);
	}
}

/* As functions.c sums their values. */
static void sum_functions(const struct diff *d, uint32_t *inside, const struct squares *all)
{
	for (uint32_t i = 1; i < d->node_count; i++) {
		const struct diff_node *n = &d->nodes[i];

		add_squares(&all[COUNTED_FUNCTION_SELF].items[n->function],
			    &all[COUNTED_NODE_SELF].items[i]);
		if (i < inside[n->function])
			continue;
		add_squares(&all[COUNTED_FUNCTION].items[n->function], &all[COUNTED_NODE].items[i]);
		inside[n->function] = n->end;
	}
}

static void set_units(struct diff *d, enum counted kind, const struct diff_squares *squares)
{
	for (size_t i = 0; i < diff_count_of(d, kind); i++) {
		struct counts n = diff_counts(d, kind, i);
		double sum = (double)n.base + (double)n.current;
		bool is_known = sum > 0 && squares[i].all > 0;

		d->unit[kind][i] = (struct diff_unit){
			.ticks = is_known ? (float)(squares[i].all / sum) : 1,
			.drawn = is_known ? (float)(squares[i].drawn / squares[i].all) : 1,
		};
	}
}

static int find_all(struct diff *d, struct squares *all)
{
	_cleanup_(freep) uint32_t *inside = calloc(d->function_count + 1, sizeof(*inside));

	for (int k = 0; k < COUNTED_KINDS; k++) {
		all[k].items = calloc(diff_count_of(d, k) + 1, sizeof(*all[k].items));
		d->unit[k] = calloc(diff_count_of(d, k) + 1, sizeof(*d->unit[k]));
		if (!all[k].items || !d->unit[k])
			return -ENOMEM;
	}
	if (!inside)
		return -ENOMEM;
	sum_nodes(d, all[COUNTED_NODE_SELF].items, all[COUNTED_NODE].items);
	sum_functions(d, inside, all);
	for (int k = 0; k < COUNTED_KINDS; k++)
		set_units(d, k, all[k].items);
	return 0;
}

int diff_find_units(struct diff *d)
{
	struct squares all[COUNTED_KINDS] = { { NULL } };
	int r = d->input->has_values ? find_all(d, all) : 0;

	squares_free(all);
	return r;
}
