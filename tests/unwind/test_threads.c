/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From a thread's TLS base to its PyThreadState. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "rows.h"
#include "world.h"

#define OTHER_THREAD 0x7f3000100740ull

/* What the search must give. */
struct want {
	int error;
	__u64 tstate;
	bool has_walked;
	unsigned flags; /* enum sample_flag, or CALLED: from another interpreter */
};
#define CALLED (1U << 31)

/* Each thread state runs a function of its own, so that the walk tells which one was found. */
static void give_frame(struct world *w, __u64 tstate)
{
	__u64 main_tstate = w->tstate;

	w->tstate = tstate;
	w->top = 0;
	w->cframe = tstate + 376;
	world_enter(w);
	world_push(w, world_code(w, "run"), 2);
	world_publish(w);
	w->want_depth = 0;
	w->tstate = main_tstate;
}

static __u64 add_tstate(struct world *w, __u64 interp, __u64 pthread_self, __u32 status)
{
	__u64 tstate = world_tstate(w, interp, pthread_self);

	world_set_status(w, tstate, status);
	give_frame(w, tstate);
	return tstate;
}

static void check(const char *row, const char *name, struct world *w, struct want want)
{
	struct unwind_result r = world_unwind(w);
	const struct py_scratch *s = unwinder_scratch();
	__u64 frame;

	if (r.error != want.error) {
		world_fail(row, name, "error %d, want %d", r.error, want.error);
		return;
	}
	if (r.has_walked != want.has_walked)
		world_fail(row, name, "has_walked %d, want %d", r.has_walked, want.has_walked);
	if (want.error)
		return;
	if (r.flags != (want.flags & ~CALLED))
		world_fail(row, name, "flags %#x, want %#x", r.flags, want.flags);
	frame = memory_u64(w->m, want.tstate + w->off->tstate_frame);
	if (memcmp(s->tstate + w->off->tstate_frame, &frame, sizeof(frame)) != 0)
		world_fail(row, name, "another thread state than wanted");
	if (r.depth != (want.flags & CALLED ? 3 : 1) || r.status != UNWIND_COMPLETE)
		world_fail(row, name, "depth %u, status %d", r.depth, r.status);
}

static bool has_bound_bit(const struct world *w)
{
	return w->off->status_bound_gilstate;
}

static bool has_current(const struct world *w)
{
	return w->off->runtime_tstate_current != OFF_NONE;
}

/* Runs f in a fresh world for every row. */
static void each_row(void (*f)(const char *row, struct world *w))
{
	struct world w;

	for (unsigned v = 0; v < row_count; v++) {
		world_init(&w, &rows[v].off);
		f(rows[v].name, &w);
		world_release(&w);
	}
}

static void found_on_list(const char *row, struct world *w)
{
	give_frame(w, w->tstate);
	check(row, "alone", w, (struct want){ 0, w->tstate, true, 0 });
	check(row, "again", w, (struct want){ 0, w->tstate, false, 0 });
	for (unsigned i = 0; i < 100; i++)
		add_tstate(w, w->interp, OTHER_THREAD + i * 4096, 8);
	check(row, "cached behind 100 new ones", w, (struct want){ 0, w->tstate, false, 0 });
	unwinder_reset();
	check(row, "last of 101", w, (struct want){ 0, w->tstate, true, 0 });
	w->thread.pointer = OTHER_THREAD + 99 * 4096;
	unwinder_reset();
	check(row, "first of 101", w,
	      (struct want){ 0, memory_u64(w->m, w->interp + w->off->interp_threads_head), true,
			     0 });
	w->thread.pointer = 0x123450;
	check(row, "no thread state", w, (struct want){ PY_NONE, 0, true, 0 });
}

static void test_find_tstate_looks_through_the_list(void **state)
{
	(void)state;
	each_row(found_on_list);
}

