/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PYTHON_LOOK_H
#define BPF_PYTHON_LOOK_H

/*
 * One thread, looked at for its own sake: its stack with the addresses of its frames, and what else
 * it does at that moment. Pure: user space reads threads that stand still by it, the thread itself
 * does in the kernel (own.bpf.c).
 */

#include "bpf/python_frames.h"
#include "bpf/python_gil.h"
#include "bpf/python_state.h"
#include "bpf/python_thread.h"

struct py_look {
	struct py_loop loop;
	struct walk_frame *frames; /* FRAMES_MAX of them */
	/*
	 * Not 0: another number for each pass over a process's threads, in which a code address
	 * that was met stands for the same object: whoever passes looks at all of them again behind
	 * it.
	 */
	__u64 generation;
};

/* A step of the walk, and what became of it. */
static int py_look_step(__u32 i, struct py_look *look)
{
	struct py_scratch *s = look->loop.s;
	__u64 frame = s->walk.frame;
	__u32 depth = s->walk.depth;
	const struct frame_record *r;
	int next = py_step(i, &look->loop);
	bool is_marker;

	if (s->walk.depth != depth + 1 || depth >= FRAMES_MAX)
		return next; /* passed over, or the walk has begun again, or ended */
	r = &s->records[depth];
	is_marker = r->flags & FRAME_INTERPRETER;
	look->frames[depth] = (struct walk_frame){
		.frame = is_marker ? r->code : frame,
		.code = is_marker ? 0 : s->frame.code,
		.identity = is_marker || r->flags & FRAME_UNREADABLE ? 0 : r->code,
		.instr = r->instr,
		.flags = r->flags,
	};
	return next;
}

LOOP_STEP(py_look_step)

/* 0: it cannot be read. */
static __always_inline __u64 py_type_of(struct py_loop *l, __u64 object)
{
	struct door door = l->door;
	__u64 head = l->off->str_length, type; /* sizeof(PyObject), which ends in ob_type */

	return read_user(door, &type, sizeof(type), object + head - 8) ? 0 : type;
}

/*
 * Walks the thread that look->loop names, whose s->walk has process and deadline_ns and else zeros.
 * Code addresses are not trusted. Returns 0, then head->depth of look->frames are filled in, or
 * PY_NONE (it has no thread state), PY_FAULT (that cannot be read), PY_LATE.
 */
static __always_inline int py_look(struct py_look *look, struct walk_head *head)
{
	struct py_loop *l = &look->loop;
	struct py_scratch *s = l->s;
	struct door door = l->door;
	int r;

	s->walk.is_moment = 1;
	s->walk.pass = look->generation;
	r = py_find_tstate(l);
	if (r)
		return r;
	head->interp = tstate_u64(s, l->off->tstate_interp);
	py_enter_interpreter(l);
	head->interpreter = py_interpreter_shown(&s->walk, l->off);
	head->gil = gil_of_interpreter(door, l->off, l->thread->runtime, head->interp);
	py_note_exception(l);
	if (s->walk.flags & SAMPLE_HANDLES)
		head->exception =
			py_type_of(l, field_u64(s->text, l->off->exc_value, EXC_ITEM_BYTES - 1));
	py_note_collection(l);
	if (py_first_frame(door, s, l->off))
		return PY_FAULT;
	py_begin_walk(s);
	s->walk.is_strict = 1;
	LOOP(WALK_STEPS, py_look_step, look);
	head->status = s->walk.status;
	head->flags = s->walk.flags;
	head->tstate = s->search.runs;
	head->depth = s->walk.depth;
	return 0;
}

#endif
