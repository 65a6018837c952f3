/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_FRAMETAB_H
#define PROFILE_FRAMETAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers are those of the file format. */
enum frame_type {
	FRAME_PYTHON = 0,
	FRAME_NATIVE = 1,
	FRAME_KERNEL = 2,
	FRAME_MARKER = 3, /* <GC>, <native>, ...: something about the stack, not code */
	FRAME_TASK = 4,   /* what is below runs in this asyncio task */
};
#define FRAME_TYPE_COUNT 5

enum frame_bits {
	FRAME_LINE_APPROXIMATE = 1 << 0,
	FRAME_NAME_UNKNOWN = 1 << 1,
};

/* One line of one function. */
struct frame {
	uint32_t name;       /* string id: qualname, symbol, marker or the task's name */
	uint32_t file;       /* string id: source file or module; 0 (""): none */
	uint32_t line;       /* 1-based; 0: unknown */
	uint32_t first_line; /* of the def; 0: unknown */
	uint64_t offset;     /* of a native frame that is not symbolised: in its file; else 0 */
	uint8_t kind;        /* enum frame_type */
	uint8_t flags;       /* enum frame_bits */
};

/*
 * The line, for formats in which it is a number and cannot be marked: 0 where only the def line is
 * known. Approximate lines of machine code are kept.
 */
static inline uint32_t frame_told_line(const struct frame *f)
{
	return f->flags & FRAME_LINE_APPROXIMATE && f->line == f->first_line ? 0 : f->line;
}

/* Code, which stands somewhere; not what is said about a stack. */
static inline bool frame_has_place(uint8_t kind)
{
	return kind != FRAME_MARKER && kind != FRAME_TASK;
}

/* Interned frames. Ids are dense, start at 0 and never move. Knows string ids, not strings. */
struct frametab;

int frametab_new(struct frametab **out);
void frametab_free(struct frametab *t);

/* Returns 0 and *id, or with *id untouched: -ENOMEM, -EOVERFLOW (4 G frames). */
int frametab_intern(struct frametab *t, const struct frame *f, uint32_t *id);

/* Borrowed: valid until the next frametab_intern(). id < frametab_count(). */
const struct frame *frametab_get(const struct frametab *t, uint32_t id);
uint32_t frametab_count(const struct frametab *t);
size_t frametab_bytes(const struct frametab *t); /* memory it holds */

#endif
