/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/writer.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/file.h"
#include "base/partial.h"
#include "base/varint.h"
#include "store/checksum.h"
#include "store/encode.h"
#include "store/format.h"
#include "store/titles.h"

/* One row of the index. */
struct chunk {
	uint64_t bytes;
	struct chunk_summary summary;
	uint8_t type;
};

struct writer {
	int fd;     /* -1: nothing is written yet, since there is an old file: */
	int old_fd; /* that one, locked, until there are samples; else -1 */
	char *path;
	bool is_stream;     /* a pipe or device: what went out cannot be taken back */
	bool is_made;       /* the file was not there before */
	bool has_samples;   /* were written */
	bool needs_segment; /* the encoder is ahead of the file: start over */
	int error;          /* 0, or why a stream has half a chunk in it */
	uint64_t size;
	uint64_t interval_ns;
	enum grid grid;
	uint32_t further; /* recordings behind the first one */
	struct encoder encoder;
	struct bytes head; /* the file's first bytes */
	struct bytes content;
	struct bytes stored;
	VEC(struct chunk) chunks;
};

void writer_free(struct writer *w)
{
	if (!w)
		return;
	closep(&w->fd);
	closep(&w->old_fd);
	free(w->path);
	encoder_release(&w->encoder);
	vec_release(&w->head);
	vec_release(&w->content);
	vec_release(&w->stored);
	vec_release(&w->chunks);
	free(w);
}

uint64_t writer_size(const struct writer *w)
{
	return w->size;
}

size_t writer_bytes(const struct writer *w)
{
	return sizeof(*w) + encoder_bytes(&w->encoder) + w->content.cap + w->stored.cap +
	       w->chunks.cap * sizeof(*w->chunks.items);
}

/* Appends w->content as a chunk to w->stored. */
static int chunk_append(struct writer *w, enum chunk_type type)
{
	size_t len = w->content.len, start = w->stored.len;
	struct bytes *out = &w->stored;

	assert(len <= CHUNK_CONTENT_MAX);
	if (vec_reserve(out, sizeof(struct chunk_head)) < 0)
		return -ENOMEM;
	out->len += sizeof(struct chunk_head);
	if (bytes_put_varint(out, len) < 0 || vec_append(out, w->content.items, len) < 0)
		return -ENOMEM;
	out->items[start + 4] = (uint8_t)type;
	put_le32(out->items + start, crc32c(out->items + start + 4, out->len - start - 4));
	return 0;
}

/* The chunk is on its way: note it for the index. */
static int chunk_add(struct writer *w, enum chunk_type type, const struct chunk_summary *summary)
{
	struct chunk chunk = { .type = (uint8_t)type };
	size_t before = w->stored.len;

	if (summary)
		chunk.summary = *summary;
	if (chunk_append(w, type) < 0)
		return -ENOMEM;
	chunk.bytes = w->stored.len - before;
	return vec_push(&w->chunks, chunk);
}

/* Puts w->stored into the file, all or nothing. */
static int stored_write(struct writer *w)
{
	int r = w->error ?: file_write(w->fd, w->stored.items, w->stored.len);

	if (r < 0) {
		/* Where even this fails the reader stops at the half chunk: its checksum is wrong.
		 */
		if (w->is_stream || ftruncate(w->fd, (off_t)w->size) < 0 ||
		    lseek(w->fd, (off_t)w->size, SEEK_SET) < 0)
			w->error = r;
		return err_set(r, "write %s: %s", w->path, strerror(-r));
	}
	w->size += w->stored.len;
	return 0;
}

/* Nobody else may write to it as long as we have it open. */
static int lock(int fd, const char *path)
{
	if (!flock(fd, LOCK_EX | LOCK_NB))
		return 0;
	if (errno == EWOULDBLOCK)
		return err_set(-EBUSY, "%s: in use by another pyebpf", path);
	return err_set(-errno, "lock %s: %s", path, strerror(errno));
}

/* The new file, with its head and w->stored in it, takes the place of the old one. */
static int replace_old(struct writer *w)
{
	_cleanup_(freep) char *name = NULL;
	_cleanup_(closep) int fd = file_open_partial(w->path, &name);
	int r = fd < 0 ? fd : lock(fd, w->path);

	if (r < 0)
		return r;
	r = file_write(fd, w->head.items, w->head.len);
	if (!r)
		r = file_write(fd, w->stored.items, w->stored.len);
	if (!r && (fsync(fd) < 0 || rename(name, w->path) < 0))
		r = -errno;
	if (r < 0) {
		file_remove_partial(name);
		return err_set(r, "write %s: %s", w->path, strerror(-r));
	}
	partial_forget(name);
	file_sync_directory_of(w->path);
	w->size += w->stored.len;
	w->fd = take_fd(fd);
	closep(&w->old_fd);
	w->old_fd = -1;
	return 0;
}

