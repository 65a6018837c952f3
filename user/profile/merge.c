/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "profile/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PREFETCH 16 /* stacks ahead */

static void release_tables(struct profile_ids *ids)
{
	free(ids->strings);
	free(ids->frames);
	free(ids->stacks);
	free(ids->processes);
	free(ids->threads);
	free(ids->labels);
	free(ids->kinds);
}

void profile_ids_release(struct profile_ids *ids)
{
	release_tables(ids);
	free(ids->recordings);
}

void profile_ids_forget_tables(struct profile_ids *ids)
{
	release_tables(ids);
	*ids = (struct profile_ids){ .recordings = ids->recordings,
				     .done.recordings = ids->done.recordings };
}

/* Room for `count` ids, of which those behind the first `done` are zeros. */
#define grow(ids, done, count)                                                                 \
	({                                                                                     \
		__auto_type grow_ids_ = (ids);                                                 \
		size_t grow_done_ = (done), grow_count_ = (count);                             \
		void *grown_ = reallocarray(*grow_ids_, grow_count_ + 1, sizeof(**grow_ids_)); \
		if (grown_) {                                                                  \
			*grow_ids_ = grown_;                                                   \
			memset(*grow_ids_ + grow_done_, 0,                                     \
			       (grow_count_ + 1 - grow_done_) * sizeof(**grow_ids_));          \
		}                                                                              \
		grown_ ? 0 : -ENOMEM;                                                          \
	})

static int make_room(const struct profile *from, struct profile_ids *ids)
{
	int r = grow(&ids->recordings, ids->done.recordings, from->recordings.len);

	if (!r)
		r = grow(&ids->strings, ids->done.strings, strtab_count(from->strings));
	if (!r)
		r = grow(&ids->frames, ids->done.frames, frametab_count(from->frames));
	if (!r)
		r = grow(&ids->stacks, ids->done.stacks, stacktab_count(from->stacks));
	if (!r)
		r = grow(&ids->processes, ids->done.processes, from->processes.len);
	if (!r)
		r = grow(&ids->threads, ids->done.threads, from->threads.len);
	if (!r)
		r = grow(&ids->labels, ids->done.labels, labeltab_count(from->labels));
	return r ? r : grow(&ids->kinds, ids->done.kinds, from->kinds.len + 1);
}

/* Id 0 is the same one everywhere, of those that have it. */
static uint32_t first_new(size_t done)
{
	return done ? (uint32_t)done : 1;
}

static int merge_strings(struct profile *to, const struct strtab *from, struct profile_ids *ids)
{
	int r = 0;

	for (uint32_t i = first_new(ids->done.strings); i < strtab_count(from) && !r; i++)
		r = strtab_intern(to->strings, strtab_get(from, i), strtab_len(from, i),
				  &ids->strings[i]);
	return r;
}

static int merge_frames(struct profile *to, const struct frametab *from, struct profile_ids *ids)
{
	int r = 0;

	for (uint32_t i = (uint32_t)ids->done.frames; i < frametab_count(from) && !r; i++) {
		struct frame f = *frametab_get(from, i);

		f.name = ids->strings[f.name];
		f.file = ids->strings[f.file];
		r = frametab_intern(to->frames, &f, &ids->frames[i]);
	}
	return r;
}

static int merge_stacks(struct profile *to, const struct stacktab *from, struct profile_ids *ids)
{
	const struct stack_entry *entries = stacktab_entries(from);
	uint32_t count = stacktab_count(from);
	int r = 0;

	for (uint32_t i = first_new(ids->done.stacks); i < count && !r; i++) {
		const struct stack_entry *e = &entries[i];
		const struct stack_entry *next = count - i > PREFETCH ? e + PREFETCH : NULL;

		if (next && next->parent < i)
			stacktab_prefetch(to->stacks, ids->stacks[next->parent],
					  ids->frames[next->frame]);
		r = stacktab_intern(to->stacks, ids->stacks[e->parent], ids->frames[e->frame],
				    &ids->stacks[i]);
	}
	return r;
}

static int merge_labels(struct profile *to, const struct labeltab *from, struct profile_ids *ids)
{
	const struct label_entry *entries = labeltab_entries(from);
	int r = 0;

	for (uint32_t i = first_new(ids->done.labels); i < labeltab_count(from) && !r; i++)
		r = labeltab_add(to->labels, ids->labels[entries[i].parent],
				 ids->strings[entries[i].name], ids->strings[entries[i].value],
				 &ids->labels[i]);
	return r;
}