/* On arm64 the kernel may still know a process by the pointer that it had before an exec. */
static void found_by_id(const char *row, struct world *w)
{
	enum { TID_AT = 208, TID = 4242 };
	const __u64 pointer = w->thread.pointer;
	struct py_offsets off = *w->off;

	off.pthread_tid = TID_AT;
	w->off = &off;
	give_frame(w, w->tstate);
	add_tstate(w, w->interp, OTHER_THREAD, 8);
	memory_write_u64(w->m, pointer + TID_AT, TID);
	w->thread.pointer = 0x123450;
	check(row, "not asked for", w, (struct want){ PY_NONE, 0, true, 0 });
	w->thread.leader = TID;
	check(row, "by its id", w, (struct want){ 0, w->tstate, true, 0 });
	check(row, "again", w, (struct want){ 0, w->tstate, false, 0 });
	w->thread.leader = TID + 1;
	check(row, "another id", w, (struct want){ PY_NONE, 0, true, 0 });
	w->thread.leader = TID;
	off.pthread_tid = 0;
	check(row, "where that is is not known", w, (struct want){ PY_NONE, 0, true, 0 });
	w->thread.pointer = pointer;
	check(row, "by its pointer again", w, (struct want){ 0, w->tstate, false, 0 });
}

static void test_find_tstate_knows_the_first_thread_by_its_id(void **state)
{
	(void)state;
	each_row(found_by_id);
}

static void found_in_interpreters(const char *row, struct world *w)
{
	__u64 interp = 0, tstate;

	give_frame(w, w->tstate);
	for (unsigned i = 0; i < 5; i++) {
		interp = world_interp(w);
		add_tstate(w, interp, OTHER_THREAD + 8192 + i * 4096, 8);
	}
	tstate = add_tstate(w, interp, OTHER_THREAD, 8);
	add_tstate(w, interp, OTHER_THREAD + 4096, 8);
	w->thread.pointer = OTHER_THREAD;
	check(row, "in the sixth interpreter", w, (struct want){ 0, tstate, true, 0 });
	unwinder_reset();
	/* An interpreter that is being made has no thread yet. */
	memory_write_u64(w->m, w->interp + w->off->interp_threads_head, 0);
	check(row, "behind an empty interpreter", w, (struct want){ 0, tstate, true, 0 });
}

static void test_find_tstate_looks_through_all_interpreters(void **state)
{
	(void)state;
	each_row(found_in_interpreters);
}

/* A freed PyThreadState keeps its bytes, and glibc gives its pthread_self to the next thread. */
static void freed_and_reused(const char *row, struct world *w)
{
	__u64 first, second, third;

	give_frame(w, w->tstate);
	w->thread.pointer = OTHER_THREAD;
	first = add_tstate(w, w->interp, OTHER_THREAD, 8);
	check(row, "first thread", w, (struct want){ 0, first, true, 0 });
	world_tstate_unlink(w, first);
	check(row, "its thread state freed", w, (struct want){ PY_NONE, 0, true, 0 });
	second = add_tstate(w, w->interp, OTHER_THREAD, 8);
	check(row, "pthread_self used again", w, (struct want){ 0, second, true, 0 });
	third = add_tstate(w, w->interp, OTHER_THREAD + 4096, 8);
	check(row, "no longer the newest", w, (struct want){ 0, second, false, 0 });
	world_tstate_unlink(w, second);
	check(row, "freed in the middle", w, (struct want){ PY_NONE, 0, true, 0 });

	/* The address is used again for another thread. */
	memory_write_u64(w->m, third + w->off->tstate_thread_id, OTHER_THREAD);
	check(row, "address used again", w, (struct want){ 0, third, true, 0 });
	memory_write_u64(w->m, third + w->off->tstate_thread_id, OTHER_THREAD + 8);
	check(row, "of another thread now", w, (struct want){ PY_NONE, 0, true, 0 });
}

static void test_find_tstate_believes_no_freed_one(void **state)
{
	(void)state;
	each_row(freed_and_reused);
}

