/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_MAPS_H
#define BPF_MAPS_H

/* Every map: key, value, who writes, who reads. __weak: each .bpf.c may include this file. */

#include "bpf/task.h"
#include "bpf/python.h"
#include "bpf/times.h"

extern struct py_offsets layouts[LAYOUTS_MAX];

static __always_inline const struct py_offsets *layout_of(const struct proc_row *row)
{
	return &layouts[row->layout & (LAYOUTS_MAX - 1)];
}

/* Records of events.h, kernel to user space. User space sets the size. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} events __weak SEC(".maps");

/* pid -> its Python runtime, of every process that was looked at; user space sets the size. Written
 * by user space, copied on fork and deleted on exit by lifecycle, read by the sampler, which never
 * writes it: a hash insert from an interrupt can wait for a lock that the interrupted code holds.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct proc_row);
} procs __weak SEC(".maps");

/* pid -> its asyncio. Written by user space, where tasks are asked for; read by the sampler. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct asyncio_row);
} asyncio_rows __weak SEC(".maps");

/* File of an executable mapping -> the interpreter in it. Written by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct binary_key);
	__type(value, struct binary_row);
} binaries __weak SEC(".maps");

/* pid -> where its threads say what context they are in. Written by user space; only with --label
 * otel. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct thread_context_row);
} thread_contexts __weak SEC(".maps");

/* The version 2 cgroup to record, where has_cgroup. Written by user space, read by the sampler. */
struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} cgroups __weak SEC(".maps");

/* CPU -> its ticks. Written by user space, which maps it; read by the sampler. User space sets the
 * size. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu_ticks);
} cpu_ticks __weak SEC(".maps");

/* A span of waiting that has ended. */
struct wait_span {
	__u64 now_ns;
	__u64 duration_ns;
	__u64 value;
	__u64 blocked_ns;
	__u64 gil;   /* that it waited for; 0: it did not */
	__u32 flags; /* enum sample_flag */
	__u8 reason; /* enum wait_reason */
	__u8 reserved;
	__u16 syscall;
};

/* What the scheduler says of the thread that leaves the CPU in this switch. */
struct leaving {
	__u64 exec_ns;   /* task_struct.se.sum_exec_runtime */
	__u64 run_delay; /* task_struct.sched_info.run_delay; 0: not known */
	__u64 state;     /* task_struct.__state */
};

/* The span of waiting that ends in this switch. */
struct span_end {
	__u64 begin_ns, now_ns;
	__u64 queued_ns; /* how long its end was a wait for a CPU */
	__u64 task;      /* address of the task_struct */
};

struct cpu_state {
	__u64 stats[STAT_COUNT_];
	__u64 tick_ns; /* SOURCE_TICKS: of the tick before, and its period */
	__u64 period_ns;
	__u64 tick_took_ns; /* by the sampler then; a period where the thread went on by itself */
	__u64 tick_task;    /* the thread then, and how often it had left the CPU */
	__u64 tick_switches;
	__u64 last_ns;         /* when budget_ns was last filled up */
	__s64 budget_ns;       /* what the source may still spend on this CPU */
	struct task_facts who; /* the thread that is interrupted */
	struct proc_row row;   /* of its process */
	__u64 thrift_ns;       /* when that changed last: */
	__u32 thrift; /* ticks and spans that a sample stands for are doubled so many times, to keep
		       * the budget */
	__u32 reserved;
	/* SOURCE_SWITCHES */
	__u64 switches;                /* seen */
	__u64 random;                  /* 0: not begun */
	struct wait_span span, queued; /* the latter: its end, in line for a CPU */
	struct leaving left;
	struct span_end ended;
	__u8 is_kept; /* span: of the thread that comes back in this switch */
	__u8 is_queued_kept;
	__u8 reserved2[6];

	/* By event; 0 for what is none. */
	struct skipped {
		__u64 process; /* whose samples were skipped last, */
		__u64 value;   /* what they stood for: the next sample of that process takes it, */
		__u64 count;   /* and how many, as counters count them */
	} skipped[EVENTS_MAX];
};

/* Source -> its state on each CPU. Written by the sampler, summed up by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SOURCE_COUNT_);
	__type(key, __u32);
	__type(value, struct cpu_state);
} cpu_states __weak SEC(".maps");

/*
 * What a program for events has as long as it runs: one a CPU, then EVENT_SPARE_SLOTS. Written by
 * who has taken it, the counters summed up by user space, which sets the size.
 */
struct event_slot {
	struct cpu_state state;
	__u32 is_taken;
	__u32 reserved;
	__u64 pending[EVENTS_MAX]; /* of each event: value that is less than a period so far */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct event_slot);
} event_slots __weak SEC(".maps");

/* Of an address space the resident memory of a kind, bytes, as last seen. */
struct rss_key {
	__u32 mm_id; /* of the tracepoint */
	__s32 member;
};

struct rss_size {
	__s64 bytes;
	__s64 ahead; /* growth that a thread was given which another one made at that moment */
};

/* Written and read by on_rss. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct rss_key);
	__type(value, struct rss_size);
} rss_sizes __weak SEC(".maps");

/* Work space: one a CPU for each source that is on, then session.task_scratches for task work,
 * then, where there are spans, one for remote walks, then, where there are events,
 * EVENT_SPARE_SLOTS. User space sets the size. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct py_scratch);
} scratch __weak SEC(".maps");

/* A sample that a missing page interrupted, to be taken again before the thread goes on. */
struct task_sample {
	struct bpf_task_work work;
	__u64 count;   /* of the interrupt that queued it, as counters count it, */
	__u64 carried; /* and of those that were skipped before */
	__u32 layout;
	__u32 slot;    /* of task_slots */
	__u32 scratch; /* its number, while it runs */
	__u32 fault_count;
	__u32 read_in; /* how many of them could be, at this pass */
	__u32 reserved;
	struct py_thread thread;
	struct sample_event sample;
	struct page_range faults[FAULTS_MAX]; /* to be read in first */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* session.task_works */
	__type(key, __u32);
	__type(value, struct task_sample);
} task_samples __weak SEC(".maps");

/* Owners of the entries of task_samples. Written by the sampler and by task work; user space maps
 * it, to see which samples wait. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* session.task_works */
	__type(key, __u32);
	__type(value, struct task_slot);
} task_slots __weak SEC(".maps");

/* Thread -> its times, where spans are recorded (session.has_spans; else there is no such map).
 * Written by its own switches, by on_fork and by the iterators; as its leader's by all threads of a
 * process. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread_times);
} thread_times __weak SEC(".maps");

/* The same of most threads: where they are is times_slot_of()'s. Mappable, as those maps begin with
 * a cache line. The slot of a thread is free again when its task_struct is (on_free). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1 << TIMES_SLOTS_SHIFT);
	__type(key, __u32);
	__type(value, struct times_slot);
} times_slots __weak SEC(".maps");

/* Process and GIL -> who waits for that GIL, where it is not the first_gil of the process. Written
 * and read as thread_times of a leader. The one that was not used for longest makes room. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, struct gil_count);
} gil_counts __weak SEC(".maps");

#endif
