/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PYTHON_THREAD_H
#define BPF_PYTHON_THREAD_H

/*
 * Which thread state a thread runs, among all that its process has: one rule for all who walk.
 *
 * A state says which thread made it (thread_id), and from 3.11 on by which number the kernel knows
 * that (native_thread_id). Neither says who runs it: a thread that is not there any more leaves its
 * state to a child that was forked from C, whose next thread may get the same pthread_self(); a
 * state may be made by one thread and run by another; a thread has one for each interpreter that it
 * has been in. So there is more evidence, the strongest first:
 *
 * - The GIL. Who holds it, runs the state that it names: tstate_current up to 3.11.
 * - The stack. The innermost call into the interpreter keeps something on the C stack of the thread
 *   that made it: a CFrame in 3.10 to 3.12, which the state points to, from 3.13 on the frame of an
 *   entry into the interpreter, which is in the chain of frames. What lies on the thread's stack is
 *   run by it, whoever made it, and of several the one that is farthest down.
 * - bound_gilstate, from 3.12 on: a thread swapped that state in last.
 * - Whether it has frames; then the order: new states and interpreters are put in front.
 *
 * A state that only the last two choose is a guess (SAMPLE_AMBIGUOUS).
 */

#include "bpf/cache.h"
#include "bpf/python.h"
#include "bpf/python_met.h"
#include "bpf/python_resume.h"

#define LIST_STEPS 16384 /* thread states and frames looked at in one search */
#define TSTATE_ALL_BYTES                                                           \
	4096 /* covers all of a PyThreadState: what a thread without frames has in \
		place of those lies in it */

/* The address may be an old one: it is for the caller to say whether that is a fault. Bounded by
 * user space too (offsets_check()); repeated here for the verifier. */
static __always_inline int py_read_tstate(struct door door, struct py_scratch *s,
					  const struct py_offsets *off, __u64 addr)
{
	__u32 size = off->tstate_size;

	if (size > TSTATE_BYTES)
		return PY_FAULT;
	return read_user(door, s->tstate, size, addr);
}

/* Did the thread make the state in s->tstate? */
static __always_inline bool py_tstate_is_of(struct door door, struct py_scratch *s,
					    const struct py_offsets *off, const struct py_thread *t)
{
	__u64 pthread = tstate_u64(s, off->tstate_thread_id);
	__u32 tid;

	if (pthread == t->pointer)
		return pthread;
	return t->leader && off->pthread_tid && pthread &&
	       !read_user(door, &tid, sizeof(tid), pthread + off->pthread_tid) && tid == t->leader;
}

/* Is the state in s->tstate, which is at addr, a live one? A freed one keeps its bytes, so it must
 * still hang on its list. */
static __always_inline bool py_tstate_is_listed(struct door door, struct py_scratch *s,
						const struct py_offsets *off, __u64 addr)
{
	__u64 prev = tstate_u64(s, off->tstate_prev), interp = tstate_u64(s, off->tstate_interp);
	__u64 link = prev ? prev + off->tstate_next : interp + off->interp_threads_head, head;

	return !read_user(door, &head, sizeof(head), link) && head == addr;
}

static __always_inline bool py_tstate_is_bound(struct py_scratch *s, const struct py_offsets *off)
{
	return tstate_u64(s, off->tstate_status) & off->status_bound_gilstate;
}

static __always_inline bool py_tstate_is_active(struct py_scratch *s, const struct py_offsets *off)
{
	return tstate_u64(s, off->tstate_status) & off->status_active;
}

/* Was the state made by a thread that is gone? The first thread of a child that was forked from C
 * has its parent's number there. */
static __always_inline bool py_tstate_is_stale(struct py_scratch *s, const struct py_offsets *off)
{
	const struct py_met *met = &s->search.met;

	return off->tstate_native_thread_id != OFF_NONE && met->tid && !met->is_first &&
	       tstate_u64(s, off->tstate_native_thread_id) != met->tid;
}

