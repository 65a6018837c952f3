/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stddef.h>

#include "base/strbuf.h"

/* Appends bytes as base64 (RFC 4648, with padding). 0 or -ENOMEM. */
int base64_append(struct strbuf *out, const void *from, size_t len);

#endif
