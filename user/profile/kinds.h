/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_KINDS_H
#define PROFILE_KINDS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/vec.h"
#include "profile/profile.h"

/*
 * Which kinds of samples are looked at, as one. A word names the kind of that name, and these:
 */
#define KINDS_CPU "cpu"   /* ticks; where they are scaled to the threads' CPU time, of that kind */
#define KINDS_WALL "wall" /* these and off-cpu, in ns */
#define KINDS_OFF_CPU "off-cpu"
#define KINDS_GIL                                                                       \
	"gil-contention" /* of who holds the GIL: how long others wait for it meanwhile \
			  */

/* What is known of a kind by its name. */
enum kind_role {
	KIND_IS_WANTED = 1 << 0,
	KIND_IS_CPU = 1 << 1, /* time on a CPU: of ticks or of ns */
	KIND_IS_OFF_CPU = 1 << 2,
	KIND_IS_GIL = 1 << 3,
	KIND_IS_TASK = 1 << 4, /* time of tasks that wait, beside that of threads */
};

/* Starts as zeros, ends in kinds_release(). Of one profile. */
struct kinds {
	char *name; /* the word; NULL: not chosen yet */
	bool is_ns; /* values of all of them become ns; else they are what those of the one kind are
		     */
	VEC(uint8_t) roles; /* by kind as samples have it: enum kind_role */
};
void kinds_release(struct kinds *k);

/*
 * Before the samples that p holds now are looked at. asked: the word; NULL: ticks, if there are
 * any; else wall, where both are recorded; else what the recording's mode names first, or the only
 * kind. That is chosen with the first samples, and stays. 0 or -ENOMEM.
 */
int kinds_choose(struct kinds *k, const struct profile *p, const char *asked);

/* Both of samples that p held then. */
static inline bool kinds_has(const struct kinds *k, const struct sample *s)
{
	return k->roles.items[s->kind] & KIND_IS_WANTED;
}
uint64_t kinds_value(const struct kinds *k, const struct profile *p, const struct sample *s);

/* A value in its kind's unit: of ticks in ns, where their recording knows that. Saturates. */
uint64_t kinds_scaled(const struct profile *p, const struct sample *s);

/*
 * Are they ticks, as far as is known, each of which came by itself and is as long as its recording
 * says? Else a sample has one value.
 */
static inline bool kinds_are_ticks(const struct kinds *k)
{
	return !k->name || (!k->is_ns && !strcmp(k->name, KINDS_CPU));
}

/* Is it asked for as one that has no samples, nor is a kind of p? */
bool kinds_is_unknown(const struct kinds *k, const struct profile *p);

/*
 * A recording of p whose samples are only these, as ticks: its mode is the word, its event and what
 * a tick is are those of the kinds. 0 or -ENOMEM.
 */
int kinds_describe(const struct kinds *k, const struct profile *p, struct recording *r);

/* "CPU time", "wall time": what the values of a recording are, by its mode, or their unit. */
#define KINDS_NOUN_CPU "CPU time"
const char *kinds_noun(const struct recording *r);

/* Appends the words that p has samples for, perhaps: "cpu, wall, off-cpu". 0 or -ENOMEM. */
int kinds_put_words(const struct profile *p, struct strbuf *out);

/* Appends the names of p's kinds that are not among them: "off-cpu, memory". 0 or -ENOMEM. */
int kinds_put_others(const struct kinds *k, const struct profile *p, struct strbuf *out);

#endif
