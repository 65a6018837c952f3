/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "diff/measure.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/parallel.h"

#define NONE UINT32_MAX
#define PREFETCH 16      /* cells ahead: of many nodes, few are in the cache */
#define LARGE_SHARE .001 /* of all ticks: functions that show whether all are off together */

/* Measures one side. */
struct meter {
	const struct measure *how;
	int side;
	uint32_t times;                 /* blocks of so many times the usual length */
	struct large *large;            /* NULL: not asked for */
	uint64_t *ticks[COUNTED_KINDS]; /* of one replicate; zeros between them */
	double *squares[COUNTED_KINDS]; /* sums of ticks^2 / share; of nodes: NULL unless asked for
					 */
	struct measure_side found;
	int error;
};

static void meter_release(struct meter *m)
{
	for (int k = 0; k < COUNTED_KINDS; k++) {
		free(m->ticks[k]);
		free(m->squares[k]);
	}
}

/* --- what is measured ------------------------------------------------------------------------- */

static struct measure_path *pack_paths(const struct diff *d)
{
	_cleanup_(freep) uint32_t *inside = calloc(d->function_count + 1, sizeof(*inside));
	struct measure_path *paths = calloc(d->node_count, sizeof(*paths));

	if (!inside || !paths) {
		free(paths);
		return NULL;
	}
	for (uint32_t i = 1; i < d->node_count; i++) {
		const struct diff_node *n = &d->nodes[i];
		bool is_nested = i < inside[n->function];

		paths[i] = (struct measure_path){
			.parent = n->parent,
			.function = n->function,
			.outermost = is_nested ? NONE : n->function,
		};
		if (!is_nested)
			inside[n->function] = n->end;
	}
	return paths;
}

int measure_init(struct measure *how, const struct diff *d, enum diff_dispersion by,
		 enum exposure exposure, bool of_nodes)
{
	*how = (struct measure){ .d = d, .by = by, .exposure = exposure, .of_nodes = of_nodes };
	how->paths = pack_paths(d);
	return how->paths ? 0 : -ENOMEM;
}

void measure_release(struct measure *how)
{
	free(how->paths);
}

int large_find(struct large *l, const struct diff *d)
{
	double all =
		(double)d->side[DIFF_BASE].ticks * d->scale + (double)d->side[DIFF_CURRENT].ticks;
	int r = 0;

	for (uint32_t i = 0; i < d->function_count && !r; i++) {
		struct counts n = diff_counts(d, COUNTED_FUNCTION_SELF, i);

		if (n.base && n.current && diff_is_enough(d, COUNTED_FUNCTION_SELF, i, n) &&
		    (double)n.base * d->scale + (double)n.current > LARGE_SHARE * all)
			r = vec_push(&l->functions, i);
	}
	return r;
}

void large_release(struct large *l)
{
	vec_release(&l->functions);
	for (int s = 0; s < DIFF_SIDES; s++)
		free(l->off[s]);
}

void chi_release(struct chi *chi)
{
	for (int k = 0; k < COUNTED_KINDS; k++)
		free(chi->of[k]);
}

/* --- one replicate ---------------------------------------------------------------------------- */

static double square(uint64_t ticks, const struct replicate *r)
{
	return (double)ticks * (double)ticks / r->share;
}

static void add_cells(struct meter *m, const struct replicate *r)
{
	const uint32_t *node_of = m->how->d->node_of[m->side];
	uint64_t *self = m->ticks[COUNTED_NODE_SELF];

	for (uint32_t b = 0; b < r->block_count; b++) {
		const struct cube_cell *cells = r->blocks[b].cells.items;
		size_t len = r->blocks[b].cells.len;

		for (size_t i = 0; i < len; i++) {
			if (i + 2 * PREFETCH < len) {
				__builtin_prefetch(&node_of[cells[i + 2 * PREFETCH].stack]);
				__builtin_prefetch(&self[node_of[cells[i + PREFETCH].stack]], 1);
			}
			self[node_of[cells[i].stack]] += cells[i].value;
		}
	}
}

/* From the leaves up: a node is complete when its turn comes. */
static void add_nodes(struct meter *m, const struct replicate *r)
{
	uint64_t *self = m->ticks[COUNTED_NODE_SELF], *totals = m->ticks[COUNTED_NODE];
	uint64_t *of_function = m->ticks[COUNTED_FUNCTION];
	uint64_t *self_of_function = m->ticks[COUNTED_FUNCTION_SELF];

	for (size_t i = m->how->d->node_count; i-- > 0;) {
		const struct measure_path *path = &m->how->paths[i];
		uint64_t own = self[i], total = totals[i] + own;

		if (!total)
			continue;
		self[i] = totals[i] = 0;
		if (m->how->of_nodes)
			m->squares[COUNTED_NODE][i] += square(total, r);
		if (!i)
			break;
		totals[path->parent] += total;
		if (path->outermost != NONE)
			of_function[path->outermost] += total;
		if (!own)
			continue;
		if (m->how->of_nodes)
			m->squares[COUNTED_NODE_SELF][i] += square(own, r);
		self_of_function[path->function] += own;
	}
}

