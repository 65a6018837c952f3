/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Time off the CPU: each span from the switch that took a thread off a CPU to the one that gave it
 * one again goes into its thread's sums, by what it waited for; those that are kept are sampled.
 * The longer a span the likelier: of those of at least T0 = spans_whole_ns() each is, of one that
 * took T < T0 it is T / T0, and it stands for T0. So a sum over samples is right on average for
 * spans of any length, and the samples are at most a thread's time / T0.
 *
 * Where the kernel has task work (6.18) the thread that comes back walks itself, before it returns
 * to user code: by then it is known how long it was away, and a switch runs no second program.
 * There a span has two parts, what it waited for until it was woken and how long it then was in
 * line for a CPU, as if they were two. Where there is sched_exit_tp (6.16) alone, the walk is
 * there, behind the switch. Before, the only place where its memory can be read is where it leaves,
 * in the midst of the switch, and of 2^k one is walked then, so that the budget is kept; the end of
 * the span comes as a record of its own and says whether it is kept.
 */

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define TASK_WORK_OF_SPANS
#include "bpf/interrupt.h"
#include "bpf/span.h"

#define THRIFT_MAX 10     /* T0 << 10 */
#define THIN_MAX 4        /* one of 2^4 */
#define HAND_OVER_NS 7000 /* what task work takes beside the walk: an interrupt, mostly */

#define GIL_INTERPRETERS_MAX 64 /* that are looked at for one */

__u64 started_ns;
__u32 spans_stride;

/*
 * Is it time to find out what a process runs that is none of Python, as far as is known? One that
 * is to be Python is looked at each time: once its linker is done, the next wait may be its last.
 */
static __always_inline bool is_identify_due(struct task_struct *task, const struct task_facts *f,
					    const struct proc_row *known, __u64 now)
{
	struct binary_key exe = file_key(BPF_CORE_READ(task, mm, exe_file));
	struct binary_row *program = bpf_map_lookup_elem(&binaries, &exe);
	__u64 id = hash_mix(f->process + 1, now >> 23);

	if (program && program->layout != LAYOUT_NONE)
		return true;
	if (program && !known && is_new_process(f))
		return false;
	if (is_sent(id))
		return false;
	mark_sent(id);
	return true;
}

/*
 * Does the process of the thread that leaves the CPU run Python? The row of its program says so; if
 * there is none yet, the process is looked at as a tick would, which may not come before a long
 * wait. The memory that is read is its own, as the thread is the current task.
 */
VERIFIED_ONCE int identify(struct cpu_state *c)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 now = bpf_ktime_get_ns();
	struct task_facts *f;
	struct proc_row row;
	bool has_row;

	if (!c)
		return 0; /* for the verifier */
	f = &c->who;
	task_facts_read(task, f);
	if (!is_wanted(task, f))
		return 0;
	has_row = proc_row_read(f, &row);
	if (session.has_filter && (!has_row || !row.is_target))
		return 0;
	if (has_row && row.exec_id == f->exec_id &&
	    (row.is_ours || row.layout != LAYOUT_NONE || now < row.recheck_ns))
		return row.layout < LAYOUTS_MAX;
	if (!is_identify_due(task, f, has_row ? &row : NULL, now))
		return 0;
	__builtin_memset(&row, 0, sizeof(row));
	if (proc_discover(c, now, true, &row) != STAT_RECORDED || !row.runtime)
		return 0;
	row.start_ns = f->start_ns;
	row.exec_id = f->exec_id;
	row.is_target = 1;
	row_add(f->pid, &row);
	return 1;
}

/* Makes the entry of the current task, if its process is one that is recorded. Returns whether
 * there is one. */
VERIFIED_ONCE int begin_times(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 now = bpf_ktime_get_ns();
	struct thread_times *t;
	struct task_facts f;
	struct proc_row row;

	task_facts_read(task, &f);
	if (!is_recorded(&f, &row) || !is_wanted(task, &f))
		return 0;
	t = times_new(task, &f, now, true);
	if (t)
		times_begin_with_thread(t, task, now);
	return !!t;
}

struct gil_search {
	const struct py_offsets *off;
	__u64 runtime, interp;
	__u64 word; /* a futex; 0: any GIL will do */
	__u64 gil;  /* found; 0: not yet */
};

