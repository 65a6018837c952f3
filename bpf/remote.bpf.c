/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Threads that do not switch: their spans of waiting begin when the recording does, and end when it
 * does, or a part of it.
 */

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define READ_REMOTE
#include "bpf/remote.h"
#include "bpf/span.h"

/* An iter.s/task, but not by a name that libbpf knows: user/collect/programs.c says what it is. */
#define ITERATOR "iterator/task"

__u64 neighbour_process, neighbour_tstate;

/*
 * Written by user space before a pass, CLOCK_MONOTONIC: since when those are off the CPU that are
 * so and did not get an entry by a switch, 0: since now; and when spans are closed, for all at one
 * moment, 0: they are not.
 */
__u64 opened_ns, closed_ns;

/* In the first pass that closes spans: since when threads without an entry are missing. Else 0. */
__u64 cut_from_ns;

/*
 * Nor is anything opened or closed if this is set: of spans that have lasted that long a sample is
 * taken before their end, at which the thread's Python may be gone.
 */
__u64 lasting_ns;
__u64 lasting_cpu_ns; /* CPU time of a pass after which it takes no more samples */

/* Spans that a pass left as they were: their samples would not fit into the ring, or its time was
 * up. */
__u64 spans_left;

/*
 * The process that is being visited, and since when: its memory may not answer. User space leaves
 * such a pass behind, and writes down that its process is silent: nobody visits that again.
 */
__u64 visiting, visiting_ns;
__u32 visiting_pid;
__u64 silent[SILENT_MAX];

static __u64 pass_id;      /* bpf_iter_meta.session_id of the pass that is not left behind */
static __u64 pass_exec_ns; /* task_struct.se.sum_exec_runtime of its reader when it began */

/* A function of its own, so that the verifier learns nothing of process from it. */
VERIFIED_ONCE int is_silent(__u64 process)
{
	for (int i = 0; i < SILENT_MAX; i++)
		if (silent[i] == process)
			return 1;
	return 0;
}

/* A pass that comes back after it was left behind goes no further. */
static __always_inline bool is_left_behind(const struct bpf_iter_meta *meta)
{
	if (!meta->seq_num) {
		pass_id = meta->session_id;
		pass_exec_ns = bpf_get_current_task_btf()->se.sum_exec_runtime;
	}
	return pass_id != meta->session_id;
}

/* A pass that looks ahead takes no more samples. CPU time, as its reader may wait long for a CPU.
 */
static __always_inline bool is_pass_over(void)
{
	return lasting_ns &&
	       bpf_get_current_task_btf()->se.sum_exec_runtime - pass_exec_ns > lasting_cpu_ns;
}

static __always_inline void visit_begin(const struct task_facts *f)
{
	visiting_ns = bpf_ktime_get_ns();
	visiting_pid = f->pid;
	visiting = f->process;
}

static __always_inline bool ring_is_filling(void)
{
	return bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) >
	       bpf_ringbuf_query(&events, BPF_RB_RING_SIZE) / 2;
}

/* What the scheduler's hooks would have noted, had they seen the thread go. */
static __always_inline void times_fill(struct thread_times *t, struct task_struct *task,
				       const struct task_facts *f, __u64 now, bool is_on_cpu)
{
	t->process = f->process;
	t->pid = f->pid;
	t->tid = f->tid;
	t->exec_ns = task->se.sum_exec_runtime;
	if (session.has_exit_work && may_know_queue()) {
		t->run_delay = task->sched_info.run_delay;
		t->is_moved = task->sched_info.last_queued > 0;
	}
	t->blocked_ns = GIL_WAITED_UNKNOWN;
	t->out_state = task->__state;
	t->in_ns = now;
	t->out_ns = is_on_cpu ? 0 : now;
}

/*
 * The thread is in the recording from now on. Its entry comes into being as a whole, or is the one
 * that its own switch has made meanwhile. What may go wrong is that it switches between our look at
 * it and that: gone without an entry, it is off from now on; come back, its next switch finds a
 * span open and mends it by exec_ns, as any that it did not see end.
 */
