/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_ESCAPE_H
#define BASE_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

/*
 * Appends a name that came from a target so that it stays on its line and cannot drive a terminal;
 * what is appended is always UTF-8. Written as \xHH a byte (lower-case digits) are controls
 * (utf8_is_control()), bytes that are not UTF-8, and the ASCII characters in special (may be "").
 *
 * With a backslash in special it can be read back exactly. 0 or -ENOMEM.
 */
int escape_append(struct strbuf *out, const char *bytes, size_t len, const char *special);

/* Appends one byte as \xHH. 0 or -ENOMEM. */
int escape_byte(struct strbuf *out, unsigned char byte);

#endif
