/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_MERGE_H
#define PROFILE_MERGE_H

#include <stdint.h>

#include "profile/profile.h"

/* What ids of one profile are in another. Starts as zeros, ends in profile_ids_release(). */
struct profile_ids {
	uint32_t *recordings, *strings, *frames, *stacks, *labels, *processes, *threads;
	uint16_t *kinds; /* as samples have them */
};
void profile_ids_release(struct profile_ids *ids);

/*
 * Adds the tables of `from`, in their order, its recordings first; its samples are left to the
 * caller. So files that were read into profiles of their own have the ids that they would have if
 * they had been read into one profile, one after another. 0, -ENOMEM or -EOVERFLOW: `to` then holds
 * some of it.
 */
int profile_merge(struct profile *to, const struct profile *from, struct profile_ids *ids);

#endif
