/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_VALUE_STACK_H
#define INSPECT_VALUE_STACK_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/events.h"
#include "inspect/stack.h"
#include "inspect/walker.h"

/*
 * Where the value stack of a frame is, beside what struct py_offsets has. Offsets are of
 * PyFrameObject up to 3.10, then of _PyInterpreterFrame; code_* from the end of PyObject. Compared
 * with CPython's headers by tests/lint/offsets_check.c.
 */
struct value_stack_layout {
	uint8_t minor_first, minor_last;
	uint16_t iblock, blockstack; /* up to 3.10 */
	uint16_t valuestack;         /* up to 3.10: pointer to where it begins */
	uint16_t localsplus;         /* later: it begins behind these, co_nlocalsplus */
	uint16_t stackpointer;       /* 3.14+: behind its last entry; 0: not kept */
	uint16_t code_stacksize;
	uint16_t code_nlocalsplus;
	uint16_t code_exceptiontable;
};

/* NULL for a version that is not known: 3.6, 3.7. */
const struct value_stack_layout *value_stack_layout_find(unsigned minor);

#define VALUE_STACK_MAX 256 /* entries; of more, the first */

struct value_stack {
	uint64_t entries[VALUE_STACK_MAX]; /* pointers, without tags; what is not live may be stale
					    */
	size_t count;
	size_t live; /* of these, from the first: those of the blocks that the instruction is in */
};

/* 0 or -EFAULT. */
int value_stack_read(const struct walk_process *p, const struct value_stack_layout *layout,
		     const struct inspect_frame *f, struct value_stack *out);

#endif
