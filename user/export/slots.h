/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_SLOTS_H
#define EXPORT_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "profile/idmap.h"
#include "profile/profile.h"

/*
 * Ticks by stack, instruction, thread and part of the time: each run (one recording) has `blocks`
 * parts of equal length, and slot `run * blocks + block` is one of them. Summed chunk by chunk, so
 * that samples need not all be in memory; where rows grow beyond SLOTS_ROWS_MAX, blocks become
 * longer. Starts as { 0 }, ends in slots_release().
 */
#define SLOTS_BLOCKS_MIN 40  /* statistics compare as many: user/diff */
#define SLOTS_BLOCKS_MAX 640 /* MIN times a power of two: about two pixels each */
#define SLOTS_ROWS_MAX (2u << 20)

struct slot_row {
	uint32_t stack;
	uint32_t thread; /* index */
	uint32_t slot;
	uint32_t ticks;  /* > 0; more than fits takes several rows */
	uint32_t opcode; /* string id: see struct sample */
};

/* Rows that a comparison keeps: all of one slot. */
struct diff_block;
struct slot_block {
	uint32_t slot;
	const struct diff_block *block; /* borrowed; with tags */
};

enum slot_side { SLOT_BASE, SLOT_CURRENT };
#define SLOT_SIDES 2

/* Facts are those of the file, as far as it has them. */
struct slot_run {
	enum slot_side side;
	char *path;                 /* owned */
	struct recording recording; /* without counters */
	uint64_t span_ns;     /* what its blocks divide; 0: no times are known, all is in block 0 */
	bool is_dealt;        /* what is divided is not time */
	bool is_span_guessed; /* it doubles with the first sample beyond it */
	uint64_t last_ns;     /* time of the last sample */
	uint64_t ticks;
	uint64_t lost;
	uint64_t busy; /* ticks that those lost are some of; 0: those of the samples and those lost
			*/
};

struct slots {
	uint32_t blocks;
	VEC(struct slot_run) runs;
	VEC(struct slot_row) rows;
	VEC(struct slot_block) kept; /* further rows, which halving and doubling leave alone */
	struct idmap map;            /* of rows from `open` on, by thread and stack */
	size_t open;                 /* they are all of the slot that was seen last */
	uint32_t open_slot;          /* UINT32_MAX: none */
};

void slots_release(struct slots *s);

/*
 * What is added from now on is of this file. span_ns: the time of its last sample, if that is
 * known; 0: it is not, SLOTS_NO_TIMES: samples have none. 0 or -ENOMEM.
 */
#define SLOTS_NO_TIMES UINT64_MAX
int slots_begin_run(struct slots *s, enum slot_side side, const char *path, uint64_t span_ns);

/* Blocks that the run's samples are in: the first so many. */
uint32_t slots_blocks_used(const struct slots *s, const struct slot_run *run);

/*
 * Copies the facts of the run that was begun last: what is known only at its end. lost, busy: see
 * struct slot_run. 0 or -ENOMEM.
 */
int slots_describe_run(struct slots *s, const struct recording *m, uint64_t lost, uint64_t busy);

/*
 * Adds all samples p holds now; after slots_begin_run(), always the same profile. 0, -ENOMEM,
 * -EOVERFLOW (4 G rows).
 */
int slots_add(struct slots *s, const struct profile *p);

/* Calls use() with the opcode of each row that has one, in order. 0, or what use() returned. */
int slots_each_opcode(const struct slots *s, int (*use)(void *context, uint32_t opcode),
		      void *context);

/*
 * The rows with another key than the stack: key_of[run side][stack], below `keys`; NULL: with the
 * stack. They are in order of key (in `stack`), thread, slot, opcode, each once, and are handed out
 * in parts, so that they need not all be in memory: take() gets each part 0 .. SLOTS_PARTS - 1
 * once, in any order, several at once by several threads. Rows of a key are all in one part. 0;
 * -ENOMEM, -EOVERFLOW (4 G rows), or what take() returned.
 */
#define SLOTS_PARTS 32
struct slots_taker {
	int (*take)(void *context, size_t part, const struct slot_row *rows, size_t count);
	void *context;
};
int slots_by_key(const struct slots *s, const uint32_t *const key_of[SLOT_SIDES], uint32_t keys,
		 const struct slots_taker *taker);

#endif
