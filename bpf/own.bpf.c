/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * `dump`, of threads that run: each walks itself, before it goes on in its own code, so that its
 * stack is of one moment. An object of its own, with its own caches: nothing is recorded.
 */

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/own.h"
#include "bpf/schedule.h"
#include "bpf/task.h"

#define OWN_NS_MAX 1500000 /* of the thread's own time; what comes on top is one pass at most */
#define OWN_PASSES 8       /* each but the first reads in at least one page */

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct cache_slot code_cache[CODE_SLOTS];
struct cache_slot thread_cache[THREAD_SLOTS];
struct kept_search searches[SEARCH_SLOTS];
struct trust trusts[TRUST_SLOTS];
__u64 sent[SENT_SLOTS];
__u64 epoch;

struct py_offsets layout;
__u32 asked; /* which of own_walks the next pass of the iterator is for */

struct own_work {
	struct bpf_task_work work;
	__u32 slot;
	__u32 reserved;
};

/* A slot's. User space sets the size. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct own_work);
} own_works SEC(".maps");

/* One walk of the current thread. */
VERIFIED_ONCE int own_look(struct own_walk *w, struct py_scratch *s)
{
	struct py_look look = {};

	if (!w || !s)
		return PY_FAULT; /* for the verifier */
	own_begin(w, s, w->began_ns + OWN_NS_MAX);
	if (!s->thread.pointer)
		s->thread.pointer = task_pthread_self(task_current(), &layout);
	look.loop.s = s;
	look.loop.off = &layout;
	look.loop.thread = &s->thread;
	look.frames = w->frames;
	return py_look(&look, &w->head);
}

struct own_passes {
	struct own_walk *w;
	struct py_scratch *s;
	__u32 read_in; /* pages, in this pass */
};

static int own_read_in(__u32 i, struct own_passes *p)
{
	if (i >= p->s->walk.faults)
		return LOOP_STOP;
	if (read_in_user(&p->s->faults[i & (FAULTS_MAX - 1)]))
		p->read_in++;
	return LOOP_NEXT;
}

/* Behind a walk that missed pages they are read in, and it is walked again. */
static int own_pass(__u32 i, struct own_passes *p)
{
	p->read_in = 0;
	if (i)
		bpf_loop(FAULTS_MAX, own_read_in, p, 0);
	if (i && (!p->read_in || clock_ns() > p->w->began_ns + OWN_NS_MAX))
		return LOOP_STOP;
	p->w->result = own_look(p->w, p->s);
	return p->s->walk.faults ? LOOP_NEXT : LOOP_STOP;
}

/* Runs in the thread itself. */
static int own_run(struct bpf_map *map, void *key, void *value)
{
	struct own_work *work = value;
	struct own_passes p = {};
	__u32 slot = work->slot;

	p.w = bpf_map_lookup_elem(&own_walks, &slot);
	p.s = bpf_map_lookup_elem(&own_scratch, &slot);
	if (!p.w || !p.s ||
	    __sync_val_compare_and_swap(&p.w->state, OWN_WAITS, OWN_BEGUN) != OWN_WAITS)
		return 0;
	p.w->began_ns = clock_ns();
	bpf_loop(OWN_PASSES, own_pass, &p, 0);
	p.w->ended_ns = clock_ns();
	__sync_val_compare_and_swap(&p.w->state, OWN_BEGUN, OWN_DONE);
	return 0;
}

/* Does it run, or would it, if there were a CPU? */
static __always_inline bool task_runs(struct task_struct *task)
{
	return task_is_on_cpu(task) || !((volatile struct task_struct *)task)->__state;
}

/* An iter/task, but not by a name that libbpf knows: user/collect/objects.c says what it is. */
SEC("iterator/task")
int ask_thread(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	__u32 slot = asked;
	struct own_walk *w = bpf_map_lookup_elem(&own_walks, &slot);
	struct own_work *work = bpf_map_lookup_elem(&own_works, &slot);

	if (!task || !w || !work)
		return 0;
	if (!task_runs(task)) {
		w->state = OWN_RESTS;
		return 0;
	}
	work->slot = slot;
	if (task_work_schedule(task, &work->work, &own_works, own_run, NULL))
		__sync_val_compare_and_swap(&w->state, OWN_WAITS, OWN_FAILED);
	return 0;
}