/* What lies in the state itself stands for no frame: root_cframe, from 3.15 on base_frame. */
static __always_inline __u64 py_mark(__u64 tstate, __u64 on_stack)
{
	return on_stack - tstate < TSTATE_ALL_BYTES ? 0 : on_stack;
}

/* 3.10 to 3.12: where on a C stack its innermost call is; 0: it has none. */
static __always_inline __u64 py_cframe(struct py_scratch *s, const struct py_offsets *off,
				       __u64 tstate)
{
	return py_mark(tstate, tstate_u64(s, off->tstate_cframe));
}

/* From 3.13 on the chain of frames leads to where on a C stack its innermost call is. */
static __always_inline bool py_has_entries(const struct py_offsets *off)
{
	return off->owner_boundary && !off->tstate_cframe;
}

static __always_inline bool py_has_frames(struct py_scratch *s, const struct py_offsets *off,
					  __u64 tstate)
{
	__u64 frame = tstate_u64(s, off->tstate_frame);

	if (off->frame_kind == FRAME_CFRAME)
		return py_cframe(s, off, tstate);
	return py_has_entries(off) ? py_mark(tstate, frame) : frame;
}

/*
 * More than one interpreter? Then one thread may have several thread states. New ones are put in
 * front of the main one, which lies within _PyRuntime from 3.13 on.
 */
static __always_inline bool py_has_several(struct py_loop *l)
{
	struct py_scratch *s = l->s;
	struct door door = l->door;
	__u64 runtime = l->thread->runtime;
	__u64 head = read_pointer(door, s, runtime + l->off->runtime_interpreters_head);

	return head && head - runtime >= l->off->runtime_size &&
	       read_pointer(door, s, head + l->off->interp_next);
}

/* Asks who the thread is, once a walk. */
static __always_inline void py_meet(struct py_loop *l)
{
	struct py_met *met = &l->s->search.met;
	__u64 pointer = l->thread->pointer;

	if (met->is_met)
		return;
	met->is_met = 1;
	met->stack_end = 0;
	met_read(l->door, met);
	/* The C library has its own at the end of a thread's stack, but not of the first one's. */
	if (!met->stack_end)
		met->stack_end = pointer > met->sp ? pointer : met->is_first ? ~0ULL : 0;
	if (!met->stack_end)
		met->sp = 0;
}

static __always_inline bool py_is_on_stack(const struct py_met *met, __u64 mark)
{
	return met->sp && mark >= met->sp && mark < met->stack_end;
}

/* Does anything tell on which stack the calls of a state are? */
static __always_inline bool py_has_place(const struct py_search *q, const struct py_offsets *off)
{
	return q->met.sp && (off->tstate_cframe || py_has_entries(off));
}

/*
 * Notes the state in s->tstate, which is at addr, if the thread runs it or has entered from it the
 * one that it runs. Where stacks say nothing that is so if the thread made it and it has frames:
 * those of newer interpreters, which are in front, were entered from older ones. Returns 0.
 */
VERIFIED_ONCE int py_note_nested(struct py_scratch *s, const struct py_offsets *off, __u64 addr,
				 __u64 mark)
{
	struct py_search *q;
	struct py_nested *n;
	bool is_here;
	__u32 at;

	if (!s || !off)
		return 0; /* for the verifier */
	q = &s->search;
	is_here = py_is_on_stack(&q->met, mark);
	if (!(is_here || (q->is_own && !py_has_place(q, off))) || !py_has_frames(s, off, addr))
		return 0;
	at = q->nested_count++;
	if (at >= NESTED_MAX)
		return 0;
	n = &q->nested[at & (NESTED_MAX - 1)];
	n->tstate = addr;
	n->interp = tstate_u64(s, off->tstate_interp);
	n->frame = tstate_u64(s, off->tstate_frame);
	n->mark = is_here ? mark : NESTED_LISTED + at;
	return 0;
}

