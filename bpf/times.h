/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_TIMES_H
#define BPF_TIMES_H

/*
 * What a thread of a Python process does with its time, as the scheduler says. Written in its own
 * switches, by the iterator that opens and closes the spans of those that do not switch, and, as
 * far as it counts who waits for the GIL of a process, in its leader's entry by all its threads.
 */

#include "bpf/events.h"

struct thread_times {
	__u64 since_ns; /* its first moment in the recording; CLOCK_MONOTONIC, as all here */
	__u64 in_ns;    /* since when it is on a CPU, if out_ns is 0 */
	__u64 out_ns;   /* since when it is off; 0: it is on one */
	__u64 cpu_ns;   /* on a CPU, up to in_ns or out_ns */
	__u64 unseen_ns;
	__u64 short_ns[CLASS_COUNT_];
	__u64 long_ns[CLASS_COUNT_];
	__u64 spans;
	__u64 episodes;
	__u64 gil;        /* address of the GIL it takes; 0: not known */
	__u64 gil_end_ns; /* when it last ended to wait for that */
	__u64 blocked_ns; /* gil_waited_ns() of its process when it left the CPU */
	__u32 out_state;  /* task_struct.__state then */
	__u8 out_preempt; /* it would have run on */
	__u8 waits_for_gil;
	__u8 is_open; /* a sample was taken at out_ns, which its end is to follow */
	__u8 reserved;

	/* of a process, in its leader's: who waits for its GIL, and the sum of the times when they
	 * began, subtracted, and when they ended, added */
	__s64 waiters;
	__s64 waited;
};

#endif