/* at: which one of the replicates it is. */
static void add_large(struct meter *m, const struct replicate *r, size_t at)
{
	const struct large *l = m->large;

	for (size_t i = 0; i < l->functions.len; i++) {
		uint32_t function = l->functions.items[i];
		const struct diff_function *f = &m->how->d->functions[function];
		double all = (double)(m->side == DIFF_BASE ? f->base_self : f->self);
		double ticks = (double)m->ticks[COUNTED_FUNCTION_SELF][function];
		double unit = diff_unit(m->how->d, COUNTED_FUNCTION_SELF, function);

		l->off[m->side][i * l->replicates[m->side] + at] =
			(ticks - all * r->share) / sqrt(all * r->share * unit);
	}
}

static void add_functions(struct meter *m, const struct replicate *r)
{
	for (int k = COUNTED_FUNCTION; k <= COUNTED_FUNCTION_SELF; k++)
		for (size_t i = 0; i < m->how->d->function_count; i++) {
			m->squares[k][i] += square(m->ticks[k][i], r);
			m->ticks[k][i] = 0;
		}
}

static int allocate(struct meter *m, size_t replicates)
{
	struct large *l = m->large;

	for (int k = 0; k < COUNTED_KINDS; k++) {
		size_t count = diff_count_of(m->how->d, k) + 1;

		m->ticks[k] = calloc(count, sizeof(*m->ticks[k]));
		if (!m->ticks[k])
			return -ENOMEM;
		if (k <= COUNTED_NODE_SELF && !m->how->of_nodes)
			continue;
		m->squares[k] = calloc(count, sizeof(*m->squares[k]));
		if (!m->squares[k])
			return -ENOMEM;
	}
	if (!l)
		return 0;
	l->replicates[m->side] = replicates;
	l->off[m->side] = calloc(l->functions.len * replicates + 1, sizeof(double));
	return l->off[m->side] ? 0 : -ENOMEM;
}

static int measure_side(struct meter *m)
{
	_cleanup_(replicates_release) struct replicates all = { 0 };
	int r = replicates_find(&all, m->how->d, m->side, m->how->by, m->how->exposure, m->times);

	for (size_t i = 0; i < all.len; i++)
		m->found.share += all.items[i].share * all.items[i].share;
	if (r < 0 || all.len < 2)
		return r;
	r = allocate(m, all.len);
	if (r < 0)
		return r;
	m->found.df = (double)all.len - 1;
	for (size_t i = 0; i < all.len; i++) {
		add_cells(m, &all.items[i]);
		add_nodes(m, &all.items[i]);
		if (m->large)
			add_large(m, &all.items[i], i);
		add_functions(m, &all.items[i]);
	}
	return 0;
}

static void measure_one(void *meters, size_t side)
{
	struct meter *m = (struct meter *)meters + side;

	m->error = measure_side(m);
}

/* sum (x - m)^2 / m = sum x^2 / m - n: the chi-square statistic of each thing. */
static void add_side(struct chi *chi, const struct meter *m, enum counted kind)
{
	for (size_t i = 0; i < diff_count_of(m->how->d, kind); i++) {
		struct counts n = diff_counts(m->how->d, kind, i);
		double ticks = m->side == DIFF_BASE ? (double)n.base : (double)n.current;

		if (ticks > 0)
			chi->of[kind][i] += fmax(m->squares[kind][i] / ticks - ticks, 0);
	}
}

static int allocate_chi(struct chi *chi, const struct measure *how)
{
	for (int k = how->of_nodes ? 0 : COUNTED_FUNCTION; k < COUNTED_KINDS; k++) {
		chi->of[k] = calloc(diff_count_of(how->d, k) + 1, sizeof(*chi->of[k]));
		if (!chi->of[k])
			return -ENOMEM;
	}
	return 0;
}

int measure_chi(const struct measure *how, uint32_t times, struct large *large, struct chi *chi)
{
	struct meter sides[DIFF_SIDES];
	int r = allocate_chi(chi, how);

	for (int s = 0; s < DIFF_SIDES; s++)
		sides[s] = (struct meter){ .how = how, .side = s, .times = times, .large = large };
	if (!r)
		parallel_run(DIFF_SIDES, measure_one, sides);
	for (int s = 0; s < DIFF_SIDES; s++) {
		r = r ? r : sides[s].error;
		chi->side[s] = sides[s].found;
		for (int k = 0; k < COUNTED_KINDS && !r; k++)
			if (sides[s].squares[k])
				add_side(chi, &sides[s], k);
		meter_release(&sides[s]);
	}
	return r;
}
