/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Frame chains of every layout: whole, deep, cut, cyclic, with missing pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rows.h"
#include "world.h"

enum { ANY_MIN = 6, ANY_MAX = 15 };

/* What a walk over a world that build() made must give. */
struct scenario {
	const char *name;
	unsigned minor_min, minor_max;
	void (*build)(struct world *w, unsigned arg);
	unsigned arg;
	enum unwind_status status;
	unsigned depth;
	unsigned flags; /* enum sample_flag, all of them */
	bool has_fault;
};

static void run_scenario(const struct scenario *c, const struct row *row)
{
	struct world w;
	struct unwind_result r;

	world_init(&w, &row->off);
	c->build(&w, c->arg);
	r = world_unwind(&w);
	world_check(c->name, row->name, &w, &r, c->status, c->depth);
	if (r.flags != c->flags)
		world_fail(row->name, c->name, "flags %#x, want %#x", r.flags, c->flags);
	if (r.has_fault != c->has_fault)
		world_fail(row->name, c->name, "has_fault %d, want %d", r.has_fault, c->has_fault);
	if (memory_reads(w.m) > 6 * 2 * FRAMES_MAX)
		world_fail(row->name, c->name, "%zu reads", memory_reads(w.m));
	world_release(&w);
}

static void run_scenarios(const struct scenario *cases, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (unsigned v = 0; v < row_count; v++)
			if (rows[v].off.minor >= cases[i].minor_min &&
			    rows[v].off.minor <= cases[i].minor_max)
				run_scenario(&cases[i], &rows[v]);
}

#define RUN(cases) run_scenarios(cases, sizeof(cases) / sizeof((cases)[0]))

/* --- Complete stacks ----------------------------------------------------------------------------
 */

static void build_stack(struct world *w, unsigned depth)
{
	world_enter(w);
	world_recurse(w, depth);
	world_publish(w);
}

/* Python calls C, which calls Python, at every level. */
static void build_through_c(struct world *w, unsigned depth)
{
	__u64 code = world_code(w, "key"), other = world_code(w, "compare");

	for (unsigned i = 0; i < depth; i++) {
		world_enter(w);
		world_push(w, i & 1 ? code : other, 2 * i);
	}
	world_publish(w);
}

/* Generators live on the heap, the functions between them on the data stack. */
static void build_alternating(struct world *w, unsigned depth)
{
	__u64 gen = world_code(w, "gen"), function = world_code(w, "function");

	world_enter(w);
	for (unsigned i = 0; i < depth; i++) {
		if (i & 1)
			world_push_generator(w, gen, 2 * i);
		else
			world_push(w, function, 2 * i);
	}
	world_publish(w);
}

/* Data-stack chunks are not neighbours, and a newer one can lie below an older one. */
static void build_chunks(struct world *w, unsigned depth)
{
	__u64 code = world_code(w, "chunk");

	world_enter(w);
	for (unsigned i = 0; i < depth; i++) {
		if (i % 10 == 0)
			w->stack = WORLD_STACK + (i / 10 * 7 % 11) * 0x10000 + 24;
		world_push(w, code, 2 * i);
	}
	world_publish(w);
}

/* The oldest frame starts shift bytes before the end of a page; nothing lies before that page. */
static void build_across_page(struct world *w, unsigned shift)
{
	__u64 code = world_code(w, "edge");

	world_enter(w);
	w->stack = WORLD_STACK + 16 * PAGE_BYTES - shift;
	for (unsigned i = 0; i < 150; i++)
		world_push(w, code, 2 * i);
	world_publish(w);
}

static void test_walk_finds_every_frame(void **state)
{
	static const struct scenario cases[] = {
		{ "depth 1", ANY_MIN, ANY_MAX, build_stack, 1, UNWIND_COMPLETE, 1, 0, 0 },
		{ "depth 2", ANY_MIN, ANY_MAX, build_stack, 2, UNWIND_COMPLETE, 2, 0, 0 },
		{ "depth 50", ANY_MIN, ANY_MAX, build_stack, 50, UNWIND_COMPLETE, 50, 0, 0 },
		{ "depth 1000", ANY_MIN, ANY_MAX, build_stack, 1000, UNWIND_COMPLETE, 1000, 0, 0 },
		{ "one below the limit", ANY_MIN, ANY_MAX, build_stack, FRAMES_MAX - 1,
		  UNWIND_COMPLETE, FRAMES_MAX - 1, 0, 0 },
		{ "at the limit", ANY_MIN, ANY_MAX, build_stack, FRAMES_MAX, UNWIND_COMPLETE,
		  FRAMES_MAX, 0, 0 },
		{ "one past the limit", ANY_MIN, ANY_MAX, build_stack, FRAMES_MAX + 1,
		  UNWIND_TRUNCATED, FRAMES_MAX, 0, 0 },
		{ "far past the limit", ANY_MIN, ANY_MAX, build_stack, 2 * FRAMES_MAX,
		  UNWIND_TRUNCATED, FRAMES_MAX, 0, 0 },
		{ "through C, depth 2", ANY_MIN, ANY_MAX, build_through_c, 2, UNWIND_COMPLETE, 2, 0,
		  0 },
		{ "through C, depth 1000", ANY_MIN, ANY_MAX, build_through_c, 1000, UNWIND_COMPLETE,
		  1000, 0, 0 },
		{ "through C, at the limit", ANY_MIN, ANY_MAX, build_through_c, FRAMES_MAX,
		  UNWIND_COMPLETE, FRAMES_MAX, 0, 0 },
		{ "through C, past the limit", ANY_MIN, ANY_MAX, build_through_c, FRAMES_MAX + 1,
		  UNWIND_TRUNCATED, FRAMES_MAX, 0, 0 },
		{ "generators and functions by turns", ANY_MIN, ANY_MAX, build_alternating, 200,
		  UNWIND_COMPLETE, 200, 0, 0 },
		{ "scattered chunks", ANY_MIN, ANY_MAX, build_chunks, 100, UNWIND_COMPLETE, 100, 0,
		  0 },
	};

	(void)state;
	RUN(cases);
}

