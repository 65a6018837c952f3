/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_SVG_H
#define EXPORT_SVG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/strbuf.h"

/*
 * A flame graph as a picture: SVG 1.1, root on top, which every browser, ticket and document shows,
 * and which a browser also zooms and searches, by the one script that it holds. Nothing is fetched.
 * Without scripts, as in <img>, each box still has its name and its figures as a tooltip.
 *
 * A box is an element with what foot() says of it as its title: the first line is its name.
 */

/* Colours are those of a style sheet: one for light, one for dark. */
struct svg_colour {
	const char *light, *dark; /* "#rrggbb" */
	const char *word;         /* for the legend; NULL: not in it */
	bool is_hatched;
};

/* Those that lie on one box stand side by side, in their order. */
struct svg_box {
	double width;    /* of that of the root, box 0; 0: it is not there */
	uint32_t parent; /* index of the box that it lies on, which is lower; of the root 0 */
	uint32_t colour; /* index */
};

struct svg_picture {
	const char *title;    /* foreign */
	const char *subtitle; /* ours */
	const struct svg_colour *colours;
	size_t colour_count;
	const struct svg_box *boxes; /* in preorder */
	size_t box_count;

	/* Appends the title of a box: its name, a line feed, more lines. Foreign. 0 or -ENOMEM. */
	int (*put_title)(const void *arg, size_t box, struct strbuf *out);
	const void *arg;
};

/* Boxes narrower than this, but not 0, are left out, in 1/1200 of the picture; how many is said in
 * it. */
#define SVG_NARROWEST 0.1

/* 0 or -ENOMEM; errors of the stream are left to whoever closes it. */
int svg_write(const struct svg_picture *p, FILE *out);

#endif
