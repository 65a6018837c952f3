/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_HEAT_H
#define EXPORT_HEAT_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "export/functions.h"
#include "profile/cube.h"
#include "profile/idmap.h"
#include "profile/profile.h"

/*
 * What lines of Python take, by file, and who calls whom from which. A line's own is what runs
 * while it is the innermost one, be that C that it called; its total counts a stack once, however
 * often the line is in it. So files' own values are all there is, and no total is more than that.
 */
struct heat_line {
	uint32_t file;     /* string id */
	uint32_t line;     /* from 1; 0: of this file, but nobody knows where */
	uint32_t function; /* one that it is of, as in functions */
	uint64_t self, total;
};

/* A line calls a function: what is in and below that function then. */
struct heat_call {
	uint32_t line;     /* index */
	uint32_t function; /* of functions */
	uint64_t value;    /* a stack counts once */
};

/* Where a function begins that is in the file; its line may be none of the above. */
struct heat_def {
	uint32_t file; /* string id */
	uint32_t line; /* of the def; where that is unknown, the first that has samples */
	uint32_t function;
};

struct heat_file {
	uint32_t file;         /* string id */
	uint32_t first, count; /* its lines, in order */
	uint64_t self, total;
};

/* Starts as zeros, ends in heat_release(). */
struct heat {
	struct functions functions;
	VEC(struct heat_line) lines; /* by file and line */
	VEC(struct heat_file) files; /* in that order */
	uint32_t *def_line;          /* by function: that of its def */
	VEC(struct heat_def) defs;   /* by file and line */
	VEC(struct heat_call) calls; /* by line, the largest first */
	VEC(uint32_t) callers;       /* indices of calls by function, the largest first */
	uint64_t whole;
	uint64_t placeless;                   /* of it, of stacks without a line of Python */
	uint64_t hottest_self, hottest_total; /* of lines */
};

/* c: finished, of one kind of samples. 0, -ENOMEM, -EOVERFLOW. */
int heat_find(struct heat *h, const struct profile *p, const struct cube *c);
void heat_release(struct heat *h);

/* The calls that a line makes, and those that a function gets: so many from the index on. */
size_t heat_calls_of(const struct heat *h, uint32_t line, size_t *first);
size_t heat_callers_of(const struct heat *h, uint32_t function, size_t *first);

/* The defs of a file, likewise. */
size_t heat_defs_of(const struct heat *h, uint32_t file, size_t *first);

#endif
