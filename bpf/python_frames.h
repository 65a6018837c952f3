/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PYTHON_FRAMES_H
#define BPF_PYTHON_FRAMES_H

/* The walk over the frames of a thread, leaf first. */

#include "bpf/cache.h"
#include "bpf/python.h"
#include "bpf/python_code.h"

#define WALK_STEPS (2 * FRAMES_MAX + 2) /* frames, a C boundary below each, and the end */
#define OWNED_BY_THREAD 0               /* enum _frameowner, 3.11 to 3.15 */
#define OWNED_BY_GENERATOR 1
/*
 * 3.11 on: PyFrameObject.f_lineno, from sizeof(PyObject); and what is between a frame object and a
 * frame: 104 to 144 bytes where Nuitka puts the one into the other (compiled_frame.h of 4.3), 216
 * and more where CPython has a generator's frame behind its object.
 */
#define FRAME_OBJECT_LINENO 24
#define FRAME_OBJECT_COMPILED 192

/*
 * Does the thread run machine code of CPython's JIT? That moves instr_ptr only where something may
 * raise or call. The outer frames wait in a call, so that their lines are right.
 */
static __always_inline bool py_runs_machine_code(struct py_scratch *s, const struct py_offsets *off)
{
	return off->is_jit ||
	       (off->tstate_executor != OFF_NONE && tstate_u64(s, off->tstate_executor));
}

/*
 * Sets w->frame from s->tstate: 0 if no Python code runs. A 3.11 or 3.12 entry into the interpreter
 * publishes its _PyCFrame on the C stack before it fills it in: until then current_frame is what an
 * earlier call left there. The frame it leads to betrays it: see py_step().
 */
static __always_inline int py_first_frame(struct door door, struct py_scratch *s,
					  const struct py_offsets *off)
{
	struct py_walk *w = &s->walk;
	struct {
		__u64 current, previous;
	} cframe;

	w->is_jit = py_runs_machine_code(s, off);
	w->frame = tstate_u64(s, off->tstate_frame);
	w->entry_previous = 0;
	if (off->frame_kind != FRAME_CFRAME || !w->frame)
		return 0;
	/* _PyCFrame: [use_tracing,] current_frame, previous (3.11.0 and 3.12.0 cpython/pystate.h)
	 */
	if (py_read(door, s, &cframe, sizeof(cframe), w->frame + off->cframe_current))
		return PY_FAULT;
	w->frame = cframe.current;
	if (cframe.previous)
		w->entry_previous = read_pointer(door, s, cframe.previous + off->cframe_current);
	return 0;
}

/*
 * Where the bytecode that a frame runs begins. Free-threaded builds from 3.14 on give each thread a
 * copy: co_tlbc -> _PyCodeArray { size, entries[] } (Include/cpython/code.h); entry 0 is the
 * original.
 */
static __always_inline __u64 py_bytecode(struct door door, struct py_scratch *s,
					 const struct py_offsets *off, __u64 code, __u32 tlbc)
{
	__u64 array, entry;

	if (!tlbc || off->code_tlbc == OFF_NONE)
		return code + off->code_adaptive;
	array = read_pointer(door, s, code + off->code_tlbc);
	entry = array ? read_pointer(door, s, array + 8 + (__u64)tlbc * 8) : 0;
	return entry ? entry : code + off->code_adaptive;
}

/* Offset of the frame's instruction, in bytes. False: the frame has not started. */
static __always_inline bool py_instr(const struct py_offsets *off, __u64 raw, __u64 bytecode,
				     __u32 *instr)
{
	__s64 offset;

	if (off->frame_kind == FRAME_OBJECT)
		offset = (__s64)(__s32)raw * off->lasti_unit;
	else
		offset = raw - bytecode;
	*instr = offset < 0 ? 0 : (__u32)offset;
	return offset >= 0;
}

/*
 * Reads the block below the frame above that holds the walk's next one: one read, many frames. On a
 * data stack the outer frame is below the inner one, and so are most frame objects of a recursion.
 */
