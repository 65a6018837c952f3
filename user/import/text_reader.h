/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IMPORT_TEXT_READER_H
#define IMPORT_TEXT_READER_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "import/content.h"

/* A million frames of 16 bytes; what a hostile file may make us hold at once. */
#define LINE_BYTES_MAX (16u << 20)

/* Reads a content line by line. Starts as { .content = ... }, which it borrows. */
struct text_reader {
	struct content *content;
	VEC(char) window;
	size_t at;              /* in the window: where the next line starts */
	uint64_t window_offset; /* in the content */
	uint64_t number;        /* of the line last read, from 1 */
	uint64_t offset;        /* of its first byte */
};

/*
 * The next line, without its end: spaces, tabs and carriage returns behind the last other byte go
 * with the newline. May hold NUL bytes. Valid until the next call. 1; 0 at the end; -E2BIG for a
 * line longer than LINE_BYTES_MAX; -ENOMEM, or as content_pread(). Outputs are untouched unless
 * it returns 1.
 */
int text_reader_next(struct text_reader *t, const char **line, size_t *len);

/* bytes up to the first newline are such a line: its length. */
size_t text_trim(const char *bytes, size_t len);

/* -EBADMSG, with a message that says where: of the line last read. */
int text_malformed(const struct text_reader *t, const char *what);

void text_reader_release(struct text_reader *t);

#endif
