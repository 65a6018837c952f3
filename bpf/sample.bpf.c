/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/* On-CPU samples: one perf_event program, run in the interrupted thread's own context. */

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/tick.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct session_config session = {};
const volatile struct label_config label_configs[CONTEXT_LABELS_MAX] = {};

struct cache_slot code_cache[CODE_SLOTS];
struct cache_slot thread_cache[THREAD_SLOTS];
struct kept_search searches[SEARCH_SLOTS];
struct cache_slot context_cache[CONTEXT_SLOTS];
struct trust trusts[TRUST_SLOTS];
__u8 long_walks[LONG_WALKS];
__u32 task_scratch_busy[TASK_SCRATCHES_MAX];
__u64 sent[SENT_SLOTS];
__u64 epoch;
struct py_offsets layouts[LAYOUTS_MAX]; /* written by user space before any row names them */

SEC("perf_event")
int sample(struct bpf_perf_event_data *ctx)
{
	tick_take(ctx);
	return 0;
}
