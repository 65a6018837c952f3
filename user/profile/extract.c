/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "profile/extract.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PENDING UINT32_MAX /* needed, and without an id as yet */

void extract_forget(struct extract *x)
{
	vec_release(&x->frames);
	vec_release(&x->stacks);
	vec_release(&x->labels);
	vec_release(&x->kinds);
	vec_release(&x->processes);
	vec_release(&x->threads);
	vec_release(&x->files);
	vec_release(&x->modules);
	vec_release(&x->texts);
	vec_release(&x->plain_texts);
	vec_release(&x->sources);
	x->processes_seen = x->threads_seen = 0;
}

void extract_release(struct extract *x)
{
	extract_forget(x);
	vec_release(&x->fresh);
}

int extract_facts(const struct extract *x, const struct profile *from, struct profile *to)
{
	const struct recording *r = &from->recordings.items[x->from_recording];
	struct recording *copy = &to->recordings.items[x->to_recording];
	int e = recording_copy(copy, r);

	recording_clear_counters(copy);
	if (!e)
		e = recording_add_counters(copy, r);
	return e ? e : strip_recording(x->strip, copy);
}

int extract_begin(struct extract *x, const struct profile *from, uint32_t recording,
		  struct profile *to)
{
	int r = profile_begin_recording(to, &x->to_recording);

	x->from_recording = recording;
	x->processes_seen = x->threads_seen = 0;
	return r ? r : extract_facts(x, from, to);
}

/* --- rows ------------------------------------------------------------------------------------- */

/* Room for ids below count. */
static int cover(struct extract_ids *ids, size_t count)
{
	size_t more = count > ids->len ? count - ids->len : 0;

	if (!more)
		return 0;
	if (vec_reserve(ids, more) < 0)
		return -ENOMEM;
	memset(ids->items + ids->len, 0, more * sizeof(*ids->items));
	ids->len += more;
	return 0;
}

static int cover_strings(struct extract *x, size_t count)
{
	int r = cover(&x->files, count);

	if (!r)
		r = cover(&x->modules, count);
	if (!r)
		r = cover(&x->texts, count);
	return r ? r : cover(&x->plain_texts, count);
}

static int cover_all(struct extract *x, const struct profile *from)
{
	int r = cover(&x->frames, frametab_count(from->frames));

	if (!r)
		r = cover(&x->stacks, stacktab_count(from->stacks));
	if (!r)
		r = cover(&x->labels, labeltab_count(from->labels));
	if (!r)
		r = cover(&x->processes, from->processes.len);
	if (!r)
		r = cover_strings(x, strtab_count(from->strings));
	if (!r)
		r = cover(&x->sources, from->sources.len);
	return r ? r : cover(&x->threads, from->threads.len);
}

static int compare_ids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Those from there on, in their order in the one profile. */
static void sort_fresh(struct extract *x, size_t from)
{
	if (x->fresh.len > from)
		qsort(x->fresh.items + from, x->fresh.len - from, sizeof(*x->fresh.items),
		      compare_ids);
}

static int need(struct extract *x, struct extract_ids *ids, uint32_t id)
{
	if (ids->items[id])
		return 0;
	ids->items[id] = PENDING;
	return vec_push(&x->fresh, id);
}

/* *id, of the one, becomes that of the other, if it was asked for before. */
static bool is_known(const struct extract_ids *ids, uint32_t *id)
{
	uint32_t known = ids->items[*id];

	if (known)
		*id = known - 1;
	return known;
}

static int text(struct extract *x, const struct profile *from, struct profile *to, uint32_t *id)
{
	uint32_t asked = *id;
	int r;

	if (is_known(&x->texts, id))
		return 0;
	r = strip_text(x->strip, from, asked, to, id);
	if (!r)
		x->texts.items[asked] = *id + 1;
	return r;
}

static int plain_text(struct extract *x, const struct profile *from, struct profile *to,
		      uint32_t *id)
{
	uint32_t asked = *id;
	int r;

	if (is_known(&x->plain_texts, id))
		return 0;
	r = strtab_intern(to->strings, strtab_get(from->strings, asked),
			  strtab_len(from->strings, asked), id);
	if (!r)
		x->plain_texts.items[asked] = *id + 1;
	return r;
}

static int file_name(struct extract *x, const struct profile *from, uint8_t kind,
		     struct profile *to, uint32_t *id)
{
	struct extract_ids *ids = kind == FRAME_PYTHON ? &x->files : &x->modules;
	uint32_t asked = *id;
	int r;

