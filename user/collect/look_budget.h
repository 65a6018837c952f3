/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_LOOK_BUDGET_H
#define COLLECT_LOOK_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * What looks at targets may cost: a target chooses how much there is to see, and how slow it is.
 * Each target has a little CPU time of its own, which nearly all get along with, and so has each
 * owner (target/owner.h) for all of its targets: who starts many processes takes nothing from the
 * processes of others. What goes beyond comes out of one purse of the owner. Who takes out of it
 * then rests for ten times as long.
 *
 * Budgets come back the slower, the more owners there are whose searches, or reads, take much: all
 * of them together have little more than one has. So somebody with several owners, such as
 * containers of several users, has a budget of each once, and then no more than others.
 *
 * Of each second looks at a target may also take half of the time, and so many bytes of memory that
 * are kept; and half of it looks at targets of one owner that wait for their memory or files. Time
 * in which a look only gets no CPU is none of the owner's. Lossy: where there is no place left, a
 * target or an owner shares that of who has spent least. To begin anew would be a way to spend
 * more.
 */
#define LOOK_BUDGET_NS 500000000ULL /* of each second, waiting included */
#define LOOK_BUDGET_BYTES (16u << 20)
#define LOOK_BUDGET_SLOTS 1024 /* of targets */
#define LOOK_OWNER_SLOTS 256
#define LOOK_BUDGET_WAYS 8 /* places that one may have */

/* A search for its interpreter, or a read of what a sample of it points to. */
enum look_kind { LOOK_SEARCH, LOOK_READ, LOOK_KIND_COUNT_ };

/* CPU time that a target has of its own for searches at first; it comes back at this part of a CPU.
 */
#define LOOK_OWN_NS 12000000ULL
#define LOOK_OWN_SHARE 1000
/* The same for reads: of 5,000 functions, and 400 new ones a second. */
#define LOOK_OWN_READS_NS 250000000ULL
#define LOOK_OWN_READS_SHARE 50
/* Budgets of an owner: searches in 6,000 processes, and in 100 new ones a second; and reads. */
#define LOOK_OWNER_NS 1000000000ULL
#define LOOK_OWNER_SHARE 64
#define LOOK_OWNER_READS_NS 2000000000ULL
#define LOOK_OWNER_READS_SHARE 20
/*
 * The part of a CPU for all owners together of whose searches, or reads, so much has not come back.
 * Many Pythons that begin read for longer than they search for.
 */
#define LOOK_CROWD_SHARE 40
#define LOOK_CROWD_NS (LOOK_OWNER_NS / 64)
#define LOOK_CROWD_READS_SHARE LOOK_OWNER_READS_SHARE
#define LOOK_CROWD_READS_NS (LOOK_OWNER_READS_NS / 2)
#define LOOK_CROWD_MAX 16                /* more owners have as little as so many */
#define LOOK_CROWD_COUNT_NS 100000000ULL /* from one count to the next */
#define LOOK_PURSE_NS 60000000ULL        /* in an owner's purse at most */
#define LOOK_PURSE_SHARE 100             /* it fills at this part of a CPU */
#define LOOK_GRANT_MIN_NS \
	10000000ULL /* taken out of the purse at once; doubled if it was too little */
#define LOOK_GRANT_MAX_NS 160000000ULL
#define LOOK_REST 10

struct look_budget {
	struct look_account {
		uint64_t id;       /* PID of a target, or struct owner's; 0: of nobody yet */
		bool is_over;      /* some look was refused */
		uint64_t since_ns; /* CLOCK_MONOTONIC, as all here: when the second began */
		uint64_t ns, bytes;
		uint64_t cpu_ns[LOOK_KIND_COUNT_]; /* of its own, spent and not come back at */
		uint64_t cpu_at_ns;                /* this moment */
	} targets[LOOK_BUDGET_SLOTS], owners[LOOK_OWNER_SLOTS];
	struct look_grants {
		uint64_t grant_ns;   /* the next one; 0: there was none */
		uint64_t rest_ns;    /* not before then is anything taken out of the purse */
	} grants[LOOK_BUDGET_SLOTS]; /* of each of targets */
	struct look_purse {
		int64_t ns;                /* negative: a grant took more */
		uint64_t at_ns;            /* when that was so; 0: it is full */
	} purses[LOOK_OWNER_SLOTS];        /* of each of owners */
	uint32_t crowds[LOOK_KIND_COUNT_]; /* owners who take much */
	uint64_t counted_ns;               /* when that was so */
};

struct look_target {
	pid_t pid;
	uint64_t owner;      /* struct owner's id */
	const char *command; /* pid 0: the name of the command, whose file is read; borrowed */
};

/*
 * CPU time that another look which takes so many bytes may use, in nanoseconds. 0: it is to be
 * left; then *is_first: for the first time that the target is in its place.
 */
uint64_t look_budget_ask(struct look_budget *b, enum look_kind kind, struct look_target target,
			 uint64_t now_ns, size_t bytes, bool *is_first);

struct look_cost {
	uint64_t ns;        /* that it was waited for */
	uint64_t asleep_ns; /* of that, for the target's memory or files: not for a CPU */
	uint64_t cpu_ns;
	size_t bytes;
};

/* Charges what a look took. now_ns: when it was asked for. */
void look_budget_spend(struct look_budget *b, enum look_kind kind, struct look_target target,
		       uint64_t now_ns, const struct look_cost *cost);

#endif
