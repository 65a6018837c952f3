/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "diff/contrast.h"

#include <math.h>

#define Z_POWER 1.2815515655446004 /* nine of ten standard normal variables are below it */
#define RATIO_MAX 1e6              /* that is looked for */
#define RATIO_PRECISION 1e-4

void contrast_prepare(struct contrast *c, const struct dispersion *x, enum counted kind)
{
	c->dispersion = x;
	c->kind = kind;
	c->quantiles = (struct student_table){ .p = 1 - c->alpha / 2 };
}

/* Where things come more regularly than by chance, smaller units come by chance. */
static void choose_unit(struct contrast *c)
{
	if (c->phi >= 1)
		return;
	c->unit *= c->phi;
	c->phi = 1;
}

void contrast_choose(struct contrast *c, size_t at, struct counts n)
{
	const struct dispersion *x = c->dispersion;
	struct scatter own = dispersion_scatter(x, c->kind, at, n);
	const struct noise *law = &x->noise[c->kind];
	double ratio = own.ratio, of_law = law->phi + law->tau2 * own.mean, more, least;

	c->unit = diff_unit(x->d, c->kind, at);
	c->phi = 1;
	c->tau2 = 0;
	c->df = x->by == DIFF_BY_POISSON ? INFINITY : dispersion_degrees(x, n);
	if (x->by != DIFF_BY_POISSON) {
		least = diff_least_scatter(x->d, c->kind, at, x->block);
		c->phi = least;
		if (!c->is_alone || !(c->df > 0))
			ratio = noise_moderate(law, own, &c->df);
		more = ratio / of_law * dispersion_growth(x, c->kind, at);
		if (more * of_law > least) {
			c->phi = fmax(more * law->phi, least);
			c->tau2 = more * law->tau2;
		}
		choose_unit(c);
	}
	c->t = student_table_get(&c->quantiles, c->df);
}

/* --- in units --------------------------------------------------------------------------------- */

static double base_of(const struct contrast *c, struct counts n)
{
	return (double)n.base / c->unit;
}

static double current_of(const struct contrast *c, struct counts n)
{
	return (double)n.current / c->unit;
}

double contrast_ratio(const struct contrast *c, struct counts n)
{
	if (!n.base && !n.current)
		return NAN;
	return (current_of(c, n) + 0.5) / ((base_of(c, n) + 0.5) * c->scale * c->centre);
}

/* Of the logarithm of the sides' ratio, what is off in the same proportion however many ticks. */
static double relative_variance(const struct contrast *c)
{
	const struct measure_side *side = c->dispersion->side;

	return c->tau2 * (side[DIFF_BASE].share + side[DIFF_CURRENT].share) +
	       c->centre_error * c->centre_error;
}

/*
 * Half the interval of the logarithm. Counts have theirs by the normal distribution; what is off in
 * proportion is measured against the mean of both sides, as in a test of their difference, so that
 * what is off by as much as there is has no bound: (x - 1) / ((x + 1) / 2) = 2 tanh(log(x) / 2).
 */
static double log_margin(const struct contrast *c, double base, double current)
{
	double counted = c->t * sqrt(c->phi * (1 / (current + 0.5) + 1 / (base + 0.5)));
	double relative = c->t * sqrt(relative_variance(c)) / 2;

	return relative < 1 ? hypot(counted, 2 * atanh(relative)) : INFINITY;
}

static double log_variance(const struct contrast *c, double base, double current)
{
	return c->phi * (1 / (current + 0.5) + 1 / (base + 0.5)) + relative_variance(c);
}

double contrast_error(const struct contrast *c, struct counts n)
{
	return sqrt(log_variance(c, base_of(c, n), current_of(c, n)));
}

/* Without a change both sides cost what they cost on average. */
static double difference_variance(const struct contrast *c, double base, double current)
{
	double unit = c->scale * c->centre, mean = (current + unit * base) / 2;

	return c->phi * (current + unit * unit * base) + mean * mean * relative_variance(c);
}

double contrast_difference(const struct contrast *c, struct counts n)
{
	return (double)n.current - (double)n.base * c->scale * c->centre;
}

