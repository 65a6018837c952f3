/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_CODE_OBJECT_H
#define INSPECT_CODE_OBJECT_H

/*
 * Code objects of a process, read from its memory, each once: for frames that no sample has
 * described. They hold for as long as the process does not run. Starts as zeros.
 */

#include <stdbool.h>

#include "base/vec.h"
#include "inspect/address_map.h"
#include "inspect/text_cache.h"
#include "symbolize/linetable.h"
#include "target/object.h"

struct code_object {
	uint64_t address;
	const char *name;     /* co_qualname from 3.11 on, before co_name */
	const char *own_name; /* co_name */
	const char *file;
	int first_line;
	uint64_t bytecode; /* where its first instruction is */
	struct lines lines;
};

struct code_objects {
	struct text_cache texts;
	struct address_map map;
	VEC(struct code_object) codes;
};

void code_objects_release(struct code_objects *c);

/* Forgets them; their texts stay. */
void code_objects_forget(struct code_objects *c);

/* Borrowed: until the next call. 0, -EBADMSG (no code object), -ENOMEM, or as object_get(). */
int code_objects_get(struct code_objects *c, struct object_reader *r, uint64_t address,
		     const struct code_object **out);

/*
 * The line of an instruction, at a byte offset from the first one. The line where the code begins
 * if that has none, or is before it: the frame has not started. 0: the table could not be read up
 * to there.
 */
int code_object_line(const struct code_object *code, uint32_t instr);

/* Whether a co_filename ends so: "/asyncio/events.py". */
bool code_file_ends_in(const char *file, const char *end);

#endif
