/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_GZIP_H
#define BASE_GZIP_H

#include <stddef.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/strbuf.h"

/* Compresses to a stream as it goes (RFC 1952). Equal bytes in give equal bytes out: no time. */
struct gzip;

/* The stream is borrowed and must outlive g. 0 or -ENOMEM. */
int gzip_new(FILE *out, struct gzip **g);

/* 0, or -EIO if the stream failed. */
int gzip_write(struct gzip *g, const void *bytes, size_t len);

/* Writes the rest, does not flush the stream. Call once. As gzip_write(). */
int gzip_finish(struct gzip *g);
void gzip_free(struct gzip *g);
DEFINE_CLEANUP(struct gzip *, gzip_free)

/*
 * Appends what was packed, at most max bytes. 0, -EBADMSG (not whole, not gzip, or bytes behind its
 * end), -EFBIG or -ENOMEM; what was appended until then stays.
 */
int gzip_unpack(const void *packed, size_t len, size_t max, struct strbuf *out);

#endif
