/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/diff_load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/parallel.h"
#include "cmd/input.h"
#include "cmd/road.h"
#include "profile/loss.h"
#include "profile/merge.h"

#define COMPARE_BYTES 65536
#define DEALT_BLOCK_NS 1000000
#define AT_ONCE 4 /* files that are read at the same time: each holds tables of its own */

/* Each has an input of its own, so that threads share nothing. */
struct loading {
	struct road road;
	const struct diff_file *file;
	const struct diff_reading *how;
	struct diff_input *input;
	uint64_t turn;    /* samples that were dealt out */
	uint64_t tick_ns; /* what the values are multiplied by, 1: nothing */
};

static void loading_release(struct loading *l)
{
	road_release(&l->road);
	diff_input_free(l->input);
	*l = (struct loading){ 0 };
}

static bool is_grouped(const struct loading *l)
{
	return l->road.select.query.patterns[SELECT_GROUP].len;
}

/*
 * Functions that are compared one by one run one after another: parts of the recording's time would
 * show which of them ran then, and not how noisy it is. Samples are dealt out over the time blocks
 * in turn instead, which leaves the noise of sampling; what differs from run to run only several
 * runs can show.
 */
static void deal_samples(struct loading *l, struct profile *p)
{
	for (size_t i = 0; i < p->samples.len; i++) {
		p->samples.items[i].time_ns = l->turn++ % DIFF_BLOCKS * DEALT_BLOCK_NS;
		p->samples.items[i].duration_ns = 0;
	}
}

/* A run for the recording that is read from now on. */
static int begin_run(void *loading, const struct road_recording *of)
{
	struct loading *l = loading;
	struct diff_input *in = l->input;
	uint32_t run;
	int r = diff_input_add_run(in, l->file->side, of->name, of->index, 0, &run);

	if (!r)
		in->cube.runs.items[run].is_dealt = is_grouped(l);
	return r;
}

/* Others' profiles have times where ours have ticks: to be compared they are all times. */
static uint64_t find_tick_ns(const struct loading *l)
{
	const struct recording *r = &l->input->profile->recordings.items[l->road.recording.index];

	return l->how->is_in_ns && kinds_are_ticks(&l->road.select.kinds) && r->interval_ns
		       ? r->interval_ns
		       : 1;
}

static int take_samples(void *loading)
{
	struct loading *l = loading;
	struct profile *p = l->input->profile;

	l->tick_ns = find_tick_ns(l);
	for (size_t i = 0; i < p->samples.len && l->tick_ns > 1; i++)
		if (__builtin_mul_overflow(p->samples.items[i].value, l->tick_ns,
					   &p->samples.items[i].value))
			p->samples.items[i].value = INT64_MAX;
	if (is_grouped(l))
		deal_samples(l, l->input->profile);
	return diff_input_take_samples(l->input,
				       l->tick_ns == 1 && kinds_are_ticks(&l->road.select.kinds));
}

/* In values. Of lost events the number is known, and not what they would have stood for. */
static uint64_t lost_of(const struct recording *r, const struct select_sum *sum)
{
	uint64_t taken = recording_counter(r, EVENT_COUNTERS "recorded") +
			 recording_counter(r, EVENT_COUNTERS "task_work_recorded") +
			 recording_counter(r, EVENT_COUNTERS "carried");

	if (!r->other_unit.period)
		return select_scale(sum, loss_sum_of(r, loss_ticks));
	return taken ? (uint64_t)((double)sum->kept / (double)taken *
				  (double)loss_sum_of(r, loss_events))
		     : 0;
}

/* What is known only at the end. Of a recorder that was killed: until its last sample. */
static int end_run(void *loading, const struct road_recording *of)
{
	struct loading *l = loading;
	struct cube_run *run = cube_run(&l->input->cube);
	struct recording *r = diff_run_recording(l->input, run);
	int e;

	run->has_times = of->last_ns > 0; /* also of what was imported from text */
	if (!r->duration_ns)
		r->duration_ns = of->last_ns;
	if (l->how->has_unit && !r->interval_ns && r->is_summed)
		r->interval_ns = INPUT_INTERVAL_DEFAULT_NS;
	e = select_describe(&l->road.select, l->input->profile, r);
	run->lost = lost_of(r, &of->sum);
	if (l->tick_ns > 1) {
		run->lost *= l->tick_ns;
		r->interval_ns = 1;
	}
	return e;
}

