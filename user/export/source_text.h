/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_SOURCE_TEXT_H
#define EXPORT_SOURCE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "base/vec.h"
#include "profile/recording.h"

/*
 * A source file as it was recorded, read from this machine. A recording says when it began and on
 * which host, so a file is taken only if it is Python by its name, was recorded here, has not
 * changed since, and has a def where the recording says. Files are those of other people: regular
 * ones only, symbolic links are not followed at the end of a path, reading is bounded.
 */
#define SOURCE_FILE_BYTES_MAX (4u << 20)
#define SOURCE_LINE_BYTES_MAX 400

/* The numbers are those of the page's blob. */
enum source_status {
	SOURCE_EMBEDDED,
	SOURCE_CHANGED,
	SOURCE_MISSING,
	SOURCE_UNKNOWN,
	SOURCE_TOO_LARGE,
};

/*
 * Before the first recording *since_ns is UINT64_MAX; then when the first of them began. 0: that is
 * not known of one, or one is of another host, and none of their sources is.
 */
void source_since(const struct recording *of, uint64_t *since_ns);

/* Starts as zeros, ends in source_text_release(). */
struct source_text {
	struct strbuf bytes;
	VEC(size_t) starts; /* of lines, and the end; line 1 is item 0 */
};
void source_text_release(struct source_text *t);

/* since_ns: as source_since() has it. 0 and *status, or -ENOMEM; there are lines if it is embedded.
 */
int source_text_read(struct source_text *t, const char *path, uint64_t since_ns,
		     enum source_status *status);

static inline uint32_t source_text_lines(const struct source_text *t)
{
	return t->starts.len ? (uint32_t)t->starts.len - 1 : 0;
}

/* Without its end, and as much as is shown of it: SOURCE_LINE_BYTES_MAX. line: from 1. */
const char *source_text_line(const struct source_text *t, uint32_t line, size_t *len, bool *is_cut);

/*
 * Is there a def at this line, as this function's should be? "<lambda>" and the like have none, nor
 * have modules that are imported: true.
 */
bool source_text_has_def(const struct source_text *t, const char *name, uint32_t line);

#endif
