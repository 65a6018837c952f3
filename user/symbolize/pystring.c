/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "symbolize/pystring.h"

#include <errno.h>

#define REPLACEMENT 0xfffd
#define ELLIPSIS 0x2026

static char *put_surrogate(char *out, uint32_t c)
{
	static const char digits[] = "0123456789abcdef";

	*out++ = '\\';
	*out++ = 'u';
	for (int shift = 12; shift >= 0; shift -= 4)
		*out++ = digits[c >> shift & 15];
	return out;
}

static char *put(char *out, uint32_t c)
{
	if (c >= 0xd800 && c <= 0xdfff)
		return put_surrogate(out, c);
	if (c > 0x10ffff)
		c = REPLACEMENT;

	if (c < 0x80) {
		*out++ = (char)c;
	} else if (c < 0x800) {
		*out++ = (char)(0xc0 | c >> 6);
		*out++ = (char)(0x80 | (c & 63));
	} else if (c < 0x10000) {
		*out++ = (char)(0xe0 | c >> 12);
		*out++ = (char)(0x80 | (c >> 6 & 63));
		*out++ = (char)(0x80 | (c & 63));
	} else {
		*out++ = (char)(0xf0 | c >> 18);
		*out++ = (char)(0x80 | (c >> 12 & 63));
		*out++ = (char)(0x80 | (c >> 6 & 63));
		*out++ = (char)(0x80 | (c & 63));
	}
	return out;
}

ssize_t pystring_utf8(const struct pystring *s, char *out, size_t out_size)
{
	char *end = out;
	size_t pos;

	if (s->kind != 1 && s->kind != 2 && s->kind != 4)
		return -EINVAL;
	if (s->len > (SIZE_MAX - 4) / 3 || out_size < PYSTRING_UTF8_BYTES(s->len))
		return -ENOBUFS;

	for (pos = 0; s->len - pos >= s->kind; pos += s->kind) {
		uint32_t c = 0;

		for (unsigned i = 0; i < s->kind; i++)
			c |= (uint32_t)s->bytes[pos + i] << 8 * i;
		end = put(end, c);
	}
	if (s->is_cut)
		end = put(end, ELLIPSIS);
	else if (pos < s->len)
		end = put(end, REPLACEMENT);
	*end = '\0';
	return end - out;
}