static void test_walk_reads_frames_across_page_ends(void **state)
{
	(void)state;
	for (unsigned shift = 0; shift <= 160; shift += 8) {
		struct scenario c = { "across a page end",
				      11,
				      ANY_MAX,
				      build_across_page,
				      shift,
				      UNWIND_COMPLETE,
				      150,
				      0,
				      0 };

		run_scenarios(&c, 1);
	}
}

/* The blocks are what makes deep stacks cheap: at most one read a frame for its code object. */
static void test_walk_reads_the_data_stack_in_blocks(void **state)
{
	const unsigned depth = 1000;
	struct world w;

	(void)state;
	for (unsigned v = 0; v < row_count; v++) {
		unsigned reads_a_frame = rows[v].off.code_version == OFF_NONE ? 5 : 1;

		if (rows[v].off.frame_kind == FRAME_OBJECT)
			continue;
		world_init(&w, &rows[v].off);
		build_stack(&w, depth);
		memory_use(w.m);
		world_unwind(&w);
		/* 40 blocks of 4 KiB hold 1000 frames of 80 to 152 bytes; what code objects say is
		 * read once. */
		if (memory_reads(w.m) > depth * reads_a_frame + 80)
			world_fail(rows[v].name, "deep stack", "%zu reads for %u frames",
				   memory_reads(w.m), depth);
		world_release(&w);
	}
}

/* --- Missing pages ------------------------------------------------------------------------------
 */

enum missing { MISSING_FRAME, MISSING_CODE, MISSING_NAME, MISSING_LINES };

/* Ten frames on the heap, each on pages of its own; frame number arg, leaf first, is not there. */
static void build_missing_frame(struct world *w, unsigned arg)
{
	__u64 code = world_code(w, "frame"), frames[10];

	world_enter(w);
	for (unsigned i = 0; i < 10; i++) {
		world_new_page(w);
		frames[9 - i] = world_push_generator(w, code, 2 * i);
	}
	world_publish(w);
	memory_remove(w->m, frames[arg], w->off->frame_size);
}

/* The same with three pages of data stack, the middle one missing: frames behind it are lost. */
static void build_missing_stack_page(struct world *w, unsigned arg)
{
	__u64 code = world_code(w, "frame");

	(void)arg;
	world_enter(w);
	world_push(w, code, 0);
	w->stack = WORLD_STACK + PAGE_BYTES;
	world_push(w, code, 0);
	w->stack = WORLD_STACK + 2 * PAGE_BYTES;
	for (unsigned i = 0; i < 5; i++)
		world_push(w, code, 2 * i);
	world_publish(w);
	memory_remove(w->m, WORLD_STACK + PAGE_BYTES, PAGE_BYTES);
}

/* A frame whose head lies on two pages; the newer one of its halves, or the older one, is gone. */
static void build_missing_half(struct world *w, unsigned arg)
{
	__u64 code = world_code(w, "frame");

	world_enter(w);
	w->stack = WORLD_STACK + PAGE_BYTES - 40;
	world_push(w, code, 0);
	world_enter(w);
	w->stack = WORLD_STACK + 4 * PAGE_BYTES;
	for (unsigned i = 0; i < 3; i++)
		world_push(w, code, 2 * i);
	world_publish(w);
	memory_remove(w->m, WORLD_STACK + arg * PAGE_BYTES, 1);
}

static void build_missing_boundary(struct world *w, unsigned arg)
{
	__u64 code = world_code(w, "frame"), boundary;

	(void)arg;
	world_enter(w);
	world_push(w, code, 2);
	w->cstack += 3 * PAGE_BYTES;
	world_enter(w);
	boundary = w->top;
	world_push(w, code, 4);
	world_push(w, code, 6);
	w->cstack += 3 * PAGE_BYTES;
	world_enter(w); /* so that no cframe that is read lies on the missing page */
	world_push(w, code, 8);
	world_publish(w);
	memory_remove(w->m, boundary, 1);
	world_lose_boundary(w, 1);
}

