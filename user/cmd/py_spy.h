/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_PY_SPY_H
#define CMD_PY_SPY_H

#include <stddef.h>

/* What people type who know py-spy (0.4), and what does the same here. */

/* An option of its commands, by its long name (len bytes) or, if name is NULL, by its key. NULL: it
 * has none such, or command is none that stands for one of them. */
const char *py_spy_option(const char *command, const char *name, size_t len, char key);

/* One of its commands: what is said of it, and *try: what to type. NULL: it has none such. */
const char *py_spy_command(const char *name, const char **try);

#endif