static int gil_step(__u32 i, struct gil_search *q)
{
	struct door door = {};

	q->gil = gil_of_interpreter(door, q->off, q->runtime, q->interp);
	if (!q->word || gil_has_word(q->gil, q->word))
		return LOOP_STOP;
	q->gil = 0;
	if (read_user(door, &q->interp, sizeof(q->interp), q->interp + q->off->interp_next))
		q->interp = 0;
	return q->interp ? LOOP_NEXT : LOOP_STOP;
}

/*
 * For thread_times.gil, of the current task: the GIL that has the word, or, where that is 0, that
 * of the process or of its latest interpreter, which mostly is the only one; 0: there is none.
 */
VERIFIED_ONCE __u64 find_gil(__u64 word)
{
	struct gil_search q = { .word = word };
	struct door door = {};
	struct task_facts f;
	struct proc_row row;

	task_facts_read(bpf_get_current_task_btf(), &f);
	if (!is_recorded(&f, &row))
		return 0;
	q.off = layout_of(&row);
	q.runtime = row.runtime;
	if (q.off->gil_last_holder == OFF_NONE)
		return GIL_NONE;
	if (read_user(door, &q.interp, sizeof(q.interp),
		      q.runtime + q.off->runtime_interpreters_head) ||
	    !q.interp)
		return 0;
	LOOP(GIL_INTERPRETERS_MAX, gil_step, &q);
	return q.gil;
}

/* Is the futex another GIL's than the one that the thread took before? Then it takes that. */
static __always_inline bool takes_other_gil(struct thread_times *t,
					    const struct thread_times *leader, __u64 word)
{
	__u64 gil = 0;

	if (t->has_more_gils || (leader && leader->has_more_gils))
		gil = find_gil(word);
	if (gil)
		t->gil = gil;
	return gil;
}

/* enum gil_wait of a thread that leaves the CPU to wait. */
static __always_inline __u8 gil_wait_begins(struct thread_times *t,
					    const struct thread_times *leader,
					    struct wait_call call, __u64 now)
{
	if (!(t->out_state & STATE_INTERRUPTIBLE) || !call_waits_for_futex(call))
		return GIL_WAIT_NOT;
	if (!t->gil)
		t->gil = find_gil(0);
	if (!gil_has_word(t->gil, call.args[0]) && !takes_other_gil(t, leader, call.args[0]))
		return GIL_WAIT_NOT;
	if (now - t->gil_end_ns < GIL_EPISODE_NS &&
	    !gil_was_taken((struct door){}, t, bpf_get_current_task_btf()))
		return GIL_WAIT_GOES_ON;
	t->episodes++;
	return GIL_WAIT_BEGINS;
}

/*
 * Of the span that ends now, how long its end was a wait for a CPU, as the scheduler says: the
 * thread had been woken. 0 where all of it was, and where the two cannot be samples of their own.
 */
static __always_inline __u64 queued_ns(const struct thread_times *t, struct task_struct *task)
{
	__u64 now, since, queued;

	if (!times_may_queue(t))
		return 0;
	now = task->se.cfs_rq->rq->clock;
	since = task->sched_info.last_queued;
	queued = task->sched_info.run_delay - t->run_delay;
	if (since && since < now)
		queued += now - since;
	return queued;
}

/* Why, told now, where the registers are at hand that say who waits for the GIL. */
static __always_inline void note_wait(struct thread_times *t, const struct thread_times *leader,
				      const struct leaving *left, bool preempt, __u64 now)
{
	struct wait_call call;

	t->run_delay = left->run_delay;
	t->is_moved = 0;
	t->out_state = left->state;
	t->out_preempt = preempt;
	t->out_wait = WAIT_RUNNABLE;
	if (preempt)
		return;
	call = times_call_of_current(t);
	t->waits_for_gil = gil_wait_begins(t, leader, call, now);
	t->out_wait = wait_reason(t, call);
}

/* A span of the current task begins; leader: times_of_leader(). The task is asked for where it is
 * needed alone: that is a call. */
static __always_inline void span_begins(struct cpu_state *c, struct thread_times *t,
					struct thread_times *leader, bool preempt, __u64 now)
{
	if (t->out_ns)
		times_return_unseen(c, t, leader, bpf_get_current_task_btf(), now);
	t->cpu_ns += now - t->in_ns;
	t->exec_ns = c->left.exec_ns;
	note_wait(t, leader, &c->left, preempt, now);
	/* There may be none yet while a session starts. */
	t->is_counted = leader && t->waits_for_gil;
	if (t->is_counted && !leader->first_gil)
		__sync_val_compare_and_swap(&leader->first_gil, 0, t->gil);
	if (leader && !t->gil)
		t->gil = leader->first_gil;
	t->blocked_ns = leader ? gil_waited_ns(leader, t->gil, now) : GIL_WAITED_UNKNOWN;
	if (t->is_counted)
		gil_count(leader, t->gil, 1, now);
	t->out_ns = now;
}

