/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/column.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <zstd.h>

#include "base/varint.h"

/* First byte of a column. */
enum column_encoding {
	COLUMN_CONSTANT = 0, /* varint */
	COLUMN_RUNS = 1,     /* varint runs; column of values; column of lengths - 1 */
	COLUMN_BITS = 2,     /* byte width (1-64); width bits each */
	COLUMN_RICE = 3,     /* byte shift (0-63); Rice codes */
	COLUMN_PLANES = 4,   /* byte planes (1-8); all low bytes, all second bytes, ... */
	COLUMN_ZSTD = 5,     /* byte planes (1-8); varint length; the planes as a zstd frame */
};

#define ZSTD_LEVEL 1      /* FORMAT.md, "Size", has what other levels give */
#define ZSTD_MIN_BYTES 64 /* below, a frame's head of 9 bytes costs more than it gains */
#define RICE_ESCAPE 24    /* this many ones: the whole number follows in 64 bits */

void column_coder_release(struct column_coder *z)
{
	ZSTD_freeCCtx(z->compress);
	ZSTD_freeDCtx(z->decompress);
	vec_release(&z->planes);
	vec_release(&z->packed);
}

int bytes_put_varint(struct bytes *b, uint64_t v)
{
	uint8_t *p;

	if (vec_reserve(b, VARINT_MAX_BYTES) < 0)
		return -ENOMEM;
	p = b->items + b->len;
	varint_put(&p, p + VARINT_MAX_BYTES, v);
	b->len = (size_t)(p - b->items);
	return 0;
}

static unsigned int width_of(uint64_t v)
{
	return v ? 64 - (unsigned int)__builtin_clzll(v) : 0;
}

/* Bits are filled from the low end of each byte. */
struct bit_writer {
	uint8_t *p;
	uint64_t held;
	unsigned int count; /* bits held, < 8 between calls */
};

static void bits_put(struct bit_writer *w, uint64_t v, unsigned int width)
{
	while (width) {
		unsigned int take = width < 32 ? width : 32;

		w->held |= (v & ((UINT64_C(1) << take) - 1)) << w->count;
		w->count += take;
		for (; w->count >= 8; w->count -= 8, w->held >>= 8)
			*w->p++ = (uint8_t)w->held;
		v = take < 64 ? v >> take : 0;
		width -= take;
	}
}

static uint64_t rice_bits(const uint64_t *values, size_t count, unsigned int shift)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t high = values[i] >> shift;

		bits += high < RICE_ESCAPE ? high + 1 + shift : RICE_ESCAPE + 64;
	}
	return bits;
}

/* How a column would be packed bit by bit. */
struct packing {
	uint8_t encoding; /* COLUMN_BITS or COLUMN_RICE */
	uint8_t width;    /* or shift */
	uint64_t bytes;
};

/*
 * The shift is chosen over the widths of the numbers, not the numbers: three quarters of the
 * greatest of a width stands for all of it.
 */
static unsigned int choose_shift(const uint64_t *values, size_t count, unsigned int width)
{
	uint64_t best = UINT64_MAX, of_width[65] = { 0 };
	unsigned int choice = 0;

	for (size_t i = 0; i < count; i++)
		of_width[width_of(values[i])]++;
	for (unsigned int shift = 0; shift < width; shift++) {
		uint64_t bits = 0;

		for (unsigned int i = 0; i <= width; i++) {
			uint64_t typical = i < 2 ? i : UINT64_C(3) << (i - 2);

			bits += of_width[i] * rice_bits(&typical, 1, shift);
		}
		if (bits < best) {
			best = bits;
			choice = shift;
		}
	}
	return choice;
}

static struct packing choose_packing(const uint64_t *values, size_t count, uint64_t max)
{
	unsigned int width = width_of(max), shift = choose_shift(values, count, width);
	uint64_t bits = (uint64_t)width * count, rice = rice_bits(values, count, shift);

	if (rice < bits)
		return (struct packing){ COLUMN_RICE, (uint8_t)shift, 2 + (rice + 7) / 8 };
	return (struct packing){ COLUMN_BITS, (uint8_t)width, 2 + (bits + 7) / 8 };
}

