/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DIFF_FILES_H
#define DIFF_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "diff/input.h"
#include "profile/module.h"

/*
 * Which files of both sides are the same, wherever they lie: those of one module
 * (profile/module.h). A file whose module the other side lacks takes that of the one whose path has
 * most of its tail in common, if that is mutual and no other is as close: a checkout in another
 * directory.
 */
struct source {
	uint32_t module; /* string id in `texts`: what keys compare */
	bool is_matched; /* the other side has the module as well */
};

struct sources {
	const struct profile *p; /* borrowed */
	struct strtab *texts;    /* borrowed: modules go there */
	struct modules modules[DIFF_SIDES];
	VEC(struct source) of[DIFF_SIDES]; /* in the order of `modules` */
	size_t ambiguous;                  /* files of base that could be several of current's */
	uint32_t one_of_them;              /* string id of its path */
};

/*
 * Sets p and texts of *out. has_frame: by side, then frame id: which frames it has; totals:
 * inclusive ticks by stack id, of each side. 0, -ENOMEM or -EOVERFLOW; release out in any case.
 */
int sources_find(struct sources *out, const struct profile *p, struct strtab *texts,
		 const bool *const has_frame[DIFF_SIDES], const uint64_t *const totals[DIFF_SIDES]);
void sources_release_all(struct sources *s);

/* Module of the file of a frame which the side has. */
static inline uint32_t source_module(const struct sources *s, int side, uint32_t file)
{
	return s->of[side].items[s->modules[side].of_file[file] - 1].module;
}

/* The whole path of the side's file `index`. */
static inline const char *source_path(const struct sources *s, int side, size_t index)
{
	return strtab_get(s->p->strings, s->modules[side].items.items[index].file);
}

#endif
