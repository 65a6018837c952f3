/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PYTHON_RESUME_H
#define BPF_PYTHON_RESUME_H

/*
 * Searches for a thread's state that end at their time limit: the thread's next sample continues
 * them where they stopped. A list of 12,000 states takes longer than an interrupt may last.
 */

#include "bpf/cache.h"
#include "bpf/python.h"

/* Bits of kept_search.facts. */
enum kept_fact {
	KEPT_RANK = 0xff, /* enum state_rank */
	KEPT_TIED = 0x100,
	KEPT_BOUND = 0x200,
	KEPT_SECOND = 0x400,
	KEPT_DEEP = 0x800,
};

static __always_inline __u64 kept_key(const struct py_thread *t)
{
	return hash_mix(t->process, t->tid) | 1;
}

static __always_inline volatile struct kept_search *kept_slot(__u64 key)
{
	return &searches[key >> 8 & (SEARCH_SLOTS - 1)];
}

static __always_inline __u64 kept_facts(const struct py_search *q, bool is_deep)
{
	return q->rank | (q->is_tied ? KEPT_TIED : 0) | (q->is_bound ? KEPT_BOUND : 0) |
	       (q->is_second ? KEPT_SECOND : 0) | (is_deep ? KEPT_DEEP : 0);
}

/*
 * Keeps a search that is late. A state in the midst of whose frames it stopped is looked at again;
 * without its frames if all the time went into those. Returns 0.
 */
VERIFIED_ONCE int py_keep_search(const struct py_search *q, __u64 key)
{
	volatile struct kept_search *k = kept_slot(key);
	__u64 facts, counts;

	if (!q)
		return 0; /* for the verifier */
	facts = kept_facts(q, q->frame && q->tstate == q->began_at);
	counts = (__u64)q->busy << 32 | (q->matches - (q->frame && q->is_own));
	k->check =
		key ^ q->tstate ^ q->head ^ q->found ^ q->found_interp ^ q->mark ^ counts ^ facts;
	k->tstate = q->tstate;
	k->head = q->head;
	k->found = q->found;
	k->found_interp = q->found_interp;
	k->mark = q->mark;
	k->counts = counts;
	k->facts = facts;
	return 0;
}

/* Takes the search that was kept for the thread. Returns false if there is none: then q has
 * anything. */
VERIFIED_ONCE int py_take_search(struct py_search *q, __u64 key)
{
	volatile struct kept_search *k = kept_slot(key);
	__u64 facts, counts;

	if (!q)
		return false; /* for the verifier */
	q->tstate = k->tstate;
	q->head = k->head;
	q->found = k->found;
	q->found_interp = k->found_interp;
	q->mark = k->mark;
	counts = k->counts;
	facts = k->facts;
	if (!q->tstate || k->check != (key ^ q->tstate ^ q->head ^ q->found ^ q->found_interp ^
				       q->mark ^ counts ^ facts))
		return false;
	k->tstate = 0;
	q->matches = (__u32)counts;
	q->busy = (__u32)(counts >> 32);
	q->rank = facts & KEPT_RANK;
	q->is_tied = (facts & KEPT_TIED) != 0;
	q->is_bound = (facts & KEPT_BOUND) != 0;
	q->is_second = (facts & KEPT_SECOND) != 0;
	q->is_deep = (facts & KEPT_DEEP) != 0;
	return true;
}

#endif
