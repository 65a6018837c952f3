/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/file.h"
#include "base/varint.h"
#include "store/checksum.h"
#include "store/decode.h"
#include "store/format.h"
#include "store/titles.h"

#define WINDOW_BYTES (256u << 10) /* one read() fetches many small chunks */
#define HEAD_MAX (sizeof(struct chunk_head) + VARINT_MAX_BYTES)

struct reader {
	int fd;
	char *path;
	uint64_t size; /* when it was opened */
	uint64_t offset;
	struct bytes window;
	uint64_t window_offset;
	struct decoder decoder;
	struct titles titles;
	struct recording meta;
	uint64_t index_offset;   /* 0: no index */
	uint64_t chunks;         /* read so far, without index and end */
	uint32_t further;        /* recordings behind the first one */
	uint64_t samples_before; /* of earlier recordings in the file */
	bool has_joined;         /* a profile, the recording that is being read */
	bool is_truncated;
	bool may_have_titles;
};

/* A chunk in memory; valid until the next one is read. */
struct chunk {
	uint8_t type;
	const uint8_t *content;
	size_t len;
	uint64_t end; /* offset behind it */
};

void reader_free(struct reader *r)
{
	if (!r)
		return;
	closep(&r->fd);
	free(r->path);
	vec_release(&r->window);
	decoder_release(&r->decoder);
	titles_release(&r->titles);
	recording_release(&r->meta);
	free(r);
}

const struct recording *reader_recording(const struct reader *r)
{
	return &r->meta;
}

uint32_t reader_recording_index(const struct reader *r)
{
	return r->decoder.recording;
}

bool reader_is_truncated(const struct reader *r, uint64_t *offset)
{
	if (offset)
		*offset = r->offset;
	return r->is_truncated;
}

static int damaged(const struct reader *r, uint64_t offset, const char *what)
{
	return err_set(-EBADMSG, "%s: damaged at byte %llu: %s", r->path,
		       (unsigned long long)offset, what);
}

/* len bytes at offset, which must lie within r->size. Valid until the next call. */
static int fetch(struct reader *r, uint64_t offset, size_t len, const uint8_t **bytes)
{
	size_t want = len > WINDOW_BYTES ? len : WINDOW_BYTES;
	ssize_t n;

	if (offset < r->window_offset || offset - r->window_offset > r->window.len ||
	    len > r->window.len - (offset - r->window_offset)) {
		r->window.len = 0;
		if (vec_reserve(&r->window, want) < 0)
			return -ENOMEM;
		n = file_pread(r->fd, r->window.items, want, offset);
		if (n < 0)
			return err_set((int)n, "%s: %s", r->path, strerror((int)-n));
		if ((size_t)n < len)
			return err_set(-EIO, "%s: truncated by another program while being read",
				       r->path);
		r->window.len = (size_t)n;
		r->window_offset = offset;
	}
	*bytes = r->window.items + (offset - r->window_offset);
	return 0;
}

/*
 * Reads the chunk at offset. 1; 0: the file ends inside it; -EBADMSG with text; -ENOMEM, -EIO.
 */
static int read_chunk(struct reader *r, uint64_t offset, struct chunk *chunk)
{
	uint64_t left = r->size - offset, stored;
	size_t head = left < HEAD_MAX ? left : HEAD_MAX;
	const uint8_t *bytes, *p;
	int n;

	if (left <= sizeof(struct chunk_head))
		return 0;
	n = fetch(r, offset, head, &bytes);
	if (n < 0)
		return n;
	p = bytes + sizeof(struct chunk_head);
	if (varint_get(&p, bytes + head, &stored) < 0)
		return head < HEAD_MAX ? 0 : damaged(r, offset, "no length");
	if (stored > CHUNK_CONTENT_MAX)
		return damaged(r, offset, "impossible length");
	head = (size_t)(p - bytes);
	if (stored > left - head)
		return 0;
	n = fetch(r, offset, head + stored, &bytes);
	if (n < 0)
		return n;
	if (get_le32(bytes) != crc32c(bytes + 4, head + stored - 4))
		return damaged(r, offset, "wrong checksum");
	chunk->type = bytes[4];
	chunk->content = bytes + head;
	chunk->len = stored;
	chunk->end = offset + head + stored;
	return 1;
}

