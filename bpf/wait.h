/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_WAIT_H
#define BPF_WAIT_H

/*
 * Why a thread is off the CPU: by the state that it left it in and the system call that it is in,
 * whose number and arguments are still in its registers when it comes back.
 */

#include "bpf/syscalls.h"
#include "bpf/task.h"
#include "bpf/times.h"
#include "bpf/verifier.h"

/* task_struct.__state, a bit mask (include/linux/sched.h) */
#define STATE_INTERRUPTIBLE 0x1
#define STATE_UNINTERRUPTIBLE 0x2
#define STATE_STOPPED 0x800c /* stopped, traced, frozen */

/* futex(2): what of its operation is no flag, and those that wait for a word to change. */
#define FUTEX_COMMAND 0x7f
#define FUTEX_COMMANDS_THAT_WAIT                                                  \
	(1U << 0 /* WAIT */ | 1U << 6 /* LOCK_PI */ | 1U << 9 /* WAIT_BITSET */ | \
	 1U << 11 /* REQUEUE_PI */ | 1U << 13 /* LOCK_PI2 */)

/* Is it in futex(2), waiting? */
static __always_inline bool regs_wait_for_futex(const struct pt_regs *regs)
{
	__u32 command = regs_arg(regs, 1) & FUTEX_COMMAND;

	return regs_syscall(regs) == SYSCALL_FUTEX && command < 32 &&
	       FUTEX_COMMANDS_THAT_WAIT & 1U << command;
}

/* Sleeping is also waiting for any of no files: that is how time.sleep() does it up to 3.10. */
static __always_inline bool polls_nothing(const struct pt_regs *regs, __s64 nr)
{
	if (nr == SYSCALL_SELECT || nr == SYSCALL_PSELECT6)
		return !regs_arg(regs, 0);
	return (nr == SYSCALL_POLL || nr == SYSCALL_PPOLL) && !regs_arg(regs, 1);
}

static __always_inline __u8 wait_of_syscall(const struct pt_regs *regs, __s64 nr)
{
	__u8 reason;

	if ((__u64)nr >= SYSCALLS)
		return WAIT_OTHER;
	reason = syscall_waits[at_most(nr, SYSCALLS - 1)];
	if (reason == WAIT_POLL && polls_nothing(regs, nr))
		return WAIT_SLEEP;
	if (nr == SYSCALL_FUTEX && !regs_wait_for_futex(regs))
		return WAIT_OTHER;
	return reason ? reason : WAIT_OTHER;
}

/*
 * enum wait_reason of a thread that is off the CPU as t says. Not in a system call: a page fault
 * has it wait, which is not interruptible. sched_yield: what free-threaded Python does before it
 * sleeps for a lock. What kind of file is read or written is wait_of_file()'s.
 */
static __always_inline __u8 wait_reason(const struct thread_times *t, const struct pt_regs *regs)
{
	__s64 nr = regs_syscall(regs);

	if (t->waits_for_gil)
		return WAIT_GIL;
	if (t->out_preempt)
		return WAIT_RUNNABLE;
	if (!t->out_state)
		return nr == SYSCALL_SCHED_YIELD ? WAIT_LOCK : WAIT_RUNNABLE;
	if (t->out_state & STATE_STOPPED)
		return WAIT_STOPPED;
	if (nr < 0)
		return t->out_state & STATE_UNINTERRUPTIBLE ? WAIT_FAULT : WAIT_OTHER;
	return wait_of_syscall(regs, nr);
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

/* include/uapi/linux/stat.h */
#define MODE_TYPE 0xf000
#define MODE_FIFO 0x1000
#define MODE_SOCKET 0xc000

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
static __always_inline __u8 wait_of_file(struct task_struct *task, const struct pt_regs *regs,
					 __u8 reason)
{
	__u32 type;

	if (reason != WAIT_READ_FILE && reason != WAIT_WRITE_FILE)
		return reason;
	type = task_file_type(task, regs_arg(regs, 0));
	if (type == MODE_SOCKET)
		return reason == WAIT_READ_FILE ? WAIT_READ_SOCKET : WAIT_WRITE_SOCKET;
	if (type == MODE_FIFO)
		return reason == WAIT_READ_FILE ? WAIT_READ_PIPE : WAIT_WRITE_PIPE;
	return reason;
}

#endif
