/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_LATE_LOOKS_H
#define COLLECT_LATE_LOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/workers.h"
#include "collect/look_budget.h"

/*
 * Looks that were given up and have not come back: of which targets they are, and which of them are
 * blocked. One is blocked if its process waits for memory or files of the target; a process that
 * gets no CPU only makes its look late. All zeros: there are none. For one thread.
 */
struct late_looks {
	struct late_look {
		const struct work *work; /* borrowed until late_looks_take(); NULL: none */
		enum look_kind kind;
		bool is_charged; /* what it takes from now on is its owner's */
		bool is_blocked; /* at looked_ns */
		bool is_named;
		struct look_target target; /* its command is in work */
		uint64_t looked_ns;        /* CLOCK_MONOTONIC */
		struct work_wait wait;
	} items[WORKERS_MAX];
	uint64_t named_ns; /* when a process was named last */
};

/* Whether it is blocked just now. */
bool late_looks_note(struct late_looks *l, const struct work *w, enum look_kind kind,
		     struct look_target target, bool is_charged);

/* The one of a work that has come back, which is none from now on; out->work NULL: there is none.
 */
void late_looks_take(struct late_looks *l, const struct work *w, struct late_look *out);

bool late_looks_has(const struct late_looks *l, pid_t pid);
bool late_looks_has_any(const struct late_looks *l);

/* How many of an owner's are blocked. */
size_t late_looks_blocked(struct late_looks *l, uint64_t owner);

/* See looker_name_silent(). is_end: all that are left. */
void late_looks_name(struct late_looks *l, bool is_end);

#endif
