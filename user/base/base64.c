/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/base64.h"

#include <stdint.h>

int base64_append(struct strbuf *out, const void *from, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *bytes = from;
	int r = strbuf_reserve(out, (len + 2) / 3 * 4);

	for (size_t i = 0; i < len && !r; i += 3) {
		size_t left = len - i;
		uint32_t group = (uint32_t)bytes[i] << 16 |
				 (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
				 (left > 2 ? bytes[i + 2] : 0);
		char four[4] = { digits[group >> 18], digits[group >> 12 & 63],
				 left > 1 ? digits[group >> 6 & 63] : '=',
				 left > 2 ? digits[group & 63] : '=' };

		r = strbuf_append(out, four, sizeof(four));
	}
	return r;
}