/* enum state_rank of the state in s->tstate, which is at addr; STATE_NONE: it is not to be
 * compared.
 */
VERIFIED_ONCE int py_rank(struct py_scratch *s, const struct py_offsets *off, __u64 addr,
			  __u64 mark)
{
	bool is_bound, has_frames, is_here;
	struct py_search *q;

	if (!s || !off)
		return STATE_NONE; /* for the verifier */
	q = &s->search;
	is_bound = py_tstate_is_bound(s, off);
	is_here = py_is_on_stack(&q->met, mark);
	if (!q->is_own && !is_here)
		return STATE_NONE;
	has_frames = py_has_frames(s, off, addr);
	q->busy += q->is_own && has_frames;
	q->is_bound |= is_bound || !q->is_own;
	if (is_here)
		return STATE_HERE;
	if (mark && q->met.sp)
		return STATE_ELSEWHERE;
	return is_bound ? STATE_BOUND : has_frames ? STATE_BUSY : STATE_IDLE;
}

/* How the state in s->tstate, which is at addr, compares with the best one so far. Returns 0. */
VERIFIED_ONCE int py_weigh(struct py_scratch *s, const struct py_offsets *off, __u64 addr,
			   __u64 mark)
{
	struct py_search *q;
	bool is_order;
	__u64 interp;
	__u8 rank;

	if (!s || !off)
		return 0; /* for the verifier */
	q = &s->search;
	interp = tstate_u64(s, off->tstate_interp);
	rank = py_rank(s, off, addr, mark);
	if (rank < q->rank || rank == STATE_NONE)
		return 0;
	if (rank == q->rank && rank == STATE_HERE) {
		/* A state that a fork left behind may point to the same stack. */
		is_order = off->tstate_native_thread_id == OFF_NONE && q->met.is_forked &&
			   interp == q->found_interp;
		q->is_tied |= is_order;
		if (is_order || mark > q->mark)
			return 0;
	} else if (rank == q->rank) {
		return 0;
	}
	q->rank = rank;
	q->mark = mark;
	q->found = addr;
	q->is_old = 0;
	q->found_interp = interp;
	q->is_settled = !s->walk.has_several && q->is_own && py_tstate_is_bound(s, off) &&
			(rank == STATE_HERE || !q->met.sp);
	return 0;
}

/*
 * From 3.13 on: is the state in s->tstate worth following its frames for where they are? One that
 * another thread made is if that is known to have given it away: it holds a GIL, this thread ran it
 * before, or has none of its own that is bound.
 */
static __always_inline bool py_is_followed(struct py_scratch *s, const struct py_offsets *off)
{
	struct py_search *q = &s->search;

	return q->met.sp && (q->is_own || (py_tstate_is_bound(s, off) &&
					   (py_tstate_is_active(s, off) || q->tstate == q->known ||
					    q->is_second)));
}

/* The search has come to its end, and not to its time limit. */
static __always_inline int py_search_over(struct py_search *q)
{
	q->is_late = 0;
	return LOOP_STOP;
}

static __always_inline int py_weighed(struct py_scratch *s, const struct py_offsets *off,
				      __u64 mark)
{
	struct py_search *q = &s->search;

	py_weigh(s, off, q->tstate, mark);
	if (py_has_numbered(&s->walk, off))
		py_note_nested(s, off, q->tstate, mark);
	q->frame = 0;
	q->is_deep = 0;
	q->tstate = tstate_u64(s, off->tstate_next);
	return q->is_settled ? py_search_over(q) : LOOP_NEXT;
}

/* The next frame of the state in s->tstate. */
static __always_inline int py_follow_step(struct py_loop *l)
{
	struct py_scratch *s = l->s;
	const struct py_offsets *off = l->off;
	struct py_search *q = &s->search;
	struct door door = l->door;
	__u32 size = off->frame_size;

	if (size > FRAME_BYTES)
		return py_search_over(q); /* user space checked; for the verifier */
	if (py_read(door, s, s->frames, size, q->frame))
		return py_weighed(s, off, 0);
	if (s->frames[off->frame_owner & (FRAME_BYTES - 1)] >= off->owner_boundary)
		return py_weighed(s, off, py_mark(q->tstate, q->frame));
	q->frame = field_u64(s->frames, off->frame_previous, FRAME_BYTES - 1);
	return q->frame ? LOOP_NEXT : py_weighed(s, off, 0);
}

