/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/quote.h"

#include <string.h>

#include "base/utf8.h"

/* Categories Cc, Cf, Cs, Co, Zl, Zp, Zs of Unicode 16, but for the space; beyond ASCII. */
static const struct {
	uint32_t first, last;
} unprintable[] = {
	{ 0x7f, 0xa0 },       { 0xad, 0xad },       { 0x600, 0x605 },     { 0x61c, 0x61c },
	{ 0x6dd, 0x6dd },     { 0x70f, 0x70f },     { 0x890, 0x891 },     { 0x8e2, 0x8e2 },
	{ 0x1680, 0x1680 },   { 0x180e, 0x180e },   { 0x2000, 0x200f },   { 0x2028, 0x202f },
	{ 0x205f, 0x206f },   { 0x3000, 0x3000 },   { 0xd800, 0xf8ff },   { 0xfeff, 0xfeff },
	{ 0xfff0, 0xfffb },   { 0x110bd, 0x110bd }, { 0x110cd, 0x110cd }, { 0x13430, 0x1343f },
	{ 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a }, { 0xe0000, 0xe00ff }, { 0xf0000, UINT32_MAX },
};

bool quote_is_printable(uint32_t c)
{
	if (utf8_is_control(c)) /* noncharacters, too, which the table does not have */
		return false;
	if (c < 0x7f)
		return true;
	for (size_t i = 0; i < sizeof(unprintable) / sizeof(*unprintable); i++)
		if (c <= unprintable[i].last)
			return c < unprintable[i].first;
	return true;
}

static void put_utf8(struct strbuf *out, uint32_t c)
{
	char bytes[4];
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	for (size_t i = n; i-- > 1; c >>= 6)
		bytes[i] = (char)(0x80 | (c & 63));
	bytes[0] = (char)(n == 1 ? c : (0xf00 >> n & 0xff) | c);
	strbuf_append(out, bytes, n);
}

static void put_char(struct strbuf *out, uint32_t c, char quote)
{
	if (c == '\\' || (quote && c == (uint32_t)quote))
		strbuf_appendf(out, "\\%c", (char)c);
	else if (c == '\n' || c == '\r' || c == '\t')
		strbuf_puts(out, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
	else if (quote_is_printable(c))
		put_utf8(out, c);
	else
		strbuf_appendf(out, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
}

static uint32_t char_at(const uint8_t *p, unsigned kind)
{
	uint32_t c = 0;

	memcpy(&c, p, kind);
	return c;
}

/* Python's choice: double quotes where the text has single ones and no double ones. */
static char quote_for(const uint8_t *text, size_t len, unsigned kind)
{
	bool has_single = false, has_double = false;

	for (size_t at = 0; at + kind <= len; at += kind) {
		uint32_t c = char_at(text + at, kind);

		has_single |= c == '\'';
		has_double |= c == '"';
	}
	return has_single && !has_double ? '"' : '\'';
}

int quote_name(struct strbuf *out, const void *text, size_t len, unsigned kind)
{
	for (size_t at = 0; at + kind <= len; at += kind)
		put_char(out, char_at((const uint8_t *)text + at, kind), '\0');
	return strbuf_error(out);
}

int quote_text(struct strbuf *out, const void *text, size_t len, unsigned kind)
{
	char quote = quote_for(text, len, kind);

	strbuf_putc(out, quote);
	for (size_t at = 0; at + kind <= len; at += kind)
		put_char(out, char_at((const uint8_t *)text + at, kind), quote);
	return strbuf_putc(out, quote);
}

int quote_bytes(struct strbuf *out, const void *bytes, size_t len)
{
	char quote = quote_for(bytes, len, 1);

	strbuf_putc(out, 'b');
	strbuf_putc(out, quote);
	for (size_t i = 0; i < len; i++) {
		uint8_t c = ((const uint8_t *)bytes)[i];

		if (c < 0x80)
			put_char(out, c, quote);
		else
			strbuf_appendf(out, "\\x%02x", c);
	}
	return strbuf_putc(out, quote);
}