static __always_inline void py_read_block(struct door door, struct py_scratch *s)
{
	struct py_walk *w = &s->walk;
	__u64 start = w->frame & ~(__u64)(BLOCK_BYTES - 1), len;

	if (w->above - start > BLOCK_BYTES)
		start = w->above - BLOCK_BYTES;
	w->block_len = 0;
	len = at_most(w->above - start, BLOCK_BYTES);
	if (len && !read_user(door, s->frames + FRAME_BYTES, len, start)) {
		w->block_addr = start;
		w->block_len = len;
	}
}

/*
 * Reads the walk's next frame. Returns where in s->frames it is: in the block, or read alone, at
 * the front. PY_FAULT if it cannot be read.
 */
static __always_inline int py_read_frame(struct door door, struct py_scratch *s,
					 const struct py_offsets *off)
{
	struct py_walk *w = &s->walk;
	__u32 size = off->frame_size;
	__u64 pos;

	if (w->frame < w->above && w->above - w->frame < BLOCK_BYTES &&
	    w->frame - w->block_addr >= w->block_len)
		py_read_block(door, s);
	pos = w->frame - w->block_addr;
	if (pos < BLOCK_BYTES && pos + size <= w->block_len)
		return FRAME_BYTES + pos;
	if (size > FRAME_BYTES)
		return PY_FAULT; /* user space checked; for the verifier */
	return py_read(door, s, s->frames, size, w->frame);
}

/* A frame that is taken apart is recorded, passed over, or the last one. */
enum frame_use { FRAME_RECORDED, FRAME_PASSED, FRAME_LAST };

/*
 * A 3.11 or 3.12 entry frame that does not lead where the newest one must: a stale cframe. The call
 * that it belongs to is not there yet, so that the walk begins again at the frame expected.
 */
static __always_inline void py_walk_again(struct py_walk *w, struct py_async *a, __u64 expected)
{
	w->frame = expected;
	w->above = 0;
	w->depth = 0;
	w->unsent = 0;
	w->deferred = 0;
	w->faults = 0;
	w->is_reused = 0;
	w->flags &= ~SAMPLE_CODE_FAULT;
	a->task = 0;
}

/* Is it the one of a task's coroutine? The innermost of them is the task. */
static __always_inline bool py_meets_task(struct py_async *a, __u64 frame)
{
	for (__u32 i = 0; i < ASYNC_TASKS_MAX; i++) {
		if (a->task || i >= a->count || a->frames[i] != frame)
			continue;
		a->task = a->tasks[i];
		a->frame = frame;
		return true;
	}
	return false;
}

/*
 * The frame object that the frame at addr lies in, 0: in none. That is how Nuitka makes the frames
 * of functions that it has compiled. They are linked as CPython's are, with no C boundary below,
 * lie on the heap, and run no bytecode: the line is in the object.
 */
static __always_inline __u64 py_object_around(const struct py_offsets *off, const __u8 *frame,
					      __u8 owner, __u64 addr)
{
	__u64 object;

	if (off->frame_object == OFF_NONE || owner == OWNED_BY_THREAD)
		return 0;
	object = field_u64(frame, off->frame_object, FRAME_BYTES - 1);
	return object && addr - object < FRAME_OBJECT_COMPILED ? object : 0;
}

/* Reads the line of a compiled frame, which py_take_frame() has found. */
static __always_inline void py_read_line(struct door door, struct py_scratch *s,
					 const struct py_offsets *off)
{
	struct py_frame *f = &s->frame;

	if (f->object) /* str_length is sizeof(PyObject) */
		py_read(door, s, &f->line, sizeof(f->line),
			f->object + off->str_length + FRAME_OBJECT_LINENO);
}

/*
 * The line of a compiled frame, 0: it is bytecode. Up to 3.10 such a frame is a frame object whose
 * f_lasti stays -1. One of bytecode has that until it begins, and the line of its def, or none.
 */
