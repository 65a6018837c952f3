/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "diff/dispersion.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"

#define PHI_MIN 1.0
/* Of a run, up to twice as many less one: bursts reach over the ends of blocks, so that 40 would
 * show too little scatter (docs/findings.md). */
#define REPLICATES 20
#define NONE UINT32_MAX
#define PREFETCH 16 /* cells ahead: of many nodes, few are in the cache */

/* A block of a run, or a whole run. */
struct replicate {
	const struct diff_run *run;
	const struct diff_block *blocks;
	uint32_t block_count;
	double exposure;
	double weight; /* of squares: 1 / share of its side's exposure */
};

struct replicates {
	struct replicate *items; /* a VEC */
	size_t len;
	size_t cap;
};

static void replicates_release(struct replicates *r)
{
	vec_release(r);
}

/* What is asked of each node, packed for the sake of speed. */
struct path {
	uint32_t parent;
	uint32_t function;
	uint32_t outermost; /* its function, or NONE below another node of it */
};

/* Measures one side. */
struct meter {
	const struct diff *d;
	const struct dispersion *x;
	const struct path *paths; /* by node */
	int side;
	bool of_nodes;
	uint64_t *ticks[COUNTED_KINDS]; /* of one replicate; zeros between them */
	double *squares[COUNTED_KINDS]; /* sums of ticks^2 / exposure; of nodes: NULL unless asked
					   for */
	double df;                      /* replicates less one; 0 where there is but one */
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

/* --- replicates ------------------------------------------------------------------------------- */

/* From the start of the recording to the end of a block; the last one ends with the recording. */
static double block_end(const struct diff_run *run, uint32_t block)
{
	double end = ((double)block + 1) * (double)run->block_ns;
	double last = (double)run->facts.duration_ns;

	if (block + 1 == run->block_count && last > end - (double)run->block_ns && last < end)
		end = last;
	return end;
}

static double run_exposure(const struct diff_run *run, enum exposure exposure)
{
	switch (exposure) {
	case EXPOSURE_TIME:
		return (double)run->facts.duration_ns;
	case EXPOSURE_TICKS:
		return (double)run->ticks;
	case EXPOSURE_WORK:
		return run->facts.work;
	case EXPOSURE_EQUAL:
		break;
	}
	return 1;
}

static int add_run(struct replicates *s, const struct diff_run *run, enum exposure exposure)
{
	struct replicate r = {
		.run = run,
		.blocks = run->blocks,
		.block_count = run->block_count,
		.exposure = run_exposure(run, exposure),
	};

	return r.exposure > 0 ? vec_push(s, r) : 0;
}

/* Where the replicate ends that begins with a block: a short rest of the run goes with it. */
static uint32_t replicate_end(const struct diff_run *run, uint32_t first, uint32_t size)
{
	uint32_t end = first + size;
	double last;

	if (end >= run->block_count)
		return run->block_count;
	last = block_end(run, run->block_count - 1);
	return last - block_end(run, end - 1) < (double)(size * run->block_ns) / 2
		       ? run->block_count
		       : end;
}

static double blocks_exposure(const struct replicate *r, enum exposure exposure)
{
	uint32_t first = (uint32_t)(r->blocks - r->run->blocks), end = first + r->block_count;
	uint64_t ticks = 0;

	if (exposure != EXPOSURE_TICKS)
		return block_end(r->run, end - 1) - (double)first * (double)r->run->block_ns;
	for (uint32_t b = 0; b < r->block_count; b++)
		ticks += r->blocks[b].ticks;
	return (double)ticks;
}

static int add_blocks(struct replicates *s, const struct diff_run *run, enum exposure exposure)
{
	uint32_t size = run->block_count < 2 * REPLICATES ? 1 : run->block_count / REPLICATES;
	int r = 0;

	for (uint32_t b = 0, end; b < run->block_count && !r; b = end) {
		struct replicate one = { .run = run, .blocks = &run->blocks[b] };

		end = replicate_end(run, b, size);
		one.block_count = end - b;
		one.exposure = blocks_exposure(&one, exposure);
		if (one.exposure > 0)
			r = vec_push(s, one);
	}
	return r;
}

static int find_replicates(const struct diff *d, int side, const struct dispersion *x,
			   struct replicates *out)
{
	double sum = 0;
	int r = 0;

