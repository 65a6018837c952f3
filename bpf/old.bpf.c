/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Ticks on Linux 5.10 to 5.16, which have neither callbacks nor what else `sample` takes. The same
 * sources, but what is a loop's step there, or a function of pointers, is here a global function
 * that takes numbers: each is verified once, and finds by itself what it works on, which is its
 * CPU's, as nothing interrupts a tick that takes samples of ticks.
 */

#define OLD_KERNEL

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#pragma clang diagnostic ignored "-Wunused-function" /* spans and tasks: not for these kernels */
#include "bpf/tick.h"

static __always_inline struct py_scratch *tick_scratch(void)
{
	return scratch_get(scratch_own(SOURCE_TICKS));
}

static __always_inline struct cpu_state *tick_state(void)
{
	return this_cpu_state(SOURCE_TICKS);
}

static __always_inline bool loop_find(struct py_loop *l)
{
	struct py_scratch *s = tick_scratch();

	if (!s)
		return false;
	l->s = s;
	l->off = &layouts[s->describing.layout & (LAYOUTS_MAX - 1)];
	l->thread = &s->thread;
	return true;
}

static __always_inline bool describe_loop_find(struct describe_loop *l)
{
	struct py_scratch *s = tick_scratch();

	l->stats = tick_state();
	if (!s || !l->stats)
		return false;
	l->s = s;
	l->off = &layouts[s->describing.layout & (LAYOUTS_MAX - 1)];
	return true;
}

#define STEP(step, loop, find)                                  \
	VERIFIED_ONCE_NUMBERS int step##_once(__u32 i)          \
	{                                                       \
		struct loop l = {};                             \
                                                                \
		return find(&l) ? step(i, &l) : LOOP_STOP;      \
	}                                                       \
	VERIFIED_ONCE_NUMBERS int step##_chunk(__u32 from)      \
	{                                                       \
		for (__u32 i = 0; i < STEPS_CHUNK; i++)         \
			if (step##_once(from + i) != LOOP_NEXT) \
				return LOOP_STOP;               \
		return LOOP_NEXT;                               \
	}

STEP(py_step, py_loop, loop_find)
STEP(py_search_step, py_loop, loop_find)
STEP(py_handling_step, py_loop, loop_find)
STEP(hamt_find_step, py_loop, loop_find)
STEP(hamt_search_step, py_loop, loop_find)
STEP(label_step, py_loop, loop_find)
STEP(describe_lines, describe_loop, describe_loop_find)
STEP(describe, describe_loop, describe_loop_find)

VERIFIED_ONCE_NUMBERS int find_old_process(__u64 now)
{
	struct cpu_state *c = tick_state();

	return c ? proc_find(c, now) : STAT_NO_SCRATCH;
}

VERIFIED_ONCE_NUMBERS int introduce_old(__u32 layout)
{
	struct cpu_state *c = tick_state();
	struct py_scratch *s = tick_scratch();

	if (c && s)
		introduce((struct door){}, s, task_current(), &c->who, layout);
	return 0;
}

VERIFIED_ONCE_NUMBERS int label_old_sample(void)
{
	struct py_loop l = {};

	if (!session.label_count || !loop_find(&l))
		return 0;
	l.s->labels.count = 0;
	l.s->context.found = 0;
	py_read_labels(&l);
	l.s->labels.labels = labels_identity(l.s);
	return 0;
}

VERIFIED_ONCE_NUMBERS int find_old_tstate(__u32 layout)
{
	struct py_scratch *s = tick_scratch();

	if (s) {
		s->describing.layout = layout;
		find_tstate_by((struct door){}, s, layout);
	}
	return 0;
}

VERIFIED_ONCE_NUMBERS int take_old_sample(__u32 layout)
{
	struct cpu_state *c = tick_state();
	struct py_scratch *s = tick_scratch();

	return c && s ? take_found_by((struct door){}, s, c, layout) : STAT_NO_SCRATCH;
}

SEC("perf_event")
int sample_old(struct bpf_perf_event_data *ctx)
{
	tick_take(ctx);
	return 0;
}
