/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_SAMPLER_H
#define BPF_SAMPLER_H

/* One sample of a thread, whoever asks for it: walked, described, sent. */

#include "bpf/describe.h"
#include "bpf/python_context.h"
#include "bpf/python_frames.h"
#include "bpf/python_gil.h"
#include "bpf/python_opcode.h"
#include "bpf/python_state.h"
#include "bpf/python_task.h"
#include "bpf/python_thread.h"

static __always_inline void count_walk(struct cpu_state *c, const struct py_walk *w)
{
	stat_add(c, STAT_FRAMES, w->depth);
	if (w->deferred)
		stat_add(c, STAT_CODE_DEFERRED, w->deferred);
	if (w->flags & SAMPLE_AMBIGUOUS)
		stat_add(c, STAT_AMBIGUOUS, 1);
	if (w->flags & SAMPLE_CODE_FAULT)
		stat_add(c, STAT_CODE_FAULT, 1);
	if (w->flags & SAMPLE_LABEL_TYPE)
		stat_add(c, STAT_LABEL_TYPE, 1);
	if (w->status == UNWIND_TRUNCATED)
		stat_add(c, STAT_TRUNCATED, 1);
	else if (w->status == UNWIND_FAULT)
		stat_add(c, STAT_FAULT, 1);
	else if (w->status == UNWIND_CUT)
		stat_add(c, STAT_CUT, 1);
	else if (w->status == UNWIND_INVALID)
		stat_add(c, STAT_INVALID, 1);
	else if (w->status == UNWIND_LATE)
		stat_add(c, STAT_LATE, 1);
}

/* Of a tick: does the mode ask for it, as far as its flags are known? */
static __always_inline bool is_asked_for(const struct py_scratch *s)
{
	return !session.ticks_flags || s->sample.source != SOURCE_TICKS ||
	       s->walk.flags & session.ticks_flags;
}

/* A thread that runs no Python code. */
static __always_inline int be_outside(struct py_scratch *s)
{
	s->walk.status = UNWIND_OUTSIDE;
	s->walk.depth = 0;
	s->sample.interpreter = 0;
	return is_asked_for(s) ? STAT_RECORDED : STAT_NOT_ASKED;
}

/* What is asked of the sampler. */
struct sampler_call {
	enum sample_source source;
	enum access access;
	__u64 value; /* what the sample stands for, in the source's unit */
	__u64 count; /* what counters count it as: 1 of SOURCE_EVENTS, else the same */
	__u32 event; /* SOURCE_EVENTS: which of the session's, < EVENTS_MAX; else 0 */
	__u32 kind;  /* SOURCE_SWITCHES: samples of a kind may be one, in task work; else 0 */
	__u32 share; /* of a CPU that the source may take: BUDGET_SHARE */
	__s64 saved_max_ns; /* what it may save up of that */
	__u32 enough;  /* so much is not skipped, as long as there is credit; 0: not looked at */
	__u32 scratch; /* which work space is the caller's */
};

/* Fills in what is known before the walk. */
static __always_inline void begin_sample(struct py_scratch *s, struct task_struct *task,
					 const struct task_facts *f, const struct proc_row *row,
					 __u64 now)
{
	s->thread.process = f->process;
	s->thread.family = task_family(task);
	s->thread.pointer = task_pthread_self(task, layout_of(row));
	s->thread.leader = task_unseen_leader(task);
	s->thread.runtime = row->runtime;
	s->thread.tid = known_field(task, pid);
	s->sample.cpu = bpf_get_smp_processor_id();
	s->sample.ktime_ns = now;
	s->sample.process = f->process;
	s->sample.pid = f->pid;
	s->sample.tid = f->tid;
	s->sample.gil = 0;
	s->part.opcode = OPCODE_NONE;
}