	if (is_known(ids, id))
		return 0;
	r = strip_file(x->strip, from, asked, kind, to, id);
	if (!r)
		ids->items[asked] = *id + 1;
	return r;
}

static int add_frame(struct extract *x, const struct profile *from, uint32_t id, struct profile *to)
{
	struct frame f = *frametab_get(from->frames, id);
	int r = text(x, from, to, &f.name);

	if (!r)
		r = file_name(x, from, f.kind, to, &f.file);
	if (!r)
		r = frametab_intern(to->frames, &f, &x->frames.items[id]);
	x->frames.items[id]++;
	return r;
}

/* Of the samples' stacks, and below, those that are new. */
static int find_stacks(struct extract *x, const struct profile *from)
{
	const struct stack_entry *entries = stacktab_entries(from->stacks);
	int r = 0;

	x->fresh.len = 0;
	for (size_t i = 0; i < from->samples.len && !r; i++)
		for (uint32_t at = from->samples.items[i].stack; at && !x->stacks.items[at] && !r;
		     at = entries[at].parent)
			r = need(x, &x->stacks, at);
	sort_fresh(x, 0);
	return r;
}

static int add_frames(struct extract *x, const struct profile *from, struct profile *to)
{
	const struct stack_entry *entries = stacktab_entries(from->stacks);
	size_t stacks = x->fresh.len;
	int r = 0;

	for (size_t i = 0; i < stacks && !r; i++)
		r = need(x, &x->frames, entries[x->fresh.items[i]].frame);
	sort_fresh(x, stacks);
	for (size_t i = stacks; i < x->fresh.len && !r; i++)
		r = add_frame(x, from, x->fresh.items[i], to);
	x->fresh.len = stacks;
	return r;
}

/* Parents have lower ids, and come first. */
static int add_stacks(struct extract *x, const struct profile *from, struct profile *to)
{
	const struct stack_entry *entries = stacktab_entries(from->stacks);
	int r = find_stacks(x, from);

	if (!r)
		r = add_frames(x, from, to);
	for (size_t i = 0; i < x->fresh.len && !r; i++) {
		uint32_t id = x->fresh.items[i], parent = entries[id].parent;

		r = stacktab_intern(to->stacks, parent ? x->stacks.items[parent] - 1 : 0,
				    x->frames.items[entries[id].frame] - 1, &x->stacks.items[id]);
		x->stacks.items[id]++;
	}
	return r;
}

static int add_labels(struct extract *x, const struct profile *from, struct profile *to)
{
	const struct label_entry *entries = labeltab_entries(from->labels);
	int r = 0;

	x->fresh.len = 0;
	for (size_t i = 0; i < from->samples.len && !r; i++)
		for (uint32_t at = from->samples.items[i].labels; at && !x->labels.items[at] && !r;
		     at = entries[at].parent)
			r = need(x, &x->labels, at);
	sort_fresh(x, 0);
	for (size_t i = 0; i < x->fresh.len && !r; i++) {
		uint32_t id = x->fresh.items[i];
		struct label_entry e = entries[id];

		r = plain_text(x, from, to, &e.name);
		if (!r)
			r = plain_text(x, from, to, &e.value);
		if (!r)
			r = labeltab_add(to->labels, e.parent ? x->labels.items[e.parent] - 1 : 0,
					 e.name, e.value, &x->labels.items[id]);
		x->labels.items[id]++;
	}
	return r;
}

/* All of them: which comes first, of several, is told by their order. */
static int add_kinds(struct extract *x, const struct profile *from, struct profile *to)
{
	int r = 0;

	while (x->kinds.len < from->kinds.len && !r) {
		struct sample_kind kind = from->kinds.items[x->kinds.len];
		uint16_t added;

		if ((r = text(x, from, to, &kind.name)) < 0 ||
		    (r = text(x, from, to, &kind.event)) < 0 ||
		    (r = profile_add_kind(to, &kind, &added)) < 0)
			return r;
		r = vec_push(&x->kinds, added);
	}
	return r;
}

/* --- whose they are --------------------------------------------------------------------------- */

static int place_of(struct extract *x, const struct profile *from, struct process *process,
		    struct profile *to)
{
	uint32_t *const texts[] = { &process->container, &process->pod_uid, &process->pod_name,
				    &process->pod_namespace };
	int r = 0;

	strip_process(x->strip, process);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]) && !r; i++)
		r = plain_text(x, from, to, texts[i]);
	return r;
}

/* Where it runs may have become known only now. */
static int add_process(struct extract *x, const struct profile *from, uint32_t id,
		       struct profile *to)
{
	struct process process = from->processes.items[id];
	uint32_t added = x->processes.items[id] - 1;
	int r = place_of(x, from, &process, to);

