/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INTERP_BYTES 9000 /* what is used of PyInterpreterState */
#define TSTATE_SIZE 400
#define WANT_MAX (2 * FRAMES_MAX)

static __u64 align(__u64 addr, __u64 to)
{
	return (addr + to - 1) & ~(to - 1);
}

__u64 world_alloc(struct world *w, size_t bytes)
{
	static const __u8 zero[PAGE_BYTES];
	__u64 addr = align(w->heap, 16);

	w->heap = addr + bytes;
	for (size_t at = 0; at < bytes; at += PAGE_BYTES)
		memory_write(w->m, addr + at, zero,
			     bytes - at < PAGE_BYTES ? bytes - at : PAGE_BYTES);
	return addr;
}

void world_new_page(struct world *w)
{
	w->heap = align(w->heap, PAGE_BYTES);
}

void world_init(struct world *w, const struct py_offsets *off)
{
	static const struct world_bases far_apart = {
		.runtime = WORLD_RUNTIME,
		.heap = WORLD_HEAP,
		.stack = WORLD_STACK,
		.cstack = WORLD_CSTACK,
	};

	world_init_at(w, off, &far_apart);
}

void world_init_at(struct world *w, const struct py_offsets *off, const struct world_bases *bases)
{
	unwinder_reset();
	*w = (struct world){
		.off = off,
		.m = memory_new(),
		.heap = bases->heap,
		.stack = bases->stack,
		.cstack = bases->cstack,
		.want = calloc(WANT_MAX, sizeof(*w->want)),
		.thread = { .pointer = WORLD_THREAD,
			    .runtime = bases->runtime,
			    .process = WORLD_PROCESS,
			    .tid = WORLD_TID },
	};
	assert_non_null(w->want);
	memory_use(w->m);
	memory_write_u64(w->m, bases->runtime + off->runtime_interpreters_head, 0);
	world_set_current(w, 0);
	w->interp = world_interp(w);
	w->tstate = world_tstate(w, w->interp, WORLD_THREAD);
	world_set_status(w, w->tstate, off->status_bound_gilstate);
	if (off->frame_kind == FRAME_CFRAME) { /* the root cframe, in PyThreadState */
		w->cframe = w->tstate + TSTATE_SIZE - 24;
		memory_write_u64(w->m, w->tstate + off->tstate_frame, w->cframe);
	}
}

void world_release(struct world *w)
{
	memory_free(w->m);
	free(w->want);
	*w = (struct world){ 0 };
}

__u64 world_interp(struct world *w)
{
	__u64 interp = world_alloc(w, INTERP_BYTES), head = w->thread.runtime;

	head += w->off->runtime_interpreters_head;
	memory_write_u64(w->m, interp + w->off->interp_next, memory_u64(w->m, head));
	memory_write_u64(w->m, head, interp);
	if (w->off->interp_id != OFF_NONE)
		memory_write_u64(w->m, interp + w->off->interp_id, w->interps++);
	return interp;
}

__u64 world_tstate(struct world *w, __u64 interp, __u64 pthread_self)
{
	const struct py_offsets *off = w->off;
	__u64 tstate = world_alloc(w, TSTATE_SIZE);
	__u64 head = memory_u64(w->m, interp + off->interp_threads_head);

	memory_write_u64(w->m, tstate + off->tstate_next, head);
	if (head)
		memory_write_u64(w->m, head + off->tstate_prev, tstate);
	memory_write_u64(w->m, interp + off->interp_threads_head, tstate);
	memory_write_u64(w->m, tstate + off->tstate_interp, interp);
	memory_write_u64(w->m, tstate + off->tstate_thread_id, pthread_self);
	return tstate;
}

void world_tstate_unlink(struct world *w, __u64 tstate)
{
	const struct py_offsets *off = w->off;
	__u64 prev = memory_u64(w->m, tstate + off->tstate_prev);
	__u64 next = memory_u64(w->m, tstate + off->tstate_next);
	__u64 interp = memory_u64(w->m, tstate + off->tstate_interp);

	memory_write_u64(w->m, prev ? prev + off->tstate_next : interp + off->interp_threads_head,
			 next);
	if (next)
		memory_write_u64(w->m, next + off->tstate_prev, prev);
}

void world_set_status(struct world *w, __u64 tstate, __u32 bits)
{
	if (w->off->tstate_status != OFF_NONE)
		memory_write_u32(w->m, tstate + w->off->tstate_status, bits);
}

void world_set_current(struct world *w, __u64 tstate)
{
	if (w->off->runtime_tstate_current != OFF_NONE)
		memory_write_u64(w->m, w->thread.runtime + w->off->runtime_tstate_current, tstate);
}

