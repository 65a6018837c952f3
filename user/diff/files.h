/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DIFF_FILES_H
#define DIFF_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "diff/input.h"

/*
 * Which files of both sides are the same, wherever they lie. A file's module is its path without
 * its root. Roots are, in this order:
 *
 *	.../site-packages/, .../dist-packages/, .../lib/python3.12/
 *	the directory of the script: of the outermost `<module>` that is no library's
 *
 * They are taken off only as far as the files of one side stay apart: of `/srv/a/main.py` and
 * `/srv/b/main.py` the modules are `a/main.py` and `b/main.py`; a library's file keeps the name
 * that it would have alone. A file whose module the other side lacks takes that of the one whose
 *path has most of its tail in common, if that is mutual and no other is as close: a checkout in
 *another directory.
 */
struct source {
	uint32_t file; /* string id in the profile */
	uint32_t root_len;
	uint32_t module; /* string id in `texts`: what keys compare */
	bool is_library;
	bool is_matched; /* the other side has the module as well */
};

struct sources {
	const struct profile *p; /* borrowed */
	struct strtab *texts;    /* borrowed: modules go there */
	VEC(struct source) of[DIFF_SIDES];
	uint32_t *of_file[DIFF_SIDES]; /* by string id of the file: index + 1; 0: none */
	size_t ambiguous;              /* files of base that could be several of current's */
	uint32_t one_of_them;          /* string id of its path */
};

/*
 * Sets p and texts of *out. has_frame: by side, then frame id: which frames it has; totals:
 * inclusive ticks by stack id, of each side. 0, -ENOMEM or -EOVERFLOW; release out in any case.
 */
int sources_find(struct sources *out, const struct profile *p, struct strtab *texts,
		 const bool *const has_frame[DIFF_SIDES], const uint64_t *const totals[DIFF_SIDES]);
void sources_release_all(struct sources *s);

/* That of a frame which the side has. */
const struct source *source_of(const struct sources *s, int side, uint32_t file);
const char *source_path(const struct sources *s, const struct source *source);

#endif
