/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_TIMES_H
#define COLLECT_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "bpf/events.h"

/*
 * What the threads did with their time, to the nanosecond, as the scheduler tells it, and the
 * samples of it. These are records yet, without names; they wait here until it is known what they
 * stand for together, and are worth that then:
 *
 * ticks          the CPU time of their thread, by their weights
 * short spans    kept by chance: the time of their thread in such spans of their class of waiting
 * long spans     what they lasted; all are kept
 *
 * Of a thread they wait in groups, for one of a few is worth too much or too little. What no group
 * was worth stays to the next one's credit; at the end of a part of the recording, or of the
 * thread, that is a sample of its own, "<not sampled>". So the samples of a thread sum up to its
 * time, whatever was lost on the way.
 */
struct times;

/* A sample, and what it is worth. */
struct timed_sample {
	const struct sample_event *event; /* borrowed */
	uint64_t value;                   /* ns, >= 1 */
	uint64_t blocked_ns; /* that others waited for the GIL, by the same scale; 0: none */
	const char *comm;    /* of its thread, COMM_BYTES; NULL: not known */
};

/* 0 or a negative errno, which is passed on. */
typedef int (*times_sample_fn)(void *arg, const struct timed_sample *s);

struct times_opts {
	uint64_t interval_ns; /* a tick's worth where nobody knows better */
	bool has_all_ticks;   /* they are of all CPU time: scaled to it */
	times_sample_fn fn;
	void *arg;
};

int times_new(const struct times_opts *opts, struct times **out);
void times_free(struct times *t);
DEFINE_CLEANUP(struct times *, times_free)

/*
 * A checked record of a tick or a span; its copy waits. 0, or a negative errno; so do all that
 * follow.
 */
int times_add_sample(struct times *t, const struct sample_event *e);

/* The end of a span of which the beginning came as a sample. -EBADMSG: of no known reason. */
int times_end_span(struct times *t, const struct span_end_event *e);

/* Takes the last times of a thread that has ended, from the ring. They are reported with the next
 * list, as the waits of other threads during them are. -EBADMSG: not after the thread's start. */
int times_end_thread(struct times *t, const struct thread_times_event *e);

/*
 * A list of all living threads: their times now. Who is in none of two lists has ended. The samples
 * of before are to be added between the list and times_settle().
 */
void times_begin_list(struct times *t, uint64_t now_ns);
int times_list_thread(struct times *t, const struct thread_times_event *e);

enum times_depth {
	TIMES_GROUPS, /* groups that are large or old enough */
	TIMES_ALL,    /* of all samples that are here */
	TIMES_REST,   /* and what no sample stands for: a part of the recording ends */
};

/*
 * After a list, which was complete: samples go on to fn. Where a part of the recording ends, that
 * was at now_ns: what no sample stands for is told up to then.
 */
int times_settle(struct times *t, uint64_t now_ns, enum times_depth depth);

/* Samples, or ends of threads, wait for a list; and it is not to be small groups that wait on. */
bool times_is_due(const struct times *t, uint64_t now_ns);
bool times_is_full(const struct times *t);

/* What all threads did so far, ended ones included; but for samples that wait. */
struct times_sum {
	uint64_t threads;
	uint64_t cpu_ns;
	uint64_t wait_ns[CLASS_COUNT_];
	uint64_t stopped_ns; /* of CLASS_OTHER, as samples tell: by a signal, tracer or freezer */
	uint64_t unseen_ns;  /* off the CPU, before it was known why */
	uint64_t not_sampled_cpu_ns, not_sampled_wait_ns; /* of these */
	uint64_t episodes;                                /* of waiting for the GIL */
	uint64_t blocked_ns; /* that was found to be waited for the GIL, by who held it */
};
const struct times_sum *times_sum(const struct times *t);

/* Calls fn for the process of each sample that waits. */
void times_each_process(const struct times *t, void (*fn)(void *arg, uint64_t process), void *arg);

size_t times_bytes(const struct times *t);
#define TIMES_BYTES_MAX (8u << 20) /* of samples and threads that wait: beyond, it is due */

#endif
