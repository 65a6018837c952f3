/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_AWAIT_H
#define INSPECT_AWAIT_H

/* What a suspended coroutine is at, and what it waits for, and what that waits for... */

#include <stdbool.h>

#include "inspect/code_object.h"
#include "inspect/kinds.h"
#include "inspect/task_layout.h"
#include "target/object.h"

#define AWAIT_DEPTH_MAX 4096 /* coroutines below one task; more: cut there */

struct wait_row;

/* What waits_for.c knows of a frame with these texts. */
struct wait_words {
	const char *file, *name; /* NULL: none */
	const struct wait_row *row;
	bool is_of_library;
};

#define WAIT_WORDS 64 /* a power of two */

/* A process whose coroutines are read. */
struct await_reader {
	struct object_reader objects;
	struct object_kinds kinds;
	struct code_objects *codes; /* borrowed */
	struct task_layout layout;
	struct wait_words words[WAIT_WORDS]; /* of frames just met: thousands are alike */
};

enum coroutine_state {
	COROUTINE_CREATED, /* has not run yet */
	COROUTINE_YIELDED, /* suspended, and awaits nothing itself */
	COROUTINE_AWAITS,
	COROUTINE_RUNNING, /* or what it awaits is */
	COROUTINE_ENDED,
};

/* A coroutine, generator or asynchronous generator. */
struct coroutine {
	enum coroutine_state state;
	uint64_t frame; /* address of its frame; 0: COROUTINE_ENDED, or Cython's, which has none */
	uint64_t code;  /* of a code object */
	uint32_t instr; /* byte offset of its instruction, as code_object_line() takes it */
	uint64_t awaited; /* COROUTINE_AWAITS: what */
};

int coroutine_get(struct await_reader *a, uint64_t object, struct coroutine *out);

/* A frame that does not run, as if of a coroutine. *caller: that of who called it; 0: nobody. */
int await_call(struct await_reader *a, uint64_t frame, struct coroutine *out, uint64_t *caller);

/* The variable of a frame in the first places: an argument. 0: not set. */
int await_argument(struct await_reader *a, uint64_t frame, unsigned int index, uint64_t *out);

/* Called for each coroutine of a chain, outermost first. 0 to go on. */
typedef int (*await_fn)(void *arg, const struct coroutine *coroutine);

/*
 * From a coroutine down to the innermost one. *last: what that waits for, which is no coroutine;
 * 0: nothing. Returns 0, what fn() returned, or as object_get(); -EBADMSG for a chain beyond
 * AWAIT_DEPTH_MAX.
 */
int await_chain(struct await_reader *a, uint64_t object, await_fn fn, void *arg, uint64_t *last);

#endif
