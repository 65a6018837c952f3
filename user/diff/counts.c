/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "diff/counts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"

/* Of what is counted, in events or bytes. */
struct counting {
	double together; /* what a sample stands for was on end, up to so much */
	double off;      /* what a thing is off by from run to run, whatever its size */
};

/* The sampler skips 15 events at most, and a huge page is 2 MiB (docs/events.md). The second by
 * runs of real programs (docs/diff.md). */
static const struct counting of_events = { 16, 32 }, of_bytes = { 64 << 10, 128 << 10 };

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

bool diff_is_unsampled(const struct diff *d, enum counted kind, size_t at)
{
	uint32_t function = kind <= COUNTED_NODE_SELF ? d->nodes[at].function : (uint32_t)at;

	return function < d->function_count && d->functions[function].is_unsampled;
}

bool diff_is_enough(const struct diff *d, enum counted kind, size_t at, struct counts n)
{
	return !diff_is_unsampled(d, kind, at) &&
	       (double)(n.base + n.current) >= DIFF_TICKS_MIN * diff_unit(d, kind, at);
}

static bool is_counted(const struct diff_side_sum *s)
{
	return s->of.period && s->of.unit != UNIT_NS;
}

bool diff_is_presumed(const struct diff *d)
{
	bool is_whole = d->normalize == DIFF_ABSOLUTE || d->normalize == DIFF_WORK;

	for (int s = 0; s < DIFF_SIDES; s++)
		if (d->side[s].runs > 1 || (d->side[s].runs && !is_counted(&d->side[s])))
			return false;
	return is_whole && d->input->has_values;
}

/* --- units ------------------------------------------------------------------------------------ */

#define LEAST_SCATTER 1e-4 /* clocks and starts of runs are off, too */
#define LEAST_COUNTED .25  /* half of what things are off by */

/* In ticks; zeros: of time there is none. */
static struct counting counting_of(const struct diff *d)
{
	const struct diff_side_sum *s =
		&d->side[d->side[DIFF_BASE].runs ? DIFF_BASE : DIFF_CURRENT];
	const struct counting *c = s->of.unit == UNIT_BYTES ? &of_bytes : &of_events;
	double period = (double)s->of.period;

	if (!is_counted(s))
		return (struct counting){ 0, 0 };
	return (struct counting){ c->together / period, c->off / period };
}

double diff_least_scatter(const struct diff *d, enum counted kind, size_t at, double block)
{
	double drawn = d->unit[kind] ? (double)d->unit[kind][at].drawn : 1, measured = 0;

	if (is_counted(&d->side[DIFF_BASE]))
		measured = block > 0 ? 1 : LEAST_COUNTED;
	else if (block > 0)
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

/*
 * A sample that stands for many events has met one of them: which one is chance, as with what was
 * drawn by lot. of_runs: the variance of both sides beyond that; 0: that of samples counts, as time
 * has it.
 */
static struct diff_unit unit_of(double sum, const struct diff_squares *squares, double together,
				double of_runs)
{
	double drawn = fmax(squares->drawn - together * sum, 0);
	double all = of_runs > 0 ? drawn + of_runs : squares->all;

	if (!(sum > 0 && squares->all > 0))
		return (struct diff_unit){ 1, 1 };
	return (struct diff_unit){ (float)(all / sum), (float)(drawn / all) };
}

double diff_variance_of_runs(const struct diff *d)
{
	const struct diff_side_sum *b = &d->side[DIFF_BASE], *c = &d->side[DIFF_CURRENT];
	double runs = b->runs + c->runs, lost = (double)(b->lost + c->lost);
	double off = counting_of(d).off;

	return off > 0 && (runs > 2 || diff_is_presumed(d)) ? off * off * runs + lost * lost : 0;
}

static void set_units(struct diff *d, enum counted kind, const struct diff_squares *squares)
{
	double together = counting_of(d).together, of_runs = diff_variance_of_runs(d);

	for (size_t i = 0; i < diff_count_of(d, kind); i++) {
		struct counts n = diff_counts(d, kind, i);

		d->unit[kind][i] =
			unit_of((double)n.base + (double)n.current, &squares[i], together, of_runs);
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