static __always_inline __u32 py_line(const struct py_offsets *off, const struct py_frame *f)
{
	__s32 line = f->object ? f->line : 0;

	if (off->frame_kind == FRAME_OBJECT && (__s32)f->raw_instr < 0)
		line = f->raw_instr >> 32;
	return line > 0 ? line : 0;
}

/* Takes the frame at s->frames + pos apart. Returns enum frame_use. */
VERIFIED_ONCE int py_take_frame(struct py_scratch *s, const struct py_offsets *off, __u32 pos)
{
	__u64 previous, expected;
	struct py_walk *w;
	struct py_frame *f;
	const __u8 *frame;

	if (!s || !off || pos > FRAME_BYTES + BLOCK_BYTES)
		return FRAME_LAST; /* for the verifier */
	w = &s->walk;
	f = &s->frame;
	frame = s->frames + pos;
	f->code = field_u64(frame, off->frame_code, FRAME_BYTES - 1) & ~(__u64)off->tagged_mask;
	f->raw_instr = field_u64(frame, off->frame_instr, FRAME_BYTES - 1);
	f->tlbc = off->frame_tlbc_index != OFF_NONE
			  ? field_u32(frame, off->frame_tlbc_index, FRAME_BYTES - 1)
			  : 0;
	f->stacktop = field_u32(frame, off->frame_instr + 8, FRAME_BYTES - 1);
	f->owner = 0;
	f->object = 0;
	f->is_entry = 0;
	f->is_collecting = w->gc_frame && w->frame == w->gc_frame;
	f->is_task_root = s->async.count && py_meets_task(&s->async, w->frame);
	previous = field_u64(frame, off->frame_previous, FRAME_BYTES - 1);
	if (off->frame_kind == FRAME_OBJECT) {
		w->is_entry = 1;
	} else {
		f->owner = frame[off->frame_owner & (FRAME_BYTES - 1)];
		f->object = py_object_around(off, frame, f->owner, w->frame);
		/* A compiled frame has no value in 3.11's is_entry. */
		f->is_entry = off->owner_boundary ? f->owner >= off->owner_boundary
			      : f->object         ? 0
						  : frame[off->frame_is_entry & (FRAME_BYTES - 1)];
		/*
		 * greenlet takes the C boundaries out of a chain while it switches. A function's
		 * frame is linked before it begins, so that where it leads nowhere all ends.
		 */
		w->is_entry = f->is_entry || f->object ||
			      (off->owner_boundary && w->depth && f->owner == OWNED_BY_THREAD);
		expected = w->entry_previous;
		if (f->is_entry && expected) {
			w->entry_previous = 0;
			if (previous != expected) {
				py_walk_again(w, &s->async, expected);
				return FRAME_PASSED;
			}
		}
	}
	if (previous == w->frame) {
		w->status = UNWIND_INVALID;
		return FRAME_LAST;
	}
	w->above = w->frame;
	w->frame = previous;
	if (off->owner_boundary && f->is_entry) {
		w->shim = w->above;
		if (w->depth && w->depth <= FRAMES_MAX)
			s->records[w->depth - 1].flags |= w->entry;
		if (f->is_collecting)
			w->gc_frame = previous;
		return FRAME_PASSED;
	}
	if (w->depth >= FRAMES_MAX) {
		w->status = UNWIND_TRUNCATED;
		return FRAME_LAST;
	}
	f->id = py_recall_repeated(s, f->code);
	f->is_code_read = 0;
	f->is_compared = 0;
	return FRAME_RECORDED;
}

