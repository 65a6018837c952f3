/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "synthetic.h"

#include <errno.h>

#include "base/err.h"

/* --- identity --------------------------------------------------------------------------------- */

/*
 * Each pair of profiles is one stack; `path` must then be one node of both sides, with the match
 * of its last frame.
 */
static void test_identity_pairs(void **state)
{
	static const struct {
		const char *name;
		const char *base, *current;
		const char *rename;
		const char *path;
		uint8_t match;
	} cases[] = {
		{ "line of the def", "<module> (/a/app.py:1);f (/a/app.py:10) 100",
		  "<module> (/a/app.py:1);f (/a/app.py:20) 100", NULL, "<module>;f",
		  DIFF_MATCH_EXACT },
		{ "directory of the script", "<module> (/old/app.py:1);f (/old/lib/x.py:1) 100",
		  "<module> (/new/app.py:1);f (/new/lib/x.py:1) 100", NULL, "<module>;f",
		  DIFF_MATCH_EXACT },
		{ "relative script", "<module> (a/prog.py:1) 100", "<module> (/b/prog.py:1) 100",
		  NULL, "<module>", DIFF_MATCH_EXACT },
		{ "site-packages", "f (/v/lib/python3.11/site-packages/r/api.py:1) 100",
		  "f (/w/lib/python3.13/site-packages/r/api.py:1) 100", NULL, "f",
		  DIFF_MATCH_EXACT },
		{ "standard library", "f (/usr/lib/python3.11/json/decoder.py:1) 100",
		  "f (/opt/py/lib/python3.13t/json/decoder.py:1) 100", NULL, "f",
		  DIFF_MATCH_EXACT },
		{ "another checkout", "<module> (/v1/bin/run.py:1);f (/v1/lib/foo/a.py:1) 100",
		  "<module> (/v2/bin/run.py:1);f (/v2/lib/foo/a.py:1) 100", NULL, "<module>;f",
		  DIFF_MATCH_EXACT },
		{ "markers", "<module> (/a/app.py:1);<GC> 100", "<module> (/b/app.py:1);<GC> 100",
		  NULL, "<module>;<GC>", DIFF_MATCH_EXACT },
		{ "file renamed", "<module> (/a/app.py:1);f (/a/old_home.py:1) 100",
		  "<module> (/a/app.py:1);f (/a/new_home.py:1) 100", "old_home.py=new_home.py",
		  "<module>;f", DIFF_MATCH_RENAMED },
		{ "function renamed", "<module> (/a/app.py:1);f (/a/app.py:1) 100",
		  "<module> (/a/app.py:1);g (/a/app.py:1) 100", "f=g", "<module>;g",
		  DIFF_MATCH_RENAMED },
		{ "class renamed, with what is in it",
		  "<module> (/a/app.py:1);Cart.total.<locals>.<lambda> (/a/app.py:1) 100",
		  "<module> (/a/app.py:1);Bag.total.<locals>.<lambda> (/a/app.py:1) 100",
		  "Cart=Bag", "<module>;Bag.total.<locals>.<lambda>", DIFF_MATCH_RENAMED },
		{ "function moved and renamed", "<module> (/a/app.py:1);f (/a/x/old.py:1) 100",
		  "<module> (/a/app.py:1);g (/a/y/new.py:1) 100", "x/old.py:f=y/new.py:g",
		  "<module>;g", DIFF_MATCH_RENAMED },
		{ "function of one file renamed", "<module> (/a/app.py:1);f (/a/x.py:1) 100",
		  "<module> (/a/app.py:1);g (/a/x.py:1) 100", "x.py:f=g", "<module>;g",
		  DIFF_MATCH_RENAMED },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct diff_input *in = input_of(cases[i].base, cases[i].current);
		struct diff_renames renames = VEC_INIT;
		const struct diff_node *n;
		struct diff *d;

		if (cases[i].rename)
			assert_int_equal(diff_renames_add(&renames, cases[i].rename), 0);
		d = compare(in, DIFF_ABSOLUTE, &renames);
		n = node_at(d, cases[i].path);
		if (n->match != cases[i].match || n->total != 100 || n->base_total != 100)
			fail_msg("%s: match %u, base %u, current %u", cases[i].name, n->match,
				 (unsigned int)n->base_total, (unsigned int)n->total);
		if (n->class != DIFF_UNCHANGED && n->class != DIFF_UNDETERMINED)
			fail_msg("%s: %s", cases[i].name, diff_class_names[n->class]);
		assert_int_equal(d->elided_count, 0);
		diff_free(d);
		diff_renames_release(&renames);
		diff_input_free(in);
	}
}

