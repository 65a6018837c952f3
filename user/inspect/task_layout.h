/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_TASK_LAYOUT_H
#define INSPECT_TASK_LAYOUT_H

/*
 * Where coroutines, futures and tasks keep what they wait for: byte offsets on 64-bit builds of
 * each minor version. No header of CPython has them (_asyncio's structs are in its .c file): they
 * were measured on 3.8.18 3.9.18 3.10.13 3.11.7 3.12.1 3.13.0 3.13.18 3.14.10 3.15.2, and on 3.13
 * without the GIL, where each object's head is 16 bytes longer.
 * From 3.14 on _asyncio describes some of them itself, which goes before what stands here.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/events.h"

/* How a suspended frame says what it awaits. */
enum await_kind {
	AWAIT_STACKTOP,   /* 3.8, 3.9: a pointer behind the value; set while it is suspended */
	AWAIT_STACKDEPTH, /* 3.10: a number of values */
	AWAIT_OPARG,      /* 3.11, 3.12: a number, and the next instruction says await or yield */
	AWAIT_STATE,      /* 3.13: a number, and the frame's state says so */
	AWAIT_POINTER,    /* 3.14 on: a pointer behind the value, and the frame's state */
};

struct task_layout {
	uint8_t minor;
	bool is_free_threaded;

	/* PyGenObject, and coroutines and asynchronous generators, which are the same */
	uint8_t await;     /* enum await_kind */
	uint8_t frame;     /* in it: a pointer to its frame (<= 3.10), or the frame itself */
	uint8_t state;     /* in it, a signed byte; 3.10: in the frame; OFF_NONE_8: 3.8, 3.9 */
	int8_t created;    /* of the states: has not run yet, */
	int8_t suspended;  /* in a yield or, up to 3.12, an await, */
	int8_t awaiting;   /* 3.13 on: in an await or yield from; two numbers in 3.15, */
	int8_t awaiting_2; /* the same while another thread looks at it, */
	int8_t running;
	int8_t cleared; /* this and all above: it has ended */

	/* The frame */
	uint16_t stack;      /* the pointer or the number */
	uint16_t valuestack; /* <= 3.10: a pointer to its first value */
	uint16_t locals;     /* its variables, the arguments first; 3.11 to 3.13: numbers count from
				here */
	uint8_t above;       /* AWAIT_POINTER: bytes from the value to what the pointer points to */

	/* _asyncio.Task, which begins with a Future */
	uint16_t task_bytes; /* tp_basicsize: another one means that all this is not so */
	uint16_t loop, callback, callbacks;
	uint16_t source_traceback;
	uint16_t future_state; /* an int, 0: pending */
	uint16_t fut_waiter, coro, name;
	uint16_t awaited_by, awaited_by_is_set; /* 3.14 on; 0: none */
	uint16_t task_node;                     /* in the list of tasks */

	/* PyThreadState, PyInterpreterState */
	uint16_t tstate_dict;    /* 3.8 to 3.12 */
	uint16_t running_loop;   /* 3.13 on */
	uint16_t running_loop_2; /* 3.13: another patch release has it here */
	uint16_t running_task;   /* 3.14 on, and the lists of tasks */
	uint16_t tstate_tasks;
	uint32_t interp_tasks;
};

/* 0 and *out; -ENOTSUP with a message for a build whose tasks are not known. */
int task_layout_find(const struct py_offsets *off, struct task_layout *out);

/*
 * The collector's lists, 3.8 on with the GIL: bytes from the first one, 4 more in builds that align
 * them less (3.13.18), and from that of what gc.freeze() keeps, to gc.collecting. Compared with
 * CPython's headers by tests/lint/offsets_check.c.
 */
#define GC_LISTS_TO_COLLECTING(minor) ((minor) >= 15 ? 104 : (minor) == 14 ? 168 : 176)
#define GC_LISTS_ALIGNED_LESS 4
#define GC_FROZEN_TO_COLLECTING(minor) ((minor) >= 15 ? 32 : 96)
#define GC_GENERATIONS 3
#define GC_GENERATION_BYTES 24

#define ASYNCIO_DEBUG_WORDS 13

/*
 * Puts what the section .AsyncioDebug says in place of what the table says: 13 words, of _asyncio's
 * struct Py_AsyncioModuleDebugOffsets. -EBADMSG for what cannot be right; *layout is untouched
 * then.
 */
int task_layout_apply_debug(struct task_layout *layout, const uint64_t words[ASYNCIO_DEBUG_WORDS]);

#endif
