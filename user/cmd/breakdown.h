/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_BREAKDOWN_H
#define CMD_BREAKDOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/load.h"
#include "cmd/terminal.h"

/*
 * What the threads did with their time, as words: of loads that tell waits. Wall time is the sum of
 * the threads' lives: what they computed and what they waited.
 */

/* Was time off the CPU recorded? */
static inline bool breakdown_is_known(const struct load *loaded)
{
	return waits_waited_ns(&loaded->waits) > 0;
}

/* Computed and waited. */
uint64_t breakdown_wall_ns(const struct load *loaded);

/*
 * "CPU 5.1 s (50.6%), sleep 2 s (20.0%), lock 940 ms (9.4%)": ns by row of the waits, of a whole
 * > 0; computing first, then the longest.
 */
void breakdown_put(struct line *l, const struct load *loaded, const uint64_t *ns,
		   uint64_t whole_ns);

/* The same of all of it. */
void breakdown_put_all(struct line *l, const struct load *loaded);

/* ns by row of each thread as it is shown, one after the other: to be freed. 0 or -ENOMEM. */
int breakdown_of_threads(const struct load *loaded, uint64_t **ns);

#endif
