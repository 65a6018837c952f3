/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_LOCKS_H
#define INSPECT_LOCKS_H

#include <stdint.h>
#include <sys/types.h>

/*
 * The locks that threads of a process wait for, who has them, and cycles of both.
 *
 * Which lock: the Lock or RLock objects on the value stack of the leaf frame; up to 3.13 the one on
 * whose semaphore the thread sleeps, later the topmost. Who has it: an RLock says so; of a Lock it
 * is known where that was taken by `with`, as the block keeps its __exit__ on the value stack of
 * its frame until it ends. One that was taken by acquire() has no owner that could be found.
 */

enum lock_kind { LOCK_NONE, LOCK_LOCK, LOCK_RLOCK, LOCK_GIL };

struct inspect_lock {
	enum lock_kind kind;
	uint64_t address; /* of the object; of the GIL: its last_holder */
	pid_t owner;      /* tid of the thread that has it; 0: not known */
};

struct inspect_process;

/* Fills in lock of p->threads, and p->cycles. 0 or -ENOMEM. */
int locks_find(struct inspect_process *p);

#endif
