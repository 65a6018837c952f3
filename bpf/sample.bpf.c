/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/* On-CPU samples: one perf_event program, run in the interrupted thread's own context. */

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/events.h"
#include "bpf/cache.h"
#include "bpf/read.h"
#include "bpf/maps.h"
#include "bpf/stats.h"
#include "bpf/task.h"
#include "bpf/session.h"
#include "bpf/discover.h"
#include "bpf/sampler.h"
#include "bpf/task_work.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct session_config session = {};

struct cache_slot code_cache[CODE_SLOTS];
struct cache_slot thread_cache[THREAD_SLOTS];
struct trust trusts[TRUST_SLOTS];
__u64 sent[SENT_SLOTS];
__u64 epoch;
struct py_offsets layouts[LAYOUTS_MAX]; /* written by user space before any row names them */

/* The sampler may use a quarter of a CPU, and that for at most 25 ms at a stretch. */
#define BUDGET_SHARE 4
#define BUDGET_MAX_NS 25000000

#define SCHED_NORMAL 0 /* include/uapi/linux/sched.h */
#define SCHED_BATCH 3

/*
 * Weight of this tick's sample: with the ticks of this process that were skipped before, if they
 * are the last ones that were. 0: over budget.
 */
static __always_inline __u32 budget_take(struct cpu_state *c, __u64 process, __u64 now)
{
	__u64 elapsed = now - c->last_ns;

	c->last_ns = now;
	if (elapsed > (__u64)BUDGET_MAX_NS * BUDGET_SHARE)
		elapsed = (__u64)BUDGET_MAX_NS * BUDGET_SHARE;
	c->budget_ns += elapsed / BUDGET_SHARE;
	if (c->budget_ns > BUDGET_MAX_NS)
		c->budget_ns = BUDGET_MAX_NS;
	if (c->budget_ns >= 0)
		return c->ticks + (c->skipped_process == process ? c->skipped : 0);
	if (c->skipped_process != process)
		c->skipped = 0;
	c->skipped_process = process;
	c->skipped += c->ticks;
	return 0;
}

/* The sample is on its way, with the weight of those that were skipped. */
static __always_inline void budget_carried(struct cpu_state *c, __u32 weight)
{
	if (weight == c->ticks)
		return;
	stat_add(c, STAT_CARRIED, weight - c->ticks);
	c->skipped = 0;
}

/*
 * Where task work is not to be had: user space can read pages of the target in, which helps the
 * next sample. Asked at most every 134 ms for one address.
 */
static __always_inline void ask_page(struct cpu_state *c, struct py_scratch *s, __u32 layout)
{
	struct page_event *e = (struct page_event *)s->message;
	__u64 id = hash_mix(hash_mix(s->walk.process, s->faults[0].addr), s->sample.ktime_ns >> 27);

	if (!s->walk.faults || is_sent(id))
		return;
	e->kind = EVENT_PAGE;
	e->count = s->walk.faults;
	e->layout = layout;
	e->pid = s->sample.pid;
	__builtin_memcpy(e->ranges, s->faults, sizeof(e->ranges));
	if (bpf_ringbuf_output(&events, e, sizeof(*e), BPF_RB_FORCE_WAKEUP))
		return;
	mark_sent(id);
	stat_add(c, STAT_PAGE, 1);
}

/* Fills in what is known of the tick before the walk. */
static __always_inline void begin_sample(struct py_scratch *s, struct task_struct *task,
					 const struct task_facts *f, const struct proc_row *row,
					 bool is_user, __u64 now)
{
	s->thread.process = f->process;
	s->thread.pointer = task_thread_pointer(task);
	s->thread.runtime = row->runtime;
	s->thread.tid = task->pid;
	s->walk.process = f->process;
	s->walk.salt = now >> 7;
	s->walk.flags = is_user ? 0 : SAMPLE_KERNEL;
	s->walk.depth = 0;
	s->sample.source = SOURCE_TICKS;
	s->sample.cpu = bpf_get_smp_processor_id();
	s->sample.ktime_ns = now;
	s->sample.process = f->process;
	s->sample.pid = f->pid;
	s->sample.tid = f->tid;
	s->part.opcode = OPCODE_NONE;
}

/*
 * A tick of a process that is not known yet: user space, when it has looked, may find that it was
 * no Python, or that its Python had not begun.
 */
VERIFIED_ONCE int send_unidentified(__u64 process, __u32 pid, __u32 tid, __u64 now, __u32 weight)
{
	struct {
		struct sample_event sample;
		struct sample_part part;
	} e = {
		.sample = {
			.kind = EVENT_SAMPLE,
			.source = SOURCE_TICKS,
			.cpu = bpf_get_smp_processor_id(),
			.ktime_ns = now,
			.process = process,
			.value = weight,
			.pid = pid,
			.tid = tid,
		},
		.part = {
			.kind = PART_PYTHON,
			.status = UNWIND_UNIDENTIFIED,
			.opcode = OPCODE_NONE,
		},
	};

	return ring_send(&e, sizeof(e));
}

/* Its stack is free again before the walk, which goes five calls deep. */
static __noinline int find_process(struct cpu_state *c, struct task_struct *task, __u64 now,
				   struct proc_row *out)
{
	return proc_find(c, task, &c->who, now, out);
}

