/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "diff/likeness.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"

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

int likeness_measure(const struct dispersion *x, const struct diff *d, const struct large *l,
		     double *out)
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
	*out = fmin(fmax(likeness, 0), 1);
	return 0;
}
