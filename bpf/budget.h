/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_BUDGET_H
#define BPF_BUDGET_H

/*
 * What each source may take of a CPU: a share of it, and that for at most 25 ms at a stretch. What
 * is over budget is skipped; the next sample of that process stands for it, too, if it is of the
 * same event. What is skipped for the ring's sake is every second or fourth tick, whose it ever is:
 * the next sample on that CPU stands for it. Of spans of waiting, of which there may be any number,
 * fewer are sampled instead.
 */

#include "bpf/stats.h"

#define BUDGET_SHARE 4        /* of a CPU: a quarter, */
#define BUDGET_SHARE_SMALL 16 /* and for what any program does all the time */
#define BUDGET_MAX_NS 25000000
#define SPENT_MAX_NS                                                                           \
	5000000           /* by one sample; what took longer is a hypervisor's, or interrupts' \
			   */
#define EVENTS_SKIPPED 15 /* in a row, as long as what that takes is no more than 25 ms */

static __always_inline struct skipped *skipped_of(struct cpu_state *c, __u32 event)
{
	return &c->skipped[event & (EVENTS_MAX - 1)];
}

/* Time that has passed fills it up, to max_ns. */
static __always_inline void budget_fill(struct cpu_state *c, __u32 share, __s64 max_ns, __u64 now)
{
	__u64 elapsed = now - c->last_ns;

	c->last_ns = now;
	if (elapsed > (__u64)BUDGET_MAX_NS * share)
		elapsed = (__u64)BUDGET_MAX_NS * share;
	c->budget_ns += elapsed / share;
	if (c->budget_ns > max_ns)
		c->budget_ns = max_ns;
}

/*
 * Events come in bursts, each of another line: one now and then is sampled on credit, lest what one
 * line made is told of the next. enough: a value that must not be skipped; 0: any may.
 */
static __always_inline bool budget_allows(const struct cpu_state *c, const struct skipped *skipped,
					  enum sample_source source, __u64 value, __u64 enough)
{
	if (c->budget_ns >= 0)
		return true;
	if (source != SOURCE_EVENTS || c->budget_ns <= -BUDGET_MAX_NS)
		return false;
	return skipped->count >= EVENTS_SKIPPED || (enough && skipped->value + value >= enough);
}

#define SKIPPED_OF_ANY 0 /* as a process: for the ring's sake */

/* Is this tick one that is not sampled for the ring's sake? */
static __always_inline bool budget_thins(const struct skipped *skipped, __u32 stride)
{
	return stride > 1 && (skipped->process != SKIPPED_OF_ANY || skipped->count < stride - 1);
}

/*
 * What a sample stands for that is worth `value` by itself and counts as `count`: with those of
 * this process, or of any, that were skipped before, if they are the last ones that were. 0: it is
 * to be skipped, for the process's or (SKIPPED_OF_ANY) the ring's sake.
 */
static __always_inline __u64 budget_take(struct skipped *skipped, __u64 process, __u64 value,
					 __u64 count, bool is_allowed)
{
	bool is_same = skipped->process == process || skipped->process == SKIPPED_OF_ANY;

	if (is_allowed)
		return value + (is_same ? skipped->value : 0);
	if (!is_same)
		skipped->value = skipped->count = 0;
	if (!is_same || !skipped->count)
		skipped->process = process;
	skipped->value += value;
	skipped->count += count;
	return 0;
}

/* The sample is on its way; was_carried: with what was skipped. */
static __always_inline void budget_carried(struct cpu_state *c, struct skipped *skipped,
					   bool was_carried)
{
	if (!was_carried)
		return;
	stat_add(c, STAT_CARRIED, skipped->count);
	skipped->value = skipped->count = 0;
}

static __always_inline void budget_spend(struct cpu_state *c, __u64 ns)
{
	stat_add(c, STAT_RUN_NS, ns);
	c->budget_ns -= at_most(ns, SPENT_MAX_NS);
}

/*
 * r: what a tick or an event ended in. Those of other processes are known at the first look, and
 * come anyhow: no sample is skipped for them.
 */
static __always_inline void budget_spend_of(struct cpu_state *c, int r, __u64 ns)
{
	if (r == STAT_IDLE || r == STAT_NO_MM || r == STAT_FILTERED)
		stat_add(c, STAT_RUN_NS, ns);
	else
		budget_spend(c, ns);
}

#endif
