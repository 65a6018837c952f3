/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "diff/dispersion.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "diff/distribution.h"
#include "diff/likeness.h"

#define PREFETCH 16       /* cells ahead: of many nodes, few are in the cache */
#define LEAST_PHI .01     /* of what was measured: more regular things are not in law */
#define PRESUMED_DF 20    /* what is presumed may be wrong by a third */
#define GROWTH_CHANCE .01 /* that a variance which does not grow is taken for one that does */

/* --- what it comes to ------------------------------------------------------------------------- */

/* A side without ticks of a thing, or without replicates, says nothing of its scatter. */
static double degrees(const struct measure_side side[DIFF_SIDES], struct counts n)
{
	return (n.base ? side[DIFF_BASE].df : 0) + (n.current ? side[DIFF_CURRENT].df : 0);
}

static bool is_measured(const struct dispersion *x)
{
	return x->by == DIFF_BY_BLOCKS || x->by == DIFF_BY_RUNS;
}

double dispersion_degrees(const struct dispersion *x, struct counts n)
{
	return degrees(x->side, n);
}

/* What of a side's ticks makes its chi^2 larger by tau2: they are their own mean. */
static double counted_mean(const struct dispersion *x, enum diff_side side, double ticks)
{
	const struct measure_side *s = &x->side[side];

	return ticks * (s->df > 0 ? 1 - s->share : 0);
}

struct scatter dispersion_scatter(const struct dispersion *x, enum counted kind, size_t at,
				  struct counts n)
{
	double df = dispersion_degrees(x, n), unit = diff_unit(x->d, kind, at);
	double base = (double)n.base / unit, current = (double)n.current / unit;
	double mean = counted_mean(x, DIFF_BASE, base) + counted_mean(x, DIFF_CURRENT, current);

	if (df > 0)
		return (struct scatter){ mean / df, x->phi[kind][at] };
	mean = base * x->side[DIFF_BASE].share + current * x->side[DIFF_CURRENT].share;
	return (struct scatter){ mean, 0 };
}

double dispersion_growth(const struct dispersion *x, enum counted kind, size_t at)
{
	return x->growth[kind] ? (double)x->growth[kind][at] : 1;
}

/*
 * What blocks miss the mean by is what pairs of them miss it by, and what the two of each pair
 * differ by. Independent blocks have as much of both, for each degree of freedom. What is steadier
 * than the least that things scatter by is taken for that.
 */
static float growth_of(double fine, double coarse, double df, double coarse_df, double parts,
		       double least)
{
	double of_pairs, within;

	if (!(coarse_df > 0) || !(df > coarse_df))
		return 1;
	of_pairs = coarse / coarse_df;
	within = fmax((fine - coarse) / (df - coarse_df), least);
	if (fisher_beyond(of_pairs / within, coarse_df, df - coarse_df) > GROWTH_CHANCE)
		return 1;
	return (float)fmin(fmax(pow(of_pairs / fmax(fine / df, least), log2(parts)), 1), parts);
}

/* Blocks only: what is between two runs is no time. */
static int measure_growth(struct dispersion *x, const struct measure *how, const struct chi *fine)
{
	const struct diff *d = how->d;
	_cleanup_(chi_release) struct chi coarse = { 0 };
	double parts = fmax(fine->side[DIFF_BASE].df, fine->side[DIFF_CURRENT].df) + 1;
	int r = measure_chi(how, 2, NULL, &coarse);

	for (int k = 0; k < COUNTED_KINDS && !r; k++) {
		if (!fine->of[k])
			continue;
		x->growth[k] = calloc(diff_count_of(d, k) + 1, sizeof(*x->growth[k]));
		if (!x->growth[k])
			return -ENOMEM;
		for (size_t i = 0; i < diff_count_of(d, k); i++) {
			struct counts n = diff_counts(d, k, i);
			double unit = diff_unit(d, k, i);

			x->growth[k][i] = growth_of(fine->of[k][i] / unit, coarse.of[k][i] / unit,
						    degrees(fine->side, n), degrees(coarse.side, n),
						    parts, diff_least_scatter(d, k, i, x->block));
		}
	}
	return r;
}

static void divide_by_degrees(struct dispersion *x, const struct diff *d, enum counted kind)
{
	for (size_t i = 0; x->phi[kind] && i < diff_count_of(d, kind); i++) {
		double df = dispersion_degrees(x, diff_counts(d, kind, i));

		x->phi[kind][i] = df > 0 ? x->phi[kind][i] / diff_unit(d, kind, i) / df : 0;
	}
}