static void test_walk_keeps_the_leaf_end_before_a_missing_page(void **state)
{
	static const struct scenario cases[] = {
		{ "leaf", ANY_MIN, ANY_MAX, build_missing_frame, 0, UNWIND_FAULT, 0, 0, true },
		{ "second", ANY_MIN, ANY_MAX, build_missing_frame, 1, UNWIND_FAULT, 1, 0, true },
		{ "fifth", ANY_MIN, ANY_MAX, build_missing_frame, 4, UNWIND_FAULT, 4, 0, true },
		{ "root", ANY_MIN, ANY_MAX, build_missing_frame, 9, UNWIND_FAULT, 9, 0, true },
		{ "page of the data stack", 11, ANY_MAX, build_missing_stack_page, 0, UNWIND_FAULT,
		  5, 0, true },
		{ "older half of a frame", 11, ANY_MAX, build_missing_half, 0, UNWIND_FAULT, 3, 0,
		  true },
		{ "newer half of a frame", 11, ANY_MAX, build_missing_half, 1, UNWIND_FAULT, 3, 0,
		  true },
		{ "boundary frame", 12, ANY_MAX, build_missing_boundary, 0, UNWIND_FAULT, 3, 0,
		  true },
	};

	(void)state;
	RUN(cases);
}

/* Five frames; the third one's code object is on pages of its own, and part of it is missing. */
static void build_missing_code(struct world *w, unsigned what)
{
	static const __u8 lines[] = { 2, 1 };
	struct code_parts parts = { .first_line = 3, .version = 77 };
	__u64 code = world_code(w, "whole"), holed, gone;

	parts.filename = world_str(w, "/srv/app/main.py");
	world_new_page(w);
	parts.name = world_str(w, "holed");
	parts.qualname = world_str(w, "holed");
	world_new_page(w);
	parts.lines = world_bytes(w, lines, sizeof(lines));
	world_new_page(w);
	holed = world_code_of(w, &parts);
	world_new_page(w);
	gone = what == MISSING_NAME ? parts.name : what == MISSING_LINES ? parts.lines : holed;

	world_enter(w);
	for (unsigned i = 0; i < 5; i++)
		world_push(w, i == 2 ? holed : code, 2 * i + 2);
	w->want[2].flags |= FRAME_UNREADABLE;
	world_publish(w);
	memory_remove(w->m, gone, 1);
}

static void test_walk_goes_on_behind_an_unreadable_code_object(void **state)
{
	static const struct scenario cases[] = {
		{ "code object", ANY_MIN, ANY_MAX, build_missing_code, MISSING_CODE,
		  UNWIND_COMPLETE, 5, SAMPLE_CODE_FAULT, true },
		{ "its name, compared at first", ANY_MIN, ANY_MAX, build_missing_code, MISSING_NAME,
		  UNWIND_COMPLETE, 5, SAMPLE_CODE_FAULT, true },
		{ "its line table, compared at first", ANY_MIN, ANY_MAX, build_missing_code,
		  MISSING_LINES, UNWIND_COMPLETE, 5, SAMPLE_CODE_FAULT, true },
	};

	(void)state;
	RUN(cases);
}

static void test_first_frame_says_when_the_cframe_is_missing(void **state)
{
	struct world w;

	(void)state;
	for (unsigned v = 0; v < row_count; v++) {
		struct unwind_result r;

		if (rows[v].off.frame_kind != FRAME_CFRAME)
			continue;
		world_init(&w, &rows[v].off);
		build_stack(&w, 3);
		memory_remove(w.m, w.cframe, 1);
		r = world_unwind(&w);
		if (r.error != PY_FAULT)
			world_fail(rows[v].name, "no cframe", "error %d, want PY_FAULT", r.error);
		world_release(&w);
	}
}

/* Interrupts are off meanwhile: what a slow machine does not walk in time is cut, and said to be.
 */
static void test_walk_ends_in_time(void **state)
{
	const unsigned depth = 1000;
	struct world w;

	(void)state;
	for (unsigned v = 0; v < row_count; v++) {
		struct unwind_result r;

		world_init(&w, &rows[v].off);
		build_stack(&w, depth);
		unwinder_set_clock(TIME_MAX_NS / 4);
		r = world_unwind(&w);
		if (r.error || r.status != UNWIND_LATE || r.depth >= depth ||
		    r.depth < 2 * TIME_STEPS || r.depth > 6 * TIME_STEPS)
			world_fail(rows[v].name, "a slow clock", "error %d, status %d, depth %u",
				   r.error, r.status, r.depth);
		unwinder_set_clock(0);
		r = world_unwind(&w);
		world_check("a fast clock", rows[v].name, &w, &r, UNWIND_COMPLETE, depth);
		world_release(&w);
	}
}