/* The times of the current task, which leaves the CPU. NULL: it is not recorded. */
static __always_inline struct thread_times *times_of_leaving(struct cpu_state *c,
							     struct task_struct *task)
{
	struct thread_times *t = times_get(task);
	bool has_times = t && t->since_ns, is_python = has_times && t->is_identified;

	if (!is_python && !(task->flags & PF_EXITING) && started_ns && may_allocate_in_switch())
		is_python = identify(c);
	if (!has_times) {
		if (!is_python || !begin_times())
			return NULL;
		t = times_get(task);
	}
	if (!t)
		return NULL;
	t->is_identified = is_python;
	times_note_regs(t, task);
	c->left.exec_ns = task->se.sum_exec_runtime;
	c->left.run_delay = 0;
	if (session.has_exit_work && may_know_queue())
		c->left.run_delay = task->sched_info.run_delay;
	c->left.state = task->__state;
	return t;
}

/* What switches cost without samples: the clock is looked at around one of so many. */
#define COST_EVERY 64

static __always_inline __u64 cost_begin(struct cpu_state *c)
{
	return ++c->switches % COST_EVERY ? 0 : bpf_ktime_get_ns();
}

static __always_inline void cost_end(struct cpu_state *c, __u64 begin_ns)
{
	if (begin_ns)
		stat_add(c, STAT_RUN_NS, (bpf_ktime_get_ns() - begin_ns) * COST_EVERY);
}

/*
 * With probability ns / whole; both are less than 2^44, which is five hours. By the upper bits of a
 * linear congruence (Knuth's for MMIX): the helper takes several times as long as the rest of this.
 */
static __always_inline bool by_chance(struct cpu_state *c, __u64 ns, __u64 whole, __u64 now)
{
	c->random = (c->random ?: now) * 6364136223846793005ULL + 1442695040888963407ULL;
	return (c->random >> 44) * whole < ns << 20;
}

/* What samples cost decides how many there are. */
static __always_inline void keep_budget(struct cpu_state *c, __u64 now, __u32 most)
{
	budget_fill(c, BUDGET_SHARE_SMALL, BUDGET_MAX_NS, now);
	thrift_keep(c, now, most);
}

/*
 * Begins a sample of the thread that c->span is of, in *out: what can be said of it without its
 * memory. Returns STAT_RECORDED, or the counter that says why there will be none.
 */
static __always_inline int span_sample_begin(struct cpu_state *c, struct task_struct *task,
					     struct py_scratch **out)
{
	struct py_scratch *s;

	task_facts_read(task, &c->who);
	if (!is_recorded(&c->who, &c->row))
		return STAT_NOT_PYTHON;
	if (c->budget_ns < -BUDGET_MAX_NS)
		return STAT_SKIPPED;
	s = scratch_get(scratch_own(SOURCE_SWITCHES));
	if (!s)
		return STAT_NO_SCRATCH;
	begin_sample(s, task, &c->who, &c->row, c->span.now_ns);
	s->sample.source = SOURCE_SWITCHES;
	s->sample.value = c->span.value;
	s->sample.duration_ns = c->span.duration_ns;
	s->sample.blocked_ns = c->span.blocked_ns;
	s->sample.gil = c->span.gil;
	s->sample.wait = c->span.reason;
	s->sample.syscall = c->span.syscall;
	s->sample.flags = c->span.flags;
	*out = s;
	return STAT_RECORDED;
}

/* Of the span that c->span is. */
static __always_inline struct sampler_call span_call(const struct cpu_state *c)
{
	return (struct sampler_call){ .source = SOURCE_SWITCHES,
				      .access = ACCESS_IRQ,
				      .value = c->span.value,
				      .count = c->span.value };
}

/* Samples the thread that c->span is of: it is the current one, and c->who. Returns the counter
 * that this ends in. */
static __always_inline int span_sample(struct cpu_state *c, struct thread_times *t,
				       struct task_struct *task, bool may_hand_over)
{
	struct sampler_call call = span_call(c);
	struct py_scratch *s;
	int r = span_sample_begin(c, task, &s);

