/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_PAGES_H
#define INSPECT_PAGES_H

/*
 * Memory of a process, each part of which is read once, a block at a time: objects lie close to
 * each other, and the number of reads is the cost. All that is taken from here is of one moment as
 * far as the process stood still from the first read to the last.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "inspect/address_map.h"

#define PAGES_BLOCK_BYTES 16384
#define PAGES_BYTES 4096          /* what is read apart where a block cannot be read whole */
#define PAGES_BYTES_MAX 268435456 /* held at most; then all are forgotten, and read anew */
#define PAGES_RECENT 2048         /* a power of two */

struct pages_block;

/* One that was read whole. */
struct pages_recent {
	uint64_t number; /* + 1; 0: none */
	const uint8_t *bytes;
};

struct pages {
	int (*read)(void *arg, uint64_t addr, void *buf, size_t len); /* 0 or a negative errno */
	void *arg;
	struct address_map map;                   /* from a block's number + 1 to its place */
	VEC(void *) chunks;                       /* of memory, in which blocks lie */
	size_t len;                               /* blocks that are in use */
	struct pages_recent recent[PAGES_RECENT]; /* blocks just used */
};

void pages_init(struct pages *p, int (*read)(void *arg, uint64_t addr, void *buf, size_t len),
		void *arg);
void pages_release(struct pages *p);

/*
 * For another reading: all is read anew, into the memory that is there, unless that is more than
 * PAGES_KEPT_BYTES. To clear that again costs more than most readings.
 */
void pages_reuse(struct pages *p, int (*read)(void *arg, uint64_t addr, void *buf, size_t len),
		 void *arg);
#define PAGES_KEPT_BYTES (16u << 20)
/* What is asked for from now on is read anew. */
void pages_forget(struct pages *p);

/* As read(), of any length; for struct object_reader, whose arg is the struct pages. */
int pages_read(void *pages, uint64_t addr, void *buf, size_t len);

#endif
