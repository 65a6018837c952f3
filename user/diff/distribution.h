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

/*
 * Quantiles at one p for many degrees of freedom, each found when first asked for, within 1e-5.
 * Starts as { .p = p }.
 */
#define STUDENT_STEPS 256
struct student_table {
	double p;
	double t[STUDENT_STEPS + 1]; /* by STUDENT_STEPS / df; 0: not yet known */
};

/* df >= 1. */
double student_table_get(struct student_table *table, double df);

/* x > 0. */
double digamma(double x);
double trigamma(double x);

/*
 * Chance that the ratio of two mean squares, of df over `below` degrees of freedom, is beyond f:
 * within a tenth of itself from 3 degrees on, for chances above 0.001.
 */
double fisher_beyond(double f, double df, double below);

/*
 * Benjamini-Hochberg: each chance p becomes q, the share of false findings if all as small were
 * called findings. weights, >= 0: for how many findings each counts (Benjamini and Hochberg 1997).
 * order: room for count numbers.
 */
void false_discovery_rates(double *p, const double *weights, size_t *order, size_t count);

#endif
