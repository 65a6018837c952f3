/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "synthetic.h"

#include "diff/gate.h"

static const struct gate_options options = { .threshold = 0.10, .floor = 0.005 };

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

		assert_int_equal(gate_new(d, &options, &g), 0);
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
/* As new as can be, and no code. */
static void test_time_without_samples_passes(void **state)
{
	struct diff_input *in =
		input_of(MAIN ";" WORK " 40000", MAIN ";" WORK " 40000\n<not sampled> 900");
	struct diff *d = compare(in, DIFF_ABSOLUTE, NULL);
	struct gate *g;

	(void)state;
	assert_int_equal(gate_new(d, &options, &g), 0);
	assert_int_equal(g->result, GATE_PASS);
	assert_int_equal(verdict_of(d, g, "<not sampled>"), NONE);
	gate_free(g);
	diff_free(d);
	diff_input_free(in);
}

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
		{ DIFF_FLOOR, GATE_REGRESSION, GATE_SLOWER }, /* it costs 4.3 % more */
		{ 0.2, GATE_PASS, NONE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct diff_input *in = input_of(base, current);
		struct diff *d = compare(in, DIFF_ABSOLUTE, NULL);
		struct gate_options o = options;
		struct gate *g;

		o.floor = cases[i].floor;
		assert_int_equal(gate_new(d, &o, &g), 0);
		if (g->result != cases[i].result || verdict_of(d, g, "else") != cases[i].verdict ||
		    g->floor != cases[i].floor)
			fail_msg("floor %g: %s, verdict %d", cases[i].floor,
				 gate_result_names[g->result], verdict_of(d, g, "else"));
		gate_free(g);
		diff_free(d);
		diff_input_free(in);
	}
}

/* Texts are of one run a side, unless so many are made of each line. */
struct sides {
	const char *base, *current;
	unsigned int runs;
};

static struct diff_input *several_runs(const struct sides *sides)
{
	struct diff_input *in;

	assert_int_equal(diff_input_new(false, &in), 0);
	for (unsigned int i = 0; i < (sides->runs ? sides->runs : 1); i++) {
		add_text(in, add_run(in, DIFF_BASE, true), sides->base);
		add_text(in, add_run(in, DIFF_CURRENT, true), sides->current);
	}
	for (size_t i = 0; i < in->cube.runs.len; i++) {
		diff_run_recording(in, &in->cube.runs.items[i])->duration_ns = 40000000000;
		diff_run_recording(in, &in->cube.runs.items[i])->work = 100;
	}
	return in;
}

/* One line for each function that the gate fails, in order of their names. */
static void failed_names(const struct diff *d, const struct gate *g, char *out, size_t size)
{
	const char *names[16];
	size_t count = 0, len = 0;

	for (size_t i = 0; i < g->row_count; i++)
		if (g->rows[i].verdict == GATE_SLOWER && count < 16)
			names[count++] = strtab_get(d->input->profile->strings,
						    d->functions[g->rows[i].function].name);
	out[0] = '\0';
	for (size_t i = 0; i < count; i++)
		for (size_t k = i + 1; k < count; k++)
			if (strcmp(names[i], names[k]) > 0) {
				const char *swapped = names[i];

				names[i] = names[k];
				names[k] = swapped;
			}
	for (size_t i = 0; i < count; i++)
		len += (size_t)snprintf(out + len, size - len, "%s%s", i ? " " : "", names[i]);
}

#define F(name, ticks) MAIN ";" name " (/x.py:9) " #ticks "\n"
#define OTHERS        \
	F("f1", 7500) \
	F("f2", 7500) F("f4", 7500) F("f5", 7500) F("f6", 7500) F("f7", 7500) F("f8", 7500)

