/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_BUDGET_H
#define BPF_BUDGET_H

/*
 * What each source may take of a CPU: a quarter of it, and that for at most 25 ms at a stretch.
 * What is over budget is skipped; the next sample of that process stands for it, too. Spans of
 * waiting, of which there may be any number, have a sixteenth, and fewer are sampled instead.
 */

#include "bpf/stats.h"

#define BUDGET_SHARE 4
#define BUDGET_SHARE_OF_SPANS 16
#define BUDGET_MAX_NS 25000000

static __always_inline void budget_fill(struct cpu_state *c, __u64 now, __u32 share)
{
	__u64 elapsed = now - c->last_ns;

	c->last_ns = now;
	if (elapsed > (__u64)BUDGET_MAX_NS * share)
		elapsed = (__u64)BUDGET_MAX_NS * share;
	c->budget_ns += elapsed / share;
	if (c->budget_ns > BUDGET_MAX_NS)
		c->budget_ns = BUDGET_MAX_NS;
}

/*
 * What a sample stands for that is worth `value` by itself: with those of this process that were
 * skipped before, if they are the last ones that were. 0: over budget.
 */
static __always_inline __u64 budget_take(struct cpu_state *c, __u64 process, __u64 value, __u64 now)
{
	budget_fill(c, now, BUDGET_SHARE);
	if (c->budget_ns >= 0)
		return value + (c->skipped_process == process ? c->skipped : 0);
	if (c->skipped_process != process)
		c->skipped = 0;
	c->skipped_process = process;
	c->skipped += value;
	return 0;
}

/* The sample is on its way, with what was skipped. */
static __always_inline void budget_carried(struct cpu_state *c, __u64 carried)
{
	if (!carried)
		return;
	stat_add(c, STAT_CARRIED, carried);
	c->skipped = 0;
}

static __always_inline void budget_spend(struct cpu_state *c, __u64 ns)
{
	stat_add(c, STAT_RUN_NS, ns);
	c->budget_ns -= ns;
}

#endif
