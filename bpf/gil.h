/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_GIL_H
#define BPF_GIL_H

/* Who waits for the GIL, and how long. */

#include "bpf/cache.h"
#include "bpf/maps.h"
#include "bpf/python_gil.h"
#include "bpf/read.h"
#include "bpf/task.h"

#define GIL_EPISODE_NS                                                            \
	50000 /* waits that are less apart may be one: it is waited for in pieces \
	       */
#define GIL_WAITERS_MAX 65536
#define GIL_READS 4
#define GIL_WAITED_UNKNOWN (~0ULL)

/* thread_times.waits_for_gil */
enum gil_wait { GIL_WAIT_NOT, GIL_WAIT_GOES_ON, GIL_WAIT_BEGINS };

/* For thread_times.gil: that of the process, or of its latest interpreter, which mostly is the one
 * it has; 0: there is none yet. User memory must be the process's. */
static __always_inline __u64 gil_find(struct door door, const struct proc_row *row)
{
	const struct py_offsets *off = layout_of(row);
	__u64 interp;

	if (off->gil_last_holder == OFF_NONE)
		return GIL_NONE;
	if (off->runtime_gil != OFF_NONE)
		return row->runtime + off->runtime_gil + off->gil_last_holder;
	if (read_user(door, &interp, sizeof(interp),
		      row->runtime + off->runtime_interpreters_head) ||
	    !interp)
		return 0;
	return gil_at(door, off, interp);
}

/* Has it had the GIL since it last waited for it? Its thread state is known if it was sampled. */
static __always_inline bool gil_was_taken(struct door door, const struct thread_times *t,
					  struct task_struct *task)
{
	__u64 tstate = thread_cache_get(t->process, task->pid) & ~TSTATE_IS_SURE, holder;

	return tstate && !read_user(door, &holder, sizeof(holder), t->gil) && holder == tstate;
}

/* One more waits (1), or one less (-1). */
static __always_inline void gil_count(struct thread_times *leader, __s64 n, __u64 now)
{
	__sync_fetch_and_add(&leader->changes_begun, 1);
	__sync_fetch_and_add(&leader->waiters, n);
	__sync_fetch_and_add(&leader->waited, n * -(__s64)now);
	__sync_fetch_and_add(&leader->changes_done, 1);
}

/* How long all threads of the process have waited for it so far. */
static __always_inline __u64 gil_waited_ns(const struct thread_times *leader, __u64 now)
{
	const volatile struct thread_times *l = leader;

	for (int i = 0; i < GIL_READS; i++) {
		__u64 done = l->changes_done;
		__u64 waited = l->waited + l->waiters * (__s64)now;

		if (l->changes_begun == done)
			return waited;
	}
	return GIL_WAITED_UNKNOWN;
}

static __always_inline __u64 gil_waiters(const struct thread_times *leader)
{
	__s64 n = *(const volatile __s64 *)&leader->waiters;

	return n > 0 && n < GIL_WAITERS_MAX ? n : 0;
}

#endif