	if (r != STAT_RECORDED)
		return r;
	r = walk_and_send(&call, c, task, s, may_hand_over);
	if (r == STAT_RECORDED)
		gil_note(t, &s->sample);
	return r;
}

/*
 * The same of the thread that is about to come back: it takes the sample itself, before it returns
 * to user code. What it waits for until then, still in the kernel, has the same stack, and may be
 * one sample with this one, where it is of the same class and length.
 */
static __always_inline int span_hand_over(struct cpu_state *c, struct task_struct *task)
{
	struct sampler_call call = span_call(c);
	struct py_scratch *s;
	int r = span_sample_begin(c, task, &s);

	if (r != STAT_RECORDED)
		return r;
	call.kind = 1 + 2 * wait_class(c->span.reason) + !!(c->span.flags & SAMPLE_SHORT);
	s->walk.faults = 0;
	r = task_sample_schedule(&call, task, c, s, c->row.layout);
	return r < 0 ? STAT_NO_TASK_WORK : r;
}

/* How spans are kept. */
struct keeping {
	__u64 whole_ns; /* from this on none is kept by chance */
	__u32 thinned;  /* of 2^thinned one is, however long */
};

/* Says in c->span why the thread waited, where reason leaves out the kind of file and the system
 * call. */
static __always_inline void name_wait(struct cpu_state *c, const struct thread_times *t,
				      __u8 reason)
{
	struct wait_call call = { .number = SYSCALL_NONE };

	if (reason == WAIT_OTHER || reason == WAIT_READ_FILE || reason == WAIT_WRITE_FILE)
		call = times_call_apart(t);
	c->span.reason = wait_of_file((struct task_struct *)c->ended.task, call, reason);
	c->span.syscall = wait_syscall(call, reason);
}

/* Waited for so long, up to end_ns: into the thread's sums, and *span if it is kept. */
static __always_inline bool part_ends(struct cpu_state *c, struct thread_times *t,
				      struct wait_span *span, __u8 class, __u64 end_ns,
				      __u64 duration, struct keeping k)
{
	bool is_short = duration < k.whole_ns;

	times_add(t, class, duration, is_short || k.thinned);
	if (is_short && !by_chance(c, duration, k.whole_ns, c->ended.now_ns))
		return false;
	span->now_ns = end_ns;
	span->duration_ns = duration;
	span->value = (is_short ? k.whole_ns : duration) << k.thinned;
	span->flags = is_short || k.thinned ? SAMPLE_SHORT : 0;
	return true;
}

/*
 * The span c->ended: into the sums and, as far as it is kept, c->span and c->queued, which lack
 * blocked_ns. Returns whether gil_span_ends() is to follow.
 */
static __always_inline bool span_ends(struct cpu_state *c, struct thread_times *t)
{
	struct keeping k = { .whole_ns = spans_whole_ns() };
	__u64 now = c->ended.now_ns, duration, queued;
	__u8 reason;

	c->ended.begin_ns = times_take(t, now);
	duration = times_lasted(c->ended.begin_ns, now);
	c->ended.queued_ns = queued = at_most(c->ended.queued_ns, duration);
	if (session.has_exit_hook)
		k.whole_ns <<= c->thrift & 15;
	else
		k.thinned = t->thinned & 15;
	reason = t->out_wait ?: wait_reason(t, times_call_apart(t));
	c->is_kept =
		part_ends(c, t, &c->span, wait_class(reason), now - queued, duration - queued, k);
	if (c->is_kept)
		name_wait(c, t, reason);
	if (queued && part_ends(c, t, &c->queued, CLASS_RUNNABLE, now, queued, k)) {
		c->is_queued_kept = 1;
		c->queued.reason = WAIT_RUNNABLE;
		c->queued.syscall = SYSCALL_NONE;
		c->queued.gil = 0;
	}
	t->gil_end_ns = now;
	t->spans++;
	return c->is_kept || c->is_queued_kept || t->waits_for_gil;
}

/*
 * One thread leaves the CPU, the current task, and one comes back, as far as they are recorded:
 * else NULL. leader: times_of_leader() of the former. Returns whether gil_span_ends() is to follow.
 * One function for both, as each return takes a CPU with SRSO up to 10 ns.
 */
