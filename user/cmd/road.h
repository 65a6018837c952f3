/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_ROAD_H
#define CMD_ROAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "base/texts.h"
#include "import/import.h"
#include "profile/extract.h"
#include "profile/imports.h"
#include "profile/profile.h"
#include "profile/select.h"

/*
 * The one way from files to what is made of them: input, what is stripped, imports folded,
 * selection, taker. Batch by batch, each dropped when it was taken, so that memory does not grow
 * with a recording's length.
 */
struct road;

/* Of a recording that is being read. */
struct road_recording {
	uint32_t index;        /* in the profile */
	const char *name;      /* its file, and which recording of it: "a.pyebpf (2)"; borrowed */
	uint64_t last_ns;      /* of the samples that were read, selected or not */
	struct select_sum sum; /* of them */
};

/*
 * end() comes after a recording's last sample: it is for select_describe(). All return 0 or a
 * negative errno with a message.
 */
struct road_taker {
	int (*begin)(void *arg, const struct road_recording *of);
	int (*see)(void *arg);  /* all that are read, of all kinds, selected or not; or NULL */
	int (*take)(void *arg); /* the samples that the profile holds now */
	int (*end)(void *arg, const struct road_recording *of);
};

/* Starts with the first six set, ends in road_release(). */
struct road {
	struct profile *profile; /* borrowed; without samples between the calls */
	const struct road_taker *taker;
	void *arg;
	bool folds_imports;
	struct import_choice choice; /* of the files */
	struct strip *strip;         /* borrowed; NULL: nothing is stripped */
	struct select select;        /* its query; the sums of all files so far */

	/* inside */
	struct import_fold imports;
	struct profile
		*raw; /* what is read, before it is stripped; NULL: straight to the profile */
	struct extract stripped;
	uint32_t raw_index; /* of its recordings: the one that is stripped */
	const char *path;   /* what road_read() read */
	struct input *in;
	uint64_t samples; /* of it */
	int end;          /* how it ended */
	char *message;    /* if that is an error: err_set() is of a thread */
	struct strbuf name;
	struct road_recording recording;
	struct select_sum before; /* that one */
};

/*
 * Reads a file to its end, or to where it is damaged. Says nothing, so that threads may read
 * several at the same time, each with a road and a profile of its own.
 */
void road_read(struct road *r, const char *path);

/*
 * What is to be said of it. A file that ends early or is damaged gives a warning, and a note where
 * notes is not NULL, and what is good of it counts: 1. Else 0, or a negative errno with a message.
 */
int road_conclude(struct road *r, struct texts *notes);

/* Is it damaged, from some point on, and not only cut off? */
bool road_is_damaged(const struct road *r);

/* When the file's last sample is, by its index, which is read; 0: not known. */
uint64_t road_known_last_ns(const struct road *r);

/* Is what was read text, of which a line is a sum and not a sample? */
bool road_is_of_text(const struct road *r);

/* After the last file: what only reading needs is given back; what is known of them all stays. */
void road_end(struct road *r);

void road_release(struct road *r);

#endif
