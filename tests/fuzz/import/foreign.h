/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_FUZZ_IMPORT_FOREIGN_H
#define TESTS_FUZZ_IMPORT_FOREIGN_H

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "import/import.h"

/*
 * The bytes are a file of one format, which is read whatever it looks like; samples are dropped
 * batch by batch. Whatever was read must be a sound profile.
 */
static inline void require(int fact)
{
	if (!fact)
		abort();
}

static inline void check_tables(const struct profile *p)
{
	const struct stack_entry *entries = stacktab_entries(p->stacks);
	uint32_t strings = strtab_count(p->strings), frames = frametab_count(p->frames);

	for (uint32_t i = 0; i < frames; i++) {
		const struct frame *f = frametab_get(p->frames, i);

		require(f->name < strings && f->file < strings && f->kind < FRAME_TYPE_COUNT);
		require(frame_has_place(f->kind) || (!f->file && !f->line));
	}
	for (uint32_t i = 1; i < stacktab_count(p->stacks); i++)
		require(entries[i].parent < i && entries[i].frame < frames);
	for (size_t i = 0; i < p->kinds.len; i++)
		require(p->kinds.items[i].name < strings && p->kinds.items[i].event < strings &&
			p->kinds.items[i].period == 1 && p->kinds.items[i].unit <= UNIT_COUNT);
	for (size_t i = 0; i < p->processes.len; i++)
		require(p->processes.items[i].name < strings &&
			p->processes.items[i].recording < p->recordings.len);
	for (size_t i = 0; i < p->threads.len; i++)
		require(p->threads.items[i].process < p->processes.len &&
			p->threads.items[i].name < strings);
}

/* *sums: by kind; of ticks less than doubles can tell apart, of units what a number can hold. */
static inline void check_samples(const struct profile *p, uint64_t sums[KINDS_MAX + 1])
{
	for (size_t i = 0; i < p->samples.len; i++) {
		const struct sample *s = &p->samples.items[i];

		require(s->thread < p->threads.len && s->stack < stacktab_count(p->stacks));
		require(s->labels < labeltab_count(p->labels) && s->kind <= p->kinds.len);
		require(s->value >= 1 && s->time_ns <= INT64_MAX &&
			s->duration_ns <= INT64_MAX - s->time_ns);
		require(s->kind || s->value <= UINT32_MAX);
		sums[s->kind] += s->value;
		require(sums[s->kind] <= (s->kind ? INT64_MAX : UINT64_C(1) << 53));
	}
}

static inline void read_batches(const struct importer *importer, void *reader, struct profile *p,
				struct import_facts *facts)
{
	static uint64_t sums[KINDS_MAX + 1];
	int r;

	for (size_t i = 0; i <= KINDS_MAX; i++)
		sums[i] = 0;
	do {
		r = importer->next(reader, p, facts);
		check_samples(p, sums);
		profile_clear_samples(p);
	} while (r > 0);
	check_tables(p);
}

static inline void read_foreign(const struct importer *importer, const uint8_t *bytes, size_t len)
{
	_cleanup_(closep) int fd = memfd_create("foreign", MFD_CLOEXEC);
	_cleanup_(profile_freep) struct profile *p = NULL;
	_cleanup_(content_freep) struct content *content = NULL;
	struct import_facts facts = { 0 };
	void *reader = NULL;

	require(fd >= 0 && file_write(fd, bytes, len) == 0);
	require(profile_new(&p) == 0);
	if (len)
		importer->sniff((const char *)bytes, len);
	require(content_open(fd, &content) == 0);
	if (importer->open(content, &facts, &reader) == 0) {
		require(facts.recording.source != NULL);
		read_batches(importer, reader, p, &facts);
		importer->free(reader);
	}
	recording_release(&facts.recording);
}

#endif
