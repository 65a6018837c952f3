/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_REPORT_SUMMARY_H
#define CMD_REPORT_SUMMARY_H

#include "cmd/load.h"
#include "cmd/terminal.h"

/* What was recorded, what of it was lost and what is selected; ends in an empty line. 0 or -ENOMEM.
 */
int report_summary_put(const struct load *loaded, struct terminal t);

#endif
