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

/*
 * The same for who comes again and again, of a process whose threads were listed, and at what they
 * cost: without waits_for, and read again once at most. Of a loop that ran both times tasks that
 * were not the same are unsure. asyncio_debug: of asyncio_debug_find(), or NULL; pages: starts as
 * zeros, ends in pages_release().
 */
int process_tasks_sweep(struct inspector *in, struct inspect_process *p,
			const uint64_t *asyncio_debug, struct pages *pages,
			struct inspect_tasks *out);

/* As tasks_probe(), some ten reads. */
int process_tasks_probe(struct inspect_process *p, struct pages *pages);

#endif
