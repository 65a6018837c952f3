/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Empirical Bayes after Smyth 2004 ("Linear models and empirical Bayes methods", section 6.2), with
 * a trend of the prior (limma-trend, edgeR) that is a law of two parameters, and with fewer degrees
 * of freedom for what lies outside of it (Phipson et al. 2016). docs/findings.md has what of it was
 * seen to matter.
 */
#include "diff/noise.h"

#include <math.h>
#include <stdlib.h>

#include "diff/distribution.h"

#define RATIO_FLOOR 1e-5 /* of the median: log(0) has no mean. limma does the same */
#define BINS_AN_OCTAVE 8 /* things of nearly the same mean are one point of the fit */
#define BIN_FIRST -80    /* of a mean of 0.001 */
#define BINS 512         /* up to one of 2^54 */
#define GRID 81          /* ratios tau2 / phi that are tried, then the best is narrowed down */
#define GRID_SPAN 1e6    /* either side of where both parts are equal for the largest mean */
#define NARROWINGS 40
#define GOLDEN 0.381966011250105
#define COUNT_MIN 1.5 /* things fewer than this do not show how they differ */
#define OUTSIDE_MIN 5 /* what one in five things reaches is no outlier */
#define STEP 0.05     /* of an integral from 0 to 20 standard deviations */
#define STEPS 400
#define LEAST 1e-6 /* of information: never divided by less */
#define KNOWN 1e12 /* information on what is presumed */

/* Things of about the same mean: how the logarithms of their ratios lie. */
struct bin {
	double count;
	double log_mean; /* sum, then mean */
	double log_ratio;
	double squares; /* sum of squares, then of those about their mean */
	double mean;
};

struct fit {
	struct bin bins[BINS + 1]; /* without empty ones; the last is the presumption */
	size_t count;
	double log_least; /* of phi */
};

static int compare_ratios(const void *a, const void *b)
{
	double x = ((const struct scatter *)a)->ratio, y = ((const struct scatter *)b)->ratio;

	return x < y ? -1 : x > y;
}

static size_t bin_of(double mean)
{
	double at = floor(BINS_AN_OCTAVE * log2(mean)) - BIN_FIRST;

	return at < 0 ? 0 : at < BINS ? (size_t)at : BINS - 1;
}

/* items in order of their ratios. log(chi^2 / df) has the mean that is taken off. */
static void fill_bins(struct fit *fit, const struct scatter *items, size_t count, double df)
{
	double floor = fmax(items[count / 2].ratio * RATIO_FLOOR, RATIO_FLOOR);
	double shift = log(df / 2) - digamma(df / 2);

	for (size_t i = 0; i < count; i++) {
		struct bin *bin = &fit->bins[bin_of(items[i].mean)];
		double log_ratio = log(fmax(items[i].ratio, floor)) + shift;

		bin->count++;
		bin->log_mean += log(items[i].mean);
		bin->log_ratio += log_ratio;
		bin->squares += log_ratio * log_ratio;
	}
}

/* Beside what was seen, one thing that scatters by Poisson's law: where all have the same mean
 * their scatter is held for tau2's. */
static void close_bins(struct fit *fit)
{
	for (size_t i = 0; i < BINS; i++) {
		struct bin b = fit->bins[i];

		if (!(b.count > 0))
			continue;
		b.log_ratio /= b.count;
		b.squares = fmax(b.squares - b.count * b.log_ratio * b.log_ratio, 0);
		b.mean = exp(b.log_mean / b.count);
		fit->bins[fit->count++] = b;
	}
	fit->bins[fit->count++] = (struct bin){ .count = 1 };
}

/* Sum of squares about phi (1 + slope mean), where phi is at its best, but not below the least. */
static double miss(const struct fit *fit, double slope, double *log_phi)
{
	double sum = 0, count = 0, squares = 0;

	for (size_t i = 0; i < fit->count; i++) {
		const struct bin *b = &fit->bins[i];

		sum += b->count * (b->log_ratio - log1p(slope * b->mean));
		count += b->count;
	}
	*log_phi = fmax(sum / count, fit->log_least);
	for (size_t i = 0; i < fit->count; i++) {
		const struct bin *b = &fit->bins[i];
		double off = b->log_ratio - log1p(slope * b->mean) - *log_phi;

		squares += b->count * off * off;
	}
	return squares;
}

