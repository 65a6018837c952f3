/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_RANKING_H
#define CMD_RANKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/load.h"
#include "cmd/terminal.h"

struct ranked {
	uint32_t frame; /* id: the line, or the first frame of the function */
	uint64_t self;  /* in the unit of what is looked at; with what it waited for itself */
	uint64_t total; /* a stack counts once, however often it holds the function */
	uint64_t waits; /* of self: markers of waiting (profile/waits.h) are no rows of their own */
};

enum ranking_key { RANKING_SELF, RANKING_TOTAL };

/* Functions, or lines of functions, the costliest first. Ends in vec_release(). */
struct ranking {
	struct ranked *items;
	size_t len, cap;
};

/* By RANKING_SELF those without self ticks are left out. 0 or -ENOMEM with *out empty. */
int ranking_make(const struct load *l, bool by_line, enum ranking_key key, struct ranking *out);

/* ":12", of the frame itself or of the def, ":~12" where it is approximate; "": not known, or no
 * code's. */
#define LINE_TEXT_BYTES 16
void frame_line_text(const struct frame *f, bool by_line, char text[LINE_TEXT_BYTES]);

/*
 * "orders.py:31": the line of the def, or by_line the frame's own, `~` in front if it is
 * approximate. Of a file in a library: its path there; of others: the last two parts; where the
 * line has no room for these, their end. Nothing for markers.
 */
void line_put_place(struct line *l, enum style style, const struct profile *p, uint32_t frame,
		    bool by_line);

/* What a place, with two spaces before it, keeps of a line: names are cut where they leave less. */
#define PLACE_COLUMNS_MIN 10

/* The frame's name, before its place. */
void line_put_name(struct line *l, enum style style, const struct profile *p, uint32_t frame);

#endif
