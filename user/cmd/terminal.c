/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/terminal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "base/utf8.h"
#include "base/escape.h"

#define DEFAULT_WIDTH 80

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value;
}

/* As setlocale() would choose LC_CTYPE. */
static bool locale_is_utf8(void)
{
	const char *value = is_set("LC_ALL")     ? getenv("LC_ALL")
			    : is_set("LC_CTYPE") ? getenv("LC_CTYPE")
						 : getenv("LANG");

	return value && (strcasestr(value, "utf-8") || strcasestr(value, "utf8"));
}

void terminal_init(struct terminal *t, FILE *out)
{
	const char *term = getenv("TERM");
	struct winsize size = { 0 };

	*t = (struct terminal){ .out = out };
	if (!isatty(fileno(out)))
		return;
	t->width = DEFAULT_WIDTH;
	if (!ioctl(fileno(out), TIOCGWINSZ, &size) && size.ws_col)
		t->width = size.ws_col;
	t->has_colour = !is_set("NO_COLOR") && term && strcmp(term, "dumb");
	t->has_unicode = locale_is_utf8();
}

static size_t columns_by_block(uint32_t c)
{
	static const struct {
		uint32_t first, last;
		size_t columns;
	} blocks[] = {
		{ 0x300, 0x36f, 0 },     { 0x1100, 0x115f, 2 },   { 0x200b, 0x200d, 0 },
		{ 0x20d0, 0x20ff, 0 },   { 0x2e80, 0xa4cf, 2 },   { 0xac00, 0xd7a3, 2 },
		{ 0xf900, 0xfaff, 2 },   { 0xfe00, 0xfe0f, 0 },   { 0xfe20, 0xfe2f, 0 },
		{ 0xfe30, 0xfe6f, 2 },   { 0xfeff, 0xfeff, 0 },   { 0xff00, 0xff60, 2 },
		{ 0xffe0, 0xffe6, 2 },   { 0x1f300, 0x1f64f, 2 }, { 0x1f900, 0x1f9ff, 2 },
		{ 0x20000, 0x3fffd, 2 }, { 0xe0000, 0xe0fff, 0 },
	};

	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++)
		if (c >= blocks[i].first && c <= blocks[i].last)
			return blocks[i].columns;
	return 1;
}

/* What has no width there is no character to a terminal, and is drawn as U+FFFD. */
size_t code_point_columns(uint32_t c)
{
	int columns;

	if (c >= ' ' && c <= '~') /* most of all text */
		return 1;
	columns = MB_CUR_MAX > 1 ? wcwidth((wchar_t)c) : (int)columns_by_block(c);
	return columns < 0 ? 1 : (size_t)columns;
}

/* Bytes of text that fit into `room` columns; *used: the columns they take. */
static size_t fitting(const char *text, size_t len, size_t room, size_t *used)
{
	size_t i = 0;

	*used = 0;
	while (i < len) {
		uint32_t c;
		size_t n = utf8_decode(text + i, len - i, &c), columns = code_point_columns(c);

		if (*used + columns > room)
			break;
		*used += columns;
		i += n;
	}
	return i;
}

size_t text_columns(const char *text, size_t len)
{
	size_t columns;

	fitting(text, len, SIZE_MAX, &columns);
	return columns;
}

size_t foreign_columns(const char *text, size_t len)
{
	_cleanup_(strbuf_releasep) struct strbuf escaped = STRBUF_INIT;

	if (escape_append(&escaped, text, len, "") < 0)
		return 0; /* only for layout: whoever prints it reports the error */
	return text_columns(strbuf_str(&escaped), escaped.len);
}

size_t line_room(const struct line *l)
{
	return l->t->width ? l->t->width - l->column : SIZE_MAX;
}

