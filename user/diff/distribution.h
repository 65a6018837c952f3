/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DIFF_DISTRIBUTION_H
#define DIFF_DISTRIBUTION_H

#include <stddef.h>

/*
 * What the comparison needs of statistics, to 1e-10 or better in the ranges given. GSL has it all,
 * but its license (GPL-3 or newer) does not go with this program's.
 */

/* Chance that a standard normal variable is further from 0 than z. */
double normal_two_sided(double z);

/* x such that a chance of p (0 < p < 1) lies below it. */
double normal_quantile(double p);

/* The same of Student's t with df > 0 degrees of freedom; INFINITY: the normal distribution. */
double student_two_sided(double t, double df);
double student_quantile(double p, double df);

/* x > 0. */
double digamma(double x);
double trigamma(double x);

/* x > 0 such that trigamma(x) = y; y > 0. */
double trigamma_inverse(double y);

/*
 * How variances (or dispersions) of many things scatter about their true values, and those about
 * a common one: s0 is their prior, worth d0 degrees of freedom, INFINITY where they do not differ.
 * Smyth 2004, "Linear models and empirical Bayes methods", section 6.2.
 */
struct variance_prior {
	double s0;
	double d0;
};

/* items: count of them, >= 0, each of df > 0 degrees of freedom; reordered. None: 1, INFINITY. */
struct variance_prior variance_prior(double *items, size_t count, double df);

/* One of them, moved towards the prior as far as its own evidence is weak. */
double variance_moderated(struct variance_prior prior, double item, double df);

/*
 * Benjamini-Hochberg: each chance p becomes q, the share of false findings if all as small were
 * called findings. order: room for count numbers.
 */
void false_discovery_rates(double *p, size_t *order, size_t count);

#endif
