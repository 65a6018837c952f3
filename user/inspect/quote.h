/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_QUOTE_H
#define INSPECT_QUOTE_H

/*
 * Text and bytes as repr() writes them: in quotes, with escapes. What is appended is UTF-8 without
 * controls of any kind, so a terminal may have it as it is.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

/*
 * Would str.isprintable() say so? Unassigned code points, which differ between versions of Unicode,
 * count as printable here.
 */
bool quote_is_printable(uint32_t c);

/* A str of len bytes, kind bytes a character in host order. 0 or -ENOMEM. */
int quote_text(struct strbuf *out, const void *text, size_t len, unsigned kind);

/* bytes, with their b in front. 0 or -ENOMEM. */
int quote_bytes(struct strbuf *out, const void *bytes, size_t len);

/* A name: as text, without the quotes around it. 0 or -ENOMEM. */
int quote_name(struct strbuf *out, const void *text, size_t len, unsigned kind);

#endif
