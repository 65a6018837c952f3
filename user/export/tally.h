/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_TALLY_H
#define EXPORT_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/slots.h"
#include "profile/calltree.h"
#include "profile/idmap.h"
#include "profile/profile.h"

#define TALLY_NO_THREAD UINT32_MAX

struct tally_row {
	uint32_t thread; /* index; TALLY_NO_THREAD where threads are not told apart */
	uint32_t stack;
	uint64_t ticks; /* > 0 */
};

struct tally_thread {
	uint64_t ticks;
	uint64_t first_ns, last_ns; /* times of its samples; of no ticks: 0 */
};

/*
 * Ticks of each stack, or of each stack in each thread: what is left of samples when time is left
 * out. Summed part by part, so that samples need not all be in memory. Starts as
 * { .by_thread = ... }, ends in tally_release().
 */
struct tally {
	bool by_thread;
	bool by_time; /* also sums `slots`, whose runs the caller begins */
	struct slots slots;
	struct stack_weights stacks; /* ticks by stack, over all threads */
	VEC(struct tally_row) rows;
	VEC(struct tally_thread) threads; /* by thread index; empty if p has none */
	struct idmap map;                 /* of rows, by thread and stack */
};

/* Adds all samples p holds now; always the same profile. 0 or -ENOMEM. */
int tally_add(struct tally *t, const struct profile *p);

/* Call once, after all was added: rows are then complete, by thread and stack. 0 or -ENOMEM. */
int tally_finish(struct tally *t);

void tally_release(struct tally *t);

#endif