/* A recursion runs one code object, and its frames lie one behind the other. */
static void test_walk_of_a_recursion_takes_few_reads(void **state)
{
	const unsigned depth = 400;
	struct world w;

	(void)state;
	for (unsigned v = 0; v < row_count; v++) {
		struct unwind_result r;
		size_t reads;
		__u64 code;

		world_init(&w, &rows[v].off);
		world_enter(&w);
		code = world_code(&w, "again");
		for (unsigned i = 0; i < depth; i++)
			world_push(&w, code, 2 * i);
		world_publish(&w);
		world_unwind(&w); /* finds the thread state */
		memory_use(w.m);
		r = world_unwind(&w);
		reads = memory_reads(w.m);
		world_check("a recursion", rows[v].name, &w, &r, UNWIND_COMPLETE, depth);
		if (reads > depth / 4)
			world_fail(rows[v].name, "a recursion", "%zu reads", reads);
		world_release(&w);
	}
}

/* What is swapped out in the interrupt is read in by task work. */
static void test_walk_reads_in_pages_where_it_may(void **state)
{
	struct world w;

	(void)state;
	for (unsigned v = 0; v < row_count; v++) {
		struct unwind_result r;

		world_init(&w, &rows[v].off);
		build_alternating(&w, 20);
		memory_swap_out(w.m, w.want[7].code, 256);
		memory_swap_out(w.m, w.top, 1);
		r = world_unwind(&w);
		if (!r.error && !r.has_fault)
			world_fail(rows[v].name, "swapped out", "no fault in an interrupt");
		r = unwind_paged(w.off, &w.thread);
		memory_swap_in(w.m, w.want[7].code, 256);
		memory_swap_in(w.m, w.top, 1);
		world_check("pages read in", rows[v].name, &w, &r, UNWIND_COMPLETE, 20);
		if (r.has_fault || r.flags)
			world_fail(rows[v].name, "pages read in", "has_fault %d, flags %#x",
				   r.has_fault, r.flags);
		world_release(&w);
	}
}

/* --- Chains that are none -----------------------------------------------------------------------
 */

/* The root leads back to a frame length - 1 before it: all are seen over and over. */
static void build_cycle(struct world *w, unsigned length)
{
	__u64 code = world_code(w, "loop"), root, frame = 0;
	__u32 flags = w->off->frame_is_entry != OFF_NONE ? FRAME_ENTRY : 0; /* of the root */

	world_enter(w);
	root = world_push(w, code, 0);
	for (unsigned i = 1; i < length; i++)
		frame = world_push(w, code, 0);
	world_set_previous(w, root, frame);
	world_publish(w);
	w->want_depth = FRAMES_MAX;
	for (unsigned i = 1; i <= FRAMES_MAX; i++)
		w->want[FRAMES_MAX - i] = (struct world_frame){ code, 0, i % length ? 0 : flags };
}

static void build_boundary_cycle(struct world *w, unsigned length)
{
	__u64 first;

	world_enter(w);
	first = w->top;
	for (unsigned i = 1; i < length; i++)
		world_enter(w);
	world_set_previous(w, first, w->top);
	world_publish(w);
}

static void build_self(struct world *w, unsigned above)
{
	__u64 code = world_code(w, "self"), frame;

	world_enter(w);
	frame = world_push(w, code, 0);
	world_set_previous(w, frame, frame);
	world_forget_leaf(w, 1);
	for (unsigned i = 0; i < above; i++)
		world_push(w, code, 2 * i);
	world_publish(w);
}

/* previous leads to an address that no user space has. */
static void build_wild(struct world *w, unsigned above)
{
	static const __u64 wild[] = { 1, 0xffffffffffffffff, 0xffff888000000000, 0x8000000000000000,
				      8 };
	__u64 code = world_code(w, "wild");

	world_enter(w);
	w->top = wild[above % 5];
	for (unsigned i = 0; i < above; i++)
		world_push(w, code, 2 * i);
	world_lose_boundary(w, 0);
	world_publish(w);
}

static void test_walk_ends_in_chains_that_are_none(void **state)
{
	static const struct scenario cases[] = {
		{ "two frames in a circle", ANY_MIN, ANY_MAX, build_cycle, 2, UNWIND_TRUNCATED,
		  FRAMES_MAX, 0, 0 },
		{ "three frames in a circle", ANY_MIN, ANY_MAX, build_cycle, 3, UNWIND_TRUNCATED,
		  FRAMES_MAX, 0, 0 },
		{ "1000 frames in a circle", ANY_MIN, ANY_MAX, build_cycle, 1000, UNWIND_TRUNCATED,
		  FRAMES_MAX, 0, 0 },
		{ "two boundaries in a circle", 12, ANY_MAX, build_boundary_cycle, 2,
		  UNWIND_INVALID, 0, 0, 0 },
		{ "a boundary that is its own caller", 12, ANY_MAX, build_boundary_cycle, 1,
		  UNWIND_INVALID, 0, 0, 0 },
		{ "the leaf is its own caller", ANY_MIN, ANY_MAX, build_self, 0, UNWIND_INVALID, 0,
		  0, 0 },
		{ "the fourth frame is its own caller", ANY_MIN, ANY_MAX, build_self, 3,
		  UNWIND_INVALID, 3, 0, 0 },
		{ "caller at -1", ANY_MIN, ANY_MAX, build_wild, 1, UNWIND_FAULT, 1, 0, true },
		{ "caller in the kernel", ANY_MIN, ANY_MAX, build_wild, 2, UNWIND_FAULT, 2, 0,
		  true },
		{ "caller not canonical", ANY_MIN, ANY_MAX, build_wild, 3, UNWIND_FAULT, 3, 0,
		  true },
		{ "caller at 8", ANY_MIN, ANY_MAX, build_wild, 4, UNWIND_FAULT, 4, 0, true },
	};

	(void)state;
	RUN(cases);
}