	process.recording = x->to_recording;
	if (!r && !x->processes.items[id]) {
		if ((r = text(x, from, to, &process.name)) < 0 ||
		    (r = plain_text(x, from, to, &process.command_line)) < 0 ||
		    (r = plain_text(x, from, to, &process.python_version)) < 0 ||
		    (r = plain_text(x, from, to, &process.implementation)) < 0 ||
		    (r = strip_file(x->strip, from, process.executable, FRAME_NATIVE, to,
				    &process.executable)) < 0)
			return r;
		r = profile_add_process(to, &process, &added);
		x->processes.items[id] = added + 1;
	}
	if (!r)
		process_set_place(&to->processes.items[added], &process);
	return r;
}

static int add_thread(struct extract *x, const struct profile *from, uint32_t id,
		      struct profile *to)
{
	struct thread t = from->threads.items[id];
	int r = x->processes.items[t.process] ? 0 : add_process(x, from, t.process, to);

	t.process = x->processes.items[t.process] - 1;
	if (!r)
		r = text(x, from, to, &t.name);
	if (!r)
		r = profile_add_thread(to, &t, &x->threads.items[id]);
	x->threads.items[id]++;
	return r;
}

static bool is_of_recording(const struct extract *x, const struct profile *from, uint32_t process)
{
	return from->processes.items[process].recording == x->from_recording;
}

/* All of the recording; those that it had before may have got a place. */
static int add_everybody(struct extract *x, const struct profile *from, struct profile *to)
{
	int r = 0;

	for (uint32_t i = 0; i < from->processes.len && !r; i++) {
		bool is_new = i >= x->processes_seen, has_place;

		has_place = process_has_place(&from->processes.items[i]);
		if (is_of_recording(x, from, i) && (is_new || has_place))
			r = add_process(x, from, i, to);
	}
	for (uint32_t i = (uint32_t)x->threads_seen; i < from->threads.len && !r; i++)
		if (is_of_recording(x, from, from->threads.items[i].process) &&
		    !x->threads.items[i])
			r = add_thread(x, from, i, to);
	x->processes_seen = from->processes.len;
	x->threads_seen = from->threads.len;
	return r;
}

static int add_sampled(struct extract *x, const struct profile *from, struct profile *to)
{
	int r = 0;

	x->fresh.len = 0;
	for (size_t i = 0; i < from->samples.len && !r; i++)
		r = need(x, &x->threads, from->samples.items[i].thread);
	sort_fresh(x, 0);
	for (size_t i = 0; i < x->fresh.len && !r; i++)
		r = add_thread(x, from, x->fresh.items[i], to);
	return r;
}

/* Of files that the other profile names: who may not have the paths has no sources either. */
static int add_sources(struct extract *x, const struct profile *from, struct profile *to)
{
	int r = 0;

	for (size_t i = 0; i < from->sources.len && !strip_is_active(x->strip) && !r; i++) {
		struct source_version source = from->sources.items[i];
		uint32_t file = x->files.items[source.file];

		if (!file || x->sources.items[i] || source.recording != x->from_recording)
			continue;
		source.file = file - 1;
		source.recording = x->to_recording;
		x->sources.items[i] = 1;
		r = profile_add_source(to, &source);
	}
	return r;
}

/* --- samples ---------------------------------------------------------------------------------- */

static int add_sample(struct extract *x, const struct profile *from, struct sample s,
		      struct profile *to)
{
	int r = s.opcode ? plain_text(x, from, to, &s.opcode) : 0;

	if (s.kind)
		s.kind = (uint16_t)x->kinds.items[s.kind - 1];
	s.stack = s.stack ? x->stacks.items[s.stack] - 1 : 0;
	s.labels = s.labels ? x->labels.items[s.labels] - 1 : 0;
	s.thread = x->threads.items[s.thread] - 1;
	return r ? r : profile_add_sample(to, &s);
}

int extract_samples(struct extract *x, const struct profile *from, struct profile *to)
{
	int r = cover_all(x, from);

	if (!r)
		r = add_kinds(x, from, to);
	if (!r && !x->only_sampled)
		r = add_everybody(x, from, to);
	if (!r)
		r = add_sampled(x, from, to);
	if (!r)
		r = add_stacks(x, from, to);
	if (!r)
		r = add_labels(x, from, to);
	if (!r)
		r = add_sources(x, from, to);
	for (size_t i = 0; i < from->samples.len && !r; i++)
		r = add_sample(x, from, from->samples.items[i], to);
	return r;
}