/* What a file system may leave behind a power cut: length without content. */
static bool is_zero_to_the_end(struct reader *r)
{
	for (uint64_t offset = r->offset; offset < r->size;) {
		uint64_t left = r->size - offset;
		size_t len = left < WINDOW_BYTES ? left : WINDOW_BYTES;
		const uint8_t *bytes;

		if (fetch(r, offset, len, &bytes) < 0)
			return false;
		for (size_t i = 0; i < len; i++)
			if (bytes[i])
				return false;
		offset += len;
	}
	return true;
}

/* The next chunk: as read_chunk(), but 0 only where the file may end there. */
static int next_chunk(struct reader *r, struct chunk *chunk)
{
	int n = read_chunk(r, r->offset, chunk);

	if (n == 0 && r->index_offset)
		return damaged(r, r->offset, "wrong length");
	if (n == -EBADMSG && !r->index_offset && is_zero_to_the_end(r)) {
		err_clear(); /* a tail that never reached the disk, not a wrong one */
		return 0;
	}
	return n;
}

/* Sets index_offset if the file ends in a proper end chunk. */
static int find_index(struct reader *r)
{
	const uint64_t first = sizeof(struct format_header);
	struct chunk end = { 0 };
	uint64_t offset;
	int n;

	if (r->size < first + CHUNK_END_BYTES)
		return 0;
	n = read_chunk(r, r->size - CHUNK_END_BYTES, &end);
	if (n == -EBADMSG) {
		err_clear(); /* no end chunk: an unfinished file */
		return 0;
	}
	if (n <= 0 || end.type != CHUNK_END || end.len != 8 || end.end != r->size)
		return n < 0 ? n : 0;
	offset = get_le64(end.content);
	if (offset < first || offset > r->size - CHUNK_END_BYTES)
		return damaged(r, r->size - CHUNK_END_BYTES, "no index where it should be");
	r->index_offset = offset;
	return 0;
}

static int check_header(struct reader *r)
{
	const struct format_header *header;
	const uint8_t *bytes;
	unsigned int major, minor;
	int n;

	if (r->size == 0)
		return err_set(-ENODATA, "%s: empty file", r->path);
	if (r->size < sizeof(*header))
		return err_set(-EBADMSG, "%s: not a pyebpf recording", r->path);
	n = fetch(r, 0, sizeof(*header), &bytes);
	if (n < 0)
		return n;
	header = (const struct format_header *)bytes;
	major = header->major[0] | (unsigned int)header->major[1] << 8;
	minor = header->minor[0] | (unsigned int)header->minor[1] << 8;
	if (memcmp(header->magic, FORMAT_MAGIC, sizeof(header->magic)))
		return err_set(-EBADMSG, "%s: not a pyebpf recording", r->path);
	if (major > FORMAT_MAJOR)
		return err_set(
			-EPROTONOSUPPORT,
			"%s: written by a newer pyebpf (format %u.%u); this one reads up to %d.x",
			r->path, major, minor, FORMAT_MAJOR);
	if (major && major < FORMAT_MAJOR)
		return err_set(-EPROTONOSUPPORT,
			       "%s: written by a development version of pyebpf (format %u.%u), "
			       "which is not supported: record it again",
			       r->path, major, minor);
	if (major < FORMAT_MAJOR)
		return damaged(r, 8, "no such format version");
	r->offset = sizeof(*header);
	r->may_have_titles = minor >= FORMAT_MINOR_TITLES;
	return 0;
}

/* What a recording is stands in front of it; its samples need its interval. */
static int begin_recording(struct reader *r, const struct chunk *chunk)
{
	int n;

	recording_release(&r->meta);
	n = decode_metadata(chunk->content, chunk->len, &r->meta);
	if (n < 0)
		return n;
	r->samples_before = r->decoder.samples;
	r->decoder.last_ns = 0;
	r->decoder.ordinal = r->further;
	r->has_joined = false;
	return decoder_restart(&r->decoder,
			       r->meta.interval_ns <= INTERVAL_MAX_NS ? r->meta.interval_ns : 0);
}

static int read_first_metadata(struct reader *r)
{
	struct chunk chunk = { 0 };
	int n = next_chunk(r, &chunk);

	if (n == 0)
		return err_set(-EBADMSG, "%s: cut off before its first sample", r->path);
	if (n < 0)
		return n;
	if (chunk.type != CHUNK_METADATA)
		return damaged(r, r->offset, "no metadata in front");
	n = begin_recording(r, &chunk);
	if (n < 0)
		return err_wrap(n, "%s", r->path);
	r->offset = chunk.end;
	r->chunks = 1;
	return 0;
}