static void test_identity_differs(void **state)
{
	static const struct {
		const char *name, *base, *current;
	} cases[] = {
		{ "file", "f (/a/x.py:1) 100", "f (/a/y.py:1) 100" },
		{ "name", "f (/a/x.py:1) 100", "g (/a/x.py:1) 100" },
		{ "__init__ of another package", "f (/a/x/__init__.py:1) 100",
		  "f (/a/y/__init__.py:1) 100" },
		{ "kind", "f (~:1) 100", "f 100" },
		{ "half a name is no tail", "f (/a/xy.py:1) 100", "f (/b/y.py:1) 100" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct diff_input *in = input_of(cases[i].base, cases[i].current);
		struct diff *d = compare(in, DIFF_ABSOLUTE, NULL);

		if (d->node_count != 3 || d->counts[DIFF_NEW] != 1 || d->counts[DIFF_REMOVED] != 1)
			fail_msg("%s: one node of both", cases[i].name);
		assert_int_equal(d->elided_count, 1);
		diff_free(d);
		diff_input_free(in);
	}
}

/* Two files of one name on a side are two, whatever root their scripts have. */
static void test_files_of_one_name_stay_apart(void **state)
{
#define A "<module> (/srv/a/main.py:1);handle (/srv/a/main.py:5)"
#define B "<module> (/srv/b/main.py:1);handle (/srv/b/main.py:5)"
#define OLD_A "<module> (/old/a/main.py:1);handle (/old/a/main.py:5)"
#define APP "<module> (/srv/app.py:1);"
	static const struct {
		const char *name, *base, *current;
		size_t functions;     /* of both sides together */
		const char *ticks[4]; /* "base current" of those called handle or decode, sorted */
	} cases[] = {
		{ "two scripts",
		  A " 1000\n" B " 1500",
		  A " 1500\n" B " 1000",
		  4,
		  { "1000 1500", "1500 1000" } },
		{ "and their roots moved",
		  OLD_A " 1000\n" B " 1500",
		  A " 1500\n" B " 1000",
		  4,
		  { "1000 1500", "1500 1000" } },
		{ "one of them is new",
		  B " 1500",
		  A " 1500\n" B " 1000",
		  4,
		  { "0 1500", "1500 1000" } },
		{ "one of them is gone",
		  A " 1000\n" B " 1500",
		  A " 1500",
		  4,
		  { "1000 1500", "1500 0" } },
		{ "a module called as one of the standard library",
		  APP "decode (/srv/json/decoder.py:1) 1000\n" APP
		      "decode (/usr/lib/python3.12/json/decoder.py:1) 1500",
		  APP "decode (/srv/json/decoder.py:1) 1500\n" APP
		      "decode (/opt/lib/python3.12/json/decoder.py:1) 1000",
		  3,
		  { "1000 1500", "1500 1000" } },
		{ "a package of two environments",
		  "decode (/v1/lib/python3.12/site-packages/r/api.py:1) 1000\n"
		  "decode (/v2/lib/python3.12/site-packages/r/api.py:1) 1500",
		  "decode (/v1/lib/python3.12/site-packages/r/api.py:1) 1500\n"
		  "decode (/v2/lib/python3.12/site-packages/r/api.py:1) 1000",
		  2,
		  { "1000 1500", "1500 1000" } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct diff_input *in = input_of(cases[i].base, cases[i].current);
		struct diff *d = compare(in, DIFF_ABSOLUTE, NULL);
		const struct strtab *strings = in->profile->strings;
		char found[256] = "", want[256] = "";

		for (int k = 0; k < 4 && cases[i].ticks[k]; k++)
			snprintf(want + strlen(want), sizeof(want) - strlen(want), "%s, ",
				 cases[i].ticks[k]);
		for (uint64_t base = 0; base <= 1500; base += 500)
			for (size_t f = 0; f < d->function_count; f++) {
				const struct diff_function *function = &d->functions[f];
				const char *name = strtab_get(strings, function->name);

				if (function->base_total == base && name[0] != '<')
					snprintf(found + strlen(found),
						 sizeof(found) - strlen(found), "%u %u, ",
						 (unsigned int)function->base_total,
						 (unsigned int)function->total);
			}
		if (d->function_count != cases[i].functions || strcmp(found, want) != 0)
			fail_msg("%s: %zu functions, %s not %s", cases[i].name, d->function_count,
				 found, want);
		diff_free(d);
		diff_input_free(in);
	}
}

/* However many files there are: by their names first, then by their folders. */
static void test_a_thousand_files_move(void **state)
{
	const struct recording facts = { 0 };
	struct diff_input *in;
	struct diff *d;

	(void)state;
	assert_int_equal(diff_input_new(false, &in), 0);
	for (int side = 0; side < DIFF_SIDES; side++) {
		uint32_t run, thread = add_thread(in->profile, 1);

		run = add_run_of(in, side, &facts, false, 0);
		for (int i = 0; i < 3000; i++) {
			char text[128];

			snprintf(text, sizeof(text), "f (/%s/deep/p%d/%s%d.py:1)",
				 side ? "new" : "old/er", i / 3, i % 3 ? "m" : "__init__", i % 3);
			if (i % 3 == 0)
				snprintf(text, sizeof(text), "f (/%s/deep/p%d/__init__.py:1)",
					 side ? "new" : "old/er", i / 3);
			put(in->profile, stack_of(in->profile, text), thread, 0, 100);
		}
		take_samples(in, run);
	}
	d = compare(in, DIFF_ABSOLUTE, NULL);
	assert_int_equal(d->counts[DIFF_NEW] + d->counts[DIFF_REMOVED], 0);
	assert_int_equal(d->function_count, 3000);
	diff_free(d);
	diff_input_free(in);
}

/* What could be either of two is neither, and that is said. */
static void test_ambiguous_files_are_noted(void **state)
{
	struct diff_input *in = input_of("f (/a/x/m.py:1) 100\nf (/a/y/m.py:1) 100",
					 "f (/b/p/m.py:1) 100\nf (/b/q/m.py:1) 100");
	struct diff *d = compare(in, DIFF_ABSOLUTE, NULL);
	bool is_told = false;

	(void)state;
	assert_int_equal(d->function_count, 4);
	for (size_t i = 0; i < d->notes.len; i++)
		is_told = is_told || (strstr(d->notes.items[i],
					     "2 base files matched several current files") &&
				      strstr(d->notes.items[i], "m.py (use --rename OLD=NEW)"));
	assert_true(is_told);
	diff_free(d);
	diff_input_free(in);
}

/* Lambdas of one parent are told apart by their order, however far they moved. */
static void test_identity_lambdas(void **state)
{
	static const char l[] = "f.<locals>.<lambda> (/a/x.py:";
	static const struct {
		const char *name;
		int base[4], current[4]; /* lines; the parent is at 10 and 110 */
		int pair[4];             /* by base's: line in current, 0: removed */
	} cases[] = {
		{ "in order", { 11, 15 }, { 111, 112 }, { 111, 112 } },
		{ "the first not seen", { 11, 15 }, { 115 }, { 0, 115 } },
		{ "the last not seen", { 11, 15 }, { 111 }, { 111, 0 } },
		{ "one added between", { 11, 15 }, { 111, 113, 115 }, { 111, 115 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char base[512] = "f (/a/x.py:10) 1\n", current[512] = "f (/a/x.py:110) 1\n";
		struct diff_input *in;
		struct diff *d;

		for (int k = 0; cases[i].base[k]; k++)
			snprintf(base + strlen(base), sizeof(base) - strlen(base),
				 "f (/a/x.py:10);%s%d) %d\n", l, cases[i].base[k], 100 + k);
		for (int k = 0; cases[i].current[k]; k++)
			snprintf(current + strlen(current), sizeof(current) - strlen(current),
				 "f (/a/x.py:110);%s%d) %d\n", l, cases[i].current[k],
				 cases[i].current[k]);
		in = input_of(base, current);
		d = compare(in, DIFF_ABSOLUTE, NULL);
		for (int k = 0; cases[i].base[k]; k++) {
			uint64_t found = UINT64_MAX;

			for (size_t n = 1; n < d->node_count; n++)
				if (d->nodes[n].base_self == 100u + (unsigned int)k)
					found = d->nodes[n].self;
			if (found != (uint64_t)cases[i].pair[k])
				fail_msg("%s: lambda %d met that of line %d", cases[i].name, k,
					 (int)found);
		}
		diff_free(d);
		diff_input_free(in);
	}
}

static void test_rename_errors(void **state)
{
	static const char *const bad[] = { "f", "=g", "f=", "a.py=g", "a.py:=b.py:g", "f=b.py" };
	struct diff_renames renames = VEC_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (diff_renames_add(&renames, bad[i]) != -EINVAL)
			fail_msg("%s: accepted", bad[i]);
		assert_non_null(strstr(err_message(-EINVAL), bad[i]));
	}
	assert_int_equal(renames.len, 0);
	diff_renames_release(&renames);
}

static void test_rename_unused_is_noted(void **state)
{
	struct diff_input *in = input_of("f (/a.py:1) 100", "f (/a.py:1) 100");
	struct diff_renames renames = VEC_INIT;
	struct diff *d;

	(void)state;
	assert_int_equal(diff_renames_add(&renames, "nobody=f"), 0);
	d = compare(in, DIFF_ABSOLUTE, &renames);
	assert_int_equal(d->notes.len, 1);
	assert_string_equal(d->notes.items[0], "base has no nobody to rename");
	diff_free(d);
	diff_renames_release(&renames);
	diff_input_free(in);
}

static void test_rename_is_told(void **state)
{
	struct diff_input *in = input_of("f (/a/old.py:1) 100", "g (/a/new.py:1) 100");
	struct diff_renames renames = VEC_INIT;
	const struct diff_function *f;
	struct diff *d;

	(void)state;
	assert_int_equal(diff_renames_add(&renames, "old.py:f=new.py:g"), 0);
	d = compare(in, DIFF_ABSOLUTE, &renames);
	f = function_named(d, "g");
	assert_string_equal(strtab_get(in->profile->strings, f->renamed_from), "f");
	assert_string_equal(strtab_get(in->profile->strings, f->renamed_from_file), "/a/old.py");
	diff_free(d);
	diff_renames_release(&renames);
	diff_input_free(in);
}

/* --- alignment -------------------------------------------------------------------------------- */

#define MAIN "main (/a/x.py:1)"
#define WRAP "wrap (/a/x.py:2)"
#define WORK "work (/a/x.py:3)"
#define LEAF "leaf (/a/x.py:4)"
#define ELSE "else (/a/x.py:5)"

static void test_align(void **state)
{
	static const struct {
		const char *name, *base, *current, *path;
		uint8_t match;
		uint64_t base_total, total;
	} cases[] = {
		{ "inserted", MAIN ";" WORK ";" LEAF " 400", MAIN ";" WRAP ";" WORK ";" LEAF " 400",
		  "main;wrap", DIFF_MATCH_INSERTED, 400, 400 },
		{ "beneath inserted", MAIN ";" WORK ";" LEAF " 400",
		  MAIN ";" WRAP ";" WORK ";" LEAF " 400", "main;wrap;work;leaf", DIFF_MATCH_EXACT,
		  400, 400 },
		{ "deleted", MAIN ";" WRAP ";" WORK ";" LEAF " 400", MAIN ";" WORK ";" LEAF " 300",
		  "main;wrap", DIFF_MATCH_DELETED, 400, 300 },
		{ "beneath deleted", MAIN ";" WRAP ";" WORK ";" LEAF " 400",
		  MAIN ";" WORK ";" LEAF " 300", "main;wrap;work;leaf", DIFF_MATCH_EXACT, 400,
		  300 },
		{ "twice, further down", MAIN ";" WORK ";" LEAF " 400",
		  MAIN ";" WRAP ";" WORK ";" WRAP ";" LEAF " 400", "main;wrap;work;wrap;leaf",
		  DIFF_MATCH_EXACT, 400, 400 },
		{ "two at once are too many", MAIN ";" LEAF " 400",
		  MAIN ";" WRAP ";" WORK ";" LEAF " 400", "main;wrap", DIFF_MATCH_NONE, 0, 400 },
		{ "nothing below matches", MAIN ";" LEAF " 400", MAIN ";" WRAP ";" ELSE " 400",
		  "main;wrap", DIFF_MATCH_NONE, 0, 400 },
		{ "self of the inserted", MAIN ";" WORK " 400",
		  MAIN ";" WRAP ";" WORK " 400\n" MAIN ";" WRAP " 50", "main;wrap",
		  DIFF_MATCH_INSERTED, 400, 450 },
		{ "others stay", MAIN ";" WORK " 400\n" MAIN ";" ELSE " 100",
		  MAIN ";" WRAP ";" WORK " 400\n" MAIN ";" ELSE " 100", "main;else",
		  DIFF_MATCH_EXACT, 100, 100 },
		{ "a decorator that was in use before",
		  MAIN ";" WRAP ";" LEAF " 400\n" MAIN ";" WORK " 300",
		  MAIN ";" WRAP ";" LEAF " 400\n" MAIN ";" WRAP ";" WORK " 310", "main;wrap;work",
		  DIFF_MATCH_EXACT, 300, 310 },
		{ "the decorator itself", MAIN ";" WRAP ";" LEAF " 400\n" MAIN ";" WORK " 300",
		  MAIN ";" WRAP ";" LEAF " 400\n" MAIN ";" WRAP ";" WORK " 310", "main;wrap",
		  DIFF_MATCH_EXACT, 700, 710 },
		{ "taken from one that keeps others",
		  MAIN ";" WRAP ";" LEAF " 400\n" MAIN ";" WRAP ";" WORK " 310",
		  MAIN ";" WRAP ";" LEAF " 400\n" MAIN ";" WORK " 300", "main;wrap;work",
		  DIFF_MATCH_EXACT, 310, 300 },
		{ "what it calls on both sides is not another's",
		  MAIN ";" WRAP ";" WORK " 400\n" MAIN ";" WORK " 300",
		  MAIN ";" WRAP ";" WORK " 700", "main;work", DIFF_MATCH_NONE, 300, 0 },
		{ "a call that stays is not moved", MAIN ";" WORK " 400",
		  MAIN ";" WORK " 400\n" MAIN ";" WRAP ";" WORK " 50", "main;wrap", DIFF_MATCH_NONE,
		  0, 50 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct diff_input *in = input_of(cases[i].base, cases[i].current);
		struct diff *d = compare(in, DIFF_ABSOLUTE, NULL);
		const struct diff_node *n = node_at(d, cases[i].path);

		if (n->match != cases[i].match || n->base_total != cases[i].base_total ||
		    n->total != cases[i].total)
			fail_msg("%s: match %u, %u -> %u", cases[i].name, n->match,
				 (unsigned int)n->base_total, (unsigned int)n->total);
		diff_free(d);
		diff_input_free(in);
	}
}

/* From 3.12 on comprehensions are their callers' code: between versions they are on both sides. */
static void test_comprehensions_of_two_versions(void **state)
{
	static const struct {
		const char *name, *base_python, *current_python, *base, *current;
		size_t nodes; /* with the root */
		uint64_t base_self, self;
	} cases[] = {
		{ "inlined", "3.11.9", "3.13.1",
		  MAIN ";" WORK ";work.<locals>.<listcomp> (/a/x.py:4);" LEAF " 300\n" MAIN ";" WORK
		       ";work.<locals>.<listcomp> (/a/x.py:4) 100",
		  MAIN ";" WORK ";" LEAF " 300\n" MAIN ";" WORK " 100", 4, 100, 100 },
		{ "on both sides", "3.13.1", "3.11.9",
		  MAIN ";" WORK ";work.<locals>.<dictcomp> (/a/x.py:4) 100",
		  MAIN ";" WORK ";work.<locals>.<setcomp> (/a/x.py:4) 100", 3, 100, 100 },
		{ "a generator is a function of its own", "3.11.9", "3.13.1",
		  MAIN ";" WORK ";work.<locals>.<genexpr> (/a/x.py:4) 100",
		  MAIN ";" WORK ";work.<locals>.<genexpr> (/a/x.py:4) 100", 4, 0, 0 },
		{ "of one version they are as they are", "3.11.9", "3.11.2",
		  MAIN ";" WORK ";work.<locals>.<listcomp> (/a/x.py:4) 100", MAIN ";" WORK " 100",
		  4, 0, 100 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct recording facts = { 0 };
		struct diff_input *in;
		const struct diff_node *n;
		struct diff *d;
		uint32_t run;

		assert_int_equal(diff_input_new(false, &in), 0);
		run = add_run_of(in, DIFF_BASE, &facts, false, 0);
		add_text_of(in, run, add_python(in->profile, cases[i].base_python), cases[i].base);
		run = add_run_of(in, DIFF_CURRENT, &facts, false, 0);
		add_text_of(in, run, add_python(in->profile, cases[i].current_python),
			    cases[i].current);
		d = compare(in, DIFF_ABSOLUTE, NULL);
		n = node_at(d, "main;work");
		if (d->node_count != cases[i].nodes || n->base_self != cases[i].base_self ||
		    n->self != cases[i].self)
			fail_msg("%s: %zu nodes, self %u -> %u", cases[i].name, d->node_count,
				 (unsigned int)n->base_self, (unsigned int)n->self);
		diff_free(d);
		diff_input_free(in);
	}
}

/* Random trees: sums hold, and the diff of swapped sides is the mirror image. */
static void test_random_invariants(void **state)
{
	struct dice dice = { 7 };

	(void)state;
	for (int round = 0; round < 200; round++) {
		char text[DIFF_SIDES][4096];
		struct diff *d[2];
		struct diff_input *in[2];

		for (int s = 0; s < DIFF_SIDES; s++) {
			size_t at = 0;

			text[s][0] = '\0';
			for (int line = 0; line < 12; line++) {
				int depth = 1 + (int)(dice_uniform(&dice) * 6);

				for (int k = 0; k < depth; k++)
					at += (size_t)snprintf(
						text[s] + at, sizeof(text[s]) - at,
						"%s%c (/x.py:1)", k ? ";" : "",
						'a' + (int)(dice_uniform(&dice) * 4));
				at += (size_t)snprintf(text[s] + at, sizeof(text[s]) - at, " %d\n",
						       1 + (int)(dice_uniform(&dice) * 90));
			}
		}
		for (int k = 0; k < 2; k++) {
			in[k] = input_of(text[k], text[!k]);
			d[k] = compare(in[k], DIFF_ABSOLUTE, NULL);
		}
		for (uint32_t i = 0; i < d[0]->node_count; i++) {
			const struct diff_node *n = &d[0]->nodes[i];
			uint64_t base = n->base_self, current = n->self;

			for (uint32_t c = i + 1; c < n->end; c = d[0]->nodes[c].end) {
				assert_int_equal(d[0]->nodes[c].parent, i);
				base += d[0]->nodes[c].base_total;
				current += d[0]->nodes[c].total;
			}
			assert_int_equal(base, n->base_total);
			assert_int_equal(current, n->total);
		}
		assert_int_equal(d[0]->nodes[0].base_total, d[0]->side[DIFF_BASE].ticks);
		assert_int_equal(d[0]->nodes[0].total, d[0]->side[DIFF_CURRENT].ticks);
		assert_int_equal(d[0]->counts[DIFF_NEW], d[1]->counts[DIFF_REMOVED]);
		assert_int_equal(d[0]->counts[DIFF_REMOVED], d[1]->counts[DIFF_NEW]);
		assert_int_equal(d[0]->node_count, d[1]->node_count);
		for (int k = 0; k < 2; k++) {
			diff_free(d[k]);
			diff_input_free(in[k]);
		}
	}
}

/* --- values and classes ----------------------------------------------------------------------- */

static void test_classes(void **state)
{
	static const struct {
		const char *name, *base, *current, *path;
		uint8_t class, self_class;
	} cases[] = {
		{ "equal", MAIN " 40000", MAIN " 40000", "main", DIFF_UNCHANGED, DIFF_UNCHANGED },
		{ "5 % more is within the first mark", MAIN " 40000", MAIN " 42000", "main",
		  DIFF_UNCHANGED, DIFF_UNCHANGED },
		{ "20 % more", MAIN " 40000", MAIN " 48000", "main", DIFF_SLOWER_1, DIFF_SLOWER_1 },
		{ "30 % more", MAIN " 40000", MAIN " 52000", "main", DIFF_SLOWER_2, DIFF_SLOWER_2 },
		{ "60 % more", MAIN " 40000", MAIN " 64000", "main", DIFF_SLOWER_3, DIFF_SLOWER_3 },
		{ "thrice", MAIN " 40000", MAIN " 120000", "main", DIFF_SLOWER_4, DIFF_SLOWER_4 },
		{ "half is as strong as twice", MAIN " 40000", MAIN " 19900", "main", DIFF_FASTER_4,
		  DIFF_FASTER_4 },
		{ "few ticks", MAIN " 4", MAIN " 8", "main", DIFF_UNDETERMINED, DIFF_UNDETERMINED },
		{ "new", MAIN " 1000", MAIN " 1000\n" MAIN ";" WORK " 50", "main;work", DIFF_NEW,
		  DIFF_NEW },
		{ "possibly rare", MAIN " 1000", MAIN " 1000\n" MAIN ";" WORK " 3", "main;work",
		  DIFF_RARE, DIFF_RARE },
		{ "removed", MAIN " 1000\n" MAIN ";" WORK " 50", MAIN " 1000", "main;work",
		  DIFF_REMOVED, DIFF_REMOVED },
		{ "below what is new, however rare", MAIN " 1000",
		  MAIN " 1000\n" MAIN ";" WORK " 50\n" MAIN ";" WORK ";" LEAF " 2",
		  "main;work;leaf", DIFF_NEW, DIFF_NEW },
		{ "an old caller's first self time is not new", MAIN ";" WORK " 40000",
		  MAIN ";" WORK " 40000\n" MAIN " 400", "main", DIFF_UNCHANGED, DIFF_SLOWER_4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct diff_input *in = input_of(cases[i].base, cases[i].current);
		struct diff *d = compare(in, DIFF_ABSOLUTE, NULL);
		const struct diff_node *n = node_at(d, cases[i].path);

		if (n->class != cases[i].class || n->self_class != cases[i].self_class)
			fail_msg("%s: %s, self %s, ratio %g in %g .. %g, q %g", cases[i].name,
				 diff_class_names[n->class], diff_class_names[n->self_class],
				 (double)n->measure.ratio, (double)n->measure.low,
				 (double)n->measure.high, (double)n->measure.q);
		diff_free(d);
		diff_input_free(in);
	}
}

/* Twice as slow and twice as fast are each other's mirror image. */
static void test_effect_is_symmetric(void **state)
{
	struct diff_input *in = input_of(MAIN ";" WORK " 2000\n" MAIN ";" LEAF " 4000",
					 MAIN ";" WORK " 4000\n" MAIN ";" LEAF " 2000");
	struct diff *d = compare(in, DIFF_ABSOLUTE, NULL);
	const struct diff_node *up = node_at(d, "main;work"), *down = node_at(d, "main;leaf");

	(void)state;
	assert_true(fabs((double)up->measure.ratio * (double)down->measure.ratio - 1) < 1e-6);
	assert_true(fabs((double)up->measure.low * (double)down->measure.high - 1) < 1e-6);
	assert_int_equal(up->class - DIFF_SLOWER_1, down->class - DIFF_FASTER_1);
	diff_free(d);
	diff_input_free(in);
}

static void test_only_the_topmost_new_is_marked(void **state)
{
	struct diff_input *in = input_of(MAIN " 1000", MAIN " 1000\n" MAIN ";" WORK ";" LEAF " 90");
	struct diff *d = compare(in, DIFF_ABSOLUTE, NULL);

	(void)state;
	assert_true(node_at(d, "main;work")->is_top);
	assert_false(node_at(d, "main;work;leaf")->is_top);
	assert_false(node_at(d, "main")->is_top);
	diff_free(d);
	diff_input_free(in);
}

/* One function of 40 % gets twice as fast: in shares the others seem 1.25 times slower. */
static void test_share_is_relative_to_the_centre(void **state)
{
	struct diff_input *in =
		input_of(MAIN ";" WORK " 40000\n" MAIN ";" LEAF " 30000\n" MAIN ";" ELSE " 30000",
			 MAIN ";" WORK " 19000\n" MAIN ";" LEAF " 30000\n" MAIN ";" ELSE " 30000");
	struct diff *d = compare(in, DIFF_SHARE, NULL);

	(void)state;
	assert_true(fabs(d->scale - 0.79) < 1e-9);
	assert_true(fabs(d->centre - 1 / 0.79) < 1e-3);
	assert_int_equal(node_at(d, "main;leaf")->class, DIFF_UNCHANGED);
	assert_int_equal(node_at(d, "main;else")->class, DIFF_UNCHANGED);
	assert_int_equal(node_at(d, "main;work")->class, DIFF_FASTER_4);
	assert_true(fabs((double)node_at(d, "main;work")->measure.ratio - 0.475) < 0.001);
	assert_non_null(strstr(d->notes.items[0], "relative to the typical function"));
	diff_free(d);
	d = compare(in, DIFF_ABSOLUTE, NULL);
	assert_true(d->centre == 1 && d->scale == 1);
	assert_int_equal(node_at(d, "main;leaf")->class, DIFF_UNCHANGED);
	diff_free(d);
	diff_input_free(in);
}

static void test_scale(void **state)
{
	static const struct {
		const char *name;
		enum diff_normalize normalize;
		uint64_t interval_ns[2], duration_ns[2];
		double work[2];
		int runs[2];
		double scale; /* < 0: -EINVAL */
	} cases[] = {
		{ "absolute", DIFF_ABSOLUTE, { 10, 10 }, { 5, 9 }, { 0, 0 }, { 1, 1 }, 1 },
		{ "absolute, other rate", DIFF_ABSOLUTE, { 20, 10 }, { 0, 0 }, { 0 }, { 1, 1 }, 2 },
		{ "work that cannot be",
		  DIFF_WORK,
		  { 10, 10 },
		  { 5, 9 },
		  { 5, 1e-300 },
		  { 1, 1 },
		  -1 },
		{ "absolute, several runs",
		  DIFF_ABSOLUTE,
		  { 10, 10 },
		  { 0 },
		  { 0 },
		  { 2, 3 },
		  1.5 },
		{ "second", DIFF_SECOND, { 10, 10 }, { 4000, 1000 }, { 0 }, { 1, 1 }, 0.25 },
		{ "second, length unknown",
		  DIFF_SECOND,
		  { 10, 10 },
		  { 0, 9 },
		  { 0 },
		  { 1, 1 },
		  -1 },
		{ "share", DIFF_SHARE, { 10, 10 }, { 0 }, { 0 }, { 1, 1 }, 1 },
		{ "share, several runs", DIFF_SHARE, { 10, 10 }, { 0 }, { 0 }, { 1, 4 }, 4 },
		{ "share, other rate", DIFF_SHARE, { 30, 10 }, { 0 }, { 0 }, { 1, 1 }, 1 },
		{ "work", DIFF_WORK, { 10, 10 }, { 0 }, { 100, 300 }, { 1, 1 }, 3 },
		{ "work, other rate", DIFF_WORK, { 20, 10 }, { 0 }, { 100, 300 }, { 1, 1 }, 6 },
		{ "work unknown", DIFF_WORK, { 10, 10 }, { 0 }, { 100, 0 }, { 1, 1 }, -1 },
		{ "by itself: work", DIFF_AUTO, { 10, 10 }, { 7, 1 }, { 1, 2 }, { 1, 1 }, 2 },
		{ "by itself: a second", DIFF_AUTO, { 10, 10 }, { 4, 1 }, { 0 }, { 1, 1 }, 0.25 },
		{ "by itself: absolute", DIFF_AUTO, { 10, 10 }, { 4, 0 }, { 0 }, { 1, 1 }, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct diff_options o = { .normalize = cases[i].normalize };
		struct diff_input *in;
		struct diff *d = NULL;
		int r;

		assert_int_equal(diff_input_new(false, &in), 0);
		for (int s = 0; s < 2; s++)
			for (int k = 0; k < cases[i].runs[s]; k++) {
				const struct recording facts = {
					.interval_ns = cases[i].interval_ns[s],
					.duration_ns = cases[i].duration_ns[s],
					.work = cases[i].work[s],
				};
				uint32_t run;

				run = add_run_of(in, s, &facts, false, 0);
				add_text(in, run, MAIN " 100");
			}
		r = diff_new(in, &o, &d);
		if (r != (cases[i].scale < 0 ? -EINVAL : 0))
			fail_msg("%s: returned %d", cases[i].name, r);
		if (d && fabs(d->scale - cases[i].scale) > 1e-9)
			fail_msg("%s: scale %g", cases[i].name, d->scale);
		diff_free(d);
		diff_input_free(in);
	}
}

static void test_empty_sides(void **state)
{
	static const struct {
		const char *base, *current;
		size_t news, removed;
		const char *note;
	} cases[] = {
		{ "", MAIN ";" WORK " 100", 2, 0, "base has no samples" },
		{ MAIN ";" WORK " 100", "", 0, 2, "current has no samples" },
		{ "", "", 0, 0, "base has no samples" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (enum diff_normalize n = DIFF_AUTO; n <= DIFF_WORK; n++) {
			struct diff_input *in = input_of(cases[i].base, cases[i].current);
			struct diff *d = compare(in, n, NULL);

			assert_true(d->scale == 1 && d->centre == 1);
			assert_int_equal(d->counts[DIFF_NEW], cases[i].news);
			assert_int_equal(d->counts[DIFF_REMOVED], cases[i].removed);
			assert_string_equal(d->notes.items[0], cases[i].note);
			diff_free(d);
			diff_input_free(in);
		}
}

static void test_unrelated_programs_are_noted(void **state)
{
	struct diff_input *in = input_of("a (/one.py:1) 100", "b (/two.py:1) 100");
	struct diff *d = compare(in, DIFF_ABSOLUTE, NULL);

	(void)state;
	assert_int_equal(d->notes.len, 1);
	assert_non_null(strstr(d->notes.items[0], "different programs"));
	diff_free(d);
	diff_input_free(in);
}

static void test_functions_count_recursion_once(void **state)
{
	struct diff_input *in =
		input_of(MAIN ";" WORK ";" WORK ";" WORK " 100\n" MAIN ";" WORK " 20",
			 MAIN ";" WORK ";" WORK " 100\n" MAIN ";" WORK " 20");
	struct diff *d = compare(in, DIFF_ABSOLUTE, NULL);
	const struct diff_function *f = function_named(d, "work");

	(void)state;
	assert_int_equal(f->base_total, 120);
	assert_int_equal(f->base_self, 120);
	assert_int_equal(f->total, 120);
	diff_free(d);
	diff_input_free(in);
}

static void test_text_files_say_noise_unknown(void **state)
{
	struct diff_input *in;
	struct diff *d;

	(void)state;
	assert_int_equal(diff_input_new(false, &in), 0);
	add_text(in, add_run(in, DIFF_BASE, false), MAIN " 100");
	add_text(in, add_run(in, DIFF_CURRENT, false), MAIN " 100");
	d = compare(in, DIFF_ABSOLUTE, NULL);
	assert_int_equal(d->dispersion, DIFF_BY_POISSON);
	assert_non_null(strstr(d->notes.items[0], "noise unknown"));
	diff_free(d);
	add_text(in, add_run(in, DIFF_BASE, false), MAIN " 100");
	d = compare(in, DIFF_ABSOLUTE, NULL);
	assert_int_equal(d->dispersion, DIFF_BY_RUNS);
	diff_free(d);
	diff_input_free(in);
}

/* --- input ------------------------------------------------------------------------------------ */

/* However samples come, each is in the block of its time, and none is lost. */
static void test_blocks(void **state)
{
	static const struct {
		const char *name;
		uint64_t expected_ns, last_ns;
		uint32_t samples;
		uint32_t least, most;
	} cases[] = {
		{ "known length", 999999999, 999999999, 1000, 40, 40 },
		{ "unknown length", 0, 999999999, 1000, 40, 79 },
		{ "far longer than said", 1000000, 999999999, 1000, 40, 79 },
		{ "one sample", 0, 0, 1, 1, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct recording facts = { 0 };
		struct diff_input *in;
		const struct cube_run *run;
		uint64_t ticks = 0;
		uint32_t index, stack;

		assert_int_equal(diff_input_new(false, &in), 0);
		stack = stack_of(in->profile, MAIN);
		index = add_run_of(in, DIFF_BASE, &facts, true, cases[i].expected_ns);
		for (uint32_t k = 0; k < cases[i].samples; k++) {
			put(in->profile, stack, add_thread(in->profile, 1),
			    cases[i].last_ns / cases[i].samples * k, 3);
			take_samples(in, index);
		}
		run = &in->cube.runs.items[index];
		for (uint32_t b = 0; b < DIFF_BLOCKS_MAX; b++) {
			uint64_t sum = 0;

			for (size_t c = 0; c < run->blocks[b].cells.len; c++)
				sum += run->blocks[b].cells.items[c].value;
			assert_int_equal(sum, run->blocks[b].value);
			ticks += sum;
		}
		assert_int_equal(ticks, 3 * cases[i].samples);
		assert_int_equal(run->value, ticks);
		if (run->block_count < cases[i].least || run->block_count > cases[i].most)
			fail_msg("%s: %u blocks", cases[i].name, run->block_count);
		diff_input_free(in);
	}
}

static void test_ticks_beyond_32_bits(void **state)
{
	const struct recording facts = { 0 };
	struct diff_input *in;
	struct diff *d;
	uint32_t index;

	(void)state;
	assert_int_equal(diff_input_new(true, &in), 0);
	index = add_run_of(in, DIFF_CURRENT, &facts, false, 0);
	for (int i = 0; i < 3; i++)
		put(in->profile, stack_of(in->profile, MAIN), add_thread(in->profile, 1), 0,
		    UINT32_MAX);
	take_samples(in, index);
	d = compare(in, DIFF_ABSOLUTE, NULL);
	assert_int_equal(d->nodes[0].total, 3 * (uint64_t)UINT32_MAX);
	diff_free(d);
	diff_input_free(in);
}

static void test_reasons(void **state)
{
	static const struct {
		const char *name;
		struct {
			const char *mode, *event, *python;
			uint64_t interval_ns, lost, period;
		} base, current;
		const char *reason; /* a part of it; NULL: none */
	} cases[] = {
		{ "alike",
		  { .mode = "cpu", .python = "3.12.4", .interval_ns = 1000000 },
		  { .mode = "cpu", .python = "3.12.7", .interval_ns = 1000000 },
		  NULL },
		{ "unknown is no reason", { .mode = "cpu", .event = "cpu-clock" }, { 0 }, NULL },
		{ "mode", { .mode = "cpu" }, { .mode = "wall" }, "mode" },
		{ "event", { .event = "cpu-clock" }, { .event = "cycles" }, "event" },
		{ "rate", { .interval_ns = 1000000 }, { .interval_ns = 10101010 }, "1000 us, " },
		{ "rates that are nearly the same",
		  { .interval_ns = 1000000 },
		  { .interval_ns = 1001001 },
		  NULL },
		{ "period of an event", { .period = 1 }, { .period = 1000 }, "each 1000" },
		{ "python", { .python = "3.12.4" }, { .python = "3.13.0" }, "Python 3.13.0" },
		{ "python 3.1", { .python = "3.1" }, { .python = "3.13.0" }, "Python 3.13.0" },
		{ "lost", { .lost = 20 }, { .lost = 0 }, "base lost 16.7%" },
		{ "both lost", { .lost = 20 }, { .lost = 20 }, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct texts reasons = VEC_INIT;
		struct diff_input *in;
		uint32_t run;

		assert_int_equal(diff_input_new(false, &in), 0);
		for (int s = 0; s < DIFF_SIDES; s++) {
			struct recording facts = { 0 };
			const char *python = s ? cases[i].current.python : cases[i].base.python;

			facts.mode = (char *)(s ? cases[i].current.mode : cases[i].base.mode);
			facts.event = (char *)(s ? cases[i].current.event : cases[i].base.event);
			facts.interval_ns =
				s ? cases[i].current.interval_ns : cases[i].base.interval_ns;
			facts.other_unit.period =
				s ? cases[i].current.period : cases[i].base.period;
			run = add_run_of(in, s, &facts, false, 0);
			add_text_of(in, run, add_python(in->profile, python), MAIN " 100");
			in->cube.runs.items[run].lost =
				s ? cases[i].current.lost : cases[i].base.lost;
		}
		assert_int_equal(diff_input_finish(in), 0);
		assert_int_equal(diff_input_check(in, &reasons), 0);
		if (reasons.len != (cases[i].reason ? 1 : 0) ||
		    (cases[i].reason && !strstr(reasons.items[0], cases[i].reason)))
			fail_msg("%s: %zu reasons, %s", cases[i].name, reasons.len,
				 reasons.len ? reasons.items[0] : "");
		texts_release(&reasons);
		diff_input_free(in);
	}
}

/* --- what is no tick -------------------------------------------------------------------------- */

#define S UINT64_C(1000000000)

static void put_span(struct profile *p, uint32_t stack, uint64_t from_ns, uint64_t duration_ns,
		     uint64_t value)
{
	struct sample s = { .time_ns = from_ns,
			    .duration_ns = duration_ns,
			    .value = value,
			    .thread = add_thread(p, 1),
			    .stack = stack };

	assert_int_equal(profile_add_sample(p, &s), 0);
}

/* Of a recording of 40 s, in blocks of a second. */
static uint32_t begin_waits(struct diff_input *in, enum diff_side side)
{
	const struct recording facts = { .interval_ns = 1, .is_whole = 1, .duration_ns = 40 * S };

	return add_run_of(in, side, &facts, true, 40 * S);
}

/* Nothing is lost or added, wherever a span lies. */
static void test_spans_lie_in_all_blocks_that_they_last_for(void **state)
{
	static const struct {
		const char *name;
		uint64_t from_ns, duration_ns, value;
		uint32_t blocks; /* that have some of it */
	} cases[] = {
		{ "short", 3 * S, S / 100, S / 100, 1 },
		{ "kept by chance", 3 * S, S / 1000, S / 100, 1 },
		{ "ten seconds", 5 * S, 10 * S, 10 * S, 10 },
		{ "all the time", 0, 40 * S, 40 * S, 39 },
		{ "a value that is no time", 0, 40 * S, 7, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct diff_input *in;
		const struct cube_run *run;
		uint32_t index, blocks = 0;
		uint64_t sum = 0, most = 0;

		assert_int_equal(diff_input_new(false, &in), 0);
		index = begin_waits(in, DIFF_BASE);
		put_span(in->profile, stack_of(in->profile, MAIN), cases[i].from_ns,
			 cases[i].duration_ns, cases[i].value);
		assert_int_equal(diff_input_take_samples(in, false), 0);
		run = &in->cube.runs.items[index];
		for (uint32_t b = 0; b < DIFF_BLOCKS_MAX; b++) {
			blocks += run->blocks[b].value > 0;
			sum += run->blocks[b].value;
			if (run->blocks[b].value > most)
				most = run->blocks[b].value;
		}
		assert_int_equal(sum, cases[i].value);
		if (blocks < cases[i].blocks || blocks > cases[i].blocks + 2)
			fail_msg("%s: %u blocks", cases[i].name, blocks);
		if (cases[i].duration_ns > S && cases[i].value > S)
			assert_true(most <= 11 * S / 10);
		diff_input_free(in);
	}
}

/* Waits of main's callees on both sides; the second is as often as said, as long as said. */
static struct diff *compare_waits(struct diff_input *in, uint32_t count, uint64_t base_ns,
				  uint64_t current_ns)
{
	const char *const stack = MAIN ";wait (a.py:9)", *const other = MAIN ";idle (a.py:20)";

	for (int side = 0; side < DIFF_SIDES; side++) {
		uint64_t length = side == DIFF_BASE ? base_ns : current_ns;

		begin_waits(in, side);
		for (uint32_t i = 0; i < count; i++)
			put_span(in->profile, stack_of(in->profile, stack), i * 40 * S / count,
				 length, length);
		for (uint32_t i = 0; i < 400; i++)
			put_span(in->profile, stack_of(in->profile, other), i * S / 10, S / 20,
				 S / 20);
		assert_int_equal(diff_input_take_samples(in, false), 0);
	}
	return compare(in, DIFF_ABSOLUTE, NULL);
}

/* A nanosecond is no sample: few waits tell nothing, however long; many regular ones all. */
static void test_waits_count_as_many_samples_as_they_are(void **state)
{
	static const struct {
		const char *name;
		uint32_t count;
		uint64_t base_ns, current_ns;
		bool is_tested, is_found;
	} cases[] = {
		{ "one, of 5 s, twice as long", 1, 5 * S, 10 * S, false, false },
		{ "three, half as long", 3, 10 * S, 5 * S, false, false },
		{ "five, the same", 5, 5 * S, 5 * S, true, false },
		{ "400 of 50 ms, 20 % longer", 400, S / 20, S / 20 * 6 / 5, true, true },
		{ "400 of 50 ms, the same", 400, S / 20, S / 20, true, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct diff_input *in;
		struct diff *d;
		bool is_tested = false, is_found = false;

		assert_int_equal(diff_input_new(false, &in), 0);
		d = compare_waits(in, cases[i].count, cases[i].base_ns, cases[i].current_ns);
		for (size_t k = 0; k < d->function_count; k++) {
			const struct diff_function *f = &d->functions[k];

			if (strcmp(strtab_get(in->profile->strings, f->name), "wait") != 0)
				continue;
			is_tested = !isnan((double)f->measure.q);
			is_found = !diff_class_is_grey(f->class);
		}
		if (is_tested != cases[i].is_tested || is_found != cases[i].is_found)
			fail_msg("%s: tested %d, found %d", cases[i].name, is_tested, is_found);
		diff_free(d);
		diff_input_free(in);
	}
}

/* --- what is counted -------------------------------------------------------------------------- */

#define KIB 1024
#define MIB (1024 * KIB)
#define GROW MAIN ";grow (a.py:9)"
#define REST MAIN ";rest (a.py:20)"

/* All at one moment: once, as a program does what it does at its start. */
static void put_bytes(struct diff_input *in, const char *stack, uint64_t at_s, uint64_t bytes,
		      uint64_t each)
{
	for (uint64_t done = 0; done < bytes; done += each)
		put_span(in->profile, stack_of(in->profile, stack), at_s * S, 0, each);
}

static void add_counted(struct diff_input *in, enum diff_side side, uint8_t unit, uint64_t period,
			uint64_t bytes, uint64_t each)
{
	const struct recording facts = { .other_unit = { period, unit },
					 .is_whole = 1,
					 .duration_ns = 40 * S };

	add_run_of(in, side, &facts, true, 40 * S);
	put_bytes(in, GROW, 3, bytes, each);
	put_bytes(in, REST, 20, 3200 * each, each);
	assert_int_equal(diff_input_take_samples(in, false), 0);
}

/* Nothing is left to chance, and of one run a side nothing can be measured. */
static void test_what_is_counted_is_as_sure_as_runs_are_presumed(void **state)
{
	static const struct {
		const char *name;
		uint32_t runs;
		uint8_t unit;
		uint64_t period, base, current, each;
		enum diff_dispersion by;
		bool is_tested, is_found;
	} cases[] = {
		{ "64 MiB more", 1, UNIT_BYTES, 1, 32 * MIB, 96 * MIB, 4 * KIB, DIFF_BY_PRESUMPTION,
		  true, true },
		{ "as much", 1, UNIT_BYTES, 1, 32 * MIB, 32 * MIB, 4 * KIB, DIFF_BY_PRESUMPTION,
		  true, false },
		{ "4 % more", 1, UNIT_BYTES, 1, 50 * MIB, 52 * MIB, 4 * KIB, DIFF_BY_PRESUMPTION,
		  true, false },
		{ "a third more", 1, UNIT_BYTES, 1, 30 * MIB, 40 * MIB, 4 * KIB,
		  DIFF_BY_PRESUMPTION, true, true },
		{ "twice as little", 1, UNIT_BYTES, 1, 128 * KIB, 256 * KIB, 4 * KIB,
		  DIFF_BY_PRESUMPTION, false, false },
		{ "the allocator's lump", 1, UNIT_BYTES, 1, 0, 132 * KIB, 4 * KIB,
		  DIFF_BY_PRESUMPTION, false, false },
		{ "a new one", 1, UNIT_BYTES, 1, 0, 2 * MIB, 4 * KIB, DIFF_BY_PRESUMPTION, true,
		  true },
		{ "a few huge pages more", 1, UNIT_BYTES, 1, 6 * MIB, 12 * MIB, 2 * MIB,
		  DIFF_BY_PRESUMPTION, true, false },
		{ "many", 1, UNIT_BYTES, 1, 60 * MIB, 180 * MIB, 2 * MIB, DIFF_BY_PRESUMPTION, true,
		  true },
		{ "the lump in one run of three", 3, UNIT_BYTES, 1, 0, 132 * KIB, 4 * KIB,
		  DIFF_BY_RUNS, false, false },
		{ "13 % more in three runs", 3, UNIT_BYTES, 1, 30 * MIB, 34 * MIB, 4 * KIB,
		  DIFF_BY_RUNS, true, true },
		{ "calls", 1, UNIT_COUNT, 1, 1000, 2000, 1, DIFF_BY_PRESUMPTION, true, true },
		{ "a few calls", 1, UNIT_COUNT, 1, 10, 20, 1, DIFF_BY_PRESUMPTION, false, false },
		{ "one in 1,000 calls", 1, UNIT_COUNT, 1000, 10, 20, 1, DIFF_BY_PRESUMPTION, true,
		  false },
		{ "one in 1,000, many", 1, UNIT_COUNT, 1000, 1000, 2000, 1, DIFF_BY_PRESUMPTION,
		  true, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool is_in_one = strstr(cases[i].name, "in one run"); /* else alike in all */
		const struct diff_function *f;
		struct diff_input *in;
		struct diff *d;
		bool is_tested, is_found;

		assert_int_equal(diff_input_new(false, &in), 0);
		for (uint32_t run = 0; run < cases[i].runs; run++) {
			bool has_it = !run || !is_in_one;

			add_counted(in, DIFF_BASE, cases[i].unit, cases[i].period,
				    has_it ? cases[i].base : 0, cases[i].each);
			add_counted(in, DIFF_CURRENT, cases[i].unit, cases[i].period,
				    has_it ? cases[i].current : 0, cases[i].each);
		}
		d = compare(in, DIFF_ABSOLUTE, NULL);
		f = function_named(d, "grow");
		is_tested = !isnan((double)f->measure.q);
		is_found = !diff_class_is_grey(f->class);
		assert_int_equal(d->dispersion, cases[i].by);
		if (is_tested != cases[i].is_tested || is_found != cases[i].is_found)
			fail_msg("%s: tested %d, %s", cases[i].name, is_tested,
				 diff_class_names[f->class]);
		assert_true(diff_class_is_grey(function_named(d, "rest")->class));
		diff_free(d);
		diff_input_free(in);
	}
}

/* Time that no sample stands for: as much as there is, and nobody's doing. */
static void test_time_without_samples_is_no_finding(void **state)
{
	struct diff_input *in = input_of(MAIN " 4000", MAIN " 4000\n" MAIN ";<not sampled> 4000");
	struct diff *d = compare(in, DIFF_ABSOLUTE, NULL);
	const struct diff_function *f = function_named(d, "<not sampled>");

	(void)state;
	assert_true(f->is_unsampled);
	assert_int_equal(f->class, DIFF_UNDETERMINED);
	assert_int_equal(f->self_class, DIFF_UNDETERMINED);
	assert_true(isnan((double)f->measure.q));
	assert_int_equal(node_at(d, "main;<not sampled>")->class, DIFF_UNDETERMINED);
	assert_int_equal(d->total.value, 8000);
	diff_free(d);
	diff_input_free(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_identity_pairs),
		cmocka_unit_test(test_identity_differs),
		cmocka_unit_test(test_files_of_one_name_stay_apart),
		cmocka_unit_test(test_a_thousand_files_move),
		cmocka_unit_test(test_ambiguous_files_are_noted),
		cmocka_unit_test(test_identity_lambdas),
		cmocka_unit_test(test_rename_errors),
		cmocka_unit_test(test_rename_unused_is_noted),
		cmocka_unit_test(test_rename_is_told),
		cmocka_unit_test(test_align),
		cmocka_unit_test(test_comprehensions_of_two_versions),
		cmocka_unit_test(test_random_invariants),
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_effect_is_symmetric),
		cmocka_unit_test(test_only_the_topmost_new_is_marked),
		cmocka_unit_test(test_share_is_relative_to_the_centre),
		cmocka_unit_test(test_scale),
		cmocka_unit_test(test_empty_sides),
		cmocka_unit_test(test_unrelated_programs_are_noted),
		cmocka_unit_test(test_functions_count_recursion_once),
		cmocka_unit_test(test_text_files_say_noise_unknown),
		cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_spans_lie_in_all_blocks_that_they_last_for),
		cmocka_unit_test(test_waits_count_as_many_samples_as_they_are),
		cmocka_unit_test(test_what_is_counted_is_as_sure_as_runs_are_presumed),
		cmocka_unit_test(test_time_without_samples_is_no_finding),
		cmocka_unit_test(test_ticks_beyond_32_bits),
		cmocka_unit_test(test_reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
