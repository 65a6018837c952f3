/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * `dump`, of many threads: all of a process that stand still, in one pass, walked by the one who
 * asks. In one object with own.bpf.c.
 */

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define READ_REMOTE
#include "bpf/own.h"
#include "bpf/standstill.h"

#define STILL_NS_MAX 100000000 /* of one walk: pages are waited for, interrupts are on */

__u64 neighbour_process, neighbour_tstate;

struct own_ask still_ask; /* written by user space: runtime and process */
__u64 still_pass;         /* not 0, another one for each pass */
__u32 still_slot;         /* of own_walks and own_scratch: which is for this */

/* A walk each, as long as it needs to be. User space sets the size. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} still_walks SEC(".maps");

static __always_inline void stand_read(struct task_stand *stand, struct task_struct *task)
{
	const struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	stand->switches = task_switches(task);
	stand->exec_start_ns = task->se.exec_start;
	stand->syscall = regs_syscall(regs);
	stand->args[0] = regs_arg(regs, 0);
	stand->args[1] = regs_arg(regs, 1);
	stand->task_state = task->__state;
	stand->cpu = task->thread_info.cpu;
	bpf_probe_read_kernel_str(stand->comm, sizeof(stand->comm), task->comm);
}

static __always_inline int still_look(struct own_walk *w, struct py_scratch *s,
				      struct task_struct *task)
{
	struct py_look look = {
		.loop = { .s = s, .off = &layout, .thread = &s->thread, .door = { task } },
		.frames = w->frames,
		.generation = still_pass
	};
	int r;

	own_begin(w, s, clock_ns() + STILL_NS_MAX);
	__builtin_memset(&w->head, 0, sizeof(w->head));
	neighbour_try(&s->thread);
	r = py_look(&look, &w->head);
	if (!r)
		neighbour_note(s, &layout);
	return r;
}

/* Has it no room for a walk of the greatest depth? */
static __always_inline bool still_walks_are_full(void)
{
	return bpf_ringbuf_query(&still_walks, BPF_RB_RING_SIZE) -
		       bpf_ringbuf_query(&still_walks, BPF_RB_AVAIL_DATA) <
	       2 * sizeof(struct own_walk);
}

/* An iter.s/task over one process's threads, but not by a name that libbpf knows. */
SEC("iterator/task")
int look_at_thread(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct standstill still;
	__u32 slot = still_slot;
	struct own_walk *w = bpf_map_lookup_elem(&own_walks, &slot);
	struct py_scratch *s = bpf_map_lookup_elem(&own_scratch, &slot);
	__u64 bytes;

	if (still_walks_are_full())
		return 1; /* user space empties it, and comes back for this thread */
	if (!task || !w || !s || task->flags & PF_EXITING || !standstill_begin(task, &still))
		return 0;
	w->asked = still_ask;
	w->asked.pointer = task_pthread_self(task, &layout);
	w->asked.tid = task->pid;
	stand_read(&w->stand, task);
	w->result = still_look(w, s, task);
	w->state = standstill_lasts(task, &still) ? OWN_DONE : OWN_MOVED;
	bytes = at_most(w->head.depth, FRAMES_MAX) * sizeof(struct walk_frame);
	bpf_ringbuf_output(&still_walks, w, __builtin_offsetof(struct own_walk, frames) + bytes,
			   BPF_RB_NO_WAKEUP);
	return 0;
}
