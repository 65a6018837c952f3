/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_DESCRIBE_H
#define BPF_DESCRIBE_H

/* Names, sent once: of processes, threads and code objects. */

#include "bpf/python_code.h"
#include "bpf/session.h"
#include "bpf/stats.h"

/* In the midst of exec there are no arguments yet: they are sent as soon as there are. */
VERIFIED_ONCE int send_process(struct py_scratch *s)
{
	struct process_event *p;
	__u64 id, bytes;

	if (!s)
		return 0; /* for the verifier */
	p = (struct process_event *)s->message;
	bytes = at_most(p->args_bytes, ARGS_BYTES);
	id = bytes ? p->process : hash_mix(p->process, 1);
	if (!is_sent(id) && ring_send(p, sizeof(*p) + bytes))
		mark_sent(id);
	return 0;
}

static __always_inline void thread_comm(struct task_struct *task, char comm[COMM_BYTES])
{
#ifdef READ_REMOTE
	bpf_probe_read_kernel_str(comm, COMM_BYTES, task->comm);
#else
	bpf_get_current_comm(comm, COMM_BYTES);
#endif
}

/*
 * The identity of a thread under one name: TIDs come again, names change. pointer, tid and comm are
 * filled in.
 */
static __always_inline void thread_identify(struct thread_event *t, struct task_struct *task,
					    __u64 process)
{
	const __u64 *name = (const __u64 *)t->comm;
	__u64 id;

	t->kind = EVENT_THREAD;
	t->process = process;
	t->start_ns = known_field(task, start_boottime);
	id = hash_mix(hash_mix(hash_mix(process, known_field(task, pid)), t->start_ns), t->pointer);
	t->thread = hash_mix(hash_mix(id, name[0]), name[1]) | 1;
}

/*
 * Python's name of a thread can only be read while the thread lives, which may not be for long:
 * user space is woken for it. One wake-up in this time is enough, as user space comes back after as
 * long.
 */
extern __u64 woken_ns;

static __always_inline __u64 wakeup_of_thread(__u64 now)
{
	if (now - woken_ns < THREAD_WAKEUP_NS)
		return BPF_RB_NO_WAKEUP;
	woken_ns = now;
	return BPF_RB_FORCE_WAKEUP;
}

/* Process and thread at first sight, so that a process that is gone has a name. */
static __always_inline void introduce(struct door door, struct py_scratch *s,
				      struct task_struct *task, const struct task_facts *f,
				      __u32 layout)
{
	struct process_event *p = (struct process_event *)s->message;
	struct thread_event *t = (struct thread_event *)s->message;
	__u64 start, end, bytes;
	struct task_struct *leader;

	if (!is_sent(f->process)) {
		leader = BPF_CORE_READ(task, group_leader);
		__builtin_memset(p, 0, sizeof(*p));
		p->kind = EVENT_PROCESS;
		p->pid = f->pid;
		p->ns_pid = task_ns_pid(leader);
		p->process = f->process;
		p->start_ns = f->start_ns;
		p->ppid = process_pid(BPF_CORE_READ(task, real_parent));
		p->exec_id = f->exec_id;
		p->layout = layout;
		BPF_CORE_READ_STR_INTO(&p->comm, leader, comm);
		start = BPF_CORE_READ(task, mm, arg_start);
		end = BPF_CORE_READ(task, mm, arg_end);
		/* In exec the start comes first: behind the arguments is the environment. */
		bytes = start && end > start ? end - start : 0;
		if (bytes > ARGS_BYTES)
			bytes = ARGS_BYTES;
		if (bytes && read_user(door, s->message + sizeof(*p), bytes, start))
			bytes = 0;
		p->args_bytes = bytes;
		send_process(s);
	}

	__builtin_memset(t, 0, sizeof(*t));
	thread_comm(task, t->comm);
	t->pid = f->pid;
	t->tid = f->tid;
	t->pointer = s->thread.pointer;
	thread_identify(t, task, f->process);
	s->sample.thread = t->thread;
	if (is_sent(t->thread))
		return;
	if (!bpf_ringbuf_output(&events, t, sizeof(*t), wakeup_of_thread(bpf_ktime_get_ns())))
		mark_sent(t->thread);
}

