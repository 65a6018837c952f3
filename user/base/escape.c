/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/escape.h"

#include <string.h>

#include "base/utf8.h"

int escape_byte(struct strbuf *out, unsigned char byte)
{
	static const char hex[] = "0123456789abcdef";

	return strbuf_append(out, (char[]){ '\\', 'x', hex[byte >> 4], hex[byte & 15] }, 4);
}

int escape_append(struct strbuf *out, const char *bytes, size_t len, const char *special)
{
	size_t plain = 0; /* start of the run not yet copied */

	for (size_t i = 0, n; i < len; i += n) {
		bool is_plain;

		n = utf8_next_plain(bytes + i, len - i, &is_plain);
		if (is_plain && (n > 1 || !strchr(special, bytes[i])))
			continue;
		strbuf_append(out, bytes + plain, i - plain);
		for (size_t k = 0; k < n; k++)
			escape_byte(out, (unsigned char)bytes[i + k]);
		plain = i + n;
	}
	return strbuf_append(out, bytes + plain, len - plain);
}
