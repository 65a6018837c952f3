/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_TOP_VIEW_H
#define CMD_TOP_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "cmd/top_model.h"

/* What of it is looked at, and what keys do to that. Knows no terminal: keys are numbers. */

/* Characters are their code points. */
enum top_key {
	TOP_KEY_UP = 0x110000,
	TOP_KEY_DOWN,
	TOP_KEY_LEFT,
	TOP_KEY_RIGHT,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_END,
	TOP_KEY_BACKSPACE,
	TOP_KEY_OTHER, /* none that we know */
	TOP_KEY_TAB = '\t',
	TOP_KEY_ENTER = '\n',
	TOP_KEY_ESCAPE = 0x1b,
	TOP_KEY_CLEAR = 0x15,  /* ^U */
	TOP_KEY_REDRAW = 0x0c, /* ^L */
};

/* What is to be done then; but for the first all mean that it is painted anew. */
enum top_action {
	TOP_DO_NOTHING,
	TOP_DO_PAINT,
	TOP_DO_SUM, /* something else is looked at */
	TOP_DO_REDRAW,
	TOP_DO_RESET,
	TOP_DO_FILTER, /* by view.input */
	TOP_DO_SAVE,   /* to view.input */
	TOP_DO_QUIT,
};

enum top_prompt { TOP_PROMPT_NONE, TOP_PROMPT_FILTER, TOP_PROMPT_SEARCH, TOP_PROMPT_SAVE };

/* Starts by top_view_init(), ends in top_view_release(). */
struct top_view {
	enum top_table table;
	enum top_span span;
	enum top_column sort;
	struct top_scope scope;
	uint32_t function; /* a frame of the one that is looked at; TOP_NONE: a table is */
	bool has_help, is_paused;
	bool has_seconds;  /* instead of shares of the time */
	bool has_waits;    /* so there are such columns */
	bool has_tasks;    /* and such a table */
	size_t cursor;     /* row, from 0 */
	uint32_t followed; /* id of the row that it stays on; TOP_NONE: stays where it is */
	size_t first;      /* row or line at the top; what is painted corrects it */
	size_t page;       /* rows that fit, as was painted last */
	enum top_prompt prompt;
	struct strbuf input;   /* of the prompt */
	struct strbuf search;  /* what was searched for last */
	struct strbuf filter;  /* words of the selection, as they could be typed */
	struct strbuf save_as; /* what the prompt proposes */
	struct strbuf message; /* until the next key */
};

void top_view_init(struct top_view *v);
void top_view_release(struct top_view *v);

/* sums, in order, are of the view as it is. */
enum top_action top_view_key(struct top_view *v, int key, const struct top_sums *sums,
			     const struct profile *p);

/* They are new: puts them in order, and the cursor where its row is now. */
void top_view_arrange(struct top_view *v, struct top_sums *sums);

/* All ids are new. */
void top_view_forget_ids(struct top_view *v);

/* Is the column one of the table's? */
bool top_view_has_column(const struct top_view *v, enum top_column column);

/* In what they say of it: names, numbers, files. In any case of letters. */
bool top_row_matches(const struct top_row *row, enum top_table table, const struct profile *p,
		     const char *text);

#endif
