/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "diff/distribution.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#define FRACTION_STEPS 300
#define DF_NORMAL 1e7 /* beyond, t and normal differ by less than rounding */

double normal_two_sided(double z)
{
	return erfc(fabs(z) / M_SQRT2);
}

/* The lower half: a rational start (Abramowitz and Stegun 26.2.23), then Halley's steps. */
static double normal_lower_quantile(double p)
{
	double t = sqrt(-2 * log(p)), x;

	x = -(t - (2.515517 + t * (0.802853 + t * 0.010328)) /
			  (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))));
	for (int i = 0; i < 3; i++) {
		double error = 0.5 * erfc(-x / M_SQRT2) - p;
		double step = error * sqrt(2 * M_PI) * exp(x * x / 2);

		x -= step / (1 + x * step / 2);
	}
	return x;
}

double normal_quantile(double p)
{
	return p < 0.5 ? normal_lower_quantile(p) : -normal_lower_quantile(1 - p);
}

/* Continued fraction of the incomplete beta function (NIST DLMF 8.17.22), by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
	double c = 1, d = 1 - (a + b) * x / (a + 1), f;

	d = 1 / (fabs(d) < DBL_MIN ? DBL_MIN : d);
	f = d;
	for (int m = 1; m < FRACTION_STEPS; m++) {
		double change = 1;

		for (int odd = 0; odd < 2; odd++) {
			double n = a + 2 * m;
			double term = odd ? -(a + m) * (a + b + m) * x / (n * (n + 1))
					  : m * (b - m) * x / ((n - 1) * n);

			d = 1 + term * d;
			c = 1 + term / c;
			d = 1 / (fabs(d) < DBL_MIN ? DBL_MIN : d);
			c = fabs(c) < DBL_MIN ? DBL_MIN : c;
			change = c * d;
			f *= change;
		}
		if (fabs(change - 1) < DBL_EPSILON)
			break;
	}
	return f;
}

static double log_gamma(double x)
{
	int sign;

	return lgamma_r(x, &sign); /* lgamma() writes a global */
}

/* Regularized: I_x(a, b). y = 1 - x, given apart for the sake of small ones. */
static double incomplete_beta(double a, double b, double x, double y)
{
	double front;

	if (x <= 0 || y <= 0)
		return x <= 0 ? 0 : 1;
	front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log(y));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, y) / b;
}

double student_two_sided(double t, double df)
{
	double whole = df + t * t;

	if (df > DF_NORMAL)
		return normal_two_sided(t);
	return incomplete_beta(df / 2, 0.5, df / whole, t * t / whole);
}

/* The two-sided chance falls with t: halving finds it. */
double student_quantile(double p, double df)
{
	double chance = p < 0.5 ? 2 * p : 2 * (1 - p), low = 0, high = 1;

	if (df > DF_NORMAL)
		return normal_quantile(p);
	while (student_two_sided(high, df) > chance && high < 1e300)
		high *= 2;
	while (high - low > high * 2 * DBL_EPSILON) {
		double middle = low + (high - low) / 2;

		if (middle <= low || middle >= high)
			break;
		if (student_two_sided(middle, df) > chance)
			low = middle;
		else
			high = middle;
	}
	return p < 0.5 ? -high : high;
}

static double table_step(struct student_table *table, size_t step)
{
	double df = step ? (double)STUDENT_STEPS / (double)step : INFINITY;

	if (!(table->t[step] > 0))
		table->t[step] = student_quantile(table->p, df);
	return table->t[step];
}

/* The logarithm of a quantile is nearly straight between two steps of 1 / df. */
double student_table_get(struct student_table *table, double df)
{
	double at = STUDENT_STEPS / fmax(df, 1), low;
	size_t step = (size_t)at;

	low = table_step(table, step);
	if (!(at > (double)step))
		return low;
	return low * pow(table_step(table, step + 1) / low, at - (double)step);
}

/* Recurrence up to 10, then the asymptotic series (NIST DLMF 5.11.2). */
double digamma(double x)
{
	double sum = 0, i;

	for (; x < 10; x++)
		sum -= 1 / x;
	i = 1 / (x * x);
	return sum + log(x) - 1 / (2 * x) -
	       i * (1. / 12 - i * (1. / 120 - i * (1. / 252 - i * (1. / 240 - i / 132))));
}

/* The same, differentiated. */
double trigamma(double x)
{
	double sum = 0, i;

	for (; x < 10; x++)
		sum += 1 / (x * x);
	i = 1 / (x * x);
	return sum + 1 / x + i / 2 +
	       i / x * (1. / 6 - i * (1. / 30 - i * (1. / 42 - i * (1. / 30 - i * 5 / 66))));
}

/* Wilson and Hilferty 1931, for the ratio of two: cube roots of chi^2 are nearly normal. */
double fisher_beyond(double f, double df, double below)
{
	double root = cbrt(f), own = 2 / (9 * df), other = 2 / (9 * below);
	double z = ((1 - other) * root - (1 - own)) / sqrt(other * root * root + own);

	return 0.5 * erfc(z / M_SQRT2);
}

static int compare_chances(const void *a, const void *b, void *chances)
{
	const double *p = chances;
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	if (p[x] != p[y])
		return p[x] < p[y] ? -1 : 1;
	return x < y ? -1 : x > y;
}

void false_discovery_rates(double *p, const double *weights, size_t *order, size_t count)
{
	double least = 1, sum = 0, below;

	for (size_t i = 0; i < count; i++) {
		order[i] = i;
		sum += weights[i];
	}
	if (count)
		qsort_r(order, count, sizeof(*order), compare_chances, p);
	below = sum;
	for (size_t i = count; i-- > 0;) {
		double q = below > 0 ? p[order[i]] * sum / below : 1;

		if (q < least)
			least = q;
		p[order[i]] = least;
		below -= weights[order[i]];
	}
}
