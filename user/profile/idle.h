/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_IDLE_H
#define PROFILE_IDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "profile/profile.h"

/*
 * Which waits are a thread's outermost wait for work, and say nothing about what is slow: a pool's
 * worker without a task, an event loop without an event. By where they are called, one table of
 * rules; and only where somebody else ends them: who waits for a CPU or for the GIL has work.
 */

/* A function of a file; the last part of a qualname, and the end of a path behind a slash. */
struct idle_place {
	const char *file, *function; /* NULL: any */
};

struct idle_rule {
	struct idle_place waiter;
	/* what it calls directly, in which the wait is, however deep; NULL, NULL: it waits itself
	 */
	struct idle_place callee;
	bool of_thread; /* it is what the thread was started for: Thread(target=...) or run() */
	const char *what;
};
extern const struct idle_rule idle_rules[]; /* .what is NULL at the end */

/* Of a stack. Rules are 1 + index; 0: none. */
struct idle_stack {
	uint32_t python;    /* frame id + 1 of its innermost Python frame; 0: none */
	uint8_t rule;       /* of a wait in it, however deep */
	uint8_t leaf_rule;  /* of a wait in that frame itself */
	bool is_target;     /* that frame is what its thread was started for */
	bool is_for_others; /* its leaf says so: it waits for somebody else */
};

/* Starts as zeros, ends in idle_release(). Of one profile. */
struct idle {
	VEC(struct idle_stack) stacks; /* by id */
	VEC(uint64_t) ns;              /* by rule: what was left out */
};
void idle_release(struct idle *idle);

/* Judges the stacks that p has. 0 or -ENOMEM. */
int idle_judge(struct idle *idle, const struct profile *p);

/* Of a span of waiting: the rule by which it is idle; 0: it is not. */
static inline uint8_t idle_rule_of(const struct idle *idle, uint32_t stack)
{
	const struct idle_stack *s = &idle->stacks.items[stack];

	return !s->is_for_others ? 0 : s->rule ? s->rule : s->leaf_rule;
}

/* One was left out. 0 or -ENOMEM. */
int idle_count(struct idle *idle, uint8_t rule, uint64_t ns);

struct idle_sum {
	const char *what;
	uint64_t ns;
};

/* By what they are, the longest first. 0 or -ENOMEM. */
struct idle_sums {
	struct idle_sum *items; /* a VEC */
	size_t len;
	size_t cap;
};
int idle_sum(const struct idle *idle, struct idle_sums *out);

#endif
