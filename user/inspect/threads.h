/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_THREADS_H
#define INSPECT_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/events.h"
#include "inspect/locks.h"
#include "inspect/stack.h"
#include "target/proc.h"

/*
 * The threads of a process and what each does. A thread is read while it stands still: it was off
 * the CPU, and has not been on it since before (thread_is_still() in threads.c says why that
 * holds). One that moves walks itself, where the kernel has it do that (inspector.kernel); else
 * it is read again, some 50 ms long; then as it is, and is_consistent is false.
 */

/* So many are looked at by BPF, whose programs take as long to load as these to read without. */
#define INSPECT_MANY_THREADS 256

enum thread_state {
	THREAD_RUNNING,  /* on a CPU, as far as is known */
	THREAD_RUNNABLE, /* waits for one */
	THREAD_BLOCKED,
	THREAD_STOPPED, /* by a signal, a tracer or its cgroup's freezer */
	THREAD_DEAD,
};

struct inspect_thread {
	pid_t tid;                 /* in our own PID namespace */
	struct walk_thread walked; /* the same, as it was walked */
	uint64_t tstate;           /* its PyThreadState; 0: Python does not know it */
	uint64_t pointer;          /* pthread_self(), threading's ident */
	uint64_t interp;
	uint64_t gil;      /* address of last_holder of its GIL; 0: not known */
	uint64_t switches; /* how often it had left the CPU when it was read */
	char *name;        /* Python's, UTF-8; NULL: it has none, or not known */
	char comm[PROC_COMM_BYTES];
	enum thread_state state;
	uint8_t wait;       /* enum wait_reason; WAIT_NONE where it is not blocked, or not known */
	uint16_t syscall;   /* of WAIT_OTHER: its number, or SYSCALL_NONE */
	int fd;             /* of READ, WRITE, LOCK_FILE: which; -1 */
	char *file;         /* what that is: see files.h; NULL: not known */
	uint64_t futex;     /* that it waits for; 0: none */
	int64_t wait_ns;    /* since when it is off the CPU; -1: not known */
	bool is_consistent; /* its stack is of one moment */
	bool is_guess;      /* it has several thread states, and this is the likeliest one */
	int64_t pause_ns;   /* it ran, and was held up so long to walk itself; -1: it was not */
	bool holds_gil, waits_for_gil;
	bool in_gc;
	char *handles; /* type of the exception that it handles; NULL: none, or not known */
	enum unwind_status status;
	struct inspect_frame *frames; /* leaf first: most recent call first */
	size_t frame_count;
	struct inspect_lock lock; /* that it waits for; address 0: none that is known */
};

/* Is its memory still as it was read, as long as `switches` stays? Else it went on at once. */
static inline bool inspect_thread_stands(const struct inspect_thread *t)
{
	return t->is_consistent && t->pause_ns < 0;
}

struct inspector;
struct inspect_process;

/* Fills in p->threads. 0, or a negative errno with a message: -ESRCH it has ended. */
int inspect_threads_read(struct inspector *in, struct inspect_process *p);

/* The same but for what they do: who they are, and their thread states. */
int inspect_threads_list(struct inspect_process *p);

/*
 * Has a thread that runs walk itself, where the kernel has it do that. *out is borrowed until the
 * next call. 0, -ENOENT: it did not, or -ENOMEM.
 */
int inspect_thread_walk_own(struct inspector *in, struct inspect_process *p,
			    struct inspect_thread *t, struct walk *out);

void inspect_threads_free(struct inspect_thread *threads, size_t count);

#endif
