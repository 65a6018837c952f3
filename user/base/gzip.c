/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/gzip.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

#define WINDOW_BITS (15 + 16) /* the largest window; 16: a gzip header, zlib.h */
#define MEMORY_LEVEL 8        /* zlib's default: 256 KiB in all */

struct gzip {
	FILE *out;
	z_stream stream;
	unsigned char buffer[16384];
};

int gzip_new(FILE *out, struct gzip **g)
{
	struct gzip *made = calloc(1, sizeof(*made));

	if (!made)
		return -ENOMEM;
	made->out = out;
	if (deflateInit2(&made->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_BITS,
			 MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) {
		free(made);
		return -ENOMEM;
	}
	*g = made;
	return 0;
}

/* Everything that came in goes through, with Z_FINISH also what zlib held back. */
static int pump(struct gzip *g, int flush)
{
	size_t made;

	do {
		g->stream.next_out = g->buffer;
		g->stream.avail_out = sizeof(g->buffer);
		deflate(&g->stream, flush);
		made = sizeof(g->buffer) - g->stream.avail_out;
		if (fwrite(g->buffer, 1, made, g->out) != made)
			return -EIO;
	} while (!g->stream.avail_out);
	return 0;
}

int gzip_write(struct gzip *g, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;
	int r = 0;

	while (len && !r) {
		unsigned int part = len < UINT_MAX ? (unsigned int)len : UINT_MAX;

		g->stream.next_in = (unsigned char *)at;
		g->stream.avail_in = part;
		r = pump(g, Z_NO_FLUSH);
		at += part;
		len -= part;
	}
	return r;
}

int gzip_finish(struct gzip *g)
{
	return pump(g, Z_FINISH);
}

void gzip_free(struct gzip *g)
{
	if (g)
		deflateEnd(&g->stream);
	free(g);
}

static int unpack(z_stream *z, size_t max, struct strbuf *out)
{
	unsigned char part[16384];
	int status = Z_OK, r = 0;

	while (!r && status == Z_OK) {
		size_t made;

		z->next_out = part;
		z->avail_out = sizeof(part);
		status = inflate(z, Z_NO_FLUSH);
		made = sizeof(part) - z->avail_out;
		r = made > max ? -EFBIG : strbuf_append(out, part, made);
		max -= made;
	}
	if (r < 0 || (status == Z_STREAM_END && !z->avail_in))
		return r;
	return status == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
}

int gzip_unpack(const void *packed, size_t len, size_t max, struct strbuf *out)
{
	z_stream z = { .next_in = (unsigned char *)packed, .avail_in = (unsigned int)len };
	int r;

	if (len > UINT_MAX)
		return -EFBIG;
	if (inflateInit2(&z, WINDOW_BITS) != Z_OK)
		return -ENOMEM;
	r = unpack(&z, max, out);
	inflateEnd(&z);
	return r;
}
