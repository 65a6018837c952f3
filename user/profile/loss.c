/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "profile/loss.h"

/* What every source may lose. */
#define LOST_BY_THE_SAMPLER(prefix, skipped)                                              \
	{ prefix "ring_full", "ring buffer full" },                                       \
		{ prefix "task_work_ring_full", "ring buffer full (task work)" },         \
		{ prefix "unknown_process", "process not yet identified as Python" },     \
		{ prefix "no_row", "table of processes full" },                           \
		{ prefix "thread_state_fault", "Python thread state could not be read" }, \
		{ prefix "thread_state_late", "thread state not found in time" },         \
		{ prefix "task_work_failed",                                              \
		  "thread state gone before the deferred read (task work)" },             \
		{ prefix "task_work_no_scratch", "no free scratch buffer (task work)" },  \
		{ prefix "task_work_pending",                                             \
		  "thread had not returned to user code when recording ended" },          \
		{ prefix "skipped_lost", skipped },                                       \
		{ prefix "no_task_work", "too many threads in system calls" },            \
	{                                                                                 \
		prefix "no_scratch", "no free scratch buffer"                             \
	}

const struct loss_row loss_ticks[] = {
	LOST_BY_THE_SAMPLER("", "skipped: sampler over its CPU budget"),
	{ "cpu_unwatched", "on a CPU that had just come online" },
	{ "cpu_left_out", "on a CPU that --cpus leaves out" },
	{ "not_delivered", "timer interrupt not delivered by the kernel" },
	{ "malformed", "malformed record (a bug in pyebpf: please report it)" },
	{ "sampler_failed", "failed in the sampler it was imported from" },
	{ "sampler_missed", "missed by the sampler it was imported from" },
	{ NULL, NULL },
};

const struct loss_row loss_spans[] = {
	LOST_BY_THE_SAMPLER("switch_", "skipped: sampler over its CPU budget"),
	{ "switch_unseen", "end of wait not reported by the kernel" },
	{ "switch_silent", "memory that does not answer" },
	{ "switch_no_times", "threads not tracked: out of kernel memory" },
	{ NULL, NULL },
};

/* The next sample takes up what was skipped, if it is of the same process: the last ones of a
 * process on a CPU have none. */
const struct loss_row loss_events[] = {
	LOST_BY_THE_SAMPLER(EVENT_COUNTERS,
			    "skipped: sampler over its CPU budget, taken up by no later sample"),
	{ NULL, NULL },
};

const struct loss_row loss_quality[] = {
	{ "truncated", "deeper than the frame limit" },
	{ "late", "cut by the time limit" },
	{ "fault", "cut by a missing page" },
	{ "cut", "without their outermost frames" },
	{ "invalid", "with a broken frame chain" },
	{ "ambiguous", "ambiguous: several thread states" },
	{ "unnamed", "with an unnamed frame" },
	{ "approximate_lines", "with approximate lines" },
	{ NULL, NULL },
};

bool loss_is_known(const struct profile *p, const struct loss_row *rows)
{
	for (; rows->counter; rows++)
		for (size_t i = 0; i < p->recordings.len; i++)
			if (recording_has_counter(&p->recordings.items[i], rows->counter))
				return true;
	return false;
}

uint64_t loss_sum(const struct profile *p, const struct loss_row *rows)
{
	uint64_t sum = 0;

	for (; rows->counter; rows++)
		sum += profile_counter(p, rows->counter);
	return sum;
}

uint64_t loss_sum_of(const struct recording *r, const struct loss_row *rows)
{
	uint64_t sum = 0;

	for (; rows->counter; rows++)
		sum += recording_counter(r, rows->counter);
	return sum;
}