static __always_inline void py_search_begins(struct py_loop *l)
{
	struct py_scratch *s = l->s;
	struct py_search *q = &s->search;
	struct door door = l->door;

	q->busy = 0;
	q->matches = 0;
	q->frame = 0;
	q->nested_count = 0;
	q->interp = read_pointer(door, s, l->thread->runtime + l->off->runtime_interpreters_head);
	q->tstate = q->interp ? read_pointer(door, s, q->interp + l->off->interp_threads_head) : 0;
}

/*
 * Behind the last interpreter: a thread whose own states are not bound runs another one's, which
 * are looked at in a second pass. A thread that has none may have made one after a search of
 * several samples began: it is in front of those that were there.
 */
static __always_inline int py_search_ends(struct py_loop *l)
{
	struct py_search *q = &l->s->search;

	if (!q->is_second && py_has_entries(l->off) && q->matches && !q->is_bound)
		q->is_second = 1;
	else if (q->is_resumed && !q->found && !q->is_of_new)
		q->is_of_new = 1;
	else
		return py_search_over(q);
	py_search_begins(l);
	return q->interp ? LOOP_NEXT : py_search_over(q);
}

/* One step over all thread states of all interpreters. */
static int py_search_step(__u32 i, struct py_loop *l)
{
	struct py_scratch *s = l->s;
	const struct py_offsets *off = l->off;
	struct py_search *q = &s->search;
	struct door door = l->door;

	if (q->tstate && py_is_late(&s->walk))
		return LOOP_STOP;
	if (q->frame)
		return py_follow_step(l);
	if (!q->tstate) {
		q->interp = read_pointer(door, s, q->interp + off->interp_next);
		if (!q->interp)
			return py_search_ends(l);
		q->tstate = read_pointer(door, s, q->interp + off->interp_threads_head);
		return LOOP_NEXT;
	}
	if (q->is_of_new && q->tstate == q->head)
		return py_search_over(q);
	if (py_read_tstate(door, s, off, q->tstate)) {
		py_note_fault(s, q->tstate, off->tstate_size, false);
		return py_search_over(q);
	}
	q->is_own = py_tstate_is_of(door, s, off, l->thread) && !py_tstate_is_stale(s, off);
	q->matches += q->is_own;
	if (py_has_entries(off) && !q->is_deep && py_is_followed(s, off)) {
		q->frame = tstate_u64(s, off->tstate_frame);
		if (q->frame)
			return LOOP_NEXT;
	}
	return py_weighed(s, off, off->tstate_cframe ? py_cframe(s, off, q->tstate) : 0);
}

LOOP_STEP(py_search_step)

/* Continues a search that was late in the sample before, if the state where it stopped is still
 * there. Those from which the thread's state was entered are not kept. */
static __always_inline bool py_search_resumes(struct py_loop *l)
{
	struct py_scratch *s = l->s;
	struct py_search *q = &s->search;

	if (q->runs || !py_take_search(q, kept_key(l->thread)) ||
	    py_read_tstate(l->door, s, l->off, q->tstate) ||
	    !py_tstate_is_listed(l->door, s, l->off, q->tstate))
		return false;
	q->interp = tstate_u64(s, l->off->tstate_interp);
	q->frame = 0;
	q->nested_count = 0;
	q->is_resumed = 1;
	q->is_old = q->found != 0;
	return true;
}

/* Looks at all thread states. Sets what struct py_search has of the best; s->tstate is left
 * undefined. */
