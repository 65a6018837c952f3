/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/await.h"

#include <errno.h>
#include <string.h>

#define FRAME_BYTES 256      /* of a frame at most, without its variables: offsets_check() */
#define STACK_MAX 100000     /* values in one frame: more is nonsense */
#define OPCODE_YIELD_FROM 72 /* 3.8 to 3.10: Include/opcode.h */
#define TAG_BITS 3           /* of a _PyStackRef */
#define CYTHON_CODE 8        /* __pyx_CoroutineObject.gi_code, from __module__'s slot on */
/* RESUME's argument: the low bits say after what; 2: yield from, 3: await (Lib/dis.py of 3.11) */
#define RESUME_AFTER 3
#define RESUME_AFTER_AWAIT 2

/* The head of a frame, as it was read. */
struct frame_head {
	uint64_t address;
	uint8_t bytes[FRAME_BYTES];
};

static uint64_t field(const struct frame_head *f, size_t at, size_t bytes)
{
	uint64_t value = 0;

	memcpy(&value, f->bytes + at, bytes);
	return value;
}

static size_t head_bytes(const struct await_reader *a)
{
	size_t stack_end = a->layout.stack + 8U;

	return stack_end > a->objects.off->frame_size ? stack_end : a->objects.off->frame_size;
}

static int value_of_number(struct await_reader *a, const struct frame_head *f, uint64_t first,
			   uint64_t *out)
{
	int32_t count = (int32_t)field(f, a->layout.stack, 4);

	if (count < 1 || count > STACK_MAX)
		return -EBADMSG;
	return object_get_pointer(&a->objects, first + 8 * ((uint64_t)count - 1), out);
}

/* Does code[] at this byte say that the frame awaits? 3.8 to 3.10. */
static int awaits_by_code(struct await_reader *a, const struct coroutine *c, int64_t instr)
{
	const struct code_object *code;
	uint8_t opcode;
	int e;

	if (instr < 0)
		return 0;
	if ((e = code_objects_get(a->codes, &a->objects, c->code, &code)) < 0 ||
	    (e = object_get(&a->objects, code->bytecode + instr, &opcode, 1)) < 0)
		return e;
	return opcode == OPCODE_YIELD_FROM;
}

/* f_lasti up to 3.10, else a pointer. */
static uint64_t instr_of(const struct await_reader *a, const struct frame_head *f)
{
	const struct py_offsets *off = a->objects.off;

	if (off->frame_kind != FRAME_OBJECT)
		return field(f, off->frame_instr, 8);
	return (uint64_t)(int32_t)field(f, off->frame_instr, 4) * off->lasti_unit;
}

/* UINT32_MAX: it has not started. */
static uint32_t offset_of(const struct await_reader *a, const struct frame_head *f, uint64_t code)
{
	const struct py_offsets *off = a->objects.off;
	uint64_t instr = instr_of(a, f);

	if (off->frame_kind != FRAME_OBJECT)
		instr -= code + off->code_adaptive;
	return instr > INT32_MAX ? UINT32_MAX : (uint32_t)instr;
}

/* f_lasti stays at the instruction before YIELD_FROM, to which it comes back. */
static int state_by_stacktop(struct await_reader *a, const struct frame_head *f,
			     struct coroutine *c)
{
	uint64_t top = field(f, a->layout.stack, 8);
	int64_t lasti = (int64_t)instr_of(a, f);
	int e;

	if (!top) {
		c->state = COROUTINE_RUNNING;
		return 0;
	}
	if (lasti < 0) {
		c->state = COROUTINE_CREATED;
		return 0;
	}
	e = awaits_by_code(a, c, lasti + 2);
	if (e < 0)
		return e;
	c->state = e ? COROUTINE_AWAITS : COROUTINE_YIELDED;
	return e ? object_get_pointer(&a->objects, top - 8, &c->awaited) : 0;
}

static int state_by_stackdepth(struct await_reader *a, const struct frame_head *f,
			       struct coroutine *c)
{
	int e;

	if (c->state != COROUTINE_YIELDED)
		return 0;
	e = awaits_by_code(a, c, (int64_t)instr_of(a, f) + 2);
	if (e <= 0)
		return e;
	c->state = COROUTINE_AWAITS;
	return value_of_number(a, f, field(f, a->layout.valuestack, 8), &c->awaited);
}

static int state_by_oparg(struct await_reader *a, const struct frame_head *f, struct coroutine *c)
{
	uint8_t oparg;
	int e;

	if (c->state != COROUTINE_YIELDED)
		return 0;
	if ((e = object_get(&a->objects, instr_of(a, f) + 3, &oparg, 1)) < 0)
		return e;
	if ((oparg & RESUME_AFTER) < RESUME_AFTER_AWAIT)
		return 0;
	c->state = COROUTINE_AWAITS;
	return value_of_number(a, f, f->address + a->layout.locals, &c->awaited);
}

static int value_on_stack(struct await_reader *a, const struct frame_head *f, struct coroutine *c)
{
	uint64_t top;
	int e;

	if (c->state != COROUTINE_AWAITS)
		return 0;
	if (a->layout.await == AWAIT_STATE)
		return value_of_number(a, f, f->address + a->layout.locals, &c->awaited);
	top = field(f, a->layout.stack, 8);
	e = object_get_pointer(&a->objects, top - a->layout.above, &c->awaited);
	c->awaited &= ~(uint64_t)TAG_BITS;
	return e;
}

