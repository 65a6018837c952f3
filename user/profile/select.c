/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "profile/select.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "profile/fixture.h"
#include "profile/imports.h"
#include "profile/module.h"
#include "profile/pattern.h"

/* Bits of frames and stacks are those of the keys, and: */
#define BIT_CALLS_FIXTURE (1 << SELECT_KEYS)
#define BIT_RUNS_FIXTURE (2 << SELECT_KEYS)
_Static_assert(BIT_RUNS_FIXTURE <= UINT16_MAX, "bits of frames and stacks");
#define RANGE_SEPARATOR ".."

const char *const select_merge_names[] = {
	[SELECT_BY_LINE] = "line",
	[SELECT_BY_FUNCTION] = "function",
	[SELECT_BY_FILE] = "file",
	[SELECT_BY_MODULE] = "module",
	NULL,
};

void select_release(struct select *s)
{
	vec_release(&s->answers);
	vec_release(&s->frames);
	vec_release(&s->stacks);
	vec_release(&s->merged);
	vec_release(&s->installed);
	vec_release(&s->shown);
	vec_release(&s->threads);
	vec_release(&s->label_sets);
	kinds_release(&s->kinds);
	idle_release(&s->idle);
}

bool select_is_active(const struct select_query *q)
{
	bool is_active = q->has_range || q->merge || q->collapses_stdlib || q->leaves_idle_out ||
			 q->kind || q->part.labels.len;

	for (size_t i = 0; i < SELECT_KEYS; i++)
		is_active = is_active || q->patterns[i].len;
	return is_active;
}

/* One end of a range: nothing is an open one. */
static int parse_end(const char *text, size_t len, uint64_t open, uint64_t *ns)
{
	_cleanup_(freep) char *copy = strndup(text, len);

	if (!copy)
		return -ENOMEM;
	if (len)
		return units_parse_ns(copy, ns);
	*ns = open;
	return 0;
}

int select_parse_range(struct select_query *q, const char *text)
{
	const char *separator = strstr(text, RANGE_SEPARATOR);
	int r;

	if (!separator)
		return err_set(-EINVAL, "'%s' is not a time range, e.g. 10s..20s, ..5s or 1m..",
			       text);
	r = parse_end(text, (size_t)(separator - text), 0, &q->from_ns);
	text = separator + strlen(RANGE_SEPARATOR);
	if (!r)
		r = parse_end(text, strlen(text), UINT64_MAX, &q->to_ns);
	if (!r && q->from_ns >= q->to_ns)
		r = err_set(-EINVAL, "the end must be after the start, e.g. 10s..20s");
	q->has_range = !r;
	return r;
}

/* --- frames ----------------------------------------------------------------------------------- */

/* As an import statement has it; of own code with all folders in front. */
static int put_module(const struct profile *p, uint32_t file, struct strbuf *out)
{
	const char *path = strtab_get(p->strings, file);
	size_t root_len = profile_library_root(p, file);

	if (!root_len && *path == '/')
		root_len = 1;
	return module_put_name(path, strtab_len(p->strings, file), root_len, out);
}

static bool is_of_module(const char *pattern, const struct profile *p, uint32_t file)
{
	_cleanup_(strbuf_releasep) struct strbuf module = STRBUF_INIT;
	bool is_library = profile_library_root(p, file) || *strtab_get(p->strings, file) == '<';

	return !put_module(p, file, &module) && module.len &&
	       pattern_matches_module(pattern, is_library, strbuf_str(&module));
}

/* The parts of a pattern that a string fits, as a name and as a file: enum pattern_fit. */
static unsigned int ask(enum select_key key, const char *pattern, const struct profile *p,
			uint32_t string)
{
	const char *text = strtab_get(p->strings, string);

	switch (key) {
	case SELECT_MODULE:
		return is_of_module(pattern, p, string) ? PATTERN_FITS_FILE : 0;
	case SELECT_FILE:
		return pattern_matches_file(pattern, text) ? PATTERN_FITS_FILE : 0;
	default:
		return pattern_function_fits(pattern, text);
	}
}

