/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/road.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/units.h"
#include "cmd/input.h"

/* Without folders, where these are stripped. */
static int put_name(struct road *r)
{
	const char *slash;
	int e;

	strbuf_truncate(&r->name, 0);
	e = input_put_name(r->in, &r->name);
	slash = r->strip && r->strip->paths ? strrchr(strbuf_str(&r->name), '/') : NULL;
	if (e || !slash)
		return e;
	memmove(r->name.bytes, slash + 1, strlen(slash + 1) + 1);
	strbuf_truncate(&r->name, strlen(r->name.bytes));
	return 0;
}

static int begin_recording(struct road *r, uint32_t index)
{
	int e = put_name(r);

	r->before = r->select.sum;
	r->recording = (struct road_recording){
		.index = index,
		.name = strbuf_str(&r->name),
	};
	return e ? e : r->taker->begin(r->arg, &r->recording);
}

static int end_recording(struct road *r)
{
	struct road_recording *of = &r->recording;

	if (of->index == INPUT_NO_RECORDING)
		return 0;
	of->sum.all = r->select.sum.all - r->before.all;
	of->sum.kept = r->select.sum.kept - r->before.kept;
	of->sum.count = r->select.sum.count - r->before.count;
	return r->taker->end(r->arg, of);
}

static int see(struct road *r)
{
	int e = select_prepare(&r->select, r->profile);

	return e ? e : r->taker->see(r->arg);
}

/* What was read becomes the profile's as far as it is to be told; *index: its recording's there. */
static int strip_batch(struct road *r, uint32_t *index)
{
	uint32_t read = input_recording_index(r->in);
	int e = 0;

	*index = read;
	if (!r->raw || read == INPUT_NO_RECORDING)
		return 0;
	if (read != r->raw_index)
		e = extract_begin(&r->stripped, r->raw, read, r->profile);
	r->raw_index = read;
	if (!e)
		e = extract_facts(&r->stripped, r->raw, r->profile);
	if (!e)
		e = extract_samples(&r->stripped, r->raw, r->profile);
	profile_clear_samples(r->raw);
	*index = r->stripped.to_recording;
	return e;
}

/* What input_next() brought, of one recording. */
static int take_batch(struct road *r)
{
	struct profile *p = r->profile;
	uint64_t last_ns;
	uint32_t index;
	int e = strip_batch(r, &index);

	if (e)
		return e;
	if (r->recording.index != index) {
		e = end_recording(r);
		if (!e)
			e = begin_recording(r, index);
	}
	r->samples += p->samples.len;
	last_ns = profile_last_ns(p);
	if (last_ns > r->recording.last_ns)
		r->recording.last_ns = last_ns;
	if (!e && r->folds_imports)
		e = import_fold_samples(&r->imports, p);
	if (!e && r->taker->see)
		e = see(r);
	if (!e)
		e = select_samples(&r->select, p);
	if (!e)
		e = r->taker->take(r->arg);
	profile_clear_samples(p);
	return e;
}

static void end_stripping(struct road *r)
{
	extract_release(&r->stripped);
	r->stripped = (struct extract){ .strip = r->strip };
	r->raw_index = INPUT_NO_RECORDING;
	profile_free(take_ptr(r->raw));
}

/* Each file is read into a profile of its own. */
static int begin_stripping(struct road *r)
{
	end_stripping(r);
	return strip_is_active(r->strip) ? profile_new(&r->raw) : 0;
}

/* 0, or an error that leaves nothing of use; r->end is what the input said last. */
static int read_all(struct road *r, const char *path)
{
	int e = input_open(path, r->choice, &r->in);

	r->recording.index = INPUT_NO_RECORDING;
	if (!e)
		e = begin_stripping(r);
	while (!e) {
		r->end = input_next(r->in, r->raw ? r->raw : r->profile);
		e = take_batch(r);
		if (r->end <= 0)
			break;
	}
	return e ? e : end_recording(r);
}

void road_read(struct road *r, const char *path)
{
	int e;

	input_free(take_ptr(r->in));
	free(take_ptr(r->message));
	r->path = path;
	r->samples = 0;
	r->end = 0;
	e = read_all(r, path);
	if (e < 0) {
		r->end = e;
		r->samples = 0;
	}
	if (r->end < 0)
		r->message = strdup(err_message(r->end));
}

bool road_is_damaged(const struct road *r)
{
	return r->end < 0;
}

uint64_t road_known_last_ns(const struct road *r)
{
	return input_last_ns(r->in);
}

bool road_is_of_text(const struct road *r)
{
	return r->in && input_is_text(r->in);
}

/* Is what ended before its end of use? Of text no: one wrong line, and it may be another format. */
static bool is_of_use(const struct road *r)
{
	return r->samples && (r->end == 0 || (r->end == -EBADMSG && !road_is_of_text(r)));
}

static int note_damage(struct texts *notes, const struct road *r)
{
	return texts_addf(notes, "%s; using the %s samples before it", err_message(r->end),
			  units_count(r->samples).s);
}

static int note_early_end(struct texts *notes, const struct road *r, uint64_t offset)
{
	return texts_addf(notes,
			  "%s: truncated at byte %" PRIu64
			  ": the recorder was killed or is still running",
			  r->path, offset);
}

int road_conclude(struct road *r, struct texts *notes)
{
	struct texts own = { 0 }, *to = notes ? notes : &own;
	uint64_t offset;
	int e;

	if (r->end < 0)
		err_set(r->end, "%s", r->message ? r->message : strerror(-r->end));
	if (r->end < 0 && !is_of_use(r))
		return r->end;
	input_note_left_out(r->in);
	if (!r->end && !input_is_truncated(r->in, &offset))
		return 0;
	if (!r->samples)
		return err_set(-EBADMSG, "%s: cut off before its first sample", r->path);
	e = r->end < 0 ? note_damage(to, r) : note_early_end(to, r, offset);
	if (!e)
		log_warning("%s", to->items[to->len - 1]);
	err_clear();
	texts_release(&own);
	return e < 0 ? e : 1;
}

void road_end(struct road *r)
{
	import_fold_release(&r->imports);
}

void road_release(struct road *r)
{
	input_free(r->in);
	free(r->message);
	strbuf_release(&r->name);
	end_stripping(r);
	import_fold_release(&r->imports);
	select_release(&r->select);
}
