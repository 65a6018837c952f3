/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_REPORT_BY_H
#define CMD_REPORT_BY_H

#include "cmd/load.h"
#include "cmd/terminal.h"

/* What time is divided by, each of which a row of a table has. */
enum report_by {
	BY_FUNCTION,
	BY_THREAD,
	BY_PROCESS,
	BY_LABEL,  /* NAME=VALUE: a sample counts for each that it has */
	BY_VALUE,  /* of the labels of one name; samples without are a row, too */
	BY_MODULE, /* the two are selections: functions are merged */
	BY_FILE,
	BY_GROUP, /* the roots that a selection made: functions of a pattern */
};

/*
 * Reads --by: "thread", "process", "label", "label:NAME", "module", "file", or a pattern of
 * functions, which *q takes over as its groups. It keeps the address of the word. "interpreter"
 * becomes the label of that name.
 */
enum report_by report_by_read(const char **word, struct select_query *q);

/* Axes of the cube that it takes besides. */
unsigned int report_by_axes(enum report_by by);

/*
 * The table of shares, the largest first, `limit` rows (0: all), with an empty line behind it. By
 * thread, process, label, value or group; word: what was read. 0 or a negative errno.
 */
int report_by_put(const struct load *loaded, enum report_by by, const char *word, uint32_t limit,
		  const struct terminal *t);

#endif