/* --- What a frame says of itself ----------------------------------------------------------------
 */

static __u64 traceable_code(struct world *w, unsigned instructions)
{
	struct code_parts parts = {
		.name = world_str(w, "traceable"),
		.qualname = world_str(w, "traceable"),
		.filename = world_str(w, "/srv/app/main.py"),
		.lines = world_bytes(w, "", 0),
		.first_line = 1,
		.version = 5,
		.first_traceable = instructions,
	};

	return world_code_of(w, &parts);
}

/* Leaves that stand before their first traceable instruction, which is the third. */
static void build_incomplete(struct world *w, unsigned leaves)
{
	__u64 code = traceable_code(w, 2);

	world_enter(w);
	world_push(w, code, 8);
	world_push(w, code, 4);
	for (unsigned i = 0; i < leaves; i++)
		world_push(w, code, 2);
	world_publish(w);
	world_forget_leaf(w, leaves);
}

static void build_incomplete_generator(struct world *w, unsigned arg)
{
	__u64 code = traceable_code(w, 2);

	(void)arg;
	world_enter(w);
	world_push(w, code, 8);
	world_push_generator(w, code, 2);
	world_publish(w);
}

/* prev_instr and f_lasti lie before the first instruction until there is one. */
static void build_not_started(struct world *w, unsigned arg)
{
	__u64 code = traceable_code(w, 0), frame;

	(void)arg;
	world_enter(w);
	world_push(w, code, 8);
	frame = world_push_generator(w, code, 0);
	world_set_instr(w, frame, code, -2);
	w->want[1].flags |= FRAME_NOT_STARTED;
	world_publish(w);
}

static void build_owners(struct world *w, unsigned arg)
{
	__u64 code = world_code(w, "owned");

	(void)arg;
	world_enter(w);
	for (enum owner owner = OWNER_THREAD; owner < OWNER_BOUNDARY; owner++)
		world_push_at(w, world_alloc(w, w->off->frame_size), code, 2 * owner, owner);
	world_publish(w);
}

/* From 3.12 whoever owns a frame above FRAME_OBJECT is a C boundary; its code is never looked at.
 */
static void build_boundary_owners(struct world *w, unsigned owner)
{
	__u64 code = world_code(w, "shown");

	world_enter(w);
	world_push(w, code, 2);
	world_push_at(w, world_alloc(w, w->off->frame_size), 0xdead0000 | 1, 0, owner);
	world_forget_leaf(w, 1);
	w->is_entering = true;
	world_push(w, code, 4);
	world_publish(w);
}

static void build_only_boundaries(struct world *w, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		world_enter(w);
	world_publish(w);
}

/* A generator that is not linked to its caller, above it count functions of its own. */
static void build_cut(struct world *w, unsigned count)
{
	__u64 code = world_code(w, "cut"), generator;

	world_enter(w);
	world_push(w, code, 2);
	generator = world_push_generator(w, code, 4);
	world_set_previous(w, generator, 0);
	for (unsigned i = 0; i < count; i++)
		world_push(w, code, 2 * i);
	world_publish(w);
}

/* As greenlet leaves a chain while it switches: without its C boundaries, its end at NULL. */
static void build_without_boundaries(struct world *w, unsigned count)
{
	__u64 code = world_code(w, "greenlet"), oldest = 0;

	world_enter(w);
	for (unsigned i = 0; i < count; i++) {
		world_push(w, code, 2 * i);
		oldest = oldest ? oldest : w->top;
	}
	world_set_previous(w, oldest, 0);
	world_lose_boundary(w, 0);
	world_publish(w);
}

static void build_alone(struct world *w, unsigned instr)
{
	world_enter(w);
	world_push(w, world_code(w, "hub"), instr);
	world_set_previous(w, w->top, 0);
	world_lose_boundary(w, 0);
	world_publish(w);
}

static void build_tagged(struct world *w, unsigned tag)
{
	__u64 code = world_code(w, "tagged"), frame;

	world_enter(w);
	for (unsigned i = 0; i < 3; i++) {
		frame = world_push(w, code, 2 * i);
		memory_write_u64(w->m, frame + w->off->frame_code, code | tag);
	}
	world_publish(w);
}

