/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_SOURCE_TEXT_H
#define EXPORT_SOURCE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "profile/profile.h"

/*
 * Source files as they were recorded, read from this machine.
 *
 * A recording names any path: its targets do, or whoever wrote the file. So a file is shown only if
 * its bytes have the digest that the recording gives for it. The recorder makes the digest with the
 * rights of the process that ran the code: a file that this process could not read has none. Who
 * writes a recording by hand cannot name the digest of a file that they could not read.
 *
 * With a source root the user says where the sources are: files below that directory are shown
 * without a digest, too.
 *
 * Files may lie on a file system that does not answer: they are read by a process that can be left
 * behind, and a warning names them.
 */
#define SOURCE_FILE_BYTES_MAX (4u << 20)
#define SOURCE_LINE_BYTES_MAX 400

/* The numbers are those of the page's blob. */
enum source_status {
	SOURCE_EMBEDDED,
	SOURCE_CHANGED,
	SOURCE_MISSING,
	SOURCE_UNKNOWN, /* the recording has no digest of the file */
	SOURCE_TOO_LARGE,
};

/* Starts as zeros, ends in source_text_release(). */
struct source_text {
	struct strbuf bytes;
	VEC(size_t) starts; /* of lines, and the end; line 1 is item 0 */
};
void source_text_release(struct source_text *t);

struct source_reader;

/* Which frames are shown: the file must have their functions. */
struct source_uses {
	const struct profile *p;
	const bool *recordings; /* by index, those that are shown; NULL: all */
	const bool *frames;     /* by id, the same */
	const char *root;       /* --source-root; NULL: none */
};

/* All is borrowed. 0, -ENOMEM, or a negative errno with a message: the root cannot be opened. */
int source_reader_new(const struct source_uses *uses, struct source_reader **out);
void source_reader_free(struct source_reader *r);
DEFINE_CLEANUP(struct source_reader *, source_reader_free)

/*
 * file: string id of the path. 0 and *status, or -ENOMEM. There are lines if it is SOURCE_EMBEDDED:
 * then each function of the file begins with a def, and each line that `<module>` was sampled at
 * holds code.
 */
int source_reader_read(struct source_reader *r, uint32_t file, struct source_text *t,
		       enum source_status *status);

static inline uint32_t source_text_lines(const struct source_text *t)
{
	return t->starts.len ? (uint32_t)t->starts.len - 1 : 0;
}

/* Without its end, and as much as is shown of it: SOURCE_LINE_BYTES_MAX. line: from 1. */
const char *source_text_line(const struct source_text *t, uint32_t line, size_t *len, bool *is_cut);

/*
 * Could this frame be of this text? A function begins with a def; `<module>` runs lines that hold
 * code. "<lambda>" and the like, and modules that are imported, show nothing: true.
 */
bool source_text_fits(const struct source_text *t, const char *name, const struct frame *f);

#endif