__u64 world_text(struct world *w, enum text_shape shape, unsigned kind, const void *chars,
		 size_t length, __s64 hash)
{
	const struct py_offsets *off = w->off;
	__u16 at = shape == TEXT_ASCII ? off->str_ascii_data : off->str_compact_data;
	__u32 state = kind << off->str_kind_shift;
	__u64 s = world_alloc(w, at + (length + 1) * kind);

	if (shape != TEXT_LEGACY)
		state |= 1u << off->str_compact_bit;
	if (shape == TEXT_ASCII)
		state |= 1u << off->str_ascii_bit;
	memory_write_u64(w->m, s + off->str_length, length);
	memory_write_u64(w->m, s + off->str_hash, hash);
	memory_write_u32(w->m, s + off->str_state, state | 1); /* interned */
	memory_write(w->m, s + at, chars, length * kind);
	return s;
}

__u64 world_str(struct world *w, const char *ascii)
{
	__u64 hash = 1;

	for (const char *c = ascii; *c; c++)
		hash = hash_mix(hash, (__u8)*c);
	return world_text(w, TEXT_ASCII, 1, ascii, strlen(ascii), hash);
}

__u64 world_bytes(struct world *w, const void *bytes, size_t len)
{
	__u64 b = world_alloc(w, w->off->bytes_data + len + 1);

	memory_write_u64(w->m, b + w->off->bytes_size, len);
	memory_write(w->m, b + w->off->bytes_data, bytes, len);
	return b;
}

void world_code_write(struct world *w, __u64 code, const struct code_parts *parts)
{
	const struct py_offsets *off = w->off;

	memory_write_u64(w->m, code + off->code_filename, parts->filename);
	memory_write_u64(w->m, code + off->code_name, parts->name);
	memory_write_u64(w->m, code + off->code_linetable, parts->lines);
	memory_write_u32(w->m, code + off->code_firstlineno, parts->first_line);
	if (off->code_qualname != OFF_NONE)
		memory_write_u64(w->m, code + off->code_qualname, parts->qualname);
	if (off->code_version != OFF_NONE)
		memory_write_u32(w->m, code + off->code_version, parts->version);
	if (off->code_firsttraceable != OFF_NONE)
		memory_write_u32(w->m, code + off->code_firsttraceable, parts->first_traceable);
}

__u64 world_code_of(struct world *w, const struct code_parts *parts)
{
	__u64 code = world_alloc(w, w->off->code_size + 64); /* and some bytecode */

	world_code_write(w, code, parts);
	return code;
}

__u64 world_code(struct world *w, const char *name)
{
	static const __u8 lines[] = { 2, 1, 4, 1, 6, 1 };
	static __u32 version;
	struct code_parts parts = {
		.name = world_str(w, name),
		.qualname = world_str(w, name),
		.filename = world_str(w, "/srv/app/main.py"),
		.lines = world_bytes(w, lines, sizeof(lines)),
		.first_line = 10,
		.version = ++version,
	};

	return world_code_of(w, &parts);
}

static __u64 cstack_alloc(struct world *w, size_t bytes)
{
	static const __u8 zero[256];
	__u64 addr = w->cstack;

	assert_true(bytes <= sizeof(zero));
	memory_write(w->m, addr, zero, bytes);
	w->cstack = align(addr + bytes + 200, 16); /* other C frames lie between */
	return addr;
}

void world_set_previous(struct world *w, __u64 frame, __u64 previous)
{
	memory_write_u64(w->m, frame + w->off->frame_previous, previous);
}

void world_set_instr(struct world *w, __u64 frame, __u64 code, __s64 instr)
{
	const struct py_offsets *off = w->off;

	if (off->frame_kind == FRAME_OBJECT)
		memory_write_u32(w->m, frame + off->frame_instr, instr / off->lasti_unit);
	else
		memory_write_u64(w->m, frame + off->frame_instr, code + off->code_adaptive + instr);
}

void world_enter(struct world *w)
{
	const struct py_offsets *off = w->off;
	__u64 shim, cframe;

	if (off->frame_kind == FRAME_OBJECT)
		return;
	if (off->frame_kind == FRAME_CFRAME) {
		/* current_frame of the older one stays what it was when it called. */
		memory_write_u64(w->m, w->cframe + off->cframe_current, w->top);
		cframe = cstack_alloc(w, off->cframe_current + 16);
		memory_write_u64(w->m, cframe + off->cframe_current + 8, w->cframe);
		w->cframe = cframe;
	}
	w->is_entering = true;
	if (!off->owner_boundary)
		return;
	shim = cstack_alloc(w, off->frame_size);
	world_set_previous(w, shim, w->top);
	memory_write_u8(w->m, shim + off->frame_owner, off->owner_boundary);
	w->top = shim;
}

