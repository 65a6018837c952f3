/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/load.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "cmd/account.h"
#include "cmd/figures.h"
#include "cmd/input.h"
#include "cmd/select_opts.h"

#define DEFAULT_FILE "profile.pyebpf"

/* "of 1 ms each" */
static void put_interval(char *text, size_t size, uint64_t interval_ns)
{
	if (interval_ns)
		snprintf(text, size, "of %s each", units_ns(interval_ns).s);
	else
		snprintf(text, size, "of unknown length");
}

#define INTERVALS_DIFFER "%s: samples are %s, but are counted like those of the first file (%s)"

/* Sums with samples that last another time are no time. */
static int compare_intervals(struct load *l, uint32_t recording, const char *name)
{
	uint64_t first_ns = profile_recording(l->profile)->interval_ns;
	uint64_t interval_ns = l->profile->recordings.items[recording].interval_ns;
	char first[64], own[64];

	if (interval_ns == first_ns || !kinds_are_ticks(&l->road.select.kinds))
		return 0;
	put_interval(first, sizeof(first), first_ns);
	put_interval(own, sizeof(own), interval_ns);
	log_warning(INTERVALS_DIFFER, name, own, first);
	return texts_addf(&l->notes, INTERVALS_DIFFER, name, own, first);
}

static int begin_run(void *load, const struct road_recording *of)
{
	struct load *l = load;
	bool has_times = !l->profile->recordings.items[of->index].is_summed;
	int r = compare_intervals(l, of->index, of->name);
	uint64_t last_ns;

	if (r < 0 || !(l->cube.axes & CUBE_TIME))
		return r;
	last_ns = has_times ? road_known_last_ns(&l->road) : 0;
	return cube_begin_run(&l->cube, CUBE_CURRENT, of->name, of->index,
			      !has_times ? CUBE_NO_TIMES
			      : last_ns  ? last_ns + 1
					 : 0);
}

static bool takes_samples(const struct load *l)
{
	return l->to.exporter && exporter_takes_samples(l->to.exporter);
}

/* Single samples are of their kinds; sums of one, unless all are asked for. */
static bool keeps_kinds(const struct load *l)
{
	if (takes_samples(l))
		return !exporter_is_of_one_kind(l->to.exporter);
	return l->cube.axes & CUBE_KINDS;
}

/* Of those that are asked for, of which a page of wall time tells two apart. */
static bool is_of_one_kind(const struct load *l)
{
	const char *kind = l->road.select.query.kind;

	return kind && (!(l->cube.axes & CUBE_SPANS) || strcmp(kind, KINDS_WALL) != 0);
}

/* Of kinds beside those that are looked at, too. */
static int see_samples(void *load)
{
	struct load *l = load;
	const struct select *s = &l->road.select;
	const struct profile *p = l->profile;
	int r = 0;

	if (!p->kinds.len)
		return 0;
	for (size_t i = 0; i < p->samples.len && !r; i++) {
		struct sample sample = p->samples.items[i];
		bool is_selected = select_keeps(s, &sample);
		bool is_of_place = select_keeps_place(s, &sample) && select_cut(s, &sample);

		if (l->tells_waits && is_selected && is_of_place)
			r = waits_add(&l->waits, &s->kinds, p, &sample);
		if (!r && l->tells_gil && is_of_place)
			r = gil_add(&l->gil, &s->kinds, p, &sample, is_selected);
	}
	return r;
}

static int take_samples(void *load)
{
	struct load *l = load;

	l->taken += l->profile->samples.len;
	return takes_samples(l) ? export_file_take(&l->to, l->profile)
				: cube_add(&l->cube, l->profile);
}

static int end_run(void *load, const struct road_recording *of)
{
	struct load *l = load;
	struct recording *r = &l->profile->recordings.items[of->index];
	int e = select_describe(&l->road.select, l->profile, r);

	l->ticks += of->sum.kept;
	l->all_ticks += of->sum.all;
	l->records += r->is_summed ? of->sum.all : of->sum.count; /* a line is a sum, no record */
	if (l->cube.axes & CUBE_TIME)
		cube_run(&l->cube)->lost = select_scale(&of->sum, loss_sum_of(r, loss_ticks));
	return e;
}

static const struct road_taker taker = { begin_run, see_samples, take_samples, end_run };

static int note_idle(struct load *l)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	int r = select_put_idle(&l->road.select, &text);

	return r ? r : texts_addf(&l->notes, "Left out as idle: %s", strbuf_str(&text));
}

static int note_selection(struct load *l)
{
	struct value_unit of = recording_value_unit(profile_recording(l->profile));
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	int r = 0;

	if (select_has_others(&l->road.select))
		r = select_put_others(&l->road.select, l->profile, &text);
	if (!r && text.len)
		r = texts_addf(&l->notes, "Left out: %s", strbuf_str(&text));
	if (r < 0 || !select_is_active(&l->road.select.query))
		return r;
	strbuf_truncate(&text, 0);
	r = select_put_sum(&l->road.select.query, &l->road.select.sum, of, &text);
	if (!r && l->road.select.query.leaves_idle_out)
		r = note_idle(l);
	return r ? r : texts_addf(&l->notes, "Selected: %s", strbuf_str(&text));
}

/* Whoever reads a page of a part should know. */
static int note_parts(struct load *l)
{
	int r = 0;

	for (size_t i = 0; i < l->profile->recordings.len && !r; i++) {
		const struct recording *m = &l->profile->recordings.items[i];

		if (m->part && (!i || !m[-1].part || strcmp(m->part, m[-1].part) != 0))
			r = texts_addf(&l->notes,
				       "Part of a recording: %s; lost samples are those of the "
				       "complete recording",
				       m->part);
	}
	return r;
}

