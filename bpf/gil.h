/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_GIL_H
#define BPF_GIL_H

/* Counts the threads that wait for each GIL of a process, and how long they wait. */

#include "bpf/cache.h"
#include "bpf/maps.h"
#include "bpf/python_gil.h"
#include "bpf/read.h"
#include "bpf/task.h"
#include "bpf/times.h"

#define GIL_EPISODE_NS                                                            \
	50000 /* waits that are less apart may be one: it is waited for in pieces \
	       */
#define GIL_WAITERS_MAX 65536
#define GIL_READS 4
#define GIL_WAITED_UNKNOWN (~0ULL)

/* thread_times.waits_for_gil */
enum gil_wait { GIL_WAIT_NOT, GIL_WAIT_GOES_ON, GIL_WAIT_BEGINS };

/* Has it had the GIL since it last waited for it? Its thread state is known if it was sampled. */
static __always_inline bool gil_was_taken(struct door door, const struct thread_times *t,
					  struct task_struct *task)
{
	__u64 tstate = thread_cache_get(t->process, task->pid) & ~TSTATE_IS_SURE, holder;

	return tstate && !read_user(door, &holder, sizeof(holder), t->gil) && holder == tstate;
}

static __always_inline void gil_count_add(struct gil_count *c, __s64 n, __u64 now)
{
	__sync_fetch_and_add(&c->changes_begun, 1);
	__sync_fetch_and_add(&c->waiters, n);
	__sync_fetch_and_add(&c->waited, n * -(__s64)now);
	__sync_fetch_and_add(&c->changes_done, 1);
}

static __always_inline __u64 gil_count_waited_ns(const struct gil_count *count, __u64 now)
{
	const volatile struct gil_count *c = count;

	for (int i = 0; i < GIL_READS; i++) {
		__u64 done = c->changes_done;
		__u64 waited = c->waited + c->waiters * (__s64)now;

		if (c->changes_begun == done)
			return waited;
	}
	return GIL_WAITED_UNKNOWN;
}

static __always_inline __u64 gil_count_waiters(const struct gil_count *c)
{
	__s64 n = *(const volatile __s64 *)&c->waiters;

	return n > 0 && n < GIL_WAITERS_MAX ? n : 0;
}

/* Returns the count of a further GIL of a process; NULL: no thread has waited for it. The verifier
 * checks the callers also where there is no such map. */
static __always_inline struct gil_count *gil_further(__u64 process, __u64 gil, bool make)
{
	__u64 key = hash_mix(process, gil);
	struct gil_count none = {}, *c;

	if (!session.has_spans)
		return NULL;
	c = bpf_map_lookup_elem(&gil_counts, &key);
	if (c || !make)
		return c;
	bpf_map_update_elem(&gil_counts, &key, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&gil_counts, &key);
}

/* The three above, for a further GIL. The first one returns 0. */
VERIFIED_ONCE int gil_further_add(__u64 process, __u64 gil, __s64 n, __u64 now)
{
	struct gil_count *c = gil_further(process, gil, n > 0);

	if (c)
		gil_count_add(c, n, now);
	return 0;
}

VERIFIED_ONCE __u64 gil_further_waited_ns(__u64 process, __u64 gil, __u64 now)
{
	struct gil_count *c = gil_further(process, gil, false);

	return c ? gil_count_waited_ns(c, now) : 0;
}

VERIFIED_ONCE __u64 gil_further_waiters(__u64 process, __u64 gil)
{
	struct gil_count *c = gil_further(process, gil, false);

	return c ? gil_count_waiters(c) : 0;
}

/* Adds n (1 or -1) to the number of threads that wait for that GIL of the process. */
static __always_inline void gil_count(struct thread_times *leader, __u64 gil, __s64 n, __u64 now)
{
	if (leader->first_gil == gil) {
		gil_count_add(&leader->of_first_gil, n, now);
		return;
	}
	leader->has_more_gils = 1;
	gil_further_add(leader->process, gil, n, now);
}

/* How long all threads of the process have waited for that GIL so far. */
static __always_inline __u64 gil_waited_ns(const struct thread_times *leader, __u64 gil, __u64 now)
{
	if (leader->first_gil == gil)
		return gil_count_waited_ns(&leader->of_first_gil, now);
	return leader->has_more_gils ? gil_further_waited_ns(leader->process, gil, now) : 0;
}

static __always_inline __u64 gil_waiters(const struct thread_times *leader, __u64 gil)
{
	if (leader->first_gil == gil)
		return gil_count_waiters(&leader->of_first_gil);
	return leader->has_more_gils ? gil_further_waiters(leader->process, gil) : 0;
}

/*
 * The GIL that the thread takes, as its walk has just found: an interpreter's of its own, where
 * that is not the one that was known. What others waited for that is nothing to it.
 */
static __always_inline void gil_note(struct thread_times *t, struct sample_event *e)
{
	if (!e->gil || e->gil == t->gil || t->waits_for_gil)
		return;
	t->has_more_gils |= t->gil > GIL_NONE;
	t->gil = e->gil;
	t->blocked_ns = GIL_WAITED_UNKNOWN;
	e->blocked_ns = 0;
}

#endif
