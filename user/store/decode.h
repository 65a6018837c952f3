/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef STORE_DECODE_H
#define STORE_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "profile/profile.h"
#include "store/column.h"
#include "store/model.h"
#include "store/titles.h"

/* Chunk contents -> profile. All bytes are foreign. */

/* File id -> profile id, of one segment. */
struct id_map {
	uint32_t *items;
	size_t len;
	size_t cap;
};

struct decoder {
	struct model model;
	enum grid grid;
	struct id_map strings, frames, stacks, processes, threads, labels, kinds;
	uint32_t recording;          /* index in the profile that the file is read into */
	uint32_t ordinal;            /* of the recording in the file */
	const struct titles *titles; /* borrowed: the reader's */
	struct numbers scratch;
	struct column_coder coder;
	uint64_t budget; /* of model.cost: the reader's */
	uint64_t samples;
	uint64_t last_ns;   /* latest sample so far */
	uint64_t before_ns; /* the same before this chunk */
};

/* A segment starts. 0 or -ENOMEM. */
int decoder_restart(struct decoder *d, uint64_t interval_ns);
void decoder_release(struct decoder *d);

/*
 * Adds the content of one flush chunk to p. 0; -EBADMSG with err_set() text for what breaks the
 * format, or for more rows than d->budget has room for; -EPROTONOSUPPORT for what a later version
 * must be read with; -ENOMEM, -EOVERFLOW. On failure p holds
 * some of the chunk's table rows (harmless) but none of its samples, and d is of no further use.
 */
int decode_flush(struct decoder *d, const uint8_t *bytes, size_t len, struct profile *p);

/* Replaces the fields of *meta that are in the content. 0, -EBADMSG with text, -ENOMEM. */
int decode_metadata(const uint8_t *bytes, size_t len, struct recording *meta);

#endif
