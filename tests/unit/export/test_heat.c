/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/strbuf.h"
#include "export/heat.h"

/*
 * Stacks are "FILE:DEF:LINE ..." root first, of functions that are called by file and def; a frame
 * "<...>" is a marker.
 */
static uint32_t intern(struct profile *p, const char *s)
{
	uint32_t id;

	assert_int_equal(strtab_intern(p->strings, s, strlen(s), &id), 0);
	return id;
}

static uint32_t add_frame(struct profile *p, const char *word)
{
	struct frame f = { 0 };
	char file[8], name[32];
	uint32_t id;

	if (*word == '<') {
		f.name = intern(p, word);
		f.kind = FRAME_MARKER;
	} else {
		assert_int_equal(sscanf(word, "%7[a-z]:%u:%u", file, &f.first_line, &f.line), 3);
		snprintf(name, sizeof(name), "%s%u", file, f.first_line);
		f.name = intern(p, name);
		f.file = intern(p, file);
	}
	assert_int_equal(frametab_intern(p->frames, &f, &id), 0);
	return id;
}

static void add_stack(struct profile *p, const char *frames, uint64_t value)
{
	struct sample s = { .value = value };
	char text[256], *rest = text, *word;

	snprintf(text, sizeof(text), "%s", frames);
	while ((word = strsep(&rest, " ")))
		if (*word)
			assert_int_equal(
				stacktab_intern(p->stacks, s.stack, add_frame(p, word), &s.stack),
				0);
	assert_int_equal(profile_add_sample(p, &s), 0);
}

/* "a:1 self/total", then calls "a:1>a5 value". */
static void describe(const struct heat *h, const struct profile *p, struct strbuf *out)
{
	for (size_t i = 0; i < h->lines.len; i++) {
		const struct heat_line *l = &h->lines.items[i];
		size_t first, count = heat_calls_of(h, (uint32_t)i, &first);

		strbuf_appendf(out, "%s:%u %d/%d", strtab_get(p->strings, l->file), l->line,
			       (int)l->self, (int)l->total);
		for (size_t k = first; k < first + count; k++) {
			const struct heat_call *c = &h->calls.items[k];
			const struct frame *f = functions_get(&h->functions, c->function);

			strbuf_appendf(out, " >%s %d", strtab_get(p->strings, f->name),
				       (int)c->value);
		}
		strbuf_puts(out, "; ");
	}
	for (size_t i = 0; i < h->files.len; i++)
		strbuf_appendf(out, "%s %d/%d; ", strtab_get(p->strings, h->files.items[i].file),
			       (int)h->files.items[i].self, (int)h->files.items[i].total);
	strbuf_appendf(out, "all %d, nowhere %d", (int)h->whole, (int)h->placeless);
}

static void test_sums(void **state)
{
	static const struct {
		const char *name;
		struct {
			const char *frames;
			uint64_t value;
		} stacks[4];
		const char *want;
	} cases[] = {
		{ "nothing", { { 0 } }, "all 0, nowhere 0" },
		{ "a line's own, and what it calls",
		  { { "a:1:2 b:5:6", 10 }, { "a:1:2", 3 } },
		  "a:2 3/13 >b5 10; b:6 10/10; a 3/13; b 10/10; all 13, nowhere 0" },
		{ "what C it called is its own",
		  { { "a:1:2 <native>", 10 }, { "a:1:2 <GC>", 4 }, { "a:1:2", 1 } },
		  "a:2 15/15; a 15/15; all 15, nowhere 0" },
		{ "recursion counts once",
		  { { "a:1:2 a:1:2 a:1:2", 10 }, { "a:1:2 a:1:3", 5 } },
		  "a:2 10/15 >a1 15; a:3 5/5; a 15/15; all 15, nowhere 0" },
		{ "in turns, each once",
		  { { "a:1:2 b:5:6 a:1:2 b:5:6", 7 } },
		  "a:2 0/7 >b5 7; b:6 7/7 >a1 7; a 0/7; b 7/7; all 7, nowhere 0" },
		{ "over what has no line, the one outside calls",
		  { { "a:1:2 <GC> b:5:6", 7 } },
		  "a:2 0/7 >b5 7; b:6 7/7; a 0/7; b 7/7; all 7, nowhere 0" },
		{ "callees, the largest first",
		  { { "a:1:2 b:5:6", 1 }, { "a:1:2 b:9:9", 2 }, { "a:1:2 b:5:7", 2 } },
		  "a:2 0/5 >b5 3 >b9 2; b:6 1/1; b:7 2/2; b:9 2/2; a 0/5; b 5/5; all 5, nowhere "
		  "0" },
		{ "a line that is not known, no frames, no Python",
		  { { "a:1:0", 1 }, { "", 2 }, { "<GC>", 4 } },
		  "a:0 1/1; a 1/1; all 7, nowhere 6" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(strbuf_releasep) struct strbuf got = STRBUF_INIT;
		_cleanup_(cube_release) struct cube cube = { 0 };
		_cleanup_(heat_release) struct heat h = { 0 };
		_cleanup_(profile_freep) struct profile *p = NULL;

		assert_int_equal(profile_new(&p), 0);
		for (size_t k = 0; k < 4 && cases[i].stacks[k].frames; k++)
			add_stack(p, cases[i].stacks[k].frames, cases[i].stacks[k].value);
		assert_int_equal(cube_add(&cube, p), 0);
		assert_int_equal(cube_finish(&cube, p), 0);
		assert_int_equal(heat_find(&h, p, &cube), 0);
		describe(&h, p, &got);
		if (strcmp(strbuf_str(&got), cases[i].want))
			fail_msg("%s: got %s, want %s", cases[i].name, strbuf_str(&got),
				 cases[i].want);
	}
}

static void test_callers(void **state)
{
	_cleanup_(cube_release) struct cube cube = { 0 };
	_cleanup_(heat_release) struct heat h = { 0 };
	_cleanup_(profile_freep) struct profile *p = NULL;
	size_t first, defs, callers;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	add_stack(p, "a:1:2 b:5:6", 1);
	add_stack(p, "a:1:3 b:5:6", 8);
	add_stack(p, "a:1:3 b:5:7", 1);
	assert_int_equal(cube_add(&cube, p), 0);
	assert_int_equal(cube_finish(&cube, p), 0);
	assert_int_equal(heat_find(&h, p, &cube), 0);
	defs = heat_defs_of(&h, intern(p, "b"), &first);
	assert_int_equal(defs, 1);
	assert_int_equal(h.defs.items[first].line, 5);
	callers = heat_callers_of(&h, h.defs.items[first].function, &first);
	assert_int_equal(callers, 2);
	assert_int_equal(h.calls.items[h.callers.items[first]].value, 9);
	assert_int_equal(h.calls.items[h.callers.items[first + 1]].value, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_callers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