/* Adds the titles of the chunk at offset. 1; 0: no chunk is there, or the last one; else as
 * read_chunk(). */
static int read_titles_at(struct reader *r, uint64_t *offset, uint32_t *recording)
{
	struct chunk chunk = { 0 };
	int n = read_chunk(r, *offset, &chunk), added = 0;

	if (n <= 0)
		return n;
	*offset = chunk.end;
	*recording += chunk.type == CHUNK_RECORDING;
	if (chunk.type == CHUNK_TITLES)
		added = titles_add(&r->titles, *recording, chunk.content, chunk.len);
	return added < 0 ? added : chunk.type != CHUNK_INDEX && chunk.type != CHUNK_END;
}

static int read_titles_by_index(struct reader *r)
{
	_cleanup_(freep) struct reader_chunk *chunks = NULL;
	uint32_t recording = 0;
	size_t count = 0;
	int n = reader_index(r, &chunks, &count);

	for (size_t i = 0; i < count && n >= 0; i++)
		if (chunks[i].type == CHUNK_TITLES || chunks[i].type == CHUNK_RECORDING)
			n = read_titles_at(r, &chunks[i].offset, &recording);
	return n;
}

/*
 * Titles stand behind the samples of their processes, and are read in front of them. What is
 * damaged is told of when its turn comes. 0, -ENOMEM, -EIO.
 */
static int read_titles(struct reader *r)
{
	uint64_t offset = r->offset;
	uint32_t recording = 0;
	int n = 1;

	if (!r->may_have_titles)
		return 0;
	if (r->index_offset)
		n = read_titles_by_index(r);
	else
		while (n > 0)
			n = read_titles_at(r, &offset, &recording);
	if (n == -EBADMSG)
		err_clear();
	return n == -EBADMSG || n > 0 ? 0 : n;
}

int reader_open(const char *path, struct reader **out)
{
	_cleanup_(reader_freep) struct reader *r = calloc(1, sizeof(*r));
	struct stat st;
	int n;

	if (!r)
		return -ENOMEM;
	r->fd = -1;
	r->decoder.titles = &r->titles;
	r->path = strdup(path);
	if (!r->path)
		return -ENOMEM;
	r->fd = file_open_regular(path, &st);
	if (r->fd < 0)
		return r->fd;
	r->size = (uint64_t)st.st_size;
	n = check_header(r);
	if (!n)
		n = find_index(r);
	if (!n)
		n = read_first_metadata(r);
	if (!n)
		n = read_titles(r);
	if (n < 0)
		return n;
	*out = take_ptr(r);
	return 0;
}

/* What is known of the recording so far becomes p's. */
static int join_recording(struct reader *r, struct profile *p)
{
	bool has_samples = r->decoder.samples > r->samples_before;
	uint64_t seen_ns = has_samples ? r->decoder.last_ns + r->meta.interval_ns : 0;
	struct recording *joined;
	int n = r->has_joined ? 0 : profile_begin_recording(p, &r->decoder.recording);

	if (n < 0)
		return n;
	r->has_joined = true;
	joined = &p->recordings.items[r->decoder.recording];
	if (recording_copy(joined, &r->meta) < 0)
		return -ENOMEM;
	if (!joined->has_ended && seen_ns > joined->duration_ns)
		joined->duration_ns = seen_ns;
	return 0;
}

/* Behind the last chunk: does the index agree with what was read? */
static int check_totals(struct reader *r, const struct chunk *index)
{
	const uint8_t *p = index->content, *end = p + index->len;
	uint64_t samples, chunks;

	if (r->offset != r->index_offset)
		return damaged(r, r->offset, "an index in the middle");
	if (varint_get(&p, end, &samples) < 0 || varint_get(&p, end, &chunks) < 0 ||
	    samples != r->decoder.samples || chunks != r->chunks)
		return damaged(r, r->offset, "the index tells of other chunks");
	return 0;
}

static int take_chunk(struct reader *r, const struct chunk *chunk, struct profile *p)
{
	int n;

	switch (chunk->type) {
	case CHUNK_METADATA:
		n = decode_metadata(chunk->content, chunk->len, &r->meta);
		return n < 0 ? n : join_recording(r, p);
	case CHUNK_FLUSH:
		r->decoder.budget = model_budget(chunk->end);
		return decode_flush(&r->decoder, chunk->content, chunk->len, p);
	case CHUNK_RECORDING:
		if (++r->further >= RECORDINGS_MAX)
			return err_set(-EBADMSG, "more than %u recordings", RECORDINGS_MAX);
		n = join_recording(r, p); /* until here */
		if (!n)
			n = begin_recording(r, chunk);
		return n < 0 ? n : join_recording(r, p);
	case CHUNK_TITLES:
		n = titles_check(chunk->content, chunk->len);
		return n < 0 ? err_set(n, "malformed titles") : 0;
	case CHUNK_SEGMENT:
		return decoder_restart(&r->decoder, r->decoder.model.interval_ns);
	default:
		return 0; /* of a later minor version */
	}
}