/* Patterns of frames. */
static size_t pattern_count(const struct select *s)
{
	size_t count = 0;

	for (enum select_key key = SELECT_FOCUS; key <= SELECT_FILE; key++)
		count += s->query.patterns[key].len;
	return count;
}

static int make_room_for_answers(struct select *s, const struct profile *p)
{
	size_t count = strtab_count(p->strings) * pattern_count(s), more = count - s->answers.len;

	if (vec_reserve(&s->answers, more) < 0)
		return -ENOMEM;
	memset(s->answers.items + s->answers.len, 0, more);
	s->answers.len = count;
	return 0;
}

#define IS_ASKED 0x80

/* ask(), once for a string. */
static unsigned int answer(const struct select *s, enum select_key key, size_t index,
			   const struct profile *p, uint32_t string)
{
	size_t column = index;
	uint8_t *known;

	for (enum select_key before = SELECT_FOCUS; before < key; before++)
		column += s->query.patterns[before].len;
	known = &s->answers.items[(size_t)string * pattern_count(s) + column];
	if (!*known)
		*known = (uint8_t)(IS_ASKED |
				   ask(key, s->query.patterns[key].items[index], p, string));
	return *known;
}

static bool matches_frame(const struct select *s, enum select_key key, size_t index,
			  const struct profile *p, const struct frame *f)
{
	unsigned int file = answer(s, key, index, p, f->file);

	if (key == SELECT_MODULE || key == SELECT_FILE)
		return file & PATTERN_FITS_FILE;
	return pattern_fits(answer(s, key, index, p, f->name), file);
}

static uint16_t judge_fixture(const struct select *s, const struct profile *p, uint32_t frame)
{
	const struct select_patterns *groups = &s->query.patterns[SELECT_GROUP];
	bool is_of_tests = false;

	for (size_t i = 0; i < groups->len; i++)
		is_of_tests = is_of_tests || fixture_is_of_tests(groups->items[i]);
	if (!is_of_tests)
		return 0;
	switch (fixture_role_of(p, frame)) {
	case FIXTURE_CALLER:
		return BIT_CALLS_FIXTURE;
	case FIXTURE_RUNNER:
		return BIT_RUNS_FIXTURE;
	default:
		return 0;
	}
}

static uint16_t judge_frame(const struct select *s, const struct profile *p, uint32_t id)
{
	const struct frame *f = frametab_get(p->frames, id);
	uint16_t bits = judge_fixture(s, p, id);

	for (enum select_key key = SELECT_FOCUS; key <= SELECT_FILE; key++) {
		if (key == SELECT_GROUP && f->kind != FRAME_PYTHON)
			continue;
		for (size_t i = 0; i < s->query.patterns[key].len; i++)
			if (matches_frame(s, key, i, p, f))
				bits |= (uint16_t)(1 << key);
	}
	return bits;
}

static int judge_frames(struct select *s, const struct profile *p)
{
	int r = make_room_for_answers(s, p);

	while (s->frames.len < frametab_count(p->frames) && !r)
		r = vec_push(&s->frames, judge_frame(s, p, (uint32_t)s->frames.len));
	return r;
}

/* --- stacks ----------------------------------------------------------------------------------- */

/* "json/decoder.py", "orders.py": so that it is the same wherever it is installed. */
static const char *short_path(const struct profile *p, uint32_t file)
{
	const char *path = strtab_get(p->strings, file), *slash = strrchr(path, '/');
	size_t root_len = profile_library_root(p, file);

	if (root_len)
		return path + root_len;
	return slash ? slash + 1 : path;
}

