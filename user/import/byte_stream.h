/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IMPORT_BYTE_STREAM_H
#define IMPORT_BYTE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "import/content.h"

/*
 * A part of a content from its first byte to its last, as it is or unpacked, as one zstd frame.
 * Memory: a window of 256 KiB, and for zstd its own window, of 8 MiB at most.
 *
 * Starts as { 0 }; byte_stream_open(), then byte_stream_release() in any case.
 */
struct byte_stream {
	const uint8_t *p, *end;  /* what is in memory of it, not read yet: taken by moving p */
	struct content *content; /* borrowed */
	bool is_zstd;
	bool has_ended; /* nothing comes behind end */
	uint64_t file_at, file_end;
	uint64_t part_bytes; /* from start to end */
	uint64_t end_offset; /* in the part: of end */
	struct ZSTD_DCtx_s *zstd;
	VEC(uint8_t) input; /* compressed */
	size_t input_at;
	VEC(uint8_t) window;
};

#define BYTE_STREAM_TO_END UINT64_MAX /* wherever that is; not of a zstd frame */

/* The bytes from start up to end, which must not be below start. 0 or -ENOMEM. */
int byte_stream_open(struct byte_stream *s, struct content *content, uint64_t start, uint64_t end,
		     bool is_zstd);
void byte_stream_release(struct byte_stream *s);

/* Slow path of byte_stream_fill(). */
int byte_stream_read(struct byte_stream *s, size_t want);

/*
 * Has want bytes at p (at most 2 MiB), or all that are left. 0; -EBADMSG for what is no zstd frame
 * or a file that is shorter than it was; -ENOMEM, or as content_pread(). With a message.
 */
static inline int byte_stream_fill(struct byte_stream *s, size_t want)
{
	return (size_t)(s->end - s->p) >= want || s->has_ended ? 0 : byte_stream_read(s, want);
}

/* Of p, from the start of the part. */
static inline uint64_t byte_stream_offset(const struct byte_stream *s)
{
	return s->end_offset - (uint64_t)(s->end - s->p);
}

#endif
