/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_STANDSTILL_H
#define BPF_STANDSTILL_H

/* Threads that are looked at by another one: does it stand still, and where is its thread state? */

#include "bpf/python_thread.h"
#include "bpf/task.h"

/*
 * A thread that is off the CPU and has not been switched to since it was looked at: what it keeps
 * in memory, nobody changes meanwhile.
 */
struct standstill {
	__u64 switches;
};

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

/*
 * CPython puts a new thread in front of its list, and tasks are visited in the order of their
 * numbers: so the thread state before the last one's is likely the next one's. Else each search
 * would go through all of them.
 */
extern __u64 neighbour_process, neighbour_tstate;

static __always_inline void neighbour_try(const struct py_thread *t)
{
	if (neighbour_tstate && neighbour_process == t->process &&
	    !thread_cache_get(t->process, t->tid))
		thread_cache_put(t->process, t->tid, neighbour_tstate);
}

static __always_inline void neighbour_note(struct py_scratch *s, const struct py_offsets *off)
{
	neighbour_process = s->thread.process;
	neighbour_tstate = tstate_u64(s, off->tstate_prev);
}

#endif
