/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "synthetic.h"

#include "diff/gate.h"

#define MAIN "main (/x.py:1)"
#define WORK "work (/x.py:2)"
#define HELP "help (/x.py:3)"
#define ELSE "else (/x.py:4)"
#define WRAP "wrap (/x.py:5)"
#define NONE (-1) /* verdict: below the floor */

static int verdict_of(const struct diff *d, const struct gate *g, const char *name)
{
	const struct diff_function *f = function_named(d, name);

	for (size_t i = 0; i < g->row_count; i++)
		if (&d->functions[g->rows[i].function] == f)
			return g->rows[i].verdict;
	return NONE;
}

static void test_verdicts(void **state)
{
	static const struct {
		const char *name, *base, *current;
		enum diff_normalize normalize;
		enum gate_result result;
		const char *function;
		int verdict;
	} cases[] = {
		{ "identical", MAIN ";" WORK " 40000", MAIN ";" WORK " 40000", DIFF_ABSOLUTE,
		  GATE_PASS, "work", GATE_FINE },
		{ "30 % slower", MAIN ";" WORK " 40000\n" MAIN ";" ELSE " 40000",
		  MAIN ";" WORK " 52000\n" MAIN ";" ELSE " 40000", DIFF_ABSOLUTE, GATE_REGRESSION,
		  "work", GATE_SLOWER },
		{ "as much faster elsewhere is no excuse",
		  MAIN ";" WORK " 40000\n" MAIN ";" ELSE " 40000",
		  MAIN ";" WORK " 52000\n" MAIN ";" ELSE " 28000", DIFF_ABSOLUTE, GATE_REGRESSION,
		  "work", GATE_SLOWER },
		{ "5 % slower", MAIN ";" WORK " 40000", MAIN ";" WORK " 42000", DIFF_ABSOLUTE,
		  GATE_PASS, "work", GATE_FINE },
		{ "exactly the threshold", MAIN ";" WORK " 40000", MAIN ";" WORK " 44000",
		  DIFF_ABSOLUTE, GATE_INCONCLUSIVE, "work", GATE_UNDETERMINED },
		{ "ten times, below the floor", MAIN ";" WORK " 90000\n" MAIN ";" ELSE " 20",
		  MAIN ";" WORK " 90000\n" MAIN ";" ELSE " 200", DIFF_ABSOLUTE, GATE_PASS, "else",
		  NONE },
		{ "new", MAIN ";" WORK " 40000", MAIN ";" WORK " 40000\n" MAIN ";" ELSE " 4000",
		  DIFF_ABSOLUTE, GATE_REGRESSION, "else", GATE_SLOWER },
		{ "twice as fast", MAIN ";" WORK " 40000", MAIN ";" WORK " 20000", DIFF_ABSOLUTE,
		  GATE_PASS, "work", GATE_FINE },
		{ "a decorator", MAIN ";" WORK " 40000", MAIN ";" WRAP ";" WORK " 40000",
		  DIFF_ABSOLUTE, GATE_PASS, "wrap", GATE_FINE },
		{ "code moved to a function of its own", MAIN ";" WORK " 40000",
		  MAIN ";" WORK " 20000\n" MAIN ";" WORK ";" HELP " 20000", DIFF_ABSOLUTE,
		  GATE_PASS, "help", GATE_MOVED },
		{ "moved, and slower as well", MAIN ";" WORK " 40000",
		  MAIN ";" WORK " 20000\n" MAIN ";" WORK ";" HELP " 60000", DIFF_ABSOLUTE,
		  GATE_REGRESSION, "help", GATE_SLOWER },
		{ "everything slower, in shares", MAIN ";" WORK " 40000\n" MAIN ";" ELSE " 40000",
		  MAIN ";" WORK " 80000\n" MAIN ";" ELSE " 80000", DIFF_SHARE, GATE_PASS, "work",
		  GATE_FINE },
		{ "everything slower", MAIN ";" WORK " 40000\n" MAIN ";" ELSE " 40000",
		  MAIN ";" WORK " 80000\n" MAIN ";" ELSE " 80000", DIFF_ABSOLUTE, GATE_REGRESSION,
		  "work", GATE_SLOWER },
		{ "next to no data", MAIN ";" WORK " 20", MAIN ";" WORK " 20", DIFF_ABSOLUTE,
		  GATE_INCONCLUSIVE, "work", GATE_UNDETERMINED },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct diff_input *in = input_of(cases[i].base, cases[i].current);
		struct diff *d = compare(in, cases[i].normalize, NULL);
		struct gate *g;

		assert_int_equal(gate_new(d, GATE_THRESHOLD, GATE_FLOOR, &g), 0);
		if (g->result != cases[i].result ||
		    verdict_of(d, g, cases[i].function) != cases[i].verdict)
			fail_msg("%s: %s, verdict %d, could %g", cases[i].name,
				 gate_result_names[g->result], verdict_of(d, g, cases[i].function),
				 g->could);
		assert_int_equal(!g->reason, g->result != GATE_INCONCLUSIVE);
		assert_int_equal(g->is_blind, cases[i].normalize == DIFF_SHARE);
		gate_free(g);
		diff_free(d);
		diff_input_free(in);
	}
}

