/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IMPORT_IMPORT_H
#define IMPORT_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

/* Files of other formats, recognised by what is in them. They may be anybody's. */

#define IMPORT_HEAD_BYTES 65536

/* What a file says beyond a profile. */
struct import_facts {
	uint64_t interval_ns; /* what a sample stands for; never 0 */
	double work;          /* units of work that were done; 0: it does not say */
	uint64_t skipped;     /* lines without samples: blank, comments, counts of 0 */
};

struct importer {
	const char *name;

	/* head: the whole file, or its first IMPORT_HEAD_BYTES. len is at least 1. */
	bool (*sniff)(const char *head, size_t len);

	/*
	 * Adds what is in fd, from its first byte on, to p and *facts: rows are interned, so that
	 * files merge, samples appended. 0; -EBADMSG with a message that tells where; -EFBIG,
	 * -ENOMEM, -EOVERFLOW, or what read() reports.
	 */
	int (*read)(int fd, struct profile *p, struct import_facts *facts);
};

/* All of them, NULL last. */
extern const struct importer *const importers[];

/*
 * Adds the file at path to p, and its samples to p->samples. p->meta is filled by the first file
 * that p takes; of a later one it keeps nothing, so that its interval may be another.
 *
 * 1; 0 if no importer knows it, with p as it was: also an empty file. A negative errno with a
 * message that names the path, as the importer's read(); p may then hold a part of it.
 */
int import_file(const char *path, struct profile *p, struct import_facts *facts);

extern const struct importer importer_collapsed;

#endif
