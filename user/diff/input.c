/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "diff/input.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "profile/kinds.h"
#include "profile/merge.h"

#define RATE_TOLERANCE 0.1        /* intervals further apart are another rate */
#define EXPECTED_SLACK_NS 1000000 /* an index rounds down; a block more would be next to empty */

int diff_input_new(bool by_thread, struct diff_input **out)
{
	_cleanup_(diff_input_freep) struct diff_input *in = calloc(1, sizeof(*in));
	int r;

	if (!in)
		return -ENOMEM;
	in->cube.axes = CUBE_TIME | (by_thread ? CUBE_THREADS | CUBE_LABELS | CUBE_OPCODES : 0);
	in->cube.blocks = in->cube.blocks_min = DIFF_BLOCKS_MAX;
	r = profile_new(&in->profile);
	if (r < 0)
		return r;
	*out = take_ptr(in);
	return 0;
}

void diff_input_free(struct diff_input *in)
{
	if (!in)
		return;
	profile_free(in->profile);
	cube_release(&in->cube);
	for (int s = 0; s < DIFF_SIDES; s++)
		vec_release(&in->squares[s]);
	free(in);
}

/* Blocks are of whole nanoseconds, and half of them are of use. */
static uint64_t span_of(uint64_t last_ns)
{
	return (last_ns / DIFF_BLOCKS + 1) * DIFF_BLOCKS_MAX;
}

int diff_input_add_run(struct diff_input *in, enum diff_side side, const char *file,
		       uint32_t recording, uint64_t expected_ns, uint32_t *run)
{
	bool has_times = !in->profile->recordings.items[recording].is_summed;
	int r = cube_begin_run(&in->cube, (uint8_t)side, file, recording,
			       has_times ? 0 : CUBE_NO_TIMES);

	if (r < 0)
		return r;
	if (has_times)
		cube_run(&in->cube)->span_ns =
			expected_ns ? span_of(expected_ns + EXPECTED_SLACK_NS) : 0;
	*run = (uint32_t)in->cube.runs.len - 1;
	return 0;
}

/* --- what is no tick -------------------------------------------------------------------------- */

static int reserve_squares(struct diff_input *in, int side, size_t stacks)
{
	int r = 0;

	while (in->squares[side].len < stacks && !r)
		r = vec_push(&in->squares[side], ((struct diff_squares){ 0 }));
	return r;
}

/*
 * A span that was kept by chance p = duration / value has the variance value^2 (1 - p), one that
 * was measured whole has none. What has no duration is as a tick: all is chance.
 */
static struct diff_squares squares_of(const struct sample *s, bool is_ticks)
{
	double value = (double)s->value, kept = fmin((double)s->duration_ns / value, 1);

	if (is_ticks)
		return (struct diff_squares){ value, value };
	return (struct diff_squares){ value * value, value * value * (1 - kept) };
}

static int add_squares(struct diff_input *in, bool is_ticks)
{
	const struct profile *p = in->profile;
	int side = cube_run(&in->cube)->side, r;

	in->has_values |= !is_ticks && p->samples.len;
	r = reserve_squares(in, side, stacktab_count(p->stacks));
	for (size_t i = 0; i < p->samples.len && !r; i++) {
		const struct sample *s = &p->samples.items[i];
		struct diff_squares *sum = &in->squares[side].items[s->stack];
		struct diff_squares one = squares_of(s, is_ticks);

		sum->all += one.all;
		sum->drawn += one.drawn;
	}
	return r;
}

static uint64_t last_end_ns(const struct profile *p)
{
	uint64_t last = 0;

	for (size_t i = 0; i < p->samples.len; i++) {
		const struct sample *s = &p->samples.items[i];

		if (s->time_ns + s->duration_ns > last)
			last = s->time_ns + s->duration_ns;
	}
	return last;
}

/* Cuts a span to pieces, each in the midst of a part of it; s becomes the first. */
static int cut_span(struct profile *p, size_t at, uint64_t piece_ns)
{
	struct sample whole = p->samples.items[at], piece = whole;
	uint64_t pieces = whole.duration_ns / piece_ns + 1, done = 0;
	int r = 0;

	piece.duration_ns = 0;
	for (uint64_t i = 1; i <= pieces && !r; i++) {
		uint64_t value = (uint64_t)((double)whole.value / (double)pieces * (double)i);

		value = i == pieces || value > whole.value ? whole.value : value;
		piece.time_ns = whole.time_ns + (uint64_t)(((double)i - 0.5) / (double)pieces *
							   (double)whole.duration_ns);
		piece.value = value - done;
		done = value;
		if (i == 1)
			p->samples.items[at] = piece;
		else if (piece.value)
			r = profile_add_sample(p, &piece);
	}
	return r;
}

