/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef UNWIND_WORLD_H
#define UNWIND_WORLD_H

/*
 * Lays out the parts of a CPython process that the unwinder reads, at the offsets of one row, and
 * keeps the frames a walk must find. Root first, as a program would make them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "bpf/events.h"
#include "memory.h"
#include "unwinder.h"

#define WORLD_RUNTIME 0x555555800000ull
#define WORLD_HEAP 0x7f1000000000ull   /* objects, generators */
#define WORLD_STACK 0x7f2000000000ull  /* frames, growing upwards */
#define WORLD_CSTACK 0x7ffd00000000ull /* cframes, C-boundary frames */
#define WORLD_THREAD 0x7f3000000740ull /* pthread_self of the thread that unwind() asks for */
#define WORLD_PROCESS 0x1234567890abcdefull
#define WORLD_TID 4711
#define LOCALS_BYTES 64 /* behind each frame: locals and value stack */

enum owner { OWNER_THREAD, OWNER_GENERATOR, OWNER_FRAME_OBJECT, OWNER_BOUNDARY };

struct world_frame {
	__u64 code; /* address */
	__u32 instr;
	__u32 flags; /* enum frame_flag */
};

struct world {
	const struct py_offsets *off;
	struct memory *m;
	struct py_thread thread;
	__u64 heap, stack, cstack; /* the next free address */
	__u64 interp, tstate;      /* the main ones */
	__u64 interps;             /* made so far */
	__u64 top;                 /* newest frame, boundaries included */
	__u64 cframe;              /* newest _PyCFrame */
	bool is_entering;          /* 3.11+: the next frame is called by C */
	struct world_frame *want;  /* root first */
	unsigned want_depth;
};

/* A runtime with one interpreter, one thread and no frames; forgets what the unwinder knows. */
void world_init(struct world *w, const struct py_offsets *off);

/* The same with everything at addresses of the caller's choice. */
struct world_bases {
	__u64 runtime, heap, stack, cstack;
};

void world_init_at(struct world *w, const struct py_offsets *off, const struct world_bases *bases);
void world_release(struct world *w);

__u64 world_alloc(struct world *w, size_t bytes);

/* The next allocation starts a page of its own. */
void world_new_page(struct world *w);

__u64 world_interp(struct world *w);

/* At the head of the interpreter's list, as CPython adds them. */
__u64 world_tstate(struct world *w, __u64 interp, __u64 pthread_self);
void world_tstate_unlink(struct world *w, __u64 tstate);
void world_set_status(struct world *w, __u64 tstate, __u32 bits);

/* 0: no thread holds the GIL. Rows without tstate_current: nothing. */
void world_set_current(struct world *w, __u64 tstate);

enum text_shape { TEXT_ASCII, TEXT_COMPACT, TEXT_LEGACY };

/* A str with any bytes. kind: bytes a character; hash: as str.__hash__ left it, -1: not taken. */
__u64 world_text(struct world *w, enum text_shape shape, unsigned kind, const void *chars,
		 size_t length, __s64 hash);
__u64 world_str(struct world *w, const char *ascii);
__u64 world_bytes(struct world *w, const void *bytes, size_t len);

/* Code object of these parts (addresses of objects). */
struct code_parts {
	__u64 name, qualname, filename, lines;
	__u32 first_line, version, first_traceable; /* in instructions */
};

__u64 world_code_of(struct world *w, const struct code_parts *parts);
void world_code_write(struct world *w, __u64 code, const struct code_parts *parts);

/* A new one with a name and its own line table; first line: 10. */
__u64 world_code(struct world *w, const char *name);

/* From C into the interpreter: a boundary frame, an entry frame and a cframe, as the row has them.
 */
void world_enter(struct world *w);

/*
 * A frame on top, at a byte offset of its code: on the data stack, or on the heap for generators
 * and in rows that keep all frames there. Returns its address.
 */
__u64 world_push(struct world *w, __u64 code, __u32 instr);
__u64 world_push_generator(struct world *w, __u64 code, __u32 instr);

/* The same at a chosen address. */
__u64 world_push_at(struct world *w, __u64 addr, __u64 code, __u32 instr, enum owner owner);

/* Makes depth frames, each with one of seven code objects and an instruction of its own. */
void world_recurse(struct world *w, unsigned depth);

/* What a frame holds, for rewriting it. */
void world_set_previous(struct world *w, __u64 frame, __u64 previous);
void world_set_instr(struct world *w, __u64 frame, __u64 code, __s64 instr);

/* Makes the top frame the thread's current one. */
void world_publish(struct world *w);

/* The thread's sample. */
struct unwind_result world_unwind(struct world *w);

/*
 * Says what is wrong with a row of a test and goes on to the next one. world_teardown() then fails
 * the test: use WORLD_TEST().
 */
void world_fail(const char *row, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int world_teardown(void **state);

#define WORLD_TEST(f) cmocka_unit_test_teardown(f, world_teardown)

/* world_fail() unless the walk found these frames: the newest depth of those that were made. */
void world_check(const char *name, const char *row, const struct world *w,
		 const struct unwind_result *r, enum unwind_status status, unsigned depth);

/* The C boundary below that frame, 0: the oldest, is not to be met. Rows without such: nothing. */
void world_lose_boundary(struct world *w, unsigned frame);

/* The newest count frames are not wanted. */
void world_forget_leaf(struct world *w, unsigned count);

#endif