static int name_merged(const struct select *s, struct profile *p, struct frame *f)
{
	_cleanup_(strbuf_releasep) struct strbuf name = STRBUF_INIT;

	if (s->query.merge == SELECT_BY_MODULE)
		module_put_name(strtab_get(p->strings, f->file), strtab_len(p->strings, f->file),
				profile_library_root(p, f->file), &name);
	if (!name.len)
		strbuf_puts(&name, short_path(p, f->file));
	if (strbuf_error(&name) < 0)
		return -ENOMEM;
	return strtab_intern(p->strings, strbuf_str(&name), name.len, &f->name);
}

/* A library's module is one, wherever it is installed: the file is that of the first. */
static int find_installed(struct select *s, const struct profile *p, struct frame *f)
{
	size_t count = strtab_count(p->strings), more = count - s->installed.len;

	if (!profile_library_root(p, f->file))
		return 0;
	if (vec_reserve(&s->installed, more) < 0)
		return -ENOMEM;
	memset(s->installed.items + s->installed.len, 0, more * sizeof(*s->installed.items));
	s->installed.len = count;
	if (!s->installed.items[f->name])
		s->installed.items[f->name] = f->file;
	f->file = s->installed.items[f->name];
	return 0;
}

/* The frame that stands for a frame. What has no file stays as it is, but for its line. */
static int merge_frame(struct select *s, struct profile *p, uint32_t frame, uint32_t *merged)
{
	struct frame f = *frametab_get(p->frames, frame);
	int r = 0;

	f.line = 0;
	f.flags = 0;
	if (s->query.merge != SELECT_BY_FUNCTION && f.file) {
		f.first_line = 0;
		r = name_merged(s, p, &f);
		if (!r)
			r = find_installed(s, p, &f);
	}
	return r ? r : frametab_intern(p->frames, &f, merged);
}

static int merge_frames(struct select *s, struct profile *p)
{
	uint32_t count = frametab_count(p->frames);
	int r = 0;

	while (s->merged.len < count && !r) {
		uint32_t merged = (uint32_t)s->merged.len;

		if (s->query.merge)
			r = merge_frame(s, p, merged, &merged);
		if (!r)
			r = vec_push(&s->merged, merged);
	}
	return r;
}

static bool is_standard_library(const struct profile *p, uint32_t frame)
{
	const struct frame *f = frametab_get(p->frames, frame);
	enum origin origin = origin_of(p, f->name, f->file, f->kind);

	return origin == ORIGIN_STDLIB || origin == ORIGIN_IMPORT;
}

/* Is such a frame part of the one before it? */
static bool is_absorbed(const struct select *s, const struct select_shown *shown, uint32_t merged,
			bool is_library)
{
	if (shown->stack && s->query.merge >= SELECT_BY_FILE && shown->leaf == merged)
		return true;
	return s->query.collapses_stdlib && shown->is_in_library && is_library;
}

/* Of a stack that has no root yet. */
static bool is_root(uint16_t bits, struct select_shown *shown)
{
	if (bits & BIT_CALLS_FIXTURE)
		shown->is_in_fixture = true;
	if (shown->is_in_fixture)
		return !(bits & (BIT_CALLS_FIXTURE | BIT_RUNS_FIXTURE));
	return bits & 1 << SELECT_GROUP;
}

/* What becomes of a stack, by what became of its caller's. */
static int show_stack(const struct select *s, struct profile *p, uint32_t frame, uint16_t bits,
		      struct select_shown *shown)
{
	uint32_t merged = s->merged.items[frame];
	bool is_library;
	int r;

	if (shown->stack == SELECT_LEFT_OUT) {
		if (!is_root(bits, shown))
			return 0;
		r = shown->is_in_fixture ? fixture_frame(p, merged, &merged) : 0;
		if (r < 0)
			return r;
		*shown = (struct select_shown){ 0 };
	}
	if (bits & 1 << SELECT_HIDE)
		return 0;
	is_library = s->query.collapses_stdlib && is_standard_library(p, frame);
	if (is_absorbed(s, shown, merged, is_library))
		return 0;
	shown->leaf = merged;
	shown->is_in_library = is_library;
	return stacktab_intern(p->stacks, shown->stack, merged, &shown->stack);
}