static double grid_point(double largest, int i)
{
	double span = log(GRID_SPAN);

	return i < 0 ? 0 : exp(-span + 2 * span * i / (GRID - 1)) / largest;
}

/* tau2 / phi: the best of the grid, 0 among them, then by golden sections about it. */
static double best_slope(const struct fit *fit)
{
	double largest = fit->bins[fit->count > 1 ? fit->count - 2 : 0].mean, log_phi;
	double least, low, high;
	int best = -1;

	if (!(largest > 0))
		return 0;
	least = miss(fit, 0, &log_phi);
	for (int i = 0; i < GRID; i++) {
		double found = miss(fit, grid_point(largest, i), &log_phi);

		if (found < least) {
			least = found;
			best = i;
		}
	}
	if (best < 0)
		return 0;
	low = log(grid_point(largest, best > 0 ? best - 1 : 0));
	high = log(grid_point(largest, best < GRID - 1 ? best + 1 : best));
	for (int i = 0; i < NARROWINGS; i++) {
		double x = low + (high - low) * GOLDEN, y = high - (high - low) * GOLDEN;

		if (miss(fit, exp(x), &log_phi) < miss(fit, exp(y), &log_phi))
			high = y;
		else
			low = x;
	}
	return exp((low + high) / 2);
}

static double ratio_at(const struct noise *noise, double mean)
{
	return noise->phi + noise->tau2 * mean;
}

double noise_share(const struct noise *noise, double mean)
{
	return noise->tau2 * mean / ratio_at(noise, mean);
}

/* What a bin says of tau2, or of phi, beside the others. */
static double bin_weight(const struct noise *noise, const struct bin *bin, int of_tau)
{
	double share = noise_share(noise, bin->mean);

	return of_tau ? share * share : (1 - share) * (1 - share);
}

/* Variance of the logarithms beyond that of chi^2, by moments. */
static double variation(const struct fit *fit, const struct noise *noise, double df, int of_tau)
{
	double sum = 0, squares = 0, mean = 0, scatter = 0, count;
	size_t seen = fit->count - 1;

	for (size_t i = 0; i < seen; i++) {
		const struct bin *b = &fit->bins[i];
		double weight = bin_weight(noise, b, of_tau);

		sum += b->count * weight;
		squares += b->count * weight * weight;
		mean += b->count * weight * (b->log_ratio - log(ratio_at(noise, b->mean)));
	}
	count = squares > 0 ? sum * sum / squares : 0;
	if (count < COUNT_MIN)
		return 0;
	for (size_t i = 0; i < seen; i++) {
		const struct bin *b = &fit->bins[i];
		double off = b->log_ratio - log(ratio_at(noise, b->mean)) - mean / sum;

		scatter += bin_weight(noise, b, of_tau) * (b->squares + b->count * off * off);
	}
	return fmax(scatter / sum * count / (count - 1) - trigamma(df / 2), 0);
}

/*
 * The mean square of log(chi^2 / df) about its mean, of what lies above. By the trapezoidal rule,
 * which is exact enough for what is smooth and vanishes.
 */
static double square_above(double df)
{
	double half = df / 2, mean = digamma(half) - log(half), mass = 0, sum = 0;
	double step = STEP * sqrt(trigamma(half));

	for (int i = 0; i <= STEPS; i++) {
		double off = step * i, y = mean + off;
		double density = exp(half * (y - mean - exp(y) + exp(mean))); /* 1 at the mean */

		mass += i ? density : density / 2;
		sum += density * off * off;
	}
	return sum / mass;
}

/*
 * phi_varies where phi is at its least. What scatters less than by Poisson's law, as what is
 * sampled in step with its own loop does, is held for as much as that law says: how much less says
 * nothing of how far things may lie above. Twice what lies above, beyond that of chi^2.
 */
