/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_CUBE_H
#define PROFILE_CUBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "profile/idmap.h"
#include "profile/profile.h"

/*
 * Values of samples, summed: (stack, thread, kind, labels, instruction, part of the time) -> value.
 * What every report, comparison, page and export is made of. Samples are added chunk by chunk and
 * may be dropped then, so that memory grows with their variety and not with their number. Kinds are
 * always told apart, the other axes where they are asked for. Starts as { .axes = ... }, ends in
 * cube_release(); one profile, always the same.
 */
enum cube_axis {
	CUBE_THREADS = 1 << 0,
	CUBE_LABELS = 1 << 1,
	CUBE_OPCODES = 1 << 2,
	CUBE_TIME = 1 << 3,  /* and runs */
	CUBE_KINDS = 1 << 4, /* whoever selects samples leaves all kinds, not one */
};

/* What the values of a cell have in common but for stack and time. */
#define CUBE_NO_THREAD UINT32_MAX
struct cube_tag {
	uint32_t thread; /* index, as it is shown (struct thread); CUBE_NO_THREAD: not told apart */
	uint32_t labels; /* set id; 0: none, or not told apart */
	uint32_t opcode; /* string id; 0: none, or not told apart */
	uint16_t kind;
};

/* Several may be of the same stack and tag, unless it says otherwise. */
struct cube_cell {
	uint32_t stack;
	uint32_t tag;   /* index */
	uint64_t value; /* > 0 */
};

struct cube_block {
	VEC(struct cube_cell) cells;
	uint64_t value; /* of all of them */
};

/*
 * With CUBE_TIME: a recording, cut into blocks of equal length. Where one goes on beyond its span
 * its blocks become twice as long, two of them one.
 */
enum cube_side { CUBE_BASE, CUBE_CURRENT };
#define CUBE_SIDES 2
#define CUBE_NO_PROCESS UINT32_MAX
struct cube_run {
	uint8_t side;         /* enum cube_side */
	bool has_times;       /* its samples have */
	bool is_dealt;        /* what is divided is not time */
	uint32_t recording;   /* index */
	char *file;           /* its path, and which of its recordings; owned */
	uint64_t span_ns;     /* what all blocks divide; 0: no times are known, all is in block 0 */
	bool is_known;        /* the span: samples beyond it are in the last block */
	uint32_t block_count; /* in use: the first so many */
	struct cube_block *blocks; /* as many as the cube says; owned */
	uint32_t process; /* index: of the Python ones that with most ticks, by cube_finish() */
	uint64_t value;
	uint64_t lost; /* of what should be there besides */
};

/* Samples of one thread and kind. */
struct cube_sum {
	uint64_t value;             /* 0: none */
	uint64_t count;             /* of samples */
	uint64_t first_ns, last_ns; /* times of its samples, of spans the end */
};

void cube_sum_add(struct cube_sum *to, const struct cube_sum *from);

struct cube_values {
	uint64_t *items; /* a VEC */
	size_t len;
	size_t cap;
};

struct cube_sums {
	struct cube_sum *items; /* a VEC, by thread index */
	size_t len;
	size_t cap;
};

/* Times are cut into as many blocks, a power of two times the least. */
#define CUBE_BLOCKS_MIN 40  /* statistics compare as many: user/diff */
#define CUBE_BLOCKS_MAX 640 /* of a page: about two pixels each */
#define CUBE_CELLS_MAX (2u << 20)

struct cube {
	unsigned int axes;   /* set by the caller: enum cube_axis */
	uint32_t blocks;     /* of each run; set by the caller, or CUBE_BLOCKS_MAX */
	uint32_t blocks_min; /* from CUBE_CELLS_MAX on they become fewer, down to that; likewise */
	VEC(struct cube_tag) tags; /* after cube_finish() in order of their fields */
	VEC(struct cube_run) runs;
	struct cube_block
		all; /* without CUBE_TIME; after cube_finish() each cell once, by tag, stack */
	VEC(struct cube_sums) sums; /* by kind; threads are not as they are shown */

