/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_MERGE_H
#define PROFILE_MERGE_H

#include <stdint.h>

#include "profile/profile.h"

/* What ids of one profile are in another. Starts as zeros, ends in profile_ids_release(). */
struct profile_ids {
	uint32_t *recordings, *strings, *frames, *stacks, *labels, *processes, *threads;
	uint16_t *kinds; /* as samples have them */

	/* inside: how many of each are known */
	struct {
		size_t recordings, strings, frames, stacks, labels, processes, threads, kinds,
			sources;
	} done;
};
void profile_ids_release(struct profile_ids *ids);

/* The tables of the one were emptied (profile_reset()); its recordings are as they were. */
void profile_ids_forget_tables(struct profile_ids *ids);

/*
 * Adds the tables of `from`, in their order, its recordings first; its samples are left to the
 * caller. So files that were read into profiles of their own have the ids that they would have if
 * they had been read into one profile, one after another. 0, -ENOMEM or -EOVERFLOW: `to` then holds
 * some of it.
 *
 * Of a profile that grows it may be called again, with the same ids: what is new is added.
 */
int profile_merge(struct profile *to, const struct profile *from, struct profile_ids *ids);

#endif