static int loading_init(struct loading *l, const struct diff_file *file,
			const struct diff_reading *how, bool by_thread)
{
	static const struct road_taker taker = { .begin = begin_run,
						 .take = take_samples,
						 .end = end_run };
	int r = diff_input_new(by_thread, &l->input);

	if (r < 0)
		return r;
	l->file = file;
	l->how = how;
	l->tick_ns = 1;
	l->road.profile = l->input->profile;
	l->road.taker = &taker;
	l->road.arg = l;
	l->road.choice = how->choice;
	l->road.folds_imports = how->folds_imports;
	l->road.select.query = how->select[file->side];
	return 0;
}

static void read_one(void *loadings, size_t i)
{
	struct loading *l = (struct loading *)loadings + i;

	road_read(&l->road, l->file->path);
}

/* Of one that was read: what is to be said, and its runs go to the others. */
static int conclude(struct loading *l, struct diff_input *in,
		    struct profile *const sides[DIFF_SIDES], struct select_sum selected[DIFF_SIDES])
{
	const struct select_sum *sum = &l->road.select.sum;
	int r = road_conclude(&l->road, NULL);

	if (r < 0)
		return r;
	selected[l->file->side].all += sum->all * l->tick_ns;
	selected[l->file->side].kept += sum->kept * l->tick_ns;
	selected[l->file->side].idle_ns += sum->idle_ns;
	r = profile_sum_counters(l->input->profile, profile_recording(sides[l->file->side]));
	return r < 0 ? r : diff_input_join(in, l->input);
}

static int load_some(struct diff_input *in, const struct diff_file *files, size_t count,
		     const struct diff_reading *how, struct profile *const sides[DIFF_SIDES],
		     struct select_sum selected[DIFF_SIDES])
{
	struct loading loadings[AT_ONCE] = { 0 };
	int r = 0;

	for (size_t i = 0; i < count && !r; i++)
		r = loading_init(&loadings[i], &files[i], how, in->cube.axes & CUBE_THREADS);
	if (!r)
		parallel_run(count, read_one, loadings);
	for (size_t i = 0; i < count; i++) {
		if (!r)
			r = conclude(&loadings[i], in, sides, selected);
		loading_release(&loadings[i]);
	}
	return r;
}

int diff_load(struct diff_input *in, const struct diff_file *files, size_t count,
	      const struct diff_reading *how, struct profile *const sides[DIFF_SIDES],
	      struct select_sum selected[DIFF_SIDES])
{
	int r = 0;

	for (size_t i = 0; i < count && !r; i += AT_ONCE)
		r = load_some(in, &files[i], count - i < AT_ONCE ? count - i : AT_ONCE, how, sides,
			      selected);
	return r;
}

/* --- the same twice --------------------------------------------------------------------------- */

static bool is_same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* What cannot be read is not the same. */
static bool has_same_bytes(const char *a, const char *b)
{
	_cleanup_(closep) int x = -1, y = -1;
	char p[COMPARE_BYTES], q[COMPARE_BYTES];
	struct stat s, t;
	ssize_t n = 1;

	x = file_open_regular(a, &s);
	y = file_open_regular(b, &t);
	err_clear(); /* whoever reads them says it */
	if (x < 0 || y < 0 || s.st_size != t.st_size)
		return false;
	for (uint64_t at = 0; n > 0; at += (uint64_t)n) {
		n = file_pread(x, p, sizeof(p), at);
		if (n < 0 || file_pread(y, q, sizeof(q), at) != n || memcmp(p, q, (size_t)n) != 0)
			return false;
	}
	return true;
}

int diff_load_check_twice(const struct diff_input *in, struct texts *reasons)
{
	int r = 0;

	for (size_t i = 0; i < in->cube.runs.len && !r; i++) {
		const struct cube_run *run = &in->cube.runs.items[i];

		for (size_t k = 0; k < i && !r; k++)
			if (in->cube.runs.items[k].side == run->side &&
			    is_same_file(in->cube.runs.items[k].file, run->file))
				r = texts_addf(reasons, "%s is given twice as a run of %s",
					       run->file,
					       run->side == DIFF_BASE ? "base" : "current");
	}
	return r;
}

int diff_load_note_same(const struct diff_input *in, struct texts *notes)
{
	int r = 0;

	for (size_t i = 0; i < in->cube.runs.len && !r; i++) {
		const struct cube_run *a = &in->cube.runs.items[i];

		for (size_t k = 0; k < i && !r; k++) {
			const struct cube_run *b = &in->cube.runs.items[k];

			if (a->side == b->side)
				continue;
			if (is_same_file(a->file, b->file))
				r = texts_addf(notes, "%s is on both sides", a->file);
			else if (has_same_bytes(a->file, b->file))
				r = texts_addf(notes, "%s and %s are equal", b->file, a->file);
		}
	}
	return r;
}
