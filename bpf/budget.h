/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_BUDGET_H
#define BPF_BUDGET_H

/*
 * Each source may take a share of a CPU, and that for at most 25 ms at a stretch. Events over
 * budget are skipped; the next sample of their process and event represents them, too. One of 2^n
 * ticks is sampled, for the budget's or the ring's sake, and represents those before it on its CPU.
 * n changes slowly, so that a tick's chance does not depend on what it costs: else the ticks of
 * expensive stacks would be those that are skipped, and cheap ones would represent them. Waits may
 * be any number: fewer of them are sampled likewise.
 */

#include "bpf/stats.h"

#define BUDGET_SHARE_SMALL 16 /* as BUDGET_SHARE, for what any program does all the time */
#define BUDGET_MAX_NS 25000000
#define SPENT_MAX_NS                                                                            \
	5000000            /* by one sample; what took longer is a hypervisor's, or interrupts' \
			    */
#define THRIFT_NS 10000000 /* between two steps to fewer samples, */
#define THRIFT_BACK_NS 100000000 /* and before one back */
#define TICK_THRIFT_MAX 7        /* one of 128 ticks */
#define EVENTS_SKIPPED 15        /* in a row, as long as what that takes is no more than 25 ms */

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
static __always_inline bool budget_allows_event(const struct cpu_state *c,
						const struct skipped *skipped, __u64 value,
						__u64 enough)
{
	if (c->budget_ns >= 0)
		return true;
	if (c->budget_ns <= -BUDGET_MAX_NS)
		return false;
	return skipped->count >= EVENTS_SKIPPED || (enough && skipped->value + value >= enough);
}

/* Changes by a step at most how many are sampled, 2^most the fewest. */
static __always_inline void thrift_keep(struct cpu_state *c, __u64 now, __u32 most)
{
	__u64 unchanged = now - c->thrift_ns;
	__u32 thrift = c->thrift;

	if (c->budget_ns < 0 && thrift < most && unchanged > THRIFT_NS)
		thrift++;
	else if (c->budget_ns > BUDGET_MAX_NS / 2 && thrift && unchanged > THRIFT_BACK_NS)
		thrift--;
	if (thrift == c->thrift)
		return;
	c->thrift = thrift;
	c->thrift_ns = now;
}

#define SKIPPED_OF_ANY 0 /* as a process: ticks */

/* Returns true if this tick, which counts as `count`, is sampled: every stride-th one is. */
static __always_inline bool budget_allows_tick(const struct cpu_state *c,
					       const struct skipped *skipped, __u64 count,
					       __u32 ring_stride)
{
	__u64 stride = 1ULL << (c->thrift & 31);

	if (stride < ring_stride)
		stride = ring_stride;
	return c->budget_ns > -BUDGET_MAX_NS && skipped->count >= (stride - 1) * count;
}

/*
 * Returns what a sample represents that is worth `value` by itself and counts as `count`: itself
 * and those of this process, or of any (SKIPPED_OF_ANY), that were skipped before, if they are the
 * last ones that were. 0: it is to be skipped.
 */
static __always_inline __u64 budget_take(struct skipped *skipped, __u64 process, __u64 value,
					 __u64 count, bool is_allowed)
{
	bool is_same = skipped->process == process;

	if (is_allowed)
		return value + (is_same ? skipped->value : 0);
	if (!is_same) {
		skipped->value = skipped->count = 0;
		skipped->process = process;
	}
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
	/* A tick may interrupt the thread that spends. */
	__sync_fetch_and_add(&c->budget_ns, -(__s64)at_most(ns, SPENT_MAX_NS));
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
