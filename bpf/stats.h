/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_STATS_H
#define BPF_STATS_H

/* One counter per reason a sample is lost, cut or worth a remark: enum stat_kind in events.h. */

#include "bpf/maps.h"

static __always_inline struct cpu_state *this_cpu_state(__u32 source)
{
	return bpf_map_lookup_elem(&cpu_states, &source);
}

/* For programs that can be preempted between the lookup and the addition, the add is atomic. */
static __always_inline void stat_add(struct cpu_state *c, enum stat_kind which, __u64 n)
{
	__sync_fetch_and_add(&c->stats[which], n);
}

#endif
