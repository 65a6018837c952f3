/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_SPAN_H
#define BPF_SPAN_H

/*
 * The times of threads: since when they are in the recording, when they leave a CPU and come back.
 * Who changes an entry is the thread itself, in its switches, or the one that makes it; but a span
 * that lasts may be ended by another task, where a part of the recording ends (remote.bpf.c). So
 * who ends a span is who takes out_ns away, in one atomic step: the thread sets it to 0, the other
 * task to the moment at which the next span begins, if it is still what it was before the walk.
 * Then no time is counted twice and none is lost. Both add to the sums, of spans that follow one
 * another: by atomics.
 */

#include "bpf/discover.h"
#include "bpf/gil.h"
#include "bpf/times_slot.h"
#include "bpf/wait.h"

/* CLOCK_MONOTONIC; 0: the session has not started, or not stopped: behind that no switch is seen.
 */
extern __u64 started_ns, stopped_ns;

/* Written by user space at any time: how many ticks one sample stands for. */
extern __u32 spans_stride;

/* T0: spans of at least that are all kept, shorter ones by chance. */
static __always_inline __u64 spans_whole_ns(void)
{
	return session.span_ns * spans_stride;
}

/* Is it a Python process that is recorded? Then *row is what is known of it. */
static __always_inline bool is_recorded(const struct task_facts *f, struct proc_row *row)
{
	return proc_row_read(f, row) && row->exec_id == f->exec_id && !row->is_ours &&
	       row->layout < LAYOUTS_MAX && (!session.has_filter || row->is_target);
}

/*
 * Can an entry be made in the midst of a switch? Up to Linux 6.3 the memory for it comes from
 * kmalloc(), which may wake the thread that frees some, and so wait for the lock that is held.
 */
static __always_inline bool may_allocate_in_switch(void)
{
	return session.has_exit_hook || bpf_core_field_exists(struct bpf_local_storage_map, bpf_ma);
}

/* A new entry: the thread is in the recording from now on. It is on a CPU, or off it. */
static __always_inline struct thread_times *
times_new(struct task_struct *task, const struct task_facts *f, __u64 now, bool is_on_cpu)
{
	struct thread_times *t = times_make(task, NULL);

	if (!t || t->since_ns)
		return t;
	t->process = f->process;
	t->pid = f->pid;
	t->tid = f->tid;
	t->exec_ns = task->se.sum_exec_runtime;
	t->blocked_ns = GIL_WAITED_UNKNOWN;
	t->in_ns = now;
	t->out_ns = is_on_cpu ? 0 : now;
	t->since_ns = now;
	return t;
}

/* 0: it was cut after now was looked at. */
static __always_inline __u64 times_lasted(__u64 begin_ns, __u64 now)
{
	return now > begin_ns ? now - begin_ns : 0;
}

/*
 * The thread began within the recording, and has been in it from its first moment: what it waited
 * for up to now nobody knows.
 */
static __always_inline void times_begin_with_thread(struct thread_times *t,
						    struct task_struct *task, __u64 now)
{
	__u64 life = times_lasted(task->start_time, now);

	if (task->start_time <= started_ns)
		return;
	t->since_ns = now - life;
	t->cpu_ns = at_most(task->se.sum_exec_runtime, life);
	t->unseen_ns = life - t->cpu_ns;
}

/* Of the process, who counts its waiters. NULL: it has no entry. */
static __always_inline struct thread_times *times_of_leader(struct thread_times *t,
							    struct task_struct *task)
{
	if (task->pid == task->tgid)
		return t;
	return times_get(task->group_leader);
}

/* The thread ends its span, and is on the CPU from now on. Returns when that began. */
static __always_inline __u64 times_take(struct thread_times *t, __u64 now)
{
	t->in_ns = now;
	return __sync_lock_test_and_set(&t->out_ns, 0);
}

static __always_inline void times_add(struct thread_times *t, __u8 class, __u64 ns,
				      bool is_by_chance)
{
	class = at_most(class, CLASS_COUNT_ - 1);
	__sync_fetch_and_add(is_by_chance ? &t->short_ns[class] : &t->long_ns[class], ns);
}

/*
 * Another task ends the span that began at begin_ns, if the thread has not done so itself, and the
 * next one begins. Returns whether it was ended.
 */
static __always_inline bool times_cut(struct thread_times *t, __u64 begin_ns, __u64 now, __u8 class,
				      bool is_by_chance)
{
	if (__sync_val_compare_and_swap(&t->out_ns, begin_ns, now) != begin_ns)
		return false;
	times_add(t, class, now - begin_ns, is_by_chance);
	return true;
}

/* It waits for the GIL no more, since woken_ns. leader: times_of_leader(). */
static __always_inline void times_end_gil_wait(struct thread_times *t, struct thread_times *leader,
					       __u64 woken_ns, __u64 now)
{
	if (!t->waits_for_gil)
		return;
	if (t->is_counted && leader)
		gil_count(leader, t->gil, -1, woken_ns);
	t->is_counted = 0;
	t->waits_for_gil = GIL_WAIT_NOT;
	t->gil_end_ns = now;
}