/* Nothing more comes. */
static int finish(struct reader *r, struct profile *p)
{
	r->is_truncated = !r->index_offset;
	return r->is_truncated ? join_recording(r, p) : 0;
}

int reader_next(struct reader *r, struct profile *p)
{
	struct chunk chunk = { 0 };
	int n;

	if (!r->has_joined) {
		n = join_recording(r, p);
		if (n < 0)
			return n;
	}
	if (r->offset == r->size)
		return finish(r, p);
	n = next_chunk(r, &chunk);
	if (n < 0)
		return n;
	if (n == 0)
		return finish(r, p);
	if (chunk.type == CHUNK_INDEX || chunk.type == CHUNK_END) {
		if (!r->index_offset)
			return finish(r, p); /* cut off within the index: all chunks were read */
		n = check_totals(r, &chunk);
		return n < 0 ? n : finish(r, p);
	}
	n = take_chunk(r, &chunk, p);
	if (n < 0)
		return err_wrap(n, "%s: at byte %llu", r->path, (unsigned long long)r->offset);
	r->offset = chunk.end;
	r->chunks++;
	return 1;
}

/* Columns behind the totals: type, bytes, samples, first time, span. */
int reader_index(struct reader *r, struct reader_chunk **out, size_t *count)
{
	_cleanup_(freep) struct reader_chunk *chunks = NULL;
	_cleanup_(freep) uint64_t *column = NULL;
	struct chunk index = { 0 };
	uint64_t samples, rows, rows_max, offset = sizeof(struct format_header), first = 0;
	const uint8_t *p, *end;
	int n;

	if (!r->index_offset)
		return -ENOENT;
	n = read_chunk(r, r->index_offset, &index);
	if (n < 0)
		return n;
	if (n == 0 || index.type != CHUNK_INDEX)
		return damaged(r, r->index_offset, "no index where it should be");
	p = index.content;
	end = p + index.len;
	/* As many chunks as there is room for: an index cannot make up others. */
	rows_max = (r->index_offset - sizeof(struct format_header)) / CHUNK_BYTES_MIN;
	if (rows_max > INDEX_ROWS_MAX)
		rows_max = INDEX_ROWS_MAX;
	if (varint_get(&p, end, &samples) < 0 || varint_get_max(&p, end, rows_max, &rows) < 0)
		return damaged(r, r->index_offset, "no index where it should be");
	chunks = calloc(rows + 1, sizeof(*chunks));
	column = calloc(5 * rows + 1, sizeof(*column));
	if (!chunks || !column)
		return -ENOMEM;
	n = 0;
	for (size_t i = 0; i < 5 && !n; i++)
		n = column_decode(&r->decoder.coder, &p, end, UINT64_MAX, column + i * rows, rows);
	if (n < 0)
		return n == -EBADMSG ? damaged(r, r->index_offset, "malformed index") : n;
	for (size_t i = 0; i < rows; i++) {
		struct reader_chunk *c = &chunks[i];

		first += (uint64_t)zigzag_decode(column[3 * rows + i]);
		c->type = (uint8_t)column[i];
		c->offset = offset;
		c->bytes = column[rows + i];
		c->samples = column[2 * rows + i];
		c->first_ns = first * TIME_UNIT_NS;
		c->last_ns = (first + column[4 * rows + i]) * TIME_UNIT_NS;
		if (c->bytes > r->index_offset - offset)
			return damaged(r, r->index_offset, "the index points beyond the chunks");
		offset += c->bytes;
	}
	*out = take_ptr(chunks);
	*count = rows;
	return 0;
}

int profile_load(const char *path, struct profile *p)
{
	_cleanup_(reader_freep) struct reader *r = NULL;
	int n;

	n = reader_open(path, &r);
	if (n < 0)
		return n;
	do {
		n = reader_next(r, p);
	} while (n > 0);
	return n < 0 ? n : reader_is_truncated(r, NULL);
}