/* text: UTF-8 without controls. */
static void put(struct line *l, enum style style, const char *text, size_t len)
{
	static const char *const codes[] = {
		[STYLE_BOLD] = "\033[1m",  [STYLE_DIM] = "\033[2m",   [STYLE_HOT] = "\033[31m",
		[STYLE_WARM] = "\033[33m", [STYLE_COOL] = "\033[32m",
	};
	bool is_styled = style != STYLE_PLAIN && l->t->has_colour && !l->t->keeps_styles;
	size_t columns;

	len = fitting(text, len, line_room(l), &columns);
	if (!len)
		return;
	if (l->t->keeps_styles && style != STYLE_PLAIN &&
	    vec_push(&l->spans, ((struct line_span){ l->text.len, len, style })) < 0)
		l->text.error = -ENOMEM;
	if (is_styled)
		strbuf_puts(&l->text, codes[style]);
	strbuf_append(&l->text, text, len);
	if (is_styled)
		strbuf_puts(&l->text, "\033[0m");
	l->column += columns;
}

void line_put(struct line *l, enum style style, const char *text)
{
	line_put_foreign(l, style, text, strlen(text));
}

void line_putf(struct line *l, enum style style, const char *fmt, ...)
{
	char text[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	line_put(l, style, text);
}

void line_put_foreign(struct line *l, enum style style, const char *text, size_t len)
{
	_cleanup_(strbuf_releasep) struct strbuf escaped = STRBUF_INIT;

	if (escape_append(&escaped, text, len, "") < 0)
		l->text.error = -ENOMEM; /* line_end() tells */
	else
		put(l, style, strbuf_str(&escaped), escaped.len);
}

#define CUT ".."
#define CUT_COLUMNS 2

/* The bytes to leave out so that the rest takes no more than these columns. */
static size_t head_to_cut(const char *text, size_t len, size_t columns)
{
	size_t skip = 0;

	for (const char *at = text; (at = memchr(at, '/', len - (size_t)(at - text))); at++)
		if (text_columns(at, len - (size_t)(at - text)) <= columns)
			return (size_t)(at - text);
	while (skip < len && text_columns(text + skip, len - skip) > columns)
		do
			skip++;
		while (skip < len && ((unsigned char)text[skip] & 0xc0) == 0x80);
	return skip;
}

void line_put_tail(struct line *l, enum style style, const char *text, size_t len,
		   const char *suffix, size_t columns)
{
	_cleanup_(strbuf_releasep) struct strbuf escaped = STRBUF_INIT;
	size_t suffix_columns = text_columns(suffix, strlen(suffix)), skip;

	if (escape_append(&escaped, text, len, "") < 0) {
		l->text.error = -ENOMEM; /* line_end() tells */
		return;
	}
	columns -= columns < suffix_columns ? columns : suffix_columns;
	if (text_columns(strbuf_str(&escaped), escaped.len) <= columns) {
		put(l, style, strbuf_str(&escaped), escaped.len);
	} else if (columns > CUT_COLUMNS) {
		skip = head_to_cut(escaped.bytes, escaped.len, columns - CUT_COLUMNS);
		line_put(l, style, CUT);
		put(l, style, escaped.bytes + skip, escaped.len - skip);
	}
	line_put(l, style, suffix);
}

void line_pad(struct line *l, size_t column)
{
	while (l->column < column && (!l->t->width || l->column < l->t->width))
		line_put(l, STYLE_PLAIN, " ");
}

int line_end(struct line *l)
{
	int r;

	while (l->text.len && l->text.bytes[l->text.len - 1] == ' ')
		strbuf_truncate(&l->text, l->text.len - 1);
	r = strbuf_putc(&l->text, '\n');
	if (r < 0)
		return r;
	fwrite(l->text.bytes, 1, l->text.len, l->t->out);
	line_clear(l);
	return 0;
}

void line_clear(struct line *l)
{
	strbuf_truncate(&l->text, 0);
	l->spans.len = 0;
	l->column = 0;
}

void line_release(struct line *l)
{
	strbuf_release(&l->text);
	vec_release(&l->spans);
}
