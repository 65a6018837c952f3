/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_WALKER_H
#define INSPECT_WALKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "bpf/events.h"

/*
 * The unwinder of bpf/, run here: on threads of other processes, whose memory a reader gives. All
 * that it reads is taken for hostile. Whether the thread stood still meanwhile is for the caller to
 * see: what is read of one that ran may be torn.
 *
 * Walks go through tables that all walkers share: one at a time in a program.
 */
struct walker;

int walker_new(struct walker **out);
void walker_free(struct walker *w);
DEFINE_CLEANUP(struct walker *, walker_free)

/* A process. Borrowed for as long as the call takes. */
struct walk_process {
	/* len bytes at addr: 0 or a negative errno. */
	int (*read)(void *arg, uint64_t addr, void *buf, size_t len);
	void *arg;
	const struct py_offsets *off;
	uint64_t runtime;  /* address of _PyRuntime */
	uint64_t identity; /* another one for another process */
	bool is_forked;    /* it runs the program of its parent: no exec since the fork */
};

struct walk {
	enum unwind_status status;
	uint32_t flags;     /* enum sample_flag */
	uint64_t tstate;    /* its PyThreadState */
	uint64_t interp;    /* and that one's interpreter */
	uint64_t gil;       /* address of last_holder of its GIL; 0: not known, or none yet */
	uint64_t exception; /* type of the one that it handles; 0: none */
	uint32_t depth;
	const struct walk_frame *frames; /* leaf first; valid until the next call */
};

static inline struct walk walk_of(const struct walk_head *head, const struct walk_frame *frames)
{
	return (struct walk){ .status = head->status,
			      .flags = head->flags,
			      .tstate = head->tstate,
			      .interp = head->interp,
			      .gil = head->gil,
			      .exception = head->exception,
			      .depth = head->depth,
			      .frames = frames };
}

/* A thread. 0: not known; what is tells which of several thread states it runs. */
struct walk_thread {
	pid_t tid, nspid; /* in our own PID namespace, and in its own */
	bool is_first;    /* of its process */
	uint64_t pointer; /* its pthread_self() */
	uint64_t
		sp; /* its stack pointer, and where its stack ends: that is found by pointer, too */
	uint64_t stack_end;
};

/* Says which state a thread runs, where each has its own: the lists are not searched for it. */
void walker_expect(const struct walk_process *p, pid_t tid, uint64_t tstate);

/*
 * Walks a thread. Returns 0 (then see status), -ENOENT: it has no thread state, -EFAULT: that
 * cannot be read; without a message.
 */
int walker_walk(struct walker *w, const struct walk_process *p, const struct walk_thread *t,
		struct walk *out);

/* The identity of the code object that is at this address now, read anew; 0: it cannot be read. */
uint64_t walker_identify(struct walker *w, const struct walk_process *p, uint64_t code);

/* Does who waits for the futex at addr wait for that GIL? */
bool walk_gil_has_word(uint64_t gil, uint64_t addr);

/*
 * What a code object is called, and the first LINES_CHUNK bytes of its line table. Borrowed, valid
 * until the next call. -EFAULT: it cannot be read.
 */
int walker_describe(struct walker *w, const struct walk_process *p, uint64_t identity,
		    uint64_t code, const struct code_event **out);

#endif