/* How long others waited for the GIL between two gil_waited_ns(), in a span of that length. */
static __always_inline __u64 gil_blocked_ns(struct cpu_state *c, __u64 before, __u64 now,
					    __u64 duration)
{
	if (before == GIL_WAITED_UNKNOWN || now == GIL_WAITED_UNKNOWN)
		return 0;
	if ((__s64)(now - before) < 0)
		return 0; /* one who was woken meanwhile was taken for waiting then */
	if ((now - before) / GIL_WAITERS_MAX > duration) {
		stat_add(c, STAT_GIL_DRIFT, 1);
		return 0;
	}
	return now - before;
}

/* The same for what the span stands for; in 1024ths. */
static __always_inline __u64 weigh(__u64 ns, __u64 value, __u64 duration)
{
	return duration ? ns * ((value << 10) / duration) >> 10 : 0;
}

/* How long a thread has run since it left the CPU, as it is said to be off since off_ns. */
static __always_inline __u64 times_ran_unseen(const struct thread_times *t,
					      struct task_struct *task, __u64 off_ns)
{
	__u64 ran = task->se.sum_exec_runtime - t->exec_ns;

	return ran < off_ns ? ran : off_ns;
}

/* Which the switch says that it left the CPU in; of one that was found off it less is known. */
static __always_inline __u8 times_unseen_class(const struct thread_times *t)
{
	if (t->out_wait)
		return wait_class(t->out_wait);
	return t->out_preempt || !t->out_state ? CLASS_RUNNABLE : CLASS_OTHER;
}

/*
 * Can the time that a woken thread is in line for a CPU be told from what it waited for? Not of one
 * that was moved to another CPU while it slept: for sched_info it is in line from then on.
 */
static __always_inline bool times_may_queue(const struct thread_times *t)
{
	return session.has_exit_work && may_know_queue() && !t->out_preempt && t->out_state &&
	       !t->is_moved;
}

/* What a thread did since it left the CPU, of which nobody saw it come back: one after the other.
 */
struct unseen_span {
	__u64 waited, queued, ran;
};

static __always_inline struct unseen_span times_unseen(const struct thread_times *t,
						       struct task_struct *task, __u64 off_ns)
{
	struct unseen_span u = { .ran = times_ran_unseen(t, task, off_ns) };

	if (times_may_queue(t))
		u.queued = at_most(task->sched_info.run_delay - t->run_delay, off_ns - u.ran);
	u.waited = off_ns - u.ran - u.queued;
	return u;
}

/*
 * The span that began at begin_ns has a sample, as one was taken before its end: the end is told
 * now. Returns whether the end was told. A function of its own: on Linux 6.1 a switch has no stack
 * left for the event.
 */
static __noinline int times_tell_end(const struct thread_times *t, __u64 begin_ns, __u64 waited)
{
	struct span_end_event e = { .kind = EVENT_SPAN_END, .syscall = SYSCALL_NONE };

	if (!t || t->open_ns != begin_ns || t->opened != STAT_RECORDED)
		return 0;
	e.tid = t->tid;
	e.process = t->process;
	e.begin_ns = begin_ns;
	e.ktime_ns = begin_ns + waited;
	e.wait = t->out_wait ?: WAIT_OTHER;
	e.value = waited;
	return ring_send(&e, sizeof(e));
}

/* Counts the parts of the span that would have been kept for certain as lost, unless the span has a
 * sample already. */
static __always_inline void times_lose_unseen(struct cpu_state *c, const struct thread_times *t,
					      __u64 begin_ns, struct unseen_span u)
{
	if (u.waited >= spans_whole_ns() && !times_tell_end(t, begin_ns, u.waited))
		stat_add(c, STAT_UNSEEN, u.waited);
	if (u.queued >= spans_whole_ns())
		stat_add(c, STAT_UNSEEN, u.queued);
}

/*
 * It is on the CPU, and nobody saw it come back: others around the start of a session, and where
 * the kernel does not tell of a switch. When that was follows from how long it has run.
 */
static __always_inline void times_return_unseen(struct cpu_state *c, struct thread_times *t,
						struct thread_times *leader,
						struct task_struct *task, __u64 now)
{
	__u64 begin_ns = times_take(t, now);
	struct unseen_span u = times_unseen(t, task, times_lasted(begin_ns, now));

	t->in_ns = now - u.ran;
	times_end_gil_wait(t, leader, t->in_ns - u.queued, t->in_ns);
	times_add(t, times_unseen_class(t), u.waited, u.waited < spans_whole_ns());
	times_add(t, CLASS_RUNNABLE, u.queued, u.queued < spans_whole_ns());
	times_lose_unseen(c, t, begin_ns, u);
	t->open_ns = 0;
	t->spans++;
}

#endif
