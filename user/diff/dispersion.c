/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "diff/dispersion.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "diff/distribution.h"

#define NONE UINT32_MAX
#define PREFETCH 16       /* cells ahead: of many nodes, few are in the cache */
#define GROWTH_CHANCE .01 /* that a variance which does not grow is taken for one that does */
#define LARGE_SHARE .001  /* of all ticks: functions that show whether all are off together */

/* What is asked of each node, packed for the sake of speed. */
struct path {
	uint32_t parent;
	uint32_t function;
	uint32_t outermost; /* its function, or NONE below another node of it */
};

/* Functions of some weight, and what each of their replicates misses the mean by. */
struct large {
	VEC(uint32_t) functions;
	double *off[DIFF_SIDES]; /* by function and replicate, in Poisson's standard deviations */
	size_t replicates[DIFF_SIDES];
};

static void large_release(struct large *l)
{
	vec_release(&l->functions);
	for (int s = 0; s < DIFF_SIDES; s++)
		free(l->off[s]);
}

/* chi^2 of each thing, both sides together. */
struct chi {
	double *of[COUNTED_KINDS]; /* NULL where not asked for */
	struct dispersion_side side[DIFF_SIDES];
};

static void chi_release(struct chi *chi)
{
	for (int k = 0; k < COUNTED_KINDS; k++)
		free(chi->of[k]);
}

/* Measures one side. */
struct meter {
	const struct diff *d;
	const struct dispersion *x;
	const struct path *paths; /* by node */
	int side;
	uint32_t times; /* blocks of so many times the usual length */
	bool of_nodes;
	struct large *large;            /* NULL: not asked for */
	uint64_t *ticks[COUNTED_KINDS]; /* of one replicate; zeros between them */
	double *squares[COUNTED_KINDS]; /* sums of ticks^2 / share; of nodes: NULL unless asked for
					 */
	struct dispersion_side found;
	int error;
};

static void meter_release(struct meter *m)
{
	for (int k = 0; k < COUNTED_KINDS; k++) {
		free(m->ticks[k]);
		free(m->squares[k]);
	}
}

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

static size_t count_of(const struct diff *d, enum counted kind)
{
	return kind <= COUNTED_NODE_SELF ? d->node_count : d->function_count;
}

/* --- one replicate ---------------------------------------------------------------------------- */

static double square(uint64_t ticks, const struct replicate *r)
{
	return (double)ticks * (double)ticks / r->share;
}

static void add_cells(struct meter *m, const struct replicate *r)
{
	const uint32_t *node_of = m->d->node_of[m->side];
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

	for (size_t i = m->d->node_count; i-- > 0;) {
		const struct path *path = &m->paths[i];
		uint64_t own = self[i], total = totals[i] + own;

		if (!total)
			continue;
		self[i] = totals[i] = 0;
		if (m->of_nodes)
			m->squares[COUNTED_NODE][i] += square(total, r);
		if (!i)
			break;
		totals[path->parent] += total;
		if (path->outermost != NONE)
			of_function[path->outermost] += total;
		if (!own)
			continue;
		if (m->of_nodes)
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
		const struct diff_function *f = &m->d->functions[function];
		double all = (double)(m->side == DIFF_BASE ? f->base_self : f->self);
		double ticks = (double)m->ticks[COUNTED_FUNCTION_SELF][function];

		l->off[m->side][i * l->replicates[m->side] + at] =
			(ticks - all * r->share) / sqrt(all * r->share);
	}
}

static void add_functions(struct meter *m, const struct replicate *r)
{
	for (int k = COUNTED_FUNCTION; k <= COUNTED_FUNCTION_SELF; k++)
		for (size_t i = 0; i < m->d->function_count; i++) {
			m->squares[k][i] += square(m->ticks[k][i], r);
			m->ticks[k][i] = 0;
		}
}

