/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The bytes are a recording. It is read as it is, then once more with every checksum put right:
 * only so do changes get past them to the decoders. Whatever was read must be a sound profile.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/varint.h"
#include "profile/calltree.h"
#include "store/checksum.h"
#include "store/format.h"
#include "store/reader.h"

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

	for (uint32_t i = 0; i < strings; i++)
		require(strtab_get(p->strings, i)[strtab_len(p->strings, i)] == '\0');
	for (uint32_t i = 0; i < frames; i++) {
		const struct frame *f = frametab_get(p->frames, i);

		require(f->name < strings && f->file < strings && f->kind < FRAME_TYPE_COUNT);
	}
	for (uint32_t i = 1; i < stacktab_count(p->stacks); i++)
		require(entries[i].parent < i && entries[i].frame < frames);
	for (size_t i = 0; i < p->processes.len; i++)
		require(p->processes.items[i].name < strings &&
			p->processes.items[i].command_line < strings &&
			p->processes.items[i].executable < strings &&
			p->processes.items[i].container < strings &&
			p->processes.items[i].pod_uid < strings &&
			p->processes.items[i].pod_name < strings &&
			p->processes.items[i].pod_namespace < strings);
	for (size_t i = 0; i < p->threads.len; i++)
		require(p->threads.items[i].process < p->processes.len &&
			p->threads.items[i].name < strings);
}

static void check_samples(const struct profile *p)
{
	for (size_t i = 0; i < p->samples.len; i++) {
		const struct sample *s = &p->samples.items[i];

		require(s->thread < p->threads.len && s->stack < stacktab_count(p->stacks));
		require(s->value >= 1 && s->time_ns <= INT64_MAX);
		require(s->opcode < strtab_count(p->strings));
		require(s->kind <= p->kinds.len && s->labels < labeltab_count(p->labels));
		require(s->kind != KIND_TICKS || s->value <= UINT32_MAX);
	}
}

static void read_recording(const uint8_t *bytes, size_t len)
{
	_cleanup_(cube_release) struct cube cube = { 0 };
	_cleanup_(calltree_freep) struct calltree *tree = NULL;
	_cleanup_(profile_freep) struct profile *p = NULL;
	_cleanup_(reader_freep) struct reader *r = NULL;
	_cleanup_(closep) int fd = memfd_create("recording", MFD_CLOEXEC);
	struct reader_chunk *chunks = NULL;
	char path[64];
	size_t count;

	require(fd >= 0 && file_write(fd, bytes, len) == 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (reader_open(path, &r) < 0)
		return;
	if (!reader_index(r, &chunks, &count))
		free(chunks);
	require(profile_new(&p) == 0);
	while (reader_next(r, p) > 0) {
		check_samples(p);
		require(cube_add(&cube, p) == 0);
		profile_clear_samples(p);
	}
	check_samples(p);
	check_tables(p);
	require(calltree_new(p, &cube, KIND_TICKS, CALLTREE_BY_FUNCTION, &tree) == 0);
	require(tree->nodes[0].end == tree->node_count);
}

/* Chunk by chunk as far as lengths lead. */
static void repair_checksums(uint8_t *bytes, size_t len)
{
	size_t at = sizeof(struct format_header);

	while (at + sizeof(struct chunk_head) < len) {
		const uint8_t *p = bytes + at + sizeof(struct chunk_head), *end = bytes + len;
		uint64_t content;

		if (varint_get_max(&p, end, len, &content) < 0 || content > (size_t)(end - p))
			return;
		put_le32(bytes + at,
			 crc32c(bytes + at + 4, (size_t)(p - bytes) + content - at - 4));
		at = (size_t)(p - bytes) + content;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	uint8_t *copy = malloc(len + 1);

	require(copy != NULL);
	memcpy(copy, bytes, len);
	read_recording(copy, len);
	if (len >= sizeof(struct format_header))
		memcpy(copy, FORMAT_MAGIC "\2\0", 10);
	repair_checksums(copy, len);
	read_recording(copy, len);
	free(copy);
	return 0;
}
