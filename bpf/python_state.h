/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PYTHON_STATE_H
#define BPF_PYTHON_STATE_H

/*
 * What a thread does besides running its frames: handle an exception, collect garbage. What cannot
 * be read is not so: a sample is not worth less without.
 */

#include "bpf/cache.h"
#include "bpf/context_layout.h"
#include "bpf/python.h"

#define EXC_ITEMS_MAX 256 /* one of the thread, and one of each generator that runs in another */

/* Up to 3.10: type, value, traceback, previous; later value, previous. */
#define EXC_ITEM_BYTES 32
#define NONE_TYPE 0x65707954656e6f4eULL /* "NoneType" */

/*
 * Is it another object than None? The name of the type says so, as an interpreter without symbols
 * has it, too. A type follows the head of a var object with tp_name. What cannot be read, as a page
 * that a child has not touched since its fork, is not known to be one.
 */
static __always_inline bool py_is_some(struct py_loop *l, __u64 object)
{
	struct door door = l->door;
	__u64 head = l->off->str_length; /* sizeof(PyObject), which ends in ob_type */
	__u64 type, at, text[2] = {};

	return !read_user(door, &type, sizeof(type), object + head - 8) &&
	       !read_user(door, &at, sizeof(at), type + head + 8) &&
	       !read_user(door, text, sizeof("NoneType"), at) && (text[0] != NONE_TYPE || text[1]);
}

#define TYPE_IS_EXCEPTION (1ULL << 30) /* Py_TPFLAGS_BASE_EXC_SUBCLASS, 3.6 to 3.15 */

/*
 * Is it an exception? From 3.11 on whoever has handled one has None in its place. The type says so
 * in memory that was written when it was made ready, so that a child has it right after a fork;
 * what cannot be read is no exception.
 */
static __always_inline bool py_is_exception(struct py_loop *l, __u64 value)
{
	struct py_handling *h = &l->s->handling;
	struct door door = l->door;
	__u64 head = l->off->str_length; /* sizeof(PyObject), which ends in ob_type */
	__u64 type, flags;

	if (!value || value == h->none || read_user(door, &type, sizeof(type), value + head - 8) ||
	    read_user(door, &flags, sizeof(flags), type + head + TYPE_FLAGS))
		return false;
	if (!(flags & TYPE_IS_EXCEPTION))
		h->none = value;
	return flags & TYPE_IS_EXCEPTION;
}

/* One item. The first exception is the one that is handled. */
static int py_handling_step(__u32 i, struct py_loop *l)
{
	struct door door = l->door;
	struct py_scratch *s = l->s;
	struct py_handling *h = &s->handling;
	__u64 size = at_most(l->off->exc_previous + 8, EXC_ITEM_BYTES);

	if (!h->item || read_user(door, s->text, size, h->item))
		return LOOP_STOP;
	if (py_is_exception(l, field_u64(s->text, l->off->exc_value, EXC_ITEM_BYTES - 1))) {
		s->walk.flags |= SAMPLE_HANDLES;
		return LOOP_STOP;
	}
	h->item = field_u64(s->text, l->off->exc_previous, EXC_ITEM_BYTES - 1);
	return LOOP_NEXT;
}

LOOP_STEP(py_handling_step)

/*
 * Does the thread handle an exception, in an except or finally block or below one? Needs s->tstate.
 */
static __always_inline void py_note_exception(struct py_loop *l)
{
	struct py_scratch *s = l->s;
	struct trust *trust = trust_of(s->walk.process);

	if (l->off->tstate_exc_info == OFF_NONE)
		return;
	s->handling.none = trust->none;
	s->handling.item = tstate_u64(s, l->off->tstate_exc_info);
	LOOP(EXC_ITEMS_MAX, py_handling_step, l);
	trust->none = s->handling.none;
}

/*
 * Does it collect garbage? From 3.15 on the interpreter says on which frame: the walk meets it, or
 * it is another thread that collects. Before, it is the one that holds the GIL; finalizers may let
 * go of it, and free-threaded builds have them run beside others. Needs s->tstate.
 */
static __always_inline void py_note_collection(struct py_loop *l)
{
	struct door door = l->door;
	struct py_walk *w = &l->s->walk;
	const struct py_offsets *off = l->off;
	__u64 interp = tstate_u64(l->s, off->tstate_interp), at, frame = 0;
	__u32 collecting;

	if (off->interp_gc_collecting != OFF_NONE)
		at = interp + off->interp_gc_collecting;
	else if (off->runtime_gc_collecting != OFF_NONE)
		at = l->thread->runtime + off->runtime_gc_collecting;
	else
		return;
	if (read_user(door, &collecting, sizeof(collecting), at) || !collecting)
		return;
	if (off->interp_gc_frame != OFF_NONE)
		read_user(door, &frame, sizeof(frame), interp + off->interp_gc_frame);
	w->gc_frame = frame;
	if (!frame && w->flags & SAMPLE_HOLDS_GIL)
		w->flags |= SAMPLE_IN_GC;
}

#endif
