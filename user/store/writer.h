/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef STORE_WRITER_H
#define STORE_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "profile/profile.h"

/*
 * Writes a recording, FORMAT.md, while it is made. A new file is there at once, a complete
 * recording without samples; chunks are appended, each in one write: kill -9 costs what was not
 * flushed. An old recording stays as it is until the first samples are flushed: then a new file,
 * with them in it, is renamed over it.
 *
 * The file is locked (flock) as long as the writer lives: there is one for each at a time.
 *
 * fsync: before the rename and at the end. Not at each flush: a crash of the *program* loses
 * nothing that was written, and a disk that is waited for each second would hold the recorder up.
 * A power cut may cost what the kernel had not written back yet (30 s by default); the checksums
 * tell where it begins.
 */
struct writer;

/*
 * "-" and other names of descriptors are written to as they are (file_output()); a
 * new file belongs to the caller of sudo. p's first recording is written; its event ("cpu-clock")
 * and interval_ns say on which grid the samples' times lie. *out is untouched on failure: -EBUSY
 * where another writer has the file, -EEXIST where it is no recording.
 */
int writer_open(const char *path, const struct profile *p, struct writer **out);

/*
 * The same, into a file that is open, empty, and only ours: of memfd_create() or
 * file_open_partial(), of this name in messages. On success it is the writer's.
 */
int writer_open_fd(int fd, const char *name, const struct profile *p, struct writer **out);

/*
 * Before the first flush: times are kept to the ns and not to 16 us, for who writes down what was
 * recorded before. It takes up to two bytes a sample, none where they are on the grid anyway.
 */
void writer_keep_times(struct writer *w);

/*
 * Appends what is new since the last flush: rows of all tables, all samples that p holds (the
 * caller then clears them), counters if they changed. Returns the bytes the file grew by.
 *
 * On failure (-ENOSPC, -EDQUOT, -EFBIG, -EIO, -EPIPE, -ENOMEM) the file ends where it did before;
 * p may be flushed again later, when there is room: a new segment begins then.
 */
ssize_t writer_flush(struct writer *w, const struct profile *p);

/*
 * All tables restart: call after a flush and with profile_reset(), so that a recorder's memory
 * stays bounded. The next flush writes all rows of p anew. 0 or as writer_flush().
 */
int writer_segment(struct writer *w);

/*
 * Call after a flush: what is flushed from now on is of p->recordings.items[index], and p's tables
 * are written anew: they should have nothing of the recording before (profile_reset()). 0 or as
 * writer_flush(), after which the file ends with that one.
 */
int writer_recording(struct writer *w, const struct profile *p, uint32_t index);

/*
 * Flushes, adds what is known of the recording now and the index, syncs. Call once. 0 or as
 * writer_flush(). Where there were no samples an old file is as it was.
 */
int writer_finish(struct writer *w, const struct profile *p);

/*
 * After a flush: a copy of the file as it would be if it were finished now, for the caller of sudo,
 * which appears whole or not at all; the writer goes on. 0, or a negative errno with a message:
 * -EEXIST where there is a file of that name, whatever it is.
 */
int writer_save(struct writer *w, const struct profile *p, const char *path);

/* The old recording is still there: there were no samples yet. */
bool writer_has_kept_old(const struct writer *w);

/* Removes the file, if it was not there before and has no samples. */
void writer_discard(struct writer *w);

uint64_t writer_size(const struct writer *w); /* bytes written so far */
size_t writer_bytes(const struct writer *w);  /* memory it holds, but for zstd's: about 1 MiB */
void writer_free(struct writer *w);           /* closes; without writer_finish() as a crash would */
DEFINE_CLEANUP(struct writer *, writer_free)

#endif
