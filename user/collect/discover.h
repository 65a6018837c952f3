/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_DISCOVER_H
#define COLLECT_DISCOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "bpf/events.h"
#include "collect/session.h"
#include "target/cgroup.h"

/*
 * Which processes run which Python, told to the kernel side: layouts, the files interpreters are
 * mapped from, and a row a process.
 */
struct discovery;
struct looker;

/* session is borrowed. */
int discovery_new(struct session *session, struct discovery **out);
void discovery_free(struct discovery *d);
DEFINE_CLEANUP(struct discovery *, discovery_free)

/* A process the user named. Errors as of runtime_find(), with a message that names the process. */
int discovery_add_target(struct discovery *d, pid_t pid);

/*
 * One of our own that is about to execute a command, name as for execvp(): a target, whatever it is
 * now. What the command's files say of its Python is known then from its first tick on.
 */
int discovery_add_command(struct discovery *d, pid_t pid, const char *name);

/*
 * The same with the children it has already, and theirs. Those without Python are targets too, for
 * what they may start; -ENOENT only if none has any.
 */
int discovery_add_family(struct discovery *d, pid_t pid);

/* Every process there is. Those we cannot look into are left out. */
int discovery_add_all(struct discovery *d);

/*
 * The processes that are in the cgroup now: those new in it since the last call become targets,
 * those no longer in it none. Children begin as what their parents are, in the kernel.
 */
int discovery_follow_cgroup(struct discovery *d, const struct cgroup *c);

/* The kernel's question about a process. What cannot be answered is no error. */
int discovery_answer(struct discovery *d, const struct who_event *who);

/*
 * Looks again at processes that have just begun a program, which may load Python yet. To be called
 * after discovery_timeout_ms(), which is max_ms at most. 0 or -ENOMEM.
 */
int discovery_timeout_ms(const struct discovery *d, int max_ms);
int discovery_step(struct discovery *d);

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

/* What looks into targets for it, and for others. Borrowed. */
struct looker *discovery_looker(const struct discovery *d);

/* NULL for an index that was never given out. */
const struct py_offsets *discovery_layout(const struct discovery *d, uint32_t layout);

/* What people call an interpreter. All "" for an unknown layout. Borrowed. */
struct interpreter_text {
	const char *version;        /* "3.12.1" */
	const char *implementation; /* "CPython" */
	const char *path;           /* the file its code is mapped from */
};
void discovery_describe(const struct discovery *d, uint32_t layout, struct interpreter_text *out);

/* Python processes found so far, the named targets included. */
size_t discovery_count(const struct discovery *d);

#endif
