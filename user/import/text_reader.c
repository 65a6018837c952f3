/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "import/text_reader.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"

#define READ_BYTES (256u << 10)

void text_reader_release(struct text_reader *t)
{
	vec_release(&t->window);
}

int text_malformed(const struct text_reader *t, const char *what)
{
	return err_set(-EBADMSG, "line %llu, at byte %llu: %s", (unsigned long long)t->number,
		       (unsigned long long)t->offset, what);
}

size_t text_trim(const char *bytes, size_t len)
{
	while (len && (bytes[len - 1] == ' ' || bytes[len - 1] == '\t' || bytes[len - 1] == '\r'))
		len--;
	return len;
}

/* Drops what was read and appends more of the file. Bytes got, 0 at its end, negative errno. */
static ssize_t read_more(struct text_reader *t)
{
	ssize_t n;

	if (t->at) {
		t->window.len -= t->at;
		memmove(t->window.items, t->window.items + t->at, t->window.len);
		t->window_offset += t->at;
		t->at = 0;
	}
	if (vec_reserve(&t->window, READ_BYTES) < 0)
		return -ENOMEM;
	n = content_pread(t->content, t->window.items + t->window.len, READ_BYTES,
			  t->window_offset + t->window.len);
	if (n < 0)
		return n;
	t->window.len += (size_t)n;
	return n;
}

int text_reader_next(struct text_reader *t, const char **line, size_t *len)
{
	size_t searched = 0, left, found;
	const char *newline = NULL;
	ssize_t n = 1;

	while (!newline && n) {
		left = t->window.len - t->at;
		if (left > searched)
			newline = memchr(t->window.items + t->at + searched, '\n', left - searched);
		found = newline ? (size_t)(newline - t->window.items) - t->at : left;
		if (found > LINE_BYTES_MAX)
			return err_set(-E2BIG, "line %llu, at byte %llu: longer than %u MiB",
				       (unsigned long long)t->number + 1,
				       (unsigned long long)(t->window_offset + t->at),
				       LINE_BYTES_MAX >> 20);
		searched = left;
		if (!newline && (n = read_more(t)) < 0)
			return (int)n;
	}
	if (!newline && t->at == t->window.len)
		return 0;
	t->number++;
	t->offset = t->window_offset + t->at;
	*line = t->window.items + t->at;
	*len = text_trim(*line, found);
	t->at += found + (newline != NULL);
	return 1;
}
