/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "import/json_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/utf8.h"

#define STRING_BYTES_MAX (1u << 20)
#define NUMBER_BYTES_MAX 64
#define EXACT_DIGITS 15 /* that a double has */
#define ESCAPE_BYTES 12 /* a pair of surrogates */

int json_reader_open(struct json_reader *j, struct content *content)
{
	return byte_stream_open(&j->stream, content, 0, BYTE_STREAM_TO_END, false);
}

void json_reader_release(struct json_reader *j)
{
	byte_stream_release(&j->stream);
	strbuf_release(&j->text);
}

int json_reader_malformed(const struct json_reader *j, const char *what)
{
	return err_set(-EBADMSG, "at byte %llu: %s",
		       (unsigned long long)byte_stream_offset(&j->stream), what);
}

/* At least one byte that is no space is there. 1; 0 at the end. */
static int skip_space(struct json_reader *j)
{
	struct byte_stream *s = &j->stream;
	int r;

	for (;;) {
		r = byte_stream_fill(s, 1);
		if (r < 0 || s->p == s->end)
			return r;
		while (s->p < s->end &&
		       (*s->p == ' ' || *s->p == '\n' || *s->p == '\t' || *s->p == '\r'))
			s->p++;
		if (s->p < s->end)
			return 1;
	}
}

/* --- strings ---------------------------------------------------------------------------------- */

static bool get_unit(const uint8_t *p, uint32_t *unit)
{
	*unit = 0;
	for (int i = 0; i < 4; i++) {
		uint8_t c = p[i] | 0x20; /* lower case, digits as they are */

		if (p[i] >= '0' && p[i] <= '9')
			*unit = *unit << 4 | (uint32_t)(p[i] - '0');
		else if (c >= 'a' && c <= 'f')
			*unit = *unit << 4 | (uint32_t)(c - 'a' + 10);
		else
			return false;
	}
	return true;
}

static void put_utf8(struct strbuf *out, uint32_t c)
{
	if (c < 0x80) {
		strbuf_putc(out, (char)c);
		return;
	}
	if (c < 0x800) {
		strbuf_putc(out, (char)(0xc0 | c >> 6));
	} else {
		if (c < 0x10000) {
			strbuf_putc(out, (char)(0xe0 | c >> 12));
		} else {
			strbuf_putc(out, (char)(0xf0 | c >> 18));
			strbuf_putc(out, (char)(0x80 | (c >> 12 & 0x3f)));
		}
		strbuf_putc(out, (char)(0x80 | (c >> 6 & 0x3f)));
	}
	strbuf_putc(out, (char)(0x80 | (c & 0x3f)));
}

/* Behind `\u`, of which ESCAPE_BYTES are there unless the text ends before. */
static int read_unicode(struct json_reader *j)
{
	struct byte_stream *s = &j->stream;
	uint32_t c, low;

	if (s->end - s->p < 4 || !get_unit(s->p, &c))
		return json_reader_malformed(j, "\\u without four digits");
	s->p += 4;
	if (c >= 0xd800 && c < 0xdc00 && s->end - s->p >= 6 && s->p[0] == '\\' && s->p[1] == 'u' &&
	    get_unit(s->p + 2, &low) && low >= 0xdc00 && low < 0xe000) {
		s->p += 6;
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
	}
	put_utf8(&j->text, c >= 0xd800 && c < 0xe000 ? UTF8_REPLACEMENT : c);
	return 0;
}

/* Behind a backslash. */
static int read_escape(struct json_reader *j)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	struct byte_stream *s = &j->stream;
	const char *at;
	int r = byte_stream_fill(s, ESCAPE_BYTES);

	if (r < 0)
		return r;
	if (s->p == s->end)
		return json_reader_malformed(j, "it ends within a string");
	if (*s->p == 'u') {
		s->p++;
		return read_unicode(j);
	}
	at = *s->p ? strchr(from, *s->p) : NULL;
	if (!at)
		return json_reader_malformed(j, "an unknown escape in a string");
	s->p++;
	return strbuf_putc(&j->text, to[at - from]);
}

/* Behind its quote. */
static int read_string(struct json_reader *j)
{
	struct byte_stream *s = &j->stream;
	int r;

	strbuf_truncate(&j->text, 0);
	for (;;) {
		const uint8_t *at;

		r = byte_stream_fill(s, 1);
		if (r < 0)
			return r;
		for (at = s->p; at < s->end && *at != '"' && *at != '\\' && *at >= 0x20; at++)
			;
		if (j->text.len + (size_t)(at - s->p) > STRING_BYTES_MAX)
			return json_reader_malformed(j, "a string longer than 1 MiB");
		strbuf_append(&j->text, (const char *)s->p, (size_t)(at - s->p));
		s->p = at;
		if (at == s->end && s->has_ended)
			return json_reader_malformed(j, "it ends within a string");
		if (at == s->end)
			continue;
		if (*at < 0x20)
			return json_reader_malformed(j, "a control character in a string");
		s->p++;
		if (*at == '"')
			return strbuf_error(&j->text);
		r = read_escape(j);
		if (r < 0)
			return r;
	}
}

