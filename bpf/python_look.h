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

	if (s->walk.depth != depth + 1 || depth >= FRAMES_MAX)
		return next; /* passed over, or the walk has begun again, or ended */
	r = &s->records[depth];
	look->frames[depth] = (struct walk_frame){
		.frame = frame,
		.code = s->frame.code,
		.identity = r->flags & FRAME_UNREADABLE ? 0 : r->code,
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

static __always_inline __u64 py_gil_of(struct door door, const struct py_offsets *off,
				       __u64 runtime, __u64 interp)
{
	if (off->gil_last_holder == OFF_NONE)
		return 0;
	if (off->runtime_gil != OFF_NONE)
		return runtime + off->runtime_gil + off->gil_last_holder;
	return gil_at(door, off, interp);
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
	int r = py_find_tstate(l);

	if (r)
		return r;
	head->interp = tstate_u64(s, l->off->tstate_interp);
	head->gil = py_gil_of(door, l->off, l->thread->runtime, head->interp);
	py_note_exception(l);
	if (s->walk.flags & SAMPLE_HANDLES)
		head->exception =
			py_type_of(l, field_u64(s->text, l->off->exc_value, EXC_ITEM_BYTES - 1));
	py_note_collection(l);
	if (py_first_frame(door, s, l->off))
		return PY_FAULT;
	py_enter_interpreter(l);
	s->walk.interpreter = 0; /* one moment: an address is of one code object */
	if (look->generation)
		s->walk.generation = look->generation;
	py_begin_walk(&s->walk);
	s->walk.is_strict = 1;
	LOOP(WALK_STEPS, py_look_step, look);
	head->status = s->walk.status;
	head->flags = s->walk.flags;
	head->tstate = s->search.found;
	head->depth = s->walk.depth;
	return 0;
}

#endif
