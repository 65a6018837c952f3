/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Exceptions that are handled, and the collector. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "rows.h"
#include "world.h"

#define MANY 1000 /* generators inside each other */

#define BASE_EXC_SUBCLASS (1ULL << 30) /* of tp_flags: Py_TPFLAGS_BASE_EXC_SUBCLASS */

/* An object of a type with these tp_flags. */
static __u64 object_of(struct world *w, __u64 flags)
{
	__u64 head = w->off->str_length;
	__u64 type = world_alloc(w, head + TYPE_FLAGS + 8), object = world_alloc(w, 64);

	memory_write_u64(w->m, type + head + TYPE_FLAGS, flags);
	memory_write_u64(w->m, object + head - 8, type);
	return object;
}

static __u64 add_item(struct world *w, __u64 value, __u64 previous)
{
	__u64 item = world_alloc(w, w->off->exc_previous + 8);

	memory_write_u64(w->m, item + w->off->exc_value, value);
	memory_write_u64(w->m, item + w->off->exc_previous, previous);
	return item;
}

static bool has_exceptions(const struct py_offsets *off)
{
	return off->tstate_exc_info != OFF_NONE;
}

static void begin(struct world *w, const struct py_offsets *off)
{
	world_init(w, off);
	world_enter(w);
	world_push(w, world_code(w, "main"), 2);
	world_push(w, world_code(w, "work"), 4);
	world_publish(w);
}

static void set_item(struct world *w, __u64 item)
{
	memory_write_u64(w->m, w->tstate + w->off->tstate_exc_info, item);
}

static bool handles(struct world *w)
{
	return world_unwind(w).flags & SAMPLE_HANDLES;
}

static void test_note_exception_finds_the_first_one(void **state)
{
	/* Of the items, innermost first: 'e' an exception, 'n' None, '0' nothing. */
	static const struct {
		const char *name, *items;
		bool want;
	} cases[] = {
		{ "no item", "", false },
		{ "nothing yet", "0", false },
		{ "handled one before", "n", false },
		{ "in a handler", "e", true },
		{ "generator in a handler", "0e", true },
		{ "generator that handled one, in a handler", "ne", true },
		{ "generator's own", "en", true },
		{ "generators in each other", "0n00n", false },
		{ "generators in each other in a handler", "0n00ne", true },
	};

	(void)state;
	for (unsigned i = 0; i < row_count; i++) {
		const struct py_offsets *off = &rows[i].off;

		for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
			struct world w;
			__u64 none, exception, item = 0;
			size_t count = 0;

			begin(&w, off);
			none = object_of(&w, ~BASE_EXC_SUBCLASS);
			exception = object_of(&w, BASE_EXC_SUBCLASS);
			while (cases[c].items[count])
				count++;
			for (; has_exceptions(off) && count; count--) {
				char kind = cases[c].items[count - 1];

				item = add_item(&w,
						kind == 'e'   ? exception
						: kind == 'n' ? none
							      : 0,
						item);
			}
			if (has_exceptions(off))
				set_item(&w, item);
			/* The second time it knows its None. */
			for (int again = 0; again < 2; again++)
				if (handles(&w) != (cases[c].want && has_exceptions(off)))
					world_fail(rows[i].name, cases[c].name, "time %d: not so",
						   again);
			world_release(&w);
		}
	}
}

/* Chains that no interpreter makes, and memory that is not there: no exception, and an end. */
static void test_note_exception_ends(void **state)
{
	(void)state;
	for (unsigned i = 0; i < row_count; i++) {
		const struct py_offsets *off = &rows[i].off;
		__u64 exception, item = 0;
		struct world w;

		if (!has_exceptions(off))
			continue;
		begin(&w, off);
		exception = object_of(&w, BASE_EXC_SUBCLASS);
		set_item(&w, 0x123450);
		if (handles(&w))
			world_fail(rows[i].name, "item missing", "handles");
		set_item(&w, add_item(&w, 0x123450, 0));
		if (handles(&w))
			world_fail(rows[i].name, "an object that cannot be read", "handles");
		item = add_item(&w, 0, 0);
		memory_write_u64(w.m, item + off->exc_previous, item);
		set_item(&w, item);
		if (handles(&w))
			world_fail(rows[i].name, "an item behind itself", "handles");
		item = add_item(&w, exception, 0);
		for (unsigned n = 0; n < MANY; n++)
			item = add_item(&w, 0, item);
		set_item(&w, item);
		if (handles(&w))
			world_fail(rows[i].name, "too many items", "handles");
		world_release(&w);
	}
}

