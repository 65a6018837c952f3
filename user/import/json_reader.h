/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IMPORT_JSON_READER_H
#define IMPORT_JSON_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "import/byte_stream.h"

/*
 * Reads JSON (RFC 8259) token by token, in bounded memory: what a file of ten million samples
 * takes as a tree is tens of GB. Strings of at most 1 MiB, 64 levels. Starts as zeros;
 * json_reader_open(), then json_reader_release() in any case.
 */
enum json_token {
	JSON_END, /* of the innermost object or array; of the text */
	JSON_OBJECT,
	JSON_ARRAY,
	JSON_KEY, /* the value comes next */
	JSON_STRING,
	JSON_NUMBER,
	JSON_LITERAL, /* true, false, null */
};

#define JSON_READER_DEPTH_MAX 64

struct json_reader {
	struct byte_stream stream;
	struct strbuf text; /* of a key or string, UTF-8; escapes of no code point: U+FFFD */
	double number;
	unsigned int depth;
	uint64_t is_object; /* bit per level, the innermost lowest */
	bool has_items;     /* the innermost level has one */
	bool has_key;       /* whose value comes next */
	bool has_ended;     /* the text's one value */
};

int json_reader_open(struct json_reader *j, struct content *content);
void json_reader_release(struct json_reader *j);

/* enum json_token; -EBADMSG with a message that says where, -ENOMEM, or as content_pread(). */
int json_reader_next(struct json_reader *j);

/* The value that begins with that token, which json_reader_next() gave, is read over. 0 or so. */
int json_reader_skip(struct json_reader *j, int token);

/* -EBADMSG with a message that says where it is. */
int json_reader_malformed(const struct json_reader *j, const char *what);

#endif
