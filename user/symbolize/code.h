/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SYMBOLIZE_CODE_H
#define SYMBOLIZE_CODE_H

/*
 * The code objects that targets have described: names, file, lines, by code identity (a hash the
 * kernel side makes). The text is kept here as UTF-8; the caller interns it where it needs ids.
 *
 * Memory is capped: past the cap the code objects that were not asked for lately go.
 */

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bpf/events.h"
#include "symbolize/pystring.h"

#define CODE_TABLE_BYTES_DEFAULT (16u << 20)
#define CODE_LINES_UNKNOWN UINT32_MAX /* lines_total of a table that could not be read */

enum code_flag {
	CODE_NAME_MISSING = 1 << 0, /* could not be read: shown as CODE_UNKNOWN */
	CODE_FILE_MISSING = 1 << 1,
	CODE_NAME_CUT = 1 << 2, /* longer than STRING_BYTES_MAX: ends in U+2026 */
	CODE_FILE_CUT = 1 << 3,
	CODE_LINES_MISSING = 1 << 4, /* unreadable or beyond LINETABLE_BYTES_MAX */
	CODE_LINES_LOST = 1 << 5,    /* the target no longer has what is missing of the table */
};

#define CODE_UNKNOWN "<unknown>"

/* Stands between the frames of two interpreters: those above are of that one. */
#define CODE_INTERPRETER "<interpreter %" PRIu64 ">"
#define CODE_INTERPRETER_BYTES sizeof("<interpreter 18446744073709551615>")

/*
 * The interpreter's own entry to a Python __init__ (3.13+ _Py_InitCleanup), which no traceback
 * shows: a code object without a file, which has its name in that place (Python/specialize.c).
 */
static inline bool code_is_shim(const char *name, const char *file)
{
	return !strcmp(name, "__init__") && !strcmp(file, "__init__");
}

/* What a target says of a code object. Every field may be hostile. Bytes are only borrowed. */
struct code_desc {
	uint64_t identity;
	uint64_t process;    /* one that has it: for code_table_retain() */
	uint64_t lines_addr; /* of the line table in the target; pid: of that */
	uint32_t pid;
	enum lines_format format;
	int32_t first_line;   /* co_firstlineno */
	uint32_t lines_total; /* length of the whole line table, or CODE_LINES_UNKNOWN */
	struct pystring name; /* co_qualname from 3.11, co_name before; kind not 1, 2, 4: unread */
	struct pystring file; /* co_filename */
};

/* One code object. Text is UTF-8 with a NUL behind it, and may hold further NULs. */
struct code {
	uint64_t identity;
	const char *name;
	const char *file;
	uint32_t name_len;
	uint32_t file_len;
	int32_t first_line; /* >= 1: the def line */
	uint32_t flags;     /* enum code_flag */
};

struct code_stats {
	size_t codes; /* held now */
	size_t bytes; /* heap held now, the allocator's own overhead estimated */
	uint64_t added;
	uint64_t duplicates;
	uint64_t evicted;         /* forgotten for memory */
	uint64_t unknown_pieces;  /* of line tables whose code object is not held */
	uint64_t rejected_pieces; /* not inside their table */
	uint64_t torn_tables;
};

struct code_table;

/* bytes_max is kept to, but for an empty index (2 KiB) and the code object that grew last. */
int code_table_new(size_t bytes_max, struct code_table **out);
void code_table_free(struct code_table *t);

/* forgotten: told each identity that is no longer held, by code_table_add*(), code_table_retain().
 */
void code_table_tell(struct code_table *t, void (*forgotten)(void *arg, uint64_t identity),
		     void *arg);

/*
 * Adds a code object. A known identity keeps what it has, is this process's from now on, and gets
 * the name, file or line table that was missing. Returns 0, -EINVAL for another format, -ENOMEM.
 */
int code_table_add(struct code_table *t, const struct code_desc *d);

/*
 * Adds a piece of the line table: bytes from offset on. Pieces come in any order, twice, in part
 * or never. Of two that overlap the first stays.
 *
 * Returns 0, -ENOENT if the identity is not held, -ENODATA if its table cannot be used
 * (CODE_LINES_MISSING), -EBADMSG for a piece that is not inside the table, -ENOMEM.
 */
int code_table_add_lines(struct code_table *t, uint64_t identity, uint32_t offset,
			 const uint8_t *bytes, size_t len);

/*
 * Forgets the code objects of the processes that is_wanted() says false of, but for those that were
 * added or found since the last call: another process of the family may run them.
 */
void code_table_retain(struct code_table *t, bool (*is_wanted)(void *arg, uint64_t process),
		       void *arg);

/*
 * NULL if not held. Borrowed: valid until the next code_table_add*(), code_table_retain() or
 * code_table_free().
 */
const struct code *code_find(struct code_table *t, uint64_t identity);

enum line_state {
	LINE_EXACT,
	LINE_TO_COME, /* its piece of the line table has not come yet: code_lines_rest() */
	LINE_UNKNOWN, /* and never will be known: the table is missing or torn */
};

/*
 * Line of the instruction at a byte offset from the first bytecode: always >= 1. An instruction
 * without a line gets the def line, which is exact. One whose line is not known gets it too.
 */
int code_line(const struct code *c, uint32_t instr, enum line_state *state);

/* A line table that has come in part, in its target. */
struct code_lines {
	uint64_t process, addr;
	uint32_t pid, bytes;
	uint32_t seen_bytes; /* at the start of the table, which are known */
	const uint8_t *seen; /* borrowed, as of code_find() */
};

/* Returns false if the table is whole, or unusable. */
bool code_lines_rest(const struct code *c, struct code_lines *out);

/* Sets CODE_LINES_LOST: pieces that still come are taken all the same. */
void code_table_lose_lines(struct code_table *t, uint64_t identity);

/* Borrowed, and current until code_table_free(). */
const struct code_stats *code_table_stats(const struct code_table *t);

#endif