static int encode_packed(struct bytes *out, const uint64_t *values, size_t count,
			 const struct packing *packing)
{
	unsigned int width = packing->width;
	struct bit_writer w = { 0 };

	if (vec_reserve(out, packing->bytes + 8) < 0)
		return -ENOMEM;
	out->items[out->len++] = packing->encoding;
	out->items[out->len++] = packing->width;
	w.p = out->items + out->len;
	for (size_t i = 0; i < count; i++) {
		uint64_t high = values[i] >> width % 64;

		if (packing->encoding == COLUMN_BITS) {
			bits_put(&w, values[i], width);
		} else if (high < RICE_ESCAPE) {
			bits_put(&w, (UINT64_C(1) << high) - 1, (unsigned int)high + 1);
			bits_put(&w, values[i], width);
		} else {
			bits_put(&w, (UINT64_C(1) << RICE_ESCAPE) - 1, RICE_ESCAPE);
			bits_put(&w, values[i], 64);
		}
	}
	if (w.count)
		*w.p++ = (uint8_t)w.held;
	out->len = (size_t)(w.p - out->items);
	return 0;
}

/* Compresses len bytes into z->packed, which then is empty if that gains nothing. */
static int compress(struct column_coder *z, const uint8_t *bytes, size_t len)
{
	size_t bound = ZSTD_compressBound(len), n;

	z->packed.len = 0;
	if (len < ZSTD_MIN_BYTES)
		return 0;
	if (!z->compress) {
		z->compress = ZSTD_createCCtx();
		if (!z->compress)
			return -ENOMEM;
		ZSTD_CCtx_setParameter(z->compress, ZSTD_c_compressionLevel, ZSTD_LEVEL);
	}
	if (vec_reserve(&z->packed, bound) < 0)
		return -ENOMEM;
	n = ZSTD_compress2(z->compress, z->packed.items, bound, bytes, len);
	if (ZSTD_isError(n))
		return -ENOMEM; /* with room for the bound and right parameters nothing else */
	if (n + varint_size(n) < len)
		z->packed.len = n;
	return 0;
}

/* planes * count bytes, after compress(). */
static int encode_planes(struct column_coder *z, struct bytes *out, const uint8_t *bytes,
			 size_t len, unsigned int planes)
{
	const struct bytes *packed = &z->packed;

	if (vec_push(out, packed->len ? COLUMN_ZSTD : COLUMN_PLANES) < 0 ||
	    vec_push(out, (uint8_t)planes) < 0)
		return -ENOMEM;
	if (!packed->len)
		return vec_append(out, bytes, len);
	if (bytes_put_varint(out, packed->len) < 0)
		return -ENOMEM;
	return vec_append(out, packed->items, packed->len);
}

/* Anything but runs. */
static int encode_plain(struct column_coder *z, struct bytes *out, const uint64_t *values,
			size_t count)
{
	unsigned int planes;
	struct packing packing;
	uint64_t max = 0, differ = 0;

	for (size_t i = 0; i < count; i++) {
		max = values[i] > max ? values[i] : max;
		differ |= values[i] ^ values[0];
	}
	if (!differ) {
		if (vec_push(out, COLUMN_CONSTANT) < 0)
			return -ENOMEM;
		return bytes_put_varint(out, max);
	}
	packing = choose_packing(values, count, max);
	planes = (width_of(max) + 7) / 8;
	z->planes.len = 0;
	if (vec_reserve(&z->planes, planes * count) < 0)
		return -ENOMEM;
	for (unsigned int plane = 0; plane < planes; plane++)
		for (size_t i = 0; i < count; i++)
			z->planes.items[plane * count + i] = (uint8_t)(values[i] >> 8 * plane);
	if (compress(z, z->planes.items, planes * count) < 0)
		return -ENOMEM;
	if (!z->packed.len || packing.bytes <= 2 + varint_size(z->packed.len) + z->packed.len)
		return encode_packed(out, values, count, &packing);
	return encode_planes(z, out, z->planes.items, planes * count, planes);
}

static int encode_runs(struct column_coder *z, struct bytes *out, const uint64_t *values,
		       size_t count, size_t runs)
{
	struct numbers heads = { 0 }, lengths = { 0 };
	int r = -ENOMEM;

	if (!vec_reserve(&heads, runs) && !vec_reserve(&lengths, runs)) {
		for (size_t i = 0; i < count; i++) {
			if (i && values[i] == values[i - 1]) {
				lengths.items[lengths.len - 1]++;
				continue;
			}
			heads.items[heads.len++] = values[i];
			lengths.items[lengths.len++] = 0;
		}
		r = vec_push(out, COLUMN_RUNS);
		if (!r)
			r = bytes_put_varint(out, runs);
		if (!r)
			r = encode_plain(z, out, heads.items, runs);
		if (!r)
			r = encode_plain(z, out, lengths.items, runs);
	}
	vec_release(&heads);
	vec_release(&lengths);
	return r;
}

