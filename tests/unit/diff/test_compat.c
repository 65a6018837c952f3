/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/* What CPython's rules make of small profiles, by hand; tests/integration/test_compat.py asks it.
 */
#include "synthetic.h"

#include "diff/compat.h"

#define MAIN "main (/x.py:1)"
#define HOT "hot (/x.py:5)"
#define HOT_ELSEWHERE "hot (/x.py:6)"
#define COLD "cold (/x.py:7)"
#define GONE "gone (/x.py:8)"
#define LEAF "leaf (/x.py:9)"

struct row {
	const char *name; /* "" where there are no more */
	int line;
	double self, value, self_time, baseline, baseline_total, diff, diff_pct;
};

static struct diff_input *input_by_thread(const char *base, const char *current,
					  const uint64_t interval_ns[2])
{
	const char *const text[] = { base, current };
	struct diff_input *in;

	assert_int_equal(diff_input_new(true, &in), 0);
	for (int s = 0; s < DIFF_SIDES; s++) {
		const struct recording facts = { .interval_ns = interval_ns[s] };
		uint32_t run;

		run = add_run_of(in, s, &facts, false, 0);
		add_text(in, run, text[s]);
	}
	return in;
}

static void check_rows(const char *what, const struct profile *p, const struct compat_node *nodes,
		       size_t count, const struct row *rows)
{
	size_t wanted = 0;

	while (rows[wanted].name)
		wanted++;
	if (count != wanted)
		fail_msg("%s: %zu rows, not %zu", what, count, wanted);
	for (size_t i = 0; i < wanted; i++) {
		const struct row *want = &rows[i];
		const struct compat_node *n = NULL;

		for (size_t k = 0; k < count && !n; k++) {
			const struct frame *f = frametab_get(p->frames, nodes[k].frame);

			if (!strcmp(strtab_get(p->strings, f->name), want->name) &&
			    f->line == (uint32_t)want->line)
				n = &nodes[k];
		}
		if (!n)
			fail_msg("%s: no %s:%d", what, want->name, want->line);
		if (n->self != want->self || n->value != want->value ||
		    n->self_time != want->self_time || n->baseline != want->baseline ||
		    n->baseline_total != want->baseline_total || n->diff != want->diff ||
		    n->diff_pct != want->diff_pct)
			fail_msg("%s, %s: self %g value %g self_time %g baseline %g "
				 "baseline_total %g diff %g diff_pct %g",
				 what, want->name, n->self, n->value, n->self_time, n->baseline,
				 n->baseline_total, n->diff, n->diff_pct);
	}
}

