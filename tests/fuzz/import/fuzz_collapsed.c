/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The bytes are a text file. It is recognised as any importer may, then read as collapsed stacks
 * whatever it looks like. Whatever was read must be a sound profile.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void require(int fact)
{
	if (!fact)
		abort();
}

static void check_tables(const struct profile *p)
{
	const struct stack_entry *entries = stacktab_entries(p->stacks);
	uint32_t strings = strtab_count(p->strings), frames = frametab_count(p->frames);

	for (uint32_t i = 0; i < frames; i++) {
		const struct frame *f = frametab_get(p->frames, i);

		require(f->name < strings && f->file < strings);
		require(f->kind == FRAME_PYTHON || f->kind == FRAME_MARKER);
	}
	for (uint32_t i = 1; i < stacktab_count(p->stacks); i++)
		require(entries[i].parent < i && entries[i].frame < frames);
	for (size_t i = 0; i < p->processes.len; i++)
		require(p->processes.items[i].name < strings);
	for (size_t i = 0; i < p->threads.len; i++)
		require(p->threads.items[i].process < p->processes.len &&
			p->threads.items[i].name < strings);
}

static void check_samples(const struct profile *p)
{
	uint64_t ticks = 0;

	for (size_t i = 0; i < p->samples.len; i++) {
		const struct sample *s = &p->samples.items[i];

		require(s->thread < p->threads.len && s->stack < stacktab_count(p->stacks));
		require(s->value >= 1);
		ticks += s->value;
	}
	require(ticks <= UINT64_C(1) << 53);
}

/* Through the importer itself, whatever it would recognise. */
static int read_text(int fd, struct profile *p)
{
	_cleanup_(content_freep) struct content *content = NULL;
	struct import_facts facts = { 0 };
	void *reader = NULL;
	int r;

	require(content_open(fd, &content) == 0);
	r = importer_collapsed.open(content, &facts, &reader);

	while (!r && (r = importer_collapsed.next(reader, p, &facts)) > 0)
		r = 0;
	check_tables(p);
	check_samples(p);
	require(facts.recording.work >= 0);
	if (reader)
		importer_collapsed.free(reader);
	recording_release(&facts.recording);
	return r;
}

/* 0: not recognised, or taken for another format, which may refuse it. */
static int read_file(int fd, struct profile *p)
{
	_cleanup_(import_freep) struct import *i = NULL;
	char path[64];
	int r;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = import_open(path, (struct import_choice){ 0 }, &i);
	if (r <= 0 || strcmp(import_format(i), "collapsed"))
		return 0;
	do {
		r = import_next(i, p);
	} while (r > 0);
	return r < 0 ? r : 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	_cleanup_(closep) int fd = memfd_create("text", MFD_CLOEXEC);
	_cleanup_(profile_freep) struct profile *p = NULL, *recognised = NULL;
	int read, r;

	require(fd >= 0 && file_write(fd, bytes, len) == 0);
	require(profile_new(&p) == 0 && profile_new(&recognised) == 0);
	read = read_text(fd, p);
	r = read_file(fd, recognised);
	if (r) {
		require((r < 0) == (read < 0));
		require(recognised->samples.len == p->samples.len);
	}
	return 0;
}
