/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_TASK_WORK_H
#define BPF_TASK_WORK_H

/*
 * A sample that met missing pages is taken again by the thread itself, before it returns to the
 * code that the tick interrupted: there a page can be waited for. It reads the pages in, takes a
 * work space, walks as an interrupt would, and where that meets the next missing page gives the
 * work space back before it waits: a page of a dead network mount holds nobody up but its own
 * thread.
 */

#include "bpf/budget.h"
#include "bpf/sampler.h"
#include "bpf/schedule.h"
#ifdef TASK_WORK_OF_SPANS
#include "bpf/span.h"
#endif

#define TASK_PASSES 64 /* each reads in at least one page */
/*
 * A thread holds a slot for each source, event and class of waiting until it returns to user code,
 * which may be a long system call later. Threads that were made one after the other share none:
 */
#define TASK_SLOTS_EACH 4        /* slots from one TID to the next */
#define TASK_WAYS 8              /* slots that a TID may take: its own, and those of the next TID */
#define TASK_SLOT_CLOSED (~0ULL) /* task_slot.owner: not free, and for nobody to join */

/* Which of the scratch slots of task work are taken. */
extern __u32 task_scratch_busy[TASK_SCRATCHES_MAX];

static __always_inline __u32 *task_scratch_of(__u32 number)
{
	return &task_scratch_busy[number & (session.task_scratches - 1) & (TASK_SCRATCHES_MAX - 1)];
}

/* Takes a free work space and returns its number; -1: none is free. Each CPU begins at another one.
 */
VERIFIED_ONCE int task_scratch_claim(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	for (__u32 i = 0; i < session.task_scratches; i++)
		if (!__sync_val_compare_and_swap(task_scratch_of(cpu + i), 0, 1))
			return (cpu + i) & (session.task_scratches - 1);
	return -1;
}

static __always_inline void task_scratch_release(struct task_sample *t)
{
	__sync_lock_test_and_set(task_scratch_of(t->scratch), 0);
}

/* The tid alone is of several: samples of other sources, events and kinds do not join. */
static __always_inline __u64 task_owner(__u32 tid, const struct sampler_call *call)
{
	return tid | (__u64)call->source << TASK_OWNER_SOURCE |
	       (__u64)(call->event + call->kind) << TASK_OWNER_EVENT;
}

static __always_inline struct task_slot *task_slot_get(__u32 number)
{
	return bpf_map_lookup_elem(&task_slots, &number);
}

/* From now on samples that would join this one are samples of their own. Returns the value of those
 * that joined. */
static __always_inline __u64 task_slot_close(struct task_slot *slot)
{
	if (!slot)
		return 0; /* for the verifier */
	__sync_lock_test_and_set(&slot->owner, TASK_SLOT_CLOSED);
	return __sync_lock_test_and_set(&slot->joined, 0);
}

/* The same; then the slot is free. */
static __always_inline __u64 task_slot_release(struct task_slot *slot)
{
	__u64 joined = task_slot_close(slot);

	if (slot)
		__sync_lock_test_and_set(&slot->owner, 0);
	return joined;
}

/*
 * Threads whose walk takes too long for an interrupt: the next one is theirs at once. Two that
 * share an entry only walk themselves, or in an interrupt, once more than they had to.
 */
extern __u8 long_walks[LONG_WALKS];

static __always_inline __u8 *long_walk_of(const struct py_thread *t)
{
	return &long_walks[hash_mix(t->process, t->tid) & (LONG_WALKS - 1)];
}

#ifdef TASK_WORK_OF_SPANS
/* Nobody has met the thread yet: it is in task work before all else. */
static __always_inline void meet_thread(struct task_sample *t, struct py_scratch *s,
					const struct task_facts *f)
{
	introduce_current(s, f, t->layout);
}

static __noinline void note_gil_of_sample(struct py_scratch *s)
{
	struct thread_times *times = times_get(bpf_get_current_task_btf());

	if (times)
		gil_note(times, &s->sample);
}

/* Who waits for longer has been looked at before, from user space. */
#define SEEN_AHEAD_NS 200000000
#define SIGNAL_GROUP_EXIT 4 /* include/linux/sched/signal.h */