double contrast_difference_error(const struct contrast *c, struct counts n)
{
	return c->unit * sqrt(difference_variance(c, base_of(c, n), current_of(c, n)));
}

double contrast_ticks_error(const struct contrast *c, double ticks)
{
	double count = ticks / c->unit;

	return c->unit * sqrt(c->phi * count + c->tau2 * count * count);
}

/* Variance of one side's ticks over their number. */
static double spread(const struct contrast *c, enum diff_side side, double ticks)
{
	return c->phi + c->tau2 * ticks * c->dispersion->side[side].share;
}

/* Where a side has no ticks: the least of the other, over the most that it may have had. */
static double bounded_share(const struct contrast *c, enum diff_side side, double n)
{
	double least = n - c->t * sqrt(spread(c, side, n) * n);
	double most = -log(c->alpha / 2) * c->phi;

	return least > 0 ? least / most : 0;
}

void contrast_interval(const struct contrast *c, struct counts n, double *low, double *high)
{
	double ratio = contrast_ratio(c, n),
	       margin = exp(log_margin(c, base_of(c, n), current_of(c, n)));
	double unit = c->scale * c->centre;

	*low = ratio / margin;
	*high = ratio * margin;
	if (!n.base && n.current) {
		*low = fmin(bounded_share(c, DIFF_CURRENT, current_of(c, n)) / unit, ratio);
		*high = INFINITY;
	} else if (n.base && !n.current) {
		*low = 0;
		*high = fmax(1 / (bounded_share(c, DIFF_BASE, base_of(c, n)) * unit), ratio);
	}
}

double contrast_chance(const struct contrast *c, struct counts n)
{
	double error = contrast_difference_error(c, n);

	return error > 0 ? student_two_sided(contrast_difference(c, n) / error, c->df) : 1;
}

double contrast_missed(const struct contrast *c, struct counts n)
{
	enum diff_side without = n.base ? DIFF_CURRENT : DIFF_BASE;
	double expected = current_of(c, n) / c->scale + base_of(c, n) * c->scale;

	if (n.base && n.current)
		return 1;
	return exp(-expected / spread(c, without, expected));
}

/* --- what would be found ---------------------------------------------------------------------- */

void demand_init(struct demand *demand, double chance)
{
	*demand = (struct demand){
		.above = 1,
		.by_chance.p = 1 - fmin(chance, 1) / 2,
	};
}

/* Standard errors that a change must be larger by than those that are asked for, to be found nine
 * times in ten: it is off by one, and those asked for are off as far as the error itself is. */
static double power_margin(double asked, double df)
{
	return Z_POWER * sqrt(1 + asked * asked / (2 * df));
}

static bool is_found(const struct contrast *c, double base, double ratio,
		     const struct demand *demand, double t_chance)
{
	double unit = c->scale * c->centre, current = ratio * base * unit;
	double error = sqrt(log_variance(c, base, current));
	double of_ticks = sqrt(difference_variance(c, base, current));
	double margin = demand->is_of_low ? log_margin(c, base, current) : 0;
	double cost = current - base * unit;

	return cost >= (t_chance + power_margin(t_chance, c->df)) * of_ticks &&
	       cost >= demand->ticks / c->unit + power_margin(0, c->df) * of_ticks &&
	       log(ratio / demand->above) >=
		       margin + power_margin(demand->is_of_low ? c->t : 0, c->df) * error;
}

double contrast_detectable(const struct contrast *c, uint64_t base, struct demand *demand)
{
	double t_chance = 0, low = 1, high = RATIO_MAX, count = (double)base / c->unit;

	if (demand->by_chance.p > 0.5)
		t_chance = student_table_get(&demand->by_chance, c->df);
	if (!base || !is_found(c, count, high, demand, t_chance))
		return INFINITY;
	while (high > low * (1 + RATIO_PRECISION)) {
		double middle = sqrt(low * high);

		if (is_found(c, count, middle, demand, t_chance))
			high = middle;
		else
			low = middle;
	}
	return high;
}
