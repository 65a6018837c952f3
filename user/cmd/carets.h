/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_CARETS_H
#define CMD_CARETS_H

#include <stdbool.h>
#include <stddef.h>

#include "symbolize/linetable.h"

/*
 * What Python's own tracebacks mark under a line of source (3.13, Lib/traceback.py): the expression
 * that runs by ~, and of a binary operation the operator, of a subscript its brackets, of a call
 * its arguments by ^; others by ^ throughout. Python parses the expression; here it is told by its
 * brackets and operators alone, and by ^ throughout where those are not enough.
 */
struct carets {
	size_t start, end;         /* what is marked, bytes of the line */
	size_t hot_start, hot_end; /* by ^, within that */
};

/*
 * False: nothing is marked: the columns are not known, or not of this line, or it says no more than
 * the line does. An expression of several lines is marked to the end of its first.
 */
bool carets_find(const char *line, size_t len, const struct code_position *at, struct carets *out);

#endif
