/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef STORE_ENCODE_H
#define STORE_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/idmap.h"
#include "profile/profile.h"
#include "store/column.h"
#include "store/model.h"

/* Profile -> chunk contents. Writes nothing itself; the writer adds heads, zstd and the file. */

/* What the present segment already holds of a profile's tables. */
struct encoder {
	struct model model;
	uint32_t strings, frames, processes, threads; /* rows written; stacks: model.stacks.len */
	uint32_t places;                              /* processes whose place is written */
	size_t sources;                               /* of the profile's, those looked at */
	size_t titles;                                /* of the profile's, those written */
	uint32_t kinds, labels;                       /* rows written */
	uint32_t recording;                           /* index in the profile */
	enum grid grid;
	bool is_exact;            /* times are kept to the ns */
	struct idmap functions;   /* numbers of model.functions */
	struct bytes counters;    /* section content as last written */
	VEC(uint32_t) sampled_of; /* by stack: place in model.sampled + 1; 0: not in it */
	VEC(uint32_t) ends;       /* last entries of the chains in this chunk */
	VEC(uint32_t) order;      /* samples grouped by thread */
	VEC(uint32_t) group;      /* by thread: its group's end in order; zero between chunks */
	struct bytes text;
	struct numbers columns[9];
	struct numbers rests; /* of this chunk's times, zigzag; where they are exact */
	struct column_coder coder;
};

/* What a chunk holds, for the index. */
struct chunk_summary {
	uint32_t samples;
	uint64_t first_ns; /* of the samples; 0 without */
	uint64_t last_ns;
};

/* A segment starts: nothing is written yet. 0 or -ENOMEM. */
int encoder_restart(struct encoder *e, uint64_t interval_ns, enum grid grid);
void encoder_release(struct encoder *e);
size_t encoder_bytes(const struct encoder *e); /* memory it holds, but for zstd's */

/*
 * Appends the content of one flush chunk: as many new rows as one may hold, and if all tables are
 * through, samples from *sample on (moved past them). Appends nothing when nothing is new.
 * 0 or -ENOMEM, after which the encoder must be restarted.
 */
int encode_flush(struct encoder *e, const struct profile *p, size_t *sample, struct bytes *out,
		 struct chunk_summary *summary);

/*
 * Appends what makes the rows up to here affordable (FORMAT.md, "Paying for rows") to the chunk
 * whose content is out, if anything: before is the size of the file in front of it. 0 or -ENOMEM.
 */
int encode_padding(struct encoder *e, uint64_t before, struct bytes *out);

/* True when every row of every table and every sample below `sample` is written. */
bool encoder_is_done(const struct encoder *e, const struct profile *p, size_t sample);

/* Appends the content of a metadata chunk. 0 or -ENOMEM. */
int encode_metadata(const struct recording *meta, struct bytes *out);

#endif
