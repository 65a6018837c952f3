/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_DUMP_H
#define CMD_DUMP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/json.h"
#include "base/vec.h"
#include "cmd/terminal.h"
#include "export/largest.h"
#include "inspect/process.h"
#include "inspect/sources.h"
#include "inspect/tasks.h"
#include "target/container.h"

/* The parts of `pyebpf dump`; its option table is in dump.c. */

/* A process that was asked for. */
struct dump_item {
	pid_t pid;
	struct inspect_process *process; /* NULL: it could not be read */
	char *error;                     /* why; NULL: it was */
	struct container container;
	struct inspect_tasks tasks; /* with --async */
	char *tasks_error;          /* why there are none; NULL: they were read */
};

struct dump {
	VEC(struct dump_item) items;
	struct sources *sources;
	uint64_t time_ns;                    /* since 1970 */
	bool recent_first;                   /* the most recent call of a stack */
	bool has_tasks;                      /* --async: tasks in the place of threads */
	const struct locals_options *locals; /* NULL: without local variables */
	struct largest largest;              /* what JSON leaves out of each process */
};

/* The first of some threads that are alike, and how many they are. */
struct dump_group {
	size_t first, count;
	int64_t shortest_ns, longest_ns; /* how long they wait; -1: not known */
	bool is_one_file;                /* they wait for the same descriptor, if for any */
};

/* Starts as zeros, ends in dump_groups_release(). */
struct dump_groups {
	VEC(struct dump_group) items;
	size_t *of_thread; /* index of its group, by thread */
};

/* 0 or -ENOMEM. */
int dump_find_groups(const struct inspect_process *p, struct dump_groups *out);
void dump_groups_release(struct dump_groups *groups);

/* One process, as Python prints tracebacks. 0 or -ENOMEM. */
int dump_text(const struct terminal *t, const struct dump *d, const struct dump_item *item);

/* All of them, "pyebpf-dump/1". 0, -EIO or -ENOMEM. */
int dump_json(FILE *out, const struct dump *d);

/* The folder in which a program's own modules are looked for: that of its script. */
struct dump_script {
	const char *folder; /* its first len bytes, the last slash included */
	size_t len;         /* 0: there is none */
};

/* A key with a number; null: it is less than the least that there is, as it is not known. */
void dump_json_number(struct json *j, const char *key, int value, int least);

/* The key `module` of a frame of Python code. 0 or -ENOMEM. */
int dump_json_module(struct json *j, const struct dump_script *script, const char *file,
		     size_t len);

/* "running", ...: as in JSON. */
const char *dump_state_word(enum thread_state state);

/* "Lock", "RLock", "GIL". */
const char *dump_lock_word(enum lock_kind kind);

#endif