static __always_inline void times_open(struct py_scratch *s, struct task_struct *task,
				       const struct task_facts *f, __u64 now)
{
	struct thread_times *init = (struct thread_times *)s->message, *t;
	bool is_on_cpu = task_is_on_cpu(task);

	if (opened_ns && !is_on_cpu && may_allocate_in_switch())
		now = opened_ns;
	__builtin_memset(init, 0, sizeof(*init));
	times_fill(init, task, f, now, is_on_cpu);
	init->since_ns = now;
	times_begin_with_thread(init, task, now);
	t = times_make(task, init);
	if (!t)
		return;
	if (!t->since_ns) { /* it was there to count who waits for the GIL */
		times_fill(t, task, f, now, is_on_cpu);
		t->cpu_ns = init->cpu_ns;
		t->unseen_ns = init->unseen_ns;
		__sync_val_compare_and_swap(&t->since_ns, 0, init->since_ns);
	}
	if (t->since_ns == init->since_ns && is_on_cpu && !task_is_on_cpu(task))
		__sync_val_compare_and_swap(&t->out_ns, 0, now);
}

/* For whoever holds the GIL: what others waited for it, as note_waited() has it. */
static __always_inline __u64 blocked_at_cut(struct cpu_state *c, const struct thread_times *t,
					    __u64 duration, __u64 value)
{
	if (t->waits_for_gil || t->waited_ns < t->blocked_ns) /* it has just left the CPU */
		return 0;
	return weigh(gil_blocked_ns(c, t->blocked_ns, t->waited_ns, duration), value, duration);
}

/* Of at least T0 they are all kept, and stand for what they last; shorter ones so often as their
 * length is a part of that, and stand for T0. The last ones are all there is of their thread. */
static __always_inline __u64 value_of_span(__u64 ns)
{
	__u64 whole_ns = spans_whole_ns();

	if (ns >= whole_ns || stopped_ns)
		return ns;
	return (__u64)bpf_get_prandom_u32() * whole_ns >> 32 < ns ? whole_ns : 0;
}

/* T0 may change meanwhile. */
static __always_inline bool is_by_chance(const volatile struct sample_event *e)
{
	return e->value != e->duration_ns;
}

/* Why it waits goes through memory: behind it the verifier has one state again. */
static __always_inline void note_wait(struct sample_event *e, struct task_struct *task,
				      const struct thread_times *t)
{
	struct wait_call call = regs_call((struct pt_regs *)bpf_task_pt_regs(task));

	e->wait = wait_of_file(task, call, wait_reason(t, call));
	e->syscall = wait_syscall(call, e->wait);
}

/* The span that s->sample tells of has ended, at its ktime_ns. */
VERIFIED_ONCE int send_closed(struct py_scratch *s, struct cpu_state *c, int r)
{
	__u32 flags;

	if (!s || !c)
		return 0; /* for the verifier */
	flags = s->walk.flags;
	if (is_by_chance(&s->sample))
		s->walk.flags |= SAMPLE_SHORT;
	if (r == STAT_RECORDED && !send_sample(s, c))
		r = STAT_RING_FULL;
	stat_add(c, at_most((__u32)r, STAT_TICK_END - 1), s->sample.value);
	s->walk.flags = flags;
	return 0;
}

/* The span that was sampled before its end is told whole now: nothing for the sample. A function of
 * its own for the sake of 6.1, where the walk needs the stack. */
static __noinline void drop_open(struct thread_times *t, const struct sample_event *e)
{
	struct span_end_event end = { .kind = EVENT_SPAN_END,
				      .tid = e->tid,
				      .process = e->process,
				      .begin_ns = t->open_ns,
				      .ktime_ns = e->ktime_ns,
				      .syscall = SYSCALL_NONE };

	if (t->open_ns && t->opened == STAT_RECORDED)
		ring_send(&end, sizeof(end));
	t->open_ns = 0;
}

