/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PYTHON_MET_H
#define BPF_PYTHON_MET_H

/* Who the thread is that a walk meets, as the kernel knows it. */

#include "bpf/python.h"

#ifdef READ_USER_FROM_HOST
/* Brought by whoever compiles the walk. Fills in all but is_met. */
void met_read(struct door door, struct py_met *met);
#else
#include "bpf/task.h"

/* stack_end is left as it is. */
static __always_inline void met_read(struct door door, struct py_met *met)
{
#ifdef READ_REMOTE
	struct task_struct *task = door.task;
#else
	struct task_struct *task = task_current();
#endif

	met->tid = task_ns_pid(task);
	met->is_first = known_field(task, pid) == known_field(task, tgid);
	met->is_forked = task_is_forked(task);
#ifdef OLD_KERNEL
	met->sp = 0;
#else
	met->sp = regs_sp((struct pt_regs *)bpf_task_pt_regs(task));
#endif
}
#endif

#endif
