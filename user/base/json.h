/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Writes one JSON value to a stream as it goes; commas are placed by the writer. Names of targets
 * cannot drive a terminal that shows the output: all that utf8_is_control() names is escaped, bytes
 * that are not UTF-8 become U+FFFD, and `</` and `<!` become `\u003c/`, `\u003c!`, so the text may
 * stand inside an HTML script element. Other UTF-8 passes through.
 *
 *	json_init(&j, stream);
 *	json_object(&j);
 *	json_key(&j, "samples");
 *	json_u64(&j, 12);
 *	json_end(&j);
 *	r = json_finish(&j);
 *
 * Wrong nesting (a value without key in an object, an end too many) is our own bug: assert().
 */
#define JSON_MAX_DEPTH 64

struct json {
	FILE *out;
	uint64_t is_object; /* bit per level, the innermost lowest */
	unsigned int depth;
	bool has_items; /* the innermost level has one */
	bool has_key;   /* a key awaits its value */
	bool in_lines;  /* see json_array_lines() */
	unsigned int lines_depth;
};

/* The stream is borrowed and must outlive j. */
void json_init(struct json *j, FILE *out);

/* 0, or -EIO if the stream failed at any time; does not flush it. All levels must be closed. */
int json_finish(struct json *j);

void json_object(struct json *j);
void json_array(struct json *j);

/* An array with each element on a line of its own, so that readers can stream. Do not nest them. */
void json_array_lines(struct json *j);

/* Closes the innermost object or array. */
void json_end(struct json *j);

void json_key(struct json *j, const char *key);
void json_string(struct json *j, const char *s);
void json_string_len(struct json *j, const char *s, size_t len);
void json_u64(struct json *j, uint64_t v);
void json_i64(struct json *j, int64_t v);
void json_bool(struct json *j, bool v);
void json_null(struct json *j);

/* A value that is JSON already. */
void json_written(struct json *j, const char *text, size_t len);

/* The shortest digits that read back as v; null for NaN and infinities, which JSON lacks. */
void json_double(struct json *j, double v);

/* Keys with their value, null where it is not known: NULL, NaN. */
void json_key_string(struct json *j, const char *key, const char *s);
void json_key_u64(struct json *j, const char *key, uint64_t v);
void json_key_double(struct json *j, const char *key, double v);

/* "2026-01-31T12:00:00Z" of ns since 1970; null for 0. */
void json_key_time(struct json *j, const char *key, uint64_t ns);

/* The six digits that a float has, and not those of the double it becomes. */
void json_float(struct json *j, float v);

#endif
