/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IMPORT_IMPORT_H
#define IMPORT_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "import/content.h"
#include "profile/profile.h"

/*
 * Files of other formats, recognised by what is in them, also where that is packed by gzip or zstd.
 * They may be anybody's: read with bounded pread(), never mapped, every length and index checked.
 * Samples come in batches, so that a caller who must be bounded sums and clears them after each;
 * what a file adds to the tables is up to it.
 */
struct import;

#define IMPORT_HEAD_BYTES 65536

/* Samples of a batch; one line of text may bring up to 2^21 more. */
#define IMPORT_BATCH_SAMPLES 65536

/* What a file says beside its samples. */
struct import_facts {
	struct recording recording; /* what the format cannot tell is unknown */
	uint32_t index;             /* of that, in the profile it is read into */
	uint64_t skipped;           /* lines without samples so far: blank, comments, counts of 0 */
};

/* A format, behind import_open(). */
struct importer {
	const char *name;

	/* head: the whole content, or its first IMPORT_HEAD_BYTES. len is at least 1. */
	bool (*sniff)(const char *head, size_t len);

	/*
	 * content is borrowed until free(). Fills facts, which is all zero and is owned by the
	 * caller. Messages of errors tell where, not which file. *out is untouched on failure.
	 */
	int (*open)(struct content *content, struct import_facts *facts, void **out);

	/* As import_next(); the recording has joined p. */
	int (*next)(void *reader, struct profile *p, struct import_facts *facts);

	void (*free)(void *reader);
};

/* All of them, NULL last. */
extern const struct importer *const importers[];

/* Words for options: "auto", then their names in the same order, NULL last. */
extern const char *const import_words[];

/* What is known of files before they are read. Zeros: nothing. */
struct import_choice {
	unsigned int format; /* what they are, whatever they look like: index of import_words[] */
	bool is_trusted;     /* they may become as much as they want: import/unpacked.h */
};

/* NULL: what a file's content tells. */
static inline const struct importer *import_chosen(struct import_choice choice)
{
	return choice.format ? importers[choice.format - 1] : NULL;
}

/*
 * 1 and *out; 0 if no importer knows the file: also an empty one. -EBADMSG with a message that
 * tells where; -EPROTONOSUPPORT for a version of a format that is not read; -ENOMEM,
 * -EINVAL (no regular file), or what open() and read() report. Messages name the path. *out is
 * untouched unless it returns 1.
 */
int import_open(const char *path, struct import_choice choice, struct import **out);
void import_free(struct import *i);
DEFINE_CLEANUP(struct import *, import_free)

/*
 * Adds the next batch to p: rows are interned, so that files merge, samples appended, times
 * relative to their own file's start. One import, one profile: the file is a recording of it.
 *
 * 1; 0 at the end; errors as import_open() and -EOVERFLOW. Not to be called again after 0 or an
 * error.
 */
int import_next(struct import *i, struct profile *p);

/* Borrowed: valid until import_free(). Complete after import_open(), but for skipped. */
const struct import_facts *import_facts(const struct import *i);

/* Name of its format. */
const char *import_format(const struct import *i);

extern const struct importer importer_austin;
extern const struct importer importer_collapsed;
extern const struct importer importer_mojo;
extern const struct importer importer_perf;
extern const struct importer importer_pprof;
extern const struct importer importer_speedscope;
extern const struct importer importer_tachyon;

#endif