/* As stored_write(); an old file stays as it is until there are samples. */
static int write_flush(struct writer *w, size_t samples)
{
	int r;

	if (w->old_fd < 0)
		r = stored_write(w);
	else
		r = replace_old(w);
	w->has_samples |= !r && samples;
	return r;
}

/* After a failure since there were `chunks` of them: forget those, start a segment next time. */
static int give_up(struct writer *w, size_t chunks, int r)
{
	w->chunks.len = chunks;
	w->needs_segment = true;
	return r == -ENOMEM ? err_set(r, "write %s: out of memory", w->path) : r;
}

static int begin_segment(struct writer *w)
{
	int r;

	w->content.len = 0;
	r = chunk_add(w, CHUNK_SEGMENT, NULL);
	if (!r)
		r = encoder_restart(&w->encoder, w->interval_ns, w->grid);
	return r;
}

/* Queues all that is new in w->stored. */
static int queue_flush(struct writer *w, const struct profile *p)
{
	struct chunk_summary summary;
	size_t sample = 0;
	int r = 0;

	if (w->needs_segment)
		r = begin_segment(w);
	while (!r) {
		w->content.len = 0;
		r = encode_flush(&w->encoder, p, &sample, &w->content, &summary);
		if (!r)
			r = encode_padding(&w->encoder, w->size + w->stored.len, &w->content);
		if (!r && w->content.len)
			r = chunk_add(w, CHUNK_FLUSH, &summary);
		if (encoder_is_done(&w->encoder, p, sample))
			break;
	}
	while (!r && w->encoder.titles < p->titles.len) {
		w->content.len = 0;
		r = titles_encode(p, &w->encoder.titles, &w->content);
		if (!r)
			r = chunk_add(w, CHUNK_TITLES, NULL);
	}
	return r;
}

ssize_t writer_flush(struct writer *w, const struct profile *p)
{
	size_t chunks = w->chunks.len;
	int r;

	w->stored.len = 0;
	if (w->old_fd >= 0 && !p->samples.len)
		return 0;
	r = queue_flush(w, p);
	if (!r)
		r = write_flush(w, p->samples.len);
	if (r < 0)
		return give_up(w, chunks, r);
	w->needs_segment = false;
	return (ssize_t)w->stored.len;
}

void writer_keep_times(struct writer *w)
{
	w->encoder.is_exact = true;
}

int writer_segment(struct writer *w)
{
	size_t chunks = w->chunks.len;
	int r;

	w->stored.len = 0;
	if (w->old_fd >= 0) {
		w->needs_segment = true;
		return 0;
	}
	r = begin_segment(w);
	if (!r)
		r = stored_write(w);
	if (r < 0)
		return give_up(w, chunks, r);
	w->needs_segment = false;
	return 0;
}

/* Totals, then columns: type, bytes, samples, first time, span. */
static int encode_index(struct writer *w)
{
	struct numbers column[5] = { 0 };
	uint64_t samples = 0, before = 0;
	int r = 0;

	for (size_t i = 0; i < 5 && !r; i++)
		r = vec_reserve(&column[i], w->chunks.len);
	for (size_t i = 0; i < w->chunks.len && !r; i++) {
		const struct chunk *c = &w->chunks.items[i];
		uint64_t first = c->summary.first_ns / TIME_UNIT_NS;
		uint64_t last = c->summary.last_ns / TIME_UNIT_NS;
		uint64_t row[5] = { c->type, c->bytes, c->summary.samples,
				    zigzag_encode((int64_t)(first - before)), last - first };

		for (int k = 0; k < 5; k++)
			column[k].items[i] = row[k];
		samples += c->summary.samples;
		before = first;
	}
	w->content.len = 0;
	if (!r)
		r = bytes_put_varint(&w->content, samples);
	if (!r)
		r = bytes_put_varint(&w->content, w->chunks.len);
	for (size_t i = 0; i < 5; i++) {
		if (!r)
			r = column_encode(&w->encoder.coder, &w->content, column[i].items,
					  w->chunks.len);
		vec_release(&column[i]);
	}
	return r;
}

/* What is known of the recording, queued in w->stored as this chunk. */
static int queue_recording(struct writer *w, const struct profile *p, enum chunk_type type)
{
	int r;

	w->content.len = 0;
	r = encode_metadata(&p->recordings.items[w->encoder.recording], &w->content);
	return r ? r : chunk_add(w, type, NULL);
}

