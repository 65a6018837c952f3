/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/diff_load.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/units.h"
#include "cmd/account.h"
#include "cmd/input.h"

#define COMPARE_BYTES 65536

static const char *known(const char *text)
{
	return text && *text ? text : NULL;
}

static struct diff_facts facts_of(const char *path, const struct input *file)
{
	const struct metadata *m = input_metadata(file);

	return (struct diff_facts){
		.file = path,
		.mode = known(m->mode),
		.event = known(m->event),
		.host = known(m->host),
		.command = known(m->target ? m->target : m->command),
		.interval_ns = input_interval_ns(file),
		.duration_ns = m->duration_ns,
		.start_realtime_ns = m->start_realtime_ns,
		.work = m->work,
		.has_times = !input_is_text(file),
		.is_whole = m->is_whole,
	};
}

static uint64_t last_time(const struct profile *p, uint64_t last)
{
	for (size_t i = 0; i < p->samples.len; i++)
		if (p->samples.items[i].time_ns > last)
			last = p->samples.items[i].time_ns;
	return last;
}

/* What is known only at the end. last_ns: when its last sample was taken. */
static void complete_facts(struct diff_facts *facts, const struct input *file, uint64_t last_ns)
{
	const struct metadata *m = input_metadata(file);

	facts->is_whole = m->is_whole;
	facts->duration_ns = m->duration_ns ? m->duration_ns : last_ns; /* 0: recorder killed */
	facts->work = m->work;
	facts->has_times = last_ns > 0; /* also of what was imported from text */
}

/* The file gave n in the end: is it of use? 0 or an error. */
static int judge_end(const struct input *file, const char *path, int n, uint64_t ticks)
{
	uint64_t offset;

	if (!n && !input_is_truncated(file, &offset))
		return 0;
	if (n < 0 && (n != -EBADMSG || !ticks))
		return n;
	if (!ticks)
		return err_set(-EBADMSG, "%s: cut off before its first sample", path);
	if (n < 0)
		log_warning("%s; the %s samples before that are used", err_message(n),
			    units_count(ticks).s);
	else
		log_warning("%s: ends early at byte %" PRIu64
			    ": its recorder was killed or still runs",
			    path, offset);
	err_clear();
	return 0;
}

int diff_load(struct diff_input *in, enum diff_side side, const char *path,
	      struct diff_group *group)
{
	_cleanup_(input_freep) struct input *file = NULL;
	uint64_t lost = account_sum(in->profile, account_lost), last_ns = 0, ticks = 0;
	struct diff_facts facts;
	uint32_t run;
	int n, r;

	r = input_open(path, &file);
	if (r < 0)
		return r;
	facts = facts_of(path, file);
	r = diff_input_add_run(in, side, &facts, 0, &run);
	if (r < 0)
		return r;
	do {
		n = input_next(file, in->profile);
		last_ns = last_time(in->profile, last_ns);
		ticks += in->profile->samples.len;
		r = group ? diff_group_samples(group, in->profile) : 0;
		if (!r)
			r = diff_input_take_samples(in, run);
		if (r < 0)
			return r;
	} while (n > 0);
	complete_facts(&in->runs.items[run]->facts, file, last_ns);
	in->runs.items[run]->facts.lost = account_sum(in->profile, account_lost) - lost;
	if (input_skipped(file))
		log_note("%s: lines skipped, without samples: %s", path,
			 units_count(input_skipped(file)).s);
	return judge_end(file, path, n, ticks);
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

int diff_load_check_twice(const struct diff_input *in, struct diff_texts *reasons)
{
	int r = 0;

	for (size_t i = 0; i < in->runs.len && !r; i++) {
		const struct diff_run *run = in->runs.items[i];

		for (size_t k = 0; k < i && !r; k++)
			if (in->runs.items[k]->side == run->side &&
			    is_same_file(in->runs.items[k]->facts.file, run->facts.file))
				r = diff_texts_addf(reasons, "%s is given twice as a run of %s",
						    run->facts.file,
						    run->side == DIFF_BASE ? "base" : "current");
	}
	return r;
}

int diff_load_note_same(const struct diff_input *in, struct diff_texts *notes)
{
	int r = 0;

	for (size_t i = 0; i < in->runs.len && !r; i++) {
		const struct diff_facts *a = &in->runs.items[i]->facts;

		for (size_t k = 0; k < i && !r; k++) {
			const struct diff_facts *b = &in->runs.items[k]->facts;

			if (in->runs.items[i]->side == in->runs.items[k]->side)
				continue;
			if (is_same_file(a->file, b->file))
				r = diff_texts_addf(notes, "%s is on both sides", a->file);
			else if (has_same_bytes(a->file, b->file))
				r = diff_texts_addf(notes, "%s and %s are equal", b->file, a->file);
		}
	}
	return r;
}
