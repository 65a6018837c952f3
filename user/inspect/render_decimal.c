/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/render_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/*
 * decimal.Decimal: PyDecObject of Modules/_decimal/_decimal.c, the same from 3.6 to 3.15, and the
 * class of Lib/_pydecimal.py.
 */

#define DECIMAL 8 /* mpd_t, after PyObject and the hash */
#define WORD_DIGITS 19
#define WORD_END 10000000000000000000ULL /* 10^19: MPD_RADIX of 64-bit builds */
#define WORDS_MAX 432                    /* as many digits as render_full shows, and one word */
#define DIGITS_MAX (WORDS_MAX * WORD_DIGITS)

enum { FLAG_NEGATIVE = 1, FLAG_INFINITE = 2, FLAG_NAN = 4, FLAG_SIGNALING_NAN = 8 };

/* mpd_t of libmpdec. */
struct mpd {
	uint8_t flags, pad[7];
	int64_t exponent, digits, len, alloc; /* len: words, least significant first */
	uint64_t words;
};

struct coefficient {
	uint64_t count; /* of digits, > 0 but of a special value */
	uint64_t given; /* of them, at the start of digits[] */
	bool is_negative;
	const char *special; /* "Infinity", "NaN", "sNaN"; NULL: a number */
	char digits[DIGITS_MAX + 1];
};

static void put_digits(struct render *c, const struct coefficient *co, uint64_t from, uint64_t to)
{
	if (to > from)
		strbuf_append(c->out, co->digits + from, to - from);
}

/* A number of more digits than are shown: the first of them, how many more, and the exponent. */
static void put_cut(struct render *c, const struct coefficient *co, uint64_t shown, int64_t left)
{
	put_digits(c, co, 0, 1);
	if (!co->special)
		strbuf_putc(c->out, '.');
	put_digits(c, co, 1, shown);
	strbuf_appendf(c->out, "...+%" PRIu64, co->count - shown);
	if (!co->special)
		strbuf_appendf(c->out, "E%+" PRId64, left - 1);
}

/* As Decimal.__str__() of Lib/_pydecimal.py. left: digits in front of the point. */
static void put_whole(struct render *c, const struct coefficient *co, int64_t exponent,
		      int64_t left)
{
	const int64_t point = exponent <= 0 && left > -6 ? left : 1;
	const uint64_t whole = point > 0 ? (uint64_t)point : 0;

	if (!whole)
		strbuf_putc(c->out, '0');
	put_digits(c, co, 0, whole);
	if (whole < co->count)
		strbuf_putc(c->out, '.');
	for (int64_t i = point; i < 0; i++)
		strbuf_putc(c->out, '0');
	put_digits(c, co, whole, co->count);
	if (left != point)
		strbuf_appendf(c->out, "E%+" PRId64, left - point);
}

static int put_decimal(struct render *c, const struct coefficient *co, int64_t exponent)
{
	const uint64_t shown = co->given < render_chars(c) ? co->given : render_chars(c);
	int64_t left;

	/* An exponent that no Decimal has: MPD_MAX_EMAX is 999999999999999999. */
	if (co->count > INT64_MAX / 4 || exponent > INT64_MAX / 4 || exponent < -(INT64_MAX / 4))
		return -EBADMSG;
	left = exponent + (int64_t)co->count;
	strbuf_appendf(c->out, "Decimal('%s%s", co->is_negative ? "-" : "",
		       co->special ? co->special : "");
	if (shown < co->count)
		put_cut(c, co, shown, left);
	else if (co->special)
		put_digits(c, co, 0, shown);
	else
		put_whole(c, co, exponent, left);
	strbuf_puts(c->out, "')");
	return 0;
}

/* --- made in C -------------------------------------------------------------------------------- */