static int allocate(struct meter *m, size_t replicates)
{
	struct large *l = m->large;

	for (int k = 0; k < COUNTED_KINDS; k++) {
		size_t count = count_of(m->d, k) + 1;

		m->ticks[k] = calloc(count, sizeof(*m->ticks[k]));
		if (!m->ticks[k])
			return -ENOMEM;
		if (k <= COUNTED_NODE_SELF && !m->of_nodes)
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
	int r = replicates_find(&all, m->d, m->side, m->x->by, m->x->exposure, m->times);

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

/* --- both sides ------------------------------------------------------------------------------- */

/* Runs, where a side has several; else the blocks of those that have time. */
static enum diff_dispersion choose_replicates(const struct diff *d)
{
	bool has_blocks = false;

	for (int s = 0; s < DIFF_SIDES; s++)
		if (d->side[s].runs > 1)
			return DIFF_BY_RUNS;
	for (size_t i = 0; i < d->input->cube.runs.len; i++)
		has_blocks = has_blocks || d->input->cube.runs.items[i].block_count > 1;
	return has_blocks ? DIFF_BY_BLOCKS : DIFF_BY_POISSON;
}

static struct path *pack_paths(const struct diff *d)
{
	_cleanup_(freep) uint32_t *inside = calloc(d->function_count + 1, sizeof(*inside));
	struct path *paths = calloc(d->node_count, sizeof(*paths));

	if (!inside || !paths) {
		free(paths);
		return NULL;
	}
	for (uint32_t i = 1; i < d->node_count; i++) {
		const struct diff_node *n = &d->nodes[i];
		bool is_nested = i < inside[n->function];

		paths[i] = (struct path){
			.parent = n->parent,
			.function = n->function,
			.outermost = is_nested ? NONE : n->function,
		};
		if (!is_nested)
			inside[n->function] = n->end;
	}
	return paths;
}

/* sum (x - m)^2 / m = sum x^2 / m - n: the chi-square statistic of each thing. */
static void add_side(struct chi *chi, const struct meter *m, enum counted kind)
{
	for (size_t i = 0; i < count_of(m->d, kind); i++) {
		struct counts n = diff_counts(m->d, kind, i);
		double ticks = m->side == DIFF_BASE ? (double)n.base : (double)n.current;

		if (ticks > 0)
			chi->of[kind][i] += fmax(m->squares[kind][i] / ticks - ticks, 0);
	}
}

static int allocate_chi(struct chi *chi, const struct diff *d, bool of_nodes)
{
	for (int k = of_nodes ? 0 : COUNTED_FUNCTION; k < COUNTED_KINDS; k++) {
		chi->of[k] = calloc(count_of(d, k) + 1, sizeof(*chi->of[k]));
		if (!chi->of[k])
			return -ENOMEM;
	}
	return 0;
}

static int measure_sides(const struct dispersion *x, const struct diff *d, const struct path *paths,
			 uint32_t times, bool of_nodes, struct large *large, struct chi *chi)
{
	struct meter sides[DIFF_SIDES];
	int r = allocate_chi(chi, d, of_nodes);

	for (int s = 0; s < DIFF_SIDES; s++)
		sides[s] = (struct meter){ .d = d,
					   .x = x,
					   .paths = paths,
					   .side = s,
					   .times = times,
					   .of_nodes = of_nodes,
					   .large = large };
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

/* --- what it comes to ------------------------------------------------------------------------- */

/* A side without ticks of a thing, or without replicates, says nothing of its scatter. */
static double degrees(const struct dispersion_side side[DIFF_SIDES], struct counts n)
{
	return (n.base ? side[DIFF_BASE].df : 0) + (n.current ? side[DIFF_CURRENT].df : 0);
}

double dispersion_degrees(const struct dispersion *x, struct counts n)
{
	return degrees(x->side, n);
}

/* What of a side's ticks makes its chi^2 larger by tau2: they are their own mean. */
static double counted_mean(const struct dispersion *x, enum diff_side side, uint64_t ticks)
{
	const struct dispersion_side *s = &x->side[side];

	return (double)ticks * (s->df > 0 ? 1 - s->share : 0);
}

struct scatter dispersion_scatter(const struct dispersion *x, enum counted kind, size_t at,
				  struct counts n)
{
	double df = dispersion_degrees(x, n);
	double mean = counted_mean(x, DIFF_BASE, n.base) + counted_mean(x, DIFF_CURRENT, n.current);

	if (df > 0)
		return (struct scatter){ mean / df, x->phi[kind][at] };
	return (struct scatter){ (double)n.base * x->side[DIFF_BASE].share +
					 (double)n.current * x->side[DIFF_CURRENT].share,
				 0 };
}

double dispersion_growth(const struct dispersion *x, enum counted kind, size_t at)
{
	return x->growth[kind] ? (double)x->growth[kind][at] : 1;
}

/*
 * What blocks miss the mean by is what pairs of them miss it by, and what the two of each pair
 * differ by. Independent blocks have as much of both, for each degree of freedom. What is steadier
 * than chance, 1, is taken for chance.
 */
static float growth_of(double fine, double coarse, double df, double coarse_df, double parts)
{
	double of_pairs, within;

	if (!(coarse_df > 0) || !(df > coarse_df))
		return 1;
	of_pairs = coarse / coarse_df;
	within = fmax((fine - coarse) / (df - coarse_df), 1);
	if (fisher_beyond(of_pairs / within, coarse_df, df - coarse_df) > GROWTH_CHANCE)
		return 1;
	return (float)fmin(fmax(pow(of_pairs / fmax(fine / df, 1), log2(parts)), 1), parts);
}

/* Blocks only: what is between two runs is no time. */
static int measure_growth(struct dispersion *x, const struct diff *d, const struct path *paths,
			  bool of_nodes, const struct chi *fine)
{
	_cleanup_(chi_release) struct chi coarse = { 0 };
	double parts = fmax(fine->side[DIFF_BASE].df, fine->side[DIFF_CURRENT].df) + 1;
	int r = measure_sides(x, d, paths, 2, of_nodes, NULL, &coarse);

	for (int k = 0; k < COUNTED_KINDS && !r; k++) {
		if (!fine->of[k])
			continue;
		x->growth[k] = calloc(count_of(d, k) + 1, sizeof(*x->growth[k]));
		if (!x->growth[k])
			return -ENOMEM;
		for (size_t i = 0; i < count_of(d, k); i++) {
			struct counts n = diff_counts(d, k, i);

			x->growth[k][i] =
				growth_of(fine->of[k][i], coarse.of[k][i], degrees(fine->side, n),
					  degrees(coarse.side, n), parts);
		}
	}
	return r;
}

static void divide_by_degrees(struct dispersion *x, const struct diff *d, enum counted kind)
{
	for (size_t i = 0; x->phi[kind] && i < count_of(d, kind); i++) {
		double df = dispersion_degrees(x, diff_counts(d, kind, i));

		x->phi[kind][i] = df > 0 ? x->phi[kind][i] / df : 0;
	}
}

/*
 * The law is that of own ticks, which are of one thing only, with ticks enough to tell, of as many
 * degrees of freedom as there are. A total of several lies below it, or on it if they go together.
 */
static int find_law(struct dispersion *x, const struct diff *d, enum counted own,
		    enum counted totals)
{
	size_t count = count_of(d, own), kept = 0;
	_cleanup_(freep) struct scatter *items = malloc((count + 1) * sizeof(*items));
	double most = 0;

	if (!items)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		struct counts n = diff_counts(d, own, i);
		double df = dispersion_degrees(x, n);

		if (n.base + n.current < DIFF_TICKS_MIN || df < most || !(df > 0))
			continue;
		if (df > most)
			kept = 0;
		most = df;
		items[kept++] = dispersion_scatter(x, own, i, n);
	}
	noise_fit(&x->noise[own], items, kept, most);
	x->noise[totals] = x->noise[own];
	return 0;
}

/* --- do things come and go together? ---------------------------------------------------------- */

static int find_large(const struct diff *d, struct large *l)
{
	double all =
		(double)d->side[DIFF_BASE].ticks * d->scale + (double)d->side[DIFF_CURRENT].ticks;
	int r = 0;

	for (uint32_t i = 0; i < d->function_count && !r; i++) {
		struct counts n = diff_counts(d, COUNTED_FUNCTION_SELF, i);

		if (n.base && n.current && n.base + n.current >= DIFF_TICKS_MIN &&
		    (double)n.base * d->scale + (double)n.current > LARGE_SHARE * all)
			r = vec_push(&l->functions, i);
	}
	return r;
}

/* Sums over pairs of things, of the squares of their products and of what these would be if they
 * were one; both with each thing's product with itself. */
struct products {
	double own, own_squares; /* sums of |thing|^2 and of its square */
	double *of_pair;         /* by two replicates: sum of their products */
};

static double *off_at(const struct large *l, size_t thing, size_t replicate)
{
	size_t first = l->replicates[DIFF_BASE];

	if (replicate < first)
		return &l->off[DIFF_BASE][thing * first + replicate];
	return &l->off[DIFF_CURRENT][thing * l->replicates[DIFF_CURRENT] + replicate - first];
}

static void add_products(struct products *p, const struct large *l, size_t thing, double weight)
{
	size_t count = l->replicates[DIFF_BASE] + l->replicates[DIFF_CURRENT];
	double own = 0;

	for (size_t i = 0; i < count; i++) {
		double x = *off_at(l, thing, i);

		own += weight * x * x;
		for (size_t k = 0; k < count; k++)
			p->of_pair[i * count + k] += weight * x * *off_at(l, thing, k);
	}
	p->own += own;
	p->own_squares += own * own;
}

/*
 * The mean squared correlation of the large functions, each counted as far as tau2 makes it
 * scatter. The sum of the squared products of all things is that of the matrix of the replicates'
 * products, which is small. By chance a squared correlation is 1 / df.
 */
static int measure_likeness(struct dispersion *x, const struct diff *d, const struct large *l)
{
	size_t count = l->replicates[DIFF_BASE] + l->replicates[DIFF_CURRENT];
	_cleanup_(freep) double *of_pair = calloc(count * count + 1, sizeof(*of_pair));
	const struct noise *law = &x->noise[COUNTED_FUNCTION_SELF];
	double df = x->side[DIFF_BASE].df + x->side[DIFF_CURRENT].df, squares = 0, pairs;
	double likeness = 0;
	struct products p = { .of_pair = of_pair };

	if (!of_pair)
		return -ENOMEM;
	for (size_t i = 0; i < l->functions.len; i++) {
		uint32_t function = l->functions.items[i];
		struct counts n = diff_counts(d, COUNTED_FUNCTION_SELF, function);
		struct scatter s = dispersion_scatter(x, COUNTED_FUNCTION_SELF, function, n);
		double share = noise_share(law, s.mean);

		add_products(&p, l, i, share * share / (law->phi + law->tau2 * s.mean));
	}
	for (size_t i = 0; i < count * count; i++)
		squares += of_pair[i] * of_pair[i];
	pairs = p.own * p.own - p.own_squares;
	if (pairs > 0)
		likeness = df > 1 ? (df * (squares - p.own_squares) / pairs - 1) / (df - 1) : 1;
	for (int k = 0; k < COUNTED_KINDS; k++)
		noise_set_likeness(&x->noise[k], fmin(fmax(likeness, 0), 1));
	return 0;
}

/* --- all of it -------------------------------------------------------------------------------- */

static int find_laws(struct dispersion *x, const struct diff *d, const struct large *large,
		     bool of_nodes)
{
	int r = find_law(x, d, COUNTED_FUNCTION_SELF, COUNTED_FUNCTION);

	if (!r && of_nodes)
		r = find_law(x, d, COUNTED_NODE_SELF, COUNTED_NODE);
	return r ? r : measure_likeness(x, d, large);
}

static int measure_all(struct dispersion *x, const struct diff *d, bool of_nodes)
{
	_cleanup_(freep) struct path *paths = pack_paths(d);
	_cleanup_(large_release) struct large large = { 0 };
	_cleanup_(chi_release) struct chi chi = { 0 };
	int r = paths ? find_large(d, &large) : -ENOMEM;

	if (!r)
		r = measure_sides(x, d, paths, 1, of_nodes, &large, &chi);
	memcpy(x->side, chi.side, sizeof(x->side));
	if (!r && x->by == DIFF_BY_BLOCKS)
		r = measure_growth(x, d, paths, of_nodes, &chi);
	if (r < 0)
		return r;
	for (int k = 0; k < COUNTED_KINDS; k++) {
		x->phi[k] = take_ptr(chi.of[k]);
		divide_by_degrees(x, d, k);
	}
	return find_laws(x, d, &large, of_nodes);
}

int dispersion_measure(struct dispersion *x, const struct diff *d, enum exposure exposure,
		       bool of_nodes)
{
	x->by = choose_replicates(d);
	x->exposure = exposure;
	return x->by == DIFF_BY_POISSON ? 0 : measure_all(x, d, of_nodes);
}

void dispersion_release(struct dispersion *x)
{
	for (int k = 0; k < COUNTED_KINDS; k++) {
		free(x->phi[k]);
		free(x->growth[k]);
	}
}

/* --- a weighted sum --------------------------------------------------------------------------- */

static double weighted_ticks(const struct diff *d, const struct replicate *r, const double *weights)
{
	const uint32_t *node_of = d->node_of[r->run->side];
	double sum = 0;

	for (uint32_t b = 0; b < r->block_count; b++) {
		const struct cube_cell *cells = r->blocks[b].cells.items;
		size_t len = r->blocks[b].cells.len;

		for (size_t i = 0; i < len; i++) {
			uint32_t node = node_of[cells[i].stack];

			if (i + 2 * PREFETCH < len) {
				uint32_t next = node_of[cells[i + PREFETCH].stack];

				__builtin_prefetch(&node_of[cells[i + 2 * PREFETCH].stack]);
				__builtin_prefetch(&d->nodes[next].function);
			}
			if (node)
				sum += weights[d->nodes[node].function] * (double)cells[i].value;
		}
	}
	return sum;
}

int dispersion_of_sum(const struct dispersion *x, const struct diff *d, int side,
		      const double *weights, double *out)
{
	_cleanup_(replicates_release) struct replicates all = { 0 };
	double sum = 0, squares = 0, products = 0, exposures = 0;
	int r = x->by == DIFF_BY_POISSON ? 0
					 : replicates_find(&all, d, side, x->by, x->exposure, 1);

	*out = 0;
	if (r < 0 || all.len < 2)
		return r;
	for (size_t i = 0; i < all.len; i++) {
		double exposure = all.items[i].share;
		double ticks = weighted_ticks(d, &all.items[i], weights);

		sum += ticks;
		squares += ticks * ticks;
		products += ticks * exposure;
		exposures += exposure * exposure;
	}
	/* sum (x - exposure * sum)^2 */
	squares += sum * sum * exposures - 2 * sum * products;
	*out = fmax(squares, 0) * (double)all.len / ((double)all.len - 1);
	return 0;
}