/*
 * Its process ends, and finalization freed the states of all daemon threads before they wake up:
 * where they waited nobody knows any more.
 */
static __always_inline bool has_lost_state(const struct py_scratch *s)
{
	return s->walk.status == UNWIND_OUTSIDE && s->sample.duration_ns < SEEN_AHEAD_NS &&
	       BPF_CORE_READ(bpf_get_current_task_btf(), signal, flags) & SIGNAL_GROUP_EXIT;
}
#else
static __always_inline void meet_thread(struct task_sample *t, struct py_scratch *s,
					const struct task_facts *f)
{
}

static __always_inline void note_gil_of_sample(struct py_scratch *s)
{
}

static __always_inline bool has_lost_state(const struct py_scratch *s)
{
	return false;
}
#endif

/*
 * False: it has begun another program since. It was in the midst of that when the sample was due,
 * as it has not returned to user code in between, and its memory was gone.
 */
static __noinline bool task_sample_begins(struct task_sample *t, struct py_scratch *s)
{
	struct task_facts f;

	task_facts_read(bpf_get_current_task_btf(), &f);
	if (f.process != t->thread.process)
		return false;
	meet_thread(t, s, &f);
	return true;
}

static __noinline void task_sample_ends(struct py_scratch *s, struct cpu_state *c, __u64 begin_ns)
{
	__u64 took = clock_ns() - begin_ns;

	budget_spend(c, took);
	*long_walk_of(&s->thread) = took > TIME_MAX_SHORT_NS;
}

/* One pass: from t->sample, as the tick left it. Returns as take_sample(). */
static __always_inline int task_sample_walk(struct task_sample *t, struct py_scratch *s,
					    struct cpu_state *c)
{
	__u64 begin_ns;
	int r;

	s->thread = t->thread;
	s->sample = t->sample;
	begin_walk(s, ACCESS_TASK);
	if (!task_sample_begins(t, s) || !s->thread.runtime)
		return be_outside(s);
	begin_ns = clock_ns();
	r = take_sample(s, c, t->layout);
	label_sample((struct door){}, s, t->layout, r);
	note_gil_of_sample(s);
	task_sample_ends(s, c, begin_ns);
	return has_lost_state(s) ? STAT_TSTATE_FAULT : r;
}

struct task_passes {
	struct task_sample *t;
	struct cpu_state *stats;
	__u64 joined; /* what the sample that was sent stands for besides */
	int walked;   /* what the last pass returned */
	int result;
};

static int read_in(__u32 i, struct task_passes *p)
{
	struct task_sample *t = p->t;

	if (i >= t->fault_count)
		return LOOP_STOP;
	if (read_in_user(&t->faults[i & (FAULTS_MAX - 1)]))
		t->read_in++;
	return LOOP_NEXT;
}

static __always_inline int send_task_sample(struct task_passes *p, struct py_scratch *s)
{
	p->joined = task_slot_close(
		task_slot_get(p->t->slot)); /* a tick while it is sent is another sample */
	s->sample.value += p->joined;
	if (p->joined)
		s->walk.flags |= SAMPLE_WEIGHTED;
	return send_sample(s, p->stats) ? STAT_TW_RECORDED : STAT_TW_RING_FULL;
}

/* Nothing of the work space is held while pages are waited for. */
static int task_sample_pass(__u32 i, struct task_passes *p)
{
	struct task_sample *t = p->t;
	struct py_scratch *s;
	bool is_last;
	int claimed, r;

	t->read_in = 0;
	bpf_loop(FAULTS_MAX, read_in, p, 0);
	is_last = (t->fault_count && !t->read_in) || i == TASK_PASSES - 1;
	claimed = task_scratch_claim();
	if (claimed < 0) {
		p->result = STAT_TW_NO_SCRATCH;
		return LOOP_STOP;
	}
	t->scratch = claimed;
	s = scratch_get(scratch_shared(t->scratch));
	if (!s)
		return LOOP_STOP; /* for the verifier */
	r = task_sample_walk(t, s, p->stats);
	if (!is_last && s->walk.faults) {
		t->fault_count = s->walk.faults;
		__builtin_memcpy(t->faults, s->faults, sizeof(t->faults));
		task_scratch_release(t);
		return LOOP_NEXT;
	}
	p->walked = r;
	ask_page(p->stats, s, t->layout);
	if (r == STAT_RECORDED)
		p->result = send_task_sample(p, s);
	task_scratch_release(t);
	return LOOP_STOP;
}

