/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_TOP_KEEP_H
#define CMD_TOP_KEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "collect/recorder.h"
#include "store/writer.h"

/*
 * What `top` can save: the recording since the start, or since all began anew, in memory, as its
 * file would be. Starts as zeros, ends in top_keep_release().
 */
struct top_keep {
	struct recorder *recorder; /* borrowed */
	struct writer *writer;
};

/* A part of the recorder's has begun. This and what follows: 0 or a negative errno with a message.
 */
int top_keep_begin(struct top_keep *k, struct recorder *recorder);

/*
 * Takes what the recorder's profile holds, which has no samples then. 1: its tables are emptied,
 * too.
 */
int top_keep_take(struct top_keep *k);

/* It has grown so large that a new one should begin. */
bool top_keep_is_full(const struct top_keep *k);

/* After top_keep_take(): all of it becomes a file. -EEXIST where there is one of that name. */
int top_keep_save(struct top_keep *k, const char *path);

void top_keep_release(struct top_keep *k);

#endif