static bool changes_stacks(const struct select_query *q)
{
	return q->merge || q->collapses_stdlib || q->patterns[SELECT_HIDE].len ||
	       q->patterns[SELECT_GROUP].len;
}

/* Parents come before their children, so one pass does; stacks it adds wait for the next. */
static int judge_stacks(struct select *s, struct profile *p)
{
	uint32_t count = stacktab_count(p->stacks);
	bool is_changing = changes_stacks(&s->query);
	int r = is_changing ? merge_frames(s, p) : 0;

	while (s->stacks.len < count && !r) {
		uint32_t id = (uint32_t)s->stacks.len;
		struct stack_entry e = stacktab_entries(p->stacks)[id];
		uint16_t bits = id ? s->frames.items[e.frame] : 0;
		struct select_shown shown = { 0 };

		if (is_changing && id)
			shown = s->shown.items[e.parent];
		else if (s->query.patterns[SELECT_GROUP].len)
			shown.stack = SELECT_LEFT_OUT;
		if (is_changing && id)
			r = show_stack(s, p, e.frame, bits, &shown);
		if (!r && is_changing)
			r = vec_push(&s->shown, shown);
		if (!r)
			r = vec_push(&s->stacks,
				     (uint16_t)(bits | (id ? s->stacks.items[e.parent] : 0)));
	}
	return r;
}

static bool is_stack_kept(const struct select *s, uint32_t stack)
{
	static const enum select_key wanted[] = { SELECT_FOCUS, SELECT_MODULE, SELECT_FILE };
	uint16_t bits = s->stacks.items[stack];

	if (bits & 1 << SELECT_IGNORE ||
	    (s->shown.len && s->shown.items[stack].stack == SELECT_LEFT_OUT))
		return false;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (s->query.patterns[wanted[i]].len && !(bits & 1 << wanted[i]))
			return false;
	return true;
}

/* --- threads and labels ----------------------------------------------------------------------- */

static bool matches_container(const char *pattern, const struct profile *p,
			      const struct process *process)
{
	_cleanup_(strbuf_releasep) struct strbuf place = STRBUF_INIT;
	const char *id = strtab_get(p->strings, process->container);

	process_put_place(p, process, &place);
	return (*id && !strncmp(id, pattern, strlen(pattern))) ||
	       (place.len && pattern_matches(pattern, strbuf_str(&place)));
}

static bool matches_thread(enum select_key key, const char *pattern, const struct profile *p,
			   const struct thread *t)
{
	const struct process *process = &p->processes.items[t->process];

	switch (key) {
	case SELECT_THREAD:
		return pattern_matches_numbered(pattern, strtab_get(p->strings, t->name), t->tid,
						0);
	case SELECT_PROCESS:
		return pattern_matches_numbered(pattern, strtab_get(p->strings, process->name),
						process->pid, process->ns_pid);
	default:
		return matches_container(pattern, p, process);
	}
}

enum thread_verdict {
	THREAD_IS_KEPT = 1 << 0,
	PLACE_IS_KEPT = 1 << 1, /* its process is */
};

static bool matches_key(const struct select *s, enum select_key key, const struct profile *p,
			const struct thread *t)
{
	bool is_match = !s->query.patterns[key].len;

	for (size_t i = 0; i < s->query.patterns[key].len && !is_match; i++)
		is_match = matches_thread(key, s->query.patterns[key].items[i], p, t);
	return is_match;
}

static uint8_t judge_thread(const struct select *s, const struct profile *p, const struct thread *t)
{
	if (!matches_key(s, SELECT_PROCESS, p, t) || !matches_key(s, SELECT_CONTAINER, p, t))
		return 0;
	return PLACE_IS_KEPT | (matches_key(s, SELECT_THREAD, p, t) ? THREAD_IS_KEPT : 0);
}

