/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_ASYNCIO_H
#define INSPECT_ASYNCIO_H

#include "inspect/task_reader.h"

/*
 * Adds the pending tasks of all loops of asyncio, and of what takes its place (uvloop): 0, -E2BIG
 * (more than may be read: those before are there), -ENOMEM, or what read() said of the process.
 */
int asyncio_read(struct task_reader *t);

/* The same of those that the process's `only` names, be they still there or not. */
int asyncio_read_only(struct task_reader *t);

#endif
