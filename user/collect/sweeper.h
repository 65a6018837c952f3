/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_SWEEPER_H
#define COLLECT_SWEEPER_H

#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "bpf/events.h"
#include "collect/questions.h"
#include "inspect/tasks.h"

/*
 * Looks at the tasks of processes, again and again, from user space: a process of its own does it
 * (base/apart.h), which is left behind if a look hangs. It takes 1 % of a CPU on average, whatever
 * there are of tasks: after each sweep it rests 115 times as long as that took, and looks at no
 * process more often than ten times a second. Half as much again is for processes that are young,
 * which are looked at each time that they are twice as old. When it looks is drawn, so that no
 * period of a target is met alike.
 */
struct sweeper;

#define SWEEP_NS 100000000ULL /* between two of a process, on average, at the least */

int sweeper_new(struct sweeper **out);
void sweeper_free(struct sweeper *s);
DEFINE_CLEANUP(struct sweeper *, sweeper_free)

/* The order of targets; of qsort() and bsearch(). */
int target_id_compare(const void *a, const void *b);

/* Whom to look at, in that order: others are forgotten. 0 or -ENOMEM. */
int sweeper_set_targets(struct sweeper *s, const struct target_id *targets, size_t count);

/* What one look saw. */
struct sweep {
	struct target_id target;
	uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC */
	uint64_t cpu_ns;           /* that it took */
	int r;                     /* a negative errno: nothing was seen */
	char text[ERR_BYTES];      /* its message */
	struct asyncio_row row;    /* process 0: it has not imported asyncio */
	struct inspect_tasks tasks;
	char (*comms)[COMM_BYTES]; /* by loop: the kernel's name of its thread */
	struct sweep *next;        /* ours */
};
void sweep_free(struct sweep *sw);
DEFINE_CLEANUP(struct sweep *, sweep_free)

/* The oldest that was not taken, the caller's to free. NULL: there is none. */
struct sweep *sweeper_take(struct sweeper *s);

/* CPU time that a sweep took elsewhere: it is paid for, too. */
void sweeper_charge(struct sweeper *s, uint64_t ns);

#endif