/* fork() in a thread, exec, another thread of that tid: what is cached of one is not taken for
 * another. */
static void other_identity(const char *row, struct world *w)
{
	__u64 other = add_tstate(w, w->interp, OTHER_THREAD, 8);

	give_frame(w, w->tstate);
	check(row, "first look", w, (struct want){ 0, w->tstate, true, 0 });
	w->thread.tid++;
	check(row, "another tid", w, (struct want){ 0, w->tstate, true, 0 });
	w->thread.process += 2;
	check(row, "another process", w, (struct want){ 0, w->tstate, true, 0 });
	w->thread.pointer = OTHER_THREAD;
	check(row, "another thread", w, (struct want){ 0, other, true, 0 });
}

static void test_find_tstate_caches_by_process_and_thread(void **state)
{
	(void)state;
	each_row(other_identity);
}

static void bound(const char *row, struct world *w)
{
	__u64 interp = world_interp(w), sub;

	if (!has_bound_bit(w))
		return;
	give_frame(w, w->tstate);
	sub = add_tstate(w, interp, WORLD_THREAD, 3);
	world_set_status(w, w->tstate, 0xb);
	check(row, "main one bound", w, (struct want){ 0, w->tstate, true, 0 });
	check(row, "main one bound, cached", w, (struct want){ 0, w->tstate, true, 0 });
	world_set_status(w, w->tstate, 3);
	world_set_status(w, sub, 0xb);
	check(row, "moved to the subinterpreter", w, (struct want){ 0, sub, true, CALLED });
	check(row, "and cached", w, (struct want){ 0, sub, true, CALLED });
	world_set_status(w, sub, 0x1b);
	check(row, "holds the GIL", w, (struct want){ 0, sub, true, SAMPLE_HOLDS_GIL | CALLED });
	world_set_status(w, sub, 3);
	check(row, "none bound", w, (struct want){ 0, sub, true, SAMPLE_AMBIGUOUS | CALLED });
	world_tstate_unlink(w, sub);
	check(row, "one left, not bound", w, (struct want){ 0, w->tstate, true, 0 });
}

static void test_find_tstate_takes_the_bound_one(void **state)
{
	(void)state;
	each_row(bound);
}

static void current(const char *row, struct world *w)
{
	__u64 interp = world_interp(w), sub, other;

	if (!has_current(w))
		return;
	give_frame(w, w->tstate);
	sub = add_tstate(w, interp, WORLD_THREAD, 0);
	other = add_tstate(w, w->interp, OTHER_THREAD, 0);
	check(row, "never seen attached", w,
	      (struct want){ 0, sub, true, SAMPLE_AMBIGUOUS | CALLED });
	world_set_current(w, sub);
	check(row, "attached to the subinterpreter", w,
	      (struct want){ 0, sub, true, SAMPLE_HOLDS_GIL | CALLED });
	world_set_current(w, 0);
	check(row, "GIL released", w, (struct want){ 0, sub, true, SAMPLE_AMBIGUOUS | CALLED });
	world_set_current(w, other);
	check(row, "GIL held by another thread", w,
	      (struct want){ 0, sub, true, SAMPLE_AMBIGUOUS | CALLED });
	world_set_current(w, w->tstate);
	check(row, "attached to the main interpreter", w,
	      (struct want){ 0, w->tstate, true, SAMPLE_HOLDS_GIL });
	world_set_current(w, 0xdead0000);
	check(row, "tstate_current not readable", w,
	      (struct want){ 0, w->tstate, true, SAMPLE_AMBIGUOUS });
}

static void test_find_tstate_takes_the_current_one(void **state)
{
	(void)state;
	each_row(current);
}

/* Who the thread is, as the kernel knows it: on the stack where the world's calls are, or below. */
static void meet(__u64 sp, __u64 stack_end, __u32 tid)
{
	unwinder_set_met(&(struct py_met){ .sp = sp, .stack_end = stack_end, .tid = tid });
}

/* A thread that is gone left its state to a child forked from C; another one has its pthread_self.
 */
