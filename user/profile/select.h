/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_SELECT_H
#define PROFILE_SELECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "base/vec.h"
#include "profile/idle.h"
#include "profile/kinds.h"
#include "profile/profile.h"

/*
 * Which samples are looked at, and how: stands between whoever reads samples and whoever sums them.
 * Patterns are globs, as fnmatch() takes them. Those of one key are alternatives, keys are all to
 * be met. What they say of frames, threads and sets of labels is found out once for each.
 *
 * FUNCTION is a qualname, or its last part, "parse" of "Shop.parse"; FILE:FUNCTION is such a
 * function of such a file. FILE is a path, or its end behind a slash. MODULE is a module's name or
 * that of a package it is in, as module.h has it; of code that is no library's also without the
 * folders in front, as nobody knows at a sample where they begin. THREAD is a name or a TID,
 * PROCESS a name or a PID, CONTAINER the start of an id, or NAMESPACE/POD. LABEL is NAME=VALUE,
 * NAME (whatever it is), or either behind SELECT_NOT: samples without such a label.
 */
enum select_key {
	SELECT_FOCUS,  /* FUNCTION: samples with such a frame */
	SELECT_IGNORE, /* FUNCTION: samples without one */
	SELECT_HIDE,   /* FUNCTION: such frames are dropped, what they did is their callers' */
	SELECT_GROUP,  /* FUNCTION: the outermost one becomes the root; samples without are left
			  out, but of a glob of tests fixtures (fixture.h) are roots, too */
	SELECT_MODULE, /* samples with a frame of it */
	SELECT_FILE,   /* the same */
	SELECT_THREAD, /* samples of it */
	SELECT_PROCESS,
	SELECT_CONTAINER,
	SELECT_LABEL,
};
#define SELECT_KEYS (SELECT_LABEL + 1)
#define SELECT_NOT '!'

/* Borrowed. */
struct select_patterns {
	const char *const *items;
	size_t len;
};

/* What one frame stands for; those of one file or module that call each other become one. */
enum select_merge {
	SELECT_BY_LINE, /* as they are */
	SELECT_BY_FUNCTION,
	SELECT_BY_FILE,
	SELECT_BY_MODULE,
};
extern const char *const select_merge_names[]; /* by enum, NULL last */

/* Samples with one of these labels, or the others, whatever else is asked for. */
struct select_part {
	struct select_patterns labels;
	bool is_rest;
	const char *option; /* of which they are, for people */
};

/* What is asked for; zeros: all samples. */
struct select_query {
	struct select_patterns patterns[SELECT_KEYS];
	struct select_part part;
	const char *kind; /* samples of it, a word of kinds.h; NULL: what is looked at by default */
	enum select_merge merge;
	bool collapses_stdlib; /* what the standard library calls of itself is its first frame's */
	bool leaves_idle_out;  /* waits for work: profile/idle.h */
	bool has_range;
	uint64_t from_ns, to_ns; /* samples of from .. to - 1, since their recording's start; of
				    spans what lies in it */
};

/* Values of samples. */
struct select_sum {
	uint64_t all, kept; /* of those that came, of those that are left */
	uint64_t count;     /* how many came */
	uint64_t idle_ns;   /* of waits that were left out as idle */
};

/* What becomes of a stack. */
struct select_shown {
	uint32_t stack;     /* id; SELECT_LEFT_OUT */
	uint32_t leaf;      /* its last frame */
	bool is_in_library; /* that one is the standard library's */
	bool is_in_fixture; /* left out as yet: a fixture is called */
};
#define SELECT_LEFT_OUT UINT32_MAX

/* Starts as { .query, .keeps_kinds }, ends in select_release(). Of one profile. */
struct select {
	struct select_query query;
	bool keeps_kinds;      /* samples are of theirs; without query.kind those of all are left */
	struct select_sum sum; /* of those looked at: others may have other units */
	uint64_t others;       /* samples of other kinds, which are left out */
	struct kinds kinds;    /* that are looked at */
	struct idle idle;      /* what was left out as such, of what is selected otherwise */

	/* inside */
	bool has_ticks;                 /* values are ticks: others cannot join them */
	VEC(uint8_t) answers;           /* by string id and pattern of frames: what it fits */
	VEC(uint16_t) frames;           /* by frame id: bits of the keys that it matches */
	VEC(uint16_t) stacks;           /* by stack id: of all its frames */
	VEC(uint32_t) merged;           /* by frame id: the frame that stands for it */
	VEC(uint32_t) installed;        /* by string id of a library's merged name: its file */
	VEC(struct select_shown) shown; /* by stack id; empty where stacks stay as they are */
	VEC(uint8_t) threads;           /* by index: enum thread_verdict */
	VEC(bool) label_sets;           /* by set id */
};
void select_release(struct select *s);

/* Does it leave anything out, or change it? */
bool select_is_active(const struct select_query *q);

/*
 * Reads "10s..20s", "..5s", "1m..". 0; -EINVAL with a message.
 */
int select_parse_range(struct select_query *q, const char *text);

/*
 * For who looks at samples of all kinds: before select_samples(), which does this itself. 0 or
 * -ENOMEM, -EOVERFLOW.
 */
int select_prepare(struct select *s, struct profile *p);

/* Then, of the samples that p holds: whatever its kind is, is it selected? */
bool select_keeps(const struct select *s, const struct sample *sample);

/* Is it of the processes, containers and times that are? */
bool select_keeps_place(const struct select *s, const struct sample *sample);

/*
 * Of one of the times that are selected: its time becomes one since the range's start; of a span as
 * much of its value is left as lies in the range, and its duration. Is anything?
 */
bool select_cut(const struct select *s, struct sample *sample);

/*
 * Leaves those that are selected of the samples p holds now, as ticks, several kinds in ns, unless
 * kinds are kept, with times since the range's start. p gets further frames and stacks where they
 * change. 0, -ENOMEM, -EOVERFLOW; -EINVAL with a message where a range is asked for of samples that
 * have no times.
 */
int select_samples(struct select *s, struct profile *p);

/*
 * A recording of p whose samples were selected becomes one of these alone: of a range it lasts as
 * long as that, and is not whole; unless kinds are kept, its period, event and mode are those of
 * what is looked at, and of what is no time of a thread nothing is known of losses. 0 or -ENOMEM.
 */
int select_describe(const struct select *s, const struct profile *p, struct recording *r);

/* What is lost of a selection, where as much of it is lost as of all samples. */
uint64_t select_scale(const struct select_sum *sum, uint64_t lost);

#endif
