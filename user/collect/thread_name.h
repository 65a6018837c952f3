/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_THREAD_NAME_H
#define COLLECT_THREAD_NAME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/events.h"
#include "symbolize/pystring.h"
#include "target/threading.h"

#define THREAD_NAME_BYTES PYSTRING_UTF8_BYTES(THREADING_CHARS_MAX * 4)

/* A thread of a target, as it was when its name was wanted. */
struct thread_place {
	pid_t tid;         /* in our own PID namespace */
	uint64_t pointer;  /* pthread_self() */
	uint64_t start_ns; /* CLOCK_BOOTTIME */
	char comm[COMM_BYTES];
};

/* Python's name of the thread: UTF-8, if r is 0. */
struct thread_name {
	struct thread_place place;
	/* -ENOENT: `threading` does not know it, or not yet; -ESRCH: it has ended, and another may
	 * have its pthread_self() or its TID now; -ESTALE: the system has another name for it by
	 * now, as Python may have; others as threading_name(). */
	int r;
	char name[THREAD_NAME_BYTES];
};

/* Threads of one process. */
struct thread_names {
	pid_t pid; /* in our own PID namespace */
	uint64_t runtime;
	struct py_offsets off;
	uint64_t active; /* as in struct threading_process, one a process */
	size_t count;
	struct thread_name items[];
};

/*
 * Reads the target's memory, each page of it once, which may take as long as that takes. 0 or
 * -ENOMEM, without a message.
 */
int thread_names_read(struct thread_names *names);

/* Signal 0 is sent to nobody. */
bool thread_has_ended(pid_t pid, pid_t tid);

#endif
