/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_SPOOL_H
#define AGENT_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

/*
 * Request bodies that wait in a folder to be sent, oldest first: bounded in bytes and in age. A
 * file an entry, which appears whole or not at all and stays until it is removed, whatever happens
 * to the process: NUMBER-TIME-SAMPLES-CRC.ENGINE. Its content is the body alone, so nothing secret
 * is in it. A file that a crash of the machine has damaged is seen by its CRC. Files of other users
 * are neither sent nor removed.
 *
 * Several threads may add, take and remove. What goes without having been sent is counted.
 */
struct spool;

struct spool_opts {
	const char *directory; /* made if it is not there, with mode 0700 */
	/* Lower-case letters; not copied. Entries of others wait for theirs to come back. */
	const char *engine;
	uint64_t bytes_max;
	uint64_t age_max_ns; /* of CLOCK_REALTIME; entries from the future are new */
};

/* Why samples were thrown away. */
#define SPOOL_LOSSES(X)                                                         \
	X(SPOOL_FULL, "spool_full")       /* older than what took their room */ \
	X(SPOOL_EXPIRED, "expired")       /* older than age_max_ns */           \
	X(SPOOL_DAMAGED, "spool_damaged") /* not what was written */            \
	X(SPOOL_FAILED, "spool_failed")   /* could not be written */

enum spool_loss {
#define X(id, name) id,
	SPOOL_LOSSES(X)
#undef X
		SPOOL_LOSS_COUNT
};

struct spool_stats {
	uint64_t entries, bytes, samples; /* now */
	uint64_t foreign;                 /* of these entries: of other engines */
	uint64_t oldest_ns;               /* CLOCK_REALTIME; 0: empty */
	uint64_t lost_entries[SPOOL_LOSS_COUNT];
	uint64_t lost_samples[SPOOL_LOSS_COUNT];
};

/*
 * -EBUSY: another process has it. Takes up what is there, and warns of files of other users, of
 * more than 1,000,000 files, and of a folder that others may write to. *out is untouched on
 * failure.
 */
int spool_open(const struct spool_opts *opts, struct spool **out);
void spool_free(struct spool *s);
DEFINE_CLEANUP(struct spool *, spool_free)

/* From now on all of opts but the directory is this. */
void spool_configure(struct spool *s, const struct spool_opts *opts);

/*
 * Puts an entry at the end. The oldest ones make room for it: where the limit says so, and where
 * the disk is full. -EFBIG (larger than the whole spool), -ENOSPC and others with a message; the
 * samples are counted as lost then.
 */
int spool_add(struct spool *s, uint64_t time_ns, uint64_t samples, const void *body, size_t len);

struct spool_entry {
	uint64_t number; /* ascending, also over restarts */
	uint64_t time_ns;
	uint64_t samples;
	uint32_t failures; /* that may have been its own fault, since the spool was opened */
	bool is_suspect;   /* it was in a request that failed: it goes alone */
};

/*
 * The oldest entry that nobody has taken and that is neither too old at now_ns nor damaged, and its
 * body, to be freed with free(). It makes no room for others until spool_remove() or
 * spool_return(). 1; 0 if there is none; -ENOMEM.
 */
int spool_take(struct spool *s, uint64_t now_ns, struct spool_entry *out, void **body, size_t *len);

/* It was not sent: its place in the queue is as it was, its failures are those of *e. */
void spool_return(struct spool *s, const struct spool_entry *e);

void spool_remove(struct spool *s, uint64_t number);

void spool_stats(struct spool *s, struct spool_stats *out);

#endif