static void left_behind(const char *row, struct world *w)
{
	__u64 gone, own;

	if (w->off->tstate_native_thread_id == OFF_NONE)
		return;
	give_frame(w, w->tstate);
	w->thread.pointer = OTHER_THREAD;
	own = add_tstate(w, w->interp, OTHER_THREAD, 8);
	gone = add_tstate(w, w->interp, OTHER_THREAD, 8);
	memory_write_u64(w->m, own + w->off->tstate_native_thread_id, 20);
	memory_write_u64(w->m, gone + w->off->tstate_native_thread_id, 10);
	meet(0, 0, 20);
	check(row, "its own", w, (struct want){ 0, own, true, 0 });
	check(row, "again", w, (struct want){ 0, own, false, 0 });
	unwinder_reset();
	meet(0, 0, 30);
	check(row, "of nobody", w, (struct want){ PY_NONE, 0, true, 0 });
}

static void test_find_tstate_takes_none_of_a_thread_that_is_gone(void **state)
{
	(void)state;
	each_row(left_behind);
}

/* A state that the main thread made is run by another one, which has one of its own, or none. */
static void lent(const char *row, struct world *w)
{
	__u64 from = w->cstack, lent, own;

	if (!w->off->tstate_cframe || w->off->frame_kind != FRAME_CFRAME)
		return;
	lent = add_tstate(w, w->interp, WORLD_THREAD, 8);
	meet(from, w->cstack, 0);
	w->thread.pointer = OTHER_THREAD;
	check(row, "by its stack", w, (struct want){ 0, lent, true, 0 });
	check(row, "again", w, (struct want){ 0, lent, false, 0 });
	own = world_tstate(w, w->interp, OTHER_THREAD);
	memory_write_u64(w->m, own + w->off->tstate_frame, own + 100);
	unwinder_reset();
	meet(from, w->cstack, 0);
	check(row, "beside its own", w, (struct want){ 0, lent, true, 0 });
	unwinder_reset();
	meet(w->cstack, w->cstack + 4096, 0);
	w->thread.pointer = WORLD_THREAD;
	give_frame(w, w->tstate);
	check(row, "not by who made it", w, (struct want){ 0, w->tstate, true, 0 });
}

/* Checks two states whose calls are on the stack: the one farther down was entered from the other.
 */
static void check_nested(const char *row, const char *name, struct world *w, unsigned inner)
{
	struct unwind_result r = world_unwind(w);

	if (r.depth != 3 || r.status != UNWIND_COMPLETE || r.flags) {
		world_fail(row, name, "depth %u, status %d, flags %#x", r.depth, r.status, r.flags);
		return;
	}
	if (r.frames[1].flags != (FRAME_INTERPRETER | FRAME_ENTRY) || r.frames[1].code != inner)
		world_fail(row, name, "flags %#x, interpreter %llu", r.frames[1].flags,
			   r.frames[1].code);
	if (r.frames[0].flags || r.frames[2].flags != FRAME_ENTRY)
		world_fail(row, name, "flags %#x, %#x", r.frames[0].flags, r.frames[2].flags);
}

static void nested(const char *row, struct world *w)
{
	__u64 from = w->cstack, sub;

	if (w->off->minor < 11)
		return;
	sub = add_tstate(w, world_interp(w), WORLD_THREAD, 0xb);
	give_frame(w, w->tstate);
	world_set_status(w, w->tstate, 3);
	meet(from, w->cstack, 0);
	check_nested(row, "a subinterpreter runs", w, 1);
	give_frame(w, sub);
	world_set_status(w, sub, 3);
	world_set_status(w, w->tstate, 0xb);
	meet(from, w->cstack, 0);
	check_nested(row, "it calls the main one", w, 0);
}

static void test_walk_goes_on_with_who_entered_the_interpreter(void **state)
{
	(void)state;
	each_row(nested);
}

