/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_COUNTERS_H
#define COLLECT_COUNTERS_H

#include "collect/pipeline.h"
#include "collect/session.h"
#include "profile/profile.h"

/* The account of all ticks since the session began. */
struct counters {
	uint64_t stats[STAT_COUNT_];
	uint64_t interval_ns; /* of a tick; 0: not known */
	uint64_t expected;    /* ticks that the events must have made */
	uint64_t cpu_ns;      /* CPU time of the targets; 0: not known */
	uint64_t pending; /* ticks of samples that waited for task work when the session ended */
	uint64_t found_outside, found_other; /* ticks, as the pipeline has them */
	uint64_t unnamed;                    /* samples with a frame whose name never came */
	uint64_t malformed;                  /* records that the pipeline refused */
};

int counters_read(struct session *s, const struct pipeline *p, struct counters *out);

/* CPU time that the sampler took from the CPUs it interrupted, task work left out. */
uint64_t counters_sampler_ns(const struct counters *c);

/*
 * What was counted from `since` (all zeros: the beginning) to `now`, as counters of the profile:
 * every enum stat_kind of events.h by its name (unknown_process, not_python and recorded after what
 * was found out later), and
 *
 * ticks          that reached the sampler, on all CPUs and whoever ran
 * expected       that the events must have made: more, where a CPU slept through its timer
 * not_delivered  of the recorded processes: dropped by the kernel before the sampler
 * cpu_ns         CPU time of the targets, as the scheduler counts it; 0: not known
 * task_work_pending  of samples that still waited for task work when the recording ended
 * skipped_lost   skipped by the time budget, and no later sample took their weight
 * unnamed        samples with a frame whose name never came
 * malformed      records of the sampler that the recorder refused: a sample each, or a name
 */
int counters_store(const struct counters *now, const struct counters *since,
		   struct profile *profile);

#endif
