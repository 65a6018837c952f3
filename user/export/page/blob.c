/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/page/blob.h"

#include <errno.h>
#include <string.h>

#include "base/varint.h"

#define DEFLATE_LEVEL 4 /* 6 takes twice the time for 4 % less, on a page of a million nodes */
#define GROUPS 4096     /* of base64, encoded at a time */

int blob_init(struct blob *b, FILE *out)
{
	*b = (struct blob){ .out = out };
	if (deflateInit2(&b->z, DEFLATE_LEVEL, Z_DEFLATED, MAX_WBITS, MAX_MEM_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	return 0;
}

static void encode_group(const uint8_t *in, char *out)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	out[0] = letters[in[0] >> 2];
	out[1] = letters[(in[0] & 3) << 4 | in[1] >> 4];
	out[2] = letters[(in[1] & 15) << 2 | in[2] >> 6];
	out[3] = letters[in[2] & 63];
}

static void put_base64(struct blob *b, const uint8_t *bytes, size_t len)
{
	char text[4 * GROUPS];
	size_t n = 0;

	while (len) {
		if (!b->tail_len && len >= 3) {
			encode_group(bytes, text + n);
			bytes += 3;
			len -= 3;
			n += 4;
		} else {
			b->tail[b->tail_len++] = *bytes++;
			len--;
			if (b->tail_len == 3) {
				encode_group(b->tail, text + n);
				b->tail_len = 0;
				n += 4;
			}
		}
		if (n == sizeof(text)) {
			fwrite(text, 1, n, b->out);
			n = 0;
		}
	}
	fwrite(text, 1, n, b->out);
}

static void put_last_group(struct blob *b)
{
	uint8_t group[3] = { 0 };
	char text[4];

	if (!b->tail_len)
		return;
	memcpy(group, b->tail, b->tail_len);
	encode_group(group, text);
	memset(text + b->tail_len + 1, '=', 3 - b->tail_len);
	fwrite(text, 1, sizeof(text), b->out);
}

static void deflate_pending(struct blob *b, int flush)
{
	uint8_t packed[3 * GROUPS];

	b->z.next_in = b->pending;
	b->z.avail_in = (uInt)b->pending_len;
	do {
		b->z.next_out = packed;
		b->z.avail_out = sizeof(packed);
		deflate(&b->z, flush); /* cannot fail: state and room are ours */
		put_base64(b, packed, sizeof(packed) - b->z.avail_out);
	} while (!b->z.avail_out);
	b->pending_len = 0;
}

void blob_number(struct blob *b, uint64_t v)
{
	uint8_t *p = b->pending + b->pending_len;

	if (varint_put(&p, b->pending + sizeof(b->pending), v) < 0) {
		deflate_pending(b, Z_NO_FLUSH);
		p = b->pending;
		varint_put(&p, b->pending + sizeof(b->pending), v);
	}
	b->pending_len = (size_t)(p - b->pending);
}

void blob_bytes(struct blob *b, const void *bytes, size_t len)
{
	const uint8_t *from = bytes;

	while (len) {
		size_t room = sizeof(b->pending) - b->pending_len;
		size_t n = len < room ? len : room;

		memcpy(b->pending + b->pending_len, from, n);
		b->pending_len += n;
		from += n;
		len -= n;
		if (b->pending_len == sizeof(b->pending))
			deflate_pending(b, Z_NO_FLUSH);
	}
}

void blob_finish(struct blob *b)
{
	deflate_pending(b, Z_FINISH);
	put_last_group(b);
	blob_release(b);
}

void blob_release(struct blob *b)
{
	deflateEnd(&b->z);
}
