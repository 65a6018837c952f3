/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "import/byte_stream.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <zstd.h>

#include "base/err.h"

#define WINDOW_BYTES (256u << 10)
#define WINDOW_BYTES_MAX (4u << 20)
#define ZSTD_WINDOW_LOG_MAX 23 /* 8 MiB: what zstd's level 19 uses; CPython writes level 5 */

int byte_stream_open(struct byte_stream *s, struct content *content, uint64_t start, uint64_t end,
		     bool is_zstd)
{
	assert(start <= end);
	*s = (struct byte_stream){
		.content = content,
		.is_zstd = is_zstd,
		.file_at = start,
		.file_end = end,
		.part_bytes = end - start,
	};
	if (vec_reserve(&s->window, WINDOW_BYTES) < 0)
		return -ENOMEM;
	s->p = s->end = s->window.items;
	if (!is_zstd)
		return 0;
	s->zstd = ZSTD_createDCtx();
	if (!s->zstd || vec_reserve(&s->input, WINDOW_BYTES) < 0)
		return -ENOMEM;
	ZSTD_DCtx_setParameter(s->zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX);
	return 0;
}

void byte_stream_release(struct byte_stream *s)
{
	ZSTD_freeDCtx(s->zstd);
	vec_release(&s->input);
	vec_release(&s->window);
	*s = (struct byte_stream){ 0 };
}

/* Up to room bytes of the file: how many; 0 at the end of the part. */
static ssize_t read_file(struct byte_stream *s, uint8_t *to, size_t room)
{
	uint64_t left = s->file_end - s->file_at;
	size_t want = left < room ? (size_t)left : room;
	ssize_t n = content_pread(s->content, to, want, s->file_at);

	if (n < 0)
		return n;
	if ((size_t)n < want && s->file_end != BYTE_STREAM_TO_END)
		return err_set(-EBADMSG, "it became shorter while it was read");
	s->file_at += (uint64_t)n;
	return n;
}

/* Reads more of the compressed bytes, if the last ones were used up. 0 or as read_file(). */
static int refill_input(struct byte_stream *s)
{
	ssize_t n;

	if (s->input_at < s->input.len)
		return 0;
	n = read_file(s, s->input.items, s->input.cap);
	s->input_at = 0;
	s->input.len = n > 0 ? (size_t)n : 0;
	return n < 0 ? (int)n : 0;
}

/* Decompresses up to room bytes: how many, at least 1; 0 where the frame ended. */
static ssize_t decompress(struct byte_stream *s, uint8_t *to, size_t room)
{
	ZSTD_outBuffer out = { to, room, 0 };

	while (!out.pos && !s->has_ended) {
		ZSTD_inBuffer in;
		size_t hint;
		int r = refill_input(s);

		if (r < 0)
			return r;
		in = (ZSTD_inBuffer){ s->input.items, s->input.len, s->input_at };
		hint = ZSTD_decompressStream(s->zstd, &out, &in);
		s->input_at = in.pos;
		if (ZSTD_isError(hint))
			return err_set(-EBADMSG, "its compressed part, before byte %llu: %s",
				       (unsigned long long)s->file_at, ZSTD_getErrorName(hint));
		if (hint && !out.pos && !in.size) /* nothing in, nothing out, not done */
			return err_set(-EBADMSG, "its compressed part ends early, at byte %llu",
				       (unsigned long long)s->file_end);
		s->has_ended = hint == 0;
	}
	if (s->has_ended && (s->input_at < s->input.len || s->file_at < s->file_end))
		return err_set(-EBADMSG, "bytes behind its compressed part, before byte %llu",
			       (unsigned long long)s->file_end);
	return (ssize_t)out.pos;
}

static ssize_t produce(struct byte_stream *s, uint8_t *to, size_t room)
{
	ssize_t n;

	if (s->is_zstd)
		return decompress(s, to, room);
	n = read_file(s, to, room);
	if (n >= 0)
		s->has_ended = s->file_at == s->file_end || (size_t)n < room;
	return n;
}

int byte_stream_read(struct byte_stream *s, size_t want)
{
	size_t kept = (size_t)(s->end - s->p);
	int r;

	assert(want <= WINDOW_BYTES_MAX / 2);
	memmove(s->window.items, s->p, kept);
	s->window.len = kept;
	s->p = s->window.items;
	s->end = s->p + kept;
	if (want > s->window.cap && vec_reserve(&s->window, want) < 0)
		return -ENOMEM;
	s->p = s->window.items;
	while (s->window.len < want && !s->has_ended) {
		ssize_t n =
			produce(s, s->window.items + s->window.len, s->window.cap - s->window.len);

		if (n < 0)
			return (int)n;
		s->window.len += (size_t)n;
		s->end_offset += (uint64_t)n;
		r = s->is_zstd ? content_check_part(s->content, s->part_bytes, s->end_offset) : 0;
		if (r < 0)
			return r;
		s->end = s->p + s->window.len;
	}
	s->end = s->p + s->window.len;
	return 0;
}
