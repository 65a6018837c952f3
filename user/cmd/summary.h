/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_SUMMARY_H
#define CMD_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cmd/load.h"
#include "collect/task_stacks.h"
#include "collect/times.h"

/* What the recorder knows and the recording does not say. 0: unknown, not shown. */
struct summary_extra {
	const char *output;                    /* the file the user asked for */
	size_t processes;                      /* of which there were samples */
	size_t contained;                      /* those of them in a container */
	uint64_t wall_ns;                      /* from the first tick to the last */
	uint64_t cpu_ns;                       /* user and system time of the recorder */
	uint64_t sampler_ns;                   /* in the kernel, all CPUs: counter run_ns */
	uint64_t rss_bytes_max;                /* of the recorder */
	bool is_system_wide;                   /* -a: tell the share of Python */
	const struct times_sum *times;         /* what the threads did; NULL: not recorded */
	const struct task_stacks_stats *tasks; /* what is known of tasks; the same */
};

/*
 * What record says in the end, at most ten lines: top functions, samples, what was lost, what it
 * cost, what to type next. Returns 0; 1 if there are no samples, which is said with what became of
 * the ticks; a negative errno with a message.
 */
int summary_print(FILE *out, const struct load *loaded, const struct summary_extra *x);

#endif
