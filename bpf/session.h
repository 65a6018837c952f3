/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_SESSION_H
#define BPF_SESSION_H

/* What all programs share: how they are set up, which processes there are for them, the ring. */

#include "bpf/maps.h"
#include "bpf/task.h"

extern const volatile struct session_config session;
extern __u32 pidns_level; /* of our own PID namespace */

/* Capabilities of linux/capability.h, of the first 32. */
#define CAPS_THAT_READ_ALL (1u << 1 | 1u << 2) /* CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH */

/*
 * The files that a task may read. Credentials are those of this moment: after an exec of a program
 * with other rights they are other ones.
 */
static __always_inline void task_rights(struct task_struct *task, struct code_event *e)
{
	const struct cred *cred = BPF_CORE_READ(task, cred);
	const struct mount *mount;
	__u32 caps = 0;

	e->start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	e->uid = BPF_CORE_READ(cred, fsuid.val);
	e->gid = BPF_CORE_READ(cred, fsgid.val);
	bpf_probe_read_kernel(&caps, sizeof(caps),
			      (void *)cred + bpf_core_field_offset(struct cred, cap_effective));
	if ((caps & CAPS_THAT_READ_ALL) && !BPF_CORE_READ(cred, user_ns, level))
		e->owner |= OWNER_READS_ALL;
	mount = (void *)BPF_CORE_READ(task, fs, root.mnt) -
		bpf_core_field_offset(struct mount, mnt);
	if (BPF_CORE_READ(task, fs, root.dentry, d_inode, i_ino) == session.root_inode &&
	    (__u32)BPF_CORE_READ(mount, mnt_id) == session.root_mount)
		e->owner |= OWNER_IS_HERE;
}

/* PIDs are those that our own PID namespace has. */
static __always_inline __u32 process_pid(struct task_struct *task)
{
	if (!session.pidns_inode)
		return BPF_CORE_READ(task, tgid);
	return task_pid_in(BPF_CORE_READ(task, group_leader), session.pidns_inode, pidns_level);
}

/* pid and tid are those of the initial PID namespace here; start_ns and exec_id are there. */
static __always_inline void task_facts_identify(struct task_facts *f)
{
	f->process = hash_mix(hash_mix(f->start_ns, f->pid), f->exec_id) | 1;
	f->reserved = 0;
}

static __always_inline void task_facts_read(struct task_struct *task, struct task_facts *f)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);

	f->start_ns = BPF_CORE_READ(leader, start_boottime);
	f->exec_id = BPF_CORE_READ(leader, self_exec_id);
	f->pid = BPF_CORE_READ(task, tgid);
	f->tid = BPF_CORE_READ(task, pid);
	task_facts_identify(f);
	if (session.pidns_inode) {
		f->pid = task_pid_in(leader, session.pidns_inode, pidns_level);
		f->tid = task_pid_in(task, session.pidns_inode, pidns_level);
	}
}

/* Of a process: what /proc tells too coarsely (10 ms) or not at all. */
static __always_inline void task_record_fill(struct task_record *r, struct task_struct *task,
					     const struct task_facts *f)
{
	r->pid = f->pid;
	r->process = f->process;
	r->exec_id = f->exec_id;
	r->start_ns = f->start_ns;
	r->exe = file_key(BPF_CORE_READ(task, mm, exe_file));
	r->start_code = BPF_CORE_READ(task, mm, start_code);
}

/*
 * The ring is half full, or three quarters: one tick of so many is sampled, which stands for all of
 * them, before there is no room for any. 1: it has room.
 */
static __always_inline __u32 ring_stride(void)
{
	__u64 waits = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);

	return waits < 2 * session.wakeup_bytes ? 1 : waits < 3 * session.wakeup_bytes ? 2 : 4;
}

static __always_inline void ring_output(void *record, __u64 size, long *result)
{
	__u64 flags = BPF_RB_NO_WAKEUP;

	if (bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) >= session.wakeup_bytes)
		flags = BPF_RB_FORCE_WAKEUP;
	*result = bpf_ringbuf_output(&events, record, size, flags);
}

static __always_inline bool ring_send(void *record, __u64 size)
{
	long r;

	ring_output(record, size, &r);
	return r == 0;
}

#endif
