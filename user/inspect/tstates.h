/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_TSTATES_H
#define INSPECT_TSTATES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "inspect/walker.h"

/*
 * Which thread made which PyThreadState; which one it runs, the walk finds. From 3.11 on it has the
 * thread's id, as its PID namespace has it; before, only pthread_self(), behind which the C library
 * keeps the id.
 */
struct tstate {
	uint64_t address, interp;
	uint64_t pointer; /* pthread_self() */
	pid_t nspid;      /* 0: of no thread that lives */
};

struct tstates {
	struct tstate *items; /* a VEC */
	size_t len, cap;
};

/*
 * All thread states of all interpreters, given to the threads that made them, whose
 * ids are `nspids` (ascending). The process goes on: some may be missing, and each is to be looked
 * at again. 0, -ENOMEM, or what the first read returned.
 */
int tstates_list(const struct walk_process *p, const pid_t *nspids, size_t count,
		 struct tstates *out);

#endif