static void test_find_tstate_takes_what_runs_on_the_stack(void **state)
{
	(void)state;
	each_row(lent);
}

static void alone(const char *row, struct world *w)
{
	give_frame(w, w->tstate);
	check(row, "GIL not held", w, (struct want){ 0, w->tstate, true, 0 });
	world_set_current(w, w->tstate);
	world_set_status(w, w->tstate, 0x1b);
	if (has_current(w) || has_bound_bit(w))
		check(row, "GIL held", w, (struct want){ 0, w->tstate, false, SAMPLE_HOLDS_GIL });
	world_set_current(w, 0);
	world_set_status(w, w->tstate, 0xb);
	check(row, "GIL released", w, (struct want){ 0, w->tstate, false, 0 });
}

static void test_find_tstate_is_sure_with_one_interpreter(void **state)
{
	(void)state;
	each_row(alone);
}

/* Something of the list is paged out: task work must get its chance. */
static void missing(const char *row, struct world *w)
{
	__u64 own, before, interp;

	give_frame(w, w->tstate);
	world_new_page(w);
	own = add_tstate(w, w->interp, OTHER_THREAD, 8);
	world_new_page(w);
	before = add_tstate(w, w->interp, OTHER_THREAD + 4096, 8);
	world_new_page(w);
	interp = world_interp(w);
	world_new_page(w);
	w->thread.pointer = OTHER_THREAD;

	memory_swap_out(w->m, own, 400);
	check(row, "thread state missing", w, (struct want){ PY_FAULT, 0, true, 0 });
	memory_swap_in(w->m, own, 400);
	memory_swap_out(w->m, before, 400);
	check(row, "thread state before it missing", w, (struct want){ PY_FAULT, 0, true, 0 });
	memory_swap_in(w->m, before, 400);
	memory_swap_out(w->m, w->interp + w->off->interp_threads_head, 8);
	check(row, "list head missing", w, (struct want){ PY_FAULT, 0, true, 0 });
	memory_swap_in(w->m, w->interp + w->off->interp_threads_head, 8);
	memory_swap_out(w->m, WORLD_RUNTIME + w->off->runtime_interpreters_head, 8);
	check(row, "_PyRuntime missing", w, (struct want){ PY_FAULT, 0, true, 0 });
	memory_swap_in(w->m, WORLD_RUNTIME + w->off->runtime_interpreters_head, 8);
	w->thread.pointer = 0x123450;
	memory_swap_out(w->m, interp, 9000);
	check(row, "next interpreter missing", w, (struct want){ PY_FAULT, 0, true, 0 });
	memory_swap_in(w->m, interp, 9000);
	check(row, "all there", w, (struct want){ PY_NONE, 0, true, 0 });
}

static void test_find_tstate_tells_a_fault_from_no_python(void **state)
{
	(void)state;
	each_row(missing);
}

/* A list longer than there is time for: not that there is no such thread. */
static void late(const char *row, struct world *w)
{
	__u64 second = world_tstate(w, w->interp, OTHER_THREAD);

	w->thread.pointer = 0x123450;
	memory_write_u64(w->m, w->tstate + w->off->tstate_next, second);
	unwinder_set_clock(TIME_MAX_NS / 4);
	check(row, "no time left", w, (struct want){ PY_LATE, 0, true, 0 });
	unwinder_set_clock(0);
}

static void test_find_tstate_ends_in_time(void **state)
{
	(void)state;
	each_row(late);
}

/* Of a long list a sample has time for so many steps: the clock is read each TIME_STEPS. */
#define STEPS_A_SAMPLE (5 * TIME_STEPS)

/* Threads whose states are in front of those that there are, newer ones than n states. */
static void crowd(struct world *w, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		world_tstate(w, w->interp, OTHER_THREAD + i * 4096);
}

static void begin_slowly(void)
{
	unwinder_reset();
	unwinder_set_clock(TIME_MAX_NS / 4);
}

