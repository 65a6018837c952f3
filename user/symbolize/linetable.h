/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SYMBOLIZE_LINETABLE_H
#define SYMBOLIZE_LINETABLE_H

/*
 * The three line tables of CPython, read as CPython reads them:
 *
 *   LINES_LNOTAB     <= 3.9   PyCode_Addr2Line(), Objects/lnotab_notes.txt of 3.9
 *   LINES_DELTAS     3.10     co_lines(), Objects/lnotab_notes.txt of 3.10
 *   LINES_LOCATIONS  3.11+    co_lines(), Objects/locations.md
 *
 * A table is a copy of a target's memory: it may be torn or made to harm. No input reads outside
 * it, overflows or takes more than one pass.
 *
 * Instructions are byte offsets from the first bytecode. Offsets above INT32_MAX (f_lasti of -1: a
 * frame that has not started) have no line. Lines outside 1..INT32_MAX are no lines either: from
 * 3.11 a module starts with an instruction on line 0.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/events.h"

/* Longer tables are refused with -E2BIG. The longest seen: 180 KB, in generated code. */
#define LINETABLE_BYTES_MAX (1u << 20)

/*
 * Line of one instruction, straight from the table.
 *
 * @table  co_lnotab or co_linetable bytes
 * @first  co_firstlineno
 *
 * Returns the line (>= 1), 0 if the instruction has none, -EBADMSG if the table ends inside an
 * entry or holds a malformed one at or before the instruction, -E2BIG.
 */
int linetable_line(enum lines_format format, const uint8_t *table, size_t len, int first,
		   uint32_t instr);

/* Of the source of one instruction. Columns are bytes of the line's UTF-8, from 0; -1: not told. */
struct code_position {
	int line, end_line; /* 0: none */
	int column, end_column;
};

/*
 * linetable_line(), and what LINES_LOCATIONS says beside the line, as co_positions() has it: other
 * formats, and interpreters started with -X no_debug_ranges, tell lines alone. *out is whole
 * whatever is returned, but for -E2BIG.
 */
int linetable_position(enum lines_format format, const uint8_t *table, size_t len, int first,
		       uint32_t instr, struct code_position *out);

/* Where a decoder stands: between two entries. */
struct linetable_cursor {
	enum lines_format format;
	uint32_t pos;   /* bytes of the table that are decoded */
	uint32_t start; /* first instruction of the next entry */
	int64_t line;   /* the running line; 2^20 deltas of 32 bits cannot overflow it */
};

struct lines_range {
	uint32_t end; /* first instruction behind it; it starts where the one before ends */
	int32_t line; /* 0: none */
};

enum lines_state {
	LINES_PARTIAL, /* the rest of the table is still to come */
	LINES_WHOLE,
	LINES_TORN, /* a malformed entry: what is before it holds */
};

/*
 * A table decoded once, for code objects that are asked many times: at most 8 bytes a table byte,
 * neighbours on one line joined. Fields are read-only for callers.
 */
struct lines {
	struct linetable_cursor next;
	enum lines_state state;
	uint32_t count, capacity;
	struct lines_range *ranges; /* owned; contiguous from instruction 0 */
};

/* Allocates nothing. Any struct lines is released exactly once. */
void lines_init(struct lines *l, enum lines_format format, int first);
void lines_release(struct lines *l);

/*
 * Decodes as far as the table is known: the first len bytes of whole_len (len <= whole_len). Call
 * it again with a longer prefix as more arrives; each byte is decoded once.
 *
 * Returns 0, -EBADMSG if the table is torn (and then at each later call), -E2BIG, or -ENOMEM: call
 * again. What was decoded before a failure stays usable.
 */
int lines_extend(struct lines *l, const uint8_t *table, size_t len, size_t whole_len);

/*
 * As linetable_line(), by binary search: the line, 0 if there is none, -EBADMSG at or behind a
 * malformed entry, -ENODATA in the part that has not come yet.
 */
int lines_find(const struct lines *l, uint32_t instr);

/* Heap bytes held. */
size_t lines_bytes(const struct lines *l);

#endif
