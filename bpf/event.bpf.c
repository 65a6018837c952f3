/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Samples of what the user names: perf events, tracepoints, functions, USDT probes, and growth of
 * resident memory. A program for each way to be called, loaded where a session has such an event;
 * which one it is, its cookie says.
 */

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/interrupt.h"

/* All kernels that we run on have cookies: no need for libbpf to find out. */
#undef __kconfig
#define __kconfig
#include <bpf/usdt.bpf.h>
const _Bool LINUX_HAS_BPF_COOKIE = true;

const volatile struct event_config event_configs[EVENTS_MAX];
__u32 has_events_on; /* by user space: what comes before and after is not recorded */

/* include/linux/mm_types_task.h */
#define MM_ANONPAGES 1
#define MM_SHMEMPAGES 3

#define PAGE_BYTES (1 << (session.page_shift & 31))
#define AHEAD_MAX (64 * PAGE_BYTES)
#define MEMORY_ENOUGH (16 * PAGE_BYTES)
#define MEMORY_SAVED_MAX_NS (BUDGET_MAX_NS / BUDGET_SHARE_SMALL)

/*
 * Programs for functions can be preempted, by a thread that comes to the same place, and
 * interrupted by events of the other kinds. So a slot is taken: that of the CPU, else, where
 * somebody was preempted who has it, a spare one. -1: none is free.
 */
VERIFIED_ONCE int event_slot_claim(__u32 cpu)
{
	struct event_slot *slot;
	__u32 number;

	for (__u32 i = 0; i <= EVENT_SPARE_SLOTS; i++) {
		number = i ? session.cpus + i - 1 : cpu;
		slot = bpf_map_lookup_elem(&event_slots, &number);
		if (slot && !__sync_val_compare_and_swap(&slot->is_taken, 0, 1))
			return number;
	}
	return -1;
}

static __always_inline __u32 slot_scratch(__u32 slot)
{
	if (slot < session.cpus)
		return session.scratch_row[SOURCE_EVENTS] * session.cpus + slot;
	return scratch_shared(session.task_scratches + session.has_spans * REMOTE_SCRATCHES) +
	       slot - session.cpus;
}

/*
 * Returns the number of periods that the value completes with what recorded processes left before;
 * 0: none. Events of other processes do not count: they would scatter the samples.
 */
static __always_inline __u64 count_periods(struct event_slot *slot, __u32 event, __u64 value)
{
	__u64 period = event_configs[event & (EVENTS_MAX - 1)].period;
	__u64 *pending = &slot->pending[event & (EVENTS_MAX - 1)];

	if (period <= 1)
		return value;
	value += *pending;
	*pending = value % period;
	return value / period;
}

/* `value` of this event has come. */
static __always_inline int take_event(const struct known_task *k, const struct pt_regs *regs,
				      __u32 event, __s64 value, enum event_class class)
{
	bool is_memory = class == EVENT_CLASS_MEMORY;
	struct sampler_call call = {
		.source = SOURCE_EVENTS,
		.access = ACCESS_IRQ,
		.count = 1,
		.event = at_most(event, EVENTS_MAX - 1),
		.share = is_memory ? BUDGET_SHARE_SMALL : BUDGET_SHARE,
		.saved_max_ns = is_memory ? MEMORY_SAVED_MAX_NS : BUDGET_MAX_NS,
		.enough = is_memory ? MEMORY_ENOUGH : 0,
	};
	__u64 now = bpf_ktime_get_ns();
	struct event_slot *slot;
	__u32 number;
	int claimed, r;

	if (value <= 0)
		return 0;
	claimed = event_slot_claim(bpf_get_smp_processor_id());
	if (claimed < 0) {
		struct cpu_state *c = this_cpu_state(SOURCE_EVENTS);

		if (c)
			stat_add(c, STAT_NO_SCRATCH, 1);
		return 0;
	}
	number = claimed;
	slot = bpf_map_lookup_elem(&event_slots, &number);
	if (!slot)
		return 0; /* for the verifier */
	call.scratch = slot_scratch(number);
	call.value = value;
	r = find_interrupted(&call, &slot->state, k, now);
	if (class != EVENT_CLASS_PERF && (r == STAT_RECORDED || r == STAT_UNKNOWN))
		call.value = count_periods(slot, call.event, value);
	if (call.value) {
		r = sample_interrupted(&call, &slot->state, k->task, regs, r, now);
		stat_add(&slot->state, at_most((__u32)r, STAT_TICK_END - 1), 1);
	}
	budget_spend_of(&slot->state, r, bpf_ktime_get_ns() - now);
	__sync_lock_test_and_set(&slot->is_taken, 0);
	return 0;
}

static __always_inline const volatile struct event_config *config_of(__u32 event)
{
	return &event_configs[event & (EVENTS_MAX - 1)];
}

SEC("perf_event")
int on_perf_event(struct bpf_perf_event_data *ctx)
{
	struct known_task k;
	__u32 event;
	__u64 value = 1;

	known_task_read(&k);
	if (!has_events_on)
		return 0;
	event = bpf_get_attach_cookie(ctx);
	if (config_of(event)->value == EVENT_PERIOD)
		value = ctx->sample_period;
	return take_event(&k, (struct pt_regs *)&ctx->regs, event, value, EVENT_CLASS_PERF);
}

