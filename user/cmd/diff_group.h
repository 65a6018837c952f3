/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_DIFF_GROUP_H
#define CMD_DIFF_GROUP_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "profile/profile.h"

/*
 * --group-by: the outermost function of a stack whose name the pattern matches becomes its root,
 * so that each such function is a tree of its own; samples without one are left out and counted.
 *
 * Such functions run one after another: parts of the recording's time would show which of them ran
 * then, and not how noisy it is. Samples are dealt out over the time blocks in turn instead, which
 * leaves the noise of sampling; what differs from run to run only several runs can show.
 * Of one profile. Starts as { .pattern = ... }, ends in vec_release(&group.stacks).
 */
struct diff_group {
	const char *pattern;  /* as fnmatch() takes it: of the qualname, or of its last part */
	VEC(uint32_t) stacks; /* by stack id: what becomes of it; GROUP_NONE: left out */
	uint64_t ticks, left_out;
	uint64_t turn; /* samples dealt out */
};

/* Of the samples p holds now. 0, -ENOMEM, -EOVERFLOW. */
int diff_group_samples(struct diff_group *g, struct profile *p);

#endif
