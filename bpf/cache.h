/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_CACHE_H
#define BPF_CACHE_H

#include "bpf/hash.h"
#include "bpf/verifier.h"

/*
 * Lossy caches, written by the sampler on every CPU without locks or atomics: sets of WAYS slots
 * (one cache line of keys and values), an entry may sit in any slot of its set. A two-word slot
 * keeps key ^ value beside value, so a slot torn by two writers is a miss and never a wrong answer.
 * Losing an entry costs a second look, nothing else.
 */

#define CODE_SLOTS 32768
#define THREAD_SLOTS 65536 /* 1 MiB: of 12,000 threads at most 20 have no place */
#define TRUST_SLOTS 4096
#define CONTEXT_SLOTS 4096
#define SEARCH_SLOTS 4096

/* Defined by whoever runs the unwinder: sample.bpf.c, the host tests. */
extern struct cache_slot code_cache[CODE_SLOTS];       /* cheap key of a code object -> identity */
extern struct cache_slot thread_cache[THREAD_SLOTS];   /* thread -> its PyThreadState */
extern struct cache_slot context_cache[CONTEXT_SLOTS]; /* what python_context.h has learned */

/* Identities the ring has taken, xor epoch: user space bumps epoch to have all sent again. */
extern __u64 sent[SENT_SLOTS];
extern __u64 epoch;

extern struct kept_search searches[SEARCH_SLOTS]; /* of threads whose search was late */

struct cache_set {
	struct cache_slot slots[WAYS];
};

/* 0 if it is not there; values are never 0. */
static __always_inline __u64 cache_get(const struct cache_slot *cache, __u32 slots, __u64 key)
{
	const volatile struct cache_slot *set = &cache[set_of(key, slots)];

	for (int i = 0; i < WAYS; i++) {
		__u64 value = set[i].value;

		if ((set[i].check ^ value) == key)
			return value;
	}
	return 0;
}

/* Returns 0. */
VERIFIED_ONCE int cache_set_put(struct cache_set *s, __u64 key, __u64 value)
{
	volatile struct cache_slot *set;
	__u32 at = key >> 4 & (WAYS - 1);

	if (!s)
		return 0; /* for the verifier */
	set = s->slots;
	for (int i = WAYS - 1; i >= 0; i--)
		if (!set[i].value)
			at = i;
	for (int i = 0; i < WAYS; i++)
		if ((set[i].check ^ set[i].value) == key)
			at = i;
	set[at].check = key ^ value;
	set[at].value = value;
	return 0;
}

/* Replaces the key's own entry, else a free one, else one picked by the key. */
static __always_inline void cache_put(struct cache_slot *cache, __u32 slots, __u64 key, __u64 value)
{
	cache_set_put((struct cache_set *)&cache[set_of(key, slots)], key, value);
}

/* What context_cache knows, by keys of their own. */
enum context_fact {
	FACT_HAMT_KIND, /* of a type: enum hamt_kind */
	FACT_VAR,       /* of a label: the variable's address */
	FACT_HASH,      /* and its hash */
	FACT_SPAN_AT,   /* of spans: which of their attributes says what they are, + 1 */
};

/*
 * The values of thread_cache are addresses of thread states. Each is checked before it is believed;
 * more so where its lowest bit is not set.
 */
#define TSTATE_IS_SURE 1ULL

static __always_inline __u64 thread_cache_get(__u64 process, __u32 tid)
{
	return cache_get(thread_cache, THREAD_SLOTS, hash_mix(process, tid));
}

static __always_inline void thread_cache_put(__u64 process, __u32 tid, __u64 tstate)
{
	cache_put(thread_cache, THREAD_SLOTS, hash_mix(process, tid), tstate);
}

static __always_inline __u64 context_key(__u64 of, __u64 at, enum context_fact fact)
{
	return hash_mix(hash_mix(of, at), fact) | 1;
}

static __always_inline bool is_sent(__u64 id)
{
	const volatile __u64 *set = &sent[set_of(id, SENT_SLOTS)];
	__u64 mark = id ^ epoch;

	return set[0] == mark || set[1] == mark || set[2] == mark || set[3] == mark;
}

/* Returns 0. */
VERIFIED_ONCE_NUMBERS int mark_sent(__u64 id)
{
	volatile __u64 *set = &sent[set_of(id, SENT_SLOTS)];
	__u32 at = id >> 4 & (WAYS - 1);

	for (int i = WAYS - 1; i >= 0; i--)
		if (!set[i])
			at = i;
	set[at] = id ^ epoch;
	return 0;
}

/*
 * How far a process's code addresses are trusted. Up to 3.11 a code object that is freed and made
 * again at the same address can look the same in every pointer and number it holds; only the bytes
 * of its names and line table tell. Those take four more reads a frame, so they are compared for
 * every frame until TRUST_SAMPLES samples in a row met neither a new code object nor a reused
 * address, then for the leaf and one other frame in eight. A new code object starts the count
 * again; one reuse seen, and all frames of that process are compared for ever.
 */
#define TRUST_SAMPLES 256
#define TRUST_NEVER 0xffffffffU

extern struct trust trusts[TRUST_SLOTS];

static __always_inline struct trust *trust_of(__u64 process)
{
	struct trust *t = &trusts[process & (TRUST_SLOTS - 1)];

	if (t->process != process) {
		t->process = process;
		t->none = 0;
		if (t->clean != TRUST_NEVER) /* two processes that share a slot share this, too */
			t->clean = 0;
	}
	return t;
}

#endif
