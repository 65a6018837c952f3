/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_ALLOWANCE_H
#define BASE_ALLOWANCE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * CPU time that a piece of work on hostile input may take. The work asks now and then whether its
 * allowance is spent, and gives up by itself: a work that nobody waits for any more would go on
 * using a CPU. Of the calling thread.
 */
#define ALLOWANCE_NONE UINT64_MAX /* as much as it takes */

/* From here on, ns of CPU time. */
void allowance_begin(uint64_t ns);

/* Stays true until the next allowance begins. */
bool allowance_is_spent(void);

/* As allowance_is_spent(), but looks at the clock only for each 64 KiB: for what is called often.
 * bytes: that are read next. A call counts as 1 KiB. */
bool allowance_take(uint64_t bytes);

/* CPU time since it began. */
uint64_t allowance_used_ns(void);

#endif
