/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/* fork and exit keep the procs map in step; the iterator lists what runs already. */

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/events.h"
#include "bpf/cache.h"
#include "bpf/read.h"
#include "bpf/maps.h"
#include "bpf/task.h"
#include "bpf/session.h"
#include "bpf/discover.h"
#include "bpf/span.h"

__u32 pidns_level; /* noted by list_tasks, which runs in our process */

__u64 rows_refused, pythons_begun;

/*
 * A child begins as a copy of its parent: same runtime at the same address. Should it exec, its
 * exec_id no longer fits the row and the sampler looks again.
 */
SEC("raw_tp/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_pid = process_pid(parent), pid = process_pid(child);
	struct task_struct *leader = BPF_CORE_READ(parent, group_leader);
	struct proc_row *row, copy;

	if (BPF_CORE_READ(child, tgid) == BPF_CORE_READ(parent, tgid) || !pid)
		return 0; /* a thread, or none of our namespace */
	row = bpf_map_lookup_elem(&procs, &parent_pid);
	if (!row)
		return 0;
	copy = *row;
	if (copy.start_ns != BPF_CORE_READ(leader, start_boottime))
		return 0; /* of another process that had this pid */
	if (copy.exec_id == BPF_CORE_READ(leader, self_exec_id))
		copy.exec_id = BPF_CORE_READ(child, self_exec_id);
	else
		copy.exec_id = ~0U; /* nobody has looked at the parent since its exec */
	copy.start_ns = BPF_CORE_READ(child, start_boottime);
	if (!session.follow_children)
		copy.is_target = 0;
	row_add(pid, &copy);
	return 0;
}

static __always_inline bool is_target(const struct task_facts *f)
{
	struct proc_row row;

	return proc_row_read(f, &row) && row.is_target;
}

/* What changes with each switch. Returns whether none came in between. */
static __noinline bool times_copy(const struct thread_times *times, struct thread_times_event *e)
{
	const volatile struct thread_times *t = times;
	__u64 spans = t->spans, out = t->out_ns;

	e->spans = spans;
	e->cpu_ns = t->cpu_ns;
	if (!out)
		e->cpu_ns += e->ktime_ns - t->in_ns;
	for (int class = 0; class < CLASS_COUNT_; class ++) {
		e->short_ns[class] = t->short_ns[class];
		e->long_ns[class] = t->long_ns[class];
	}
	return spans == t->spans && out == t->out_ns;
}

/* Up to which moment the times of threads are told. */
__u64 stopped_ns;

static __always_inline __u64 times_now(void)
{
	return stopped_ns ?: bpf_ktime_get_ns();
}

static __always_inline void times_event_add(struct thread_times_event *e, __u8 class, __u64 ns,
					    __u64 whole_ns)
{
	class = at_most(class, CLASS_COUNT_ - 1);
	if (ns < whole_ns)
		e->short_ns[class] += ns;
	else
		e->long_ns[class] += ns;
}

/* What is known of the times of a thread, up to now. */
static __always_inline void times_tell(const struct thread_times *t, struct task_struct *task,
				       __u64 now, struct thread_times_event *e)
{
	__u64 out = t->out_ns, whole_ns = spans_whole_ns();
	struct unseen_span u;

	__builtin_memset(e, 0, sizeof(*e));
	e->kind = EVENT_THREAD_TIMES;
	e->pid = t->pid;
	e->process = t->process;
	e->tid = t->tid;
	e->ktime_ns = now;
	e->since_ns = t->since_ns;
	e->unseen_ns = t->unseen_ns;
	e->episodes = t->episodes;
	BPF_CORE_READ_STR_INTO(&e->comm, task, comm);
	if (!times_copy(t, e))
		times_copy(t, e);
	if (!out || !task_is_on_cpu(task))
		return;
	/* It was not seen to come back: as its next switch will count it. */
	u = times_unseen(t, task, times_lasted(out, now));
	e->cpu_ns += u.ran;
	times_event_add(e, times_unseen_class(t), u.waited, whole_ns);
	times_event_add(e, CLASS_RUNNABLE, u.queued, whole_ns);
	e->spans++;
}

