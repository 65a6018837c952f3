/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_STACK_LOCALS_H
#define INSPECT_STACK_LOCALS_H

#include <stdbool.h>
#include <stddef.h>

#include "inspect/locals.h"
#include "inspect/stack.h"

/* What all stacks of a process may take together, repeated looks at a thread included. */
struct locals_budget {
	uint32_t reads;
	size_t bytes; /* of text */
};
#define LOCALS_BUDGET                                   \
	{                                               \
		.reads = 10000000, .bytes = 256u << 20, \
	}

/*
 * The local variables of each frame of a stack, while its thread stands still: fills in locals of
 * each, leaf first. They take no more than STACK_LOCALS_READS (four times as many with render_full)
 * and what is left of the budget: the outermost frames have none then. 0, or -ENOMEM.
 */
#define STACK_LOCALS_READS 100000
int stack_locals_read(const struct walk_process *p, const struct locals_options *options,
		      struct locals_budget *budget, struct inspect_frame *frames, size_t count);

/* Do both frames have the same variables with the same values, as far as they are shown? */
bool stack_locals_same(const struct inspect_frame *a, const struct inspect_frame *b);

#endif