__u64 world_push_at(struct world *w, __u64 addr, __u64 code, __u32 instr, enum owner owner)
{
	static const __u8 zero[FRAME_BYTES];
	const struct py_offsets *off = w->off;

	memory_write(w->m, addr, zero, off->frame_size);
	memory_write_u64(w->m, addr + off->frame_code, code);
	world_set_previous(w, addr, w->top);
	world_set_instr(w, addr, code, instr);
	if (off->frame_kind != FRAME_OBJECT)
		memory_write_u8(w->m, addr + off->frame_owner, owner);
	if (off->frame_is_entry != OFF_NONE)
		memory_write_u8(w->m, addr + off->frame_is_entry, w->is_entering);
	w->top = addr;
	assert_true(w->want_depth < WANT_MAX);
	w->want[w->want_depth++] =
		(struct world_frame){ code, instr, w->is_entering ? FRAME_ENTRY : 0 };
	w->is_entering = false;
	return addr;
}

__u64 world_push(struct world *w, __u64 code, __u32 instr)
{
	__u64 addr;

	if (w->off->frame_kind == FRAME_OBJECT) {
		addr = world_alloc(w, w->off->frame_size + LOCALS_BYTES);
	} else {
		addr = align(w->stack, 8);
		w->stack = align(addr + w->off->frame_size, 8) + LOCALS_BYTES;
	}
	return world_push_at(w, addr, code, instr, OWNER_THREAD);
}

__u64 world_push_generator(struct world *w, __u64 code, __u32 instr)
{
	__u64 addr = world_alloc(w, w->off->frame_size + LOCALS_BYTES);

	return world_push_at(w, addr, code, instr, OWNER_GENERATOR);
}

void world_recurse(struct world *w, unsigned depth)
{
	__u64 codes[7];

	for (unsigned i = 0; i < 7; i++) {
		char name[] = { 'f', (char)('0' + i), 0 };

		codes[i] = world_code(w, name);
	}
	for (unsigned i = 0; i < depth; i++)
		world_push(w, codes[i % 7], 2 * (i % 1000));
}

void world_publish(struct world *w)
{
	const struct py_offsets *off = w->off;

	if (off->frame_kind == FRAME_CFRAME) {
		memory_write_u64(w->m, w->cframe + off->cframe_current, w->top);
		memory_write_u64(w->m, w->tstate + off->tstate_frame, w->cframe);
	} else {
		memory_write_u64(w->m, w->tstate + off->tstate_frame, w->top);
	}
}

struct unwind_result world_unwind(struct world *w)
{
	return unwind(w->off, &w->thread);
}

void world_lose_boundary(struct world *w, unsigned frame)
{
	if (w->off->owner_boundary)
		w->want[frame].flags &= ~FRAME_ENTRY;
}

void world_forget_leaf(struct world *w, unsigned count)
{
	assert_true(count <= w->want_depth);
	w->want_depth -= count;
}

/* What a status is called, for messages. */
static const char *status_name(unsigned status)
{
	static const char *const names[] = { "COMPLETE", "TRUNCATED", "FAULT", "CUT", "INVALID" };

	return status < sizeof(names) / sizeof(names[0]) ? names[status] : "?";
}

static unsigned failures;

void world_fail(const char *row, const char *name, const char *format, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	print_error("%s: %s: %s\n", row, name, text);
	failures++;
}

int world_teardown(void **state)
{
	unsigned count = failures;

	(void)state;
	failures = 0;
	return count ? -1 : 0;
}

/* The frame at i, leaf first. False: it is another one, and that is said. */
static bool check_frame(const char *name, const char *row, const struct world *w, unsigned i,
			const struct frame_record *got, __u64 id)
{
	const struct world_frame *want = &w->want[w->want_depth - 1 - i];

	if (!id)
		world_fail(row, name, "code object of frame %u not readable", i);
	else if (got->code != id)
		world_fail(row, name, "frame %u has another code object", i);
	else if (got->instr != want->instr)
		world_fail(row, name, "frame %u at instruction %u, want %u", i, got->instr,
			   want->instr);
	else if (got->flags != want->flags)
		world_fail(row, name, "frame %u has flags %u, want %u", i, got->flags, want->flags);
	else
		return true;
	return false;
}

void world_check(const char *name, const char *row, const struct world *w,
		 const struct unwind_result *r, enum unwind_status status, unsigned depth)
{
	if (r->error) {
		world_fail(row, name, "error %d", r->error);
		return;
	}
	if (r->status != status)
		world_fail(row, name, "status %s at depth %u, want %s", status_name(r->status),
			   r->depth, status_name(status));
	if (r->depth != depth) {
		world_fail(row, name, "depth %u, want %u", r->depth, depth);
		return;
	}
	assert_true(depth <= w->want_depth);
	for (unsigned i = 0; i < depth; i++) {
		const struct world_frame *want = &w->want[w->want_depth - 1 - i];
		__u64 id = want->flags & FRAME_UNREADABLE
				   ? want->code
				   : unwinder_identity(w->off, want->code, w->thread.process,
						       w->thread.family);

		if (!check_frame(name, row, w, i, &r->frames[i], id))
			return;
	}
}
