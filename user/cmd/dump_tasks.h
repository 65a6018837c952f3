/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_DUMP_TASKS_H
#define CMD_DUMP_TASKS_H

#include "base/json.h"
#include "cmd/dump.h"
#include "cmd/terminal.h"
#include "inspect/tasks.h"

/* `dump --async`. */

/*
 * The tasks of each loop as trees: below each the tasks that it waits for. One that several wait
 * for is whole below the first of them; leaves that are alike are one entry. 0 or -ENOMEM.
 */
int dump_tasks_print(const struct terminal *t, const struct inspect_tasks *tasks);

/* The value of `tasks` in pyebpf-dump/1: the first so many; 0: all. 0 or -ENOMEM. */
int dump_json_tasks(struct json *j, const struct inspect_tasks *t, uint32_t limit,
		    const struct dump_script *script, struct left_out *left);

/* The key `task_cycles`: lists of ids, each of which waits for the next, and the last for the
 * first. */
void dump_json_task_cycles(struct json *j, const struct inspect_tasks *t);

#endif