static void test_walk_shows_what_a_traceback_shows(void **state)
{
	static const struct scenario cases[] = {
		{ "incomplete leaf", 11, ANY_MAX, build_incomplete, 1, UNWIND_COMPLETE, 2, 0, 0 },
		{ "two incomplete leaves", 11, ANY_MAX, build_incomplete, 2, UNWIND_COMPLETE, 2, 0,
		  0 },
		{ "generator before its first instruction", 11, ANY_MAX, build_incomplete_generator,
		  0, UNWIND_COMPLETE, 2, 0, 0 },
		{ "no instruction yet", ANY_MIN, 12, build_not_started, 0, UNWIND_COMPLETE, 2, 0,
		  0 },
		{ "all owners of Python frames", 11, ANY_MAX, build_owners, 0, UNWIND_COMPLETE, 3,
		  0, 0 },
		{ "owner 3 is a boundary", 12, ANY_MAX, build_boundary_owners, 3, UNWIND_COMPLETE,
		  2, 0, 0 },
		{ "owner 4 is a boundary", 12, ANY_MAX, build_boundary_owners, 4, UNWIND_COMPLETE,
		  2, 0, 0 },
		{ "owner 255 is a boundary", 12, ANY_MAX, build_boundary_owners, 255,
		  UNWIND_COMPLETE, 2, 0, 0 },
		{ "one boundary and nothing else", 12, ANY_MAX, build_only_boundaries, 1,
		  UNWIND_COMPLETE, 0, 0, 0 },
		{ "three boundaries and nothing else", 12, ANY_MAX, build_only_boundaries, 3,
		  UNWIND_COMPLETE, 0, 0, 0 },
		{ "generator alone", 11, ANY_MAX, build_cut, 0, UNWIND_CUT, 1, 0, 0 },
		{ "generator and what it called", 11, ANY_MAX, build_cut, 3, UNWIND_CUT, 4, 0, 0 },
		{ "functions of a greenlet that switches", 12, ANY_MAX, build_without_boundaries, 2,
		  UNWIND_COMPLETE, 2, 0, 0 },
		{ "a greenlet's only function", 12, ANY_MAX, build_alone, 4, UNWIND_COMPLETE, 1, 0,
		  0 },
		{ "function that is not linked yet", 12, ANY_MAX, build_alone, 0, UNWIND_CUT, 1, 0,
		  0 },
		{ "tag 1", 14, ANY_MAX, build_tagged, 1, UNWIND_COMPLETE, 3, 0, 0 },
		{ "tag 2", 15, ANY_MAX, build_tagged, 2, UNWIND_COMPLETE, 3, 0, 0 },
		{ "tag 3", 15, ANY_MAX, build_tagged, 3, UNWIND_COMPLETE, 3, 0, 0 },
	};

	(void)state;
	RUN(cases);
}

/* --- Compiled functions that have frames --------------------------------------------------------
 */

/* Between a frame object and its frame: Nuitka's least and most, and CPython's least. */
enum { NUITKA_LEAST = 104, NUITKA_MOST = 144, GENERATOR_LEAST = 216 };
#define HEAD(w) ((w)->off->str_length) /* sizeof(PyObject) */

/* A frame with an object in front of it, up to 3.10 the object itself, at a line. */
static void push_with_object(struct world *w, __u64 code, enum owner owner, unsigned distance,
			     __s32 line)
{
	const struct py_offsets *off = w->off;
	__u64 object = world_alloc(w, distance + off->frame_size + LOCALS_BYTES);
	__u64 frame = off->frame_kind == FRAME_OBJECT ? object : object + distance;

	world_push_at(w, frame, code, 0, owner);
	if (off->frame_kind == FRAME_OBJECT) {
		world_set_instr(w, frame, code, -off->lasti_unit);
		memory_write_u32(w->m, frame + off->frame_instr + 4, (__u32)line);
		return;
	}
	memory_write_u32(w->m, object + HEAD(w) + 24, (__u32)line);
	memory_write_u64(w->m, frame + off->frame_object, object);
	if (off->frame_is_entry != OFF_NONE)
		memory_write_u8(w->m, frame + off->frame_is_entry, 0x5a); /* never set */
}

static void push_compiled(struct world *w, enum owner owner, unsigned distance, __s32 line)
{
	struct world_frame *want = &w->want[w->want_depth];

	push_with_object(w, traceable_code(w, 9), owner, distance, line);
	want->instr = line;
	want->flags = FRAME_COMPILED;
}

static void build_compiled(struct world *w, unsigned distance)
{
	for (int line = 1; line <= 3; line++)
		push_compiled(w, OWNER_GENERATOR, distance, line);
	world_publish(w);
}

static void build_compiled_free_threaded(struct world *w, unsigned distance)
{
	push_compiled(w, OWNER_FRAME_OBJECT, distance, 100000);
	push_compiled(w, OWNER_FRAME_OBJECT, distance, 1);
	world_publish(w);
}

