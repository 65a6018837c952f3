/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_ASYNCIO_DEBUG_H
#define INSPECT_ASYNCIO_DEBUG_H

#include "inspect/process.h"
#include "inspect/task_layout.h"

/*
 * What _asyncio says of its structs in the section .AsyncioDebug, from 3.14 on: in the file of its
 * extension module, or in that of the interpreter that has it built in. -ENOENT: not there; none
 * with a message.
 */
int asyncio_debug_find(const struct inspect_process *p, uint64_t words[ASYNCIO_DEBUG_WORDS]);

#endif
