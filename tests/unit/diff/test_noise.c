/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "synthetic.h"

#include "diff/noise.h"

#define DF 8
#define HOT_MEAN 2500
#define SMALL_MEAN 50

/* chi^2 / df about the law, which the thing itself is off from by a factor. */
static double shown(struct dice *dice, double phi, double tau2, double mean, double factor)
{
	double sum = 0;

	for (int i = 0; i < DF; i++)
		sum += pow(dice_normal(dice), 2);
	return sum / DF * (phi + tau2 * mean * factor);
}

static size_t fill(struct scatter *items, struct dice *dice, size_t hot, size_t small, double phi,
		   double tau2)
{
	size_t count = 0;

	for (size_t i = 0; i < hot; i++)
		items[count++] = (struct scatter){ HOT_MEAN, shown(dice, phi, tau2, HOT_MEAN, 1) };
	for (size_t i = 0; i < small; i++)
		items[count++] =
			(struct scatter){ SMALL_MEAN, shown(dice, phi, tau2, SMALL_MEAN, 1) };
	return count;
}

/* However many small things there are, the few hot ones tell what all are off by. */
static void test_the_law_is_found(void **state)
{
	static const struct {
		const char *name;
		size_t hot, small;
		double phi, tau2;
	} cases[] = {
		{ "nothing but counting", 6, 66, 1, 0 },
		{ "5 % from run to run", 6, 66, 1, 0.0025 },
		{ "many small ones", 6, 600, 1, 0.0025 },
		{ "bursts of 20 ticks", 6, 66, 20, 0 },
		{ "both", 20, 66, 5, 0.01 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct dice dice = { 11 + i };
		double want = cases[i].phi + cases[i].tau2 * HOT_MEAN, hot = 0, small = 0;

		for (int k = 0; k < 50; k++) {
			struct scatter items[700];
			struct noise noise;
			size_t count = fill(items, &dice, cases[i].hot, cases[i].small,
					    cases[i].phi, cases[i].tau2);

			noise_fit(&noise, items, count, DF, 1);
			assert_true(noise.phi >= 1 && noise.tau2 >= 0);
			hot += log((noise.phi + noise.tau2 * HOT_MEAN) / want) / 50;
			small += log((noise.phi + noise.tau2 * SMALL_MEAN) /
				     (cases[i].phi + cases[i].tau2 * SMALL_MEAN)) /
				 50;
		}
		/* without tau2 what is seen of it can be too much only */
		if (fabs(hot) > 0.15 || fabs(small) > 0.08)
			fail_msg("%s: off by %g of the hot, %g of the small", cases[i].name, hot,
				 small);
	}
}

/* What is known of the hot is no more than they show, all others together. */
static void test_degrees_of_freedom(void **state)
{
	struct dice dice = { 5 };
	struct scatter items[400];
	struct noise noise;
	double hot = DF, small = DF, alike = DF;

	(void)state;
	noise_fit(&noise, items, fill(items, &dice, 6, 300, 1, 0.0025), DF, 1);
	noise_moderate(&noise, (struct scatter){ HOT_MEAN, noise.phi + noise.tau2 * HOT_MEAN },
		       &hot);
	noise_moderate(&noise, (struct scatter){ SMALL_MEAN, 1 }, &small);
	if (hot > 6.5 * DF || hot < 2 * DF || small < 100 * DF)
		fail_msg("%g degrees of the hot, %g of the small", hot, small);
	/* six that are off together are one */
	noise_set_likeness(&noise, 1);
	noise_moderate(&noise, (struct scatter){ HOT_MEAN, noise.phi + noise.tau2 * HOT_MEAN },
		       &alike);
	assert_true(alike >= DF && alike < 1.5 * DF);
}

static void test_moderation(void **state)
{
	struct dice dice = { 5 };
	struct scatter items[100];
	struct noise noise, none = NOISE_INIT;
	double law, df = DF, got;

	(void)state;
	noise_fit(&noise, items, fill(items, &dice, 20, 66, 1, 0.0025), DF, 1);
	law = noise.phi + noise.tau2 * HOT_MEAN;
	got = noise_moderate(&noise, (struct scatter){ HOT_MEAN, 2 * law }, &df);
	assert_true(got > law && got < 2 * law && df > DF);
	df = 0; /* nothing of its own: the law alone */
	got = noise_moderate(&noise, (struct scatter){ HOT_MEAN, 0 }, &df);
	assert_true(fabs(got / law - 1) < 1e-9 && df >= 1);
	df = DF; /* far outside: its own alone */
	got = noise_moderate(&noise, (struct scatter){ HOT_MEAN, 40 * law }, &df);
	assert_true(fabs(got / (40 * law) - 1) < 0.01 && df < 1.01 * DF);
	df = DF; /* nobody else to learn from */
	got = noise_moderate(&none, (struct scatter){ HOT_MEAN, 3 }, &df);
	assert_true(fabs(got - 3) < 0.01 && df < 1.01 * DF);
}

/*
 * A loop that is sampled in step with itself scatters less than by chance, each function by another
 * factor. That is no reason to think that any of them may scatter more; one that does is.
 */
static void test_steadier_than_chance(void **state)
{
	struct dice dice = { 3 };
	double steady = 0, mixed = 0;

	(void)state;
	for (int k = 0; k < 50; k++) {
		struct scatter items[24];
		struct noise noise;
		double df = DF;

		for (size_t i = 0; i < 20; i++) {
			double factor = exp(-1 - 2 * fabs(dice_normal(&dice)));

			items[i] = (struct scatter){ i < 8 ? HOT_MEAN : SMALL_MEAN,
						     shown(&dice, factor, 0, 0, 0) };
		}
		noise_fit(&noise, items, 20, DF, 1);
		assert_true(noise.phi == 1);
		noise_moderate(&noise, items[0], &df);
		steady += df / 50;
		for (size_t i = 20; i < 24; i++)
			items[i] = (struct scatter){ SMALL_MEAN, shown(&dice, 6, 0, 0, 0) };
		noise_fit(&noise, items, 24, DF, 1);
		df = DF;
		noise_moderate(&noise, (struct scatter){ SMALL_MEAN, 1 }, &df);
		mixed += df / 50;
	}
	if (steady < 4 * DF || mixed > 2.5 * DF)
		fail_msg("%g degrees, beside some that scatter more %g", steady, mixed);
}

/* Nothing, one thing, things that do not scatter at all: no NaN, nothing below the law of Poisson.
 */
static void test_little_to_learn_from(void **state)
{
	struct scatter items[3] = { { 10, 0 }, { 10, 0 }, { 1e12, 0 } };

	(void)state;
	for (size_t count = 0; count <= 3; count++) {
		struct noise noise;
		double df = DF, got;

		noise_fit(&noise, items, count, DF, 1);
		got = noise_moderate(&noise, (struct scatter){ 1e6, 4 }, &df);
		assert_true(noise.phi >= 1 && noise.tau2 >= 0 && isfinite(noise.tau2));
		assert_true(got > 0 && isfinite(got) && df >= 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_law_is_found),
		cmocka_unit_test(test_degrees_of_freedom),
		cmocka_unit_test(test_moderation),
		cmocka_unit_test(test_steadier_than_chance),
		cmocka_unit_test(test_little_to_learn_from),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
