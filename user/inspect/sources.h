/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_SOURCES_H
#define INSPECT_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

/*
 * Source files as a process sees them: below its root directory, relative names below the one it
 * works in; and only if the process itself could read them (target/rights.h), with the rights that
 * it had both before and after its memory was read. Each is read once. A file system that does not
 * answer may be what the process hangs at: files are read by a process that can be left behind.
 */
struct sources;

#define SOURCE_BYTES_MAX (16u << 20)

int sources_new(struct sources **out);
void sources_free(struct sources *s);
DEFINE_CLEANUP(struct sources *, sources_free)

struct source_line {
	const char *text; /* without its newline; of any encoding. Borrowed until sources_free() */
	size_t len;
};

/*
 * A line (>= 1) of a file by its co_filename, in this process. False: it has none such, cannot be
 * read, or is no file.
 */
struct inspect_process;
bool sources_line(struct sources *s, const struct inspect_process *p, const char *file, int line,
		  struct source_line *out);

/* When it was changed, ns since 1970. 0: not known. */
int64_t sources_changed_ns(struct sources *s, const struct inspect_process *p, const char *file);

/* Warns of each file whose file system did not answer. */
void sources_say_missing(const struct sources *s);

#endif