static int merge_kinds(struct profile *to, const struct profile *from, struct profile_ids *ids)
{
	int r = 0;

	for (size_t i = first_new(ids->done.kinds); i <= from->kinds.len && !r; i++) {
		struct sample_kind kind = from->kinds.items[i - 1];

		kind.name = ids->strings[kind.name];
		kind.event = ids->strings[kind.event];
		r = profile_add_kind(to, &kind, &ids->kinds[i]);
	}
	return r;
}

/* Where one runs may have become known only now. */
static int merge_processes(struct profile *to, const struct profile *from, struct profile_ids *ids)
{
	int r = 0;

	for (size_t i = 0; i < from->processes.len && !r; i++) {
		struct process process = from->processes.items[i];

		process.recording = ids->recordings[process.recording];
		process.name = ids->strings[process.name];
		process.command_line = ids->strings[process.command_line];
		process.python_version = ids->strings[process.python_version];
		process.implementation = ids->strings[process.implementation];
		process.executable = ids->strings[process.executable];
		process.container = ids->strings[process.container];
		process.pod_uid = ids->strings[process.pod_uid];
		process.pod_name = ids->strings[process.pod_name];
		process.pod_namespace = ids->strings[process.pod_namespace];
		if (i >= ids->done.processes)
			r = profile_add_process(to, &process, &ids->processes[i]);
		if (!r)
			process_set_place(&to->processes.items[ids->processes[i]], &process);
	}
	return r;
}

static int merge_threads(struct profile *to, const struct profile *from, struct profile_ids *ids)
{
	int r = 0;

	for (size_t i = ids->done.threads; i < from->threads.len && !r; i++) {
		struct thread t = from->threads.items[i];

		t.process = ids->processes[t.process];
		t.name = ids->strings[t.name];
		r = profile_add_thread(to, &t, &ids->threads[i]);
	}
	return r;
}

static int merge_sources(struct profile *to, const struct profile *from, struct profile_ids *ids)
{
	int r = 0;

	for (size_t i = ids->done.sources; i < from->sources.len && !r; i++) {
		struct source_version source = from->sources.items[i];

		source.recording = ids->recordings[source.recording];
		source.file = ids->strings[source.file];
		r = profile_add_source(to, &source);
	}
	return r;
}

static int merge_recordings(struct profile *to, const struct profile *from, struct profile_ids *ids)
{
	int r = 0;

	for (size_t i = ids->done.recordings; i < from->recordings.len && !r; i++) {
		const struct recording *recording = &from->recordings.items[i];
		uint32_t *id = &ids->recordings[i];

		r = profile_begin_recording(to, id);
		if (!r)
			r = recording_copy(&to->recordings.items[*id], recording);
		if (!r)
			r = recording_add_counters(&to->recordings.items[*id], recording);
	}
	return r;
}

static void note_done(const struct profile *from, struct profile_ids *ids)
{
	ids->done.recordings = from->recordings.len;
	ids->done.strings = strtab_count(from->strings);
	ids->done.frames = frametab_count(from->frames);
	ids->done.stacks = stacktab_count(from->stacks);
	ids->done.labels = labeltab_count(from->labels);
	ids->done.processes = from->processes.len;
	ids->done.threads = from->threads.len;
	ids->done.kinds = from->kinds.len + 1;
	ids->done.sources = from->sources.len;
}

int profile_merge(struct profile *to, const struct profile *from, struct profile_ids *ids)
{
	int r = make_room(from, ids);

	if (!r)
		r = merge_recordings(to, from, ids);
	if (!r)
		r = merge_strings(to, from->strings, ids);
	if (!r)
		r = merge_frames(to, from->frames, ids);
	if (!r)
		r = merge_stacks(to, from->stacks, ids);
	if (!r)
		r = merge_labels(to, from->labels, ids);
	if (!r)
		r = merge_kinds(to, from, ids);
	if (!r)
		r = merge_processes(to, from, ids);
	if (!r)
		r = merge_threads(to, from, ids);
	if (!r)
		r = merge_sources(to, from, ids);
	if (!r)
		note_done(from, ids);
	return r;
}