/* The most significant words as digits. */
static int get_words(struct render *c, const struct mpd *mpd, struct coefficient *out)
{
	uint64_t words[WORDS_MAX];
	uint64_t count = mpd->len < WORDS_MAX ? (uint64_t)mpd->len : WORDS_MAX;
	char *to = out->digits;
	int e = object_get(c->reader, mpd->words + 8 * ((uint64_t)mpd->len - count), words,
			   8 * count);

	if (e < 0)
		return e;
	for (uint64_t i = count; i--;) {
		uint64_t word = words[i];
		/* Digits of the first word that lie before the number's first. */
		int skipped = i == count - 1 ? (int)(mpd->len * WORD_DIGITS - mpd->digits) : 0;

		if (word >= WORD_END)
			return -EBADMSG;
		for (int at = WORD_DIGITS; at-- > skipped; word /= 10)
			to[at - skipped] = (char)('0' + word % 10);
		if (word)
			return -EBADMSG;
		to += WORD_DIGITS - skipped;
	}
	out->given = (uint64_t)(to - out->digits);
	return 0;
}

int render_decimal(struct render *c, uint64_t object)
{
	struct coefficient co = { 0 };
	struct mpd mpd;
	int e = object_get(c->reader, render_fields(c, object) + DECIMAL, &mpd, sizeof(mpd));

	if (e < 0)
		return e;
	co.is_negative = mpd.flags & FLAG_NEGATIVE;
	if (mpd.flags & FLAG_INFINITE)
		co.special = "Infinity";
	else if (mpd.flags & (FLAG_NAN | FLAG_SIGNALING_NAN))
		co.special = mpd.flags & FLAG_NAN ? "NaN" : "sNaN";
	if (co.special && (mpd.flags & FLAG_INFINITE || !mpd.len))
		return put_decimal(c, &co, 0);
	if (mpd.len <= 0 || mpd.len > INT64_MAX / 8 / WORD_DIGITS || mpd.digits <= 0 ||
	    (mpd.digits - 1) / WORD_DIGITS != mpd.len - 1)
		return -EBADMSG;
	co.count = (uint64_t)mpd.digits;
	e = get_words(c, &mpd, &co);
	return e < 0 ? e : put_decimal(c, &co, co.special ? 0 : mpd.exponent);
}

/* --- made in Python --------------------------------------------------------------------------- */

static int get_digits(struct render *c, uint64_t str, struct coefficient *out)
{
	struct object_text text;
	int e = object_str(c->reader, str, out->digits, DIGITS_MAX, &text);

	if (e < 0)
		return e;
	if (text.kind != 1)
		return -EBADMSG;
	for (uint32_t i = 0; i < text.len; i++)
		if (out->digits[i] < '0' || out->digits[i] > '9')
			return -EBADMSG;
	out->count = text.chars;
	out->given = text.len;
	return 0;
}

/* _exp: an int, or of a special value one of these. */
static int get_exponent(struct render *c, uint64_t object, struct coefficient *co, int64_t *out)
{
	static const struct {
		const char *exponent, *special;
	} kinds[] = { { "F", "Infinity" }, { "n", "NaN" }, { "N", "sNaN" } };
	const struct object_type *type;
	int e = object_type_of(c->reader, object, &type);

	if (e < 0)
		return e;
	if (type->flags & OBJECT_IS_LONG)
		return object_long(c->reader, object, out);
	if (!(type->flags & OBJECT_IS_STR))
		return -EBADMSG;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (object_str_is(c->reader, object, kinds[i].exponent) == 1)
			co->special = kinds[i].special;
	*out = 0;
	return co->special ? 0 : -EBADMSG;
}

int render_python_decimal(struct render *c, uint64_t object)
{
	struct coefficient co = { 0 };
	uint64_t digits, exponent, sign;
	int64_t power, is_negative;
	int e;

	if ((e = object_attribute(c->reader, object, "_int", &digits)) < 0 ||
	    (e = object_attribute(c->reader, object, "_exp", &exponent)) < 0 ||
	    (e = object_attribute(c->reader, object, "_sign", &sign)) < 0 ||
	    (e = object_long(c->reader, sign, &is_negative)) < 0 ||
	    (e = get_exponent(c, exponent, &co, &power)) < 0 ||
	    (e = get_digits(c, digits, &co)) < 0)
		return e;
	co.is_negative = is_negative;
	if (co.special && *co.special == 'I')
		co.count = co.given = 0; /* '0' */
	else if (!co.special && !co.count)
		return -EBADMSG;
	return put_decimal(c, &co, power);
}
