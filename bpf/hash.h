/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_HASH_H
#define BPF_HASH_H

/* How identities are made, and which slots of a lossy cache are one's. Shared with user space. */

#include "bpf/events.h"

#define WAYS 4 /* slots of a set */

static __always_inline __u64 hash_mix(__u64 h, __u64 v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ULL; /* 2^64 / golden ratio */
	return h ^ h >> 32;
}

/* First slot of a key's set. Keys are hashes whose lowest bit is set. */
static __always_inline __u32 set_of(__u64 key, __u32 slots)
{
	return key >> 8 & (slots - WAYS);
}

#endif
