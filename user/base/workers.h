/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_WORKERS_H
#define BASE_WORKERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

/*
 * Work that may never end, such as a read of memory whose page is on a network mount that hangs:
 * done by threads that can be left behind. One thread does all of it as long as it comes back in
 * time; each that does not is replaced by another, up to WORKERS_MAX at once.
 */
struct workers;

#define WORKERS_MAX 8
extern const char workers_late_words[]; /* what is said of a process whose work is late */

/* A piece of work. The first member of what it works on, which is on the heap. */
struct work {
	void (*run)(struct work *w, void *context); /* on a thread; context: what the thread has */
	void (*free)(struct work *w);
	struct work *next; /* ours */
	int state;
};

/*
 * Each thread has a context of its own, by these two (NULL: none); a thread that hangs keeps it. 0
 * or -ENOMEM.
 */
int workers_new(int (*context_new)(void **context), void (*context_free)(void *context),
		struct workers **out);

/* Waits for the thread that is idle to end. Those that hang are left, with what they have. */
void workers_free(struct workers *ws);
DEFINE_CLEANUP(struct workers *, workers_free)

/*
 * Has w done, waits for it up to ns. 0: it is done, and the caller's again. -EINPROGRESS: not yet;
 * w is what workers_next() returns some day. -EAGAIN, -ENOMEM: not begun: WORKERS_MAX threads hang,
 * or there is no thread to be had; w is the caller's.
 */
int workers_run(struct workers *ws, struct work *w, uint64_t ns);

/* One that was late, and is done now: the caller's again. NULL: there is none. */
struct work *workers_next(struct workers *ws);

/* Threads that have been at one work for longer than anyone waited. */
size_t workers_late(struct workers *ws);

#endif