/* Before the walk: s->thread and all else that is known of s->sample are filled in. */
static __always_inline void begin_walk(struct py_scratch *s, enum access access)
{
	s->walk.process = s->thread.process;
	s->walk.family = s->thread.family;
	s->walk.salt = s->sample.ktime_ns >> 7;
	s->walk.flags = s->sample.flags;
	s->walk.time_max_ns = access == ACCESS_REMOTE ? TIME_MAX_OPEN_NS
			      : access == ACCESS_TASK ? TIME_MAX_TASK_NS
			      : session.has_task_work ? TIME_MAX_SHORT_NS
						      : TIME_MAX_NS;
	if (access == ACCESS_TASK)
		s->walk.flags |= SAMPLE_TASK_WORK;
}

/* The row of the process, as far as it is of this program. */
static __always_inline void find_asyncio(struct py_scratch *s)
{
	__u32 pid = s->sample.pid;
	struct asyncio_row *row = bpf_map_lookup_elem(&asyncio_rows, &pid);

	if (row && row->process == s->walk.process)
		s->async.row = *row;
	else
		s->async.row.process = 0;
}

static __always_inline void find_tasks(struct py_loop *l)
{
	struct py_scratch *s = l->s;

	s->async.task = 0;
	s->async.count = 0;
#ifndef OLD_KERNEL
	if (!session.has_async)
		return;
	find_asyncio(s);
	if (s->async.row.process)
		py_find_tasks(l);
#endif
}

/* Finds the thread state, before the walk: what became of it is s->search.result. */
static __always_inline void find_tstate_by(struct door door, struct py_scratch *s, __u32 layout)
{
	struct py_loop l = { .s = s, .thread = &s->thread, .door = door };

	l.off = &layouts[layout & (LAYOUTS_MAX - 1)];
	s->walk.faults = 0;
	s->walk.steps = 0;
	s->walk.gc_frame = 0;
	s->walk.is_moment = 0;
	s->walk.pass = 0;
	s->walk.deadline_ns = clock_ns() + s->walk.time_max_ns;
	s->part.opcode = OPCODE_NONE;
	s->search.result = py_find_tstate(&l);
}

/*
 * Walks the thread, whose state was looked for, and describes what is new. Returns STAT_RECORDED
 * when s->walk, s->sample and s->records hold a sample to be sent, else the counter that says why
 * there is none.
 */
static __always_inline int take_found_by(struct door door, struct py_scratch *s,
					 struct cpu_state *c, __u32 layout)
{
	struct describe_loop d = { .s = s, .stats = c, .door = door };
	struct py_loop l = { .s = s, .door = door };
	int r = s->search.result;

	l.thread = &s->thread;
	l.off = &layouts[layout & (LAYOUTS_MAX - 1)];
	d.off = l.off;
	s->describing.layout = layout;
	if (s->search.has_walked)
		stat_add(c, STAT_TSTATE_WALK, 1);
	if (r == PY_NONE)
		return be_outside(s);
	if (r)
		return r == PY_LATE ? STAT_TSTATE_LATE : STAT_TSTATE_FAULT;
	if (session.has_spans && !s->sample.gil)
		s->sample.gil = gil_of_interpreter(door, l.off, l.thread->runtime,
						   tstate_u64(s, l.off->tstate_interp));
	py_note_exception(&l);
	if (!is_asked_for(s))
		return STAT_NOT_ASKED;
	if (session.has_gc)
		py_note_collection(&l);
	if (py_first_frame(door, s, l.off))
		return STAT_TSTATE_FAULT;
	if (!s->walk.frame && !s->walk.has_several)
		return be_outside(s);
	py_enter_interpreter(&l);
	s->sample.interpreter = py_interpreter_shown(&s->walk, l.off);
	if (session.has_opcodes)
		py_note_evaluator(&l);
	find_tasks(&l);
	py_walk_frames(&l);
	if (!s->walk.depth && s->walk.status == UNWIND_COMPLETE)
		return be_outside(s); /* none; 3.15: the thread's base frame alone */
	if (session.has_opcodes)
		s->part.opcode = py_opcode(door, s, l.off);
	LOOP(CODES_PER_SAMPLE, describe, &d);
	return STAT_RECORDED;
}

static __always_inline bool has_labels(void)
{
	return session.label_count || session.has_async;
}

