/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IMPORT_INTAKE_H
#define IMPORT_INTAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "import/import.h"
#include "import/span.h"

/*
 * What several formats have in common on the way into a profile. Functions return 0, -ENOMEM,
 * -EOVERFLOW (tables of 4 G rows), -E2BIG with a message (255 kinds), or what is said of them.
 */

/* Of a file's tables: what a hostile one, which is packed small, may make us hold. */
#define INTAKE_ROWS_MAX (1u << 24)

/* Frames of a stack. */
#define INTAKE_DEPTH_MAX (1u << 16)

/*
 * What a file's values are of. Profiles have none below 0: what a file has there is of a kind of
 * its own, `down`. Zeros: ticks.
 */
struct intake_values {
	uint16_t up, down; /* as samples have kinds; down == up: not there yet */
	uint64_t scale;    /* a value of 1 is so many of the unit */
	uint8_t unit;
	const char *name, *event; /* borrowed */
	uint64_t sum;             /* of what came, without signs */
};

/* A unit by its name, as speedscope and pprof write it: "microseconds". Counts: all other words. */
void intake_unit(const char *name, uint8_t *unit, uint64_t *scale);

/* Kind of that name; *v has its name, event (NULL: none known), unit and scale. */
int intake_values_init(struct intake_values *v, struct profile *p);

/*
 * Adds the sample with this value of *v; with nothing if that is 0. Ticks are as many samples as
 * 32 bits need. -ERANGE: beyond 2^53 ticks, or 2^63 of a unit, in all.
 */
int intake_value(struct intake_values *v, struct profile *p, struct sample s, int64_t value);

/* The same for a number with fractions of what is scaled: rounded. */
int intake_real(struct intake_values *v, struct profile *p, struct sample s, double value);

/* As strtab_intern_name(). */
int intake_string(struct profile *p, struct span s, uint32_t *id);

/* One frame on top of *stack; names as intake_string(). f has what is known beside them. */
int intake_frame(struct profile *p, struct frame f, struct span name, struct span file,
		 uint32_t *stack);

/* A frame of a source file or, without one, a marker. */
static inline struct frame intake_source_frame(struct span file, uint32_t line)
{
	return (struct frame){ .kind = file.len ? FRAME_PYTHON : FRAME_MARKER,
			       .line = file.len ? line : 0 };
}

/* What tells a thread apart: its id; where that is not enough, a name. */
int intake_thread(struct profile *p, uint32_t process, uint64_t tid, uint64_t interpreter,
		  uint32_t *index);

#endif