/* --- numbers and words ------------------------------------------------------------------------ */

static bool is_of_number(uint8_t c)
{
	return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

static int read_number(struct json_reader *j)
{
	struct byte_stream *s = &j->stream;
	char text[NUMBER_BYTES_MAX + 1], *end;
	uint64_t whole = 0;
	size_t len = 0;
	bool is_whole = true;
	int r = byte_stream_fill(s, NUMBER_BYTES_MAX + 1);

	if (r < 0)
		return r;
	while (s->p + len < s->end && is_of_number(s->p[len]) && len <= NUMBER_BYTES_MAX) {
		is_whole = is_whole && s->p[len] >= '0' && s->p[len] <= '9';
		if (is_whole && len < EXACT_DIGITS)
			whole = whole * 10 + (uint64_t)(s->p[len] - '0');
		len++;
	}
	if (len > NUMBER_BYTES_MAX)
		return json_reader_malformed(j, "a number longer than 64 characters");
	if (is_whole && len <= EXACT_DIGITS) {
		j->number = (double)whole;
		s->p += len;
		return JSON_NUMBER;
	}
	memcpy(text, s->p, len);
	text[len] = '\0';
	j->number = strtod(text, &end);
	if (*end || !len)
		return json_reader_malformed(j, "no number");
	s->p += len;
	return JSON_NUMBER;
}

static int read_literal(struct json_reader *j)
{
	static const char *const words[] = { "true", "false", "null" };
	struct byte_stream *s = &j->stream;
	int r = byte_stream_fill(s, 5);

	if (r < 0)
		return r;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t len = strlen(words[i]);

		if ((size_t)(s->end - s->p) >= len && !memcmp(s->p, words[i], len)) {
			s->p += len;
			return JSON_LITERAL;
		}
	}
	return json_reader_malformed(j, "no value of JSON");
}

/* --- structure -------------------------------------------------------------------------------- */

static int enter(struct json_reader *j, bool is_object)
{
	if (j->depth == JSON_READER_DEPTH_MAX)
		return json_reader_malformed(j, "more than 64 levels");
	j->stream.p++;
	j->depth++;
	j->is_object = j->is_object << 1 | is_object;
	j->has_items = j->has_key = false;
	return is_object ? JSON_OBJECT : JSON_ARRAY;
}

static int leave(struct json_reader *j)
{
	j->stream.p++;
	j->depth--;
	j->is_object >>= 1;
	j->has_items = true;
	j->has_ended = !j->depth;
	return JSON_END;
}

static int read_value(struct json_reader *j)
{
	uint8_t c = *j->stream.p;
	int r;

	j->has_key = false;
	if (c == '{' || c == '[')
		return enter(j, c == '{');
	j->has_items = true;
	j->has_ended = !j->depth;
	if (c == '"') {
		j->stream.p++;
		r = read_string(j);
		return r ? r : JSON_STRING;
	}
	if (c == '-' || (c >= '0' && c <= '9'))
		return read_number(j);
	return read_literal(j);
}

static int read_key(struct json_reader *j)
{
	int r;

	if (*j->stream.p != '"')
		return json_reader_malformed(j, "no key of an object");
	j->stream.p++;
	r = read_string(j);
	if (!r)
		r = skip_space(j);
	if (r < 0)
		return r;
	if (!r || *j->stream.p != ':')
		return json_reader_malformed(j, "no colon behind a key");
	j->stream.p++;
	j->has_key = true;
	return JSON_KEY;
}

static bool is_in_object(const struct json_reader *j)
{
	return j->depth && j->is_object & 1;
}

int json_reader_next(struct json_reader *j)
{
	int r = skip_space(j);

	if (r < 0)
		return r;
	if (!r && j->has_ended)
		return JSON_END;
	if (!r)
		return json_reader_malformed(j, "unexpected end of file");
	if (j->has_ended)
		return json_reader_malformed(j, "unexpected data after the end");
	if (j->has_key)
		return read_value(j);
	if (j->depth && *j->stream.p == (is_in_object(j) ? '}' : ']'))
		return leave(j);
	if (j->has_items) {
		if (*j->stream.p != ',')
			return json_reader_malformed(j, "no comma between two values");
		j->stream.p++;
		r = skip_space(j);
		if (r <= 0)
			return r < 0 ? r : json_reader_malformed(j, "unexpected end of file");
	}
	return is_in_object(j) ? read_key(j) : read_value(j);
}

int json_reader_skip(struct json_reader *j, int token)
{
	unsigned int depth = j->depth;
	int r = token;

	if (token != JSON_OBJECT && token != JSON_ARRAY)
		return token < 0 ? token : 0;
	while (r >= 0 && j->depth >= depth)
		r = json_reader_next(j);
	return r < 0 ? r : 0;
}
