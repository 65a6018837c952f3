/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IMPORT_SPAN_H
#define IMPORT_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

/* A piece of a text, which it borrows. */
struct span {
	const char *bytes;
	size_t len;
};

static inline bool span_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* All of s, digits only, up to max. */
bool span_number(struct span s, uint64_t max, uint64_t *out);

/* The same in base 16, without a prefix. */
bool span_hex(struct span s, uint64_t *out);

bool span_is(struct span s, const char *text);
bool span_ends_in(struct span s, const char *suffix);

/* Takes prefix off s. */
bool span_take_prefix(struct span *s, const char *prefix);

/* Splits s at the first separator: what is before it, s is what is behind. */
bool span_take_until(struct span *s, const char *separator, struct span *before);

/* The same at the last `separator`: s is what is before, *behind the rest. */
bool span_take_last(struct span *s, char separator, struct span *behind);

/* Splits `HEAD (TAIL)` at the last ` (`. */
bool span_split_place(struct span text, struct span *head, struct span *tail);

/* Takes `:NUMBER` off the end of a place, if there is one. */
bool span_take_line(struct span *place, uint32_t *line);

/* The same, also of `:~NUMBER`: then *is_approximate. */
bool span_take_marked_line(struct span *place, uint32_t *line, bool *is_approximate);

/* Appends s, of which each `\xHH` is one byte; any other backslash is itself. 0 or -ENOMEM. */
int span_unescape(struct span s, struct strbuf *out);

#endif
