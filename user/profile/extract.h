/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_EXTRACT_H
#define PROFILE_EXTRACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"
#include "profile/strip.h"

/*
 * Samples of one profile in another one, with what they need of its tables and nothing else: what
 * was not selected leaves no names behind, and what is stripped is not in the other profile at all.
 * Rows keep their order as far as they come in that of their first samples, as in files.
 *
 * Starts as { .strip, .only_sampled }, ends in extract_release(); of two profiles, one recording
 * after the other.
 */
struct extract_ids {
	uint32_t *items; /* a VEC: by id in the one, 1 + id in the other; 0: it is not there */
	size_t len;
	size_t cap;
};

struct extract {
	struct strip *strip; /* borrowed; NULL: nothing is stripped */
	bool only_sampled;   /* processes and threads without samples are left out, too */

	/* inside */
	uint32_t from_recording, to_recording;
	struct extract_ids frames, stacks, labels, processes, threads;
	/* by string id: of files that Python frames name, and others; of texts as strip_text()
	 * makes them, and as they are. A long name that many rows have is read once. */
	struct extract_ids files, modules, texts, plain_texts;
	struct extract_ids sources; /* by index: 1 where it is there */
	struct extract_ids kinds;   /* but by index, as samples of the other one have it */
	size_t processes_seen, threads_seen;
	struct extract_ids fresh; /* rows that the samples at hand are the first to need */
};
void extract_release(struct extract *x);

/* What comes from now on is of this recording of `from`, which joins those of `to`. 0, -ENOMEM,
 * -EOVERFLOW. */
int extract_begin(struct extract *x, const struct profile *from, uint32_t recording,
		  struct profile *to);

/* The other profile's tables were emptied: profile_reset(). */
void extract_forget(struct extract *x);

/* What is known of that recording now, its counters included. 0, -ENOMEM. */
int extract_facts(const struct extract *x, const struct profile *from, struct profile *to);

/* All samples that `from` holds now, which are of that recording. 0, -ENOMEM, -EOVERFLOW. */
int extract_samples(struct extract *x, const struct profile *from, struct profile *to);

#endif