/* Compiled functions call functions of bytecode through C, and are called by them as C is. */
static void build_compiled_and_bytecode(struct world *w, unsigned depth)
{
	__u64 code = world_code(w, "bytecode");

	push_compiled(w, OWNER_GENERATOR, NUITKA_LEAST, 7);
	for (unsigned i = 0; i < depth; i++) {
		world_enter(w);
		world_push(w, code, 2);
		world_push_generator(w, code, 4);
		push_compiled(w, OWNER_GENERATOR, NUITKA_LEAST, 10 + (__s32)i);
	}
	world_publish(w);
}

/* A generator whose frame has an object of its own, as a traceback makes one. */
static void build_generator_with_object(struct world *w, unsigned distance)
{
	__u64 code = world_code(w, "generator");

	world_enter(w);
	world_push(w, code, 2);
	push_with_object(w, code, OWNER_GENERATOR, distance, 77);
	if (w->off->frame_is_entry != OFF_NONE)
		memory_write_u8(w->m, w->top + w->off->frame_is_entry, 0);
	world_publish(w);
}

/* A function whose frame has one, by chance in front of it. */
static void build_function_with_object(struct world *w, unsigned distance)
{
	__u64 code = world_code(w, "function");

	world_enter(w);
	world_push(w, code, 2);
	push_with_object(w, code, OWNER_THREAD, distance, 77);
	if (w->off->frame_is_entry != OFF_NONE)
		memory_write_u8(w->m, w->top + w->off->frame_is_entry, 0);
	world_publish(w);
}

static void build_compiled_without_line(struct world *w, __s32 line)
{
	push_with_object(w, world_code(w, "lineless"), OWNER_GENERATOR, NUITKA_LEAST, line);
	if (w->off->frame_kind == FRAME_OBJECT)
		w->want[0].flags = FRAME_NOT_STARTED;
	world_publish(w);
}

static void build_compiled_with_no_line(struct world *w, unsigned arg)
{
	(void)arg;
	build_compiled_without_line(w, 0);
}

static void build_compiled_with_a_bad_line(struct world *w, unsigned arg)
{
	(void)arg;
	build_compiled_without_line(w, INT32_MIN);
}

static void test_walk_shows_compiled_functions_by_their_line(void **state)
{
	static const struct scenario cases[] = {
		{ "compiled functions", ANY_MIN, ANY_MAX, build_compiled, NUITKA_LEAST,
		  UNWIND_COMPLETE, 3, 0, 0 },
		{ "farther from their objects", ANY_MIN, ANY_MAX, build_compiled, NUITKA_MOST,
		  UNWIND_COMPLETE, 3, 0, 0 },
		{ "owned by frame objects", ANY_MIN, ANY_MAX, build_compiled_free_threaded,
		  NUITKA_MOST, UNWIND_COMPLETE, 2, 0, 0 },
		{ "compiled and bytecode", ANY_MIN, ANY_MAX, build_compiled_and_bytecode, 4,
		  UNWIND_COMPLETE, 13, 0, 0 },
		{ "no line", ANY_MIN, ANY_MAX, build_compiled_with_no_line, 0, UNWIND_COMPLETE, 1,
		  0, 0 },
		{ "a negative line", ANY_MIN, ANY_MAX, build_compiled_with_a_bad_line, 0,
		  UNWIND_COMPLETE, 1, 0, 0 },
		{ "generator with an object", 11, ANY_MAX, build_generator_with_object,
		  GENERATOR_LEAST, UNWIND_COMPLETE, 2, 0, 0 },
		{ "function with an object", 11, ANY_MAX, build_function_with_object, NUITKA_LEAST,
		  UNWIND_COMPLETE, 2, 0, 0 },
	};

	(void)state;
	RUN(cases);
}

/* 3.14+: only the leaf of a thread that runs machine code has a line that is approximate. */
static void test_walk_flags_the_frame_in_machine_code(void **state)
{
	struct unwind_result r;
	struct world w;

	(void)state;
	for (unsigned v = 0; v < row_count; v++) {
		if (rows[v].off.tstate_executor == OFF_NONE)
			continue;
		world_init(&w, &rows[v].off);
		build_stack(&w, 3);
		memory_write_u64(w.m, w.tstate + w.off->tstate_executor, w.interp);
		r = world_unwind(&w);
		if (r.depth != 3 || !(r.frames[0].flags & FRAME_IN_JIT) ||
		    r.frames[1].flags & FRAME_IN_JIT || r.frames[2].flags & FRAME_IN_JIT)
			world_fail(rows[v].name, "machine code", "not just the leaf is flagged");
		world_release(&w);
	}
}

/* Free-threaded 3.14+: a thread may run its own copy of the bytecode. */
static void build_thread_local_bytecode(struct world *w, unsigned index)
{
	const struct py_offsets *off = w->off;
	__u64 code = world_code(w, "tlbc"), array, copy, frame;

	array = world_alloc(w, 8 + 8 * (index + 1)); /* _PyCodeArray: size, entries */
	copy = world_alloc(w, 128);
	memory_write_u64(w->m, array, index + 1);
	memory_write_u64(w->m, array + 8, code + off->code_adaptive);
	memory_write_u64(w->m, array + 8 + 8 * index, copy);
	memory_write_u64(w->m, code + off->code_tlbc, array);

	world_enter(w);
	for (unsigned i = 0; i < 3; i++) {
		frame = world_push(w, code, 10 + 2 * i);
		memory_write_u64(w->m, frame + off->frame_instr, copy + 10 + 2 * i);
		memory_write_u32(w->m, frame + off->frame_tlbc_index, index);
	}
	world_publish(w);
}

