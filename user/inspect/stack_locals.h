/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_STACK_LOCALS_H
#define INSPECT_STACK_LOCALS_H

#include <stdbool.h>
#include <stddef.h>

#include "inspect/locals.h"
#include "inspect/process.h"

/* What all stacks of a process may take together, repeated looks at a thread included. */
struct locals_budget {
	uint32_t reads;
	size_t bytes; /* of text */
};

/*
 * For inspector.visit, which is handed one of these: the local variables of each frame of a stack,
 * leaf first. They take no more than STACK_LOCALS_READS (four times as many with render_full) and
 * what is left of the process's budget: the outermost frames have none then. 0, or -ENOMEM.
 */
#define STACK_LOCALS_READS 100000
struct locals_visitor {
	const struct locals_options *options;
	pid_t pid;                   /* that is read; 0 at first */
	struct locals_budget budget; /* what is left of it */
};
int locals_visit(void *visitor, struct inspect_process *p, struct inspect_thread *t);

/* Do both frames have the same variables with the same values, as far as they are shown? */
bool stack_locals_same(const struct inspect_frame *a, const struct inspect_frame *b);

/* For a table of what is the same. */
uint64_t stack_locals_hash(const struct inspect_frame *f, uint64_t seed);

#endif