/* Where the thread's process has what OTEP 4947 says, if it does. */
static __always_inline void py_take_thread_context(struct py_loop *l)
{
	struct py_scratch *s = l->s;
	struct thread_context_row *row = NULL;
	__u32 pid = s->sample.pid;

	s->context.slot.process = 0;
	if (session.has_thread_contexts)
		row = bpf_map_lookup_elem(&thread_contexts, &pid);
	if (row)
		s->context.slot = *row;
	py_read_thread_context(l);
}

#ifdef OLD_KERNEL
/* bpf/old.bpf.c */
int label_old_sample(void);
int find_old_tstate(__u32 layout);
int take_old_sample(__u32 layout);

static __always_inline int take_sample(struct py_scratch *s, struct cpu_state *c, __u32 layout)
{
	find_old_tstate(layout);
	return take_old_sample(layout);
}

/* Of context variables alone. */
static __always_inline void label_sample(struct door door, struct py_scratch *s, __u32 layout,
					 int r)
{
	if (session.label_count && r == STAT_RECORDED && s->walk.status != UNWIND_OUTSIDE)
		label_old_sample();
}
#else
/*
 * The parts of labelling, each a function by itself: stacks of a chain of calls would not hold all
 * of it.
 */
#ifdef READ_REMOTE
#define LABELS_PART(part)                                                                      \
	VERIFIED_ONCE int remote_##part(ANOTHER_TASK, struct py_scratch *s, __u32 layout)      \
	{                                                                                      \
		struct py_loop l = { .s = s,                                                   \
				     .off = &layouts[layout & (LAYOUTS_MAX - 1)],              \
				     .door = { task } };                                       \
                                                                                               \
		if (!s || !has_labels())                                                       \
			return 0;                                                              \
		py_##part(&l);                                                                 \
		return 0;                                                                      \
	}                                                                                      \
	static __always_inline void part(struct door door, struct py_scratch *s, __u32 layout) \
	{                                                                                      \
		remote_##part(door.task, s, layout);                                           \
	}
#else
/* The verifier looks at them also where no labels are asked for. */
#define LABELS_PART(part)                                                                      \
	VERIFIED_ONCE int own_##part(struct py_scratch *s, __u32 layout)                       \
	{                                                                                      \
		struct py_loop l = { .s = s, .off = &layouts[layout & (LAYOUTS_MAX - 1)] };    \
                                                                                               \
		if (!s || !has_labels())                                                       \
			return 0;                                                              \
		py_##part(&l);                                                                 \
		return 0;                                                                      \
	}                                                                                      \
	static __always_inline void part(struct door door, struct py_scratch *s, __u32 layout) \
	{                                                                                      \
		own_##part(s, layout);                                                         \
	}
#endif
LABELS_PART(take_thread_context)
LABELS_PART(read_labels)
LABELS_PART(find_span)
LABELS_PART(read_ids)
LABELS_PART(read_task_name)

/*
 * On the way to the thread state, frames and names is where most states are: verified once, for the
 * tick and for task work. They are two functions, one behind the other: stacks would not hold both.
 */
#ifdef READ_REMOTE
VERIFIED_ONCE int remote_find_tstate(ANOTHER_TASK, struct py_scratch *s, __u32 layout)
{
	if (!s)
		return 0; /* for the verifier */
	find_tstate_by((struct door){ task }, s, layout);
	return 0;
}

VERIFIED_ONCE int remote_take_found(ANOTHER_TASK, struct py_scratch *s, struct cpu_state *c,
				    __u32 layout)
{
	if (!s || !c)
		return STAT_NO_SCRATCH;
	return take_found_by((struct door){ task }, s, c, layout);
}
#else
VERIFIED_ONCE int own_find_tstate(struct py_scratch *s, __u32 layout)
{
	if (!s)
		return 0; /* for the verifier */
	find_tstate_by((struct door){}, s, layout);
	return 0;
}

VERIFIED_ONCE int take_found(struct py_scratch *s, struct cpu_state *c, __u32 layout)
{
	if (!s || !c)
		return STAT_NO_SCRATCH;
	return take_found_by((struct door){}, s, c, layout);
}

