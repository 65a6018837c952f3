/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_LISTING_H
#define COLLECT_LISTING_H

#include <stdint.h>

#include "base/vec.h"
#include "inspect/address_map.h"
#include "profile/idmap.h"

/*
 * Processes as they are listed again and again, by what the kernel's rows have of them: each is
 * looked up once. One is forgotten when two listings have gone by without it: what was swept of a
 * process comes in time for the listing that misses it first.
 */
struct listed {
	uint32_t pid, exec_id;
	uint64_t start_ns;
	uint64_t process;  /* identity */
	uint64_t since_ns; /* when it began; 0: before the recording */
	uint64_t until_ns; /* when it ended; 0: nobody said so */
	uint64_t seen;     /* ours: the last listing that had it */
};

/* Starts as zeros, ends in listing_release(). */
struct listing {
	uint64_t number; /* of the listing that is made */
	VEC(struct listed) items;
	struct idmap rows;            /* by pid, program and start */
	struct address_map processes; /* by identity */
};

void listing_release(struct listing *l);

/* The next one begins. 0 or -ENOMEM. */
int listing_begin(struct listing *l);

/* The process of this row, which is there: NULL if it was not looked up yet. Borrowed. */
const struct listed *listing_find(struct listing *l, uint32_t pid, uint32_t exec_id,
				  uint64_t start_ns);

/* One that was not. 0 or -ENOMEM. */
int listing_add(struct listing *l, const struct listed *process);

/* Notes when one of them ended; of others nothing is kept. */
void listing_end(struct listing *l, uint64_t process, uint64_t until_ns);

/* NULL: it is not known, or no more. Borrowed until the next listing_add(). */
const struct listed *listing_get(const struct listing *l, uint64_t process);

#endif
