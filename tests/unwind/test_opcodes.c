/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The instruction of the leaf frame, in every layout. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rows.h"
#include "world.h"

enum { ANY_MIN = 6, ANY_MAX = 15 };
enum { RUNS = -1, CALLS = 3 }; /* stacktop: 3.11, 3.12 */

static const struct scenario {
	const char *name;
	unsigned minor_min, minor_max;
	__u8 bytecode[24];
	__s64 instr;
	__s32 stacktop;
	__u16 want;
} cases[] = {
	{ "the first one", ANY_MIN, ANY_MAX, { 9, 1, 23, 0 }, 0, RUNS, 9 },
	{ "a later one", ANY_MIN, ANY_MAX, { 9, 1, 83, 2, 23, 0, 100, 1 }, 4, RUNS, 23 },
	{ "the last number", ANY_MIN, ANY_MAX, { 9, 1, 255, 255 }, 2, RUNS, 255 },
	{ "none yet", ANY_MIN, 10, { 9, 1 }, -2, RUNS, OPCODE_NONE },
	{ "behind EXTENDED_ARG", ANY_MIN, 10, { 9, 0, 144, 1, 144, 2, 100, 3 }, 2, RUNS, 100 },
	{ "EXTENDED_ARG and no end",
	  ANY_MIN,
	  10,
	  { 144, 0, 144, 1, 144, 2, 144, 3, 100, 3 },
	  0,
	  RUNS,
	  144 },
	{ "the number that was EXTENDED_ARG's", 13, ANY_MAX, { 144, 1, 100, 3 }, 0, RUNS, 144 },
	{ "call, its last cache entry", 11, 11, { 23, 1, 5, 0, 6, 0, 7, 0, 1, 0 }, 8, CALLS, 23 },
	{ "behind a call", 11, 11, { 23, 1, 5, 0, 6, 0, 7, 0, 1, 0, 1, 0 }, 10, RUNS, 1 },
	{ "what looks like a call, 4 before",
	  11,
	  11,
	  { 23, 1, 5, 0, 6, 0, 7, 0, 1, 0 },
	  8,
	  RUNS,
	  1 },
	{ "call, its last cache entry", 12, 12, { 171, 1, 5, 0, 6, 0, 7, 0 }, 6, CALLS, 171 },
	{ "call that has ended", 12, 12, { 23, 1, 5, 0, 6, 0, 0, 0 }, 6, RUNS, 23 },
	{ "what looks like a call, 3 before", 12, 12, { 23, 1, 5, 0, 6, 0, 9, 0 }, 6, RUNS, 9 },
	{ "subscript that calls", 12, 12, { 9, 1, 20, 0, 5, 0 }, 4, CALLS, 20 },
	{ "generator that runs", 12, 12, { 9, 1, 65, 0, 5, 0 }, 4, CALLS, 65 },
	{ "property that calls", 12, 12, { 77, 1, 23, 0, 0, 0, [18] = 7 }, 18, CALLS, 77 },
	{ "call without caches", 12, 12, { 9, 0, 9, 0, 9, 0, 142, 0 }, 6, CALLS, 142 },
	{ "as many caches as another version's",
	  12,
	  12,
	  { 23, 1, 5, 0, 6, 0, 7, 0, 1, 0 },
	  8,
	  CALLS,
	  1 },
};

/* A frame that calls and the leaf, whose code object's bytecode is the scenario's. */
static __u64 build(struct world *w, const struct scenario *c)
{
	const struct py_offsets *off = w->off;
	__u64 code = world_code(w, "leaf"), bytecode = code + off->code_adaptive, frame;

	if (off->frame_kind == FRAME_OBJECT) {
		world_new_page(w);
		bytecode = world_bytes(w, c->bytecode, sizeof(c->bytecode));
		memory_write_u64(w->m, code + off->code_adaptive, bytecode);
		bytecode += off->bytes_data;
		world_new_page(w);
	} else {
		memory_write(w->m, bytecode, c->bytecode, sizeof(c->bytecode));
	}
	world_enter(w);
	world_push(w, world_code(w, "caller"), 6);
	frame = world_push(w, code, 0);
	world_set_instr(w, frame, code, c->instr);
	if (off->frame_kind == FRAME_CFRAME)
		memory_write_u32(w->m, frame + off->frame_instr + 8, c->stacktop);
	world_publish(w);
	return bytecode;
}

static bool is_of(const struct scenario *c, const struct row *row)
{
	return row->off.minor >= c->minor_min && row->off.minor <= c->minor_max;
}

static void test_opcode_is_that_of_the_leaf(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (unsigned v = 0; v < row_count; v++) {
			struct world w;
			__u16 got;

			if (!is_of(&cases[i], &rows[v]))
				continue;
			world_init(&w, &rows[v].off);
			build(&w, &cases[i]);
			world_unwind(&w);
			got = unwinder_opcode(w.off);
			if (got != cases[i].want)
				world_fail(rows[v].name, cases[i].name, "%u, want %u", got,
					   cases[i].want);
			world_release(&w);
		}
	}
}

/* Up to 3.10 the bytecode is an object of its own, whose page may be missing. */
static void test_opcode_is_unknown_where_the_bytecode_is_missing(void **state)
{
	(void)state;
	for (unsigned v = 0; v < row_count; v++) {
		struct world w;
		__u64 bytecode;

		if (rows[v].off.frame_kind != FRAME_OBJECT)
			continue;
		world_init(&w, &rows[v].off);
		bytecode = build(&w, &cases[0]);
		memory_swap_out(w.m, bytecode, 1);
		world_unwind(&w);
		if (unwinder_opcode(w.off) != OPCODE_NONE)
			world_fail(rows[v].name, "page swapped out", "an opcode");
		memory_read_in(unwinder_scratch()->faults[0].addr,
			       unwinder_scratch()->faults[0].bytes);
		if (unwinder_opcode(w.off) != cases[0].want)
			world_fail(rows[v].name, "page read in", "no opcode");
		world_release(&w);
	}
}

static void test_opcode_is_unknown_in_machine_code_and_without_frames(void **state)
{
	(void)state;
	for (unsigned v = 0; v < row_count; v++) {
		struct world w;

		world_init(&w, &rows[v].off);
		build(&w, &cases[0]);
		if (rows[v].off.tstate_executor != OFF_NONE) {
			memory_write_u64(w.m, w.tstate + w.off->tstate_executor, w.interp);
			world_unwind(&w);
			if (unwinder_opcode(w.off) != OPCODE_NONE)
				world_fail(rows[v].name, "machine code", "an opcode");
		}
		w.top = 0;
		world_publish(&w);
		world_unwind(&w);
		if (unwinder_opcode(w.off) != OPCODE_NONE)
			world_fail(rows[v].name, "no frame", "an opcode");
		world_release(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_opcode_is_that_of_the_leaf),
		WORLD_TEST(test_opcode_is_unknown_where_the_bytecode_is_missing),
		WORLD_TEST(test_opcode_is_unknown_in_machine_code_and_without_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
