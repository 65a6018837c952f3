/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_TRIO_H
#define INSPECT_TRIO_H

#include "inspect/task_reader.h"

/*
 * Adds the tasks of trio's loops: those of threads that are in trio.run(), which their stacks tell.
 * Not in guest mode, where another loop runs trio's. As asyncio_read().
 */
int trio_read(struct task_reader *t);

#endif
