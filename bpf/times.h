/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_TIMES_H
#define BPF_TIMES_H

/*
 * The times of a thread of a Python process, as the scheduler has them. They are written in its own
 * switches, and by the iterator that opens and closes the waits of threads that do not switch. All
 * threads of a process write the counts of GIL waits in its leader's entry.
 */

#include "bpf/events.h"

/*
 * The number of threads that wait for one GIL, and the sum of the times when their waits began,
 * subtracted, and ended, added. The two belong together while as many changes are done as begun.
 */
struct gil_count {
	__s64 waiters;
	__s64 waited;
	__u64 changes_begun;
	__u64 changes_done;
};

struct thread_times {
	/* Its first moment in the recording; CLOCK_MONOTONIC, as all here. 0: its times are none
	 * that are recorded, or no more: it only counts who waits for a GIL of its process. */
	__u64 since_ns;
	__u64 in_ns;     /* since when it is on a CPU, if out_ns is 0 */
	__u64 out_ns;    /* since when it is off; 0: it is on one */
	__u64 cpu_ns;    /* on a CPU, up to in_ns or out_ns */
	__u64 exec_ns;   /* task_struct.se.sum_exec_runtime when it left the CPU: what that grew by
			  * since is how long it has run, where nobody saw it come back */
	__u64 run_delay; /* task_struct.sched_info.run_delay when it left the CPU */
	/* Up to here, and from here on what a switch needs is in one cache line each. */
	__u64 spans;
	__u64 gil;        /* address of last_holder of the GIL it takes; 0: not known */
	__u64 gil_end_ns; /* when it last ended to wait for that */
	__u64 blocked_ns; /* gil_waited_ns() of that when it left the CPU */
	__u64 open_ns;    /* of the span that began then a sample was to be taken: its end is to
			   * follow, or is counted as lost with it; 0: there is none */
	__u64 regs;       /* address of its user registers; 0: not asked yet */
	__u32 out_state;  /* task_struct.__state then */
	__u8 out_preempt; /* it would have run on */
	__u8 waits_for_gil;
	__u8 is_counted; /* its wait is among waiters and waited */
	__u8 out_wait;   /* enum wait_reason, but for the kind of file; WAIT_NONE: not looked at */
	__u8 thinned;    /* before Linux 6.16: of 2^thinned spans that began then one was sampled */
	__u8 opened;     /* what came of the sample of open_ns, an enum stat_kind */
	__u8 is_identified; /* its process: it has the row of a Python */
	__u8 may_be_python; /* the same: its program is not known to be none, since its exec */
	__u8 is_moved; /* to another CPU while it slept: the kernel's account of its queueing is
			* wrong until it is back */
	__u8 has_more_gils; /* it has met several GILs; in its leader's: any thread has */
	__u8 reserved[2];

	/* In a leader's, for its process: the first GIL that a thread waited for, and who waits for
	 * it. Further ones are in gil_counts. */
	__u64 first_gil;
	struct gil_count of_first_gil;

	__u64 process; /* identity of the process that these times are of */
	__u32 pid;     /* in our own PID namespace, and */
	__u32 tid;
	__u64 waited_ns; /* as blocked_ns, when another task was about to end its span */
	__u64 unseen_ns;
	__u64 episodes;
	__u64 short_ns[CLASS_COUNT_];
	__u64 long_ns[CLASS_COUNT_];
};

/*
 * A place for the times of one thread, which the address of its task_struct leads to: found without
 * a call. Where it is another thread's, times are in the task's storage.
 */
struct times_slot {
	__u64 owner; /* task_number(); 0: free; TIMES_SLOT_TAKEN added: it is being filled in */
	__u64 reserved;
	struct thread_times times;
};
_Static_assert(sizeof(struct times_slot) % 64 == 0, "slots share no cache line");

#define TIMES_SLOT_TAKEN 1

#endif
