/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_STACK_LOCALS_H
#define INSPECT_STACK_LOCALS_H

#include <stdbool.h>
#include <stddef.h>

#include "inspect/locals.h"
#include "inspect/stack.h"

/*
 * The local variables of each frame of a stack, while its thread stands still: fills in locals of
 * each. One object is read as often as it is met, but all frames together take no longer than
 * STACK_LOCALS_READS (four times as long with render_full): the outermost have none then. 0, or
 * -ENOMEM.
 */
#define STACK_LOCALS_READS 100000
int stack_locals_read(const struct walk_process *p, const struct locals_options *options,
		      struct inspect_frame *frames, size_t count);

/* Do both frames have the same variables with the same values, as far as they are shown? */
bool stack_locals_same(const struct inspect_frame *a, const struct inspect_frame *b);

#endif