/* A wait of a minute is in each block of that minute, and not all of it in the first one. */
static int cut_spans(struct diff_input *in)
{
	uint64_t block_ns = cube_run(&in->cube)->span_ns / DIFF_BLOCKS_MAX;
	size_t count = in->profile->samples.len;
	int r = 0;

	for (size_t i = 0; i < count && block_ns && !r; i++) {
		uint64_t duration_ns = in->profile->samples.items[i].duration_ns;
		uint64_t piece_ns = duration_ns / DIFF_BLOCKS_MAX;

		if (duration_ns > block_ns / 2 &&
		    in->profile->samples.items[i].value > DIFF_BLOCKS_MAX)
			r = cut_span(in->profile, i, piece_ns > block_ns ? piece_ns : block_ns);
	}
	return r;
}

int diff_input_take_samples(struct diff_input *in, bool is_ticks)
{
	struct cube_run *run = cube_run(&in->cube);
	int r = add_squares(in, is_ticks);

	if (!run->span_ns && run->has_times && in->profile->samples.len)
		run->span_ns = span_of(last_end_ns(in->profile));
	if (!r && !is_ticks)
		r = cut_spans(in);
	if (!r)
		r = cube_add(&in->cube, in->profile);
	profile_clear_samples(in->profile);
	return r;
}

static int join_squares(struct diff_input *to, const struct diff_input *from,
			const struct profile_ids *ids)
{
	int r = 0;

	to->has_values |= from->has_values;
	for (int s = 0; s < DIFF_SIDES && !r; s++) {
		r = reserve_squares(to, s, stacktab_count(to->profile->stacks));
		for (size_t i = 0; i < from->squares[s].len && !r; i++) {
			struct diff_squares *sum = &to->squares[s].items[ids->stacks[i]];

			sum->all += from->squares[s].items[i].all;
			sum->drawn += from->squares[s].items[i].drawn;
		}
	}
	return r;
}

/* --- all of it -------------------------------------------------------------------------------- */

int diff_input_join(struct diff_input *to, struct diff_input *from)
{
	_cleanup_(profile_ids_release) struct profile_ids ids = { 0 };
	struct diff_input empty = *to;
	int r;

	if (!to->cube.runs.len) {
		*to = *from;
		*from = empty;
		return 0;
	}
	r = profile_merge(to->profile, from->profile, &ids);
	if (!r)
		r = join_squares(to, from, &ids);
	return r ? r : cube_join(&to->cube, &from->cube, to->profile, &ids);
}

int diff_input_finish(struct diff_input *in)
{
	return cube_finish(&in->cube, in->profile);
}

/* --- what is known ---------------------------------------------------------------------------- */

const struct process *diff_run_process(const struct diff_input *in, const struct cube_run *run)
{
	return run->process == CUBE_NO_PROCESS ? NULL : &in->profile->processes.items[run->process];
}

const char *diff_run_python(const struct diff_input *in, const struct cube_run *run)
{
	const struct process *process = diff_run_process(in, run);

	return process ? strtab_get(in->profile->strings, process->python_version) : NULL;
}

void diff_input_sum(const struct diff_input *in, enum diff_side side, struct diff_side_sum *out)
{
	struct diff_side_sum sum = {
		.has_times = true, .is_whole = true, .has_unit = true, .noun = KINDS_NOUN_CPU
	};
	bool has_seconds = true, has_work = true, has_interval = true;
	double interval_ns = 0, time_ns = 0;

	for (size_t i = 0; i < in->cube.runs.len; i++) {
		const struct cube_run *run = &in->cube.runs.items[i];
		const struct recording *r = diff_run_recording(in, run);

		if (run->side != side)
			continue;
		if (!sum.runs++) {
			sum.of = recording_value_unit(r);
			sum.noun = kinds_noun(r);
		}
		sum.ticks += run->value;
		sum.lost += run->lost;
		sum.seconds += (double)r->duration_ns / 1e9;
		sum.work += r->work;
		interval_ns += (double)r->interval_ns;
		time_ns += (double)run->value * (double)r->interval_ns;
		has_interval = has_interval && r->interval_ns;
		has_seconds = has_seconds && r->duration_ns;
		has_work = has_work && r->work > 0;
		sum.has_times = sum.has_times && run->has_times;
		sum.is_whole = sum.is_whole && r->is_whole;
		sum.has_unit = sum.has_unit && diff_run_has_unit(in, run);
	}
	if (!has_seconds)
		sum.seconds = 0;
	if (!has_work)
		sum.work = 0;
	if (has_interval && sum.runs)
		sum.interval_ns =
			sum.ticks ? time_ns / (double)sum.ticks : interval_ns / (double)sum.runs;
	*out = sum;
}

