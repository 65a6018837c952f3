/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_DISCOVER_H
#define COLLECT_DISCOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "bpf/events.h"
#include "collect/interpreters.h"
#include "collect/questions.h"
#include "collect/session.h"
#include "target/cgroup.h"

/*
 * Which processes run which Python, told to the kernel side: layouts, the files interpreters are
 * mapped from, and a row a process. All that is looked at of a target is looked at by a thread, or
 * by others that it leaves behind (collect/looker.h): who asks waits for no target.
 */
struct discovery;

/* session is borrowed. */
int discovery_new(struct session *session, struct discovery **out);
void discovery_free(struct discovery *d);
DEFINE_CLEANUP(struct discovery *, discovery_free)

/* Targets that are there from the start. These calls wait for what is found. */

/* A process the user named. Errors as of runtime_find(), with a message that names the process. */
int discovery_add_target(struct discovery *d, pid_t pid);

/*
 * One of our own that is about to execute a command, name as for execvp(): a target, whatever it is
 * now. What the command's files say of its Python is known then from its first tick on.
 */
int discovery_add_command(struct discovery *d, pid_t pid, const char *name);

/*
 * The same with the children it has already, and theirs. Those without Python are targets too, for
 * what they may start. -ENOENT: none has any, yet; they are targets all the same.
 */
int discovery_add_family(struct discovery *d, pid_t pid);

/* Every process there is. Those we cannot look into are left out. */
int discovery_add_all(struct discovery *d);

/*
 * The processes that are in the cgroup now: those new in it since the last call become targets,
 * those no longer in it none. Children begin as what their parents are, in the kernel. Only the
 * first call waits. c is borrowed until discovery_free().
 */
int discovery_follow_cgroup(struct discovery *d, const struct cgroup *c);

/* From here on nobody waits. */

/* The kernel's question about a process: 0 or -ENOMEM. What cannot be answered is no error. */
int discovery_answer(struct discovery *d, const struct who_event *who);

/* q is no longer the caller's. 0, or -EAGAIN: too much is asked, it will not be answered. */
int discovery_ask(struct discovery *d, struct question *q);

/*
 * Hands the answers that have come to those who asked, in the caller's thread: how many, or the
 * negative errno of one, with its message. Not once one is gone that has asked.
 */
int discovery_step(struct discovery *d);

/* Waits until all that was asked is answered, up to ns. */
void discovery_wait(struct discovery *d, uint64_t ns);

/*
 * Whether a look at this process after at_ns (CLOCK_MONOTONIC) saw no interpreter, or one that had
 * not begun. Old answers may be forgotten.
 */
bool discovery_saw_nothing(const struct discovery *d, uint64_t process, uint64_t at_ns);

/*
 * Removes the rows of processes that are gone: the kernel does so when one ends, but not for those
 * whose row came after that. Goes on by itself after every so many answers. 0, or a negative errno
 * with a message.
 */
int discovery_sweep(struct discovery *d);

/* By its identity: it was there at the last sweep, and has not begun another program before that.
 */
bool discovery_has(const struct discovery *d, uint64_t process);

/* NULL for an index that was never given out. Valid until discovery_free(). */
const struct py_offsets *discovery_layout(const struct discovery *d, uint32_t layout);

/* What people call an interpreter. All "" for an unknown layout. */
void discovery_describe(const struct discovery *d, uint32_t layout, struct interpreter_text *out);

/* Of the questions that wait, and their answers: the most at once since the last call. */
struct usage discovery_usage(const struct discovery *d);

/* Questions that were too many, and looks beyond their target's budget, so far. */
uint64_t discovery_refused(const struct discovery *d);

#endif