static void check_late(const char *row, const char *name, struct world *w, unsigned samples)
{
	for (unsigned i = 0; i < samples; i++)
		check(row, name, w, (struct want){ PY_LATE, 0, true, 0 });
}

static void last_of_many(const char *row, struct world *w)
{
	give_frame(w, w->tstate);
	crowd(w, 2 * STEPS_A_SAMPLE);
	begin_slowly();
	check_late(row, "last of many", w, 2);
	check(row, "found in the end", w, (struct want){ 0, w->tstate, true, 0 });
	check(row, "remembered", w, (struct want){ 0, w->tstate, false, 0 });
	begin_slowly();
	check_late(row, "again", w, 1);
	w->thread.tid++;
	check_late(row, "another thread begins anew", w, 2);
	w->thread.tid--;
	check_late(row, "the first one continues", w, 1);
	check(row, "and has found it", w, (struct want){ 0, w->tstate, true, 0 });
	unwinder_set_clock(0);
}

static void test_find_tstate_continues_a_search(void **state)
{
	(void)state;
	each_row(last_of_many);
}

/* Where a search may have stopped after a sample: all states but the first and the last ones. */
static void unlink_the_middle(struct world *w)
{
	__u64 head = memory_u64(w->m, w->interp + w->off->interp_threads_head), at;

	while ((at = memory_u64(w->m, head + w->off->tstate_next)) &&
	       memory_u64(w->m, at + w->off->tstate_next))
		world_tstate_unlink(w, at);
}

static void stops_at_one_that_goes(const char *row, struct world *w)
{
	give_frame(w, w->tstate);
	crowd(w, STEPS_A_SAMPLE);
	begin_slowly();
	check_late(row, "late", w, 1);
	unlink_the_middle(w);
	check(row, "begun anew", w, (struct want){ 0, w->tstate, true, 0 });
	unwinder_set_clock(0);
}

static void test_find_tstate_continues_at_no_freed_one(void **state)
{
	(void)state;
	each_row(stops_at_one_that_goes);
}

/* What is made while a search is under way is in front of where that is. */
static void made_meanwhile(const char *row, struct world *w)
{
	__u64 own;

	crowd(w, STEPS_A_SAMPLE);
	w->thread.pointer = 0x123450;
	begin_slowly();
	check_late(row, "none yet", w, 1);
	check(row, "none", w, (struct want){ PY_NONE, 0, true, 0 });
	check_late(row, "none yet, again", w, 1);
	own = add_tstate(w, w->interp, 0x123450, 8);
	check(row, "made since", w, (struct want){ 0, own, true, 0 });
	unwinder_set_clock(0);
}

static void test_find_tstate_finds_what_is_made_since_a_search_began(void **state)
{
	(void)state;
	each_row(made_meanwhile);
}

/* The newest of many, where only the whole list tells whether the thread has another one. */
static void first_of_many(const char *row, struct world *w)
{
	__u64 own;

	crowd(w, STEPS_A_SAMPLE);
	own = add_tstate(w, w->interp, 0x123450, 0);
	if (has_bound_bit(w))
		return; /* that ends the search at once, or the frames of it are looked at */
	w->thread.pointer = 0x123450;
	begin_slowly();
	check(row, "not sure yet", w, (struct want){ 0, own, true, SAMPLE_AMBIGUOUS });
	check(row, "of the sample before", w, (struct want){ 0, own, true, SAMPLE_AMBIGUOUS });
	check(row, "sure", w, (struct want){ 0, own, false, 0 });
	begin_slowly();
	check(row, "not sure", w, (struct want){ 0, own, true, SAMPLE_AMBIGUOUS });
	world_tstate_unlink(w, own);
	check(row, "gone", w, (struct want){ PY_LATE, 0, true, 0 });
	unwinder_set_clock(0);
}

static void test_find_tstate_is_not_sure_before_the_end(void **state)
{
	(void)state;
	each_row(first_of_many);
}

