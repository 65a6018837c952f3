/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_SELECT_H
#define PROFILE_SELECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
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
 * PROCESS a name or a PID, CONTAINER the start of an id, or NAMESPACE/POD. LABEL is NAME=VALUE.
 */
enum select_key {
	SELECT_FOCUS,  /* FUNCTION: samples with such a frame */
	SELECT_IGNORE, /* FUNCTION: samples without one */
	SELECT_HIDE,   /* FUNCTION: such frames are dropped, what they did is their callers' */
	SELECT_MODULE, /* samples with a frame of it */
	SELECT_FILE,   /* the same */
	SELECT_THREAD, /* samples of it */
	SELECT_PROCESS,
	SELECT_CONTAINER,
	SELECT_LABEL,
};
#define SELECT_KEYS (SELECT_LABEL + 1)

/* Borrowed. */
struct select_patterns {
	const char *const *items;
	size_t len;
};

/* What is asked for; zeros: all samples. */
struct select_query {
	struct select_patterns patterns[SELECT_KEYS];
	bool has_range;
	uint64_t from_ns, to_ns; /* samples of from .. to - 1, since their recording's start */
};

/* Values of samples. */
struct select_sum {
	uint64_t all, kept; /* of those that came, of those that are left */
};

/* Starts as { .query = ... }, ends in select_release(). Of one profile. */
struct select {
	struct select_query query;
	struct select_sum sum;

	/* inside */
	VEC(uint16_t) frames;    /* by frame id: bits of the keys that it matches */
	VEC(uint16_t) stacks;    /* by stack id: of all its frames */
	VEC(uint32_t) shown;     /* by stack id: without hidden frames */
	VEC(uint8_t) threads;    /* by index: enum verdict */
	VEC(uint8_t) label_sets; /* by set id: the same */
};
void select_release(struct select *s);

/* Does it leave anything out, or change it? */
bool select_is_active(const struct select_query *q);

/*
 * Reads "10s..20s", "..5s", "1m..". 0; -EINVAL with a message.
 */
int select_parse_range(struct select_query *q, const char *text);

/*
 * Leaves those that are selected of the samples p holds now, with times since the range's start. p
 * gets further stacks where frames are hidden. 0, -ENOMEM, -EOVERFLOW; -EINVAL with a message where
 * a range is asked for of samples that have no times.
 */
int select_samples(struct select *s, struct profile *p);

/* A recording whose samples were selected: of a range it lasts as long as that, and is not whole.
 */
void select_trim(const struct select_query *q, struct recording *r);

/* What is lost of a selection, where as much of it is lost as of all samples. */
uint64_t select_scale(const struct select_sum *sum, uint64_t lost);

#endif
