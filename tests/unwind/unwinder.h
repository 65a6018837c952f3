/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef UNWIND_UNWINDER_H
#define UNWIND_UNWINDER_H

/* The unwinder of bpf/ as the host runs it: read_memory() is in memory.c, the caches are plain
 * arrays.
 */

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>
#include <sys/cdefs.h> /* __always_inline */

#define READ_USER_FROM_HOST
#include "bpf/python_code.h"
#include "bpf/python_context.h"
#include "bpf/python_task.h"
#include "bpf/python_frames.h"
#include "bpf/python_opcode.h"
#include "bpf/python_state.h"
#include "bpf/python_thread.h"

struct unwind_result {
	int error;       /* 0, or what py_find_tstate() or py_first_frame() returned */
	bool has_walked; /* the thread lists were searched */
	enum unwind_status status;
	unsigned depth;
	unsigned flags; /* enum sample_flag */
	bool has_fault;
	const struct frame_record *frames; /* leaf first; valid until the next unwind */
};

/* Forgets all caches, what was sent, what was trusted. */
void unwinder_reset(void);

/* The variables of label_configs; behind them there are a trace's and a span's id alone. */
#define UNWINDER_LABELS 3
extern const char *const unwinder_variables[UNWINDER_LABELS];
enum { UNWINDER_TRACE = UNWINDER_LABELS, UNWINDER_SPAN };

/* One sample, in the steps of take_sample() in bpf/sampler.h, but for describing code objects. */
struct unwind_result unwind(const struct py_offsets *off, const struct py_thread *thread);

/* The same again and again, as bpf/task_work.h does, each time with what was missing read in. */
#define UNWIND_PASSES 1024
struct unwind_result unwind_paged(const struct py_offsets *off, const struct py_thread *thread);

/* Where the process has its asyncio, until unwinder_reset(). */
void unwinder_set_asyncio(const struct asyncio_row *row);

/* When the next samples are, CLOCK_MONOTONIC. */
void unwinder_set_time(__u64 ktime_ns);

/* Each look at the clock takes so long. */
void unwinder_set_clock(__u64 step_ns);

/* The walk alone, from a frame. */
struct unwind_result unwind_from(const struct py_offsets *off, __u64 frame, __u64 process);

/* py_opcode() of the last unwind. */
__u16 unwinder_opcode(const struct py_offsets *off);

/* Who the thread is, until unwinder_reset(): nothing is known. */
void unwinder_set_met(const struct py_met *met);

/* The work space of the last unwind: what is not sent yet, the message. */
struct py_scratch *unwinder_scratch(void);

/* Identity of the code object at addr, read in full: 0 if it cannot be. The cache learns it. */
__u64 unwinder_identity(const struct py_offsets *off, __u64 addr, __u64 process, __u64 family);

/* py_describe(): the event is in unwinder_scratch()->message. */
int unwinder_describe(const struct py_offsets *off, __u64 id, __u64 addr);
int unwinder_describe_lines(__u64 id, __u64 lines_addr, __u32 total, __u32 chunk);

/* As if the ring had taken it. */
void unwinder_mark_sent(__u64 id);

/* Samples in a row without reuse, or TRUST_NEVER. */
__u32 unwinder_trust(__u64 process);
void unwinder_set_trust(__u64 process, __u32 clean);

/* Picks which frames are checked in full once the process is trusted. */
void unwinder_set_salt(__u32 salt);

#endif
