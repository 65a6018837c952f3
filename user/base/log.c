/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/utf8.h"

#define LINE_MAX_BYTES 1000 /* without the newline */
#define PREFIX_MAX_BYTES 100
#define DOTS "..."

static enum log_level current_level = LOG_LEVEL_WARNING;
static bool writes_json;

static const char *const prefixes[] = {
	[LOG_LEVEL_ERROR] = "pyebpf: ",
	[LOG_LEVEL_WARNING] = "pyebpf: warning: ",
	[LOG_LEVEL_NOTE] = "pyebpf: ",
	[LOG_LEVEL_DEBUG] = "pyebpf: debug: ",
};

static const char *const names[] = {
	[LOG_LEVEL_ERROR] = "error",
	[LOG_LEVEL_WARNING] = "warning",
	[LOG_LEVEL_NOTE] = "info",
	[LOG_LEVEL_DEBUG] = "debug",
};

void log_set_json(bool is_json)
{
	writes_json = is_json;
}

void log_set_level(int level)
{
	if (level < LOG_LEVEL_ERROR)
		level = LOG_LEVEL_ERROR;
	if (level > LOG_LEVEL_DEBUG)
		level = LOG_LEVEL_DEBUG;
	current_level = level;
}

enum log_level log_level(void)
{
	return current_level;
}

struct line {
	char bytes[LINE_MAX_BYTES + 1];
	size_t len;
};

/* Appends text, '?' for each control and each byte that is not UTF-8; room is the caller's. */
static void line_add(struct line *l, const char *text, size_t len)
{
	for (size_t i = 0, n; i < len; i += n) {
		bool is_plain;

		n = utf8_next_plain(text + i, len - i, &is_plain);
		if (is_plain)
			memcpy(l->bytes + l->len, text + i, n);
		else
			l->bytes[l->len] = '?';
		l->len += is_plain ? n : 1;
	}
}

static bool is_continuation(char byte)
{
	return (byte & 0xc0) == 0x80;
}

/* Both ends of a text count: what it is about, and why. Cuts between characters. */
static void line_add_cut(struct line *l, const char *text, size_t len)
{
	size_t room = LINE_MAX_BYTES - l->len, head, tail;

	if (len <= room) {
		line_add(l, text, len);
		return;
	}
	head = (room - strlen(DOTS)) / 2;
	tail = room - strlen(DOTS) - head;
	while (head && is_continuation(text[head]))
		head--;
	while (tail && is_continuation(text[len - tail]))
		tail--;
	line_add(l, text, head);
	line_add(l, DOTS, strlen(DOTS));
	line_add(l, text + len - tail, tail);
}

static void line_write(const char *prefix, const char *text, size_t len)
{
	struct line l = { .len = 0 };

	assert(strlen(prefix) <= PREFIX_MAX_BYTES);
	line_add(&l, prefix, strlen(prefix));
	line_add_cut(&l, text, len);
	l.bytes[l.len++] = '\n';
	fwrite(l.bytes, 1, l.len, stderr); /* unbuffered: one write() */
}

/* The text is defused and cut first, so that only quotes and backslashes are left to escape. */
static void line_write_json(enum log_level level, const char *text, size_t len)
{
	char out[128 + 2 * LINE_MAX_BYTES];
	struct line l = { .len = 0 };
	struct timespec now;
	struct tm utc;
	size_t n;

	line_add_cut(&l, text, len);
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	n = strftime(out, sizeof(out), "{\"time\":\"%Y-%m-%dT%H:%M:%S", &utc);
	n += (size_t)snprintf(out + n, sizeof(out) - n, ".%03ldZ\",\"level\":\"%s\",\"message\":\"",
			      now.tv_nsec / 1000000, names[level]);
	for (size_t i = 0; i < l.len; i++) {
		if (l.bytes[i] == '"' || l.bytes[i] == '\\')
			out[n++] = '\\';
		out[n++] = l.bytes[i];
	}
	n += (size_t)snprintf(out + n, sizeof(out) - n, "\"}\n");
	fwrite(out, 1, n, stderr);
}

static void line_write_level(enum log_level level, const char *text, size_t len)
{
	if (writes_json)
		line_write_json(level, text, len);
	else
		line_write(prefixes[level], text, len);
}

void log_line(const char *prefix, const char *text)
{
	line_write(prefix, text, strlen(text));
}

void log_lines(enum log_level level, const char *text, size_t lines_max)
{
	const char *end = text + strlen(text), *start, *next;
	size_t skipped = 0, lines = 0;

	while (end > text && end[-1] == '\n')
		end--;
	if (level > current_level || end == text)
		return;
	for (start = end; start > text; start--)
		if (start[-1] == '\n' && ++lines == lines_max)
			break;
	for (const char *p = text; p < start; p++)
		skipped += *p == '\n';
	if (skipped)
		log_print(level, "(%zu lines before this)", skipped);
	for (; start < end; start = next + 1) {
		next = memchr(start, '\n', (size_t)(end - start));
		if (!next)
			next = end;
		line_write_level(level, start, (size_t)(next - start));
	}
}

void log_print(enum log_level level, const char *fmt, ...)
{
	int saved_errno = errno;
	char text[ERR_BYTES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	line_write_level(level, text, strlen(text));
	errno = saved_errno;
}
