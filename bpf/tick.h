/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_TICK_H
#define BPF_TICK_H

/* One tick of a CPU's clock: the sample that it is, and those that should have been before it. */

#include "bpf/interrupt.h"

#define SCHED_NORMAL 0 /* include/uapi/linux/sched.h */
#define SCHED_BATCH 3

/* Notes the thread of this tick. Returns true if it has been on this CPU since the tick before. */
static __always_inline bool tick_has_stayed(struct cpu_state *c, struct task_struct *task)
{
	__u64 switches = task_switches(task), number = known_field(task, pid);
	bool stayed = c->tick_task == number && c->tick_switches == switches;

	c->tick_task = number;
	c->tick_switches = switches;
	return stayed;
}

/*
 * Ticks that should have come since the one before, while this thread was on the CPU all along: the
 * kernel drops one while a BPF program runs, and where interrupts are off for too long. Where
 * another thread ran in between, or none, it is unknown who would have been met: on a CPU that
 * sleeps, above all a virtual one, timers come late or not at all. A thread that has come in
 * between ran since then, as far as the fair scheduler notes it: up to its last look, some
 * milliseconds ago.
 */
static __always_inline __u64 count_missed(struct cpu_state *c, struct task_struct *task,
					  const struct cpu_ticks *ticks, __u64 now)
{
	__u64 set = ticks->set_ns, period = ticks->period_ns, since = c->tick_ns, missed = 0, ran;
	__u64 period_before = c->period_ns;
	bool stayed = tick_has_stayed(c, task);
	unsigned int policy;

	c->tick_ns = now;
	c->period_ns = period;
	if (!since || !period || !period_before || set > now)
		return 0; /* the first one; or its period is just being set */
	if (set > since) {
		missed = (set - since) / period_before;
		since = set;
	}
	if (now - since > period + period / 2)
		missed += (now - since + period / 2) / period - 1;
	if (!missed || stayed)
		return missed;
	policy = known_field(task, policy);
	if (policy != SCHED_NORMAL && policy != SCHED_BATCH)
		return 0;
	ran = (known_field(task, se.sum_exec_runtime) -
	       known_field(task, se.prev_sum_exec_runtime)) /
	      period;
	return missed < ran ? missed : ran;
}

/* Has the next sample stand for ticks that could not come, as the sampler itself took so long. */
static __always_inline void skip_ticks(struct cpu_state *c, __u64 count)
{
	if (!count)
		return;
	budget_take(skipped_of(c, 0), SKIPPED_OF_ANY, count, count, false);
	stat_add(c, STAT_SKIPPED, count);
}

/* Whose the tick was that ended like this: a Python process's that is recorded? */
static __always_inline bool is_ours(int r)
{
	return r != STAT_IDLE && r != STAT_NO_MM && r != STAT_FILTERED && r != STAT_NOT_PYTHON;
}

/* Does the thread walk itself from then on? */
static __always_inline bool is_handed_over(int r)
{
	return r == STAT_TASK_WORK || r == STAT_TW_JOINED;
}

/* The tick that began at `now` has ended in the counter r, and `missed` before it did not come.
 * Returns 0. */
VERIFIED_ONCE int tick_ends(struct cpu_state *c, __u32 r, __u64 weight, __u64 missed, __u64 now)
{
	__u64 took = bpf_ktime_get_ns() - now, periods;

	if (!c)
		return 0; /* for the verifier */
	stat_add(c, at_most(r, STAT_TICK_END - 1), weight);
	if (missed && is_ours(r))
		stat_add(c, STAT_MISSED, missed * weight);
	c->tick_took_ns = is_handed_over(r) ? c->period_ns : took;
	budget_spend_of(c, r, took);
	if (c->period_ns && took > c->period_ns && is_ours(r)) {
		/* The next tick may be another thread's. */
		periods = took / c->period_ns;
		skip_ticks(c, periods * weight);
		c->tick_ns += periods * c->period_ns;
	}
	return 0;
}

static __always_inline void tick_take(struct bpf_perf_event_data *ctx)
{
	struct sampler_call call = {
		.source = SOURCE_TICKS,
		.access = ACCESS_IRQ,
		.share = BUDGET_SHARE,
		.saved_max_ns = BUDGET_MAX_NS,
		.scratch = scratch_own(SOURCE_TICKS),
	};
	__u64 now = bpf_ktime_get_ns(), missed;
	__u32 cpu = bpf_get_smp_processor_id();
	struct cpu_ticks *ticks;
	struct known_task k;
	struct cpu_state *c;
	int r;

	known_task_read(&k);
	c = this_cpu_state(SOURCE_TICKS);
	ticks = bpf_map_lookup_elem(&cpu_ticks, &cpu);
	if (!c || !ticks)
		return;
	call.value = call.count = *(volatile __u32 *)&ticks->weight;
	if (!call.value)
		return;
	missed = count_missed(c, k.task, ticks, now);
	r = find_interrupted(&call, c, &k, now);
	if (r == STAT_RECORDED && c->tick_took_ns > c->period_ns / 4) { /* perf throttles, too */
		skip_ticks(c, missed * call.value);
		missed = 0;
	}
	r = sample_interrupted(&call, c, k.task, (struct pt_regs *)&ctx->regs, r, now);
	tick_ends(c, r, call.value, missed, now);
}

#endif