/* Records the frame that was taken apart, but for one that is still being set up. Returns 0. */
VERIFIED_ONCE int py_record_frame(struct py_scratch *s, const struct py_offsets *off)
{
	struct frame_record *r;
	struct py_walk *w;
	struct py_frame *f;
	bool is_started;
	__u32 depth, instr, line, flags;

	if (!s || !off)
		return 0; /* for the verifier */
	w = &s->walk;
	f = &s->frame;
	depth = w->depth;
	flags = (f->is_entry ? w->entry : 0) | (f->is_task_root ? FRAME_TASK_ROOT : 0);
	if (f->is_collecting)
		w->flags |= SAMPLE_IN_GC;
	if (f->is_collecting || (!depth && w->flags & SAMPLE_IN_GC))
		flags |= FRAME_COLLECTS;
	if (depth >= FRAMES_MAX)
		return 0; /* for the verifier */
	r = &s->records[depth];
	is_started = py_instr(off, f->raw_instr, f->bytecode, &instr);
	line = py_line(off, f);
	if (line) {
		instr = line;
		is_started = true;
		flags |= FRAME_COMPILED;
	}
	if (!f->id) {
		w->flags |= SAMPLE_CODE_FAULT;
		*r = (struct frame_record){ f->code, instr, FRAME_UNREADABLE | flags };
		w->depth = depth + 1;
		return 0;
	}
	/* A frame that is still being set up is not there yet, as in CPython's own traceback. */
	if (f->is_code_read && !depth && !line && off->code_firsttraceable != OFF_NONE &&
	    f->owner != OWNED_BY_GENERATOR &&
	    (!is_started || instr < 2 * code_u32(s, off->code_firsttraceable)))
		return 0;
	if (off->owner_boundary && !depth && f->owner == OWNED_BY_THREAD &&
	    off->code_firsttraceable != OFF_NONE &&
	    instr > 2 * code_u32(s, off->code_firsttraceable))
		w->is_entry = 1; /* has begun */
	py_remember_repeated(s);
	if (!is_sent(f->id))
		py_note_unsent(s, f->id, f->code);
	*r = (struct frame_record){
		.code = f->id,
		.instr = instr,
		.flags = flags | (is_started ? 0 : FRAME_NOT_STARTED) |
			 (!depth && w->is_jit ? FRAME_IN_JIT : 0),
	};
	w->depth = depth + 1;
	if (!depth) {
		w->leaf_instr = f->raw_instr;
		w->leaf_bytecode = code_u64(s, off->code_adaptive);
		w->leaf_stacktop = f->stacktop;
	}
	return 0;
}

/* Returns the innermost of the states from which the state being walked was entered; NESTED_MAX:
 * none. */
VERIFIED_ONCE __u32 py_next_nested(const struct py_search *q)
{
	__u32 next = NESTED_MAX;
	__u64 mark = ~0ULL;

	if (!q)
		return next; /* for the verifier */
	for (__u32 i = 0; i < NESTED_MAX; i++) {
		if (i >= q->nested_count || q->nested[i].mark <= q->nested_mark ||
		    q->nested[i].mark >= mark)
			continue;
		mark = q->nested[i].mark;
		next = i;
	}
	return next;
}

/*
 * Sets w->frame and w->interp to where the walk goes on behind the outermost frame of an
 * interpreter, and puts a marker between. Who calls two in turn with one state each has its calls
 * in both, which lie on the stack by turns: they are told as if they did not, as a guess. next:
 * py_next_nested(). Returns false if there is no caller.
 */
VERIFIED_ONCE int py_leave_interpreter(struct py_scratch *s, __u32 next)
{
	const struct py_nested *caller;
	struct py_search *q;
	struct py_walk *w;
	struct frame_record *marker;
	__u32 depth;

	if (!s)
		return false; /* for the verifier */
	q = &s->search;
	w = &s->walk;
	depth = w->depth;
	if (next >= NESTED_MAX || depth >= FRAMES_MAX)
		return false;
	caller = &q->nested[next & (NESTED_MAX - 1)];
	q->nested_mark = caller->mark;
	if (q->nested_mark < w->shim && w->shim < q->met.stack_end)
		w->flags |= SAMPLE_AMBIGUOUS;
	if (depth) { /* it has frames */
		marker = &s->records[at_most(depth - 1, FRAMES_MAX - 2)];
		marker++->flags &= ~FRAME_ENTRY; /* the marker has it: C lies below that */
		*marker =
			(struct frame_record){ w->interpreter, 0, FRAME_INTERPRETER | FRAME_ENTRY };
		w->depth = depth + 1;
	}
	w->frame = caller->frame;
	w->interp = caller->interp;
	w->above = 0;
	w->shim = 0;
	w->entry_previous = 0;
	w->is_entry = 0;
	py_forget_repeated(s);
	return true;
}

