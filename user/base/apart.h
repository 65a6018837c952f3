/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_APART_H
#define BASE_APART_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A process that shares our memory, but neither our descriptors nor our thread group: the kernel
 * may keep it from ending for ever, even by SIGKILL, as one that waits for a FUSE server does which
 * has taken its request. pyebpf ends
 * nevertheless. It has the thread-local storage of a thread of ours, but the kernel writes nothing
 * there: gettid() and getpid() are its own, sched_getcpu() is wrong. Where no process can be
 * started, but a thread can, a thread of ours does the same.
 */
enum apart_files {
	APART_NO_FILES,  /* it has the descriptors that it opens */
	APART_ONE_FILE,  /* and one of ours */
	APART_ALL_FILES, /* and all of ours but 0, 1, 2; what it prints goes nowhere */
};

/*
 * Runs run(arg) there; a thread of ours waits for its end. thread: that one, to be joined; NULL: it
 * is detached. fd: of APART_ONE_FILE. Returns what thread_start() does.
 */
int apart_start(void (*run)(void *arg), void *arg, enum apart_files files, int fd,
		pthread_t *thread);

/*
 * Holds all our descriptors in such a process, so that none of ours that is closed is the last of
 * its file: the last close() may wait for ever in the kernel, as that of a BPF link does while a
 * sleepable program waits for a page. NULL: there is no such process, and each close() may wait.
 */
struct apart_hold;
struct apart_hold *apart_hold_begin(void);

/*
 * After ours are closed: closes those of `first` (by number, -1: none) in that order, then the
 * others, and waits up to ns. False: the kernel is not done by then.
 */
bool apart_hold_end(struct apart_hold *h, const int *first, size_t count, uint64_t ns);

/* CPU time that such processes used so far: it is not among that of our process. */
uint64_t apart_cpu_ns(void);

#endif
