/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_EXPORT_H
#define EXPORT_EXPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "profile/cube.h"
#include "profile/profile.h"

struct texts;

struct export_attribute {
	const char *key, *value; /* NUL-terminated, borrowed; keys are ASCII */
};

struct export_attributes {
	const struct export_attribute *items;
	size_t count;
};

/* Formats that leave something out, or put it in, where the user asks for it. */
struct export_opts {
	bool no_lines;             /* functions, not lines */
	bool threads;              /* tell threads apart: exporter_axes() */
	bool processes;            /* tell processes apart: the same */
	bool header;               /* collapsed: a first line that says how long one sample is */
	uint32_t limit;            /* JSON: so many paths, and functions, at most; 0: all */
	double min_percent;        /* JSON: and none that is less of all ticks than this */
	const struct texts *notes; /* page: what its reader should know; NULL: nothing */
	/* OTLP: where the profile is from, "service.name" among them; none: the host. */
	struct export_attributes resource;
};

struct exporter {
	const char *name;
	const char *const *suffixes; /* ".collapsed", NULL last */
	const char *help;            /* one line, lower case, no full stop */
	unsigned int axes;           /* takes a cube with these, at least: enum cube_axis */

	/*
	 * Writes what the cube (finished) has of p; p's own samples are not looked at. 0 or a
	 * negative errno. Errors of the stream end it early and are left to whoever closes that.
	 */
	int (*write)(const struct profile *p, const struct cube *c, const struct export_opts *o,
		     FILE *out);
};

/* All of them, NULL last. */
extern const struct exporter *const exporters[];

/* Of the cube that it is to be given. */
unsigned int exporter_axes(const struct exporter *e, const struct export_opts *o);

/* NULL if there is none of that name. */
const struct exporter *exporter_find(const char *name);

/* By the suffix of a file name; NULL if none writes such files. */
const struct exporter *exporter_for_path(const char *path);

/*
 * Writes to the file at path, which appears whole or not at all; "-" is standard output. 0 or a
 * negative errno, -EPIPE where the reader of our output has left.
 */
int exporter_write(const struct exporter *e, const struct profile *p, const struct cube *c,
		   const struct export_opts *o, const char *path);

extern const struct exporter exporter_collapsed;
extern const struct exporter exporter_otlp;
extern const struct exporter exporter_pprof;
extern const struct exporter exporter_html;
extern const struct exporter exporter_json;

#endif
