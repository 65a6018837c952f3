/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/calltree.h"

/* A frame for each letter: the function is the letter in lower case, an upper one its line 2. */
static uint32_t letter_frame(struct profile *p, char letter)
{
	char name = (char)(letter | 0x20);
	struct frame f = { .line = name == letter ? 1 : 2, .first_line = 1 };
	uint32_t id;

	assert_int_equal(strtab_intern(p->strings, &name, 1, &f.name), 0);
	assert_int_equal(frametab_intern(p->frames, &f, &id), 0);
	return id;
}

/* One sample of "abc" (root first), with a weight. */
static void add(struct profile *p, const char *stack, uint32_t weight)
{
	struct sample s = { .value = weight };

	for (; *stack; stack++)
		assert_int_equal(
			stacktab_intern(p->stacks, s.stack, letter_frame(p, *stack), &s.stack), 0);
	assert_int_equal(profile_add_sample(p, &s), 0);
}

static char node_letter(const struct profile *p, const struct calltree_node *n)
{
	const struct frame *f = frametab_get(p->frames, n->frame);
	char letter = strtab_get(p->strings, f->name)[0];

	return f->line == 2 ? (char)(letter & ~0x20) : letter;
}

/* "a:self/total(children)" of a subtree, in order. */
static void print_tree(const struct profile *p, const struct calltree *t, uint32_t node, char *out,
		       size_t size)
{
	size_t len;

	for (uint32_t c = node + 1; c < t->nodes[node].end; c = t->nodes[c].end) {
		const struct calltree_node *n = &t->nodes[c];

		len = strlen(out);
		snprintf(out + len, size - len, "%s%c%d/%d", c > node + 1 ? " " : "",
			 node_letter(p, n), (int)n->self, (int)n->total);
		assert_int_equal(n->parent, node);
		if (n->end > c + 1) {
			len = strlen(out);
			snprintf(out + len, size - len, "(");
			print_tree(p, t, c, out, size);
			len = strlen(out);
			snprintf(out + len, size - len, ")");
		}
	}
}

static void print_functions(const struct profile *p, const struct calltree *t, char *out,
			    size_t size)
{
	for (size_t i = 0; i < t->function_count; i++) {
		const struct calltree_function *f = &t->functions[i];
		size_t len = strlen(out);

		snprintf(out + len, size - len, "%s%s%d/%d", i ? " " : "",
			 strtab_get(p->strings, f->name), (int)f->self, (int)f->total);
	}
}

