/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/diff_load.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/parallel.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "cmd/input.h"
#include "cmd/select_opts.h"
#include "profile/imports.h"
#include "profile/loss.h"
#include "profile/merge.h"

#define COMPARE_BYTES 65536
#define DEALT_BLOCK_NS 1000000
#define AT_ONCE 4 /* files that are read at the same time: each holds tables of its own */

/* The file gave n in the end: is it of use? 0 or an error. */
static int judge_end(const struct input *file, const char *path, int n, uint64_t samples)
{
	uint64_t offset;

	if (!n && !input_is_truncated(file, &offset))
		return 0;
	if (n < 0 && (n != -EBADMSG || !samples))
		return n;
	if (!samples)
		return err_set(-EBADMSG, "%s: cut off before its first sample", path);
	if (n < 0)
		log_warning("%s; the %s samples before that are used", err_message(n),
			    units_count(samples).s);
	else
		log_warning("%s: ends early at byte %" PRIu64
			    ": its recorder was killed or still runs",
			    path, offset);
	err_clear();
	return 0;
}

/* --- several at once -------------------------------------------------------------------------- */

/* Each has an input of its own, so that threads share nothing. */
struct loading {
	const struct diff_file *file;
	struct input *source;
	const struct diff_reading *how;
	struct diff_input *input;
	uint64_t turn; /* samples that were dealt out */
	struct import_fold imports;
	struct select select;
	struct select_sum before; /* of the recordings before the one that is being read */
	uint32_t recording; /* index of the one that is being read; INPUT_NO_RECORDING: none yet */
	uint64_t samples;
	uint64_t last_ns; /* of any of the run's */
	int end;          /* what input_next() said last */
	int error;        /* anything else that went wrong */
	char *message;    /* of either: err_set() is of a thread */
};

static void loading_release(struct loading *l)
{
	input_free(l->source);
	diff_input_free(l->input);
	import_fold_release(&l->imports);
	select_release(&l->select);
	free(l->message);
	*l = (struct loading){ 0 };
}

static bool is_grouped(const struct loading *l)
{
	return l->select.query.patterns[SELECT_GROUP].len;
}

/*
 * Functions that are compared one by one run one after another: parts of the recording's time would
 * show which of them ran then, and not how noisy it is. Samples are dealt out over the time blocks
 * in turn instead, which leaves the noise of sampling; what differs from run to run only several
 * runs can show.
 */
static void deal_samples(struct loading *l, struct profile *p)
{
	for (size_t i = 0; i < p->samples.len; i++)
		p->samples.items[i].time_ns = l->turn++ % DIFF_BLOCKS * DEALT_BLOCK_NS;
}

/* A run for the recording that is read from now on. */
static int begin_run(struct loading *l)
{
	_cleanup_(strbuf_releasep) struct strbuf name = STRBUF_INIT;
	struct diff_input *in = l->input;
	uint32_t run;
	int r = input_put_name(l->source, &name);

	l->recording = input_recording_index(l->source);
	l->last_ns = 0;
	l->before = l->select.sum;
	if (!r)
		r = diff_input_add_run(in, l->file->side, strbuf_str(&name), l->recording, 0, &run);
	if (!r)
		in->cube.runs.items[run].is_dealt = is_grouped(l);
	return r;
}

/* What is known only at the end. Of a recorder that was killed: until its last sample. */
static int end_run(struct loading *l)
{
	struct cube_run *run = cube_run(&l->input->cube);
	struct recording *r = diff_run_recording(l->input, run);
	struct select_sum sum = { .all = l->select.sum.all - l->before.all,
				  .kept = l->select.sum.kept - l->before.kept };
	int e;

	run->has_times = l->last_ns > 0; /* also of what was imported from text */
	if (!r->duration_ns)
		r->duration_ns = l->last_ns;
	if (l->how->has_unit && !r->interval_ns && r->is_summed)
		r->interval_ns = INPUT_INTERVAL_DEFAULT_NS;
	e = select_describe(&l->select, l->input->profile, r);
	run->lost = select_scale(&sum, loss_sum_of(r, loss_ticks));
	return e;
}

/* What input_next() brought, of one recording. */
static int take_batch(struct loading *l)
{
	struct profile *p = l->input->profile;
	int r = 0;

	if (l->recording != input_recording_index(l->source)) {
		if (l->recording != INPUT_NO_RECORDING)
			r = end_run(l);
		if (!r)
			r = begin_run(l);
	}
	for (size_t i = 0; i < p->samples.len; i++)
		if (p->samples.items[i].time_ns > l->last_ns)
			l->last_ns = p->samples.items[i].time_ns;
	l->samples += p->samples.len;
	if (!r && l->how->folds_imports)
		r = import_fold_samples(&l->imports, p);
	if (!r && select_is_needed(&l->select, p))
		r = select_samples(&l->select, p);
	if (!r && is_grouped(l))
		deal_samples(l, p);
	return r ? r : diff_input_take_samples(l->input);
}

static int read_file(struct loading *l)
{
	int r = input_open(l->file->path, &l->source);

	l->recording = INPUT_NO_RECORDING;
	while (!r) {
		l->end = input_next(l->source, l->input->profile);
		r = take_batch(l);
		if (l->end <= 0)
			break;
	}
	return r ? r : end_run(l);
}

static void read_one(void *loadings, size_t i)
{
	struct loading *l = (struct loading *)loadings + i;

	l->error = read_file(l);
	if (l->error < 0 || l->end < 0)
		l->message = strdup(err_message(l->error < 0 ? l->error : l->end));
}

/* Of one that was read: what is to be said, and its run goes to the others. */
static int conclude(struct loading *l, struct diff_input *in,
		    struct profile *const sides[DIFF_SIDES], struct select_sum selected[DIFF_SIDES])
{
	int r = l->error < 0 ? l->error : l->end;

	if (r < 0)
		err_set(r, "%s", l->message ? l->message : strerror(-r));
	if (l->error < 0)
		return l->error;
	selected[l->file->side].all += l->select.sum.all;
	selected[l->file->side].kept += l->select.sum.kept;
	input_note_left_out(l->source);
	if ((r = judge_end(l->source, l->file->path, l->end, l->samples)) < 0 ||
	    (r = profile_sum_counters(l->input->profile, profile_recording(sides[l->file->side]))) <
		    0)
		return r;
	return diff_input_join(in, l->input);
}

static int load_some(struct diff_input *in, const struct diff_file *files, size_t count,
		     const struct diff_reading *how, struct profile *const sides[DIFF_SIDES],
		     struct select_sum selected[DIFF_SIDES])
{
	struct loading loadings[AT_ONCE] = { 0 };
	int r = 0;

	for (size_t i = 0; i < count && !r; i++) {
		loadings[i].file = &files[i];
		loadings[i].how = how;
		loadings[i].select.query = how->select;
		r = diff_input_new(in->cube.axes & CUBE_THREADS, &loadings[i].input);
	}
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
