/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_DIFF_EXPORT_H
#define EXPORT_DIFF_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "diff/compat.h"
#include "diff/diff.h"
#include "diff/environment.h"
#include "diff/gate.h"
#include "diff/input.h"
#include "export/largest.h"

/*
 * A finished comparison, as the outputs get it: by our rules (diff and gate), or by CPython's
 * (compat), the others being NULL. All pointers are borrowed.
 */
struct diff_report {
	const struct diff_input *input;
	const struct diff *diff;
	const struct gate *gate; /* as asked for, or with the limits by default */
	const struct compat *compat;
	const struct differences *environment;   /* where the sides ran, as far as it differs */
	const struct texts *notes;               /* all there are, in the order to tell them */
	const struct profile *sides[DIFF_SIDES]; /* page: counters of each; NULL: not known */
	const struct texts *losses;              /* page: what each side lost; NULL: not asked */
	const char *source_root;                 /* page: as export_opts has it */
	const char *group_by;   /* glob whose functions are the roots; NULL: none */
	bool is_gated;          /* the gate decides; else it is only what outputs need */
	uint32_t limit;         /* rows a table has at most where it is for people; 0: all */
	struct largest largest; /* what JSON leaves out */
};

struct diff_exporter {
	const char *name;
	const char *suffix; /* ".json" */
	const char *help;   /* one line, lower case, no full stop */
	bool knows_compat;  /* can write what CPython's rules give */
	bool needs_threads; /* of an input by_thread only */

	/* 0 or a negative errno. Errors of the stream are left to whoever closes it. */
	int (*write)(const struct diff_report *r, FILE *out);
};

/* All of them, NULL last. */
extern const struct diff_exporter *const diff_exporters[];

/* By the suffix of a file name; NULL if none writes such files. */
const struct diff_exporter *diff_exporter_for_path(const char *path);

/*
 * Writes to the file at path, which appears whole or not at all; "-" is standard output.
 * max_bytes: as export_bytes_max() has them; 0: any number. 0 or a negative errno, -EPIPE where the
 * reader of our output has left.
 */
int diff_exporter_write(const struct diff_exporter *e, const struct diff_report *r,
			const char *path, uint64_t max_bytes);

extern const struct diff_exporter diff_exporter_json;
extern const struct diff_exporter diff_exporter_markdown;
extern const struct diff_exporter diff_exporter_junit;
extern const struct diff_exporter diff_exporter_html;
extern const struct diff_exporter diff_exporter_svg;

#endif
