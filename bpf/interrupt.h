/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_INTERRUPT_H
#define BPF_INTERRUPT_H

/*
 * A sample of the thread that a program interrupts: whose it is, whether there is time for it,
 * taken, or handed to task work.
 */

#include "bpf/budget.h"
#include "bpf/discover.h"
#include "bpf/gil.h"
#include "bpf/sampler.h"
#include "bpf/times_slot.h"
#ifndef OLD_KERNEL
#include "bpf/task_work.h"
#endif

/* What is read of the interrupted task, by pointers that the verifier knows. */
struct known_task {
	struct task_struct *task, *leader;
	struct pid *pid, *leader_pid; /* only in a PID namespace of our own */
	bool has_mm;
};

/* Where the program begins: there is one state then, in which the verifier looks the pointers up.
 */
static __always_inline void known_task_read(struct known_task *k)
{
	k->task = task_current();
	k->leader = known_field(k->task, group_leader);
	k->pid = k->leader_pid = NULL;
	k->has_mm = known_field(k->task, mm);
	if (session.pidns_inode) {
		k->pid = known_field(k->task, thread_pid);
		k->leader_pid = known_field(k->leader, thread_pid);
	}
	__asm__ volatile("" : "+r"(k->leader), "+r"(k->pid), "+r"(k->leader_pid), "+r"(k->has_mm));
}

/* task_facts_read(), but without calls. */
static __always_inline void known_task_facts(const struct known_task *k, struct task_facts *f)
{
	f->start_ns = known_field(k->leader, start_boottime);
	f->exec_id = known_field(k->leader, self_exec_id);
	f->pid = known_field(k->task, tgid);
	f->tid = known_field(k->task, pid);
	task_facts_identify(f);
	if (session.pidns_inode) {
		f->pid = pid_in(k->leader_pid, known_field(k->leader_pid, level),
				session.pidns_inode, pidns_level);
		f->tid = pid_in(k->pid, known_field(k->pid, level), session.pidns_inode,
				pidns_level);
	}
}

VERIFIED_ONCE int send_unidentified(struct py_scratch *s, const struct task_facts *f,
				    const struct sampler_call *call, __u64 now)
{
	if (!s || !f || !call)
		return 0; /* for the verifier */
	return tell_unidentified((void *)s->message, f, call->source, call->event, call->value, now,
				 0);
}

/* Its stack is free again before the walk, which goes five calls deep. */
#ifdef OLD_KERNEL
int find_old_process(__u64 now); /* bpf/old.bpf.c */
int introduce_old(__u32 layout);

static __always_inline int find_process(struct cpu_state *c, __u64 now)
{
	return find_old_process(now);
}

static __always_inline void introduce_thread(struct cpu_state *c, struct py_scratch *s)
{
	introduce_old(c->row.layout);
}
#else
VERIFIED_ONCE int find_process(struct cpu_state *c, __u64 now)
{
	return c ? proc_find(c, now) : STAT_NO_SCRATCH;
}

static __always_inline void introduce_thread(struct cpu_state *c, struct py_scratch *s)
{
	introduce_current(s, &c->who, c->row.layout);
}
#endif

/* The work space of this CPU and source, for those that nothing of their source interrupts. */
static __always_inline __u32 scratch_own(__u32 source)
{
	return session.scratch_row[source] * session.cpus + bpf_get_smp_processor_id();
}

/*
 * For how long others wait, in this tick, for the GIL that the thread was just found to hold. If
 * nobody saw it come back from a wait of its own, it still counts as one. Spans are not recorded on
 * old kernels.
 */
VERIFIED_ONCE int note_waiters(struct py_scratch *s, struct thread_times *own,
			       struct thread_times *leader)
{
	__u64 gil, waiters;

	if (!s || !session.has_spans)
		return 0;
	s->sample.blocked_ns = 0;
	if (!leader)
		return 0;
	gil = s->sample.gil;
	if (own)
		gil_note(own, &s->sample);
	if (!gil && !leader->has_more_gils)
		s->sample.gil = gil = leader->first_gil;
	waiters = gil ? gil_waiters(leader, gil) : 0;
	if (waiters && own && own->is_counted && own->gil == gil)
		waiters--;
	s->sample.blocked_ns = waiters * session.span_ns * s->sample.value;
	return 0;
}

static __always_inline void note_waiters_of_current(struct py_scratch *s)
{
	struct task_struct *task = bpf_get_current_task_btf();

	note_waiters(s, times_get(task), times_get(task->group_leader));
}

#ifdef OLD_KERNEL
static __always_inline bool has_long_walks(struct task_struct *task, const struct py_thread *t)
{
	return false;
}

static __always_inline void note_long_walk(const struct py_thread *t)
{
}
#else
/* Not one that ends: it would come to that without its memory. */
static __always_inline bool has_long_walks(struct task_struct *task, const struct py_thread *t)
{
	return *(volatile __u8 *)long_walk_of(t) && !(known_field(task, flags) & PF_EXITING);
}

static __always_inline void note_long_walk(const struct py_thread *t)
{
	*long_walk_of(t) = 1;
}
#endif

