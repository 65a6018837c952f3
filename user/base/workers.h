/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_WORKERS_H
#define BASE_WORKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/apart.h"
#include "base/cleanup.h"

/*
 * Work that may never end, such as a read of memory whose page is on a network mount that hangs. It
 * is done by a process of its own (base/apart.h), that can be left behind. One process does all
 * work as long as it comes back in time; each that does not is replaced by another, up to
 * WORKERS_MAX at once. Where works need descriptors of ours, each has a new process, unless all
 * need the same one.
 */
struct workers;

#define WORKERS_MAX 64
/* The words for a process whose memory or files hang. */
#define WORK_BLOCKED_WORDS "reading its memory or files timed out (a hung network mount?)"
/* The same of a source file, by its path, and of all others when there are too many. */
#define SOURCE_LATE_WORDS "source %s is not shown: its file system does not answer"
#define SOURCES_LATE_WORDS "other sources are not shown: too many files do not answer"
#define SOURCES_NONE_WORDS "other sources are not shown: %s" /* the message of workers_say() */

/* A piece of work. The first member of what it works on, which is on the heap. */
struct work {
	void (*run)(struct work *w, void *context); /* in the process; context: what that has */
	void (*free)(struct work *w);
	uint64_t cpu_ns; /* its allowance of CPU time (base/allowance.h), 0: none; then what it took
			  */
	uint64_t asleep_ns; /* then: that it has waited for something else than a CPU */
	int fd;             /* of APART_ONE_FILE */
	struct work *next;  /* ours, as all that follows */
	int state;
	int worker; /* PID of the process that has begun it; 0: none */
};

struct workers_kind {
	/* Each process has a context of its own, by these two (NULL: none); one that hangs keeps
	 * it. */
	int (*context_new)(void **context);
	void (*context_free)(void *context);
	enum apart_files files; /* with another than APART_NO_FILES each work has a new process, */
	bool has_same_file;     /* but for APART_ONE_FILE that is the same one for all works */
	bool is_urgent;         /* base/priority.h */
};

/* kind is copied. 0 or -ENOMEM. */
int workers_new(const struct workers_kind *kind, struct workers **out);

/* Waits for the process that is idle to end. Those that hang are left, with what they have. */
void workers_free(struct workers *ws);
DEFINE_CLEANUP(struct workers *, workers_free)

/*
 * Has w done, waits for it up to ns. 0: it is done, and the caller's again. -EINPROGRESS: not yet;
 * w is what workers_next() returns some day. Not begun, and w is the caller's: -EAGAIN: WORKERS_MAX
 * processes hang, or a new one got no CPU; -EUSERS, -ENOMEM: none can be started.
 */
int workers_run(struct workers *ws, struct work *w, uint64_t ns);

/*
 * The same for a caller that has nothing else to do. ns count from when a process is at the work:
 * on a crowded machine seconds may pass before, which say nothing of the work.
 */
int workers_run_patiently(struct workers *ws, struct work *w, uint64_t ns);

/*
 * The same in steps, for a caller with other things to do. Only one work at a time is begun so, and
 * each ends by workers_wait() or by workers_leave().
 * workers_start: 0; -EAGAIN, -EUSERS, -ENOMEM as above: not begun, w is the caller's.
 * workers_wait: waits up to ns. True: w is done, and the caller's again.
 * workers_leave: waits no more. As workers_run().
 */
int workers_start(struct workers *ws, struct work *w);
bool workers_wait(struct workers *ws, struct work *w, uint64_t ns);
int workers_leave(struct workers *ws, struct work *w);

/*
 * How long to wait for each of many works, so that some that hang do not hold the others up for
 * more than a second or so in all. 0: too many hang; begin none.
 */
uint64_t workers_patience_ns(struct workers *ws);

/* One that was late, and is done now: the caller's again. NULL: there is none. */
struct work *workers_next(struct workers *ws);

/*
 * Sets the message of -EAGAIN, -EUSERS and -ENOMEM above: which limit kept a process from being
 * started. Returns -ENOMEM.
 */
int workers_say(int r);

/* Processes that have been at one work for longer than anyone waited. */
size_t workers_late(struct workers *ws);

/*
 * Whether the process at a late work waits for what the work is to read, such as a page of a file
 * system that does not answer. One that only gets no CPU does not. w: workers_next() has not
 * returned it. wait: all zeros at first, then of the last call for that work; since_ns says since
 * when (CLOCK_MONOTONIC, as far as calls have seen it) it waits without a break.
 */
struct work_wait {
	uint64_t since_ns; /* 0: it did not wait */
	uint64_t switches; /* how often it has left its CPU by itself */
};
bool workers_is_blocked(const struct work *w, struct work_wait *wait);

/* The words for a process whose work is late: its memory hangs, or the machine is busy. */
const char *workers_late_words(const struct work *w);

/*
 * Runs run(arg) in a process that has all our descriptors but 0, 1 and 2, and waits up to ns, six
 * times as long while that waits for nothing but a CPU. 0: it is done. -ETIMEDOUT, with a message:
 * it goes on, and what it uses is its own for ever. -EAGAIN, -EUSERS, -ENOMEM: not begun.
 */
int workers_call(void (*run)(void *arg), void *arg, uint64_t ns);

/*
 * From the next work on processes are new ones: they have the credentials and the seccomp filter
 * that the caller has by then.
 */
void workers_renew(void);

#endif
