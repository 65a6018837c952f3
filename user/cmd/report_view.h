/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_REPORT_VIEW_H
#define CMD_REPORT_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/load.h"
#include "cmd/ranking.h"
#include "cmd/report_by.h"
#include "cmd/terminal.h"

/* What a report shows of the functions. */
struct report_view {
	enum ranking_key sort;
	uint32_t limit; /* of rows; 0: none */
	bool by_line;
	enum report_by by;  /* what a row of the table is */
	double min_percent; /* less of the total is left out of the tree */
};

/* Both 0 or -ENOMEM. */
int report_table_put(const struct load *loaded, const struct report_view *v,
		     const struct terminal *t);
int report_tree_put(const struct load *loaded, const struct report_view *v,
		    const struct terminal *t);

#endif