/* Of a thread that ends, or begins another program. Not on the stack, which is too small. */
static __always_inline void times_send(struct thread_times *t, struct task_struct *task, __u64 now)
{
	struct thread_times_event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	struct cpu_state *c = this_cpu_state(SOURCE_SWITCHES);

	if (c && t->out_ns)
		times_lose_unseen(c, t, t->out_ns,
				  times_unseen(t, task, times_lasted(t->out_ns, now)));
	if (!e)
		return;
	times_tell(t, task, now, e);
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

static __always_inline void times_exit(struct task_struct *task, const struct task_facts *f,
				       __u64 now)
{
	struct thread_times *t = times_get(task);
	struct proc_row row;

	if (!t || !t->since_ns)
		return;
	times_end_gil_wait(t, task, now, now);
	if (is_recorded(f, &row))
		times_send(t, task, now);
	t->since_ns = 0;
	t->out_ns = 0;
}

/*
 * The process is another one from now on, of which nobody may know yet whether it runs Python. That
 * its times are those of one that does is found out when they are told.
 */
static __always_inline void times_exec(struct task_struct *task, const struct task_facts *f,
				       bool is_python)
{
	struct thread_times *t = times_get(task);
	struct task_facts before = *f;
	__u64 now = times_now();
	struct proc_row row;

	before.exec_id--;
	if (t && t->since_ns) {
		if (is_recorded(&before, &row))
			times_send(t, task, now);
		__builtin_memset(t, 0, sizeof(*t));
	} else if (!started_ns || !(session.has_filter ? is_target(f) : is_python)) {
		return;
	}
	times_new(task, f, now, true);
}

/*
 * A program that has a known interpreter in it: the process is known before it first waits, which
 * no tick would tell of.
 */
static __always_inline void begin_python(const struct task_facts *f,
					 const struct binary_row *program, __u64 start_code)
{
	struct proc_row row = { .start_ns = f->start_ns,
				.runtime = start_code + program->from_start,
				.exec_id = f->exec_id,
				.layout = program->layout,
				.is_target = 1 };

	row_add(f->pid, &row);
}

/*
 * A program that user space has not seen yet is looked at as soon as it begins: before the first
 * tick, mostly, and before its Python.
 */
SEC("raw_tp/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task)
{
	struct binary_key exe = file_key(BPF_CORE_READ(task, mm, exe_file));
	struct binary_row *known = bpf_map_lookup_elem(&binaries, &exe);
	struct cpu_state *c = this_cpu_state(SOURCE_TICKS);
	struct vma_search none = {};
	struct task_facts f;
	struct proc_row row;
	__u64 start_code;

	task_facts_read(task, &f);
	if (!c || !is_wanted(task, &f))
		return 0;
	if (known && known->layout == LAYOUT_NONE)
		return 0;
	if (session.has_filter && (!proc_row_read(&f, &row) || !row.is_target))
		return 0;
	start_code = BPF_CORE_READ(task, mm, start_code);
	if (!known)
		send_who(c, &f, &none, &exe, start_code, true, bpf_ktime_get_ns());
	else if (known->layout < LAYOUTS_MAX && known->from_start && start_code)
		begin_python(&f, known, start_code);
	return 0;
}

/* Apart, as 5.10 refuses a program that has an atomic exchange, even if it never comes there. */
SEC("raw_tp/sched_process_exec")
int BPF_PROG(on_exec_times, struct task_struct *task)
{
	struct binary_key exe = file_key(BPF_CORE_READ(task, mm, exe_file));
	struct binary_row *known = bpf_map_lookup_elem(&binaries, &exe);
	struct task_facts f;

	task_facts_read(task, &f);
	if (is_wanted(task, &f))
		times_exec(bpf_get_current_task_btf(), &f, known && known->layout != LAYOUT_NONE);
	return 0;
}

/* CPU time of the threads of targets: of those that have ended, and of those list_cpu_time() saw.
 */
__u64 ended_cpu_ns, living_cpu_ns;

SEC("raw_tp/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct task_facts f;
	__u32 pid;

	task_facts_read(task, &f);
	pid = f.pid;
	if (session.has_spans)
		times_exit(bpf_get_current_task_btf(), &f, times_now());
	if (is_target(&f))
		__sync_fetch_and_add(&ended_cpu_ns, BPF_CORE_READ(task, se.sum_exec_runtime));
	if (!BPF_CORE_READ(task, signal, live.counter)) /* no other threads live on */
		bpf_map_delete_elem(&procs, &pid);
	return 0;
}

/* Nobody can switch to it any more, and its address may be another's next. */
SEC("traced/sched_process_free")
int BPF_PROG(on_free, struct task_struct *task)
{
	times_slot_free(task);
	return 0;
}

/* An iter/task, but not by a name that libbpf knows: user/collect/session.c says what it is. */
#define ITERATOR "iterator/task"

/* Adds up living_cpu_ns, and writes nothing. */
SEC(ITERATOR)
int list_cpu_time(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct task_facts f;

	if (!task)
		return 0;
	task_facts_read(task, &f);
	if (is_target(&f))
		living_cpu_ns += task->se.sum_exec_runtime;
	return 0;
}

/* One thread_times_event a recorded thread that lives. */
SEC(ITERATOR)
int list_thread_times(struct bpf_iter__task *ctx)
{
	struct thread_times_event e;
	struct task_struct *task = ctx->task;
	struct thread_times *t;
	struct task_facts f;
	struct proc_row row;

	if (!task)
		return 0;
	t = times_get(task);
	if (!t || !t->since_ns)
		return 0;
	task_facts_read(task, &f);
	if (!is_recorded(&f, &row))
		return 0;
	times_tell(t, task, times_now(), &e);
	bpf_seq_write(ctx->meta->seq, &e, sizeof(e));
	return 0;
}

/* One task_record a process. */
SEC(ITERATOR)
int list_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *own = (struct task_struct *)bpf_get_current_task(), *task = ctx->task;
	struct task_record r = {};
	struct task_facts f;

	pidns_level = BPF_CORE_READ(own, thread_pid, level);
	if (!task || task->pid != task->tgid)
		return 0;
	task_facts_read(task, &f);
	if (!f.pid)
		return 0;
	task_record_fill(&r, task, &f);
	bpf_seq_write(ctx->meta->seq, &r, sizeof(r));
	return 0;
}
