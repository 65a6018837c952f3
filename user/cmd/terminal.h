/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_TERMINAL_H
#define CMD_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/strbuf.h"
#include "base/vec.h"

/* How to draw on an output: decided once, by what it is and by the environment. */
struct terminal {
	FILE *out;
	size_t width;      /* columns; 0: no limit, as it is no terminal */
	bool has_colour;   /* a terminal other than TERM=dumb, and NO_COLOR is not set */
	bool has_unicode;  /* a terminal in a UTF-8 locale: box-drawing characters */
	bool keeps_styles; /* apart from the text, as spans of its lines: for who draws them */
};

void terminal_init(struct terminal *t, FILE *out);

enum style { STYLE_PLAIN, STYLE_BOLD, STYLE_DIM, STYLE_HOT, STYLE_WARM, STYLE_COOL };

/* Bytes of a line's text that have a style. */
struct line_span {
	size_t from, len;
	enum style style;
};

/* One line as it is put together, cut at the terminal's width. Ends in line_release(). */
struct line {
	const struct terminal *t;
	struct strbuf text;
	size_t column;               /* the next one, from 0 */
	VEC(struct line_span) spans; /* where the terminal keeps_styles */
};

#define LINE_INIT(terminal)                          \
	{                                            \
		.t = (terminal), .text = STRBUF_INIT \
	}

/*
 * Everything that is put is escaped by escape_append(), so that no name of a target and no text of
 * a file can drive the terminal, whoever prints it.
 */
void line_put(struct line *l, enum style style, const char *text);
void line_putf(struct line *l, enum style style, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The same of text that may hold NUL bytes: names of targets. */
void line_put_foreign(struct line *l, enum style style, const char *text, size_t len);

/*
 * The same, but no more than its last columns: "..its end", as that tells more than its start. A
 * path loses folders first ("../base.py:12"), and suffix is never cut: a line's number.
 */
void line_put_tail(struct line *l, enum style style, const char *text, size_t len,
		   const char *suffix, size_t columns);

/* Columns that are left of the line; SIZE_MAX where there is no limit. */
size_t line_room(const struct line *l);

/* Spaces up to the column. */
void line_pad(struct line *l, size_t column);

/* Prints the line without spaces at its end, begins the next. 0 or -ENOMEM, which sticks. */
int line_end(struct line *l);

/* Nothing is in it. */
void line_clear(struct line *l);
void line_release(struct line *l);

/*
 * Columns that text takes: valid UTF-8 without control characters. Wide and combining characters
 * by block, not one by one; after setlocale() to UTF-8 as the C library has them.
 */
size_t code_point_columns(uint32_t c);
size_t text_columns(const char *text, size_t len);

/* The same of a target's text, after escaping. */
size_t foreign_columns(const char *text, size_t len);

#endif
