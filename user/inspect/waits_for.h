/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_WAITS_FOR_H
#define INSPECT_WAITS_FOR_H

#include "base/strbuf.h"
#include "inspect/future.h"
#include "inspect/tasks.h"

/*
 * Appends what a task waits for, in the words of who wrote the program: "sleep(10)", "Lock.acquire
 * of 0x7f..., 2 wait", "gather of 3, 1 done". future: what its innermost coroutine awaits, 0: not
 * a future, frames: those of its coroutines. What cannot be read is left out. 0, -ENOMEM, -E2BIG.
 */
int waits_for_put(struct await_reader *a, uint64_t future, const struct task_frame *frames,
		  size_t len, struct strbuf *out);

#endif