	/* inside */
	VEC(struct cube_values)
	dense; /* without axes, until cube_finish(): by kind, then by stack */
	struct idmap tag_map;
	uint32_t last_tag;
	VEC(uint32_t) hints; /* where the newest cell of a stack and tag is in its block, perhaps */
	const struct cube_block *last_block; /* that the hints are of */
	uint64_t cells;                      /* of all blocks */
	uint64_t twice; /* of them, so many may be of a stack and tag that another one has */
};

void cube_release(struct cube *c);

/*
 * What is added from now on is of this recording of p, read from a file (copied). span_ns: as long
 * as its samples last, if that is known; 0: it is not; CUBE_NO_TIMES: they have none. With
 * CUBE_TIME only. 0 or -ENOMEM.
 */
#define CUBE_NO_TIMES UINT64_MAX
int cube_begin_run(struct cube *c, uint8_t side, const char *file, uint32_t recording,
		   uint64_t span_ns);

/* The run that was begun last. */
static inline struct cube_run *cube_run(const struct cube *c)
{
	return &c->runs.items[c->runs.len - 1];
}

/* How long a run's blocks are; 0: no times are known. */
static inline double cube_block_ns(const struct cube *c, const struct cube_run *run)
{
	return (double)run->span_ns / c->blocks;
}

/* Adds all samples p holds now, with CUBE_TIME to the last run. 0, -ENOMEM, -EOVERFLOW. */
int cube_add(struct cube *c, const struct profile *p);

/* After all was added. 0 or -ENOMEM. */
int cube_finish(struct cube *c, const struct profile *p);

/*
 * The runs of `from`, whose ids become those of the profile `to` is of, come behind those of `to`;
 * sums are added. Both have the same axes and blocks, and CUBE_TIME; `from` is to be released only.
 * 0 or -ENOMEM.
 */
struct profile_ids;
int cube_join(struct cube *to, struct cube *from, const struct profile *p,
	      const struct profile_ids *ids);

/*
 * Adds up what a kind has of each stack, by stack id: of one side, or CUBE_BOTH_SIDES. All kinds
 * together tell only whether a stack has anything: their units differ.
 */
#define CUBE_BOTH_SIDES UINT8_MAX
#define CUBE_ALL_KINDS UINT16_MAX
void cube_sum_stacks(const struct cube *c, uint8_t side, uint16_t kind, uint64_t *values);

/*
 * Adds up what a kind has of each thread as it is shown: sums[0 .. p->threads.len - 1], zeros
 * before.
 */
void cube_sum_threads(const struct cube *c, const struct profile *p, uint16_t kind,
		      struct cube_sum *sums);

/* --- rows ------------------------------------------------------------------------------------- */

/* A cell with the part of the time that it is of: run * blocks + block. */
struct cube_row {
	uint32_t key;
	uint32_t tag;
	uint32_t slot;
	uint64_t value;
};

/*
 * All cells of a finished cube with CUBE_TIME, with another key than the stack:
 * key_of[run side][stack], below `keys`. They are in order of key, thread, slot, tag, each once,
 * and are handed out in parts, so that they need not all be in memory: take() gets each part
 * 0 .. CUBE_PARTS - 1 once, in any order, several at once by several threads. Rows of a key are all
 * in one part. blocks: so many a run make up the slots, at least those in use. 0; -ENOMEM,
 * -EOVERFLOW (4 G rows), or what take() returned.
 */
#define CUBE_PARTS 32
struct cube_taker {
	int (*take)(void *context, size_t part, const struct cube_row *rows, size_t count);
	void *context;
};
int cube_by_key(const struct cube *c, uint32_t blocks, const uint32_t *const key_of[CUBE_SIDES],
		uint32_t keys, const struct cube_taker *taker);

#endif
