/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_STRBUF_H
#define BASE_STRBUF_H

#include <errno.h>
#include <stddef.h>

#include "base/cleanup.h"

/*
 * A growable string, always NUL-terminated; may hold NUL bytes inside. Starts as STRBUF_INIT,
 * ends in strbuf_release() or strbuf_take().
 *
 * Every append returns 0 or -ENOMEM. The first failure sticks: later appends do nothing and
 * return it too, so a run of appends may be checked once, by its last call or by strbuf_error().
 */
struct strbuf {
	char *bytes; /* NULL while nothing was appended: read it by strbuf_str() */
	size_t len;  /* without the final NUL */
	size_t cap;
	int error; /* 0 or -ENOMEM */
};

#define STRBUF_INIT \
	{           \
		0   \
	}

/* Frees, and makes b as good as new. */
void strbuf_release(struct strbuf *b);

/* Runs at the end of scope: _cleanup_(strbuf_releasep) struct strbuf b = STRBUF_INIT; */
static inline void strbuf_releasep(struct strbuf *b)
{
	strbuf_release(b);
}

/* Borrowed: valid until the next append. "" when empty. */
static inline const char *strbuf_str(const struct strbuf *b)
{
	return b->bytes ? b->bytes : "";
}

static inline int strbuf_error(const struct strbuf *b)
{
	return b->error;
}

/* Hands the string over, to be freed with free(), and empties b. NULL after a failed append. */
char *strbuf_take(struct strbuf *b);

/* Makes room for more bytes (and the NUL). */
int strbuf_reserve(struct strbuf *b, size_t more);

/* Cuts to len bytes; len must not be beyond b->len. Keeps the memory. */
void strbuf_truncate(struct strbuf *b, size_t len);

int strbuf_append(struct strbuf *b, const void *bytes, size_t len);
int strbuf_puts(struct strbuf *b, const char *s);
int strbuf_putc(struct strbuf *b, char c);
int strbuf_appendf(struct strbuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
