/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/strbuf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void strbuf_release(struct strbuf *b)
{
	free(b->bytes);
	*b = (struct strbuf)STRBUF_INIT;
}

char *strbuf_take(struct strbuf *b)
{
	char *bytes = NULL;

	if (!strbuf_reserve(b, 0))
		bytes = take_ptr(b->bytes);
	strbuf_release(b);
	return bytes;
}

int strbuf_reserve(struct strbuf *b, size_t more)
{
	size_t need, cap;
	char *bytes;

	if (b->error)
		return b->error;
	if (__builtin_add_overflow(b->len, more, &need) || need > PTRDIFF_MAX / 2)
		return b->error = -ENOMEM;
	if (need < b->cap)
		return 0;

	cap = b->cap < 32 ? 32 : b->cap;
	while (cap <= need)
		cap += cap / 2;
	bytes = realloc(b->bytes, cap);
	if (!bytes)
		return b->error = -ENOMEM;
	bytes[b->len] = '\0';
	b->bytes = bytes;
	b->cap = cap;
	return 0;
}

void strbuf_truncate(struct strbuf *b, size_t len)
{
	assert(len <= b->len);
	b->len = len;
	if (b->bytes)
		b->bytes[len] = '\0';
}

int strbuf_append(struct strbuf *b, const void *bytes, size_t len)
{
	int r = strbuf_reserve(b, len);

	if (r < 0)
		return r;
	if (len)
		memcpy(b->bytes + b->len, bytes, len);
	b->len += len;
	b->bytes[b->len] = '\0';
	return 0;
}

int strbuf_puts(struct strbuf *b, const char *s)
{
	return strbuf_append(b, s, strlen(s));
}

int strbuf_putc(struct strbuf *b, char c)
{
	return strbuf_append(b, &c, 1);
}

int strbuf_appendf(struct strbuf *b, const char *fmt, ...)
{
	va_list ap;
	int n, r;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return b->error = -ENOMEM; /* longer than INT_MAX */

	r = strbuf_reserve(b, n);
	if (r < 0)
		return r;
	va_start(ap, fmt);
	vsnprintf(b->bytes + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += n;
	return 0;
}
