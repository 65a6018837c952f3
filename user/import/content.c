/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "import/content.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include "base/err.h"
#include "base/file.h"
#include "import/unpacked.h"

#define PART_BYTES (64u << 10)
#define ZSTD_WINDOW_LOG_MAX 27     /* what zstd itself unpacks without being asked to */
#define GZIP_WINDOW_BITS (15 + 16) /* the largest; of gzip and not of zlib */

enum packing { PACKING_NONE, PACKING_GZIP, PACKING_ZSTD };

/* Decoders: what they took of in, what they made in out. 1: a piece ends; 0; -EBADMSG, -ENOMEM. */
struct piece {
	const uint8_t *in;
	size_t in_len, taken;
	uint8_t *out;
	size_t room, made;
};

struct content {
	int fd;
	enum packing packing;
	z_stream gzip;
	ZSTD_DCtx *zstd;
	uint64_t at;                  /* of what was unpacked: where the next byte is */
	uint64_t file_at;             /* behind the input */
	uint64_t file_bytes;          /* of the file as it is */
	const struct profile *filled; /* see content_fills(); NULL: none yet */
	uint64_t tables_before;       /* bytes of its tables before this content */
	uint8_t *input, *skipped;
	size_t input_at, input_len;
	bool is_trusted;
	bool is_between; /* pieces: the file may end here */
	bool has_ended;
};

static enum packing packing_of(const uint8_t *head, size_t len)
{
	if (len >= 3 && head[0] == 0x1f && head[1] == 0x8b && head[2] == Z_DEFLATED)
		return PACKING_GZIP;
	if (len >= 4 && !memcmp(head, "\x28\xb5\x2f\xfd", 4))
		return PACKING_ZSTD;
	/* one that readers skip: pzstd begins with it */
	if (len >= 4 && (head[0] & 0xf0) == 0x50 && !memcmp(head + 1, "\x2a\x4d\x18", 3))
		return PACKING_ZSTD;
	return PACKING_NONE;
}

void content_free(struct content *c)
{
	if (!c)
		return;
	inflateEnd(&c->gzip);
	ZSTD_freeDCtx(c->zstd);
	free(c->input);
	free(c->skipped);
	free(c);
}

static int start_decoder(struct content *c)
{
	c->input = malloc(PART_BYTES);
	c->skipped = malloc(PART_BYTES);
	if (!c->input || !c->skipped)
		return -ENOMEM;
	if (c->packing == PACKING_GZIP)
		return inflateInit2(&c->gzip, GZIP_WINDOW_BITS) == Z_OK ? 0 : -ENOMEM;
	c->zstd = ZSTD_createDCtx();
	if (!c->zstd)
		return -ENOMEM;
	ZSTD_DCtx_setParameter(c->zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX);
	return 0;
}

static ssize_t read_file(int fd, void *to, size_t len, uint64_t offset)
{
	ssize_t n = file_pread(fd, to, len, offset);

	return n < 0 ? err_set((int)n, "%s", strerror((int)-n)) : n;
}

static int file_size(int fd, uint64_t *size)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_set(-errno, "%s", strerror(errno));
	*size = (uint64_t)st.st_size;
	return 0;
}

int content_open(int fd, struct content **out)
{
	_cleanup_(content_freep) struct content *c = calloc(1, sizeof(*c));
	uint8_t head[4];
	ssize_t n = read_file(fd, head, sizeof(head), 0);
	int r = 0;

	if (n < 0)
		return (int)n;
	if (!c)
		return -ENOMEM;
	c->fd = fd;
	c->is_between = true;
	c->packing = packing_of(head, (size_t)n);
	if (c->packing != PACKING_NONE)
		r = start_decoder(c);
	if (!r)
		r = file_size(fd, &c->file_bytes);
	if (r < 0)
		return r;
	*out = take_ptr(c);
	return 0;
}

static uint64_t bytes_of_tables(const struct profile *p)
{
	return profile_bytes(p) - p->samples.cap * sizeof(*p->samples.items);
}

void content_fills(struct content *c, const struct profile *p)
{
	if (c->filled == p)
		return;
	c->filled = p;
	c->tables_before = bytes_of_tables(p);
}

void content_trust(struct content *c)
{
	c->is_trusted = true;
}

bool content_is_packed(const struct content *c)
{
	return c->packing != PACKING_NONE;
}

/* To its start. */
static void rewind_content(struct content *c)
{
	if (c->packing == PACKING_GZIP)
		inflateReset(&c->gzip);
	else
		ZSTD_DCtx_reset(c->zstd, ZSTD_reset_session_only);
	c->at = c->file_at = 0;
	c->input_at = c->input_len = 0;
	c->is_between = true;
	c->has_ended = false;
}