int column_encode(struct column_coder *z, struct bytes *out, const uint64_t *values, size_t count)
{
	size_t runs = count > 0;

	if (!count)
		return 0;
	for (size_t i = 1; i < count; i++)
		runs += values[i] != values[i - 1];
	if (runs > 1 && runs <= count / 8)
		return encode_runs(z, out, values, count, runs);
	return encode_plain(z, out, values, count);
}

int text_encode(struct column_coder *z, struct bytes *out, const uint8_t *text, size_t count)
{
	if (!count)
		return 0;
	if (compress(z, text, count) < 0)
		return -ENOMEM;
	return encode_planes(z, out, text, count, 1);
}

struct bit_reader {
	const uint8_t *p;
	const uint8_t *end;
	uint64_t held;
	unsigned int count; /* bits held */
	bool is_cut;        /* read past the end: zeros came */
};

/* Up to 32 bits. */
static uint64_t bits_get(struct bit_reader *b, unsigned int width)
{
	uint64_t v;

	for (; b->count < width; b->count += 8) {
		if (b->p < b->end)
			b->held |= (uint64_t)*b->p++ << b->count;
		else
			b->is_cut = true;
	}
	v = b->held & ((UINT64_C(1) << width) - 1);
	b->held >>= width;
	b->count -= width;
	return v;
}

static uint64_t bits_get_wide(struct bit_reader *b, unsigned int width)
{
	uint64_t low;

	if (width <= 32)
		return bits_get(b, width);
	low = bits_get(b, 32);
	return low | bits_get(b, width - 32) << 32;
}

static uint64_t rice_get(struct bit_reader *b, unsigned int shift)
{
	unsigned int high = 0;

	while (high < RICE_ESCAPE && bits_get(b, 1))
		high++;
	if (high == RICE_ESCAPE)
		return bits_get_wide(b, 64);
	return (uint64_t)high << shift | bits_get_wide(b, shift);
}

static int decode_bits(const uint8_t **p, const uint8_t *end, bool is_rice, uint64_t max,
		       uint64_t *values, size_t count)
{
	struct bit_reader b = { .end = end };
	unsigned int width;

	if (*p == end)
		return -EBADMSG;
	width = **p;
	b.p = *p + 1;
	if (is_rice ? width > 63 : width < 1 || width > 64)
		return -EBADMSG;
	/* Every number takes a bit at least: no loop of millions over nothing. */
	if (count > (size_t)(end - b.p) * 8)
		return -EBADMSG;
	for (size_t i = 0; i < count; i++) {
		values[i] = is_rice ? rice_get(&b, width) : bits_get_wide(&b, width);
		if (values[i] > max)
			return -EBADMSG;
	}
	if (b.is_cut)
		return -EBADMSG;
	*p = b.p;
	return 0;
}

/*
 * The planes of count numbers behind COLUMN_PLANES or COLUMN_ZSTD: *bytes is then planes * count
 * long, in z or in the input.
 */
static int fetch_planes(struct column_coder *z, const uint8_t **p, const uint8_t *end, bool is_zstd,
			size_t count, unsigned int *planes, const uint8_t **bytes)
{
	const uint8_t *q = *p;
	size_t len, n;
	uint64_t stored;

	if (q == end || *q < 1 || *q > 8)
		return -EBADMSG;
	*planes = *q++;
	len = *planes * count;
	if (!is_zstd) {
		if ((size_t)(end - q) < len)
			return -EBADMSG;
		*bytes = q;
		*p = q + len;
		return 0;
	}
	if (varint_get(&q, end, &stored) < 0 || stored > (size_t)(end - q))
		return -EBADMSG;
	/* A frame of another length is refused before memory is taken for it. */
	if (ZSTD_getFrameContentSize(q, stored) != len)
		return -EBADMSG;
	if (!z->decompress)
		z->decompress = ZSTD_createDCtx();
	z->planes.len = 0;
	if (!z->decompress || vec_reserve(&z->planes, len) < 0)
		return -ENOMEM;
	n = ZSTD_decompressDCtx(z->decompress, z->planes.items, len, q, stored);
	if (ZSTD_isError(n) || n != len)
		return -EBADMSG;
	*bytes = z->planes.items;
	*p = q + stored;
	return 0;
}