/* A slot of trusts may hold another process's None, and an exception may lie where that was. */
static void test_note_exception_believes_no_other_none(void **state)
{
	(void)state;
	for (unsigned i = 0; i < row_count; i++) {
		const struct py_offsets *off = &rows[i].off;
		struct world w;

		if (!has_exceptions(off))
			continue;
		begin(&w, off);
		set_item(&w, add_item(&w, object_of(&w, ~BASE_EXC_SUBCLASS), 0));
		trust_of(w.thread.process)->none = 0x7f1000f00000;
		if (handles(&w))
			world_fail(rows[i].name, "None of another process", "handles");
		w.thread.process ^= 0x100000000;
		set_item(&w, add_item(&w, object_of(&w, BASE_EXC_SUBCLASS), 0));
		if (!handles(&w))
			world_fail(rows[i].name, "next process", "does not handle");
		world_release(&w);
	}
}

static void set_collecting(struct world *w, __u32 collecting, __u64 frame)
{
	const struct py_offsets *off = w->off;

	if (off->interp_gc_collecting != OFF_NONE)
		memory_write_u32(w->m, w->interp + off->interp_gc_collecting, collecting);
	else if (off->runtime_gc_collecting != OFF_NONE)
		memory_write_u32(w->m, w->thread.runtime + off->runtime_gc_collecting, collecting);
	if (off->interp_gc_frame != OFF_NONE)
		memory_write_u64(w->m, w->interp + off->interp_gc_frame, frame);
}

static void set_attached(struct world *w, bool is_attached)
{
	const struct py_offsets *off = w->off;

	world_set_current(w, is_attached ? w->tstate : 0);
	world_set_status(w, w->tstate,
			 off->status_bound_gilstate | (is_attached ? off->status_active : 0));
}

/* Frame that must be FRAME_COLLECTS, counted from the leaf; -1: none. */
static void check_collects(const char *row, const char *name, struct world *w, int want)
{
	struct unwind_result r = world_unwind(w);

	if (!!(r.flags & SAMPLE_IN_GC) != (want >= 0))
		world_fail(row, name, "flags %#x", r.flags);
	for (int i = 0; i < (int)r.depth; i++)
		if (!!(r.frames[i].flags & FRAME_COLLECTS) != (i == want))
			world_fail(row, name, "frame %d has flags %#x", i, r.frames[i].flags);
}

static void test_note_collection_tells_who(void **state)
{
	(void)state;
	for (unsigned i = 0; i < row_count; i++) {
		const struct py_offsets *off = &rows[i].off;
		bool has_collector = off->interp_gc_collecting != OFF_NONE ||
				     off->runtime_gc_collecting != OFF_NONE;
		bool has_current = off->runtime_tstate_current != OFF_NONE || off->status_active;
		bool has_frame = off->interp_gc_frame != OFF_NONE;
		int leaf = has_collector && has_current ? 0 : -1;
		struct world w;
		__u64 caller;

		begin(&w, off);
		caller = memory_u64(w.m, w.top + off->frame_previous);
		set_attached(&w, true);
		set_collecting(&w, 0, 0);
		check_collects(rows[i].name, "not collecting", &w, -1);
		set_collecting(&w, 1, 0);
		check_collects(rows[i].name, "collects, no frame said", &w, leaf);
		set_collecting(&w, 1, w.top);
		check_collects(rows[i].name, "collects", &w, leaf);
		set_collecting(&w, 1, caller);
		check_collects(rows[i].name, "in a finalizer", &w, has_frame ? 1 : leaf);
		set_collecting(&w, 1, WORLD_HEAP);
		check_collects(rows[i].name, "another thread's frame", &w, has_frame ? -1 : leaf);
		set_attached(&w, false);
		check_collects(rows[i].name, "another thread collects", &w, -1);
		set_collecting(&w, 1, w.top);
		check_collects(rows[i].name, "let go of the GIL meanwhile", &w, has_frame ? 0 : -1);
		world_release(&w);
	}
}

/* The frame may be a C boundary: then the collector runs on the one that it leads to. */
static void test_walk_takes_the_frame_behind_a_boundary(void **state)
{
	(void)state;
	for (unsigned i = 0; i < row_count; i++) {
		const struct py_offsets *off = &rows[i].off;
		struct world w;

		if (off->interp_gc_frame == OFF_NONE)
			continue;
		begin(&w, off);
		world_enter(&w);
		set_collecting(&w, 1, w.top);
		world_push(&w, world_code(&w, "__del__"), 2);
		world_publish(&w);
		check_collects(rows[i].name, "boundary", &w, 1);
		world_release(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_note_exception_finds_the_first_one),
		WORLD_TEST(test_note_exception_ends),
		WORLD_TEST(test_note_exception_believes_no_other_none),
		WORLD_TEST(test_note_collection_tells_who),
		WORLD_TEST(test_walk_takes_the_frame_behind_a_boundary),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
