/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_FUNCTIONS_H
#define EXPORT_FUNCTIONS_H

#include <stdint.h>

#include "profile/profile.h"

/*
 * The functions of a profile's frames, for formats in which a frame is a function and lines are
 * something else: name, file, type and the line of the def. Ids are dense and start at 0; behind
 * them is one more, of stacks without frames, which is in no table.
 */
struct functions {
	struct frametab *table; /* `line` is 0 */
	uint32_t *of_frame;     /* by frame id, one behind them for stacks without frames */
	uint32_t none;          /* what that is: also the count of the others */
};

/* Starts as zeros. 0 or -ENOMEM; release it in any case. */
int functions_find(struct functions *f, const struct profile *p);
void functions_release(struct functions *f);

/* NULL: none, of stacks without frames: PROFILE_NO_FRAMES. */
static inline const struct frame *functions_get(const struct functions *f, uint32_t function)
{
	return function < f->none ? frametab_get(f->table, function) : NULL;
}

#endif
