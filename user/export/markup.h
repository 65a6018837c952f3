/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_MARKUP_H
#define EXPORT_MARKUP_H

#include <stddef.h>

#include "base/strbuf.h"

/*
 * Text within XML and HTML. Appends it with &, <, > and " as entities: for UTF-8 without controls,
 * between tags and in attributes that stand in double quotes. 0 or -ENOMEM.
 */
int markup_append(struct strbuf *out, const char *bytes, size_t len);

/* The same of foreign bytes: escape_append() comes before. */
int markup_foreign(struct strbuf *out, const char *bytes, size_t len);

#endif