static int queue_end(struct writer *w, const struct profile *p)
{
	uint64_t index_offset;
	int r = queue_recording(w, p, CHUNK_METADATA);

	if (r < 0 || w->chunks.len > INDEX_ROWS_MAX)
		return r; /* so long a recording is read without an index, as if cut off */
	index_offset = w->size + w->stored.len;
	r = encode_index(w);
	if (!r)
		r = chunk_append(w, CHUNK_INDEX);
	w->content.len = 0;
	if (!r)
		r = vec_reserve(&w->content, 8);
	if (r < 0)
		return r;
	put_le64(w->content.items, index_offset);
	w->content.len = 8;
	return chunk_append(w, CHUNK_END);
}

/* On what grid the times of its samples lie. */
static void set_grid(struct writer *w, const struct recording *r)
{
	w->interval_ns = r->interval_ns <= INTERVAL_MAX_NS ? r->interval_ns : 0;
	w->grid = r->event && !strcmp(r->event, "cpu-clock") ? GRID_CPU : GRID_THREAD;
}

int writer_recording(struct writer *w, const struct profile *p, uint32_t index)
{
	size_t chunks = w->chunks.len;
	int r;

	if (++w->further >= RECORDINGS_MAX)
		return err_set(-E2BIG, "%s: one file takes %u recordings at most", w->path,
			       RECORDINGS_MAX);
	w->stored.len = 0;
	r = queue_recording(w, p, CHUNK_METADATA);
	w->encoder.recording = index;
	set_grid(w, &p->recordings.items[index]);
	if (!r)
		r = queue_recording(w, p, CHUNK_RECORDING);
	if (!r)
		r = encoder_restart(&w->encoder, w->interval_ns, w->grid);
	if (!r && w->old_fd >= 0) { /* nothing is written yet */
		r = vec_append(&w->head, w->stored.items, w->stored.len);
		w->size += w->stored.len;
	} else if (!r) {
		r = stored_write(w);
	}
	return r < 0 ? give_up(w, chunks, r) : 0;
}

int writer_finish(struct writer *w, const struct profile *p)
{
	size_t chunks = w->chunks.len;
	ssize_t n = writer_flush(w, p);
	int r;

	if (n < 0)
		return (int)n;
	if (w->old_fd >= 0)
		return 0; /* no samples: the old file stays */
	w->stored.len = 0;
	r = queue_end(w, p);
	if (!r)
		r = stored_write(w);
	if (r < 0)
		return give_up(w, chunks, r);
	if (!w->is_stream && fsync(w->fd) < 0)
		return err_set(-errno, "write %s: %s", w->path, strerror(errno));
	return 0;
}

/* --- a copy ----------------------------------------------------------------------------------- */

static int copy_file(int from, uint64_t size, int to)
{
	off_t at = 0;

	while ((uint64_t)at < size) {
		ssize_t n = sendfile(to, from, &at, size - (uint64_t)at);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (!n)
			return -EIO;
	}
	return 0;
}

/* Where a file system knows no such rename there is a moment in which another one may appear. */
static int rename_new(const char *from, const char *to)
{
	if (!renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL)
		return -errno;
	if (!access(to, F_OK))
		return -EEXIST;
	return rename(from, to) < 0 ? -errno : 0;
}

static int save_as(const struct writer *w, const char *path)
{
	_cleanup_(freep) char *name = NULL;
	_cleanup_(closep) int fd = file_open_partial(path, &name);
	int r;

	if (fd < 0)
		return fd;
	r = copy_file(w->fd, w->size, fd);
	if (!r)
		r = file_write(fd, w->stored.items, w->stored.len);
	if (!r && fsync(fd) < 0)
		r = -errno;
	if (!r)
		r = rename_new(name, path);
	if (!r) {
		partial_forget(name);
		file_sync_directory_of(path);
		return 0;
	}
	file_remove_partial(name);
	return r == -EEXIST ? err_set(r, "%s already exists", path)
			    : err_set(r, "write %s: %s", path, strerror(-r));
}

int writer_save(struct writer *w, const struct profile *p, const char *path)
{
	size_t chunks = w->chunks.len;
	int r;

	assert(w->fd >= 0 && !w->is_stream);
	w->stored.len = 0;
	r = queue_end(w, p);
	w->chunks.len = chunks;
	return r < 0 ? r : save_as(w, path);
}

/* --- opening ---------------------------------------------------------------------------------- */