/* The sample of the span that begins at its ktime_ns, whose end comes as an event of its own. */
VERIFIED_ONCE int send_open(struct thread_times *t, struct py_scratch *s, struct cpu_state *c,
			    int r)
{
	struct sample_event *e;

	if (!t || !s || !c)
		return 0; /* for the verifier */
	e = &s->sample;
	drop_open(t, e);
	e->value = 1;
	e->duration_ns = 0;
	e->wait = WAIT_NONE;
	e->syscall = 0;
	s->walk.flags |= SAMPLE_OPEN;
	t->thinned = 0;
	if (r == STAT_RECORDED && !send_sample(s, c))
		r = STAT_RING_FULL;
	if (session.has_exit_hook && r != STAT_RECORDED)
		return 0; /* it is sampled at its end */
	t->opened = r;
	t->open_ns = e->ktime_ns;
	return 0;
}

/* Behind the session's end: what it is in now is not what it was in then. */
static __always_inline bool has_run_unseen(const struct thread_times *t,
					   const struct task_struct *task)
{
	return stopped_ns && task->se.sum_exec_runtime != t->exec_ns;
}

/* Of the span that began at begin_ns no sample is taken before its end, or there is one already. */
static __always_inline bool lasts_no_more(const struct thread_times *t, __u64 begin_ns, __u64 now)
{
	return now - begin_ns < lasting_ns || t->open_ns == begin_ns;
}

/* A pass a second looks ahead, and of nearly all threads there is nothing new: told before all else
 * that is to be known of one. */
static __always_inline bool is_nothing_ahead(struct task_struct *task, __u64 now)
{
	struct thread_times *t = times_get(task);
	__u64 begin_ns;

	if (!t || !t->since_ns)
		return false;
	begin_ns = *(volatile __u64 *)&t->out_ns;
	return !begin_ns || begin_ns > now || lasts_no_more(t, begin_ns, now);
}

/*
 * A thread that is off the CPU: its span ends now, and the next one begins; or it has just been
 * opened. What is known before the walk goes through memory, too.
 */
static __always_inline void look_at_span(struct py_scratch *s, struct cpu_state *c,
					 struct task_struct *task, struct thread_times *t,
					 const struct task_facts *f, const struct proc_row *row,
					 __u64 now)
{
	__u64 begin_ns = *(volatile __u64 *)&t->out_ns;
	volatile struct sample_event *e = &s->sample;
	struct standstill still;
	int r = STAT_FILTERED;

	if (!begin_ns || begin_ns > now || !standstill_begin(task, &still))
		return;
	e->source = SOURCE_SWITCHES;
	e->duration_ns = now - begin_ns;
	e->value = value_of_span(now - begin_ns);
	if (lasting_ns && (lasts_no_more(t, begin_ns, now) || !e->value))
		return;
	if (e->value || !session.has_exit_hook) {
		if (ring_is_filling() || is_pass_over()) {
			spans_left++;
			return;
		}
		r = has_run_unseen(t, task) ? STAT_UNSEEN : walk_remote(s, c, task, f, row, now);
	}
	if (lasting_ns) {
		e->ktime_ns = now - e->duration_ns;
		if (s->walk.status != UNWIND_OUTSIDE && standstill_lasts(task, &still))
			send_open(t, s, c, r);
		return;
	}
	if (t->waits_for_gil == GIL_WAIT_BEGINS)
		s->walk.flags |= SAMPLE_EPISODE;
	e->ktime_ns = now;
	e->blocked_ns = blocked_at_cut(c, t, e->duration_ns, e->value);
	if (t->waits_for_gil)
		e->gil = t->gil;
	else if (e->gil != t->gil)
		e->blocked_ns = 0;
	note_wait(&s->sample, task, t);
	if (!standstill_lasts(task, &still) ||
	    (e->duration_ns &&
	     !times_cut(t, now - e->duration_ns, now, wait_class(e->wait), is_by_chance(e))))
		return;
	if (t->waited_ns > t->blocked_ns)
		t->blocked_ns = t->waited_ns;
	if (t->waits_for_gil)
		t->waits_for_gil = GIL_WAIT_GOES_ON;
	if (e->value)
		send_closed(s, c, r);
	if (session.has_exit_hook)
		drop_open(t, &s->sample);
	else
		send_open(t, s, c, r);
}

