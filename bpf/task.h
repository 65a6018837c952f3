/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_TASK_H
#define BPF_TASK_H

/*
 * task_struct by CO-RE. Differences between kernels are handled here and nowhere else.
 *
 * A pointer that is loaded from a task_struct as the verifier knows it has the verifier of 6.18
 * search all of the kernel's types by name, a third of a millisecond each time and in each state.
 * So pointers are read by bpf_probe_read_kernel(), and what they lead to, too; but where each
 * sample would pay for that.
 */

#include "bpf/cache.h"

/* include/linux/sched.h */
#define PF_EXITING 0x4
#define PF_FORKNOEXEC 0x40
#define PF_KTHREAD 0x200000

/* Whose a task is. */
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
static __always_inline struct upid pid_number(struct pid *pid, __u32 level)
{
	struct upid u = {};
	void *numbers = (void *)pid + bpf_core_field_offset(struct pid, numbers);

	bpf_probe_read_kernel(&u, sizeof(u), numbers + level * sizeof(u));
	return u;
}

/*
 * A field of a struct that the verifier knows where it is: the current task, or what it is handed.
 * Verifiers of old kernels know none, and it is read as all else is.
 */
#ifdef OLD_KERNEL
#define known_field(p, field)             \
	({                                \
		__typeof__(p) _p = (p);   \
		BPF_CORE_READ(_p, field); \
	})
#else
#define known_field(p, field) ((p)->field)
#endif

/* How often it has left a CPU. task: known_field() reads it. */
static __always_inline __u64 task_switches(struct task_struct *task)
{
	return known_field(task, nvcsw) + known_field(task, nivcsw);
}

static __always_inline struct task_struct *task_current(void)
{
#ifdef OLD_KERNEL
	return (struct task_struct *)bpf_get_current_task();
#else
	return bpf_get_current_task_btf();
#endif
}

/* Looked at anew each time. */
static __always_inline bool task_is_on_cpu(struct task_struct *task)
{
	return ((volatile struct task_struct *)task)->on_cpu;
}

/* Is it known how long a task was in line for a CPU? With CONFIG_SCHED_INFO and
 * CONFIG_FAIR_GROUP_SCHED, as distributions have them. */
static __always_inline bool may_know_queue(void)
{
	return bpf_core_field_exists(struct task_struct, sched_info) &&
	       bpf_core_field_exists(struct sched_entity, cfs_rq);
}

/* In its own, innermost namespace. */
static __always_inline __u32 task_ns_pid(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);

	return pid_number(pid, BPF_CORE_READ(pid, level)).nr;
}

/*
 * In the namespace of this inode, so many levels down. 0: not in it. pid_level: that of the pid, in
 * whose innermost namespace it is.
 */
static __always_inline __u32 pid_in(struct pid *pid, __u32 pid_level, __u32 pidns_inode,
				    __u32 level)
{
	struct upid u;

	if (pid_level < level)
		return 0;
	u = pid_number(pid, level);
	return BPF_CORE_READ(u.ns, ns.inum) == pidns_inode ? u.nr : 0;
}

static __always_inline __u32 task_pid_in(struct task_struct *task, __u32 pidns_inode, __u32 level)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);

	return pid_in(pid, BPF_CORE_READ(pid, level), pidns_inode, level);
}

static __always_inline bool task_is_forked(struct task_struct *task)
{
	return BPF_CORE_READ(task, group_leader, flags) & PF_FORKNOEXEC;
}

/*
 * A family is the processes of one user that were forked from one program. Its mark is where the
 * program's stack begins, which exec draws at random. Processes of another user are another family:
 * who may not write to a process's memory names none of its functions.
 */
static __always_inline __u64 task_family(struct task_struct *task)
{
	return hash_mix(BPF_CORE_READ(task, mm, start_stack), BPF_CORE_READ(task, cred, fsuid.val));
}

/* pthread_self(), by which Python knows the thread. On arm64 as it was when the thread last left a
 * CPU, or began; exec leaves it as it was before. */
static __always_inline __u64 task_pthread_self(struct task_struct *task,
					       const struct py_offsets *off)
{
#if defined(__TARGET_ARCH_x86)
	return known_field(task, thread.fsbase);
#else
	return known_field(task, thread.uw.tp_value) - off->pthread_bytes;
#endif
}

/* For py_thread.leader. */
static __always_inline __u32 task_unseen_leader(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return 0;
#else
	return known_field(task, pid) == known_field(task, tgid) ? task_ns_pid(task) : 0;
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

/* Of a thread in the kernel: the system call it is in; < 0: in none. */
static __always_inline __s64 regs_syscall(const struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->orig_ax;
#else
	return regs->syscallno;
#endif
}

/* The first (0) or the second (1) argument of that. */
static __always_inline __u64 regs_arg(const struct pt_regs *regs, int which)
{
#if defined(__TARGET_ARCH_x86)
	return which ? regs->si : regs->di;
#else
	return which ? regs->user_regs.regs[1] : regs->orig_x0;
#endif
}

static __always_inline __u64 regs_sp(const struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->sp;
#else
	return regs->user_regs.sp;
#endif
}

static __always_inline const void *regs_ip_at(const struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return &regs->ip;
#else
	return &regs->user_regs.pc;
#endif
}

#endif
