/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef VMLINUX_VMLINUX_H
#define VMLINUX_VMLINUX_H
#define __VMLINUX_H__ /* for bpf_tracing.h: registers have the kernel's names */

/*
 * The kernel types our BPF programs name, and of these only the members they read. CO-RE relocates
 * each access against the running kernel's BTF, so offsets, order and missing members do not
 * matter here; names and types do. README.md beside this file says how to check and extend it.
 */

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef _Bool bool;
typedef int pid_t;
typedef u32 dev_t;

enum { false = 0, true = 1 };

/* UAPI values (include/uapi/linux/bpf.h): never renumbered. */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_CGROUP_ARRAY = 8,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_F_NO_PREALLOC = 1,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
	BPF_RB_AVAIL_DATA = 0,
	BPF_RB_RING_SIZE = 1,
	BPF_F_MMAPABLE = 1024,
};

/* ABI of the user-visible register frame, not subject to CO-RE. */
#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax;
	unsigned long ip, cs, flags, sp, ss;
};
typedef struct pt_regs bpf_user_pt_regs_t;
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp, pc, pstate;
};
struct pt_regs {
	struct user_pt_regs user_regs;
	__u64 orig_x0;
	__s32 syscallno;
};
typedef struct user_pt_regs bpf_user_pt_regs_t;
#else
#error "no register layout for this architecture"
#endif

struct bpf_perf_event_data {
	bpf_user_pt_regs_t regs;
	__u64 sample_period;
	__u64 addr;
};

/* Opaque to us; the kernel finds it in a map value by this name (6.18). */
struct bpf_task_work {
	__u64 __opaque;
} __attribute__((aligned(8)));

#ifndef BPF_NO_PRESERVE_ACCESS_INDEX
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
#endif

typedef struct {
	int counter;
} atomic_t;

struct file_system_type {
	int fs_flags;
};

struct super_block {
	dev_t s_dev;
	unsigned long s_magic;
	struct file_system_type *s_type;
};

struct inode {
	unsigned short i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
};

struct file {
	struct inode *f_inode;
};

struct dentry {
	struct inode *d_inode;
};

struct vfsmount {
	int mnt_flags;
};

struct mount {
	struct vfsmount mnt;
	int mnt_id;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct fs_struct {
	struct path root;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct list_head {
	struct list_head *next;
};

struct rb_node {
	struct rb_node *rb_left;
	struct rb_node *rb_right;
};

struct rb_root {
	struct rb_node *rb_node;
};

struct mm_struct;

struct userfaultfd_ctx;

struct vm_userfaultfd_ctx {
	struct userfaultfd_ctx *ctx;
};

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	unsigned long vm_pgoff;
	struct file *vm_file;
	struct mm_struct *vm_mm;
	struct rb_node vm_rb; /* until 6.0, of mm_struct.mm_rb */
	struct vm_userfaultfd_ctx vm_userfaultfd_ctx;
};

struct mm_struct {
	struct rb_root mm_rb;
	unsigned long start_code;
	unsigned long start_stack;
	unsigned long arg_start;
	unsigned long arg_end;
	struct file *exe_file;
};

struct kernfs_node {
	u64 id; /* of a cgroup's folder: its inode */
};

struct cgroup;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
};

struct css_set {
	struct cgroup *dfl_cgrp; /* of version 2 */
};

struct signal_struct {
	atomic_t live;      /* threads that have not exited yet */
	unsigned int flags; /* SIGNAL_* of include/linux/sched/signal.h */
};

/* x86: fsbase; arm64: uw.tp_value. Each is read only where it exists. */
struct thread_struct {
#if defined(__TARGET_ARCH_x86)
	unsigned long fsbase;
#else
	struct {
		unsigned long tp_value;
	} uw;
#endif
};

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct user_namespace {
	int level;
};

typedef struct {
	u32 val;
} kuid_t;

typedef struct {
	u32 val;
} kgid_t;

/* Two words until 6.2, then one of 64 bits. */
typedef struct {
	u64 val;
} kernel_cap_t;

struct cred {
	kuid_t fsuid;
	kgid_t fsgid;
	kernel_cap_t cap_effective;
	struct user_namespace *user_ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1]; /* level + 1 of them */
};

struct rq {
	u64 clock; /* ns, a CPU's own; as of its last look at it, which a switch begins with */
};

struct cfs_rq {
	struct rq *rq;
};

/* A task in line for a CPU. */
struct sched_info {
	unsigned long long run_delay;   /* ns, in all, but for: */
	unsigned long long last_queued; /* since when it is, by rq.clock; 0: it is not */
};

struct sched_entity {
	struct cfs_rq *cfs_rq;     /* of the CPU that it is on, of whatever class it is */
	unsigned char sched_delayed; /* it sleeps, and is still in line until its turn would come */
	u64 exec_start;            /* when it was last seen on a CPU, by the clock of that */
	u64 sum_exec_runtime;      /* ns on a CPU, up to the last time the scheduler looked */
	u64 prev_sum_exec_runtime; /* the same when it was last given the CPU, by the fair scheduler
				    */
};

struct thread_info {
	u32 cpu;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	unsigned int flags;
	/* An int, from 7.2 on a u8: as it is unsigned here libbpf has the right size read. */
	unsigned int on_cpu; /* from before it is switched to until after it is switched from */
	pid_t pid;
	pid_t tgid;
	unsigned int policy; /* SCHED_* */
	void *stack; /* the kernel's */
	struct list_head tasks; /* of all processes' leaders */
	struct task_struct *group_leader;
	struct task_struct *real_parent;
	struct mm_struct *mm;
	struct signal_struct *signal;
	struct bpf_local_storage *bpf_storage; /* all maps' values of this task */
	struct files_struct *files;
	struct pid *thread_pid;
	struct css_set *cgroups;
	u32 self_exec_id;     /* grows with each exec */
	unsigned long nvcsw;  /* switches away from it, of its own will, */
	unsigned long nivcsw; /* and not */
	u64 start_time;       /* ns, CLOCK_MONOTONIC */
	u64 start_boottime;   /* ns, CLOCK_BOOTTIME */
	char comm[16];
	struct sched_entity se;
	struct sched_info sched_info;
	struct thread_struct thread;
	const struct cred *cred;
	struct fs_struct *fs;
};

struct bpf_local_storage_map {
	bool bpf_ma;
};

/* Record of the tracepoint kmem:rss_stat (include/trace/events/kmem.h). */
struct trace_event_raw_rss_stat {
	unsigned int mm_id; /* hash of the mm_struct's address */
	unsigned int curr;  /* it is that of the current task */
	int member;	    /* MM_ANONPAGES, ... */
	long size;	    /* bytes */
};

/* The iterator's context (kernel/bpf/task_iter.c). */
struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
	u64 session_id;
	u64 seq_num;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

/* Complete, because libbpf compares kfunc prototypes down to the kind of each pointed-to type. */
struct bpf_map {
	u32 id;
};

#ifndef BPF_NO_PRESERVE_ACCESS_INDEX
#pragma clang attribute pop
#endif

#endif
