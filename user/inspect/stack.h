/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_STACK_H
#define INSPECT_STACK_H

#include <stddef.h>
#include <stdint.h>

#include "inspect/codes.h"
#include "inspect/walker.h"
#include "symbolize/code.h"
#include "symbolize/linetable.h"

struct inspect_locals; /* of locals.h */

/* A frame of Python code, or a marker between two interpreters. Text is borrowed from the process's
 * code objects. */
struct inspect_frame {
	uint64_t frame, code; /* addresses: valid as long as the thread stands still */
	uint64_t identity;    /* of the code object; 0: it could not be read */
	uint32_t instr;       /* byte offset of its instruction; of FRAME_COMPILED the line */
	uint32_t flags;       /* enum frame_flag */
	const char *name, *file;
	size_t name_len, file_len;
	struct code_position at;       /* its line is 0 where it is not known */
	int first_line;                /* of its def */
	struct inspect_locals *locals; /* owned; NULL: not asked for, or they cannot be read */
	char marker[CODE_INTERPRETER_BYTES]; /* of FRAME_INTERPRETER: its name */
};

/*
 * The frames of a walk with their names, leaf first, to be freed by stack_free(). A code object
 * that cannot be read is CODE_UNKNOWN. 0 or -ENOMEM.
 */
int stack_read(struct inspect_codes *codes, struct walker *w, const struct walk_process *p,
	       const struct walk *walk, struct inspect_frame **frames, size_t *count);

void stack_free(struct inspect_frame *frames, size_t count);

/*
 * The name of a type, tp_name: of classes written in Python without their module. Freed with
 * free(); NULL if it cannot be read.
 */
char *stack_type_name(const struct walk_process *p, uint64_t type);

#endif