VERIFIED_ONCE int times_switch(struct cpu_state *c, struct thread_times *leaves,
			       struct thread_times *leader, __u32 preempt,
			       struct thread_times *returns)
{
	if (!c)
		return 0; /* for the verifier */
	c->ended.now_ns = bpf_ktime_get_ns();
	if (leaves)
		span_begins(c, leaves, leader, preempt, c->ended.now_ns);
	return returns ? span_ends(c, returns) : 0;
}

/*
 * What the span c->ended has to do with a GIL. leader: times_of_leader(). For how long others
 * waited for the GIL since the thread left the CPU counts if it held it. Returns 0.
 */
VERIFIED_ONCE int gil_span_ends(struct cpu_state *c, struct thread_times *t,
				struct thread_times *leader)
{
	__u64 now, duration, blocked = 0;

	if (!c || !t)
		return 0; /* for the verifier */
	now = c->ended.now_ns;
	duration = times_lasted(c->ended.begin_ns, now);
	if (leader && !t->waits_for_gil)
		blocked = gil_blocked_ns(c, t->blocked_ns, gil_waited_ns(leader, t->gil, now),
					 duration);
	c->span.blocked_ns = weigh(blocked, c->span.value, duration);
	c->queued.blocked_ns = weigh(blocked, c->queued.value, duration);
	c->span.gil = t->waits_for_gil ? t->gil : 0;
	if (t->waits_for_gil == GIL_WAIT_BEGINS)
		c->span.flags |= SAMPLE_EPISODE;
	times_end_gil_wait(t, leader, now - c->ended.queued_ns, now);
	return 0;
}

/*
 * On a kernel with sched_exit_tp and no task work: behind the switch, in the thread that has come
 * back. A new thread comes to it at its second switch; of its first wait for a CPU it has nothing
 * to show.
 */
SEC("traced/sched_exit_tp")
int on_switched(__u64 *ctx)
{
	struct cpu_state *c = this_cpu_state(SOURCE_SWITCHES);
	struct task_struct *task;
	struct thread_times *t;
	__u64 begin_ns;
	int r;

	if (!c || !c->is_kept || !ctx[0] /* is_switch */)
		return 0;
	c->is_kept = 0;
	begin_ns = bpf_ktime_get_ns();
	task = bpf_get_current_task_btf();
	t = times_get(task);
	if (!t)
		return 0; /* for the verifier */
	keep_budget(c, begin_ns, THRIFT_MAX);
	r = span_sample(c, t, task, session.has_task_work);
	stat_add(c, at_most((__u32)r, STAT_TICK_END - 1), c->span.value);
	budget_spend(c, bpf_ktime_get_ns() - begin_ns);
	return 0;
}

/* Before 6.16: samples the span that begins. */
static __always_inline void sample_open(struct cpu_state *c, struct task_struct *task, __u64 now)
{
	struct thread_times *t = times_get(task);

	if (!t)
		return; /* for the verifier */
	keep_budget(c, now, THIN_MAX);
	t->thinned = c->thrift;
	if (bpf_get_prandom_u32() & ((1U << (t->thinned & 15)) - 1))
		return;
	c->span = (struct wait_span){ .now_ns = now,
				      .value = 1,
				      .gil = t->waits_for_gil ? t->gil : 0,
				      .flags = SAMPLE_OPEN };
	t->opened = span_sample(c, t, task, false);
	t->open_ns = now;
	budget_spend(c, bpf_ktime_get_ns() - now);
}

/* What became of the span c->ended, of which the sample was taken before its end. */
VERIFIED_ONCE int close_open(struct cpu_state *c, struct thread_times *t)
{
	struct span_end_event e = { .kind = EVENT_SPAN_END, .syscall = SYSCALL_NONE };
	__u32 r;

	if (!c || !t)
		return 0; /* for the verifier */
	r = t->opened;
	t->open_ns = 0;
	e.tid = t->tid;
	e.process = t->process;
	e.ktime_ns = c->ended.now_ns;
	e.begin_ns = c->ended.begin_ns;
	if (c->is_kept) {
		e.ktime_ns = c->span.now_ns;
		e.wait = c->span.reason;
		e.syscall = c->span.syscall;
		e.value = c->span.value;
		e.blocked_ns = c->span.blocked_ns;
		e.flags = c->span.flags;
	}
	c->is_kept = 0;
	if (r == STAT_RECORDED && !ring_send(&e, sizeof(e)))
		r = STAT_RING_FULL;
	stat_add(c, at_most(r, STAT_TICK_END - 1), e.value);
	return 0;
}

