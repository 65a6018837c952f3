/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_ESCAPE_H
#define EXPORT_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

/*
 * Appends a name that came from a target so that it stays on its line and cannot drive a terminal;
 * what is appended is always UTF-8. Written as \xHH a byte (lower-case digits) are:
 *
 *	control characters: below U+0020, U+007F to U+009F
 *	U+2028 and U+2029, which some readers take for line ends
 *	controls of the writing direction: U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to
 *U+2069 bytes that are not UTF-8 the ASCII characters in special (may be "")
 *
 * With a backslash in special it can be read back exactly. 0 or -ENOMEM.
 */
int escape_append(struct strbuf *out, const char *bytes, size_t len, const char *special);

/* Appends one byte as \xHH. 0 or -ENOMEM. */
int escape_byte(struct strbuf *out, unsigned char byte);

#endif
