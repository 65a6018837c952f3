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
#include "bpf/standstill.h"

#define CGROUP_LEVELS 64

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

/* Number of the work space of remote walks, below REMOTE_SCRATCHES. One walk runs at a time, and
 * each that was left behind keeps its own work space. User space writes it before a pass. */
__u32 remote_scratch;

static __always_inline struct py_scratch *scratch_get_remote(void)
{
	return scratch_get(
		scratch_shared(session.task_scratches + (remote_scratch & (REMOTE_SCRATCHES - 1))));
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
	__u32 layout = row->layout & (LAYOUTS_MAX - 1);
	struct door door = { task };
	int r;

	begin_sample(s, task, f, row, now);
	s->sample.flags = SAMPLE_KERNEL;
	begin_walk(s, ACCESS_REMOTE);
	introduce_another(task, s, f, layout);
	if (!row->runtime)
		return be_outside(s);
	neighbour_try(&s->thread);
	remote_find_tstate(task, s, layout);
	r = remote_take_found(task, s, c, layout);
	label_sample(door, s, layout, r);
	if (r == STAT_RECORDED && s->walk.status != UNWIND_OUTSIDE)
		neighbour_note(s, &layouts[layout & (LAYOUTS_MAX - 1)]);
	return r;
}

#endif