/* One that gets faster makes all others a larger share, and slows none of them down. */
static void test_shares_are_relative_to_the_centre(void **state)
{
	static const struct {
		const char *name;
		struct sides sides;
		const char *failed[DIFF_WORK + 1];
	} cases[] = {
		{ "the largest twice as fast",
		  { F("f0", 40000) OTHERS F("f3", 7500), F("f0", 20000) OTHERS F("f3", 7500), 1 },
		  { NULL, "", "", "", "" } },
		{ "and one of the others slower",
		  { F("f0", 40000) OTHERS F("f3", 7500), F("f0", 20000) OTHERS F("f3", 10500), 1 },
		  { NULL, "f3", "f3", "f3", "f3" } },
		{ "three runs a side",
		  { F("f0", 40000) OTHERS F("f3", 7500), F("f0", 20000) OTHERS F("f3", 10500), 3 },
		  { NULL, "f3", "f3", "f3", "f3" } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (enum diff_normalize n = DIFF_ABSOLUTE; n <= DIFF_WORK; n++) {
			struct diff_input *in = several_runs(&cases[i].sides);
			struct diff *d = compare(in, n, NULL);
			struct gate *g;
			char failed[256];

			assert_int_equal(gate_new(d, &options, &g), 0);
			failed_names(d, g, failed, sizeof(failed));
			if (strcmp(failed, cases[i].failed[n]) != 0)
				fail_msg("%s, %s: '%s' fail, not '%s'", cases[i].name,
					 diff_normalize_names[n], failed, cases[i].failed[n]);
			assert_int_equal(g->result, *failed ? GATE_REGRESSION : GATE_PASS);
			gate_free(g);
			diff_free(d);
			diff_input_free(in);
		}
}

/* What a caller released is spent once: new calls first, then the largest rise. */
static void test_moved_cost_is_a_budget(void **state)
{
	static const struct {
		const char *name;
		struct sides sides;
		enum diff_normalize normalize;
		const char *failed;
		const char *moved; /* a function that is excused; NULL: none */
	} cases[] = {
		{ "more is new than is gone, and another is slower",
		  { F("gone", 14000) F("slow30", 30000) F("rest", 56000),
		    F("added", 24000) F("slow30", 39000) F("rest", 56000), 1 },
		  DIFF_SHARE,
		  "added main slow30",
		  NULL },
		{ "the same, by run",
		  { F("gone", 14000) F("slow30", 30000) F("rest", 56000),
		    F("added", 24000) F("slow30", 39000) F("rest", 56000), 1 },
		  DIFF_ABSOLUTE,
		  "added main slow30",
		  NULL },
		{ "as much is new as is gone",
		  { F("gone", 14000) F("slow30", 30000) F("rest", 56000),
		    F("added", 14000) F("slow30", 39000) F("rest", 56000), 1 },
		  DIFF_ABSOLUTE,
		  "slow30",
		  "added" },
		{ "two are new for one that is gone",
		  { F("gone", 20000) F("rest", 56000),
		    F("added", 14000) F("more", 10000) F("rest", 56000), 1 },
		  DIFF_ABSOLUTE,
		  "more",
		  "added" },
		{ "new, with what it calls",
		  { F("gone", 20000) F("rest", 56000),
		    MAIN ";added (/x.py:9);inner (/x.py:9) 20000\n" F("rest", 56000), 1 },
		  DIFF_ABSOLUTE,
		  "",
		  "inner" },
		{ "own code took it over, and something is new as well",
		  { F("gone", 14000) F("rest", 56000),
		    MAIN " 14000\n" F("added", 4000) F("rest", 56000), 1 },
		  DIFF_ABSOLUTE,
		  "added",
		  NULL },
		{ "another call that got faster pays for nothing",
		  { F("faster", 28000) F("slower", 30000) F("rest", 42000),
		    F("faster", 14000) F("slower", 42000) F("rest", 42000), 1 },
		  DIFF_SHARE,
		  "slower",
		  NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct diff_input *in = several_runs(&cases[i].sides);
		struct diff *d = compare(in, cases[i].normalize, NULL);
		char failed[256];
		struct gate *g;

		assert_int_equal(gate_new(d, &options, &g), 0);
		failed_names(d, g, failed, sizeof(failed));
		if (strcmp(failed, cases[i].failed) != 0)
			fail_msg("%s: '%s' fail, not '%s'", cases[i].name, failed, cases[i].failed);
		if (cases[i].moved && verdict_of(d, g, cases[i].moved) != GATE_MOVED)
			fail_msg("%s: %s is verdict %d", cases[i].name, cases[i].moved,
				 verdict_of(d, g, cases[i].moved));
		gate_free(g);
		diff_free(d);
		diff_input_free(in);
	}
}

/* Noise from run to run, that one run a side cannot show, is presumed, in what fails alone. */
static void test_run_noise_of_one_run(void **state)
{
	static const struct {
		const char *name;
		struct sides sides;
		double run_noise;
		enum gate_result result;
		double presumed;
	} cases[] = {
		{ "a quarter slower, sure of it",
		  { F("f", 40000), F("f", 50000), 1 },
		  0,
		  GATE_REGRESSION,
		  0 },
		{ "a quarter slower could be noise",
		  { F("f", 40000), F("f", 50000), 1 },
		  0.05,
		  GATE_INCONCLUSIVE,
		  0.05 },
		{ "half as slow again could not",
		  { F("f", 40000), F("f", 60000), 1 },
		  0.05,
		  GATE_REGRESSION,
		  0.05 },
		{ "several runs tell",
		  { F("f", 40000), F("f", 50000), 3 },
		  0.05,
		  GATE_REGRESSION,
		  0 },
		{ "nothing is not made to look worse",
		  { F("f", 40000), F("f", 40000), 1 },
		  0.05,
		  GATE_PASS,
		  0.05 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gate_options o = options;
		struct diff_input *in = several_runs(&cases[i].sides);
		struct diff *d = compare(in, DIFF_ABSOLUTE, NULL);
		struct gate *g, *sure;

		assert_int_equal(gate_new(d, &o, &sure), 0);
		o.run_noise = cases[i].run_noise;
		assert_int_equal(gate_new(d, &o, &g), 0);
		if (g->result != cases[i].result || g->run_noise != cases[i].presumed)
			fail_msg("%s: %s, presumed %g", cases[i].name, gate_result_names[g->result],
				 g->run_noise);
		for (size_t k = 0; k < g->row_count; k++) {
			assert_true(g->rows[k].low <= sure->rows[k].low);
			assert_true(g->rows[k].high == sure->rows[k].high);
			assert_true(g->rows[k].detectable == sure->rows[k].detectable);
		}
		assert_true(g->could == sure->could && g->blind_share == sure->blind_share);
		gate_free(g);
		gate_free(sure);
		diff_free(d);
		diff_input_free(in);
	}
}

/* Where hardly anything could have been seen, that nothing was says nothing. */
static void test_blind(void **state)
{
	static const struct {
		const char *name;
		double ticks;
		unsigned int runs;
		enum gate_result result;
	} cases[] = {
		{ "two runs of 400", 400, 2, GATE_INCONCLUSIVE },
		{ "one run of 2000", 2000, 1, GATE_INCONCLUSIVE },
		{ "eight runs of 20,000", 20000, 8, GATE_PASS },
		{ "one run of 200,000", 200000, 1, GATE_PASS },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct dice dice = { 31 + i };
		struct diff_input *in;
		struct gate *g;
		struct diff *d;

		assert_int_equal(diff_input_new(false, &in), 0);
		for (unsigned int k = 0; k < 2 * cases[i].runs; k++) {
			char text[8192];
			size_t len = 0;

			for (int f = 0; f < 40; f++)
				len += (size_t)snprintf(text + len, sizeof(text) - len,
							MAIN ";f%d (/x.py:9) %u\n", f,
							dice_poisson(&dice, cases[i].ticks / 40));
			add_text(in, add_run(in, k % 2, true), text);
		}
		d = compare(in, DIFF_ABSOLUTE, NULL);
		assert_int_equal(gate_new(d, &options, &g), 0);
		if (g->result != cases[i].result ||
		    (g->blind_share > GATE_BLIND_SHARE) != (g->result == GATE_INCONCLUSIVE))
			fail_msg("%s: %s, blind to %g", cases[i].name, gate_result_names[g->result],
				 g->blind_share);
		gate_free(g);
		diff_free(d);
		diff_input_free(in);
	}
}

/* Callers rise with what they call: first is what did it, then they, though they cost as much. */
static void test_the_cause_is_first(void **state)
{
	static const char *const want[] = { "work", "else" };
	struct diff_input *in = input_of(MAIN ";" HELP ";" WORK " 20000\n" MAIN ";" HELP " 30000",
					 MAIN ";" HELP ";" WORK " 40000\n" MAIN ";" HELP
					      " 30000\n" MAIN ";" HELP ";" ELSE ";" WRAP " 5000");
	struct diff *d = compare(in, DIFF_ABSOLUTE, NULL);
	struct gate *g;

	(void)state;
	assert_int_equal(gate_new(d, &options, &g), 0);
	assert_int_equal(g->result, GATE_REGRESSION);
	assert_true(g->row_count >= 5);
	for (size_t i = 0; i < 2; i++)
		assert_ptr_equal(&d->functions[g->rows[i].function], function_named(d, want[i]));
	for (size_t i = 0; i < g->row_count; i++)
		if (&d->functions[g->rows[i].function] == function_named(d, "main"))
			assert_true(i > 1 && g->rows[i].verdict == GATE_SLOWER);
	gate_free(g);
	diff_free(d);
	diff_input_free(in);
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
		assert_int_equal(gate_new(d, &options, &g), 0);
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

		assert_int_equal(gate_new(d, &options, &g), 0);
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
		cmocka_unit_test(test_time_without_samples_passes),
		cmocka_unit_test(test_floor),
		cmocka_unit_test(test_shares_are_relative_to_the_centre),
		cmocka_unit_test(test_moved_cost_is_a_budget),
		cmocka_unit_test(test_run_noise_of_one_run),
		cmocka_unit_test(test_blind),
		cmocka_unit_test(test_the_cause_is_first),
		cmocka_unit_test(test_exit_codes),
		cmocka_unit_test(test_text_files_are_inconclusive),
		cmocka_unit_test(test_empty_sides_are_inconclusive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
