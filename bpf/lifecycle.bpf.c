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

__u64 rows_refused, pythons_begun, begun_missed, woken_ns;
__u32 begun_pids[BEGUN_SLOTS];

/*
 * Processes that run, by their identity, at their PID modulo RUNNING_SLOTS: that of one which is
 * there is that of the program that it runs now. One that is not may run, too.
 */
__u64 running[RUNNING_SLOTS];

static __always_inline void note_running(const struct task_facts *f)
{
	running[f->pid % RUNNING_SLOTS] = f->process;
}

static __always_inline void note_ended(const struct task_facts *f)
{
	__u64 *slot = &running[f->pid % RUNNING_SLOTS];

	if (*slot == f->process)
		*slot = 0;
}

static __always_inline bool is_target(const struct task_facts *f)
{
	struct proc_row row;

	return proc_row_read(f, &row) && row.is_target;
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
 * A process that has just begun, or begins another program. Where its program does not say what
 * runs in it, user space is to look: no tick and no switch may come that would ask.
 */
static __always_inline void meet_process(struct task_struct *task, const struct task_facts *f)
{
	struct cpu_state *c = this_cpu_state(SOURCE_TICKS);
	struct vma_search none = {};
	struct binary_row *program;
	struct binary_key exe;
	__u64 start_code;

	if (!c || !is_wanted(task, f) || (session.has_filter && !is_target(f)))
		return;
	exe = file_key(BPF_CORE_READ(task, mm, exe_file));
	if (!exe.inode)
		return; /* a kernel thread */
	program = bpf_map_lookup_elem(&binaries, &exe);
	start_code = BPF_CORE_READ(task, mm, start_code);
	if (!program || (program->layout != LAYOUT_NONE && !program->from_start))
		send_who(c, f, &none, &exe, start_code, true, bpf_ktime_get_ns());
	else if (program->layout < LAYOUTS_MAX && start_code)
		begin_python(f, program, start_code);
}

/*
 * A child begins as a copy of its parent: same runtime at the same address. Should it exec, its
 * exec_id no longer fits the row and the sampler looks again.
 */
SEC("raw_tp/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	struct task_facts before, f;
	bool is_known = false;
	struct proc_row row;

	if (BPF_CORE_READ(child, tgid) == BPF_CORE_READ(parent, tgid))
		return 0; /* a thread */
	task_facts_read(parent, &before);
	task_facts_read(child, &f);
	if (!f.pid)
		return 0; /* none of our namespace */
	note_running(&f);
	if (proc_row_read(&before, &row)) {
		is_known = row.exec_id == before.exec_id;
		row.exec_id = is_known ? f.exec_id : ANY_PROGRAM;
		row.start_ns = f.start_ns;
		if (!session.follow_children)
			row.is_target = 0;
		row_add(f.pid, &row);
	}
	if (!is_known)
		meet_process(child, &f);
	return 0;
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
	e->gil = t->gil;
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
		return; /* samples of the thread are worth what they came with: collect/times.c */
	times_tell(t, task, now, e);
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

/* Counts the waits of a thread of an unidentified process as lost, unless user space found that
 * the process runs no Python. */
static __always_inline void times_lose(const struct thread_times *t, const struct task_facts *f,
				       __u64 now)
{
	struct cpu_state *c = this_cpu_state(SOURCE_SWITCHES);
	__u64 life = times_lasted(t->since_ns, now), ran = t->cpu_ns;
	struct unidentified_event e;

	if (!t->out_ns)
		ran += times_lasted(t->in_ns, now);
	if (!c || !t->may_be_python || life <= ran)
		return;
	stat_add(c, STAT_UNKNOWN, life - ran);
	tell_unidentified(&e, f, SOURCE_SWITCHES, 0, life - ran, now, life);
}

/* The thread ends, or its program does. */
static __always_inline void times_end(struct thread_times *t, struct task_struct *task,
				      const struct task_facts *f, __u64 now)
{
	struct proc_row row;

	if (t->is_identified || is_recorded(f, &row))
		times_send(t, task, now);
	else if (is_unidentified(f))
		times_lose(t, f, now);
}

static __always_inline void times_exit(struct task_struct *task, const struct task_facts *f,
				       __u64 now)
{
	struct thread_times *t = times_get(task);

	if (!t || !t->since_ns)
		return;
	times_end_gil_wait(t, times_of_leader(t, task), now, now);
	times_end(t, task, f, now);
	t->since_ns = 0;
	t->out_ns = 0;
}

/*
 * The process is another one from now on, of which nobody may know yet whether it runs Python. That
 * its times are those of one that does is found out when they are told. A switch in the midst of
 * the exec may have replaced the row of the program before.
 */
static __always_inline void times_exec(struct task_struct *task, const struct task_facts *f,
				       bool may_be_python)
{
	struct thread_times *t = times_get(task);
	struct task_facts before = *f;
	__u64 now = times_now();

	if (t && t->since_ns) {
		before.process = t->process;
		before.exec_id--;
		times_end(t, task, &before, now);
		__builtin_memset(t, 0, sizeof(*t));
	} else if (!started_ns || !(session.has_filter ? is_target(f) : may_be_python)) {
		return;
	}
	t = times_new(task, f, now, true);
	if (t)
		t->may_be_python = may_be_python;
}

/*
 * Before on_exec(), which may replace the row of the program before. Apart, as 5.10 refuses a
 * program that has an atomic exchange, even if it never comes there.
 */
SEC("raw_tp/sched_process_exec")
int BPF_PROG(on_exec_times, struct task_struct *task)
{
	struct task_facts f;

	task_facts_read(task, &f);
	if (is_wanted(task, &f))
		times_exec(bpf_get_current_task_btf(), &f, program_may_be_python(task));
	return 0;
}

/* A program is looked at as soon as it begins: before the first tick, mostly, and before its
 * Python.
 */
SEC("raw_tp/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task)
{
	struct task_facts f;

	task_facts_read(task, &f);
	note_running(&f);
	meet_process(task, &f);
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
	if (!BPF_CORE_READ(task, signal, live.counter)) { /* no other threads live on */
		note_ended(&f);
		bpf_map_delete_elem(&procs, &pid);
	}
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
	if (!is_recorded(&f, &row)) {
		if (stopped_ns && is_unidentified(&f))
			times_lose(t, &f, stopped_ns);
		return 0;
	}
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