static double variation_above(const struct noise *noise, const struct scatter *items, size_t count,
			      double df)
{
	double shift = log(df / 2) - digamma(df / 2), of_chance = square_above(df);
	double sum = 0, beyond = 0;

	for (size_t i = 0; i < count; i++) {
		double share = 1 - noise_share(noise, items[i].mean), weight = share * share;
		double off = log(items[i].ratio / ratio_at(noise, items[i].mean)) + shift;

		sum += weight;
		beyond += off > 0 ? weight * (off * off - of_chance) : 0;
	}
	return sum >= COUNT_MIN ? fmax(2 * beyond / sum, 0) : 0;
}

static void inform(const struct fit *fit, struct noise *noise, double df)
{
	double sum = 0, squares = 0;

	for (size_t i = 0; i < fit->count; i++) {
		const struct bin *b = &fit->bins[i];
		double ratio = ratio_at(noise, b->mean);
		double of_one = b->count / (trigamma(df / 2) * ratio * ratio);
		double weight = bin_weight(noise, b, 1);

		noise->of_phi += of_one;
		noise->of_both += of_one * b->mean;
		noise->of_tau2 += of_one * b->mean * b->mean;
		sum += b->count * weight;
		squares += b->count * weight * weight;
	}
	noise->weight = squares > 0 ? sum * sum / squares : 0;
}

void noise_fit(struct noise *noise, struct scatter *items, size_t count, double df, double least)
{
	struct fit fit = { .log_least = log(least) };
	double slope, log_phi;

	*noise = (struct noise)NOISE_INIT;
	if (!count)
		return;
	qsort(items, count, sizeof(*items), compare_ratios);
	fill_bins(&fit, items, count, df);
	close_bins(&fit);
	slope = best_slope(&fit);
	miss(&fit, slope, &log_phi);
	noise->phi = exp(log_phi);
	noise->tau2 = noise->phi * slope;
	noise->phi_varies = log_phi > fit.log_least ? variation(&fit, noise, df, 0)
						    : variation_above(noise, items, count, df);
	noise->tau_varies = variation(&fit, noise, df, 1);
	inform(&fit, noise, df);
}

/* The inverse of degrees_of(). */
static double variance_of(double df)
{
	return 2 * (1 + df) / (df * df);
}

void noise_presume(struct noise *noise, double share, double df)
{
	*noise = (struct noise)NOISE_INIT;
	noise->tau2 = share * share;
	noise->phi_varies = noise->tau_varies = variance_of(df);
	noise->of_phi = noise->of_tau2 = KNOWN;
}

void noise_set_likeness(struct noise *noise, double likeness)
{
	noise->alike = 1 + fmax(noise->weight - 1, 0) * likeness;
}

/* Degrees of freedom of a chi^2 whose logarithm has that variance; of trigamma's first terms. */
static double degrees_of(double variance)
{
	return (1 + sqrt(1 + 2 * variance)) / variance;
}

/* Of the law's ratio at that mean, in degrees of freedom, but for what the thing itself, of df,
 * told of it. Things that are off together tell less. */
static double degrees_known(const struct noise *noise, double mean, double df)
{
	double ratio = ratio_at(noise, mean), share = noise_share(noise, mean);
	double determinant = noise->of_phi * noise->of_tau2 - noise->of_both * noise->of_both;
	double variance =
		(noise->of_tau2 - 2 * mean * noise->of_both + mean * mean * noise->of_phi) /
		(ratio * ratio);
	double known = determinant > 0 ? determinant / (fmax(variance, LEAST) * noise->alike) : 0;
	double own = df > 0 ? 1 / trigamma(df / 2) : 0;

	return degrees_of(1 / fmax(known - own, LEAST) + share * share * noise->tau_varies +
			  (1 - share) * (1 - share) * noise->phi_varies);
}

double noise_moderate(const struct noise *noise, struct scatter thing, double *df)
{
	double ratio = ratio_at(noise, thing.mean), own = *df;
	double known = degrees_known(noise, thing.mean, own), moderated;

	if (own > 0 && thing.ratio > ratio)
		known *= fmin(1, OUTSIDE_MIN * fisher_beyond(thing.ratio / ratio, own, known));
	moderated = (known * ratio + own * thing.ratio) / (known + own);
	*df = fmax(known + own, 1);
	return moderated;
}
