/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_PAGE_SOURCES_H
#define EXPORT_PAGE_SOURCES_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "export/page/page.h"
#include "export/source_text.h"

/* Source lines around those a page has samples of, where export/source_text.h has the file. */
#define SOURCE_TOTAL_BYTES_MAX (768u << 10) /* heaviest functions first */

struct source_file {
	uint32_t file;  /* string id of the path */
	uint8_t status; /* enum source_status */
};

/* Consecutive lines of a file, each ended by a line feed; UTF-8 if the file is. */
struct source_piece {
	uint32_t file; /* index of files */
	uint32_t line; /* of the first */
	char *text;    /* owned */
	size_t len;
};

struct sources {
	VEC(struct source_file) files;
	VEC(struct source_piece) pieces; /* by file and line */
	size_t bytes;
};

void sources_release(struct sources *s);

/*
 * Those of the current side; root: as source_uses has it. 0, -ENOMEM, or a negative errno with a
 * message: no such root. A file that cannot be read is no error.
 */
int sources_read(struct sources *s, const struct page *page, const char *root);

#endif