static void test_calltree_new_sums_orders_and_merges(void **state)
{
	static const struct {
		const char *name;
		struct {
			const char *stack;
			uint32_t weight;
		} samples[6];
		enum calltree_key key;
		const char *tree, *functions;
	} cases[] = {
		{ "no samples", { { 0 } }, CALLTREE_BY_LINE, "", "" },
		{ "an empty stack is the root's own", { { "", 3 } }, CALLTREE_BY_LINE, "", "" },
		{ "one stack", { { "ab", 2 } }, CALLTREE_BY_LINE, "a0/2(b2/2)", "b2/2 a0/2" },
		{ "an inner frame has self",
		  { { "ab", 2 }, { "a", 3 } },
		  CALLTREE_BY_LINE,
		  "a3/5(b2/2)",
		  "a3/5 b2/2" },
		{ "largest sibling first",
		  { { "ab", 1 }, { "ac", 5 }, { "ad", 3 } },
		  CALLTREE_BY_LINE,
		  "a0/9(c5/5 d3/3 b1/1)",
		  "a0/9 c5/5 d3/3 b1/1" },
		{ "ties by frame id",
		  { { "ab", 1 }, { "ac", 1 } },
		  CALLTREE_BY_LINE,
		  "a0/2(b1/1 c1/1)",
		  "a0/2 b1/1 c1/1" },
		{ "two lines are two nodes",
		  { { "ab", 1 }, { "Ab", 2 } },
		  CALLTREE_BY_LINE,
		  "A0/2(b2/2) a0/1(b1/1)",
		  "b3/3 a0/3" },
		{ "and one function",
		  { { "ab", 1 }, { "Ab", 2 } },
		  CALLTREE_BY_FUNCTION,
		  "a0/3(b3/3)",
		  "b3/3 a0/3" },
		{ "lines merge at every depth, shown by their first frame",
		  { { "aBc", 1 }, { "Abc", 2 }, { "abC", 4 } },
		  CALLTREE_BY_FUNCTION,
		  "a0/7(B0/7(c7/7))",
		  "c7/7 a0/7 b0/7" },
		{ "recursion counts once",
		  { { "aaa", 4 }, { "aba", 2 }, { "ab", 1 } },
		  CALLTREE_BY_FUNCTION,
		  "a0/7(a0/4(a4/4) b1/3(a2/2))",
		  "a6/7 b1/3" },
		{ "recursion over other lines, too",
		  { { "aA", 4 }, { "bA", 2 } },
		  CALLTREE_BY_LINE,
		  "a0/4(A4/4) b0/2(A2/2)",
		  "a6/6 b0/2" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(cube_release) struct cube c = { 0 };
		_cleanup_(calltree_freep) struct calltree *t = NULL;
		_cleanup_(profile_freep) struct profile *p = NULL;
		char tree[256] = "", functions[256] = "";
		uint64_t sum = 0;

		assert_int_equal(profile_new(&p), 0);
		for (size_t k = 0; k < 6 && cases[i].samples[k].stack; k++) {
			add(p, cases[i].samples[k].stack, cases[i].samples[k].weight);
			sum += cases[i].samples[k].weight;
		}
		assert_int_equal(cube_add(&c, p), 0);
		assert_int_equal(calltree_new(p, &c, KIND_TICKS, cases[i].key, &t), 0);
		print_tree(p, t, 0, tree, sizeof(tree));
		print_functions(p, t, functions, sizeof(functions));
		if (strcmp(tree, cases[i].tree))
			fail_msg("%s: got %s, want %s", cases[i].name, tree, cases[i].tree);
		if (strcmp(functions, cases[i].functions))
			fail_msg("%s: got %s, want %s", cases[i].name, functions,
				 cases[i].functions);
		if (t->nodes[0].total != sum || t->nodes[0].end != t->node_count)
			fail_msg("%s: the root holds %d of %d", cases[i].name,
				 (int)t->nodes[0].total, (int)sum);
	}
}

/* By brute force over samples: what any function's self and total must be. */
static void expect_function(const struct profile *p, const struct calltree_function *f)
{
	const struct stack_entry *entries = stacktab_entries(p->stacks);
	uint64_t self = 0, total = 0;

	for (size_t i = 0; i < p->samples.len; i++) {
		const struct sample *s = &p->samples.items[i];
		bool is_in = false;

		for (uint32_t stack = s->stack; stack; stack = entries[stack].parent) {
			bool is_f = frametab_get(p->frames, entries[stack].frame)->name == f->name;

			is_in |= is_f;
			self += is_f && stack == s->stack ? s->value : 0;
		}
		total += is_in ? s->value : 0;
	}
	assert_int_equal(f->self, self);
	assert_int_equal(f->total, total);
}

static void test_calltree_new_agrees_with_brute_force(void **state)
{
	(void)state;
	srand(1);
	for (int round = 0; round < 40; round++) {
		_cleanup_(cube_release) struct cube c = { 0 };
		_cleanup_(calltree_freep) struct calltree *t = NULL;
		_cleanup_(profile_freep) struct profile *p = NULL;
		uint64_t sum = 0, self = 0;

		assert_int_equal(profile_new(&p), 0);
		for (int i = 0; i < 200; i++) {
			char stack[16] = "";
			int depth = 1 + rand() % 12;

			for (int k = 0; k < depth; k++)
				stack[k] = "abcdeABCDE"[rand() % 10];
			add(p, stack, 1 + (uint32_t)rand() % 5);
			sum += p->samples.items[i].value;
		}
		/* In two parts, as chunks of a file come. */
		assert_int_equal(cube_add(&c, p), 0);
		profile_clear_samples(p);
		assert_int_equal(cube_add(&c, p), 0);
		p->samples.len = 200;
		assert_int_equal(calltree_new(p, &c, KIND_TICKS,
					      round % 2 ? CALLTREE_BY_LINE : CALLTREE_BY_FUNCTION,
					      &t),
				 0);
		assert_int_equal(t->nodes[0].total, sum);
		assert_int_equal(t->function_count, 5);
		for (size_t i = 0; i < t->function_count; i++)
			expect_function(p, &t->functions[i]);
		for (size_t i = 0; i < t->node_count; i++) {
			const struct calltree_node *n = &t->nodes[i];
			uint64_t children = 0, previous = UINT64_MAX;

			for (uint32_t k = (uint32_t)i + 1; k < n->end; k = t->nodes[k].end) {
				assert_true(t->nodes[k].total <= previous);
				previous = t->nodes[k].total;
				children += previous;
			}
			assert_int_equal(n->total, n->self + children);
			self += n->self;
		}
		assert_int_equal(self, sum);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calltree_new_sums_orders_and_merges),
		cmocka_unit_test(test_calltree_new_agrees_with_brute_force),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
