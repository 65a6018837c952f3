/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_BATCH_H
#define AGENT_BATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/config.h"
#include "agent/spool.h"
#include "base/strbuf.h"

/*
 * One request: an entry of the spool, or the series of several in one body. Only small ones are
 * joined: of a request that an engine takes in part it says which series it did not take, but of
 * one with a profile beyond its limit of bytes it does not say which one that was.
 */
#define BATCH_ENTRIES_MAX 32
#define BATCH_ENTRY_BYTES (64u << 10) /* of one that is joined: some 300 KiB unpacked */
#define BATCH_BYTES_MAX (1u << 20)    /* unpacked; joined entries go beyond by one at most */

struct batch {
	struct spool_entry entries[BATCH_ENTRIES_MAX]; /* as their series stand in the body */
	size_t count;
	struct strbuf body;   /* after batch_finish(): what is sent; before: that of a single one */
	struct strbuf series; /* of them all, unpacked; not if it cannot be joined */
	bool is_joinable;
};

void batch_release(struct batch *b);

/*
 * Adds an entry; the first one always fits. body is of *e, as the window made it for that engine.
 * 1, 0 if it does not fit: nothing has changed; or -ENOMEM.
 */
int batch_add(struct batch *b, enum engine engine, const struct spool_entry *e, const void *body,
	      size_t len);

/* 0 or -ENOMEM. */
int batch_finish(struct batch *b, enum engine engine);

#endif