#ifdef READ_REMOTE
VERIFIED_ONCE int introduce_another(ANOTHER_TASK, struct py_scratch *s, const struct task_facts *f,
				    __u32 layout)
{
	if (s && f) /* for the verifier */
		introduce((struct door){ task }, s, task, f, layout);
	return 0;
}
#elif !defined(OLD_KERNEL)
VERIFIED_ONCE int introduce_current(struct py_scratch *s, const struct task_facts *f, __u32 layout)
{
	if (s && f) /* for the verifier */
		introduce((struct door){}, s, task_current(), f, layout);
	return 0;
}
#endif

/* A function of its own, as the copies of strings are: the chain of calls has no stack left for it.
 */
#ifdef READ_REMOTE
VERIFIED_ONCE int note_remote_rights(ANOTHER_TASK, struct py_scratch *s)
{
	if (s) /* for the verifier */
		task_rights(task, (struct code_event *)s->message);
	return 0;
}
#define note_rights(door, s) note_remote_rights((door).task, s)
#else
VERIFIED_ONCE int note_own_rights(struct py_scratch *s)
{
	if (s) /* for the verifier */
		task_rights(task_current(), (struct code_event *)s->message);
	return 0;
}
#define note_rights(door, s) note_own_rights(s)
#endif

/* Pointers only: values kept on the stack would have the verifier tell each state apart. */
struct describe_loop {
	struct py_scratch *s;
	const struct py_offsets *off;
	struct cpu_state *stats;
	struct door door;
};

static int describe_lines(__u32 chunk, struct describe_loop *l)
{
	struct py_scratch *s = l->s;
	struct py_describing *d = &s->describing;
	struct lines_event *e = (struct lines_event *)s->message;
	struct door door = l->door;
	__u64 id = hash_mix(d->id, chunk + 1);
	int n;

	if ((chunk + 1) * LINES_CHUNK >= d->lines_total)
		return LOOP_STOP;
	if (is_sent(id))
		return LOOP_NEXT;
	d->is_whole = 0;
	if (s->walk.bytes_left < LINES_CHUNK)
		return LOOP_STOP;
	n = py_describe_lines(door, s, d->id, d->lines_addr, d->lines_total, chunk + 1);
	if (n < 0)
		return LOOP_STOP;
	e->pid = s->sample.pid;
	if (!ring_send(e, n & (2 * LINES_CHUNK - 1)))
		return LOOP_STOP;
	mark_sent(id);
	d->is_whole = 1;
	s->walk.bytes_left -= LINES_CHUNK;
	stat_add(l->stats, STAT_LINES_SENT, 1);
	return LOOP_NEXT;
}

LOOP_STEP(describe_lines)

/* Sends what user space lacks of one code object. The first ones are sent however late it is. */
static int describe(__u32 i, struct describe_loop *l)
{
	struct py_scratch *s = l->s;
	struct py_describing *d = &s->describing;
	struct py_unsent *u = &s->unsent[i & (CODES_PER_SAMPLE - 1)];
	struct code_event *e = (struct code_event *)s->message;
	struct door door = l->door;
	__u64 head_id = hash_mix(u->id, 0);
	__u32 bytes;
	int n;

	if (i >= s->walk.unsent)
		return LOOP_STOP;
	if (is_sent(u->id))
		return LOOP_NEXT;
	n = s->walk.bytes_left && (i < LEAF_CODES || clock_ns() < s->walk.deadline_ns)
		    ? py_describe(door, s, l->off, u)
		    : 0;
	if (n <= 0) {
		stat_add(l->stats, STAT_CODE_DEFERRED, 1);
		return LOOP_NEXT;
	}
	d->id = u->id;
	d->lines_addr = e->lines_addr;
	d->lines_total = e->lines_total;
	d->is_whole = 1;
	if (!is_sent(head_id)) {
		e->pid = s->sample.pid;
		e->layout = d->layout;
		note_rights(door, s);
		bytes = n;
		if (bytes > sizeof(s->message) || !ring_send(e, bytes))
			return LOOP_NEXT;
		stat_add(l->stats, STAT_CODE_SENT, 1);
		s->walk.bytes_left -= bytes < s->walk.bytes_left ? bytes : s->walk.bytes_left;
	}
	if (d->lines_total > LINES_CHUNK) {
		mark_sent(head_id);
		LOOP(LINES_CHUNKS_MAX - 1, describe_lines, l);
	}
	if (d->is_whole)
		mark_sent(d->id);
	return LOOP_NEXT;
}

LOOP_STEP(describe)

#endif