/* After the outermost frame of an interpreter: continues with the interpreter from which it was
 * entered, if any. */
static __always_inline bool py_enter_caller(struct py_loop *l)
{
	struct py_scratch *s = l->s;
	struct py_walk *w = &s->walk;
	struct door door = l->door;

	if (!w->has_several || (w->depth && !w->is_entry) ||
	    !py_leave_interpreter(s, py_next_nested(&s->search)))
		return false;
	py_enter_interpreter(l);
	if (l->off->frame_kind == FRAME_CFRAME)
		w->frame = read_pointer(door, s, w->frame + l->off->cframe_current);
	return true;
}

/* Returns the status of a walk that has reached its last frame. */
static __always_inline __u8 py_status_of_end(const struct py_scratch *s)
{
	const struct py_walk *w = &s->walk;
	const struct py_search *q = &s->search;

	if (!w->is_entry)
		return UNWIND_CUT;
	if (!w->has_several)
		return UNWIND_COMPLETE;
	if (q->nested_count > NESTED_MAX)
		return UNWIND_TRUNCATED;
	return q->is_late ? UNWIND_LATE : q->is_cut ? UNWIND_FAULT : UNWIND_COMPLETE;
}

/* One frame. */
static int py_step(__u32 i, struct py_loop *l)
{
	struct py_scratch *s = l->s;
	const struct py_offsets *off = l->off;
	struct py_walk *w = &s->walk;
	struct py_frame *f = &s->frame;
	struct door door = l->door;
	int pos, use;

	if (!w->frame) {
		if (py_enter_caller(l))
			return LOOP_NEXT;
		w->status = py_status_of_end(s);
		return LOOP_STOP;
	}
	if (py_is_late(w)) {
		w->status = UNWIND_LATE;
		return LOOP_STOP;
	}
	pos = py_read_frame(door, s, off);
	if (pos < 0) {
		w->status = UNWIND_FAULT;
		return LOOP_STOP;
	}
	use = py_take_frame(s, off, pos);
	if (use != FRAME_RECORDED)
		return use == FRAME_PASSED ? LOOP_NEXT : LOOP_STOP;
	if (!f->id)
		f->id = py_code_identity(door, s, off, f->code);
	f->bytecode = py_bytecode(door, s, off, f->code, f->tlbc);
	py_read_line(door, s, off);
	py_record_frame(s, off);
	return LOOP_NEXT;
}

LOOP_STEP(py_step)

/* What a walk from w->frame begins with. */
static __always_inline void py_begin_walk(struct py_scratch *s)
{
	struct py_walk *w = &s->walk;
	struct trust *trust = trust_of(w->process);

	w->above = 0;
	w->shim = 0;
	w->block_addr = 0;
	w->block_len = 0;
	w->depth = 0;
	w->unsent = 0;
	w->deferred = 0;
	w->bytes_left = CODE_BYTES_PER_SAMPLE;
	w->is_entry = !w->frame;
	w->is_reused = 0;
	w->is_new = 0;
	if (!s->search.is_cut)
		w->faults = 0;
	w->is_strict = trust->clean == TRUST_NEVER || trust->clean < TRUST_SAMPLES;
	w->status = UNWIND_INVALID; /* what a walk that never ends is */
	py_forget_repeated(s);
}

/* Walks from w->frame to the thread's outermost frame. */
static __always_inline void py_walk_frames(struct py_loop *l)
{
	struct py_walk *w = &l->s->walk;
	struct trust *trust = trust_of(w->process);

	py_begin_walk(l->s);
	LOOP(WALK_STEPS, py_step, l);
	if (w->is_reused)
		trust->clean = TRUST_NEVER;
	else if (trust->clean != TRUST_NEVER)
		trust->clean = w->is_new ? 0 : trust->clean + w->is_strict;
}

#endif