int load_files(struct load *l, const char *const *paths, size_t count)
{
	int r = profile_new(&l->profile);

	l->road.profile = l->profile;
	l->road.taker = &taker;
	l->road.arg = l;
	if (l->to.exporter) {
		l->cube.axes = exporter_axes(l->to.exporter, l->to.x.o);
		l->to.max_bytes =
			l->road.choice.is_trusted ? 0 : export_bytes_max(input_bytes(paths, count));
	}
	if (is_of_one_kind(l))
		l->cube.axes &= ~(unsigned int)CUBE_KINDS;
	if (l->to.exporter && exporter_needs_gil(l->to.exporter)) {
		l->tells_gil = true;
		l->to.x.gil = &l->gil;
	}
	l->to.x.kinds = &l->road.select.kinds;
	l->road.select.keeps_kinds = keeps_kinds(l);
	for (size_t i = 0; i < count && r >= 0; i++) {
		road_read(&l->road, paths[i]);
		r = road_conclude(&l->road, &l->notes);
		l->is_cut |= r > 0;
	}
	road_end(&l->road);
	if (r < 0)
		return r;
	r = account_note(l->profile, load_samples(l), "", &l->notes);
	if (!r)
		r = note_parts(l);
	if (!r)
		r = note_selection(l);
	if (!r && l->tells_gil)
		r = gil_finish(&l->gil);
	return r ? r : cube_finish(&l->cube, l->profile);
}

uint64_t load_samples(const struct load *l)
{
	struct value_unit of = recording_value_unit(profile_recording(l->profile));

	return value_is_tick(of) ? l->all_ticks : l->records;
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

static int reserve_leaves(const struct profile *p, struct leaf_map *functions)
{
	size_t frames = frametab_count(p->frames);

	if (functions->len >= frames)
		return 0;
	if (vec_reserve(functions, frames - functions->len) < 0)
		return -ENOMEM;
	memset(functions->items + functions->len, 0,
	       (frames - functions->len) * sizeof(functions->items[0]));
	functions->len = frames;
	return 0;
}

/* Why a function waited is no function that it called. */
static uint32_t function_stack(const struct profile *p, uint32_t stack)
{
	const struct stack_entry *stacks = stacktab_entries(p->stacks);

	if (stack && stacks[stack].parent && wait_is_marker(p, stacks[stack].frame))
		return stacks[stack].parent;
	return stack;
}

static int add_leaf(struct load *l, const struct profile *p, const struct sample *from,
		    struct leaf_map *functions)
{
	uint32_t stack = function_stack(p, from->stack),
		 frame = stacktab_entries(p->stacks)[stack].frame;
	struct sample s = { .value = kinds_value(&l->road.select.kinds, p, from) };
	int r = 0;

	if (stack && !functions->items[frame])
		r = leaf_stack(l, p, frame, &functions->items[frame]);
	s.stack = stack ? functions->items[frame] : 0;
	l->records++;
	l->ticks += s.value;
	l->all_ticks += s.value;
	return r < 0 ? r : profile_add_sample(l->profile, &s);
}

int load_add_leaves(struct load *l, const struct profile *p, struct leaf_map *functions)
{
	struct kinds *kinds = &l->road.select.kinds;
	int r;

	if (!functions->len)
		kinds->roles.len = 0; /* they have other numbers now */
	if ((r = kinds_choose(kinds, p, NULL)) < 0 || (r = reserve_leaves(p, functions)) < 0 ||
	    (r = kinds_describe(kinds, p, profile_recording(l->profile))) < 0)
		return r;
	for (size_t i = 0; i < p->samples.len && !r; i++)
		if (kinds_has(kinds, &p->samples.items[i]))
			r = add_leaf(l, p, &p->samples.items[i], functions);
	if (!r)
		r = cube_add(&l->cube, l->profile);
	profile_clear_samples(l->profile);
	return r;
}

int load_operands(struct load *l, const struct call *call, uint64_t max_memory_bytes)
{
	static const char *const otherwise[] = { DEFAULT_FILE };
	int r = input_begin(call, max_memory_bytes);

	if (r < 0)
		return r;
	if (!call->operands.len)
		return load_files(l, otherwise, 1);
	return load_files(l, (const char *const *)call->operands.items, (size_t)call->operands.len);
}

bool load_lacks_selected(const struct load *l)
{
	return !l->taken && (l->all_ticks || (l->road.select.query.kind && l->road.select.others));
}

int load_fail_selection(const struct call *call, const struct load *l)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT, kinds = STRBUF_INIT;

	if (select_put_query(&l->road.select.query, &text) < 0 ||
	    kinds_put_words(l->profile, &kinds) < 0)
		return cmd_fail(call, -ENOMEM);
	cmd_fail(call, err_set(-ENODATA, "none of %s samples matches %s",
			       units_count(l->road.select.sum.count + l->road.select.others).s,
			       strbuf_str(&text)));
	if (l->all_ticks)
		cmd_try("a pattern must match the full name, e.g. 'parse*', '*.parse', "
			"'orders.py:*'");
	else
		cmd_try("available kinds: %s", strbuf_str(&kinds));
	return EXIT_NOTHING;
}

int load_export(struct load *l)
{
	return export_file_finish(&l->to, l->profile, &l->cube);
}

void load_release(struct load *l)
{
	if (l->to.exporter)
		export_file_release(&l->to);
	profile_free(l->profile);
	cube_release(&l->cube);
	waits_release(&l->waits);
	gil_release(&l->gil);
	road_release(&l->road);
	texts_release(&l->notes);
}
