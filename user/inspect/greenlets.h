/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_GREENLETS_H
#define INSPECT_GREENLETS_H

#include "inspect/task_reader.h"

/*
 * Greenlets, and those of gevent, that wait to be switched to: as tasks, a loop for each thread.
 * Nobody has a list of them but the garbage collector. 0, or what stops all.
 */
int greenlets_read(struct task_reader *t);

#endif
