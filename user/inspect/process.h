/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_PROCESS_H
#define INSPECT_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "inspect/codes.h"
#include "inspect/cpu_clocks.h"
#include "inspect/threads.h"
#include "inspect/walker.h"
#include "inspect/window.h"
#include "target/proc.h"
#include "target/rights.h"
#include "target/runtime.h"

/*
 * What the memory of processes says at one moment. Nothing is stopped, signalled or traced, and no
 * BPF is needed: what it takes is the permission to trace them. Where there is BPF, threads that
 * run may be held up for as long as they take to say where they are.
 */
struct inspect_process;
typedef int (*own_walk_fn)(void *arg, size_t i, struct own_walk *w);
struct inspect_kernel {
	/* As own_walks_run() and own_walks_look(), which they are in programs that have BPF. */
	int (*run)(void *walks, const struct py_offsets *off, const struct own_ask *asks,
		   size_t count, own_walk_fn take, void *arg);
	int (*look)(void *walks, const struct py_offsets *off, const struct own_ask *process,
		    own_walk_fn take, void *arg);
};

struct inspector {
	struct workers *workers; /* that open files of processes, which may hang */
	struct walker *walker;
	struct cpu_clocks *clocks;
	/*
	 * Set by who wants more of a thread than its frames, NULL: nobody. Called when these are
	 * there, before it is known whether the thread stood still: then it may be called again for
	 * it, and counts what was last. 0 or a negative errno, which ends the reading.
	 */
	int (*visit)(void *arg, struct inspect_process *p, struct inspect_thread *t);
	void *visit_arg;
	/* Set by who has BPF, NULL: nobody. */
	const struct inspect_kernel *kernel;
	void *kernel_arg; /* the first argument of its functions */
};

/* 0 or -ENOMEM. */
int inspector_new(struct inspector **out);
void inspector_free(struct inspector *in);
DEFINE_CLEANUP(struct inspector *, inspector_free)

/* As runtime_find(), but -ETIMEDOUT where its files do not answer for some seconds. */
int inspector_find_runtime(struct inspector *in, pid_t pid, struct py_runtime *out);

/* Threads that wait for each other, in this order: each holds what the one before it waits for. */
struct inspect_cycle {
	VEC(size_t) threads; /* indices */
};

struct inspect_process {
	pid_t pid, ppid;
	/* A thread of it that lives, by which its memory and its files are reached: pid itself, but
	 * where the main thread has ended. */
	pid_t door;
	uint64_t start_ticks; /* since boot, as proc_stat has it */
	int64_t start_ns;     /* the same since 1970; 0: not known */
	char *command_line;   /* arguments with blanks between, else the kernel's name; UTF-8 or not
			       */
	bool is_frozen;       /* its cgroup is */
	struct rights rights; /* of the door, before anything was read */
	struct py_runtime runtime;
	struct window window;       /* through which it is read */
	struct walk_process memory; /* the same for who walks */
	struct inspect_codes *codes;
	struct inspect_thread *threads; /* by tid */
	size_t thread_count;
	VEC(struct inspect_cycle) cycles; /* deadlocks */
};

/*
 * Looks for its interpreter. 0, or a negative errno with a message, as of runtime_check_process()
 * and runtime_find().
 */
int inspect_process_open(struct inspector *in, pid_t pid, struct inspect_process **out);

/*
 * Reads all its threads. 0, or a negative errno with a message: -ESRCH it has ended, -EPERM. *p is
 * to be released in any case.
 */
int inspect_process_read(struct inspector *in, struct inspect_process *p);

void inspect_process_free(struct inspect_process *p);
DEFINE_CLEANUP(struct inspect_process *, inspect_process_free)

#endif
