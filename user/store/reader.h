/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef STORE_READER_H
#define STORE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "profile/profile.h"

/*
 * Reads a recording, FORMAT.md, chunk by chunk. The file may be anybody's: it is read with
 * bounded pread(), never mapped, and every length, count and id is checked. Memory is bounded by
 * the bytes of the file, whatever they claim: rows that take more, here and in the profile, than
 * 16 MiB and 512 bytes for each byte read so far are refused (FORMAT.md, "Paying for rows"). Beyond
 * these it needs 40 MiB at most; an index, 88 bytes for each 6 of the file, 88 MiB at most. The
 * samples of one chunk, 65,536 at most, are for the caller to sum and clear.
 */
struct reader;

/*
 * -ENODATA: empty file; -EBADMSG: no recording; -EPROTONOSUPPORT: a newer format, or 1.x; -EINVAL:
 * no regular file; else what open() and read() report. *out is untouched on failure.
 */
int reader_open(const char *path, struct reader **out);
void reader_free(struct reader *r);
DEFINE_CLEANUP(struct reader *, reader_free)

/*
 * Adds the next chunk to p: rows are interned, so that several segments and several files merge;
 * samples are appended, times stay relative to their own file's start. One reader, one profile.
 * what is known of the recording and its counters are those of one that joins p's. A file may have
 * several: what begins one brings nothing else.
 *
 * Returns 1; 0 at the end, also where the file was cut off; -EBADMSG for a damaged file: p then
 * holds the samples of all chunks before; -EPROTONOSUPPORT likewise, where it has what only a newer
 * pyebpf can read; -ENOMEM, -EOVERFLOW, -EIO. Not to be called again
 * after 0 or an error.
 */
int reader_next(struct reader *r, struct profile *p);

/*
 * Borrowed, as read so far: complete after reader_open() but for duration_ns,
 * has_ended, is_whole and build.
 */
const struct recording *reader_recording(const struct reader *r);

/* Of the profile's recordings: the one that the last chunk was of. */
uint32_t reader_recording_index(const struct reader *r);

/*
 * After reader_next() returned 0: true if the file ends without its index, because its recorder
 * was killed, still runs, or the tail was lost. *offset (may be NULL): of the first byte unused.
 */
bool reader_is_truncated(const struct reader *r, uint64_t *offset);

/* One chunk, as the index has it. */
struct reader_chunk {
	uint64_t offset;
	uint64_t bytes;
	uint64_t samples;
	uint64_t first_ns, last_ns; /* of the samples, rounded down to 16 us; 0 without */
	uint8_t type;               /* enum chunk_type */
};

/*
 * The index, at any time. *out is to be freed with free(); -ENOENT without message where the
 * file has none, -EBADMSG, -ENOMEM. Outputs are untouched on failure.
 */
int reader_index(struct reader *r, struct reader_chunk **out, size_t *count);

/* All of it. 0; 1 if it was truncated, with all whole chunks in p; else as the functions above. */
int profile_load(const char *path, struct profile *p);

#endif