static __always_inline void py_search_all(struct py_loop *l)
{
	struct py_search *q = &l->s->search;

	py_meet(l);
	q->is_late = 1;
	q->is_settled = 0;
	q->is_of_new = 0;
	if (!py_search_resumes(l)) {
		q->found = 0;
		q->found_interp = 0;
		q->rank = STATE_NONE;
		q->is_tied = 0;
		q->is_bound = 0;
		q->is_second = 0;
		q->is_resumed = 0;
		q->is_old = 0;
		q->is_deep = 0;
		q->mark = 0;
		py_search_begins(l);
		q->head = q->tstate;
	}
	q->began_at = q->tstate;
	if (q->interp)
		LOOP(LIST_STEPS, py_search_step, l);
	else
		q->is_late = 0;
}

/* Up to 3.11: does the thread run the state that holds the GIL, which is in s->tstate? */
static __always_inline bool py_is_holder(struct py_loop *l, __u64 addr, bool is_sure)
{
	struct py_scratch *s = l->s;
	const struct py_offsets *off = l->off;
	bool is_own = py_tstate_is_of(l->door, s, off, l->thread);
	__u64 mark;

	if (!off->tstate_cframe || (is_own && is_sure))
		return is_own;
	py_meet(l);
	mark = py_cframe(s, off, addr);
	return py_is_on_stack(&s->search.met, mark) || (is_own && !(mark && s->search.met.sp));
}

/* Where nothing tells a thread that is gone from one that lives, but the order of the list. */
static __always_inline bool py_may_be_stale(struct py_loop *l)
{
	return l->off->tstate_native_thread_id == OFF_NONE && l->s->search.met.is_forked;
}

/*
 * Is the state at addr still the one to take, without looking at the others? Reads it into
 * s->tstate. is_sure: it was the only one, or known by where its calls are.
 */
static __always_inline bool py_is_still(struct py_loop *l, __u64 addr, bool is_sure)
{
	struct py_scratch *s = l->s;
	const struct py_offsets *off = l->off;
	struct door door = l->door;

	if (py_read_tstate(door, s, off, addr) || !py_tstate_is_listed(door, s, off, addr))
		return false;
	if (!py_tstate_is_of(door, s, off, l->thread)) {
		py_meet(l);
		return is_sure && off->tstate_cframe &&
		       py_is_on_stack(&s->search.met, py_cframe(s, off, addr));
	}
	if (!is_sure) { /* The first thread often makes states for others. */
		py_meet(l);
		if (s->search.met.is_first || py_may_be_stale(l) || py_tstate_is_stale(s, off))
			return false;
	}
	if (off->status_bound_gilstate)
		return py_tstate_is_bound(s, off) &&
		       (py_has_frames(s, off, addr) || !s->walk.has_several);
	if (!s->walk.has_several)
		return true;
	if (off->tstate_cframe) {
		py_meet(l);
		if (s->search.met.sp)
			return false;
	}
	s->walk.flags |= SAMPLE_AMBIGUOUS; /* it was seen to hold the GIL before */
	return true;
}

/* Can the one that was found be taken again without a search? */
static __always_inline bool py_is_sure(struct py_loop *l)
{
	const struct py_search *q = &l->s->search;

	if (py_may_be_stale(l))
		return false;
	return q->rank == STATE_HERE || (q->rank == STATE_BOUND && !q->met.sp) ||
	       (q->rank > STATE_ELSEWHERE && q->matches == 1);
}

static __always_inline bool py_is_guess(const struct py_search *q)
{
	return q->rank == STATE_ELSEWHERE || (q->rank == STATE_BUSY && q->busy > 1) || q->is_tied;
}

