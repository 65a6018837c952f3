/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_FINDER_H
#define COLLECT_FINDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "bpf/events.h"
#include "collect/interpreters.h"
#include "collect/looker.h"
#include "collect/session.h"

/*
 * What looks at processes find, told to the kernel side: a row a process, and how the next process
 * of the same program or interpreter is recognised. For one thread, where nothing else is said.
 */
struct finder;

/* All three are borrowed. */
int finder_new(struct session *session, struct looker *looker, struct interpreters *interpreters,
	       struct finder **out);
void finder_free(struct finder *f);
DEFINE_CLEANUP(struct finder *, finder_free)

/* A process that may run Python (1) or not (0). -ENOMEM, or an errno of the kernel side. */
int finder_add_task(struct finder *f, const struct task_record *task);

/*
 * A process the user named; task: NULL, if it was not among the tasks. 0, or errors as of
 * runtime_find(), with a message that names the process.
 */
int finder_add_target(struct finder *f, pid_t pid, const struct task_record *task);

/* The program that a command's name stands for: what its files say of its Python. */
int finder_add_command(struct finder *f, const char *name);

/* The kernel's question about a process. What cannot be answered is no error: 0 or -ENOMEM. */
int finder_answer(struct finder *f, const struct who_event *who);

/*
 * Looks again at a process that has just begun a program, which may load Python yet: at one of
 * them, as others wait for an answer, and only if it has run since; or at one with a Python, which
 * may have loaded another one, for a warning. To be called at finder_due_ns() (CLOCK_MONOTONIC,
 * UINT64_MAX: never), and after other looks. 0 or -ENOMEM.
 */
uint64_t finder_due_ns(const struct finder *f);
int finder_step(struct finder *f);

/* Such processes that were too many so far: each is looked at when it has run on. For any thread.
 */
uint64_t finder_refused(const struct finder *f);

/* See discovery_saw_nothing(). For any thread. */
bool finder_saw_nothing(struct finder *f, uint64_t process, uint64_t at_ns);

#endif
