/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_TOP_SCREEN_H
#define CMD_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/terminal.h"
#include "cmd/top_model.h"
#include "cmd/top_view.h"

/*
 * What stands where on a terminal of some size, as lines with styles: whoever draws them needs to
 * know nothing else. Names are a target's word: escaped, and as wide as they are drawn.
 */
struct top_line {
	struct line line;
	bool is_reversed; /* from edge to edge */
};

/* Starts as zeros, ends in top_screen_release(). */
struct top_screen {
	struct terminal t;
	struct top_line *lines; /* height of them */
	size_t height;
	bool has_cursor; /* in the last line, which is a prompt, behind its text */
};

/* What is said beside the sums. */
struct top_facts {
	const char *target;  /* "pid 412" */
	const char *mode;    /* "wall" */
	const char *clock;   /* "12:03:04" */
	const char *warning; /* what the recorder warned of last; NULL: of nothing */
	uint32_t freq_hz;
	bool is_system_wide; /* the share of Python in all CPU time is told */
};

#define TOP_WIDTH_MIN 20 /* narrower ones are painted as if they were so wide, and cut */
#define TOP_HEIGHT_MIN 4

/* detail: of view.function, where that is looked at. Corrects view.first. 0 or -ENOMEM. */
int top_screen_paint(struct top_screen *s, size_t width, size_t height, struct top_view *v,
		     const struct top_facts *f, const struct top_sums *sums,
		     const struct top_detail *detail, const struct profile *p);

void top_screen_release(struct top_screen *s);

#endif