static int wrong(const struct content *c, const char *what)
{
	uint64_t at = c->file_at - (c->input_len - c->input_at);

	return err_set(-EBADMSG, "its %s, at byte %llu of the file: %s",
		       c->packing == PACKING_GZIP ? "gzip" : "zstd", (unsigned long long)at, what);
}

static int unpack_gzip(struct content *c, struct piece *p)
{
	int status;

	if (c->is_between && inflateReset(&c->gzip) != Z_OK)
		return -ENOMEM;
	c->gzip.next_in = (uint8_t *)p->in;
	c->gzip.avail_in = (unsigned int)p->in_len;
	c->gzip.next_out = p->out;
	c->gzip.avail_out = (unsigned int)p->room;
	status = inflate(&c->gzip, Z_NO_FLUSH);
	p->taken = p->in_len - c->gzip.avail_in;
	p->made = p->room - c->gzip.avail_out;
	if (status == Z_MEM_ERROR)
		return -ENOMEM;
	if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
		return wrong(c, c->gzip.msg ? c->gzip.msg : "damaged");
	return status == Z_STREAM_END;
}

static int unpack_zstd(struct content *c, struct piece *p)
{
	ZSTD_inBuffer in = { p->in, p->in_len, 0 };
	ZSTD_outBuffer out = { p->out, p->room, 0 };
	size_t hint = ZSTD_decompressStream(c->zstd, &out, &in);

	p->taken = in.pos;
	p->made = out.pos;
	if (ZSTD_isError(hint))
		return wrong(c, ZSTD_getErrorName(hint));
	return hint == 0;
}

/* More of the file, if what there was is used up. 1; 0: the end, in good order. */
static int refill(struct content *c)
{
	ssize_t n;

	if (c->input_at < c->input_len)
		return 1;
	n = read_file(c->fd, c->input, PART_BYTES, c->file_at);
	if (n < 0)
		return (int)n;
	c->file_at += (uint64_t)n;
	c->input_at = 0;
	c->input_len = (size_t)n;
	if (!n && !c->is_between)
		return wrong(c, "unexpected end of file");
	return n > 0;
}

static uint64_t table_bytes(const struct content *c)
{
	uint64_t bytes = c->filled ? bytes_of_tables(c->filled) : 0;

	return bytes > c->tables_before ? bytes - c->tables_before : 0;
}

int content_check(const struct content *c)
{
	return c->is_trusted ? 0 : unpacked_check(c->file_bytes, c->at, table_bytes(c));
}

int content_check_part(const struct content *c, uint64_t packed, uint64_t unpacked)
{
	return c->is_trusted ? 0 : unpacked_check(packed, unpacked, 0);
}

/* Up to room bytes, at least one; 0: the end. */
static ssize_t unpack(struct content *c, uint8_t *to, size_t room)
{
	struct piece p = { .out = to, .room = room < PART_BYTES ? room : PART_BYTES };
	int r;

	while (!p.made && !c->has_ended) {
		r = refill(c);
		if (r < 0)
			return r;
		c->has_ended = !r;
		if (!r)
			break;
		p.in = c->input + c->input_at;
		p.in_len = c->input_len - c->input_at;
		r = c->packing == PACKING_GZIP ? unpack_gzip(c, &p) : unpack_zstd(c, &p);
		if (r < 0)
			return r;
		c->input_at += p.taken;
		c->is_between = r;
	}
	c->at += p.made;
	r = content_check(c);
	return r < 0 ? r : (ssize_t)p.made;
}

/* Forward to offset, or to the end. */
static int skip_to(struct content *c, uint64_t offset)
{
	if (offset < c->at)
		rewind_content(c);
	while (c->at < offset && !c->has_ended) {
		uint64_t left = offset - c->at;
		ssize_t n = unpack(c, c->skipped, left < PART_BYTES ? (size_t)left : PART_BYTES);

		if (n < 0)
			return (int)n;
	}
	return 0;
}

ssize_t content_pread(struct content *c, void *buf, size_t len, uint64_t offset)
{
	size_t done = 0;
	ssize_t n = 1;
	int r;

	r = content_is_packed(c) ? skip_to(c, offset) : content_check(c);
	if (r < 0)
		return r;
	if (!content_is_packed(c))
		return read_file(c->fd, buf, len, offset);
	for (; done < len && n > 0; done += (size_t)n) {
		n = unpack(c, (uint8_t *)buf + done, len - done);
		if (n < 0)
			return n;
	}
	return (ssize_t)done;
}

int content_size(struct content *c, uint64_t *size)
{
	int r;

	if (!content_is_packed(c))
		return file_size(c->fd, size);
	r = skip_to(c, UINT64_MAX);
	if (!r)
		*size = c->at;
	return r;
}
