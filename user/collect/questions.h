/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_QUESTIONS_H
#define COLLECT_QUESTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "collect/usage.h"

/*
 * Questions about targets, from the thread that empties the ring to the one that looks at them, and
 * their answers back. First come, first served; at most QUESTIONS_MAX that are asked and whose
 * answers were not taken, so that there is always room for an answer.
 */
struct questions;
struct looker;

#define QUESTIONS_MAX 4096

/* A process while it runs one program: after an exec, or under a PID that is used again, another.
 */
struct target_id {
	uint64_t process; /* identity: hash of start time and exec count; 0: any that has the PID */
	uint32_t pid;
};

/* The first member of what is asked, which is on the heap. */
struct question {
	struct target_id target;
	/* On the other thread, which touches nothing but the question and what outlives it. */
	int (*look)(struct question *q, struct looker *l);
	/* Back with who asked: 0, or a negative errno that ends the recording. */
	int (*take)(struct question *q);
	void (*free)(struct question *q);
	int r; /* of look(); -ESRCH where the target is gone after it, or runs another program */
	struct question *next; /* ours */
};

int questions_new(struct questions **out);
void questions_free(struct questions *qs);
DEFINE_CLEANUP(struct questions *, questions_free)

/* q is no longer the caller's. 0, or -EAGAIN: there are too many, it will not be answered. */
int questions_ask(struct questions *qs, struct question *q);

/*
 * For the thread that answers: waits for a question until then (CLOCK_MONOTONIC). NULL: there is
 * none yet, or there will be none any more.
 */
struct question *questions_next(struct questions *qs, uint64_t until_ns);
void questions_answer(struct questions *qs, struct question *q);

/* No more questions are handed out. */
void questions_end(struct questions *qs);
bool questions_has_ended(struct questions *qs);

/* An answer, the caller's to free. NULL: there is none. */
struct question *questions_take(struct questions *qs);

/* Waits until all are answered, up to ns. */
void questions_wait(struct questions *qs, uint64_t ns);

/* The most that there were at once since the last call. */
struct usage questions_usage(struct questions *qs);

/* How many were too many so far. */
uint64_t questions_refused(struct questions *qs);

#endif
