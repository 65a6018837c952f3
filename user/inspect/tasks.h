/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_TASKS_H
#define INSPECT_TASKS_H

/*
 * The tasks of a process: of asyncio's loops, uvloop and anyio on them, and of trio, with what each
 * waits for, as its memory says it. The process is not stopped: all is read while its loops rest,
 * or said to be uncertain.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "bpf/events.h"
#include "inspect/code_object.h"
#include "inspect/walker.h"

#define TASKS_MAX 1000000         /* of a process; more are not shown */
#define TASK_READS_MAX (1u << 28) /* of objects of a process */

enum task_state {
	TASK_WAITING,
	TASK_READY, /* waits for nothing but its turn */
	TASK_RUNNING,
};

struct task_frame {
	const char *name, *file; /* UTF-8 */
	const char *own_name;    /* without what it is defined in */
	uint64_t frame;          /* its address; 0: of a traceback, or a coroutine of Cython's */
	int line;                /* 0: not known */
	int first_line;          /* of its code; 0: of a traceback */
};

struct inspect_task {
	uint64_t id; /* address of the task */
	const char *name;
	const char *coroutine; /* that the task runs; "" where it cannot be told */
	const char *waits_for; /* for people; NULL: for nothing */
	uint32_t loop;
	enum task_state state;
	bool is_unsure; /* of process_tasks_sweep(): it changed while it was read */
	/* In the frames: of its coroutines, root first; where it was made, if the loop noted that
	 */
	uint32_t frames, frames_len;
	uint32_t created, created_len;
	uint32_t awaited_by, awaited_by_len; /* in the links: tasks that wait for it */
};

struct inspect_loop {
	uint64_t id;        /* its address */
	const char *type;   /* of its class */
	uint64_t ident;     /* pthread_self() of its thread; 0: not known, or it does not run */
	pid_t tid;          /* the same, 0: not known */
	bool is_consistent; /* it did not run while its tasks were read */
};

/* Of a loop of trio's: where its task that runs is, for who looks at it while it does. */
struct trio_place {
	uint64_t variable; /* the address of a pointer to that, maybe with tag bits; 0: not known */
	uint16_t coro, name; /* byte offsets in a task */
};

/* Tasks of which each waits for the one behind it, and the last for the first. */
struct task_cycle {
	uint32_t first, len; /* in the links */
};

struct inspect_tasks {
	VEC(struct inspect_task) tasks;
	VEC(struct inspect_loop) loops;
	VEC(struct task_frame) frames;
	VEC(uint32_t) links; /* places of tasks */
	VEC(struct task_cycle) cycles;
	struct code_objects codes;  /* that have the texts */
	bool has_asyncio, has_trio; /* some interpreter has imported it; trio: of tasks_probe() */
	uint64_t current_tasks;     /* its dict of the tasks that run; of several, one */
	struct trio_place trio;     /* of several, one */
	uint32_t unreadable;        /* tasks that are left out */
	uint32_t frameless;         /* greenlets that wait, too, and have no Python frame */
	bool are_greenlets_torn;    /* the collector's lists changed: there may be more */
	bool is_cut;                /* there are more than may be read */
};

void inspect_tasks_release(struct inspect_tasks *t);

struct pages;

/* A process. read: len bytes at addr, up to PAGES_BLOCK_BYTES; 0 or a negative errno. */
struct tasks_process {
	int (*read)(void *arg, uint64_t addr, void *buf, size_t len);
	void *arg;
	const struct py_offsets *off;
	uint64_t runtime;     /* of its _PyRuntime */
	uint32_t reads_max;   /* of objects: TASK_READS_MAX */
	struct pages *pages;  /* for who reads again and again: their memory is used; NULL */
	const uint64_t *only; /* of asyncio, these tasks alone; NULL: all that there are */
	size_t only_len;
	bool no_words;      /* waits_for is not asked for */
	bool has_greenlets; /* asked for: all objects of the collector are looked at */
	bool is_uncached;   /* for tests: read() is asked for just what is needed, each time */
	const uint64_t *asyncio_debug; /* ASYNCIO_DEBUG_WORDS words of .AsyncioDebug, or NULL */
	/*
	 * The Python frames of the thread with this pthread_self(), leaf first, borrowed until the
	 * next call. 0, or a negative errno: it does not stand still. NULL: no stacks are to be
	 * had.
	 */
	int (*walk)(void *arg, uint64_t ident, const struct walk_frame **frames, uint32_t *depth);
	/* The same of one that may run meanwhile: what it says may be torn. NULL: likewise. */
	int (*peek)(void *arg, uint64_t ident, const struct walk_frame **frames, uint32_t *depth);
};

/*
 * The tasks as they are, or seem to be, if the process runs meanwhile. *out is filled as far as it
 * was read, and is to be released in any case. 0, -ENOTSUP with a message for a version whose tasks
 * are not known, -ENOMEM, or what read() said of the process itself.
 */
int tasks_collect(const struct tasks_process *p, struct inspect_tasks *out);

/* 1: it may have tasks, 0: it has imported nothing that has, or an error as of tasks_collect(). */
int tasks_probe(const struct tasks_process *p);

#endif