	for (size_t i = 0; i < d->input->runs.len && !r; i++) {
		const struct diff_run *run = d->input->runs.items[i];

		if ((int)run->side != side)
			continue;
		r = x->by == DIFF_BY_RUNS ? add_run(out, run, x->exposure)
					  : add_blocks(out, run, x->exposure);
	}
	for (size_t i = 0; i < out->len; i++)
		sum += out->items[i].exposure;
	for (size_t i = 0; i < out->len; i++)
		out->items[i].weight = sum / out->items[i].exposure;
	return r;
}

/* --- one replicate ---------------------------------------------------------------------------- */

static double square(uint64_t ticks, const struct replicate *r)
{
	return (double)ticks * (double)ticks * r->weight;
}

static void add_cells(struct meter *m, const struct replicate *r)
{
	const uint32_t *node_of = m->d->node_of[m->side];
	uint64_t *self = m->ticks[COUNTED_NODE_SELF];

	for (uint32_t b = 0; b < r->block_count; b++) {
		const struct diff_cell *cells = r->blocks[b].cells.items;
		size_t len = r->blocks[b].cells.len;

		for (size_t i = 0; i < len; i++) {
			if (i + 2 * PREFETCH < len) {
				__builtin_prefetch(&node_of[cells[i + 2 * PREFETCH].stack]);
				__builtin_prefetch(&self[node_of[cells[i + PREFETCH].stack]], 1);
			}
			self[node_of[cells[i].stack]] += cells[i].ticks;
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

static void add_functions(struct meter *m, const struct replicate *r)
{
	for (int k = COUNTED_FUNCTION; k <= COUNTED_FUNCTION_SELF; k++)
		for (size_t i = 0; i < m->d->function_count; i++) {
			m->squares[k][i] += square(m->ticks[k][i], r);
			m->ticks[k][i] = 0;
		}
}

static int allocate(struct meter *m)
{
	for (int k = 0; k < COUNTED_KINDS; k++) {
		size_t count = count_of(m->d, k) + 1;

		m->ticks[k] = calloc(count, sizeof(*m->ticks[k]));
		if (!m->ticks[k])
			return -ENOMEM;
		if (!m->x->phi[k])
			continue;
		m->squares[k] = calloc(count, sizeof(*m->squares[k]));
		if (!m->squares[k])
			return -ENOMEM;
	}
	return 0;
}

static int measure_side(struct meter *m)
{
	_cleanup_(replicates_release) struct replicates all = { 0 };
	int r = find_replicates(m->d, m->side, m->x, &all);

	if (r < 0 || all.len < 2)
		return r;
	r = allocate(m);
	if (r < 0)
		return r;
	m->df = (double)all.len - 1;
	for (size_t i = 0; i < all.len; i++) {
		add_cells(m, &all.items[i]);
		add_nodes(m, &all.items[i]);
		add_functions(m, &all.items[i]);
	}
	return 0;
}

static void measure_one(void *meters, size_t side)
{
	struct meter *m = (struct meter *)meters + side;

	m->error = measure_side(m);
}

/* --- all of them ------------------------------------------------------------------------------ */

/* Runs, where a side has several; else the blocks of those that have time. */
static enum diff_dispersion choose_replicates(const struct diff *d)
{
	bool has_blocks = false;

	for (int s = 0; s < DIFF_SIDES; s++)
		if (d->side[s].runs > 1)
			return DIFF_BY_RUNS;
	for (size_t i = 0; i < d->input->runs.len; i++)
		has_blocks = has_blocks || d->input->runs.items[i]->block_count > 1;
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

static int allocate_phi(struct dispersion *x, const struct diff *d, bool of_nodes)
{
	for (int k = of_nodes ? 0 : COUNTED_FUNCTION; k < COUNTED_KINDS; k++) {
		x->phi[k] = calloc(count_of(d, k) + 1, sizeof(*x->phi[k]));
		if (!x->phi[k])
			return -ENOMEM;
	}
	return 0;
}

/* sum (x - m)^2 / m = sum x^2 / m - n: the chi-square statistic of each thing, added to phi. */
static void add_side(struct dispersion *x, const struct meter *m, enum counted kind)
{
	for (size_t i = 0; i < count_of(m->d, kind); i++) {
		struct counts n = diff_counts(m->d, kind, i);
		double ticks = m->side == DIFF_BASE ? (double)n.base : (double)n.current;

		if (ticks > 0)
			x->phi[kind][i] += m->squares[kind][i] / ticks - ticks;
	}
}

static int measure_sides(struct dispersion *x, const struct diff *d, bool of_nodes)
{
	_cleanup_(freep) struct path *paths = pack_paths(d);
	struct meter sides[DIFF_SIDES];
	int r = 0;

	if (!paths)
		return -ENOMEM;
	for (int s = 0; s < DIFF_SIDES; s++)
		sides[s] = (struct meter){
			.d = d, .x = x, .paths = paths, .side = s, .of_nodes = of_nodes
		};
	parallel_run(DIFF_SIDES, measure_one, sides);
	for (int s = 0; s < DIFF_SIDES; s++) {
		r = r ? r : sides[s].error;
		x->df[s] = sides[s].df;
		for (int k = 0; k < COUNTED_KINDS && !r; k++)
			if (sides[s].squares[k])
				add_side(x, &sides[s], k);
		meter_release(&sides[s]);
	}
	return r;
}

/* A side without ticks of a thing, or without replicates, says nothing of its scatter. */
static double degrees(const struct dispersion *x, struct counts n)
{
	return (n.base ? x->df[DIFF_BASE] : 0) + (n.current ? x->df[DIFF_CURRENT] : 0);
}

/* The prior comes from things with ticks enough to tell, of as many degrees of freedom as there
 * are. */
static int finish_kind(struct dispersion *x, const struct diff *d, enum counted kind)
{
	size_t count = count_of(d, kind), kept = 0;
	_cleanup_(freep) double *values = malloc((count + 1) * sizeof(*values));
	double most = 0;

	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		struct counts n = diff_counts(d, kind, i);
		double df = degrees(x, n), phi = x->phi[kind][i];

		x->phi[kind][i] = df > 0 && phi > 0 ? phi / df : 0;
		if (n.base + n.current < DIFF_TICKS_MIN || df < most || !(df > 0))
			continue;
		if (df > most)
			kept = 0;
		most = df;
		values[kept++] = x->phi[kind][i];
	}
	x->prior[kind] = variance_prior(values, kept, most);
	return 0;
}

struct finishing {
	struct dispersion *x;
	const struct diff *d;
	int error[COUNTED_KINDS];
};

static void finish_one(void *finishing, size_t kind)
{
	struct finishing *f = finishing;

	if (f->x->phi[kind])
		f->error[kind] = finish_kind(f->x, f->d, kind);
}

int dispersion_measure(struct dispersion *x, const struct diff *d, enum exposure exposure,
		       bool of_nodes)
{
	struct finishing f = { .x = x, .d = d };
	int r = allocate_phi(x, d, of_nodes);

	x->by = choose_replicates(d);
	x->exposure = exposure;
	if (!r && x->by != DIFF_BY_POISSON)
		r = measure_sides(x, d, of_nodes);
	if (!r)
		parallel_run(COUNTED_KINDS, finish_one, &f);
	for (int k = 0; k < COUNTED_KINDS && !r; k++)
		r = f.error[k];
	return r;
}

void dispersion_release(struct dispersion *x)
{
	for (int k = 0; k < COUNTED_KINDS; k++)
		free(x->phi[k]);
}

/* --- a weighted sum --------------------------------------------------------------------------- */

static double weighted_ticks(const struct diff *d, const struct replicate *r, const double *weights)
{
	const uint32_t *node_of = d->node_of[r->run->side];
	double sum = 0;

	for (uint32_t b = 0; b < r->block_count; b++) {
		const struct diff_cell *cells = r->blocks[b].cells.items;
		size_t len = r->blocks[b].cells.len;

		for (size_t i = 0; i < len; i++) {
			uint32_t node = node_of[cells[i].stack];

			if (i + 2 * PREFETCH < len) {
				uint32_t next = node_of[cells[i + PREFETCH].stack];

				__builtin_prefetch(&node_of[cells[i + 2 * PREFETCH].stack]);
				__builtin_prefetch(&d->nodes[next].function);
			}
			if (node)
				sum += weights[d->nodes[node].function] * cells[i].ticks;
		}
	}
	return sum;
}

int dispersion_of_sum(const struct dispersion *x, const struct diff *d, int side,
		      const double *weights, double *out)
{
	_cleanup_(replicates_release) struct replicates all = { 0 };
	double sum = 0, squares = 0, products = 0, exposures = 0;
	int r = x->by == DIFF_BY_POISSON ? 0 : find_replicates(d, side, x, &all);

	*out = 0;
	if (r < 0 || all.len < 2)
		return r;
	for (size_t i = 0; i < all.len; i++) {
		double exposure = 1 / all.items[i].weight;
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

/* --- one thing -------------------------------------------------------------------------------- */

unsigned int contrast_sides(struct counts n)
{
	return (n.base ? 1 : 0) | (n.current ? 2 : 0);
}

void contrast_prepare(struct contrast *c, const struct dispersion *x, enum counted kind)
{
	c->dispersion = x;
	c->kind = kind;
	for (unsigned int sides = 0; sides < 4; sides++) {
		struct counts n = { sides & 1, sides & 2 };

		c->df_of[sides] = degrees(x, n) + x->prior[kind].d0;
		c->t_of[sides] = student_quantile(1 - c->alpha / 2, c->df_of[sides]);
	}
}

void contrast_choose(struct contrast *c, size_t at, struct counts n)
{
	const struct dispersion *x = c->dispersion;

	c->df = c->df_of[contrast_sides(n)];
	c->t = c->t_of[contrast_sides(n)];
	c->phi = PHI_MIN;
	if (x->by != DIFF_BY_POISSON)
		c->phi = fmax(PHI_MIN, variance_moderated(x->prior[c->kind], x->phi[c->kind][at],
							  degrees(x, n)));
}

double contrast_ratio(const struct contrast *c, struct counts n)
{
	if (!n.base && !n.current)
		return NAN;
	return ((double)n.current + 0.5) / (((double)n.base + 0.5) * c->scale * c->centre);
}

double contrast_error(const struct contrast *c, struct counts n)
{
	double counts = 1 / ((double)n.current + 0.5) + 1 / ((double)n.base + 0.5);

	return sqrt(c->phi * counts + c->centre_error * c->centre_error);
}

/* Where a side has no ticks: the most that it may have had, and the least of the other. */
static double bounded_share(const struct contrast *c, uint64_t ticks)
{
	double least = (double)ticks - c->t * sqrt(c->phi * (double)ticks);
	double most = -log(c->alpha / 2) * c->phi;

	return least > 0 ? least / most : 0;
}

void contrast_interval(const struct contrast *c, struct counts n, double *low, double *high)
{
	double ratio = contrast_ratio(c, n), margin = exp(c->t * contrast_error(c, n));
	double unit = c->scale * c->centre;

	*low = ratio / margin;
	*high = ratio * margin;
	if (!n.base && n.current) {
		*low = fmin(bounded_share(c, n.current) / unit, ratio);
		*high = INFINITY;
	} else if (n.base && !n.current) {
		*low = 0;
		*high = fmax(1 / (bounded_share(c, n.base) * unit), ratio);
	}
}

double contrast_chance(const struct contrast *c, struct counts n)
{
	double unit = c->scale * c->centre, base = (double)n.base, current = (double)n.current;
	double shift = unit * base * c->centre_error;
	double variance = c->phi * (current + unit * unit * base) + shift * shift;

	if (!(variance > 0))
		return 1;
	return student_two_sided((current - unit * base) / sqrt(variance), c->df);
}

double contrast_missed(const struct contrast *c, struct counts n)
{
	if (n.base && n.current)
		return 1;
	return exp(-((double)n.current / c->scale + (double)n.base * c->scale) / c->phi);
}