/* Which functions are judged is the floor's business: a share of base's total. */
static void test_floor(void **state)
{
	static const char base[] = MAIN ";" WORK " 90000\n" MAIN ";" ELSE " 2000";
	static const char current[] = MAIN ";" WORK " 90000\n" MAIN ";" ELSE " 6000";
	static const struct {
		double floor;
		enum gate_result result;
		int verdict;
	} cases[] = {
		{ 0, GATE_REGRESSION, GATE_SLOWER },
		{ 0.001, GATE_REGRESSION, GATE_SLOWER },
		{ GATE_FLOOR, GATE_REGRESSION, GATE_SLOWER }, /* it costs 4.3 % more */
		{ 0.2, GATE_PASS, NONE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct diff_input *in = input_of(base, current);
		struct diff *d = compare(in, DIFF_ABSOLUTE, NULL);
		struct gate *g;

		assert_int_equal(gate_new(d, GATE_THRESHOLD, cases[i].floor, &g), 0);
		if (g->result != cases[i].result || verdict_of(d, g, "else") != cases[i].verdict ||
		    g->floor != cases[i].floor)
			fail_msg("floor %g: %s, verdict %d", cases[i].floor,
				 gate_result_names[g->result], verdict_of(d, g, "else"));
		gate_free(g);
		diff_free(d);
		diff_input_free(in);
	}
}

static void test_exit_codes(void **state)
{
	(void)state;
	assert_int_equal(gate_exit_codes[GATE_PASS], 0);
	assert_int_equal(gate_exit_codes[GATE_REGRESSION], 5);
	assert_int_equal(gate_exit_codes[GATE_INCONCLUSIVE], 6);
}

/* Nothing tells how far two text files would scatter, whatever they hold. */
static void test_text_files_are_inconclusive(void **state)
{
	static const char *const current[] = { MAIN " 40000", MAIN " 400000", MAIN " 10" };

	(void)state;
	for (size_t i = 0; i < sizeof(current) / sizeof(current[0]); i++) {
		struct diff_input *in;
		struct gate *g;
		struct diff *d;

		assert_int_equal(diff_input_new(false, &in), 0);
		add_text(in, add_run(in, DIFF_BASE, false), MAIN " 40000");
		add_text(in, add_run(in, DIFF_CURRENT, false), current[i]);
		d = compare(in, DIFF_ABSOLUTE, NULL);
		assert_int_equal(gate_new(d, GATE_THRESHOLD, GATE_FLOOR, &g), 0);
		assert_int_equal(g->result, GATE_INCONCLUSIVE);
		assert_non_null(strstr(g->reason, "noise unknown"));
		gate_free(g);
		diff_free(d);
		diff_input_free(in);
	}
}

static void test_empty_sides_are_inconclusive(void **state)
{
	static const char *const text[][2] = { { "", MAIN " 100" },
					       { MAIN " 100", "" },
					       { "", "" } };

	(void)state;
	for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++) {
		struct diff_input *in = input_of(text[i][0], text[i][1]);
		struct diff *d = compare(in, DIFF_AUTO, NULL);
		struct gate *g;

		assert_int_equal(gate_new(d, GATE_THRESHOLD, GATE_FLOOR, &g), 0);
		assert_int_equal(g->result, GATE_INCONCLUSIVE);
		assert_int_equal(g->row_count, 0);
		gate_free(g);
		diff_free(d);
		diff_input_free(in);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_floor),
		cmocka_unit_test(test_exit_codes),
		cmocka_unit_test(test_text_files_are_inconclusive),
		cmocka_unit_test(test_empty_sides_are_inconclusive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