/*
 * The law is that of own ticks, which are of one thing only, with ticks enough to tell, of as many
 * degrees of freedom as there are. A total of several lies below it, or on it if they go together.
 */
static int find_law(struct dispersion *x, const struct diff *d, enum counted own,
		    enum counted totals)
{
	size_t count = diff_count_of(d, own), kept = 0;
	_cleanup_(freep) struct scatter *items = malloc((count + 1) * sizeof(*items));
	double most = 0;

	if (!items)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		struct counts n = diff_counts(d, own, i);
		double df = dispersion_degrees(x, n);

		if (!diff_is_enough(d, own, i, n) || df < most || !(df > 0))
			continue;
		if (df > most)
			kept = 0;
		most = df;
		items[kept++] = dispersion_scatter(x, own, i, n);
	}
	noise_fit(&x->noise[own], items, kept, most, d->unit[own] ? LEAST_PHI : 1);
	x->noise[totals] = x->noise[own];
	return 0;
}

/* --- all of it -------------------------------------------------------------------------------- */

static int find_laws(struct dispersion *x, const struct diff *d, const struct large *large,
		     bool of_nodes)
{
	int r = find_law(x, d, COUNTED_FUNCTION_SELF, COUNTED_FUNCTION);
	double likeness = 0;

	if (!r && of_nodes)
		r = find_law(x, d, COUNTED_NODE_SELF, COUNTED_NODE);
	if (!r)
		r = likeness_measure(x, d, large, &likeness);
	for (int k = 0; k < COUNTED_KINDS && !r; k++)
		noise_set_likeness(&x->noise[k], likeness);
	return r;
}

static int measure_all(struct dispersion *x, const struct diff *d, bool of_nodes)
{
	_cleanup_(measure_release) struct measure how;
	_cleanup_(large_release) struct large large = { 0 };
	_cleanup_(chi_release) struct chi chi = { 0 };
	int r = measure_init(&how, d, x->by, x->exposure, of_nodes);

	if (!r)
		r = large_find(&large, d);
	if (!r)
		r = measure_chi(&how, 1, &large, &chi);
	memcpy(x->side, chi.side, sizeof(x->side));
	if (!r && x->by == DIFF_BY_BLOCKS)
		r = measure_growth(x, &how, &chi);
	if (r < 0)
		return r;
	for (int k = 0; k < COUNTED_KINDS; k++) {
		x->phi[k] = take_ptr(chi.of[k]);
		divide_by_degrees(x, d, k);
	}
	return find_laws(x, d, &large, of_nodes);
}

/* Runs, where a side has several; else the blocks of those that have time, and that count. */
static enum diff_dispersion choose_replicates(const struct diff *d)
{
	bool has_blocks = false;

	if (diff_is_presumed(d))
		return DIFF_BY_PRESUMPTION;

	for (int s = 0; s < DIFF_SIDES; s++)
		if (d->side[s].runs > 1)
			return DIFF_BY_RUNS;
	for (size_t i = 0; i < d->input->cube.runs.len; i++)
		has_blocks = has_blocks || d->input->cube.runs.items[i].block_count > 1;
	return has_blocks ? DIFF_BY_BLOCKS : DIFF_BY_POISSON;
}

/* One law, as good as told by PRESUMED_DF runs more than one, for all: see noise_moderate(). */
static void presume(struct dispersion *x, double share)
{
	for (int s = 0; s < DIFF_SIDES; s++)
		x->side[s].share = 1;
	for (int k = 0; k < COUNTED_KINDS; k++)
		noise_presume(&x->noise[k], share, PRESUMED_DF);
}

int dispersion_measure(struct dispersion *x, const struct diff *d, enum exposure exposure,
		       double presumed, bool of_nodes)
{
	x->d = d;
	x->by = choose_replicates(d);
	x->block = x->by == DIFF_BY_BLOCKS ? replicates_block_ns(d) : 0;
	x->exposure = exposure;
	if (x->by == DIFF_BY_PRESUMPTION)
		presume(x, presumed);
	return is_measured(x) ? measure_all(x, d, of_nodes) : 0;
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
	int r = is_measured(x) ? replicates_find(&all, d, side, x->by, x->exposure, 1) : 0;

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
