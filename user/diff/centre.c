/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "diff/centre.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/parallel.h"
#include "diff/contrast.h"

#define ALPHA 0.05      /* any: only errors are asked for */
#define CENTRE_ERRORS 4 /* a centre nearer to 1 may be noise: the error itself is a rough one */

/* What one function says of the centre. */
struct vote {
	uint32_t function;
	double log_ratio;
	double error; /* standard */
};

struct votes {
	struct vote *items; /* a VEC */
	size_t len;
	size_t cap;
	double precision; /* sum of 1 / error^2 */
};

static void votes_release(struct votes *v)
{
	vec_release(v);
}

static int compare_votes(const void *a, const void *b)
{
	const struct vote *x = a, *y = b;

	return x->log_ratio < y->log_ratio ? -1 : x->log_ratio > y->log_ratio;
}

static int collect_votes(const struct diff *d, const struct dispersion *x, double scale,
			 struct votes *votes)
{
	struct contrast c = { .scale = scale, .centre = 1, .alpha = ALPHA };
	int r = 0;

	contrast_prepare(&c, x, COUNTED_FUNCTION_SELF);
	for (uint32_t i = 0; i < d->function_count && !r; i++) {
		struct counts n = diff_counts(d, COUNTED_FUNCTION_SELF, i);
		struct vote vote = { .function = i };

		if (!n.base || !n.current || !diff_is_enough(d, COUNTED_FUNCTION_SELF, i, n))
			continue;
		contrast_choose(&c, i, n);
		vote.log_ratio = log(contrast_ratio(&c, n));
		vote.error = contrast_error(&c, n);
		votes->precision += 1 / (vote.error * vote.error);
		r = vec_push(votes, vote);
	}
	if (votes->len)
		qsort(votes->items, votes->len, sizeof(*votes->items), compare_votes);
	return r;
}

/* Each vote with the weight 1 / error. */
static double median_vote(const struct votes *votes)
{
	double sum = 0, below = 0;
	size_t i;

	for (i = 0; i < votes->len; i++)
		sum += 1 / votes->items[i].error;
	for (i = 0; i + 1 < votes->len && below + 1 / votes->items[i].error < sum / 2; i++)
		below += 1 / votes->items[i].error;
	return votes->items[i].log_ratio;
}

/* Variance of the mean of the votes' log ratios, as one side's replicates have it. */
struct side_variance {
	const struct diff *d;
	const struct dispersion *x;
	const struct votes *votes;
	double variance;
	int error;
};

static int measure_variance(struct side_variance *v, int side)
{
	_cleanup_(freep) double *weights = calloc(v->d->function_count + 1, sizeof(*weights));
	const struct votes *votes = v->votes;

	if (!weights)
		return -ENOMEM;
	for (size_t i = 0; i < votes->len; i++) {
		const struct vote *vote = &votes->items[i];
		struct counts n = diff_counts(v->d, COUNTED_FUNCTION_SELF, vote->function);
		double ticks = side == DIFF_BASE ? (double)n.base : (double)n.current;
		double unit = diff_unit(v->d, COUNTED_FUNCTION_SELF, vote->function);

		weights[vote->function] =
			1 / (vote->error * vote->error * votes->precision * (ticks + unit / 2));
	}
	return dispersion_of_sum(v->x, v->d, side, weights, &v->variance);
}

static void measure_variance_of(void *sides, size_t side)
{
	struct side_variance *v = (struct side_variance *)sides + side;

	v->error = measure_variance(v, (int)side);
}

/*
 * Variance of the mean log ratio, weighted by precision: 1 / precision if functions came and went
 * by themselves. What is called together does so together.
 */
static int mean_variance(const struct diff *d, const struct dispersion *x,
			 const struct votes *votes, double *out)
{
	struct side_variance sides[DIFF_SIDES] = { { .d = d, .x = x, .votes = votes },
						   { .d = d, .x = x, .votes = votes } };

	parallel_run(DIFF_SIDES, measure_variance_of, sides);
	*out = fmax(sides[DIFF_BASE].variance + sides[DIFF_CURRENT].variance, 1 / votes->precision);
	return sides[DIFF_BASE].error ? sides[DIFF_BASE].error : sides[DIFF_CURRENT].error;
}

int centre_find(struct centre *out, const struct diff *d, const struct dispersion *x, double scale)
{
	_cleanup_(votes_release) struct votes votes = { 0 };
	double median, variance = 0;
	int r = collect_votes(d, x, scale, &votes);

	*out = CENTRE_NONE;
	if (r < 0 || !votes.len)
		return r;
	r = mean_variance(d, x, &votes, &variance);
	out->error = sqrt(M_PI / 2 * variance);
	median = median_vote(&votes);
	if (fabs(median) > CENTRE_ERRORS * out->error)
		out->ratio = exp(median);
	return r;
}