static bool has_label(const struct profile *p, uint32_t set, const char *pattern)
{
	const struct label_entry *entries = labeltab_entries(p->labels);

	for (uint32_t at = set; at; at = entries[at].parent)
		if (pattern_matches_label(pattern, strtab_get(p->strings, entries[at].name),
					  strtab_get(p->strings, entries[at].value)))
			return true;
	return false;
}

static bool matches_labels(const struct profile *p, uint32_t set,
			   const struct select_patterns *patterns)
{
	for (size_t i = 0; i < patterns->len; i++) {
		const char *pattern = patterns->items[i];
		bool is_not = *pattern == SELECT_NOT;

		if (has_label(p, set, pattern + is_not) != is_not)
			return true;
	}
	return false;
}

static bool is_set_kept(const struct select *s, const struct profile *p, uint32_t set)
{
	const struct select_patterns *labels = &s->query.patterns[SELECT_LABEL];
	const struct select_part *part = &s->query.part;

	return (!labels->len || matches_labels(p, set, labels)) &&
	       (!part->labels.len || matches_labels(p, set, &part->labels) != part->is_rest);
}

static int judge_others(struct select *s, const struct profile *p)
{
	int r = 0;

	while (s->threads.len < p->threads.len && !r)
		r = vec_push(&s->threads, judge_thread(s, p, &p->threads.items[s->threads.len]));
	while (s->label_sets.len < labeltab_count(p->labels) && !r)
		r = vec_push(&s->label_sets, is_set_kept(s, p, (uint32_t)s->label_sets.len));
	return r;
}

/* --- samples ---------------------------------------------------------------------------------- */

static bool has_times(const struct profile *p, const struct sample *sample)
{
	uint32_t process = p->threads.items[sample->thread].process;

	return !p->recordings.items[p->processes.items[process].recording].is_summed;
}

static bool is_in_range(const struct select_query *q, const struct sample *s)
{
	return !q->has_range || (s->time_ns < q->to_ns &&
				 (s->time_ns >= q->from_ns || sample_end_ns(s) > q->from_ns));
}

bool select_cut(const struct select *s, struct sample *sample)
{
	uint64_t end = sample_end_ns(sample), from = s->query.from_ns, to = s->query.to_ns;

	if (!s->query.has_range)
		return true;
	if (sample->time_ns < from || end > to) {
		sample->value = sample_value_until(sample, to) - sample_value_until(sample, from);
		if (sample->time_ns < from)
			sample->flags &= (uint16_t)~SAMPLE_BIT_EPISODE;
		else
			from = sample->time_ns;
		sample->duration_ns = (end < to ? end : to) - from;
		sample->time_ns = from;
	}
	sample->time_ns -= s->query.from_ns;
	return sample->value > 0;
}

/* The rule; 0: it is not. */
static uint8_t is_idle(const struct select *s, const struct sample *sample)
{
	if (!s->query.leaves_idle_out || !(s->kinds.roles.items[sample->kind] & KIND_IS_OFF_CPU))
		return 0;
	return idle_rule_of(&s->idle, sample->stack);
}

static bool is_kept(const struct select *s, const struct sample *sample)
{
	return is_in_range(&s->query, sample) &&
	       s->threads.items[sample->thread] & THREAD_IS_KEPT &&
	       s->label_sets.items[sample->labels] && is_stack_kept(s, sample->stack);
}

bool select_keeps(const struct select *s, const struct sample *sample)
{
	return is_kept(s, sample) && !is_idle(s, sample);
}

bool select_keeps_place(const struct select *s, const struct sample *sample)
{
	return is_in_range(&s->query, sample) && s->threads.items[sample->thread] & PLACE_IS_KEPT;
}

static void add_to_sum(struct select_sum *sum, uint64_t all, uint64_t kept)
{
	sum->all += all;
	sum->count++;
	sum->kept += kept;
}