/* Where spans are closed, the span of a thread whose memory does not answer ends without a sample.
 */
static __noinline int lose_silent(struct cpu_state *c, struct task_struct *task, __u64 now)
{
	struct thread_times *t = times_get(task);
	__u64 begin_ns = t ? *(volatile __u64 *)&t->out_ns : 0,
	      waited = times_lasted(begin_ns, now);
	bool is_short = waited < spans_whole_ns();

	if (t && begin_ns && waited && closed_ns &&
	    times_cut(t, begin_ns, now, times_unseen_class(t), is_short) && !is_short)
		stat_add(c, STAT_SILENT, waited);
	return 0;
}

/* There was no memory for its entry, nor is there now. */
static __always_inline void lose_thread(struct cpu_state *c, struct task_struct *task, __u64 now)
{
	bool is_older = task->start_time < cut_from_ns;

	stat_add(c, STAT_NO_TIMES, times_lasted(is_older ? cut_from_ns : task->start_time, now));
}

SEC(ITERATOR)
int visit_thread(struct bpf_iter__task *ctx)
{
	struct cpu_state *c = this_cpu_state(SOURCE_SWITCHES);
	struct py_scratch *s = scratch_get_remote();
	struct task_struct *task = ctx->task;
	__u64 now = closed_ns ?: bpf_ktime_get_ns();
	struct thread_times *t;
	struct task_facts f;
	struct proc_row row;

	if (is_left_behind(ctx->meta) || !task || !c || !s ||
	    task->flags & (PF_EXITING | PF_KTHREAD))
		return 0;
	if (lasting_ns && is_nothing_ahead(task, now))
		return 0;
	task_facts_read(task, &f);
	if (!is_recorded(&f, &row) || !is_remote_wanted(task, &f))
		return 0;
	if (is_silent(f.process))
		return lose_silent(c, task, now);
	visit_begin(&f);
	t = times_get(task);
	if (!t || !t->since_ns) {
		times_open(s, task, &f, now);
		/* Its first sample may be its last moment, when nobody can ask for its name. */
		s->thread.pointer = task_pthread_self(task, layout_of(&row));
		introduce_another(task, s, &f, row.layout & (LAYOUTS_MAX - 1));
	} else if (!closed_ns && !lasting_ns) {
		visiting = 0;
		return 0;
	}
	t = times_get(task); /* one state for the verifier */
	if (!t && cut_from_ns)
		lose_thread(c, task, now);
	if (t && (closed_ns || lasting_ns || !session.has_exit_hook))
		look_at_span(s, c, task, t, &f, &row, now);
	visiting = 0;
	return 0;
}

/*
 * How long others have waited for the GIL of a thread, which its process's leader has: looked up
 * before spans are closed and after they were opened, as a program that may sleep does not keep a
 * leader from going.
 */
SEC(ITERATOR)
int note_waited(struct bpf_iter__task *ctx)
{
	struct thread_times *t, *leader;
	struct task_struct *task = ctx->task;

	if (!task || task->flags & (PF_EXITING | PF_KTHREAD))
		return 0;
	t = times_get(task);
	if (!t || !t->out_ns || t->waits_for_gil)
		return 0;
	leader = times_of_leader(t, task);
	if (leader)
		__sync_val_compare_and_swap(&t->gil, 0, leader->first_gil);
	t->waited_ns =
		leader ? gil_waited_ns(leader, t->gil, bpf_ktime_get_ns()) : GIL_WAITED_UNKNOWN;
	if (t->blocked_ns == GIL_WAITED_UNKNOWN)
		t->blocked_ns = t->waited_ns;
	return 0;
}
