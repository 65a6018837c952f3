/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DIFF_INPUT_H
#define DIFF_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/texts.h"
#include "base/vec.h"
#include "profile/cube.h"
#include "profile/profile.h"

/*
 * What is compared: the recordings of both sides, each a run, summed over one profile. All runs
 * are read into input->profile, so that strings, frames and stacks have the same ids everywhere, or
 * into inputs of their own, at the same time, that are joined then; samples are summed by (stack,
 * time block) and dropped, so that memory grows with the variety of the stacks and not with the
 * number of samples. For each recording, which is one of input->profile's:
 *
 *	diff_input_add_run(input, DIFF_BASE, path, recording, expected_ns, &run);
 *	while (input_next(in, input->profile) > 0)	of cmd/input.h
 *		diff_input_take_samples(input);
 *	input->cube.runs.items[run].lost = ...;	what is known only at the end
 *
 * and diff_input_finish() after the last.
 */

enum diff_side { DIFF_BASE, DIFF_CURRENT };
#define DIFF_SIDES 2

/*
 * A run is cut into this many time blocks, whose scatter shows how far its counts can be trusted.
 * Where its length is not known in advance: up to twice as many less one.
 */
#define DIFF_BLOCKS 40
#define DIFF_BLOCKS_MAX (2 * DIFF_BLOCKS)

/* Of samples' values: what these sum up to scatters by them (counts.h). Of ticks they are 1 each.
 */
struct diff_squares {
	double all;
	double drawn; /* of what was drawn by lot, not measured: as far as the lot decided */
};

struct diff_input {
	struct profile *profile; /* owned; without samples between the calls */
	struct cube cube;        /* with time; its runs are those that are compared */

	VEC(struct diff_squares) squares[DIFF_SIDES]; /* by stack */
	bool has_values;                              /* some are no ticks */
};

/* by_thread: tells threads, labels and instructions apart: compat_new() and pages need it. 0 or
 * -ENOMEM. */
int diff_input_new(bool by_thread, struct diff_input **out);
void diff_input_free(struct diff_input *in);
DEFINE_CLEANUP(struct diff_input *, diff_input_free)

/*
 * Its samples have times, unless the recording is of sums. expected_ns: how long it is, if that is
 * known (reader_index(): the last sample); else 0. 0 and *run, an index; or -ENOMEM.
 */
int diff_input_add_run(struct diff_input *in, enum diff_side side, const char *file,
		       uint32_t recording, uint64_t expected_ns, uint32_t *run);

/*
 * Takes all samples the profile holds now into the last run, and clears them. is_ticks: a value is
 * so many samples, that came by themselves; else each sample is one, be it a nanosecond or an hour,
 * and lies in all blocks that it lasts for. 0, -ENOMEM, -EOVERFLOW.
 */
int diff_input_take_samples(struct diff_input *in, bool is_ticks);

/*
 * The runs of `from` come behind those of `to`, as if they had been read into it; `from` is to be
 * freed only. Both keep threads apart, or neither. 0, -EOVERFLOW, -ENOMEM.
 */
int diff_input_join(struct diff_input *to, struct diff_input *from);

/* After all was taken, and joined; before it is compared. 0 or -ENOMEM. */
int diff_input_finish(struct diff_input *in);

/* What is known of it. Borrowed. */
static inline struct recording *diff_run_recording(const struct diff_input *in,
						   const struct cube_run *run)
{
	return &in->profile->recordings.items[run->recording];
}

/* Is it known what its samples count? */
static inline bool diff_run_has_unit(const struct diff_input *in, const struct cube_run *run)
{
	const struct recording *r = diff_run_recording(in, run);

	return r->interval_ns || r->other_unit.period || !r->is_summed;
}

/* The Python process with most samples; NULL: none is known. Borrowed. */
const struct process *diff_run_process(const struct diff_input *in, const struct cube_run *run);

/* Version of the process with most samples; NULL: unknown. Borrowed. */
const char *diff_run_python(const struct diff_input *in, const struct cube_run *run);

/* Are the sides of two minor versions of Python, as far as they say? Compared by force. */
bool diff_input_versions_differ(const struct diff_input *in);

/* Sums over the runs of one side. */
struct diff_side_sum {
	uint32_t runs;
	uint64_t ticks;
	uint64_t lost;
	double interval_ns;   /* mean of a tick; 0: unknown */
	struct value_unit of; /* of its first run; period 0: it has none */
	const char *noun;     /* what that measures: kinds_noun(); static */
	double seconds;       /* observed, all runs together; 0: unknown of one of them */
	double work;          /* all runs together; 0: unknown of one of them */
	bool has_times;       /* all of them */
	bool is_whole;        /* all of them */
	bool has_unit;        /* of each it is known what its samples count */
};
void diff_input_sum(const struct diff_input *in, enum diff_side side, struct diff_side_sum *out);

/*
 * What speaks against comparing: another mode, event, rate or Python version, a larger share of
 * lost samples on one side (more than DIFF_LOST_MAX points apart), runs of one side that do not
 * belong together. One sentence each, without a full stop. A command refuses unless forced, and
 * hands them to diff_new() as notes then. What a file does not say is no reason.
 */
#define DIFF_LOST_MAX 0.05

/* Appends to *reasons. 0 or -ENOMEM. */
int diff_input_check(const struct diff_input *in, struct texts *reasons);

#endif