/* The times of the thread that comes back, of which c->ended is filled in as far as its task says.
 * NULL: no span of it ends. */
static __always_inline struct thread_times *times_of_returning(struct cpu_state *c,
							       struct task_struct *task)
{
	struct thread_times *t = times_get(task);

	if (!t || !t->out_ns)
		return NULL;
	c->ended.queued_ns = queued_ns(t, task);
	c->ended.task = (__u64)task;
	times_note_regs(t, task);
	return t;
}

/* Where there is no program behind the switch. */
static __noinline int sample_kept(struct cpu_state *c, struct task_struct *task)
{
	__u64 now = bpf_ktime_get_ns();
	int r;

	keep_budget(c, now, THRIFT_MAX);
	r = span_hand_over(c, task);
	stat_add(c, at_most((__u32)r, STAT_TICK_END - 1), c->span.value);
	budget_spend(c, bpf_ktime_get_ns() - now + HAND_OVER_NS);
	return 0;
}

SEC("traced/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct cpu_state *c = this_cpu_state(SOURCE_SWITCHES);
	struct thread_times *leaves = NULL, *returns;
	__u64 begin_ns;

	if (!c)
		return 0;
	begin_ns = cost_begin(c);
	c->is_kept = c->is_queued_kept = 0;
	if (!(prev->flags & PF_KTHREAD))
		leaves = times_of_leaving(c, prev);
	returns = times_of_returning(c, next);
	if (leaves || returns) {
		if (times_switch(c, leaves, leaves ? times_of_leader(leaves, prev) : NULL, preempt,
				 returns) &&
		    returns)
			gil_span_ends(c, returns, times_of_leader(returns, next));
		if (returns && returns->open_ns == c->ended.begin_ns)
			close_open(c, returns);
	}
	cost_end(c, begin_ns);
	if (session.has_exit_work && c->is_kept)
		sample_kept(c, next);
	if (session.has_exit_work && c->is_queued_kept) {
		c->span = c->queued;
		sample_kept(c, next);
	}
	if (leaves && !session.has_exit_hook)
		sample_open(c, prev, c->ended.now_ns);
	return 0;
}

/*
 * Since 6.12 a thread that begins to sleep may stay in line until its turn would have come, and may
 * be moved with those that wait for a CPU.
 */
SEC("traced/sched_migrate_task")
int BPF_PROG(on_migrate, struct task_struct *task)
{
	struct thread_times *t;

	if (!bpf_core_field_exists(task->se.sched_delayed) || !task->se.sched_delayed)
		return 0;
	t = times_get(task);
	if (t)
		t->is_moved = 1;
	return 0;
}

/*
 * What Python calls a thread can only be read while it lives, and if it waits for long its first
 * sample comes late.
 */
static __always_inline void announce_thread(struct task_struct *task, const struct task_facts *f,
					    const struct proc_row *row)
{
	struct thread_event e = { .pid = f->pid,
				  .tid = f->tid,
				  .pointer = task_pthread_self(task, layout_of(row)) };

	BPF_CORE_READ_STR_INTO(&e.comm, task, comm);
	thread_identify(&e, task, f->process);
	ring_send(&e, sizeof(e));
}

/* Returns true if the current task has times, as its unidentified process may run Python. */
static __always_inline bool has_times_unidentified(const struct task_facts *f)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct thread_times *t = times_get(task);

	return t && t->since_ns && t->may_be_python && is_unidentified(f) &&
	       program_may_be_python(task);
}

/*
 * A thread or a process that a recorded process makes is in the recording from its first moment,
 * and so is one that a process makes which is to be identified.
 */
SEC("traced/sched_process_fork")
int BPF_PROG(on_thread, struct task_struct *parent, struct task_struct *child)
{
	bool is_thread = parent->tgid == child->tgid, is_known;
	struct thread_times *t;
	struct task_facts f;
	struct proc_row row;

	if (!started_ns)
		return 0;
	task_facts_read(parent, &f);
	is_known = is_recorded(&f, &row);
	if (!is_known && !has_times_unidentified(&f))
		return 0;
	if (session.has_filter && !session.follow_children && !is_thread)
		return 0;
	task_facts_read(child, &f);
	if (!f.pid)
		return 0;
	times_slot_free(child);
	t = times_new(child, &f, bpf_ktime_get_ns(), false);
	if (t && !is_known)
		t->may_be_python = 1;
	if (is_known && is_thread)
		announce_thread(child, &f, &row);
	return 0;
}
