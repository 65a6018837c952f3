/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define UTF8_REPLACEMENT 0xfffd

/*
 * Decodes the code point at bytes; len must be at least 1. Returns the bytes it took (1 to 4).
 *
 * Anything that is not UTF-8 (overlong forms, surrogates, beyond U+10FFFF, cut sequences) gives
 * UTF8_REPLACEMENT once per maximal valid prefix, as CPython's errors="replace" does (Unicode 15,
 * section 3.9, table 3-8). A real U+FFFD takes 3 bytes and starts with 0xef, 0xbf, 0xbd.
 */
static inline size_t utf8_decode(const char *bytes, size_t len, uint32_t *code_point)
{
	const unsigned char *p = (const unsigned char *)bytes;
	unsigned char low = 0x80, high = 0xbf; /* of the second byte: table 3-7 */
	size_t want;
	uint32_t c;

	*code_point = UTF8_REPLACEMENT;
	if (p[0] < 0x80) {
		*code_point = p[0];
		return 1;
	}
	if (p[0] >= 0xc2 && p[0] <= 0xdf) {
		want = 2;
		c = p[0] & 0x1f;
	} else if (p[0] >= 0xe0 && p[0] <= 0xef) {
		want = 3;
		c = p[0] & 0x0f;
		low = p[0] == 0xe0 ? 0xa0 : low;
		high = p[0] == 0xed ? 0x9f : high;
	} else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
		want = 4;
		c = p[0] & 0x07;
		low = p[0] == 0xf0 ? 0x90 : low;
		high = p[0] == 0xf4 ? 0x8f : high;
	} else {
		return 1;
	}

	for (size_t i = 1; i < want; i++) {
		if (i >= len || p[i] < low || p[i] > high)
			return i;
		c = c << 6 | (p[i] & 0x3f);
		low = 0x80;
		high = 0xbf;
	}
	*code_point = c;
	return want;
}

/*
 * Copies as many whole characters as fit into room bytes; what is none, and NUL, becomes U+FFFD.
 * Returns how many bytes were written, with no NUL behind them.
 */
static inline size_t utf8_copy(const char *bytes, size_t len, char *out, size_t room)
{
	static const char replacement[] = "\xef\xbf\xbd";
	size_t written = 0;

	for (size_t i = 0, size; i < len; i += size) {
		const char *from = bytes + i;
		size_t n;
		uint32_t c;

		size = n = utf8_decode(from, len - i, &c);
		if (!c || c == UTF8_REPLACEMENT) {
			from = replacement;
			n = sizeof(replacement) - 1;
		}
		if (n > room - written)
			break;
		memcpy(out + written, from, n);
		written += n;
	}
	return written;
}

/*
 * Code points that could drive a terminal, make a line look like another, or break a reader:
 * controls (below U+0020, U+007F to U+009F), line ends (U+2028, U+2029), controls of the writing
 * direction (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069), the byte order mark
 * (U+FEFF) and noncharacters (U+FDD0 to U+FDEF, the last two of each plane).
 */
static inline bool utf8_is_control(uint32_t c)
{
	if (c < 0xa0)
		return c < 0x20 || c >= 0x7f;
	return c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069) || c == 0xfeff || (c >= 0xfdd0 && c <= 0xfdef) ||
	       (c & 0xfffe) == 0xfffe;
}

/*
 * The bytes that the code point at bytes takes (len at least 1), and whether a terminal may have
 * them as they are: they are UTF-8 and no control.
 */
static inline size_t utf8_next_plain(const char *bytes, size_t len, bool *is_plain)
{
	uint32_t c;
	size_t n = utf8_decode(bytes, len, &c);

	/* A real U+FFFD is three bytes, and what is broken never these. */
	*is_plain = c == UTF8_REPLACEMENT ? n == 3 && !memcmp(bytes, "\xef\xbf\xbd", 3)
					  : !utf8_is_control(c);
	return n;
}

#endif
