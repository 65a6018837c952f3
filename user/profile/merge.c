/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "profile/merge.h"

#include <errno.h>
#include <stdlib.h>

#define PREFETCH 16 /* stacks ahead */

void profile_ids_release(struct profile_ids *ids)
{
	free(ids->recordings);
	free(ids->strings);
	free(ids->frames);
	free(ids->stacks);
	free(ids->processes);
	free(ids->threads);
	free(ids->labels);
	free(ids->kinds);
}

static int allocate(const struct profile *from, struct profile_ids *ids)
{
	ids->recordings = calloc(from->recordings.len, sizeof(uint32_t));
	ids->strings = calloc(strtab_count(from->strings), sizeof(uint32_t));
	ids->frames = calloc(frametab_count(from->frames) + 1, sizeof(uint32_t));
	ids->stacks = calloc(stacktab_count(from->stacks), sizeof(uint32_t));
	ids->processes = calloc(from->processes.len + 1, sizeof(uint32_t));
	ids->threads = calloc(from->threads.len + 1, sizeof(uint32_t));
	ids->labels = calloc(labeltab_count(from->labels), sizeof(uint32_t));
	ids->kinds = calloc(from->kinds.len + 1, sizeof(uint16_t));
	return ids->recordings && ids->labels && ids->kinds && ids->strings && ids->frames &&
			       ids->stacks && ids->processes && ids->threads
		       ? 0
		       : -ENOMEM;
}

static int merge_strings(struct profile *to, const struct strtab *from, uint32_t *ids)
{
	int r = 0;

	for (uint32_t i = 1; i < strtab_count(from) && !r; i++)
		r = strtab_intern(to->strings, strtab_get(from, i), strtab_len(from, i), &ids[i]);
	return r;
}

static int merge_frames(struct profile *to, const struct frametab *from, struct profile_ids *ids)
{
	int r = 0;

	for (uint32_t i = 0; i < frametab_count(from) && !r; i++) {
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

	for (uint32_t i = 1; i < count && !r; i++) {
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

	for (uint32_t i = 1; i < labeltab_count(from) && !r; i++)
		r = labeltab_add(to->labels, ids->labels[entries[i].parent],
				 ids->strings[entries[i].name], ids->strings[entries[i].value],
				 &ids->labels[i]);
	return r;
}

static int merge_kinds(struct profile *to, const struct profile *from, struct profile_ids *ids)
{
	int r = 0;

	for (size_t i = 0; i < from->kinds.len && !r; i++) {
		struct sample_kind kind = from->kinds.items[i];

		kind.name = ids->strings[kind.name];
		kind.event = ids->strings[kind.event];
		r = profile_add_kind(to, &kind, &ids->kinds[i + 1]);
	}
	return r;
}

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
		r = profile_add_process(to, &process, &ids->processes[i]);
		if (!r)
			process_set_place(&to->processes.items[ids->processes[i]], &process);
	}
	return r;
}

static int merge_threads(struct profile *to, const struct profile *from, struct profile_ids *ids)
{
	int r = 0;

	for (size_t i = 0; i < from->threads.len && !r; i++) {
		struct thread t = from->threads.items[i];

		t.process = ids->processes[t.process];
		t.name = ids->strings[t.name];
		r = profile_add_thread(to, &t, &ids->threads[i]);
	}
	return r;
}

static int merge_recordings(struct profile *to, const struct profile *from, uint32_t *ids)
{
	int r = 0;

	for (size_t i = 0; i < from->recordings.len && !r; i++) {
		const struct recording *recording = &from->recordings.items[i];

		r = profile_begin_recording(to, &ids[i]);
		if (!r)
			r = recording_copy(&to->recordings.items[ids[i]], recording);
		if (!r)
			r = recording_add_counters(&to->recordings.items[ids[i]], recording);
	}
	return r;
}

int profile_merge(struct profile *to, const struct profile *from, struct profile_ids *ids)
{
	int r = allocate(from, ids);

	if (!r)
		r = merge_recordings(to, from, ids->recordings);
	if (!r)
		r = merge_strings(to, from->strings, ids->strings);
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
	return r;
}
