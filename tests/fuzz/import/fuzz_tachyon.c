/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The bytes are a file of CPython's profiling.sampling. It is read as one whatever it looks like,
 * the size its end says made right, so that changes of its length are not all that is seen; samples
 * are dropped batch by batch. Whatever was read must be a sound profile.
 */
#include <stdint.h>
#include <stdlib.h>
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

		require(f->name < strings && f->file < strings && f->line <= INT32_MAX);
		require(f->kind == FRAME_PYTHON || (f->kind == FRAME_MARKER && !f->file));
	}
	for (uint32_t i = 1; i < stacktab_count(p->stacks); i++)
		require(entries[i].parent < i && entries[i].frame < frames);
	for (size_t i = 0; i < p->threads.len; i++)
		require(p->threads.items[i].process < p->processes.len &&
			p->threads.items[i].name < strings);
}

static void check_samples(const struct profile *p)
{
	require(p->samples.len <= IMPORT_BATCH_SAMPLES);
	for (size_t i = 0; i < p->samples.len; i++) {
		const struct sample *s = &p->samples.items[i];

		require(s->thread < p->threads.len && s->stack < stacktab_count(p->stacks));
		require(s->stack && s->value == 1 && s->time_ns <= INT64_MAX);
	}
}

static void read_batches(void *reader, struct profile *p, struct import_facts *facts)
{
	int r;

	do {
		r = importer_tachyon.next(reader, p, facts);
		check_samples(p);
		profile_clear_samples(p);
	} while (r > 0);
	check_tables(p);
}

/* u64 at 24 bytes before the end, in the byte order the first byte tells. */
static void correct_size(int fd, const uint8_t *bytes, size_t len)
{
	uint8_t size[8];

	if (len < 96)
		return;
	for (size_t i = 0; i < sizeof(size); i++)
		size[bytes[0] == 'T' ? 7 - i : i] = (uint8_t)(len >> 8 * i);
	require(pwrite(fd, size, sizeof(size), (off_t)len - 24) == sizeof(size));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	_cleanup_(closep) int fd = memfd_create("tachyon", MFD_CLOEXEC);
	_cleanup_(profile_freep) struct profile *p = NULL;
	_cleanup_(content_freep) struct content *content = NULL;
	struct import_facts facts = { 0 };
	void *reader = NULL;

	require(fd >= 0 && file_write(fd, bytes, len) == 0);
	correct_size(fd, bytes, len);
	require(profile_new(&p) == 0);
	if (len)
		importer_tachyon.sniff((const char *)bytes, len);
	require(content_open(fd, &content) == 0);
	if (importer_tachyon.open(content, &facts, &reader) == 0) {
		require(facts.recording.source && facts.recording.interval_ns <= INT64_MAX);
		read_batches(reader, p, &facts);
		importer_tachyon.free(reader);
	}
	recording_release(&facts.recording);
	return 0;
}