/* Runs in the thread itself. */
static int task_sample_run(struct bpf_map *map, void *key, void *value)
{
	struct task_sample *t = value;
	struct task_passes p = { .t = t,
				 .stats = this_cpu_state(t->sample.source),
				 .result = STAT_TW_FAILED };
	__u64 count = t->count, lost = count + t->carried;

	if (!p.stats)
		return 0;
	bpf_loop(TASK_PASSES, task_sample_pass, &p, 0);
	lost += p.joined + task_slot_release(task_slot_get(t->slot)); /* t may be another's now */
	if (p.walked == STAT_NOT_ASKED)
		stat_add(p.stats, STAT_TW_NOT_ASKED, count);
	else if (p.result == STAT_TW_RECORDED)
		stat_add(p.stats, STAT_TW_RECORDED, count);
	else
		stat_add(p.stats, at_most(p.result, STAT_COUNT_ - 1), lost);
	return 0;
}

/* The slot for a sample: one that is its owner's already, else a free one, now its own. */
enum task_claim { TASK_SLOT_JOINED = -1, TASK_SLOT_NONE = -2 };

static __always_inline __u32 task_slot_at(__u64 owner, __u32 way)
{
	return ((__u32)owner * TASK_SLOTS_EACH + way) & (session.task_works - 1);
}

VERIFIED_ONCE int task_slot_claim(__u64 owner, __u64 value)
{
	struct task_slot *slot;

	for (__u32 i = 0; i < TASK_WAYS; i++) {
		slot = task_slot_get(task_slot_at(owner, i));
		if (!slot || slot->owner != owner)
			continue;
		/* It cannot be given back in between: this interrupts the thread that would. */
		__sync_fetch_and_add(&slot->joined, value);
		return TASK_SLOT_JOINED;
	}
	for (__u32 i = 0; i < TASK_WAYS; i++) {
		slot = task_slot_get(task_slot_at(owner, i));
		if (slot && !__sync_val_compare_and_swap(&slot->owner, 0, owner))
			return task_slot_at(owner, i);
	}
	return TASK_SLOT_NONE;
}

/*
 * Has this sample taken again where pages can be read in. Returns STAT_TASK_WORK; STAT_TW_JOINED if
 * the thread, still on its way back to user code, waits for that already; -1: not possible now.
 */
static __always_inline int task_sample_schedule(const struct sampler_call *call,
						struct task_struct *task, struct cpu_state *c,
						struct py_scratch *s, __u32 layout)
{
	/* An event counts as one, whatever its value. */
	bool may_join = call->source != SOURCE_EVENTS;
	struct task_sample *t;
	struct task_slot *slot;
	__u32 number;
	int claimed;

	claimed = task_slot_claim(task_owner(s->thread.tid, call), may_join ? s->sample.value : 0);
	if (claimed == TASK_SLOT_JOINED)
		return may_join ? STAT_TW_JOINED : -1;
	number = claimed;
	t = bpf_map_lookup_elem(&task_samples, &number);
	slot = task_slot_get(number);
	if (t && slot) {
		t->thread = s->thread;
		t->sample = s->sample;
		t->count = call->count;
		t->carried = s->sample.value > call->value ? skipped_of(c, call->event)->count : 0;
		t->layout = layout;
		t->slot = number;
		slot->value = t->count + t->carried;
		t->fault_count = s->walk.faults;
		__builtin_memcpy(t->faults, s->faults, sizeof(t->faults));
		if (!task_work_schedule(task, &t->work, &task_samples, task_sample_run, NULL))
			return STAT_TASK_WORK;
		task_slot_release(slot);
	}
	stat_add(c, STAT_TW_BUSY, 1);
	return -1;
}

#endif