/* A slot that two threads on two CPUs write at once belongs to neither. */
static void torn_slot(const char *row, struct world *w)
{
	const __u64 key = kept_key(&w->thread);
	struct kept_search *k = &searches[key >> 8 & (SEARCH_SLOTS - 1)];

	give_frame(w, w->tstate);
	crowd(w, STEPS_A_SAMPLE);
	begin_slowly();
	check_late(row, "kept", w, 1);
	k->found ^= 0x1000;
	check_late(row, "torn", w, 1);
	check(row, "whole", w, (struct want){ 0, w->tstate, true, 0 });
	unwinder_set_clock(0);
}

static void test_find_tstate_believes_no_torn_search(void **state)
{
	(void)state;
	each_row(torn_slot);
}

static void check_bounded(const char *row, const char *name, struct world *w)
{
	memory_use(w->m);
	check(row, name, w, (struct want){ PY_LATE, 0, true, 0 });
	if (memory_reads(w->m) > 2 * LIST_STEPS + 10)
		world_fail(row, name, "%zu reads", memory_reads(w->m));
}

static void cycles(const char *row, struct world *w)
{
	__u64 second = world_tstate(w, w->interp, OTHER_THREAD), interp;

	w->thread.pointer = 0x123450;
	memory_write_u64(w->m, w->tstate + w->off->tstate_next, second);
	check_bounded(row, "thread states in a circle", w);
	memory_write_u64(w->m, w->tstate + w->off->tstate_next, w->tstate);
	check_bounded(row, "a thread state behind itself", w);
	memory_write_u64(w->m, w->tstate + w->off->tstate_next, 0);
	interp = world_interp(w);
	memory_write_u64(w->m, interp + w->off->interp_next, w->interp);
	check_bounded(row, "interpreters in a circle", w);
	memory_write_u64(w->m, interp + w->off->interp_next, interp);
	check_bounded(row, "an interpreter behind itself", w);
}

static void test_find_tstate_ends_in_cyclic_lists(void **state)
{
	(void)state;
	each_row(cycles);
}

/* No frame: nothing runs, which is no error. */
static void no_frame(const char *row, struct world *w)
{
	struct unwind_result r = world_unwind(w);

	if (r.error || unwinder_scratch()->walk.depth)
		world_fail(row, "no frame", "error %d, depth %u", r.error, r.depth);
}

static void test_first_frame_of_an_idle_thread_is_none(void **state)
{
	(void)state;
	each_row(no_frame);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_find_tstate_looks_through_the_list),
		WORLD_TEST(test_find_tstate_knows_the_first_thread_by_its_id),
		WORLD_TEST(test_find_tstate_looks_through_all_interpreters),
		WORLD_TEST(test_find_tstate_believes_no_freed_one),
		WORLD_TEST(test_find_tstate_caches_by_process_and_thread),
		WORLD_TEST(test_find_tstate_takes_the_bound_one),
		WORLD_TEST(test_find_tstate_takes_the_current_one),
		WORLD_TEST(test_find_tstate_takes_none_of_a_thread_that_is_gone),
		WORLD_TEST(test_find_tstate_takes_what_runs_on_the_stack),
		WORLD_TEST(test_walk_goes_on_with_who_entered_the_interpreter),
		WORLD_TEST(test_find_tstate_is_sure_with_one_interpreter),
		WORLD_TEST(test_find_tstate_tells_a_fault_from_no_python),
		WORLD_TEST(test_find_tstate_ends_in_time),
		WORLD_TEST(test_find_tstate_continues_a_search),
		WORLD_TEST(test_find_tstate_continues_at_no_freed_one),
		WORLD_TEST(test_find_tstate_finds_what_is_made_since_a_search_began),
		WORLD_TEST(test_find_tstate_is_not_sure_before_the_end),
		WORLD_TEST(test_find_tstate_believes_no_torn_search),
		WORLD_TEST(test_find_tstate_ends_in_cyclic_lists),
		WORLD_TEST(test_first_frame_of_an_idle_thread_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
