/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_TASK_STACKS_H
#define COLLECT_TASK_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "bpf/events.h"
#include "collect/processes.h"
#include "collect/session.h"
#include "collect/threads.h"
#include "profile/profile.h"

/*
 * Tasks of event loops as they were last swept (collect/sweeper.h), in the profile: the coroutines
 * of those who await the task of a sample; and where tasks wait, task time.
 *
 * A sweep stands for the time from halfway to the one before to halfway to the next, the first and
 * the last one of a process for all time since it began and until it ended. Each task that waits,
 * and not for another task, was where it is all that time; so the sum over tasks is known to the
 * mean distance of two sweeps for each place where a task waits for a while, and whatever begins
 * and ends between two of them counts, too, as often as it is met.
 */
struct task_stacks;

struct task_stacks_opts {
	struct session *session; /* all borrowed, and to outlive it */
	struct profile *profile;
	struct processes *processes;
	struct threads *threads;
	uint64_t start_ns; /* CLOCK_MONOTONIC: time 0 */
	bool has_filter;   /* rows say who is recorded; else who is known */
	bool has_time;     /* task time is recorded */
};

int task_stacks_new(const struct task_stacks_opts *opts, struct task_stacks **out);
void task_stacks_free(struct task_stacks *ts);
DEFINE_CLEANUP(struct task_stacks *, task_stacks_free)

/* Takes what was swept since. 1: there was something, 0, or a negative errno with a message. */
int task_stacks_step(struct task_stacks *ts, uint64_t now_ns);

/*
 * The stack of those who await the task of this sample, on top of `below`; that itself where nobody
 * does, or nobody knows. One of several takes turns with the others. 0 and *stack, -ENOMEM, or
 * -EAGAIN: no sweep has seen that task, and one still may, which allow_unknown does not wait for.
 */
int task_stacks_find(struct task_stacks *ts, const struct sample_event *e, bool allow_unknown,
		     uint32_t below, uint32_t *stack);

/* Task time up to now goes into the profile: a part of the recording ends. 0 or a negative errno.
 */
int task_stacks_settle(struct task_stacks *ts, uint64_t now_ns);

/*
 * A thread has ended, and its process with it if that is not there at the next listing. 0 or
 * -ENOMEM.
 */
int task_stacks_end_thread(struct task_stacks *ts, const struct thread_times_event *e);

/* After profile_reset(). */
void task_stacks_forget_ids(struct task_stacks *ts);
void task_stacks_set_start(struct task_stacks *ts, uint64_t start_ns);

/* What became of it. */
struct task_stacks_stats {
	bool has_asyncio;      /* some process has imported it, or trio */
	uint64_t sweeps;       /* that saw something */
	uint64_t failed_count; /* that saw nothing, as the process cannot be read, or is gone */
	uint64_t cpu_ns;       /* CPU time of all of them */
	uint64_t time_ns;      /* task time */
	double variance_ns2; /* of that, at most, by how much sweeps differ from the ones before */
	double gaps_ns, gaps_ns2; /* between two looks at a process: their sum, that of squares */
	uint64_t unsure_ns;       /* of tasks that changed while they were read: left out */
	uint64_t unmet;      /* processes that ended before a sweep: nobody knows of their tasks */
	uint64_t unreadable; /* tasks, by sweeps */
	uint64_t unseen;     /* samples in tasks that no sweep saw: nobody knows who awaits them */
	uint32_t failed_pid; /* the first process whose tasks cannot be read, 0: none, */
	const char *failed;  /* and why; borrowed */
};
const struct task_stacks_stats *task_stacks_stats(const struct task_stacks *ts);

#endif
