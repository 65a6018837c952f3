/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_LOOK_BUDGET_H
#define COLLECT_LOOK_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * What looks at one target may take of each second: half of its time, and so many bytes of memory
 * that are kept. One that is slow, or never the same, does not keep others from being looked at.
 * Lossy: a target whose place another takes begins anew.
 */
#define LOOK_BUDGET_NS 500000000ULL
#define LOOK_BUDGET_BYTES (16u << 20)
#define LOOK_BUDGET_SLOTS 1024 /* power of two */

struct look_budget {
	struct look_spending {
		pid_t pid;
		bool is_over;      /* some look was refused */
		uint64_t since_ns; /* CLOCK_MONOTONIC: when the second began */
		uint64_t ns, bytes;
	} slots[LOOK_BUDGET_SLOTS];
};

/*
 * Whether another look that takes so many bytes is within it. *is_first: it is not, for the first
 * time that the target is in its place.
 */
bool look_budget_allows(struct look_budget *b, pid_t pid, uint64_t now_ns, size_t bytes,
			bool *is_first);

/* What a look took. */
void look_budget_spend(struct look_budget *b, pid_t pid, uint64_t now_ns, uint64_t ns,
		       size_t bytes);

#endif
