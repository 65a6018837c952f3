/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_KINDS_H
#define INSPECT_KINDS_H

/* What objects are, as far as it matters to those who wait for them. */

#include "inspect/address_map.h"
#include "target/object.h"

enum object_kind {
	KIND_OTHER,
	/* what runs, and awaits: PyGenObject */
	KIND_COROUTINE,
	KIND_GENERATOR,
	KIND_ASYNC_GENERATOR,
	KIND_CYTHON, /* the same, made by Cython: an object of its own make */
	/* what stands between an await and that: its first field is it */
	KIND_WRAPPER,
	/* futures */
	KIND_FUTURE,    /* made in C, */
	KIND_TASK,      /* and its subtype */
	KIND_PY_FUTURE, /* the same, made in Python */
	KIND_PY_TASK,
	/* what callbacks are */
	KIND_METHOD,
	KIND_BUILTIN,
	KIND_FUNCTION,
	KIND_PARTIAL,
	KIND_WAKEUP, /* of _asyncio up to 3.9: its first field is the task */
	/* what callbacks hold on to */
	KIND_TASK_GROUP,       /* of asyncio */
	KIND_ANYIO_TASK_GROUP, /* of anyio, on asyncio */
	KIND_QUEUE,
	KIND_AS_COMPLETED,
	/* trio's */
	KIND_TRIO_TASK,
	KIND_TRIO_RUNNER,
	KIND_GREENLET,
	/* values */
	KIND_NONE,
	KIND_FLOAT,
	KIND_CELL,
};

#define KINDS_RECENT 64 /* a power of two */

/* Of types that were met. Starts as zeros. */
struct object_kinds {
	struct address_map map;
	struct address_slot recent[KINDS_RECENT]; /* some of the map */
	uint32_t task_bytes;                      /* of struct task_layout */
};

void object_kinds_release(struct object_kinds *k);

/* What an object is, by its type and those that is derived from. 0, or as object_get(), -ENOMEM. */
int object_kind(struct object_kinds *k, struct object_reader *r, uint64_t object,
		enum object_kind *out);

#endif
