/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_PRIORITY_H
#define BASE_PRIORITY_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A thread for which others wait is scheduled before the programs that pyebpf records: the one that
 * empties the ring, which fills while all CPUs are busy; and those that find out whose ticks are in
 * it, which are lost until that is known. Such a thread has a nice value of PRIORITY_NICE, as long
 * as it takes no more than a PRIORITY_SHARE-th of a CPU. Needs CAP_SYS_NICE; without it nothing
 * changes, nor where pyebpf was started with a priority of its own (nice, chrt).
 */
#define PRIORITY_NICE (-15)
#define PRIORITY_SHARE 4

struct priority {
	bool is_inherited; /* by threads and processes that it makes; set before the first call */
	bool is_raised;
	uint64_t looked_ns; /* CLOCK_MONOTONIC: when its time was looked at last; 0: never */
	uint64_t used_ns;   /* CPU time of the thread at that moment */
};

/* Now and then, by that thread. Looks at its time once a second. */
void priority_keep(struct priority *p, uint64_t now_ns);

/* By the same thread: as it was before. */
void priority_give_back(struct priority *p);

#endif
