/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_THREAD_FILES_H
#define INSPECT_THREAD_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "target/proc.h"

/*
 * What the kernel says of a thread in the files of /proc/PID/task/TID. All return 0, or a negative
 * errno without a message: -ESRCH, -ENOENT where it has ended, -EBADMSG for another format.
 */

/* That folder, by which the files are opened. Returns the descriptor. */
int thread_folder_open(pid_t pid, pid_t tid);

/* Of the file `status`. */
struct thread_status {
	char state;        /* R, S, D, T, t, Z, X, I of proc_pid_status(5) */
	pid_t nspid;       /* in its own, innermost PID namespace */
	uint64_t switches; /* how often it has left the CPU, of itself or not */
	char comm[PROC_COMM_BYTES];
};
int thread_status_parse(const char *text, size_t len, struct thread_status *out);

/* An open `status`, to be read again and again. */
int thread_status_open(int folder);
int thread_status_read(int fd, struct thread_status *out);

/* Of the file `syscall`: what it waits in. Needs permission to trace it. */
struct thread_call {
	bool is_running; /* it is on a CPU, or would be: nothing else is known */
	int64_t nr;      /* -1: in none */
	uint64_t args[2];
	uint64_t sp; /* its stack pointer; 0: not known */
};
int thread_call_parse(const char *text, size_t len, struct thread_call *out);
int thread_call_read(int folder, struct thread_call *out);

/*
 * Of the file `sched`: when it was last seen on a CPU, by the clock of that CPU (cpu_clocks.h), ns;
 * for one that is off the CPU, when it left that. -ENODATA: the kernel does not tell.
 */
int thread_sched_parse(const char *text, size_t len, uint64_t *exec_start_ns);
int thread_sched_read(int folder, uint64_t *exec_start_ns);

/* Of the file `stat`: on which CPU it was last. */
int thread_cpu_parse(const char *text, size_t len, unsigned *cpu);
int thread_cpu_read(int folder, unsigned *cpu);

#endif