static void add_all_to_sum(struct select_sum *sum, const struct profile *p)
{
	for (size_t i = 0; i < p->samples.len; i++)
		add_to_sum(sum, p->samples.items[i].value, p->samples.items[i].value);
}

int select_prepare(struct select *s, struct profile *p)
{
	int r = kinds_choose(&s->kinds, p, s->query.kind);

	if (!r)
		r = judge_frames(s, p);
	if (!r)
		r = judge_stacks(s, p);
	if (!r && s->query.leaves_idle_out)
		r = idle_judge(&s->idle, p);
	return r ? r : judge_others(s, p);
}

/* What is not scaled is of one unit. */
static bool mixes_ticks(struct select *s, const struct sample *sample, bool is_of_kind)
{
	if (!is_of_kind || s->kinds.is_ns || s->keeps_kinds)
		return false;
	s->has_ticks = s->has_ticks || sample->kind == KIND_TICKS;
	return s->has_ticks && sample->kind != KIND_TICKS;
}

int select_samples(struct select *s, struct profile *p)
{
	size_t kept = 0;
	int r;

	if (!p->kinds.len && !select_is_active(&s->query)) {
		add_all_to_sum(&s->sum, p);
		s->has_ticks = s->has_ticks || p->samples.len;
		return kinds_choose(&s->kinds, p, NULL);
	}
	r = select_prepare(s, p);
	for (size_t i = 0; i < p->samples.len && !r; i++) {
		struct sample sample = p->samples.items[i];
		bool is_of_kind = kinds_has(&s->kinds, &sample), is_sample_kept;
		uint64_t all = kinds_value(&s->kinds, p, &sample), value = all;

		if (!is_of_kind && (!s->keeps_kinds || s->query.kind)) {
			s->others++;
			continue;
		}
		if (s->query.has_range && !has_times(p, &sample))
			return err_set(-EINVAL, "--time-range: these samples have no timestamps");
		if (mixes_ticks(s, &sample, is_of_kind))
			return err_set(-EINVAL, "the recordings count CPU time in different units: "
						"use --kind wall, or report each one alone");
		is_sample_kept = is_kept(s, &sample) && select_cut(s, &sample);
		if (s->query.has_range)
			value = kinds_value(&s->kinds, p, &sample);
		if (is_sample_kept && is_idle(s, &sample)) {
			s->sum.idle_ns += kinds_scaled(p, &sample);
			r = idle_count(&s->idle, is_idle(s, &sample), kinds_scaled(p, &sample));
			is_sample_kept = false;
		}
		if (is_of_kind)
			add_to_sum(&s->sum, all, is_sample_kept ? value : 0);
		if (!is_sample_kept)
			continue;
		if (!s->keeps_kinds) {
			sample.kind = KIND_TICKS;
			sample.value = value;
		}
		if (s->shown.len)
			sample.stack = s->shown.items[sample.stack].stack;
		p->samples.items[kept++] = sample;
	}
	p->samples.len = r ? p->samples.len : kept;
	return r;
}

static void trim(const struct select_query *q, struct recording *r)
{
	r->is_whole = 0;
	if (r->start_realtime_ns)
		r->start_realtime_ns += q->from_ns;
	if (r->duration_ns > q->to_ns)
		r->duration_ns = q->to_ns;
	r->duration_ns -= r->duration_ns < q->from_ns ? r->duration_ns : q->from_ns;
}

int select_describe(const struct select *s, const struct profile *p, struct recording *r)
{
	if (s->query.has_range)
		trim(&s->query, r);
	/* of several that are kept, ticks are still what they were */
	if (s->keeps_kinds && (!s->query.kind || s->kinds.is_ns))
		return 0;
	return kinds_describe(&s->kinds, p, r);
}

uint64_t select_scale(const struct select_sum *sum, uint64_t lost)
{
	if (!sum->all)
		return lost;
	return (uint64_t)((unsigned __int128)lost * sum->kept / sum->all);
}
