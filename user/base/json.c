/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/json.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/utf8.h"

void json_init(struct json *j, FILE *out)
{
	*j = (struct json){ .out = out };
}

int json_finish(struct json *j)
{
	assert(j->depth == 0 && !j->has_key);
	return ferror(j->out) ? err_set(-EIO, "write JSON: the stream failed") : 0;
}

static void put(struct json *j, const char *bytes, size_t len)
{
	fwrite_unlocked(bytes, 1, len, j->out);
}

static void put_char(struct json *j, char c)
{
	putc_unlocked(c, j->out);
}

static void new_line_in_lines(struct json *j)
{
	if (j->in_lines && j->depth == j->lines_depth)
		put_char(j, '\n');
}

/* Every value starts here: the comma, and the rule that an object's value follows a key. */
static void before_value(struct json *j)
{
	assert(j->depth == 0 || !(j->is_object & 1) || j->has_key);
	if (!j->has_key) {
		if (j->has_items)
			put_char(j, ',');
		new_line_in_lines(j);
	}
	j->has_key = false;
	j->has_items = true;
}

static void begin(struct json *j, char bracket, bool is_object)
{
	before_value(j);
	assert(j->depth < JSON_MAX_DEPTH);
	put_char(j, bracket);
	j->depth++;
	j->is_object = j->is_object << 1 | is_object;
	j->has_items = false;
}

void json_object(struct json *j)
{
	begin(j, '{', true);
}

void json_array(struct json *j)
{
	begin(j, '[', false);
}

void json_array_lines(struct json *j)
{
	assert(!j->in_lines);
	begin(j, '[', false);
	j->in_lines = true;
	j->lines_depth = j->depth;
}

void json_end(struct json *j)
{
	bool is_object = j->is_object & 1;

	assert(j->depth > 0 && !j->has_key);
	if (j->has_items)
		new_line_in_lines(j);
	if (j->in_lines && j->depth == j->lines_depth)
		j->in_lines = false;
	put_char(j, is_object ? '}' : ']');
	j->is_object >>= 1;
	j->depth--;
	j->has_items = true; /* what was closed is an item of the level around it */
}

/* True for bytes that go out as they are, whatever follows them. */
static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\' && c != '<';
}

static void put_escape(struct json *j, uint32_t code_point)
{
	char text[16];
	int n;

	switch (code_point) {
	case '"':
		put(j, "\\\"", 2);
		return;
	case '\\':
		put(j, "\\\\", 2);
		return;
	case '\n':
		put(j, "\\n", 2);
		return;
	case '\t':
		put(j, "\\t", 2);
		return;
	case '\r':
		put(j, "\\r", 2);
		return;
	}
	if (code_point < 0x10000)
		n = snprintf(text, sizeof(text), "\\u%04x", code_point);
	else
		n = snprintf(text, sizeof(text), "\\u%04x\\u%04x", 0xd7c0 + (code_point >> 10),
			     0xdc00 | (code_point & 0x3ff));
	put(j, text, (size_t)n);
}

static void put_quoted(struct json *j, const char *s, size_t len)
{
	size_t i = 0;

	put_char(j, '"');
	while (i < len) {
		uint32_t c;
		size_t n = 0;

		while (i + n < len && is_plain(s[i + n]))
			n++;
		put(j, s + i, n);
		i += n;
		if (i == len)
			break;

		n = utf8_decode(s + i, len - i, &c);
		if (c == UTF8_REPLACEMENT)
			put(j, "\xef\xbf\xbd", 3);
		else if (c == '<' ? i + 1 < len && (s[i + 1] == '/' || s[i + 1] == '!')
				  : c < 0x7f || utf8_is_control(c))
			put_escape(j, c);
		else
			put(j, s + i, n);
		i += n;
	}
	put_char(j, '"');
}

void json_key(struct json *j, const char *key)
{
	assert(j->depth > 0 && (j->is_object & 1) && !j->has_key);
	if (j->has_items)
		put_char(j, ',');
	put_quoted(j, key, strlen(key));
	put_char(j, ':');
	j->has_key = true;
}

void json_string(struct json *j, const char *s)
{
	json_string_len(j, s, strlen(s));
}

void json_string_len(struct json *j, const char *s, size_t len)
{
	before_value(j);
	put_quoted(j, s, len);
}

static void put_u64(struct json *j, uint64_t v)
{
	char digits[20];
	size_t n = sizeof(digits);

	do
		digits[--n] = '0' + (char)(v % 10);
	while (v /= 10);
	put(j, digits + n, sizeof(digits) - n);
}

void json_u64(struct json *j, uint64_t v)
{
	before_value(j);
	put_u64(j, v);
}

void json_i64(struct json *j, int64_t v)
{
	before_value(j);
	if (v < 0)
		put_char(j, '-');
	put_u64(j, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void json_bool(struct json *j, bool v)
{
	before_value(j);
	put(j, v ? "true" : "false", v ? 4 : 5);
}

void json_null(struct json *j)
{
	before_value(j);
	put(j, "null", 4);
}

void json_written(struct json *j, const char *text, size_t len)
{
	before_value(j);
	put(j, text, len);
}

void json_double(struct json *j, double v)
{
	char text[32];
	int n = 0;

	if (!isfinite(v)) {
		json_null(j);
		return;
	}
	if (fabs(v) < 1e15 && v == (double)(int64_t)v && (v != 0 || !signbit(v))) {
		json_i64(j, (int64_t)v); /* most are, and this is twenty times as fast */
		return;
	}
	before_value(j);
	for (int digits = 15; digits <= 17; digits++) { /* 17 always suffice for IEEE 754 */
		n = snprintf(text, sizeof(text), "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	put(j, text, n);
}

void json_float(struct json *j, float v)
{
	char text[32];
	int n;

	if (!isfinite(v)) {
		json_null(j);
		return;
	}
	n = snprintf(text, sizeof(text), "%.6g", (double)v);
	if (strchr(text, '+')) { /* 1.23e+06 is longer than the number itself */
		json_double(j, strtod(text, NULL));
		return;
	}
	before_value(j);
	put(j, text, n);
}

void json_key_string(struct json *j, const char *key, const char *s)
{
	json_key(j, key);
	if (s)
		json_string(j, s);
	else
		json_null(j);
}

void json_key_u64(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	json_u64(j, v);
}

void json_key_double(struct json *j, const char *key, double v)
{
	json_key(j, key);
	json_double(j, v);
}

void json_key_time(struct json *j, const char *key, uint64_t ns)
{
	time_t seconds = (time_t)(ns / NS_PER_SECOND);
	char text[32] = "";
	struct tm tm;

	if (ns && gmtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	json_key_string(j, key, *text ? text : NULL);
}
