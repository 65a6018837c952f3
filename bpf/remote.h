/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_REMOTE_H
#define BPF_REMOTE_H

/*
 * A sample of another thread, which does not run: by the same walk, whose reads find that thread's
 * memory and wait for its pages. For iterators that may sleep; whoever includes this has defined
 * READ_REMOTE before anything else.
 */

#include "bpf/discover.h"
#include "bpf/sampler.h"

#define REMOTE_TIME_MAX_NS 100000000 /* of one walk: pages are waited for, interrupts are on */
#define CGROUP_LEVELS 64

/*
 * A thread that is off the CPU and has not been switched to since it was looked at: what it keeps
 * in memory, nobody changes meanwhile.
 */
struct standstill {
	__u64 switches;
};

static __always_inline __u64 task_switches(struct task_struct *task)
{
	return task->nvcsw + task->nivcsw;
}

/* False: it runs. */
static __always_inline bool standstill_begin(struct task_struct *task, struct standstill *still)
{
	still->switches = task_switches(task);
	return !task_is_on_cpu(task);
}

/*
 * Has it lasted? The kernel counts a switch before it clears on_cpu, so that is looked at first:
 * who ran in between and is off again has another count by then.
 */
static __always_inline bool standstill_lasts(struct task_struct *task,
					     const struct standstill *still)
{
	__u64 order = 0;

	if (task_is_on_cpu(task))
		return false;
	__sync_lock_test_and_set(&order, 1); /* a full barrier */
	return task_switches(task) == still->switches;
}

/* In the cgroup of this id (version 2), or below it? */
static __always_inline bool task_is_in_cgroup(struct task_struct *task, __u64 id)
{
	struct cgroup *group = BPF_CORE_READ(task, cgroups, dfl_cgrp);

	for (int i = 0; i < CGROUP_LEVELS && group; i++) {
		if (BPF_CORE_READ(group, kn, id) == id)
			return true;
		group = BPF_CORE_READ(group, self.parent, cgroup);
	}
	return false;
}

/* As is_wanted(), of a task that is not the current one. */
static __always_inline bool is_remote_wanted(struct task_struct *task, const struct task_facts *f)
{
	if (!f->pid || f->pid == session.own_pid)
		return false;
	if (session.target_pidns &&
	    !task_pid_in(BPF_CORE_READ(task, group_leader), session.target_pidns,
			 pidns_level + session.target_pidns_depth))
		return false;
	return !session.has_cgroup || task_is_in_cgroup(task, session.cgroup_id);
}

/* The work space of remote walks, of which there is one at a time. */
static __always_inline struct py_scratch *scratch_get_remote(void)
{
	return scratch_get(scratch_shared(TASK_SCRATCHES));
}

/*
 * CPython puts a new thread in front of its list, and tasks are visited in the order of their
 * numbers: so the thread state before the last one's is likely the next one's. Else each search
 * would go through all of them.
 */
extern __u64 neighbour_process, neighbour_tstate;

static __always_inline void neighbour_try(const struct py_thread *t)
{
	if (neighbour_tstate && neighbour_process == t->process)
		cache_put(thread_cache, THREAD_SLOTS, py_thread_key(t), neighbour_tstate);
}

static __always_inline void neighbour_note(struct py_scratch *s, __u32 layout)
{
	const struct py_offsets *off = &layouts[layout & (LAYOUTS_MAX - 1)];

	neighbour_process = s->thread.process;
	neighbour_tstate = tstate_u64(s, off->tstate_prev);
}

/*
 * Walks a thread that stands still. Returns STAT_RECORDED when s->sample and what follows are to be
 * sent, but for its source, value and what belongs to a span, and if it still stands then; else the
 * counter that says why there is none. Names are sent already.
 */
static __always_inline int walk_remote(struct py_scratch *s, struct cpu_state *c,
				       struct task_struct *task, const struct task_facts *f,
				       const struct proc_row *row, __u64 now)
{
	__u32 layout = at_most(row->layout, LAYOUTS_MAX - 1);
	struct door door = { task };
	int r;

	begin_sample(s, task, f, row->runtime, now);
	s->sample.flags = SAMPLE_KERNEL;
	begin_walk(s, ACCESS_REMOTE);
	introduce(door, s, task, f, layout);
	if (!row->runtime)
		return be_outside(s);
	neighbour_try(&s->thread);
	r = take_sample_by(door, s, c, layout, REMOTE_TIME_MAX_NS);
	label_sample(door, s, layout, r);
	if (r == STAT_RECORDED && s->walk.status != UNWIND_OUTSIDE)
		neighbour_note(s, layout);
	return r;
}

#endif
