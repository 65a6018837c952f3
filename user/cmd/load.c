/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/load.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "cmd/account.h"
#include "cmd/input.h"
#include "cmd/select_opts.h"

#define DEFAULT_FILE "profile.pyebpf"

static uint64_t sum_values(const struct profile *p)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < p->samples.len; i++)
		sum += p->samples.items[i].value;
	return sum;
}

/* Takes the samples p holds now into the sums. */
static int sum_samples(struct load *l)
{
	struct profile *p = l->profile;
	struct select_sum before = l->select.sum;
	int r = l->folds_imports ? import_fold_samples(&l->imports, p) : 0;

	if (!r && select_is_needed(&l->select, p)) {
		r = select_samples(&l->select, p);
		l->records += l->select.sum.count - before.count;
		l->all_ticks += l->select.sum.all - before.all;
		l->ticks += l->select.sum.kept - before.kept;
	} else {
		uint64_t values = sum_values(p);

		l->records += p->samples.len;
		l->all_ticks += values;
		l->ticks += values;
	}
	if (!r)
		r = cube_add(&l->cube, p);
	profile_clear_samples(p);
	return r;
}

/* The file gave n in the end, and `found` samples: is it of use? 0 or an error. */
static int judge_end(struct load *l, const struct input *in, const char *path, int n,
		     uint64_t found)
{
	uint64_t offset;

	if (!n && !input_is_truncated(in, &offset))
		return 0;
	l->is_cut = true;
	if (n < 0 && !found)
		return n;
	if (!found)
		return err_set(-EBADMSG, "%s: cut off before its first sample", path);
	if (n < 0)
		n = texts_addf(&l->notes, "%s; the %s samples before that are used", err_message(n),
			       units_count(found).s);
	else
		n = texts_addf(&l->notes,
			       "%s: ends early at byte %" PRIu64
			       ": its recorder was killed or still runs",
			       path, offset);
	if (n < 0)
		return n;
	log_warning("%s", l->notes.items[l->notes.len - 1]);
	err_clear();
	return 0;
}

/* "of 1 ms each" */
static void put_interval(char *text, size_t size, uint64_t interval_ns)
{
	if (interval_ns)
		snprintf(text, size, "of %s each", units_ns(interval_ns).s);
	else
		snprintf(text, size, "of unknown length");
}

#define INTERVALS_DIFFER "%s: its samples are %s, and counted as those of the first file, %s"

/* Sums with samples that last another time are no time. */
static int compare_intervals(struct load *l, uint32_t recording, const char *name)
{
	uint64_t first_ns = profile_recording(l->profile)->interval_ns;
	uint64_t interval_ns = l->profile->recordings.items[recording].interval_ns;
	char first[64], own[64];

	if (interval_ns == first_ns)
		return 0;
	put_interval(first, sizeof(first), first_ns);
	put_interval(own, sizeof(own), interval_ns);
	log_warning(INTERVALS_DIFFER, name, own, first);
	return texts_addf(&l->notes, INTERVALS_DIFFER, name, own, first);
}

static int begin_run(struct load *l, struct input *in, uint32_t recording)
{
	_cleanup_(strbuf_releasep) struct strbuf name = STRBUF_INIT;
	bool has_times = !l->profile->recordings.items[recording].is_summed;
	uint64_t last_ns = has_times ? input_last_ns(in) : 0;
	int r = input_put_name(in, &name);

	if (!r)
		r = compare_intervals(l, recording, strbuf_str(&name));
	if (r < 0 || !(l->cube.axes & CUBE_TIME))
		return r;
	return cube_begin_run(&l->cube, CUBE_CURRENT, strbuf_str(&name), recording,
			      !has_times ? CUBE_NO_TIMES
			      : last_ns  ? last_ns + 1
					 : 0);
}

/* What is known at its end; before: what was read before it. */
static int end_run(struct load *l, uint32_t recording, const struct select_sum *before)
{
	struct select_sum sum = { .all = l->all_ticks - before->all,
				  .kept = l->ticks - before->kept };
	struct recording *of;
	int r;

	if (recording == INPUT_NO_RECORDING)
		return 0;
	of = &l->profile->recordings.items[recording];
	r = select_describe(&l->select, l->profile, of);
	if (l->cube.axes & CUBE_TIME)
		cube_run(&l->cube)->lost = select_scale(&sum, loss_sum_of(of, loss_ticks));
	return r;
}

/* Batch by batch until it gives no more: 0 or what input_next() says; else -ENOMEM in *r. */
static int sum_batches(struct load *l, struct input *in, int *r)
{
	uint32_t recording = INPUT_NO_RECORDING;
	struct select_sum before = { 0 };
	int n;

	*r = 0;
	do {
		n = input_next(in, l->profile);
		if (recording != input_recording_index(in)) {
			*r = end_run(l, recording, &before);
			before = (struct select_sum){ .all = l->all_ticks, .kept = l->ticks };
			recording = input_recording_index(in);
			if (!*r)
				*r = begin_run(l, in, recording);
		}
		if (!*r)
			*r = sum_samples(l);
	} while (n > 0 && !*r);
	if (!*r)
		*r = end_run(l, recording, &before);
	return n;
}

