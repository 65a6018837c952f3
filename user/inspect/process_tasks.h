/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_PROCESS_TASKS_H
#define INSPECT_PROCESS_TASKS_H

#include "inspect/process.h"
#include "inspect/tasks.h"

/*
 * The tasks of a process whose threads were read. Each loop whose thread was off the CPU all along
 * is as it was at one moment; else all is read again, some 50 ms long, and then as it is. *out is
 * to be released in any case. As tasks_collect().
 */
int process_tasks_read(struct inspector *in, struct inspect_process *p, struct inspect_tasks *out);

#endif
