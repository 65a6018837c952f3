/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_FUTURE_H
#define INSPECT_FUTURE_H

/* asyncio's futures and tasks, made in C and in Python, and who waits for them. */

#include <stdbool.h>

#include "inspect/await.h"

struct future {
	uint64_t address;
	enum object_kind kind; /* one of the four */
	bool is_done;
	uint64_t loop;
	uint64_t callback;         /* the first one, or 0 */
	uint64_t callbacks;        /* a list of (callback, context), or None, or 0 */
	uint64_t source_traceback; /* a list of traceback.FrameSummary, None, or 0 */
	uint64_t awaited_by;       /* from 3.14 on: one, or a set of them; or 0 */
	bool awaited_by_is_set;
	/* of tasks */
	uint64_t coro, fut_waiter, name;
};

static inline bool kind_is_task(enum object_kind kind)
{
	return kind == KIND_TASK || kind == KIND_PY_TASK;
}

static inline bool kind_is_future(enum object_kind kind)
{
	return kind >= KIND_FUTURE && kind <= KIND_PY_TASK;
}

/* kind: of the object. -EBADMSG: not one of those four. */
int future_get(struct await_reader *a, uint64_t object, enum object_kind kind, struct future *out);

/* What is to be called when it is done. Ends as object_sequence_each() does. */
int future_callbacks_each(struct await_reader *a, const struct future *f, object_item_fn fn,
			  void *arg);

#define AWAITED_BY_FUTURES_MAX 256 /* that stand between a task and those who wait for it */

/*
 * Calls fn with each task that waits for this one, by what the tasks and futures themselves have
 * noted and by what will be called when they are done; the same one maybe more than once. Through
 * gather(), wait(), shield(), wait_for(), as_completed(), and groups of asyncio and anyio.
 */
int awaited_by_each(struct await_reader *a, const struct future *task, object_item_fn fn,
		    void *arg);

#endif