static int load_file(struct load *l, const char *path)
{
	_cleanup_(input_freep) struct input *in = NULL;
	uint64_t records = l->records, ticks = l->all_ticks;
	int n, r = input_open(path, &in);

	if (r < 0)
		return r;
	n = sum_batches(l, in, &r);
	if (r < 0 || (n < 0 && n != -EBADMSG))
		return r < 0 ? r : n;
	if (input_is_text(in)) {
		l->records = records + l->all_ticks - ticks; /* a line is a sum, not a record */
		if (n < 0)
			return n; /* one wrong line: it may be another format altogether */
	}
	input_note_left_out(in);
	return judge_end(l, in, path, n, l->records - records);
}

static int note_selection(struct load *l)
{
	uint64_t interval_ns = profile_recording(l->profile)->interval_ns;
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	int r = 0;

	if (select_has_others(&l->select))
		r = select_put_others(&l->select, l->profile, &text);
	if (!r && text.len)
		r = texts_addf(&l->notes, "Left out: %s", strbuf_str(&text));
	if (r < 0 || !select_is_active(&l->select.query))
		return r;
	strbuf_truncate(&text, 0);
	r = select_put_sum(&l->select.query, &l->select.sum, interval_ns, &text);
	return r ? r : texts_addf(&l->notes, "Selected: %s", strbuf_str(&text));
}

int load_files(struct load *l, const char *const *paths, size_t count)
{
	int r = profile_new(&l->profile);

	for (size_t i = 0; i < count && !r; i++)
		r = load_file(l, paths[i]);
	if (!r)
		r = account_note(l->profile, l->all_ticks, "", &l->notes);
	if (!r)
		r = note_selection(l);
	return r ? r : cube_finish(&l->cube, l->profile);
}

/* The stack of l->profile that is just this frame's function. */
static int leaf_stack(struct load *l, const struct profile *p, uint32_t frame, uint32_t *stack)
{
	const struct frame *from = frametab_get(p->frames, frame);
	const char *name = strtab_get(p->strings, from->name);
	const char *file = strtab_get(p->strings, from->file);
	struct frame f = { .first_line = from->first_line, .kind = from->kind };
	uint32_t id;
	int r;

	if ((r = strtab_intern(l->profile->strings, name, strtab_len(p->strings, from->name),
			       &f.name)) < 0 ||
	    (r = strtab_intern(l->profile->strings, file, strtab_len(p->strings, from->file),
			       &f.file)) < 0 ||
	    (r = frametab_intern(l->profile->frames, &f, &id)) < 0)
		return r;
	return stacktab_intern(l->profile->stacks, 0, id, stack);
}

int load_add_leaves(struct load *l, const struct profile *p, struct leaf_map *functions)
{
	const struct stack_entry *stacks = stacktab_entries(p->stacks);
	size_t frames = frametab_count(p->frames);
	int r = 0;

	if (functions->len < frames) {
		if (vec_reserve(functions, frames - functions->len) < 0)
			return -ENOMEM;
		memset(functions->items + functions->len, 0,
		       (frames - functions->len) * sizeof(functions->items[0]));
		functions->len = frames;
	}
	for (size_t i = 0; i < p->samples.len && !r; i++) {
		struct sample s = p->samples.items[i];
		uint32_t *stack = s.stack ? &functions->items[stacks[s.stack].frame] : NULL;

		if (stack && !*stack)
			r = leaf_stack(l, p, stacks[s.stack].frame, stack);
		s.stack = stack ? *stack : 0;
		s.thread = 0;
		s.opcode = 0;
		l->ticks += s.value;
		l->all_ticks += s.value;
		if (!r)
			r = profile_add_sample(l->profile, &s);
	}
	l->records += p->samples.len;
	if (!r)
		r = cube_add(&l->cube, l->profile);
	profile_clear_samples(l->profile);
	return r;
}

int load_operands(struct load *l, const struct call *call)
{
	static const char *const otherwise[] = { DEFAULT_FILE };

	if (!call->operands.len)
		return load_files(l, otherwise, 1);
	return load_files(l, (const char *const *)call->operands.items, (size_t)call->operands.len);
}

bool load_lacks_selected(const struct load *l)
{
	return !l->ticks && (l->all_ticks || (l->select.query.kind && l->select.others));
}

int load_fail_selection(const struct call *call, const struct load *l)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT, kinds = STRBUF_INIT;

	if (select_put_query(&l->select.query, &text) < 0 ||
	    select_put_kinds(l->profile, &kinds) < 0)
		return cmd_fail(call, -ENOMEM);
	cmd_fail(call,
		 err_set(-ENODATA, "none of %s samples is selected: %s",
			 units_count(l->select.sum.count + l->select.others).s, strbuf_str(&text)));
	if (l->all_ticks)
		cmd_try("patterns are globs of whole names: 'parse*', '*.parse', 'orders.py:*'");
	else
		cmd_try("its kinds are " SELECT_TICKS ", %s", strbuf_str(&kinds));
	return EXIT_NOTHING;
}

void load_release(struct load *l)
{
	profile_free(l->profile);
	cube_release(&l->cube);
	import_fold_release(&l->imports);
	select_release(&l->select);
	texts_release(&l->notes);
}