static __always_inline int take_sample(struct py_scratch *s, struct cpu_state *c, __u32 layout)
{
	own_find_tstate(s, layout);
	return take_found(s, c, layout);
}
#endif

/* Behind the walk, whose stack is free again, what it was of is labelled: r is what it returned. */
static __always_inline void label_sample(struct door door, struct py_scratch *s, __u32 layout,
					 int r)
{
	if (!has_labels() || r != STAT_RECORDED || s->walk.status == UNWIND_OUTSIDE)
		return;
	take_thread_context(door, s, layout);
	if (session.label_count) {
		read_labels(door, s, layout);
		if (s->context.spanned) {
			find_span(door, s, layout);
			read_ids(door, s, layout);
		}
	}
	if (session.has_async)
		read_task_name(door, s, layout);
	s->labels.labels = labels_identity(s);
}
#endif

/* At the first sample of a set. Returns its identity; 0: it is empty, or the ring is full. */
static __always_inline __u64 send_labels(struct py_scratch *s, struct cpu_state *c)
{
	struct labels_event *e = &s->labels;
	__u64 id = e->labels, count = e->count;

	if (!id || is_sent(id))
		return id;
	e->kind = EVENT_LABELS;
	e->pid = s->sample.pid;
	e->process = s->walk.process;
	count = at_most(count, CONTEXT_LABELS_MAX);
	if (!ring_send(e, LABELS_EVENT_HEAD + count * sizeof(e->values[0])))
		return 0;
	mark_sent(id);
	stat_add(c, STAT_LABELS_SENT, 1);
	return id;
}

/*
 * User space can read in the pages that the thread cannot, which helps the next sample; a page that
 * does not come has its process named there. Asked at most every 134 ms for one address.
 */
static __always_inline void ask_page(struct cpu_state *c, struct py_scratch *s, __u32 layout)
{
	struct page_event *e = (struct page_event *)s->message;
	__u64 id = hash_mix(hash_mix(s->walk.process, s->faults[0].addr), s->sample.ktime_ns >> 27);

	if (!s->walk.faults || is_sent(id))
		return;
	e->kind = EVENT_PAGE;
	e->count = s->walk.faults;
	e->layout = layout;
	e->pid = s->sample.pid;
	__builtin_memcpy(e->ranges, s->faults, sizeof(e->ranges));
	if (bpf_ringbuf_output(&events, e, sizeof(*e), BPF_RB_FORCE_WAKEUP))
		return;
	mark_sent(id);
	stat_add(c, STAT_PAGE, 1);
}

static __always_inline bool send_sample(struct py_scratch *s, struct cpu_state *c)
{
	__u64 depth = at_most(s->walk.depth, FRAMES_MAX);

	s->sample.kind = EVENT_SAMPLE;
	s->sample.flags = s->walk.flags;
	s->sample.labels = 0;
	s->sample.task = session.has_async && s->walk.depth ? s->async.task : 0;
	s->sample.coro_frame = s->async.frame;
	if (has_labels() && s->walk.status != UNWIND_OUTSIDE)
		s->sample.labels = send_labels(s, c);
	if (session.has_spans && !(s->walk.flags & SAMPLE_HOLDS_GIL))
		s->sample.blocked_ns = 0;
	s->part.kind = PART_PYTHON;
	s->part.status = s->walk.status;
	s->part.depth = depth;
	if (!ring_send(&s->sample,
		       sizeof(s->sample) + sizeof(s->part) + depth * sizeof(struct frame_record)))
		return false;
	stat_add(c, STAT_WEIGHT, s->sample.value);
	if (s->walk.status == UNWIND_OUTSIDE)
		stat_add(c, STAT_OUTSIDE, s->sample.value);
	count_walk(c, &s->walk);
	return true;
}

/* The work spaces that are of no source and CPU: of task work, the remote walk and spare ones. */
static __always_inline __u32 scratch_shared(__u32 number)
{
	return session.scratch_rows * session.cpus + number;
}

static __always_inline struct py_scratch *scratch_get(__u32 slot)
{
	return bpf_map_lookup_elem(&scratch, &slot);
}

#endif