/* A number in the record of a tracepoint, or in a register. */
static __always_inline __s64 extend(__u64 value, __u32 bytes, bool is_signed)
{
	__u32 shift = 64 - 8 * bytes;

	value <<= shift & 63;
	return is_signed ? (__s64)value >> (shift & 63) : (__s64)(value >> (shift & 63));
}

SEC("tracepoint")
int on_tracepoint(void *ctx)
{
	const volatile struct event_config *config;
	struct known_task k;
	__u32 event;
	__u64 field = 0;
	__s64 value = 1;

	known_task_read(&k);
	if (!has_events_on)
		return 0;
	event = bpf_get_attach_cookie(ctx);
	config = config_of(event);
	if (config->value == EVENT_FIELD) {
		__u32 bytes = at_most(config->field_bytes, sizeof(field));

		bpf_probe_read_kernel(&field, bytes, ctx + config->field_offset);
		value = extend(field, bytes, config->field_signed);
	}
	return take_event(&k, NULL, event, value, EVENT_CLASS_TRACEPOINT);
}

/* By a helper: the compiler would add to the context what differs, which is then none any more. */
static __always_inline __s64 function_arg(struct pt_regs *ctx, __u32 arg)
{
	const void *const places[] = { &PT_REGS_PARM1(ctx), &PT_REGS_PARM2(ctx),
				       &PT_REGS_PARM3(ctx), &PT_REGS_PARM4(ctx),
				       &PT_REGS_PARM5(ctx) };
	__s64 value = 0;

	for (__u32 i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (arg == i)
			bpf_probe_read_kernel(&value, sizeof(value), places[i]);
	return value;
}

SEC("uprobe")
int on_function(struct pt_regs *ctx)
{
	const volatile struct event_config *config;
	struct known_task k;
	__u32 event;
	__s64 value = 1;

	known_task_read(&k);
	if (!has_events_on)
		return 0;
	event = bpf_get_attach_cookie(ctx);
	config = config_of(event);
	if (config->value == EVENT_ARG)
		value = function_arg(ctx, config->arg);
	return take_event(&k, ctx, event, value, EVENT_CLASS_FUNCTION);
}

SEC("usdt")
int on_usdt(struct pt_regs *ctx)
{
	const volatile struct event_config *config;
	struct known_task k;
	long value = 1;
	__u32 event;

	known_task_read(&k);
	if (!has_events_on)
		return 0;
	event = bpf_usdt_cookie(ctx);
	config = config_of(event);
	if (config->value == EVENT_ARG)
		bpf_usdt_arg(ctx, config->arg, &value);
	return take_event(&k, ctx, event, value, EVENT_CLASS_PROBE);
}

/*
 * By how much this address space has grown, bytes, <= 0: not at all. The kernel tells the size, not
 * the change. Where two threads grow at once, the one that tells first may be given both, and the
 * size of the other is smaller than that: what it was ahead is taken off what comes next. A page
 * fault makes nothing smaller, by which such sizes are told from memory that was given back.
 */
static __always_inline __s64 rss_growth(struct rss_size *last, __s64 bytes, bool is_fault)
{
	__s64 grown = bytes - last->bytes, ahead = last->ahead;

	last->bytes = bytes;
	if (grown < 0) {
		last->ahead = is_fault && -grown <= AHEAD_MAX ? ahead - grown : 0;
		return 0;
	}
	if (!ahead)
		return grown;
	last->ahead = ahead > grown ? ahead - grown : 0;
	return grown - ahead;
}

/*
 * Notes the size, and returns what is growth of the current task. A function of its own: its stack
 * is free again before the walk.
 */
static __noinline long rss_note(__u32 mm_id, __s32 member, __s64 bytes, __u32 is_own,
				__u32 is_fault)
{
	struct rss_key key = { .mm_id = mm_id, .member = member };
	struct rss_size first = { .bytes = bytes }, *last;

	last = bpf_map_lookup_elem(&rss_sizes, &key);
	if (!is_own) {
		if (last)
			last->bytes = bytes; /* reclaimed, say: nobody's growth */
		return 0;
	}
	if (last)
		return rss_growth(last, bytes, is_fault);
	bpf_map_update_elem(&rss_sizes, &key, &first, BPF_ANY);
	return PAGE_BYTES; /* what it was before is not known */
}

/* Of mappings of files nothing is told: what they take is the file's. */
SEC("tracepoint")
int on_rss(struct trace_event_raw_rss_stat *ctx)
{
	__s32 member = ctx->member;
	struct known_task k;
	struct pt_regs *regs;
	__s64 grown;

	known_task_read(&k);
	if (!has_events_on || (member != MM_ANONPAGES && member != MM_SHMEMPAGES))
		return 0;
	regs = (struct pt_regs *)bpf_task_pt_regs(k.task);
	grown = rss_note(ctx->mm_id, member, ctx->size, ctx->curr, regs_syscall(regs) < 0);
	return take_event(&k, NULL, bpf_get_attach_cookie(ctx), grown, EVENT_CLASS_MEMORY);
}
