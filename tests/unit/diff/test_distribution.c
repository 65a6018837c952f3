/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/* Expected values: mpmath 1.3, 30 digits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "diff/distribution.h"

#define TOLERANCE 1e-10 /* relative: what distribution.h promises */

static void check(const char *what, double x, double y, double got, double want)
{
	if (!(fabs(got - want) <= TOLERANCE * fabs(want) + 1e-15))
		fail_msg("%s(%g, %g): %.17g, not %.17g", what, x, y, got, want);
}

static void test_student_two_sided(void **state)
{
	static const double cases[][3] = {
		{ 0.1, 1, 0.93654896513889286 },
		{ 1, 1, 0.5 },
		{ 2, 1, 0.29516723530086655 },
		{ 3, 2, 0.095465966266709132 },
		{ 12, 2.5, 0.0028362150300783238 },
		{ 2, 8, 0.080516237957262671 },
		{ 5, 8, 0.0010528257933665393 },
		{ 2, 78, 0.048981343093780944 },
		{ 10, 78, 1.2614840754214622e-15 },
		{ 1.5, 0.5, 0.50790179064810845 },
		{ 40, 3, 3.4380680789158528e-5 },
		{ 3, 1000, 0.0027667090442381925 },
		{ 1e-05, 5, 0.9999924078662037 },
		{ 3.3, 123456, 0.00096712204289916431 },
		{ 1.96, INFINITY, 0.049995790296440872 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		check("student_two_sided", cases[i][0], cases[i][1],
		      student_two_sided(cases[i][0], cases[i][1]), cases[i][2]);
		check("student_two_sided", -cases[i][0], cases[i][1],
		      student_two_sided(-cases[i][0], cases[i][1]), cases[i][2]);
	}
}

static void test_student_quantile(void **state)
{
	static const double cases[][3] = {
		{ 0.975, 1, 12.706204736174705 },   { 0.975, 2, 4.3026527297494639 },
		{ 0.975, 8, 2.3060041352041667 },   { 0.9995, 4.5, 7.580740499372559 },
		{ 0.6, 78, 0.25421296813061055 },   { 0.025, 30, -2.0422724563012383 },
		{ 0.99999, 3, 47.927728375933924 }, { 0.975, INFINITY, 1.9599639845400542 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check("student_quantile", cases[i][0], cases[i][1],
		      student_quantile(cases[i][0], cases[i][1]), cases[i][2]);
}

static void test_normal(void **state)
{
	static const double chances[][2] = {
		{ 0, 1 },
		{ 0.5, 0.61707507745197379 },
		{ 1.96, 0.049995790296440872 },
		{ 6, 1.9731752900753963e-9 },
		{ 30, 9.8134278542963741e-198 },
	};
	static const double quantiles[][2] = {
		{ 1e-12, -7.0344838253011319 }, { 1e-6, -4.7534243088228989 },
		{ 0.001, -3.0902323061678135 }, { 0.025, -1.9599639845400542 },
		{ 0.3, -0.52440051270804078 },  { 0.5, 0 },
		{ 0.9, 1.2815515655446005 },    { 0.9995, 3.2905267314918948 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(chances) / sizeof(chances[0]); i++)
		check("normal_two_sided", chances[i][0], 0, normal_two_sided(chances[i][0]),
		      chances[i][1]);
	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++)
		check("normal_quantile", quantiles[i][0], 0, normal_quantile(quantiles[i][0]),
		      quantiles[i][1]);
}

static void test_gamma_functions(void **state)
{
	static const double cases[][3] = {
		{ 0.1, -10.423754940411077, 101.43329915079276 },
		{ 0.5, -1.9635100260214235, 4.9348022005446793 },
		{ 1, -0.57721566490153286, 1.6449340668482264 },
		{ 2.5, 0.70315664064524319, 0.49035775610023486 },
		{ 9.9, 2.2411803166063814, 0.1062830416287406 },
		{ 39, 3.6506863483938175, 0.025972566037214763 },
		{ 1000, 6.9072551956488121, 0.0010005001666666333 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		double x = cases[i][0];

		check("digamma", x, 0, digamma(x), cases[i][1]);
		check("trigamma", x, 0, trigamma(x), cases[i][2]);
	}
}

/* By hand: 0.01 x 4 / 1, 0.02 x 4 / 2, 0.03 x 4 / 3, 0.5; a later one is never below an earlier. */
static void test_false_discovery_rates(void **state)
{
	static const double one[] = { 1, 1, 1, 1 };
	double p[] = { 0.03, 0.01, 0.5, 0.02 }, same[] = { 0.9, 0.04, 0.05 };
	const double want[] = { 0.04, 0.04, 0.5, 0.04 }, want_same[] = { 0.9, 0.075, 0.075 };
	size_t order[4];

	(void)state;
	false_discovery_rates(p, one, order, 4);
	false_discovery_rates(same, one, order, 3);
	for (size_t i = 0; i < 4; i++)
		check("q", (double)i, 0, p[i], want[i]);
	for (size_t i = 0; i < 3; i++)
		check("q", (double)i, 0, same[i], want_same[i]);
	false_discovery_rates(p, one, order, 0);
}

/*
 * Ten boxes, one in another, are one finding: 0.001 x 2.1 / 1.1 each, and not a reason to believe
 * what has a chance of 0.004. What counts for nothing is as sure as the next that counts.
 */
static void test_weights_of_findings(void **state)
{
	double p[13], weights[13], none[] = { 0.001, 0.004 }, no_weight[] = { 0, 1 };
	size_t order[13];

	(void)state;
	for (size_t i = 0; i < 11; i++) {
		p[i] = 0.001;
		weights[i] = i ? 0.01 : 1;
	}
	p[11] = 0.004;
	p[12] = 0.5;
	weights[11] = weights[12] = 1;
	false_discovery_rates(p, weights, order, 13);
	for (size_t i = 0; i < 11; i++)
		check("q", (double)i, 0, p[i], 0.001 * 3.1 / 1.1);
	check("q", 11, 0, p[11], 0.004 * 3.1 / 2.1);
	false_discovery_rates(none, no_weight, order, 2);
	check("q", 0, 0, none[0], 0.004);
	check("q", 1, 0, none[1], 0.004);
}

static void test_student_table(void **state)
{
	static const double degrees[] = { 1, 1.3, 2, 3.7, 8, 38, 1000, 1e9, INFINITY };
	static const double chances[] = { 0.975, 0.9999 };

	(void)state;
	for (size_t k = 0; k < sizeof(chances) / sizeof(chances[0]); k++) {
		struct student_table table = { .p = chances[k] };

		for (size_t i = 0; i < sizeof(degrees) / sizeof(degrees[0]); i++) {
			double want = student_quantile(chances[k], degrees[i]);
			double got = student_table_get(&table, degrees[i]);

			if (!(fabs(got - want) <= 3e-5 * want))
				fail_msg("p %g, df %g: %.9g, not %.9g", chances[k], degrees[i], got,
					 want);
		}
	}
}

/* Expected values: SciPy 1.17, f.sf(). */
static void test_fisher_beyond(void **state)
{
	static const double cases[][4] = {
		{ 2, 18, 20, 0.06792584 },   { 3.0771, 18, 20, 0.00852312 },
		{ 2.5, 4, 8, 0.12572609 },   { 7.0061, 4, 8, 0.0099999 },
		{ 2.4, 4, 100, 0.05498183 }, { 1.7, 38, 38, 0.05310531 },
		{ 5, 38, 4, 0.06319849 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		double got = fisher_beyond(cases[i][0], cases[i][1], cases[i][2]);

		if (fabs(got / cases[i][3] - 1) > 0.06)
			fail_msg("F %g (%g, %g): %g, not %g", cases[i][0], cases[i][1], cases[i][2],
				 got, cases[i][3]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_student_two_sided),
		cmocka_unit_test(test_student_quantile),
		cmocka_unit_test(test_normal),
		cmocka_unit_test(test_gamma_functions),
		cmocka_unit_test(test_false_discovery_rates),
		cmocka_unit_test(test_weights_of_findings),
		cmocka_unit_test(test_student_table),
		cmocka_unit_test(test_fisher_beyond),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
