/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_COUNTERS_H
#define COLLECT_COUNTERS_H

#include <stdbool.h>

#include "collect/pipeline.h"
#include "collect/session.h"
#include "profile/profile.h"

/* The account of what one source has made (collect/source.h). */
struct source_counters {
	bool is_on; /* the session records by it; else all is 0 */
	uint64_t stats[STAT_COUNT_];
	uint64_t expected;    /* events that it must have made */
	uint64_t unwatched;   /* that it may not have made, on CPUs that had just come online */
	uint64_t left_out;    /* likewise, on CPUs that were to have none */
	uint64_t interval_ns; /* CPU time that an event stands for; 0: it does not count that */
	uint64_t pending;     /* of samples that waited for task work when the session ended */
	uint64_t found_outside, found_left_out, found_other; /* as the pipeline has them */
};

/* The account of all of them since the session began. */
struct counters {
	struct source_counters of[SOURCE_COUNT_];
	uint64_t cpu_ns;       /* CPU time of the targets; 0: not known */
	uint64_t unnamed;      /* samples with a frame whose name never came */
	uint64_t approximate;  /* samples with a frame whose line is approximate */
	uint64_t malformed;    /* records that the pipeline refused */
	uint64_t refused;      /* looks at targets: too many, or too much of one */
	uint64_t rows_refused; /* by the table of processes, which was full */
};

int counters_read(struct session *s, const struct pipeline *p, struct counters *out);

/*
 * CPU time that the sampler took from the CPUs it interrupted since the session began, task work
 * left out. 0, or a negative errno with a message.
 */
int counters_read_cost(struct session *s, uint64_t *ns);

/* Events that met the targets, whatever became of them. */
uint64_t counters_of_targets(const struct counters *c);

/*
 * What was counted from `since` (all zeros: the beginning) to `now`, as counters of the profile. Of
 * each source, with its prefix, every enum stat_kind of events.h by its name (unknown_process,
 * not_python and recorded after what was found out later), and
 *
 * ticks          that reached the sampler, on all CPUs and whoever ran; the source says the name
 * expected       that the events must have made: more, where a CPU slept through its timer
 * cpu_unwatched  of the recorded processes: on a CPU that had just come online, and had no event
 * cpu_left_out   of the recorded processes: on a CPU that --cpus leaves out
 * not_delivered  of the recorded processes: dropped by the kernel before the sampler
 * task_work_pending  of samples that still waited for task work when the recording ended
 * skipped_lost   skipped by the time budget, and no later sample took their weight
 *
 * and of all of them together
 *
 * cpu_ns         CPU time of the targets, as the scheduler counts it; 0: not known
 * unnamed        samples with a frame whose name never came
 * approximate_lines  samples with a frame whose line is approximate
 * malformed      records of the sampler that the recorder refused: a sample each, or a name
 * looks_refused  at targets, for names and the like: too many at once, or too much of one
 * rows_refused   by the table of processes, which was full: of children, or each time that one
 * which is not in it was looked at
 */
int counters_store(const struct counters *now, const struct counters *since,
		   struct profile *profile);

#endif