static void test_rules(void **state)
{
	static const struct {
		const char *name;
		enum compat_version version;
		const char *base, *current;
		uint64_t interval_ns[2];
		double scale;
		uint64_t elided_count;
		struct row rows[6], elided[6];
	} cases[] = {
		{ "one sample more, 0a8",
		  COMPAT_3_15_0A8,
		  HOT " 1\n" COLD " 1",
		  HOT " 3\n" COLD " 1",
		  { 1000000, 1000000 },
		  2,
		  0,
		  { { "hot", 5, 3, 3, 3, 2, 2, 1, 50 }, { "cold", 7, 1, 1, 1, 2, 2, -1, -50 } },
		  { { 0 } } },
		{ "one sample more, 3.15",
		  COMPAT_3_15,
		  HOT " 1\n" COLD " 1",
		  HOT " 3\n" COLD " 1",
		  { 1000000, 1000000 },
		  1,
		  0,
		  { { "hot", 5, 3, 3, 3, 1, 1, 2, 200 }, { "cold", 7, 1, 1, 1, 1, 1, 0, 0 } },
		  { { 0 } } },
		{ "several lines, 0a8",
		  COMPAT_3_15_0A8,
		  HOT " 8",
		  HOT " 6\n" HOT_ELSEWHERE " 2",
		  { 1000000, 1000000 },
		  1,
		  0,
		  { { "hot", 5, 6, 6, 8, 8, 8, 0, 0 }, { "hot", 6, 2, 2, 8, 8, 8, 0, 0 } },
		  { { 0 } } },
		{ "several lines, 3.15",
		  COMPAT_3_15,
		  HOT " 8",
		  HOT " 6\n" HOT_ELSEWHERE " 2",
		  { 1000000, 1000000 },
		  1,
		  0,
		  { { "hot", 5, 6, 6, 6, 6, 6, 0, 0 }, { "hot", 6, 2, 2, 2, 2, 2, 0, 0 } },
		  { { 0 } } },
		{ "intervals, 0a8",
		  COMPAT_3_15_0A8,
		  HOT " 4",
		  HOT " 4",
		  { 2000000, 1000000 },
		  0.5,
		  0,
		  { { "hot", 5, 4, 4, 4, 2, 2, 2, 100 } },
		  { { 0 } } },
		{ "intervals, 3.15",
		  COMPAT_3_15,
		  HOT " 4",
		  HOT " 4",
		  { 2000000, 1000000 },
		  2,
		  0,
		  { { "hot", 5, 4, 4, 4, 8, 8, -4, -50 } },
		  { { 0 } } },
		{ "elided, 0a8",
		  COMPAT_3_15_0A8,
		  MAIN " 2\n" MAIN ";" GONE ";" LEAF " 6\n" MAIN ";" HOT " 2",
		  MAIN ";" HOT " 5",
		  { 1000000, 1000000 },
		  0.5,
		  2,
		  { { "main", 1, 0, 5, 0, 1, 5, -1, -100 }, { "hot", 5, 5, 5, 5, 1, 1, 4, 400 } },
		  { { "main", 1, 2, 6, 0, 1, 5, -1, -100 },
		    { "gone", 8, 0, 6, 0, 0, 3, 0, 0 },
		    { "leaf", 9, 6, 6, 0, 3, 3, -3, -100 } } },
		{ "elided, 3.15",
		  COMPAT_3_15,
		  MAIN " 2\n" MAIN ";" GONE ";" LEAF " 6\n" MAIN ";" HOT " 2",
		  MAIN ";" HOT " 5",
		  { 1000000, 1000000 },
		  1,
		  1,
		  { { "main", 1, 0, 5, 0, 2, 10, -2, -100 }, { "hot", 5, 5, 5, 5, 2, 2, 3, 150 } },
		  { { "main", 1, 0, 6, 0, 0, 6, 0, 0 },
		    { "gone", 8, 0, 6, 0, 0, 6, 0, 0 },
		    { "leaf", 9, 6, 6, 0, 6, 6, -6, -100 } } },
		{ "empty base",
		  COMPAT_3_15,
		  "",
		  HOT " 3",
		  { 2000000, 1000000 },
		  1,
		  0,
		  { { "hot", 5, 3, 3, 3, 0, 0, 3, 100 } },
		  { { 0 } } },
		{ "empty current, 0a8",
		  COMPAT_3_15_0A8,
		  HOT " 3",
		  "",
		  { 2000000, 1000000 },
		  0.5,
		  1,
		  { { 0 } },
		  { { "hot", 5, 3, 3, 0, 1.5, 1.5, -1.5, -100 } } },
		{ "empty current, 3.15",
		  COMPAT_3_15,
		  HOT " 3",
		  "",
		  { 2000000, 1000000 },
		  2,
		  1,
		  { { 0 } },
		  { { "hot", 5, 6, 6, 0, 6, 6, -6, -100 } } },
		{ "below 0.1 %, 0a8",
		  COMPAT_3_15_0A8,
		  HOT " 10000\n" GONE " 9",
		  HOT " 10000\n" COLD " 9",
		  { 1000000, 1000000 },
		  1,
		  1,
		  { { "hot", 5, 10000, 10000, 10000, 10000, 10000, 0, 0 } },
		  { { 0 } } },
		{ "below 0.1 %, 3.15: elided are all",
		  COMPAT_3_15,
		  HOT " 10000\n" GONE " 9",
		  HOT " 10000\n" COLD " 9",
		  { 1000000, 1000000 },
		  1,
		  1,
		  { { "hot", 5, 10000, 10000, 10000, 10000, 10000, 0, 0 } },
		  { { "gone", 8, 9, 9, 0, 9, 9, -9, -100 } } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct diff_input *in =
			input_by_thread(cases[i].base, cases[i].current, cases[i].interval_ns);
		struct compat *c;

		assert_int_equal(compat_new(in, cases[i].version, &c), 0);
		if (c->scale != cases[i].scale || c->elided_count != cases[i].elided_count)
			fail_msg("%s: scale %g, %u elided", cases[i].name, c->scale,
				 (unsigned int)c->elided_count);
		check_rows(cases[i].name, in->profile, c->nodes, c->node_count, cases[i].rows);
		check_rows(cases[i].name, in->profile, c->elided, c->elided_node_count,
			   cases[i].elided);
		compat_free(c);
		diff_input_free(in);
	}
}

/* Nine of 10,000 samples, but all of one thread's: the release draws them. */
static void test_small_but_large_in_its_thread(void **state)
{
	const struct recording facts = { .interval_ns = 1000000 };

	(void)state;
	for (int v = 0; v < COMPAT_COUNT; v++) {
		struct diff_input *in;
		struct compat *c;
		uint32_t run;

		assert_int_equal(diff_input_new(true, &in), 0);
		run = add_run_of(in, DIFF_CURRENT, &facts, false, 0);
		put(in->profile, stack_of(in->profile, HOT), add_thread(in->profile, 1), 0, 10000);
		put(in->profile, stack_of(in->profile, COLD), add_thread(in->profile, 2), 0, 9);
		take_samples(in, run);
		assert_int_equal(compat_new(in, v, &c), 0);
		assert_int_equal(c->node_count, v == COMPAT_3_15_0A8 ? 1 : 2);
		assert_int_equal(c->has_promoted_root, v == COMPAT_3_15_0A8);
		compat_free(c);
		diff_input_free(in);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_small_but_large_in_its_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