static void test_walk_finds_instructions_in_thread_local_bytecode(void **state)
{
	(void)state;
	for (unsigned v = 0; v < row_count; v++) {
		struct scenario c = { "thread-local bytecode",
				      14,
				      ANY_MAX,
				      build_thread_local_bytecode,
				      2,
				      UNWIND_COMPLETE,
				      3,
				      0,
				      0 };

		if (rows[v].off.frame_tlbc_index != OFF_NONE)
			run_scenario(&c, &rows[v]);
	}
}

/* --- 3.11 and 3.12: a cframe that is published before it is filled in ---------------------------
 */

enum stale { STALE_SAME_DEPTH, STALE_DEEPER, STALE_UNREADABLE_CODE };

/*
 * main called C, which is entering the interpreter again. The new cframe lies where that of an
 * earlier call lay, and so still leads to that call's frame, whose caller was another one.
 */
static void build_stale_cframe(struct world *w, unsigned what)
{
	__u64 code = world_code(w, "live"), dead = world_code(w, "dead"), old_cframe, live;
	struct world_frame root, leaf;

	world_enter(w);
	world_push(w, code, 2);
	root = w->want[0];
	live = w->top;
	leaf = root;
	if (what != STALE_SAME_DEPTH) { /* the earlier call was made two frames further up */
		world_push(w, code, 4);
		world_push(w, code, 6);
	}
	world_enter(w);
	old_cframe = w->cframe;
	world_push(w, dead, 8);
	world_push(w, dead, 10);
	if (what == STALE_UNREADABLE_CODE)
		memory_write_u64(w->m, w->top + w->off->frame_code, 0x1000);
	world_publish(w);

	/* Back in main: the caller has gone, another one stands on the data stack. */
	w->top = live;
	w->want_depth = 0;
	w->want[w->want_depth++] = leaf;
	w->stack = WORLD_STACK + 0x8000;
	world_push(w, code, 12);
	memory_write_u64(w->m,
			 memory_u64(w->m, old_cframe + w->off->cframe_current + 8) +
				 w->off->cframe_current,
			 w->top);
}

static void test_walk_restarts_from_a_stale_cframe(void **state)
{
	static const struct scenario cases[] = {
		{ "called from the same frame", 11, 12, build_stale_cframe, STALE_SAME_DEPTH,
		  UNWIND_COMPLETE, 2, 0, 0 },
		{ "called from deeper", 11, 12, build_stale_cframe, STALE_DEEPER, UNWIND_COMPLETE,
		  2, 0, 0 },
		{ "its code object is gone", 11, 12, build_stale_cframe, STALE_UNREADABLE_CODE,
		  UNWIND_COMPLETE, 2, 0, 0 },
	};

	(void)state;
	RUN(cases);
}

/* Code objects of the dead frames are not described in its name. */
static void test_walk_describes_nothing_of_a_stale_cframe(void **state)
{
	struct world w;

	(void)state;
	for (unsigned v = 0; v < row_count; v++) {
		if (rows[v].off.frame_kind != FRAME_CFRAME)
			continue;
		world_init(&w, &rows[v].off);
		build_stale_cframe(&w, STALE_DEEPER);
		world_unwind(&w);
		if (unwinder_scratch()->walk.unsent != 1 ||
		    unwinder_scratch()->unsent[0].addr != w.want[0].code)
			world_fail(rows[v].name, "stale cframe", "%u code objects to describe",
				   unwinder_scratch()->walk.unsent);
		world_release(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_walk_finds_every_frame),
		WORLD_TEST(test_walk_reads_frames_across_page_ends),
		WORLD_TEST(test_walk_reads_the_data_stack_in_blocks),
		WORLD_TEST(test_walk_keeps_the_leaf_end_before_a_missing_page),
		WORLD_TEST(test_walk_goes_on_behind_an_unreadable_code_object),
		WORLD_TEST(test_first_frame_says_when_the_cframe_is_missing),
		WORLD_TEST(test_walk_ends_in_time),
		WORLD_TEST(test_walk_of_a_recursion_takes_few_reads),
		WORLD_TEST(test_walk_reads_in_pages_where_it_may),
		WORLD_TEST(test_walk_ends_in_chains_that_are_none),
		WORLD_TEST(test_walk_shows_what_a_traceback_shows),
		WORLD_TEST(test_walk_shows_compiled_functions_by_their_line),
		WORLD_TEST(test_walk_flags_the_frame_in_machine_code),
		WORLD_TEST(test_walk_finds_instructions_in_thread_local_bytecode),
		WORLD_TEST(test_walk_restarts_from_a_stale_cframe),
		WORLD_TEST(test_walk_describes_nothing_of_a_stale_cframe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
