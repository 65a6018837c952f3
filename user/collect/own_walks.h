/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_OWN_WALKS_H
#define COLLECT_OWN_WALKS_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "bpf/events.h"

/*
 * Threads that run, walked each by itself before it goes on in its own code (bpf/own.bpf.c), which
 * holds it up for as long as that takes; and all of a process that stand still, in one pass
 * (bpf/still.bpf.c). Linux 6.18, CAP_BPF and CAP_PERFMON.
 */
struct own_walks;

/* Nothing is loaded before it is needed. 0 or -ENOMEM. */
int own_walks_new(struct own_walks **out);
void own_walks_free(struct own_walks *o);
DEFINE_CLEANUP(struct own_walks *, own_walks_free)

/* As own_walks_run() does if need be. 0, or its refusal, with a message. */
int own_walks_load(struct own_walks *o);

/* What own_walks_look() takes besides. 0, or -EOPNOTSUPP with a message. */
int own_walks_can_look(void);

/*
 * Has threads of one process walked, and calls take with what was found of the i-th that was,
 * before long (250 ms at most): not of those that went to sleep, got no CPU in that time, or have
 * ended. 0; a negative errno with a message: -EPERM, -EOPNOTSUPP where it cannot be done, now and
 * later; or take's first negative result. walks: struct own_walks.
 */
int own_walks_run(void *walks, const struct py_offsets *off, const struct own_ask *asks,
		  size_t count, int (*take)(void *arg, size_t i, struct own_walk *w), void *arg);

/*
 * Calls take with all threads of the process that stand still: their state is OWN_DONE, or
 * OWN_MOVED where that did not last, and `stand` is filled in. Those that run or have ended, and
 * some of very many, are left out. -EOPNOTSUPP also in a PID namespace of our own. Else as
 * own_walks_run().
 */
int own_walks_look(void *walks, const struct py_offsets *off, const struct own_ask *process,
		   int (*take)(void *arg, size_t i, struct own_walk *w), void *arg);

#endif
