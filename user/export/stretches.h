/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_STRETCHES_H
#define EXPORT_STRETCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/timeline.h"
#include "profile/profile.h"

/*
 * What a thread did for a while, for formats that draw that on its timeline: each wait of which it
 * is known when it was, and samples in the collector, one after the other, as one.
 */
enum stretch_kind { STRETCH_WAIT, STRETCH_GIL, STRETCH_GC };
#define STRETCH_KINDS (STRETCH_GC + 1)
extern const char *const stretch_names[STRETCH_KINDS];

struct stretch {
	uint64_t begin_ns, end_ns; /* as the times of the timeline */
	uint32_t stack;
	enum stretch_kind kind;
};

/* Those of a list of a finished timeline of p, in order of their begins. */
struct stretches {
	const struct profile *p;
	struct timeline_cursor at;
	bool has_entry;
};
struct stretches stretches_begin(const struct profile *p, const struct timeline_list *list);
bool stretches_next(struct stretches *s, struct stretch *out); /* false: that was the last */

/* What its leaf says it is: "read: pipe"; borrowed, not NUL-terminated. */
const char *stretch_reason(const struct profile *p, const struct stretch *s, size_t *len);

/* String id of the innermost Python function; 0: there is none. */
uint32_t stretch_function(const struct profile *p, const struct stretch *s);

#endif
