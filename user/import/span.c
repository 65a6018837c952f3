/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "import/span.h"

#include <string.h>

bool span_number(struct span s, uint64_t max, uint64_t *out)
{
	uint64_t value = 0;

	for (size_t i = 0; i < s.len; i++) {
		uint64_t digit = (uint64_t)(s.bytes[i] - '0');

		if (!span_is_digit(s.bytes[i]) || digit > max || value > (max - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*out = value;
	return s.len > 0;
}

static int hex_value(char c)
{
	if (span_is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool span_hex(struct span s, uint64_t *out)
{
	uint64_t value = 0;

	if (!s.len || s.len > 16)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		int digit = hex_value(s.bytes[i]);

		if (digit < 0)
			return false;
		value = value << 4 | (uint64_t)digit;
	}
	*out = value;
	return true;
}

bool span_is(struct span s, const char *text)
{
	return s.len == strlen(text) && !memcmp(s.bytes, text, s.len);
}

bool span_ends_in(struct span s, const char *suffix)
{
	size_t len = strlen(suffix);

	return s.len >= len && !memcmp(s.bytes + s.len - len, suffix, len);
}

bool span_take_prefix(struct span *s, const char *prefix)
{
	size_t len = strlen(prefix);

	if (s->len < len || memcmp(s->bytes, prefix, len))
		return false;
	*s = (struct span){ s->bytes + len, s->len - len };
	return true;
}

bool span_take_until(struct span *s, const char *separator, struct span *before)
{
	const char *at = memmem(s->bytes, s->len, separator, strlen(separator));

	if (!at)
		return false;
	*before = (struct span){ s->bytes, (size_t)(at - s->bytes) };
	*s = (struct span){ at + strlen(separator), s->len - before->len - strlen(separator) };
	return true;
}

bool span_take_last(struct span *s, char separator, struct span *behind)
{
	const char *at = s->len ? memrchr(s->bytes, separator, s->len) : NULL;

	if (!at)
		return false;
	*behind = (struct span){ at + 1, (size_t)(s->bytes + s->len - at) - 1 };
	s->len = (size_t)(at - s->bytes);
	return true;
}

bool span_split_place(struct span text, struct span *head, struct span *tail)
{
	if (!text.len || text.bytes[text.len - 1] != ')')
		return false;
	for (size_t i = text.len - 1; i >= 2; i--) {
		if (text.bytes[i - 2] != ' ' || text.bytes[i - 1] != '(')
			continue;
		*head = (struct span){ text.bytes, i - 2 };
		*tail = (struct span){ text.bytes + i, text.len - 1 - i };
		return true;
	}
	return false;
}

bool span_take_line(struct span *place, uint32_t *line)
{
	struct span file = *place, digits;
	uint64_t number;

	if (!span_take_last(&file, ':', &digits) || !span_number(digits, UINT32_MAX, &number))
		return false;
	*place = file;
	*line = (uint32_t)number;
	return true;
}

bool span_take_marked_line(struct span *place, uint32_t *line, bool *is_approximate)
{
	struct span file = *place, digits;
	uint64_t number;
	bool is_marked;

	if (!span_take_last(&file, ':', &digits))
		return false;
	is_marked = span_take_prefix(&digits, "~");
	if (!span_number(digits, UINT32_MAX, &number))
		return false;
	*place = file;
	*line = (uint32_t)number;
	*is_approximate = is_marked;
	return true;
}

/* The byte that an escape at the start of s stands for, or -1. */
static int escaped_byte(struct span s)
{
	int high, low;

	if (s.len < 4 || s.bytes[0] != '\\' || s.bytes[1] != 'x')
		return -1;
	high = hex_value(s.bytes[2]);
	low = hex_value(s.bytes[3]);
	return high < 0 || low < 0 ? -1 : high << 4 | low;
}

int span_unescape(struct span s, struct strbuf *out)
{
	const char *end = s.bytes + s.len, *plain = s.bytes, *at = s.bytes;

	while ((at = memchr(at, '\\', (size_t)(end - at)))) {
		int byte = escaped_byte((struct span){ at, (size_t)(end - at) });

		if (byte < 0) {
			at++;
			continue;
		}
		strbuf_append(out, plain, (size_t)(at - plain));
		strbuf_putc(out, (char)byte);
		at += 4;
		plain = at;
	}
	return strbuf_append(out, plain, (size_t)(end - plain));
}
