/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Which processes there are, for kernels without type information of their own (`record --btf`),
 * and so without iterators. Run by BPF_PROG_TEST_RUN: within rcu_read_lock(), under which the list
 * of all processes can be followed from ours on, until it is back there.
 */

#define OLD_KERNEL

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/session.h"

/* Number -> a process. Written by walk_tasks, mapped by user space. User space sets the size. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct task_record);
} walked_tasks SEC(".maps");

struct task_struct *walked_first, *walked_next;
__u32 walked_count; /* of walked_tasks that are filled in */

#define WALK_CHUNKS (WALKED_TASKS_MAX / STEPS_CHUNK)

static __always_inline void walk_note(struct task_struct *task)
{
	__u32 number = walked_count;
	struct task_record *r = bpf_map_lookup_elem(&walked_tasks, &number);
	struct task_facts f;

	task_facts_read(task, &f);
	if (!r || !f.pid)
		return;
	task_record_fill(r, task, &f);
	walked_count = number + 1;
}

static int walk_step(__u32 i, void *none)
{
	struct task_struct *task = walked_next;
	struct list_head *next = BPF_CORE_READ(task, tasks.next);

	walk_note(task);
	if (!next)
		return LOOP_STOP; /* it is no task */
	walked_next = (void *)next - bpf_core_field_offset(struct task_struct, tasks);
	return walked_next == walked_first ? LOOP_STOP : LOOP_NEXT;
}

LOOP_STEP(walk_step)

VERIFIED_ONCE_NUMBERS int walk_step_once(__u32 i)
{
	return walk_step(i, NULL);
}

VERIFIED_ONCE_NUMBERS int walk_step_chunk(__u32 from)
{
	for (__u32 i = 0; i < STEPS_CHUNK; i++)
		if (walk_step_once(from + i) != LOOP_NEXT)
			return LOOP_STOP;
	return LOOP_NEXT;
}

SEC("raw_tp")
int walk_tasks(void *ctx)
{
	struct task_struct *own = task_current();

	pidns_level = BPF_CORE_READ(own, thread_pid, level);
	walked_first = walked_next = BPF_CORE_READ(own, group_leader);
	walked_count = 0;
	LOOP(WALKED_TASKS_MAX, walk_step, NULL);
	return 0;
}
