/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_SYMBOLS_H
#define EXPORT_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "profile/profile.h"

/*
 * The tables that pprof and OTLP profiles point into: strings, functions, mappings, locations. They
 * hold what was asked for and no more, in the order in which it was asked for, so that a part of a
 * large profile gives small tables. All indices are dense and start at 0.
 */

#define SYMBOLS_NO_MAPPING UINT32_MAX

struct symbols_location {
	uint32_t function;
	uint32_t mapping; /* SYMBOLS_NO_MAPPING: a marker, or the module is not known */
	uint32_t line;    /* 1-based; 0: unknown */
	uint8_t kind;     /* enum frame_type */
};

/* Ends in symbols_release(), also after a failed symbols_init(). */
struct symbols {
	const struct profile *p;
	struct strtab *strings;     /* 0 is "" */
	struct frametab *functions; /* line is 0; name and file are ids of `strings` */
	VEC(uint32_t) mappings;     /* string ids: paths, or names of modules */
	VEC(struct symbols_location) locations;
	uint32_t *location_of; /* by frame id, the last for stacks without frames; 1 + index */
	uint32_t *string_of;   /* by string id of p */
	uint32_t python;       /* string id: the interpreter, "python" of several */
};

/*
 * p is borrowed. The interpreter is told by its path or by its name alone. 0, or -ENOMEM and others
 * of the tables.
 */
enum symbols_python { SYMBOLS_PYTHON_PATH, SYMBOLS_PYTHON_NAME };
int symbols_init(struct symbols *s, const struct profile *p, enum symbols_python python);
void symbols_release(struct symbols *s);

/* A text of ours, or, by its id, one of the profile's as valid UTF-8 without control characters. */
int symbols_text(struct symbols *s, const char *text, uint32_t *id);
int symbols_string(struct symbols *s, uint32_t string, uint32_t *id);

/*
 * Fills `out` with the locations of a stack, leaf first; one called "<unknown>" for a stack without
 * frames. 0 or a negative errno.
 */
struct symbols_stack {
	uint32_t *items; /* a VEC */
	size_t len;
	size_t cap;
};
int symbols_stack(struct symbols *s, uint32_t stack, struct symbols_stack *out);

#endif