/* Did the walk end for want of time? */
static __always_inline bool is_late(const struct py_scratch *s, int r)
{
	return r == STAT_TSTATE_LATE || (r == STAT_RECORDED && s->walk.status == UNWIND_LATE);
}

static __always_inline bool has_missed_pages(const struct py_scratch *s, int r)
{
	return s->walk.faults && (r == STAT_TSTATE_FAULT || r == STAT_RECORDED);
}

static __always_inline int walk_and_label(struct cpu_state *c, struct py_scratch *s)
{
	const struct proc_row *row = &c->row;
	int r = row->runtime ? take_sample(s, c, row->layout) : be_outside(s);

	label_sample((struct door){}, s, row->layout, r);
	return r;
}

/* Returns as task_sample_schedule(). */
static __always_inline int hand_over(const struct sampler_call *call, struct task_struct *task,
				     struct cpu_state *c, struct py_scratch *s, __u32 layout)
{
#ifdef OLD_KERNEL
	return -1;
#else
	return task_sample_schedule(call, task, c, s, layout);
#endif
}

/*
 * Takes the sample that s->sample describes. may_hand_over: where the thread can be had to read in
 * the pages that are missing, and to walk for longer than interrupts may be off.
 */
static __always_inline int walk_and_send(const struct sampler_call *call, struct cpu_state *c,
					 struct task_struct *task, struct py_scratch *s,
					 bool may_hand_over)
{
	struct skipped *skipped = skipped_of(c, call->event);
	const struct proc_row *row = &c->row;
	int r, handed;

	begin_walk(s, call->access);
	introduce_thread(c, s);
	s->walk.faults = 0;
	s->walk.outcome = STAT_TSTATE_LATE;
	if (!may_hand_over || !has_long_walks(task, &s->thread))
		s->walk.outcome = walk_and_label(c, s);
	r = *(volatile __s32 *)&s->walk.outcome; /* for the verifier: one state */
	if (session.has_spans && call->source == SOURCE_TICKS)
		note_waiters_of_current(s);
	if (may_hand_over && (is_late(s, r) || has_missed_pages(s, r))) {
		if (is_late(s, r))
			note_long_walk(&s->thread);
		handed = hand_over(call, task, c, s, row->layout);
		if (handed >= 0) {
			budget_carried(c, skipped, s->sample.value > call->value);
			return handed;
		}
		if (is_late(s, r)) { /* it is the only chance of this sample */
			s->walk.time_max_ns = TIME_MAX_NS;
			r = walk_and_label(c, s);
		}
	}
	if (has_missed_pages(s, r))
		ask_page(c, s, row->layout);
	if (r == STAT_RECORDED && !send_sample(s, c))
		return STAT_RING_FULL;
	if (r == STAT_RECORDED || r == STAT_NOT_ASKED)
		budget_carried(c, skipped, s->sample.value > call->value);
	return r;
}

/* Finds whose the interrupted thread is. Returns STAT_RECORDED: to be sampled; else a counter. */
static __always_inline int find_interrupted(const struct sampler_call *call, struct cpu_state *c,
					    const struct known_task *k, __u64 now)
{
	if (!known_field(k->task, tgid))
		return STAT_IDLE;
	if (!k->has_mm)
		return STAT_NO_MM;
	known_task_facts(k, &c->who);
	if (!is_wanted(k->task, &c->who))
		return STAT_FILTERED;
	budget_fill(c, call->share, call->saved_max_ns, now);
	return find_process(c, now);
}

/*
 * Samples the thread of which find_interrupted() returned r, or tells that its process is not
 * identified. regs: where the thread was interrupted; NULL: in the kernel. Returns the counter that
 * the call ends in.
 */
static __always_inline int sample_interrupted(const struct sampler_call *call, struct cpu_state *c,
					      struct task_struct *task, const struct pt_regs *regs,
					      int r, __u64 now)
{
	struct skipped *skipped = skipped_of(c, call->event);
	const struct task_facts *f = &c->who;
	struct py_scratch *s;
	bool is_tick = call->source == SOURCE_TICKS, is_allowed;

	if (r != STAT_UNKNOWN && r != STAT_RECORDED)
		return r;
	s = scratch_get(call->scratch);
	if (!s)
		return STAT_NO_SCRATCH;
	if (r == STAT_UNKNOWN) {
		send_unidentified(s, f, call, now);
		return r;
	}
	if (is_tick) {
		thrift_keep(c, now, TICK_THRIFT_MAX);
		is_allowed = budget_allows_tick(c, skipped, call->count, ring_stride());
	} else {
		is_allowed = budget_allows_event(c, skipped, call->value, call->enough);
	}
	s->sample.value = budget_take(skipped, is_tick ? SKIPPED_OF_ANY : f->process, call->value,
				      call->count, is_allowed);
	if (!s->sample.value)
		return STAT_SKIPPED;
	s->sample.source = call->source;
	begin_sample(s, task, f, &c->row, now);
	s->sample.event = call->event;
	s->sample.flags = regs && regs_are_user(regs) ? 0 : SAMPLE_KERNEL;
	if (s->sample.value > call->value || call->count > 1)
		s->sample.flags |= SAMPLE_WEIGHTED;
	return walk_and_send(call, c, task, s, session.has_task_work);
}

#endif
