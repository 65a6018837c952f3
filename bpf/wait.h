/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_WAIT_H
#define BPF_WAIT_H

/*
 * Why a thread is off the CPU: by the state that it left it in and the system call that it is in,
 * whose number and arguments are still in its registers when it comes back.
 */

#include "bpf/session.h"
#include "bpf/syscalls.h"
#include "bpf/task.h"
#include "bpf/times.h"
#include "bpf/verifier.h"

/* task_struct.__state, a bit mask (include/linux/sched.h) */
#define STATE_INTERRUPTIBLE 0x1
#define STATE_UNINTERRUPTIBLE 0x2
#define STATE_STOPPED 0x800c /* stopped, traced, frozen */

/* The system call that a thread is in, and its first two arguments. */
struct wait_call {
	__s64 number; /* < 0: in none */
	__u64 args[2];
};

static __always_inline struct wait_call regs_call(const struct pt_regs *regs)
{
	return (struct wait_call){ regs_syscall(regs), { regs_arg(regs, 0), regs_arg(regs, 1) } };
}

/* Where a thread's registers are is the same all its life, and bpf_task_pt_regs() takes 30 ns. */
static __always_inline void times_note_regs(struct thread_times *t, struct task_struct *task)
{
	if (!t->regs)
		t->regs = bpf_task_pt_regs(task);
}

/* The call of the current task, whose registers were noted. */
static __always_inline struct wait_call times_call_of_current(const struct thread_times *t)
{
	if (!session.regs_type)
		return regs_call((struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf()));
	return regs_call(rdonly_cast((const void *)t->regs, session.regs_type));
}

/* The same of any task, slower. */
static __always_inline struct wait_call times_call_apart(const struct thread_times *t)
{
	struct pt_regs regs = {};

	bpf_probe_read_kernel(&regs, sizeof(regs), (const void *)t->regs);
	return regs_call(&regs);
}

/* Is it futex(2), waiting? */
static __always_inline bool call_waits_for_futex(struct wait_call call)
{
	return syscall_waits_for_futex(call.number, call.args[1]);
}

/*
 * enum wait_reason of a thread that is off the CPU as t says. Not in a system call: a page fault
 * has it wait, which is not interruptible. sched_yield: what free-threaded Python does before it
 * sleeps for a lock. What kind of file is read or written is wait_of_file()'s.
 */
static __always_inline __u8 wait_reason(const struct thread_times *t, struct wait_call call)
{
	if (t->waits_for_gil)
		return WAIT_GIL;
	if (t->out_preempt)
		return WAIT_RUNNABLE;
	if (!t->out_state)
		return call.number == SYSCALL_SCHED_YIELD ? WAIT_LOCK : WAIT_RUNNABLE;
	if (t->out_state & STATE_STOPPED)
		return WAIT_STOPPED;
	if (call.number < 0)
		return t->out_state & STATE_UNINTERRUPTIBLE ? WAIT_FAULT : WAIT_OTHER;
	return wait_of_syscall(call.number, call.args[0], call.args[1]);
}

static const __u8 wait_classes[WAIT_COUNT_] = {
#define X(reason, class) [reason] = class,
	WAIT_REASONS(X)
#undef X
};

static __always_inline __u8 wait_class(__u8 reason)
{
	return wait_classes[at_most(reason, WAIT_COUNT_ - 1)];
}

static __always_inline __u32 task_file_type(struct task_struct *task, __u32 fd)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file *file = NULL, **files = BPF_CORE_READ(table, fd);

	if (fd >= BPF_CORE_READ(table, max_fds) ||
	    bpf_probe_read_kernel(&file, sizeof(file), files + fd) || !file)
		return 0;
	return BPF_CORE_READ(file, f_inode, i_mode) & MODE_TYPE;
}

/* The reason, where it is READ or WRITE of a file, by what kind of file it is. */
static __always_inline __u8 wait_of_file(struct task_struct *task, struct wait_call call,
					 __u8 reason)
{
	if (reason != WAIT_READ_FILE && reason != WAIT_WRITE_FILE)
		return reason;
	return wait_of_file_type(reason, task_file_type(task, call.args[0]));
}

/* Returns the number of the system call, where the reason does not say enough. */
static __always_inline __u16 wait_syscall(struct wait_call call, __u8 reason)
{
	return reason == WAIT_OTHER ? call.number : SYSCALL_NONE;
}

#endif
