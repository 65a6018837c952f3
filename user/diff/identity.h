/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DIFF_IDENTITY_H
#define DIFF_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "diff/input.h"
#include "diff/rename.h"

/*
 * Which frames of both sides are the same function. A key is the module of the file (files.h), the
 * qualname, the kind of frame, and for lambdas and comprehensions of one parent their order in it.
 * Lines do not count.
 *
 * Between two versions of Python comprehensions are inlined on both sides: from 3.12 on they have
 * no frame of their own (PEP 709), and their time would seem to be their caller's.
 */
#define IDENTITY_NONE UINT32_MAX
#define IDENTITY_INLINED (UINT32_MAX - 1)

struct identity_key {
	uint32_t frame[DIFF_SIDES];    /* the first frame of it there, or IDENTITY_NONE */
	uint32_t root_len[DIFF_SIDES]; /* bytes of that frame's file that are its root */
	bool is_renamed;               /* base's name became current's by a rename */
};

struct identity {
	/* By frame id; IDENTITY_NONE where the side lacks it, IDENTITY_INLINED where it is a part
	 * of the function that calls it. */
	uint32_t *key_of[DIFF_SIDES];
	VEC(struct identity_key) keys;
	VEC(bool) used_renames;  /* by rename: did it fit any frame? */
	size_t ambiguous_files;  /* of base, that could be several of current's */
	uint32_t ambiguous_file; /* string id of the path of one */
};

/* totals: inclusive ticks by stack id, of each side. 0 or -ENOMEM; release id in any case. */
int identity_make(struct identity *id, const struct diff_input *in,
		  const uint64_t *const totals[DIFF_SIDES], const struct diff_renames *renames);
void identity_release(struct identity *id);

#endif
