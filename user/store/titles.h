/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef STORE_TITLES_H
#define STORE_TITLES_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "profile/idmap.h"
#include "profile/profile.h"
#include "store/column.h"

/* Titles that processes gave themselves after their first sample: FORMAT.md, "Titles". */

#define TITLES_MAX 65536u           /* of a file, as a reader takes them */
#define TITLES_BYTES_MAX (8u << 20) /* the same, of their content */

/* Appends the content of a chunk: those of p from *done on, which is moved past them; a chunk
 * takes them all, or a megabyte. 0 or -ENOMEM. */
int titles_encode(const struct profile *p, size_t *done, struct bytes *out);

struct title_text {
	const char *bytes; /* not NUL-terminated */
	size_t len;
};

/* A process as it is called in a row, and in which recording of the file. */
struct titled {
	uint32_t recording, pid;
	uint64_t start_ns;
	struct title_text name, command_line;
};

struct title {
	struct titled process;
	struct title_text title;
	uint32_t order; /* among all of the file */
};

/* All titles of a file. Zero-initialised: none. */
struct titles {
	VEC(struct title) known;
	VEC(uint8_t *) contents; /* owned; texts lie there */
	size_t bytes;
	struct idmap ids;
	uint32_t count; /* so far, in the file's order */
};

void titles_release(struct titles *t);

/* Adds the content of a chunk, of this recording. 0, -EBADMSG without message, -ENOMEM. Beyond
 * TITLES_MAX nothing is added. */
int titles_add(struct titles *t, uint32_t recording, const uint8_t *content, size_t len);

/* Whether titles_add() could read it. 0 or -EBADMSG without message. */
int titles_check(const uint8_t *content, size_t len);

/* The last title of the process. Borrowed, or NULL: it has none. */
const struct title_text *titles_find(const struct titles *t, const struct titled *process);

#endif