static int decode_planes(struct column_coder *z, const uint8_t **p, const uint8_t *end,
			 bool is_zstd, uint64_t max, uint64_t *values, size_t count)
{
	const uint8_t *bytes;
	uint64_t top = 0;
	unsigned int planes;
	int r = fetch_planes(z, p, end, is_zstd, count, &planes, &bytes);

	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++)
		values[i] = bytes[i];
	for (unsigned int plane = 1; plane < planes; plane++)
		for (size_t i = 0; i < count; i++)
			values[i] |= (uint64_t)bytes[plane * count + i] << 8 * plane;
	for (size_t i = 0; i < count; i++)
		top = values[i] > top ? values[i] : top;
	return top > max ? -EBADMSG : 0;
}

static int decode_plain(struct column_coder *z, const uint8_t **p, const uint8_t *end, uint64_t max,
			uint64_t *values, size_t count);

/* Neither of the two columns inside is in runs again: the depth is bounded. */
static int decode_runs(struct column_coder *z, const uint8_t **p, const uint8_t *end, uint64_t max,
		       uint64_t *values, size_t count)
{
	struct numbers pair = { 0 };
	const uint8_t *q = *p;
	size_t at = 0;
	uint64_t runs;
	int r;

	r = varint_get_max(&q, end, count, &runs);
	if (r < 0)
		return r;
	if (vec_reserve(&pair, 2 * runs) < 0)
		return -ENOMEM;
	r = decode_plain(z, &q, end, max, pair.items, runs);
	if (!r)
		r = decode_plain(z, &q, end, count, pair.items + runs, runs);
	for (size_t i = 0; !r && i < runs; i++) {
		uint64_t length = pair.items[runs + i];

		if (length >= count - at) {
			r = -EBADMSG;
			break;
		}
		for (uint64_t stop = at + length + 1; at < stop; at++)
			values[at] = pair.items[i];
	}
	vec_release(&pair);
	if (r || at != count)
		return r ? r : -EBADMSG;
	*p = q;
	return 0;
}

static int decode_plain(struct column_coder *z, const uint8_t **p, const uint8_t *end, uint64_t max,
			uint64_t *values, size_t count)
{
	const uint8_t *q = *p;
	uint64_t v = 0; /* as in varint_get_max() */
	int r;

	if (!count)
		return 0;
	if (q == end)
		return -EBADMSG;
	switch (*q++) {
	case COLUMN_CONSTANT:
		r = varint_get_max(&q, end, max, &v);
		for (size_t i = 0; !r && i < count; i++)
			values[i] = v;
		break;
	case COLUMN_BITS:
		r = decode_bits(&q, end, false, max, values, count);
		break;
	case COLUMN_RICE:
		r = decode_bits(&q, end, true, max, values, count);
		break;
	case COLUMN_PLANES:
	case COLUMN_ZSTD:
		r = decode_planes(z, &q, end, q[-1] == COLUMN_ZSTD, max, values, count);
		break;
	default:
		r = -EBADMSG;
	}
	if (!r)
		*p = q;
	return r;
}

int column_decode(struct column_coder *z, const uint8_t **p, const uint8_t *end, uint64_t max,
		  uint64_t *values, size_t count)
{
	const uint8_t *q = *p;
	int r;

	if (!count || q == end || *q != COLUMN_RUNS)
		return decode_plain(z, p, end, max, values, count);
	q++;
	r = decode_runs(z, &q, end, max, values, count);
	if (!r)
		*p = q;
	return r;
}

int text_decode(struct column_coder *z, const uint8_t **p, const uint8_t *end, size_t count,
		const uint8_t **text)
{
	const uint8_t *q = *p;
	unsigned int planes;
	int r;

	*text = q;
	if (!count)
		return 0;
	if (q == end || (*q != COLUMN_PLANES && *q != COLUMN_ZSTD))
		return -EBADMSG;
	q++;
	r = fetch_planes(z, &q, end, q[-1] == COLUMN_ZSTD, count, &planes, text);
	if (r < 0 || planes != 1)
		return r < 0 ? r : -EBADMSG;
	*p = q;
	return 0;
}
