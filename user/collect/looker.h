/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_LOOKER_H
#define COLLECT_LOOKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/workers.h"
#include "bpf/events.h"
#include "collect/thread_name.h"
#include "target/command.h"
#include "target/container.h"
#include "target/process_context.h"
#include "target/runtime.h"

/*
 * Looks into targets: their mappings, files and memory, any of which may hang for ever (a network
 * mount, a file system whose server has stopped). So processes do it, which are left behind if need
 * be: WORKERS_MAX of them, and a quarter of these for targets of one owner (target/owner.h), then
 * looks are refused. So are those that a target or an owner has too many of: see look_budget.h. For
 * one thread, which waits.
 */
struct looker;

#define LOOK_OWNER_BLOCKED_MAX (WORKERS_MAX / 4)

int looker_new(struct looker **out);
void looker_free(struct looker *l);
DEFINE_CLEANUP(struct looker *, looker_free)

#define LOOK_SOON_NS 50000000ULL       /* patience with one that the kernel asked about */
#define LOOK_PATIENT_NS 10000000000ULL /* with one that the user named */

/* What was seen of a process. */
struct sighting {
	struct task_record task;   /* as it was before the look */
	uint64_t look_ns;          /* CLOCK_MONOTONIC: when that began */
	int r;                     /* as looker_find() */
	char text[ERR_BYTES];      /* the message of r */
	struct py_runtime runtime; /* if r >= 0 */
};

/*
 * Each of the following looks returns as what it stands for, or else, with a message,
 * -ETIMEDOUT: it takes longer than is waited for;
 * -EBUSY: not begun, as too many hang already, of all or of the same owner, or one at the same
 * process, or a budget is spent;
 * -ETIME: its CPU time did not do, another one goes on (looker_find());
 * -ENOMEM.
 */

/* It may be told by another look, later. */
static inline bool look_is_late(int r)
{
	return r == -ETIMEDOUT || r == -EBUSY || r == -ETIME;
}

/* As runtime_find(), within ns. One that is late is what looker_next() returns, if it comes. */
int looker_find(struct looker *l, const struct task_record *task, uint64_t ns,
		struct sighting *out);

/* As command_find_runtime(), soon or not at all. */
int looker_command(struct looker *l, const char *name, struct command_runtime *out);

/* As program_find_lead(), soon or not at all. */
int looker_find_lead(struct looker *l, const struct task_record *task, const struct py_runtime *rt,
		     int64_t *distance);

/* A look that was given up, and is done now. False: there is none. */
bool looker_next(struct looker *l, struct sighting *out);

/* Whether there are any that were given up, and not handed out. */
bool looker_has_late(const struct looker *l);

/*
 * Now and then: names a process that has not answered for a second, in a warning, once, and one a
 * second. looker_free() names the others.
 */
void looker_name_silent(struct looker *l);

/*
 * As mem_read(), soon or not at all. -ESTALE: the first `steady` bytes are others after the rest
 * was read.
 */
int looker_read(struct looker *l, pid_t pid, uint64_t addr, void *buf, size_t len, size_t steady);

/*
 * Reads the first and the last byte of each range, and throws them away: what was not present is
 * then. Of a code object, by off, also what it points to.
 */
void looker_touch(struct looker *l, pid_t pid, const struct py_offsets *off,
		  const struct page_range *ranges, size_t count);

/* Does thread_names_read(), soon or not at all: 0, else *names is no longer the caller's, and NULL.
 */
int looker_thread_names(struct looker *l, struct thread_names **names);

/* The start of a process's arguments, NUL behind each, soon or not at all: how many bytes. */
int looker_arguments(struct looker *l, pid_t pid, char out[ARGS_BYTES]);

/* As container_find(), soon or not at all: 1, or 0. */
int looker_container(struct looker *l, pid_t pid, struct container *out);

/* What a process publishes for readers outside. */
struct published {
	struct process_context context;    /* all zeros: nothing */
	struct thread_context_row threads; /* process is not set; all zeros: its threads nothing */
};

/* Soon or not at all: 0, also where it is nothing. process_context_release() of out->context. */
int looker_published(struct looker *l, pid_t pid, struct published *out);

/* Looks that were refused so far: by a budget, or as too many hang. For any thread. */
uint64_t looker_refused(const struct looker *l);

#endif
