/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PYTHON_THREAD_H
#define BPF_PYTHON_THREAD_H

/* The thread state of a thread, among all that its process has. */

#include "bpf/cache.h"
#include "bpf/python.h"

#define LIST_STEPS 16384 /* thread states looked at in one search */

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

/* Is the thread state in s->tstate one of this thread? */
static __always_inline bool py_tstate_is_of(struct door door, struct py_scratch *s,
					    const struct py_offsets *off, const struct py_thread *t)
{
	__u64 pthread = tstate_u64(s, off->tstate_thread_id);
	__u32 tid;

	if (pthread == t->pointer)
		return true;
	return t->leader && off->pthread_tid && pthread &&
	       !read_user(door, &tid, sizeof(tid), pthread + off->pthread_tid) && tid == t->leader;
}

/*
 * Is addr a live PyThreadState of this thread? Reads it into s->tstate. A freed one keeps its bytes
 * and glibc gives its pthread_self to another thread, so it must still hang on its list.
 */
static __always_inline bool py_tstate_matches(struct door door, struct py_scratch *s,
					      const struct py_offsets *off,
					      const struct py_thread *t, __u64 addr)
{
	__u64 prev, interp, link, head;

	if (py_read_tstate(door, s, off, addr))
		return false;
	if (!py_tstate_is_of(door, s, off, t))
		return false;
	prev = tstate_u64(s, off->tstate_prev);
	interp = tstate_u64(s, off->tstate_interp);
	link = prev ? prev + off->tstate_next : interp + off->interp_threads_head;
	return !read_user(door, &head, sizeof(head), link) && head == addr;
}

static __always_inline bool py_tstate_is_bound(struct py_scratch *s, const struct py_offsets *off)
{
	return tstate_u64(s, off->tstate_status) & off->status_bound_gilstate;
}

/* One step over all thread states of all interpreters. */
static int py_search_step(__u32 i, struct py_loop *l)
{
	struct py_scratch *s = l->s;
	const struct py_offsets *off = l->off;
	struct py_search *q = &s->search;
	struct door door = l->door;

	if (py_is_late(&s->walk)) {
		q->is_late = 1;
		return LOOP_STOP;
	}
	if (!q->tstate) {
		q->interp = read_pointer(door, s, q->interp + off->interp_next);
		if (!q->interp)
			return LOOP_STOP;
		q->tstate = read_pointer(door, s, q->interp + off->interp_threads_head);
		return LOOP_NEXT;
	}
	if (py_read_tstate(door, s, off, q->tstate)) {
		py_note_fault(s, q->tstate, off->tstate_size, false);
		return LOOP_STOP;
	}
	if (py_tstate_is_of(door, s, off, l->thread)) {
		q->matches++;
		q->is_bound = py_tstate_is_bound(s, off);
		if (!q->found || q->is_bound)
			q->found = q->tstate;
		if (q->is_bound)
			return LOOP_STOP;
	}
	q->tstate = tstate_u64(s, off->tstate_next);
	return LOOP_NEXT;
}

LOOP_STEP(py_search_step)

/* All thread states of this thread. Sets found and matches; s->tstate is left undefined. */
static __always_inline void py_search_all(struct py_loop *l)
{
	struct py_scratch *s = l->s;
	struct py_search *q = &s->search;
	struct door door = l->door;

	q->found = 0;
	q->matches = 0;
	q->is_late = 0;
	q->interp = read_pointer(door, s, l->thread->runtime + l->off->runtime_interpreters_head);
	q->tstate = q->interp ? read_pointer(door, s, q->interp + l->off->interp_threads_head) : 0;
	if (q->interp)
		LOOP(LIST_STEPS, py_search_step, l);
}

/* More than one interpreter? Then one thread may have several thread states. */
static __always_inline bool py_has_subinterpreters(struct py_loop *l)
{
	struct py_scratch *s = l->s;
	struct door door = l->door;
	__u64 head = read_pointer(door, s, l->thread->runtime + l->off->runtime_interpreters_head);

	return head && read_pointer(door, s, head + l->off->interp_next);
}

/*
 * Finds the thread state of the interrupted thread and reads it into s->tstate; its address is
 * s->search.found. Returns 0,
 * PY_NONE (no Python thread), PY_FAULT (something is there, but cannot be read), PY_LATE (too many
 * to look at all).
 *
 * A thread can have several (subinterpreters). From 3.12 bound_gilstate names the one it used last,
 * also while it has released the GIL. Before, runtime.tstate_current names it while it holds the
 * GIL; else the last one seen attached is taken, which is a guess where there are others.
 */
static __always_inline int py_find_tstate(struct py_loop *l, bool *has_walked)
{
	struct py_scratch *s = l->s;
	const struct py_offsets *off = l->off;
	const struct py_thread *t = l->thread;
	struct door door = l->door;
	__u64 key = thread_key(t->process, t->tid), addr;

	if (off->runtime_tstate_current != OFF_NONE) {
		addr = read_pointer(door, s, t->runtime + off->runtime_tstate_current);
		if (addr && !py_read_tstate(door, s, off, addr) &&
		    py_tstate_is_of(door, s, off, t)) {
			s->walk.flags |= SAMPLE_HOLDS_GIL;
			s->search.found = addr;
			cache_put(thread_cache, THREAD_SLOTS, key, addr);
			return 0;
		}
	}

	addr = cache_get(thread_cache, THREAD_SLOTS, key);
	if (addr && py_tstate_matches(door, s, off, t, addr) &&
	    (!off->status_bound_gilstate || py_tstate_is_bound(s, off))) {
		s->search.found = addr;
		if (!off->status_bound_gilstate && py_has_subinterpreters(l))
			s->walk.flags |= SAMPLE_AMBIGUOUS;
	} else {
		*has_walked = true;
		py_search_all(l);
		addr = s->search.found;
		if (!addr)
			return s->search.is_late ? PY_LATE : s->walk.faults ? PY_FAULT : PY_NONE;
		if (s->search.matches > 1 && !s->search.is_bound)
			s->walk.flags |= SAMPLE_AMBIGUOUS;
		if (py_read_tstate(door, s, off, addr))
			return py_note_fault(s, addr, off->tstate_size, false);
		cache_put(thread_cache, THREAD_SLOTS, key, addr);
	}
	if (off->status_active && tstate_u64(s, off->tstate_status) & off->status_active)
		s->walk.flags |= SAMPLE_HOLDS_GIL;
	return 0;
}

#endif