/* --- reasons not to compare ------------------------------------------------------------------- */

static bool differ(const char *a, const char *b)
{
	return a && b && strcmp(a, b) != 0;
}

/* Of ticks of unknown length it is not known what they are. */
static bool has_unit(const struct recording *r)
{
	return r->interval_ns || r->other_unit.period;
}

static bool intervals_differ(uint64_t a, uint64_t b)
{
	double low = (double)(a < b ? a : b), high = (double)(a < b ? b : a);

	return low > 0 && high > low * (1 + RATE_TOLERANCE);
}

/* Of versions 3.12.4 and 3.12.5 no. */
static bool versions_differ(const char *a, const char *b)
{
	size_t len;

	if (!a || !b)
		return false;
	len = strcspn(a, ".");
	if (a[len])
		len += 1 + strcspn(a + len + 1, ".");
	return strncmp(a, b, len) != 0 || (b[len] && b[len] != '.');
}

bool diff_input_versions_differ(const struct diff_input *in)
{
	for (size_t i = 0; i < in->cube.runs.len; i++)
		for (size_t k = 0; k < i; k++) {
			const struct cube_run *a = &in->cube.runs.items[i],
					      *b = &in->cube.runs.items[k];

			if (a->side != b->side &&
			    versions_differ(diff_run_python(in, a), diff_run_python(in, b)))
				return true;
		}
	return false;
}

static double lost_share(const struct diff_side_sum *s)
{
	uint64_t all = s->ticks + s->lost;

	return all ? (double)s->lost / (double)all : 0;
}

static int check_runs(const struct diff_input *in, const struct cube_run *a,
		      const struct cube_run *b, struct texts *reasons)
{
	const struct recording *x = diff_run_recording(in, a), *y = diff_run_recording(in, b);
	const char *python[] = { diff_run_python(in, a), diff_run_python(in, b) };
	static const char *const units[] = {
		[UNIT_NS] = "time", [UNIT_BYTES] = "bytes", [UNIT_COUNT] = "counts"
	};
	struct value_unit of = recording_value_unit(x), other = recording_value_unit(y);
	int r = 0;

	if (differ(x->mode, y->mode))
		r = texts_addf(reasons, "%s was recorded in mode %s, %s in mode %s", a->file,
			       x->mode, b->file, y->mode);
	if (!r && !x->source && !y->source && differ(x->event, y->event))
		r = texts_addf(reasons, "%s was recorded by the event %s, %s by %s", a->file,
			       x->event, b->file, y->event);
	if (!r && intervals_differ(x->interval_ns, y->interval_ns))
		r = texts_addf(reasons, "different sampling intervals: %s %g us, %s %g us", a->file,
			       (double)x->interval_ns / 1e3, b->file, (double)y->interval_ns / 1e3);
	if (!r && x->other_unit.period && y->other_unit.period &&
	    x->other_unit.period != y->other_unit.period)
		r = texts_addf(reasons, "%s has a sample each %" PRIu64 " events, %s each %" PRIu64,
			       a->file, x->other_unit.period, b->file, y->other_unit.period);
	if (!r && has_unit(x) && has_unit(y) && of.unit != other.unit)
		r = texts_addf(reasons, "different units: %s measures %s, %s measures %s", a->file,
			       units[of.unit], b->file, units[other.unit]);
	if (!r && versions_differ(python[0], python[1]))
		r = texts_addf(reasons, "%s is of Python %s, %s of Python %s", a->file, python[0],
			       b->file, python[1]);
	return r;
}

static int check_lost(const struct diff_input *in, struct texts *reasons)
{
	struct diff_side_sum side[DIFF_SIDES];
	double share[DIFF_SIDES];

	for (int s = 0; s < DIFF_SIDES; s++) {
		diff_input_sum(in, s, &side[s]);
		share[s] = lost_share(&side[s]);
	}
	if (fabs(share[DIFF_BASE] - share[DIFF_CURRENT]) <= DIFF_LOST_MAX)
		return 0;
	return texts_addf(reasons, "base lost %.1f%% of its samples, current %.1f%%",
			  100 * share[DIFF_BASE], 100 * share[DIFF_CURRENT]);
}

/* All are compared with the first run: what differs between two others differs from it as well. */
int diff_input_check(const struct diff_input *in, struct texts *reasons)
{
	int r = 0;

	for (size_t i = 1; i < in->cube.runs.len && !r; i++)
		r = check_runs(in, &in->cube.runs.items[0], &in->cube.runs.items[i], reasons);
	return r ? r : check_lost(in, reasons);
}
