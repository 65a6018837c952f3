/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_DOCTOR_TEXT_H
#define CMD_DOCTOR_TEXT_H

#include "cmd/terminal.h"

/* How the parts of `pyebpf doctor` are written. */

#define DOCTOR_LABEL_COLUMN 14

/*
 * Appends text, which may be a target's, and goes on in a new line from that column where the
 * terminal's width ends, between words if possible. 0 or -ENOMEM.
 */
int doctor_wrap(struct line *l, size_t column, enum style style, const char *text);

/* Prints "LABEL TEXT", wrapped. */
int doctor_put(const struct terminal *t, const char *label, enum style style, const char *text);

#endif
