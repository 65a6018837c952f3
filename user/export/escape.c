/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/escape.h"

#include <string.h>

#include "base/utf8.h"

int escape_byte(struct strbuf *out, unsigned char byte)
{
	static const char hex[] = "0123456789abcdef";

	return strbuf_append(out, (char[]){ '\\', 'x', hex[byte >> 4], hex[byte & 15] }, 4);
}

static bool is_hostile(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/* Bytes the next code point takes, and whether they go out as they are. */
static size_t next_plain(const char *bytes, size_t len, const char *special, bool *is_plain)
{
	uint32_t c;
	size_t n = utf8_decode(bytes, len, &c);

	if (c < 0x80)
		*is_plain = !is_hostile(c) && !strchr(special, (int)c);
	else if (c ==
		 UTF8_REPLACEMENT) /* a real one is three bytes, and a broken one never these */
		*is_plain = n == 3 && !memcmp(bytes, "\xef\xbf\xbd", 3);
	else
		*is_plain = !is_hostile(c);
	return n;
}

int escape_append(struct strbuf *out, const char *bytes, size_t len, const char *special)
{
	size_t plain = 0; /* start of the run not yet copied */

	for (size_t i = 0, n; i < len; i += n) {
		bool is_plain;

		n = next_plain(bytes + i, len - i, special, &is_plain);
		if (is_plain)
			continue;
		strbuf_append(out, bytes + plain, i - plain);
		for (size_t k = 0; k < n; k++)
			escape_byte(out, (unsigned char)bytes[i + k]);
		plain = i + n;
	}
	return strbuf_append(out, bytes + plain, len - plain);
}