static enum coroutine_state state_of_number(const struct task_layout *l, int8_t state)
{
	if (state >= l->cleared)
		return COROUTINE_ENDED;
	if (state == l->running)
		return COROUTINE_RUNNING;
	if (state == l->created)
		return COROUTINE_CREATED;
	if (l->awaiting != l->suspended && (state == l->awaiting || state == l->awaiting_2))
		return COROUTINE_AWAITS;
	return COROUTINE_YIELDED;
}

/* The frame, and the state if a number says it. 3.11 on: the frame is in the object. */
static int find_frame(struct await_reader *a, uint64_t object, struct coroutine *c)
{
	const struct task_layout *l = &a->layout;
	bool is_inside = l->await >= AWAIT_OPARG;
	int8_t state = 0;
	int e;

	c->frame = object + l->frame;
	if (!is_inside && (e = object_get_pointer(&a->objects, c->frame, &c->frame)) < 0)
		return e;
	if (!c->frame) {
		c->state = COROUTINE_ENDED;
		return 0;
	}
	if (l->await == AWAIT_STACKTOP)
		return 0;
	e = object_get(&a->objects, (is_inside ? object : c->frame) + l->state, &state, 1);
	if (e < 0)
		return e;
	c->state = state_of_number(l, state);
	if (c->state == COROUTINE_ENDED)
		c->frame = 0;
	return 0;
}

/* Reads which code the frame of c runs, and at which instruction. */
static int read_head(struct await_reader *a, struct coroutine *c, struct frame_head *f)
{
	const struct py_offsets *off = a->objects.off;
	int e;

	f->address = c->frame;
	if ((e = object_get(&a->objects, c->frame, f->bytes, head_bytes(a))) < 0)
		return e;
	c->code = field(f, off->frame_code, 8) & ~(uint64_t)off->tagged_mask;
	c->instr = offset_of(a, f, c->code);
	return 0;
}

int await_call(struct await_reader *a, uint64_t frame, struct coroutine *out, uint64_t *caller)
{
	struct coroutine c = { .state = COROUTINE_YIELDED, .frame = frame };
	struct frame_head f;
	int e = read_head(a, &c, &f);

	if (e < 0)
		return e;
	*out = c;
	*caller = field(&f, a->objects.off->frame_previous, 8);
	return 0;
}

int coroutine_get(struct await_reader *a, uint64_t object, struct coroutine *out)
{
	struct coroutine c = { 0 };
	struct frame_head f;
	int e = find_frame(a, object, &c);

	if (e < 0)
		return e;
	if (c.frame) {
		if ((e = read_head(a, &c, &f)) < 0)
			return e;
		if (a->layout.await == AWAIT_STACKTOP)
			e = state_by_stacktop(a, &f, &c);
		else if (a->layout.await == AWAIT_STACKDEPTH)
			e = state_by_stackdepth(a, &f, &c);
		else if (a->layout.await == AWAIT_OPARG)
			e = state_by_oparg(a, &f, &c);
		else
			e = value_on_stack(a, &f, &c);
	}
	if (e < 0)
		return e;
	*out = c;
	return 0;
}

/* A coroutine of Cython's, by what its type says of its members. No line is noted where it waits.
 */
static int cython_get(struct await_reader *a, uint64_t object, struct coroutine *out)
{
	static const char *const awaited[] = { "cr_await", "gi_yieldfrom", "ag_await" };
	struct coroutine c = { .state = COROUTINE_YIELDED, .instr = UINT32_MAX };
	uint64_t type, at = 0, module;
	int e = object_type(&a->objects, object, &type);

	for (size_t i = 0; i < sizeof(awaited) / sizeof(*awaited) && !e && !at; i++) {
		e = object_slot(&a->objects, type, awaited[i], &at);
		e = e == -ENOENT ? 0 : e;
	}
	if (e < 0 || !at)
		return e < 0 ? e : -ENOENT;
	if ((e = object_slot(&a->objects, type, "__module__", &module)) < 0 ||
	    (e = object_get_pointer(&a->objects, object + module + CYTHON_CODE, &c.code)) < 0 ||
	    (e = object_get_pointer(&a->objects, object + at, &c.awaited)) < 0)
		return e;
	if (c.awaited)
		c.state = COROUTINE_AWAITS;
	*out = c;
	return 0;
}

int await_argument(struct await_reader *a, uint64_t frame, unsigned int index, uint64_t *out)
{
	uint64_t value;
	int e = object_get_pointer(&a->objects, frame + a->layout.locals + 8ULL * index, &value);

	if (!e)
		*out = a->layout.await == AWAIT_POINTER ? value & ~(uint64_t)TAG_BITS : value;
	return e;
}

int await_chain(struct await_reader *a, uint64_t object, await_fn fn, void *arg, uint64_t *last)
{
	struct coroutine c;
	enum object_kind kind;
	int e;

	for (unsigned int depth = 0; object; depth++) {
		if (depth == AWAIT_DEPTH_MAX)
			return -EBADMSG;
		if ((e = object_kind(&a->kinds, &a->objects, object, &kind)) < 0)
			return e;
		if (kind == KIND_WRAPPER) {
			e = object_get_pointer(&a->objects, object + a->objects.head, &object);
			if (e < 0)
				return e;
			continue;
		}
		if (kind < KIND_COROUTINE || kind > KIND_CYTHON)
			break;
		if ((e = kind == KIND_CYTHON ? cython_get(a, object, &c)
					     : coroutine_get(a, object, &c)) < 0)
			return e;
		if (c.state != COROUTINE_ENDED && (e = fn(arg, &c)) != 0)
			return e;
		object = c.state == COROUTINE_AWAITS ? c.awaited : 0;
	}
	*last = object;
	return 0;
}
