/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DIFF_NOISE_H
#define DIFF_NOISE_H

#include <stddef.h>

/*
 * How far counts scatter: a law that all things of a comparison share, and how much it is to be
 * believed beside what a thing itself shows. A count of mean m has the variance
 *
 *	phi m + tau2 m^2
 *
 * phi is the ticks that come together: 1 by Poisson's law, which is the least of ticks, 20 where
 *each call lasts for 20; less where what is measured comes more regularly than by chance. tau2 is
 *the square of what the cost itself is off by from one replicate to the next, a share: next to
 *nothing of what has few ticks, nearly all of what has many. One number for both would have the hot
 *things as steady as the many small ones are.
 */

/* What one thing showed in its replicates. */
struct scatter {
	double mean;  /* ticks of a replicate, > 0 */
	double ratio; /* its variance over its mean, >= 0 */
};

struct noise {
	double phi, tau2;
	double of_phi, of_both, of_tau2; /* Fisher's information on the two */
	double phi_varies, tau_varies;   /* variances of their logarithms from thing to thing */
	/*
	 * Things that are off together tell less: how many independent ones those that tell tau2
	 * amount to is weight / alike. noise_fit() takes them for independent: alike is 1.
	 */
	double weight, alike;
};

/* Starts as NOISE_INIT: nothing is known, Poisson's law is presumed. */
#define NOISE_INIT                    \
	{                             \
		.phi = 1, .alike = 1, \
	}

/* Finds the law. items: count of them, each of df > 0 degrees of freedom; reordered. least: of phi.
 */
void noise_fit(struct noise *noise, struct scatter *items, size_t count, double df, double least);

/* Of counts in lumps that nobody has measured: off by a share, as if df degrees of freedom had told
 * so. */
void noise_presume(struct noise *noise, double share, double df);

/* likeness, 0 .. 1: the mean squared correlation of things, each as far as it tells tau2. */
void noise_set_likeness(struct noise *noise, double likeness);

/* The part of the variance at that mean which is tau2's. */
double noise_share(const struct noise *noise, double mean);

/*
 * The variance over the mean that a thing has by the law and by itself: its own, of df degrees of
 * freedom (0: it has none), moved towards the law's as far as the law is known better, which is as
 * many degrees more. What is far beyond the law has its own alone. *df becomes the sum, >= 1.
 */
double noise_moderate(const struct noise *noise, struct scatter thing, double *df);

#endif