/* Up to 3.11: the state that holds the GIL, if the thread runs that; 0: it does not. */
static __always_inline __u64 py_find_holder(struct py_loop *l, __u64 known)
{
	struct py_scratch *s = l->s;
	const struct py_thread *t = l->thread;
	struct door door = l->door;
	__u64 addr;

	if (l->off->runtime_tstate_current == OFF_NONE)
		return 0;
	addr = read_pointer(door, s, t->runtime + l->off->runtime_tstate_current);
	if (!addr || py_read_tstate(door, s, l->off, addr) ||
	    !py_is_holder(l, addr, known == (addr | TSTATE_IS_SURE)))
		return 0;
	s->walk.flags |= SAMPLE_HOLDS_GIL;
	thread_cache_put(t->process, t->tid, addr | TSTATE_IS_SURE);
	return addr;
}

/* Searches all lists: for the state that the thread runs if that is not known, and for those from
 * which it was entered. Returns as py_find_tstate(). */
static __always_inline int py_search(struct py_loop *l)
{
	struct py_scratch *s = l->s;
	struct py_search *q = &s->search;
	const struct py_thread *t = l->thread;
	struct door door = l->door;

	q->has_walked = 1;
	py_search_all(l);
	q->is_cut = s->walk.has_several && s->walk.faults;
	if (!q->runs) {
		q->runs = q->found;
		if (q->is_late)
			py_keep_search(q, kept_key(t));
		else if (q->runs && py_is_sure(l))
			thread_cache_put(t->process, t->tid, q->runs | TSTATE_IS_SURE);
		if (q->is_resumed && s->walk.has_several)
			q->is_late = 1; /* what it was entered from is not known */
		if (!q->runs)
			return q->is_late ? PY_LATE : s->walk.faults ? PY_FAULT : PY_NONE;
		if (q->is_old || py_is_guess(q) || (q->is_late && q->rank != STATE_HERE))
			s->walk.flags |= SAMPLE_AMBIGUOUS;
	} else if (q->matches == 1) {
		s->walk.flags &= ~SAMPLE_AMBIGUOUS; /* the thread has made no other */
	}
	if (py_read_tstate(door, s, l->off, q->runs))
		return py_note_fault(s, q->runs, l->off->tstate_size, false);
	if (q->is_old && !py_tstate_is_listed(door, s, l->off, q->runs))
		return PY_LATE; /* it has gone since */
	return 0;
}

/* Sets where the walk begins among the states that were entered from another. Returns 0. */
VERIFIED_ONCE int py_begin_nested(struct py_search *q)
{
	if (!q)
		return 0; /* for the verifier */
	q->nested_mark = 0;
	for (__u32 i = 0; i < NESTED_MAX; i++)
		if (i < q->nested_count && q->nested[i].tstate == q->runs)
			q->nested_mark = q->nested[i].mark;
	return 0;
}

/*
 * Finds the thread state that the thread runs and reads it into s->tstate; its address is
 * s->search.runs, and s->search.nested has those from which it was entered. Returns 0, PY_NONE (no
 * Python thread), PY_FAULT (something is there, but cannot be read), PY_LATE (too many to look at
 * all).
 */
static __always_inline int py_find_tstate(struct py_loop *l)
{
	struct py_scratch *s = l->s;
	struct py_search *q = &s->search;
	const struct py_offsets *off = l->off;
	const struct py_thread *t = l->thread;
	__u64 known = thread_cache_get(t->process, t->tid);
	int r;

	q->met.is_met = 0;
	q->has_walked = 0;
	q->is_cut = 0;
	q->nested_count = 0;
	s->walk.has_several = py_has_several(l);
	s->walk.entry = FRAME_ENTRY;
	q->known = known & ~TSTATE_IS_SURE;
	q->runs = py_find_holder(l, known);
	if (!q->runs && q->known && py_is_still(l, q->known, known & TSTATE_IS_SURE))
		q->runs = q->known;
	if (!q->runs || s->walk.has_several) {
		r = py_search(l);
		if (r)
			return r;
	}
	s->walk.interp = tstate_u64(s, off->tstate_interp);
	py_begin_nested(q);
	if (off->status_active && py_tstate_is_active(s, off))
		s->walk.flags |= SAMPLE_HOLDS_GIL;
	return 0;
}

#endif
