/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_TOP_H
#define CMD_TOP_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/cmd.h"
#include "cmd/record.h"
#include "cmd/top_filter.h"
#include "cmd/top_keep.h"
#include "cmd/top_model.h"
#include "cmd/top_screen.h"
#include "cmd/top_terminal.h"
#include "cmd/top_view.h"

/* The loop of `pyebpf top`; its options and exit codes are in top.c. */

/* Starts with run and view set, ends in top_release(). */
struct top {
	struct record_run run;
	struct top_keep keep;
	struct top_model *model;
	struct top_view view;
	struct top_filter filter;
	struct top_terminal *terminal;
	struct top_screen screen;
	struct top_sums sums;
	struct top_detail detail;
	struct strbuf target, mode;
	const char *warning;
	struct top_counts told; /* counted so far: what is new of them is the next slice's */
	uint64_t next_ns;       /* when what is shown is made anew */
	uint32_t generation;    /* of the model's ids */
	bool is_held;           /* as the view is paused */
	bool targets_are_gone, should_quit;
};

/* The targets are found, and the screen is drawn. 0 or a negative errno with a message. */
int top_start(struct top *t);

/* Until the user has enough of it. The same. */
int top_loop(struct top *t);

void top_release(struct top *t);

#endif
