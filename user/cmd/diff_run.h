/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_DIFF_RUN_H
#define CMD_DIFF_RUN_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cmd/cmd.h"
#include "diff/diff.h"
#include "export/diff_export.h"
#include "export/diff_words.h"
#include "import/import.h"
#include "profile/select.h"

/* A comparison as it was asked for. Starts as DIFF_CALL_INIT; strings are borrowed. */
struct diff_call {
	const char *const *base, *const *current; /* recordings, each a run */
	size_t base_count, current_count;
	bool is_one; /* recordings are given once, and are both sides */
	enum diff_normalize normalize;
	double work[DIFF_SIDES]; /* units of work of a run; 0: what the files say */
	const struct opt_list *renames;
	unsigned int compat; /* enum compat_version, or DIFF_NO_COMPAT */
	const char *group_by;
	struct select_query select;
	struct opt_list labels[DIFF_SIDES]; /* of the side's samples; of one side: the other ones
					       are the other side's */
	struct import_choice choice;
	bool folds_imports; /* profile/imports.h; never with compat */
	bool is_forced;
	bool is_gated;
	struct gate_options gate;
	bool is_strict; /* different environments are inconclusive */
	enum diff_key key;
	uint32_t limit;     /* rows of tables, DIFF_LIMIT_USUAL: a few; of JSON, likewise: all */
	double min_percent; /* of JSON */
	const struct opt_list *outputs;     /* files; none: the table on `out` */
	const struct diff_exporter *format; /* of outputs; NULL: by their suffixes */
	const char *source_root;            /* of pages; NULL: as the recordings say */
	bool should_open;                   /* pages among them, in a browser */
	FILE *out;
};
#define DIFF_NO_COMPAT UINT_MAX
#define DIFF_LIMIT_USUAL UINT32_MAX
#define DIFF_CALL_INIT                                                                             \
	{                                                                                          \
		.compat = DIFF_NO_COMPAT, .gate = GATE_OPTIONS_DEFAULT, .limit = DIFF_LIMIT_USUAL, \
	}

/*
 * Finds mistakes in it before any file is read: outputs of unknown format, options that exclude
 * each other. EXIT_OK, or EXIT_USAGE with a message.
 */
int diff_check_usage(const struct call *call, const struct diff_call *c);

/* Are the sides parts of the same recordings, told by labels? */
static inline bool diff_call_has_parts(const struct diff_call *c)
{
	return c->labels[DIFF_BASE].len || c->labels[DIFF_CURRENT].len;
}

/* Loads, compares, writes. Returns the exit code, with a message where it failed. */
int diff_run(const struct call *call, const struct diff_call *c);

#endif
