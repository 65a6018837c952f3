/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/* A recording as a picture: a call tree, by function, the largest to the left. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "base/escape.h"
#include "export/export.h"
#include "export/svg.h"
#include "profile/calltree.h"
#include "profile/kinds.h"
#include "profile/module.h"
#include "profile/waits.h"

#define SHADES 8 /* of own code, and as many of libraries' */

/* As in the page: own code in full colour, libraries paler, waiting hatched and cool. */
enum { COLOUR_OWN = 0, COLOUR_LIBRARY = SHADES, COLOUR_WAIT = 2 * SHADES, COLOUR_OTHER };

/* clang-format off */
static const struct svg_colour colours[] = {
	{ "#ffafae", "#814344", NULL, false }, { "#ffbaaa", "#8a4d41", NULL, false },
	{ "#ffc7a7", "#91583e", NULL, false }, { "#f7b88a", "#7b4b23", NULL, false },
	{ "#f9c68c", "#7f5724", NULL, false }, { "#fad591", "#816429", NULL, false },
	{ "#dac77e", "#675714", NULL, false }, { "#d7d68c", "#666424", NULL, false },
	{ "#ddbfbe", "#6a5050", NULL, false }, { "#e7c9c3", "#735954", NULL, false },
	{ "#f0d4c8", "#7b6358", NULL, false }, { "#dac2b2", "#675345", NULL, false },
	{ "#e0ceb9", "#6e5d4b", NULL, false }, { "#e6d9c1", "#736752", NULL, false },
	{ "#cec8ae", "#5e5842", NULL, false }, { "#d3d3b9", "#62624b", NULL, false },
	{ "#8cc4f4", "#2d5c82", NULL, true },  { "#d4d4d4", "#474d55", NULL, false },
};
/* clang-format on */

struct graph {
	const struct profile *p;
	struct calltree *tree;
	struct value_unit unit;
	VEC(struct svg_box) boxes;
};

static void graph_release(struct graph *g)
{
	calltree_free(g->tree);
	vec_release(&g->boxes);
}

/* The same in every picture: by the bytes of the path, and no key that is drawn anew. */
static uint32_t shade_of(const char *path, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i++)
		sum = sum * 31 + (unsigned char)path[i];
	return (sum ^ sum >> 16) % SHADES;
}

static uint32_t colour_of(const struct graph *g, const struct calltree_node *n)
{
	const struct strtab *strings = g->p->strings;
	const struct calltree_function *f;
	const char *path;
	size_t root, len;

	if (n->function == UINT32_MAX)
		return COLOUR_OTHER;
	f = &g->tree->functions[n->function];
	if (wait_is_marker(g->p, f->frame))
		return COLOUR_WAIT;
	path = strtab_get(strings, f->file);
	len = strtab_len(strings, f->file);
	root = profile_library_root(g->p, f->file);
	switch (origin_of(g->p, f->name, f->file, f->kind)) {
	case ORIGIN_OWN:
		return COLOUR_OWN + shade_of(path, len);
	case ORIGIN_LIBRARY:
	case ORIGIN_STDLIB:
		return COLOUR_LIBRARY + shade_of(path + root, len - root);
	default:
		return COLOUR_OTHER;
	}
}

static int make_boxes(struct graph *g)
{
	int r = 0;

	for (size_t i = 0; i < g->tree->node_count && !r; i++) {
		const struct calltree_node *n = &g->tree->nodes[i];
		struct svg_box box = { (double)n->total, n->parent, colour_of(g, n) };

		r = vec_push(&g->boxes, box);
	}
	return r;
}

static int put_title(const void *arg, size_t i, struct strbuf *out)
{
	const struct graph *g = arg;
	const struct calltree_node *n = &g->tree->nodes[i];
	const struct strtab *strings = g->p->strings;
	uint64_t whole = g->tree->nodes[0].total;

	if (n->function == UINT32_MAX) {
		strbuf_puts(out, "all");
	} else {
		const struct calltree_function *f = &g->tree->functions[n->function];
		const struct frame *frame = frametab_get(g->p->frames, f->frame);

		escape_append(out, strtab_get(strings, f->name), strtab_len(strings, f->name), "");
		strbuf_putc(out, '\n');
		escape_append(out, strtab_get(strings, f->file), strtab_len(strings, f->file), "");
		if (frame->line)
			strbuf_appendf(out, ":%s%u",
				       frame->flags & FRAME_LINE_APPROXIMATE ? "~" : "",
				       frame->line);
	}
	strbuf_appendf(out, "\n%s, %.1f%%", value_text(n->total, g->unit).s,
		       whole ? 100.0 * (double)n->total / (double)whole : 0.0);
	if (n->self && n->self != n->total)
		strbuf_appendf(out, "; itself %s", value_text(n->self, g->unit).s);
	return strbuf_error(out);
}

static int write_svg(struct exporting *x)
{
	_cleanup_(strbuf_releasep) struct strbuf subtitle = STRBUF_INIT;
	_cleanup_(graph_release) struct graph g = { .p = x->p };
	struct recording facts = profile_facts(x->p);
	int r = calltree_new(x->p, x->cube, KIND_TICKS, CALLTREE_BY_FUNCTION, &g.tree);

	if (r < 0)
		return r;
	g.unit = recording_value_unit(&facts);
	if ((r = make_boxes(&g)) < 0)
		return r;
	strbuf_appendf(&subtitle, "%s, %s", kinds_noun(&facts),
		       value_text(g.tree->nodes[0].total, g.unit).s);
	if (facts.duration_ns)
		strbuf_appendf(&subtitle, " in %s", units_ns(facts.duration_ns).s);
	if (strbuf_error(&subtitle))
		return -ENOMEM;
	return svg_write(&(struct svg_picture){
				 .title = facts.target ?: facts.command ?: "pyebpf",
				 .subtitle = subtitle.bytes,
				 .colours = colours,
				 .colour_count = sizeof(colours) / sizeof(colours[0]),
				 .boxes = g.boxes.items,
				 .box_count = g.boxes.len,
				 .put_title = put_title,
				 .arg = &g,
			 },
			 x->out);
}

static const char *const suffixes[] = { ".svg", NULL };

const struct exporter exporter_svg = {
	.name = "svg",
	.suffixes = suffixes,
	.help = "a flame graph as a picture, for tickets and documents",
	.needs = EXPORT_FOLDS_IMPORTS,
	.finish = write_svg,
};
