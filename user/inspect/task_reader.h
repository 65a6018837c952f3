/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_TASK_READER_H
#define INSPECT_TASK_READER_H

/* What the libraries' readers (asyncio, trio) fill: inside of tasks_collect(). */

#include <errno.h>

#include "inspect/await.h"
#include "inspect/tasks.h"

struct task_edge {
	uint64_t child, parent; /* addresses of tasks, later their places */
};

struct task_reader {
	struct await_reader awaits;
	const struct tasks_process *process;
	struct inspect_tasks *out;
	struct address_map task_places, loop_places;
	VEC(uint64_t) found; /* objects of a library that may be tasks, still to be read */
	VEC(struct task_edge) edges;
	VEC(uint64_t)
	awaited; /* by task: what its innermost coroutine awaits, or has yielded; 0: nothing */
	size_t first_frame; /* of the creation traceback that is read */
	uint64_t runner;    /* of trio, whose tasks are read */
	/* of greenlets: how many threads have some; pthread_self() of threads */
	uint32_t running_greenlets;
	VEC(uint64_t) idents;
	uint64_t first_ident; /* of the process's first thread */
};

/* Is the error one of the whole reading, and not of one object? */
static inline bool task_reader_stops(int e)
{
	return e == -E2BIG || e == -ENOMEM || e == -ESRCH || e == -EPERM;
}

/* A task as its library keeps it: addresses of objects. */
struct task_source {
	uint64_t id, name, coro, loop;
	bool is_ready;    /* it waits for nothing but its turn */
	uint64_t future;  /* that it waits for, as the task itself has it; 0: none */
	uint64_t created; /* a traceback; 0: none */
};

/* Adds it. An error that is of this task alone leaves it out: -EFAULT, -EBADMSG. */
int task_reader_add(struct task_reader *t, const struct task_source *source);

/*
 * Adds a task whose frames were added. awaited: an object that it waits for, or 0. 0, -E2BIG or
 * -ENOMEM.
 */
int task_reader_add_task(struct task_reader *t, struct inspect_task *task, uint64_t loop,
			 uint64_t awaited);

/*
 * Has read() add the task of a library's object, unless it is there already. One that cannot be
 * read is counted, and the others are read: 0, or what stops all.
 */
typedef int (*task_read_fn)(struct task_reader *t, uint64_t object);
int task_reader_visit(struct task_reader *t, uint64_t object, task_read_fn read);

/*
 * Notes an object for task_reader_visit_found(), which visits them in the order of their addresses:
 * a table has them in none, and what was made together lies together. 0, -E2BIG or -ENOMEM.
 */
int task_reader_find(struct task_reader *t, uint64_t object);
int task_reader_visit_found(struct task_reader *t, task_read_fn read);

/* Adds a frame to those of the result: at an instruction of a code object. */
int task_reader_push(struct task_reader *t, uint64_t frame, uint64_t code, uint32_t instr);

/* By addresses of tasks, which may be unknown yet, or for ever. 0 or -ENOMEM. */
int task_reader_edge(struct task_reader *t, uint64_t child, uint64_t parent);

/* Of a task, a loop that were added; others are none. */
void task_reader_set_running(struct task_reader *t, uint64_t task);
void task_reader_set_thread(struct task_reader *t, uint64_t loop, uint64_t ident);

/*
 * Of an interpreter, and of the process. What cannot be read of one does not hide the others; a
 * list that is torn ends. 0, or what stops all.
 */
typedef int (*task_thread_fn)(struct task_reader *t, uint64_t tstate);
typedef int (*task_interp_fn)(struct task_reader *t, uint64_t interp);
int task_reader_each_thread(struct task_reader *t, uint64_t interp, task_thread_fn fn);
int task_reader_each_interpreter(struct task_reader *t, task_interp_fn fn);

#endif
