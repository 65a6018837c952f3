/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_TASK_H
#define BPF_TASK_H

/* task_struct by CO-RE. Differences between kernels are handled here and nowhere else. */

#include "bpf/cache.h"

/*
 * Whose a task is, read once: for each pointer in a task_struct that is followed, and in each state
 * in which it is, the verifier of 6.18 searches all of the kernel's types by name, a third of a
 * millisecond each.
 */
struct task_facts {
	__u64 process;  /* one that runs one program: another after exec, or with the pid used again
			 */
	__u64 start_ns; /* task_struct.start_boottime of the leader */
	__u32 exec_id;  /* task_struct.self_exec_id of the leader */
	__u32 pid;      /* of the process, and */
	__u32 tid;      /* of the thread, as our own PID namespace has them; 0: it has not */
	__u32 reserved;
};

/* A task's number in one of the PID namespaces it is in; level 0: the initial one. */
static __always_inline struct upid task_upid(struct task_struct *task, __u32 level)
{
	struct upid u = {};
	void *numbers = (void *)task->thread_pid + bpf_core_field_offset(struct pid, numbers);

	bpf_probe_read_kernel(&u, sizeof(u), numbers + level * sizeof(u));
	return u;
}

/* In its own, innermost namespace. */
static __always_inline __u32 task_ns_pid(struct task_struct *task)
{
	return task_upid(task, task->thread_pid->level).nr;
}

/* In the namespace of this inode, 0 being the initial one, so many levels down. 0: not in it. */
static __always_inline __u32 task_pid_in(struct task_struct *task, __u32 pidns_inode, __u32 level)
{
	struct upid u;

	if (!pidns_inode)
		return task->pid;
	if (task->thread_pid->level < level)
		return 0;
	u = task_upid(task, level);
	return BPF_CORE_READ(u.ns, ns.inum) == pidns_inode ? u.nr : 0;
}

/* pthread_self on x86-64 (glibc, musl). arm64: the raw thread pointer. */
static __always_inline __u64 task_thread_pointer(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return task->thread.fsbase;
#else
	return task->thread.uw.tp_value;
#endif
}

static __always_inline struct binary_key file_key(struct file *file)
{
	struct binary_key key = {};

	if (file) {
		key.inode = BPF_CORE_READ(file, f_inode, i_ino);
		key.dev = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
	}
	return key;
}

static __always_inline bool regs_are_user(const struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->cs & 3;
#else
	return !(regs->user_regs.pstate & 0xc); /* PSR_MODE_EL0t */
#endif
}

static __always_inline __u64 regs_ip(const struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->ip;
#else
	return regs->user_regs.pc;
#endif
}

#endif
