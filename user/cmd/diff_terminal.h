/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_DIFF_TERMINAL_H
#define CMD_DIFF_TERMINAL_H

#include <stdio.h>

#include "export/diff_export.h"
#include "export/diff_words.h"

/*
 * A comparison for people: what was compared, the whole, what became slower, faster, new and gone,
 * what could not be told. 0 or -ENOMEM.
 */
int diff_terminal_print(FILE *out, const struct diff_report *r, enum diff_key key);

#endif
