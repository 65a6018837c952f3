/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_REPORT_GIL_H
#define CMD_REPORT_GIL_H

#include "cmd/load.h"
#include "cmd/terminal.h"

/*
 * The table of contention: which function waited for the GIL while which one held it, and who held
 * it, the longest first, `limit` rows (0: all) each. 0 or -ENOMEM.
 */
int report_gil_put(const struct load *loaded, uint32_t limit, const struct terminal *t);

#endif