/* Is it a recording? What is none is not overwritten: it may be anything. */
static int check_old(int fd, const char *path)
{
	static const char magic[] = FORMAT_MAGIC;
	char head[sizeof(magic) - 1];
	ssize_t n = pread(fd, head, sizeof(head), 0);

	if (n == (ssize_t)sizeof(head) && !memcmp(head, magic, sizeof(head)))
		return 0;
	return err_set(-EEXIST, "%s already exists and is not a recording: not overwritten", path);
}

/*
 * The file at path, locked: a new one, empty, or the one that is there. That one may be replaced
 * between open() and flock(): then the next one is tried.
 */
static int open_locked(struct writer *w, struct stat *st)
{
	for (;;) {
		_cleanup_(closep) int fd = -1;
		struct stat named;
		int r;

		fd = open(w->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, OUTPUT_MODE);
		w->is_made = fd >= 0;
		if (fd < 0 && errno == EEXIST) {
			fd = open(w->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
			if (fd < 0 && errno == ENOENT)
				continue; /* it was removed meanwhile */
		}
		if (fd < 0 && errno == ELOOP)
			return err_set(-ELOOP, "%s is a symbolic link: name the file it points to",
				       w->path);
		if (fd < 0)
			return err_set(-errno, "%s: %s", w->path, strerror(errno));
		if (w->is_made)
			file_give_to_caller(fd);
		r = lock(fd, w->path);
		if (r < 0)
			return r;
		if (file_check_regular(fd, w->path, st) < 0 ||
		    (!w->is_made && file_check_own(w->path, st) < 0))
			return -EEXIST;
		if (!stat(w->path, &named) && named.st_dev == st->st_dev &&
		    named.st_ino == st->st_ino)
			return take_fd(fd);
	}
}

static int create_file(struct writer *w)
{
	_cleanup_(closep) int fd = -1;
	struct stat st;
	int r;

	fd = open_locked(w, &st);
	if (fd < 0)
		return fd;
	if (st.st_size) {
		r = check_old(fd, w->path);
		if (r < 0)
			return r;
		w->old_fd = take_fd(fd);
		w->size = w->head.len; /* of the file that will be there */
		return 0;
	}
	w->fd = take_fd(fd);
	if (!w->is_made)
		file_keep_mode(w->fd, &st);
	r = vec_append(&w->stored, w->head.items, w->head.len);
	if (!r)
		r = stored_write(w);
	if (r < 0)
		writer_discard(w);
	return r;
}

static int create(struct writer *w)
{
	int r = file_output(w->path, &w->fd);

	if (r <= 0)
		return r < 0 ? r : create_file(w);
	w->is_stream = true;
	if (vec_append(&w->stored, w->head.items, w->head.len) < 0)
		return -ENOMEM;
	return stored_write(w);
}

bool writer_has_kept_old(const struct writer *w)
{
	return w->old_fd >= 0;
}

void writer_discard(struct writer *w)
{
	if (w->is_made && !w->has_samples)
		unlink(w->path);
}

/* Nothing is open yet; its head is known. */
static int new_writer(const char *name, const struct profile *p, struct writer **out)
{
	struct format_header header = { FORMAT_MAGIC, { FORMAT_MAJOR }, { FORMAT_MINOR } };
	_cleanup_(writer_freep) struct writer *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->fd = w->old_fd = -1;
	set_grid(w, profile_recording(p));
	w->path = strdup(name);
	if (!w->path)
		return -ENOMEM;
	if (vec_append(&w->stored, (const uint8_t *)&header, sizeof(header)) < 0 ||
	    queue_recording(w, p, CHUNK_METADATA) < 0 ||
	    encoder_restart(&w->encoder, w->interval_ns, w->grid) < 0 ||
	    vec_append(&w->head, w->stored.items, w->stored.len) < 0)
		return -ENOMEM;
	w->stored.len = 0;
	*out = take_ptr(w);
	return 0;
}

int writer_open(const char *path, const struct profile *p, struct writer **out)
{
	_cleanup_(writer_freep) struct writer *w = NULL;
	int r = new_writer(path, p, &w);

	if (!r)
		r = create(w);
	if (r < 0)
		return r;
	*out = take_ptr(w);
	return 0;
}

int writer_open_fd(int fd, const char *name, const struct profile *p, struct writer **out)
{
	_cleanup_(writer_freep) struct writer *w = NULL;
	int r = new_writer(name, p, &w);

	if (r < 0)
		return r;
	if (vec_append(&w->stored, w->head.items, w->head.len) < 0)
		return -ENOMEM;
	w->fd = fd;
	r = stored_write(w);
	if (r < 0) {
		w->fd = -1; /* still the caller's */
		return r;
	}
	*out = take_ptr(w);
	return 0;
}