static __always_inline int sample_thread(struct bpf_perf_event_data *ctx, struct cpu_state *c,
					 struct task_struct *task, __u64 now)
{
	__u32 cpu = bpf_get_smp_processor_id();
	const struct task_facts *f = &c->who;
	struct proc_row row = {};
	struct py_scratch *s;
	__u32 weight;
	int r, handed;

	r = find_process(c, task, now, &row);
	if (r == STAT_UNKNOWN)
		send_unidentified(f->process, f->pid, f->tid, now, c->ticks);
	if (r != STAT_RECORDED)
		return r;
	weight = budget_take(c, f->process, now);
	if (!weight)
		return STAT_SKIPPED;
	s = cpu < session.cpus ? scratch_get(cpu) : NULL;
	if (!s)
		return STAT_NO_SCRATCH;
	begin_sample(s, task, f, &row, regs_are_user((struct pt_regs *)&ctx->regs), now);
	s->sample.value = weight;
	if (weight > 1)
		s->walk.flags |= SAMPLE_WEIGHTED;
	introduce(s, task, f, row.layout);
	r = row.runtime ? take_sample(s, c, row.layout) : be_outside(&s->walk);
	if (row.runtime && s->walk.faults && (r == STAT_TSTATE_FAULT || r == STAT_RECORDED)) {
		handed = task_sample_schedule(task, c, s, row.layout);
		if (handed >= 0) {
			budget_carried(c, weight);
			return handed;
		}
		ask_page(c, s, row.layout);
	}
	if (r != STAT_RECORDED)
		return r;
	if (!send_sample(s, c))
		return STAT_RING_FULL;
	budget_carried(c, weight);
	return STAT_RECORDED;
}

/*
 * Ticks that should have come since the one before, while this thread was on the CPU all along: the
 * kernel drops one while a BPF program of another kind runs, and where interrupts are off for too
 * long. Where another ran in between, or none, nobody knows who would have been met: on a CPU that
 * sleeps, above all a virtual one, timers come late or not at all. Only the fair scheduler notes
 * when it gave a thread the CPU; up to its last look at it, some milliseconds ago.
 */
static __always_inline __u64 count_missed(struct cpu_state *c, struct task_struct *task,
					  const struct cpu_ticks *ticks, __u64 now)
{
	__u64 set = ticks->set_ns, period = ticks->period_ns, since = c->tick_ns, missed = 0, ran;
	__u64 period_before = c->period_ns;

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
	if (!missed || (task->policy != SCHED_NORMAL && task->policy != SCHED_BATCH))
		return 0;
	ran = (task->se.sum_exec_runtime - task->se.prev_sum_exec_runtime) / period;
	return (missed < ran ? missed : ran) * c->ticks;
}

/* Whose the tick was that ended like this: a Python process's that is recorded? */
static __always_inline bool is_ours(int r)
{
	return r != STAT_IDLE && r != STAT_NO_MM && r != STAT_FILTERED && r != STAT_NOT_PYTHON;
}

/* What is read of the task that a tick interrupts, by pointers that the verifier knows. */
struct known_task {
	struct task_struct *task, *leader;
	struct pid *pid, *leader_pid; /* only in a PID namespace of our own */
};

/* task_facts_read(), but without calls. */
static __always_inline void known_task_facts(const struct known_task *k, struct task_facts *f)
{
	f->start_ns = k->leader->start_boottime;
	f->exec_id = k->leader->self_exec_id;
	f->pid = k->task->tgid;
	f->tid = k->task->pid;
	task_facts_identify(f);
	if (session.pidns_inode) {
		f->pid = pid_in(k->leader_pid, k->leader_pid->level, session.pidns_inode,
				pidns_level);
		f->tid = pid_in(k->pid, k->pid->level, session.pidns_inode, pidns_level);
	}
}

SEC("perf_event")
int sample(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct known_task k = { .task = task, .leader = task->group_leader };
	bool has_mm = task->mm;
	struct cpu_state *c;
	__u64 now = bpf_ktime_get_ns(), spent, missed;
	__u32 cpu = bpf_get_smp_processor_id();
	struct cpu_ticks *ticks;
	int r;

	/* Here there is one state, in which the verifier looks these pointers up. */
	if (session.pidns_inode) {
		k.pid = task->thread_pid;
		k.leader_pid = k.leader->thread_pid;
	}
	__asm__ volatile("" : "+r"(k.leader), "+r"(k.pid), "+r"(k.leader_pid), "+r"(has_mm));
	c = this_cpu_state();
	ticks = bpf_map_lookup_elem(&cpu_ticks, &cpu);
	if (!c || !ticks)
		return 0;
	c->ticks = *(volatile __u32 *)&ticks->weight;
	if (!c->ticks)
		return 0;
	missed = count_missed(c, task, ticks, now);
	if (!task->tgid) {
		r = STAT_IDLE;
	} else if (!has_mm) {
		r = STAT_NO_MM;
	} else {
		known_task_facts(&k, &c->who);
		r = is_wanted(task, &c->who) ? sample_thread(ctx, c, task, now) : STAT_FILTERED;
	}
	stat_add(c, at_most((__u32)r, STAT_TICK_END - 1), c->ticks);
	if (missed && is_ours(r))
		stat_add(c, STAT_MISSED, missed);
	spent = bpf_ktime_get_ns() - now;
	stat_add(c, STAT_RUN_NS, spent);
	c->budget_ns -= spent;
	return 0;
}
