/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/* A comparison as a picture: as wide as the current side, in the colours of what changed. */

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "export/diff_export.h"
#include "export/diff_words.h"
#include "base/escape.h"
#include "export/svg.h"

/* By enum diff_class: those of the page (assets/palette.js). */
static const struct svg_colour colours[DIFF_CLASS_COUNT] = {
	[DIFF_UNCHANGED] = { "#d4d4d4", "#474d55", "unchanged", false },
	[DIFF_UNDETERMINED] = { "#d4d4d4", "#474d55", "cannot be told", true },
	[DIFF_RARE] = { "#d4d4d4", "#474d55", NULL, true },
	[DIFF_SLOWER_1] = { "#fddbc7", "#6b3431", NULL, false },
	[DIFF_SLOWER_2] = { "#f4a582", "#a8423c", NULL, false },
	[DIFF_SLOWER_3] = { "#d6604d", "#db5a4e", NULL, false },
	[DIFF_SLOWER_4] = { "#b2182b", "#ff7a6b", NULL, false },
	[DIFF_FASTER_1] = { "#c6e2f2", "#2d4f75", NULL, false },
	[DIFF_FASTER_2] = { "#8ec3e2", "#2f6cab", NULL, false },
	[DIFF_FASTER_3] = { "#4393c3", "#3f92dd", NULL, false },
	[DIFF_FASTER_4] = { "#2166ac", "#7cc0ff", NULL, false },
	[DIFF_NEW] = { "#8d6fb8", "#b79fe0", "new", false },
	[DIFF_REMOVED] = { "#be99ff", "#2a1250", NULL, true },
};

/* By node; what only base has is not there. */
struct boxes {
	struct svg_box *items; /* a VEC */
	size_t len;
	size_t cap;
};

static void boxes_release(struct boxes *b)
{
	vec_release(b);
}

static int make_boxes(const struct diff *d, struct boxes *out)
{
	int r = 0;

	for (size_t i = 0; i < d->node_count && !r; i++) {
		const struct diff_node *n = &d->nodes[i];
		struct svg_box box = { (double)n->total, n->parent, i ? n->class : d->total.class };

		r = vec_push(out, box);
	}
	return r;
}

static void put_amounts(struct strbuf *out, const struct diff *d, double before, double after,
			const struct diff_measure *m)
{
	strbuf_appendf(out, "\n%s -> %s", diff_amount(d, before).s, diff_amount(d, after).s);
	if (before > 0 && after > 0 && !isnan(m->ratio))
		strbuf_appendf(out, ", %s (%s)", diff_change(m->ratio).s,
			       diff_interval(m->low, m->high).s);
}

static int put_title(const void *arg, size_t i, struct strbuf *out)
{
	const struct diff *d = arg;
	const struct diff_node *n = &d->nodes[i];
	const struct diff_function *f;
	size_t len;
	const char *text;

	if (n->function == UINT32_MAX) {
		strbuf_puts(out, "all");
		put_amounts(out, d, d->total.baseline, d->total.value, &d->total.measure);
		strbuf_appendf(out, ", %s", diff_class_word(d, d->total.class));
		return strbuf_error(out);
	}
	f = &d->functions[n->function];
	text = diff_name(d, f, &len);
	escape_append(out, text, len, "");
	strbuf_putc(out, '\n');
	text = diff_module(d, f, &len);
	escape_append(out, text, len, "");
	if (len && diff_line(d, f))
		strbuf_appendf(out, ":%u", diff_line(d, f));
	put_amounts(out, d, diff_baseline(d, n->base_total), (double)n->total, &n->measure);
	strbuf_appendf(out, ", %s", diff_class_word(d, n->class));
	return strbuf_error(out);
}

/* What the picture cannot show: what is gone. */
static void put_gone(struct strbuf *out, const struct diff *d)
{
	double gone = 0;

	for (size_t i = 1; i < d->node_count; i++)
		if (!d->nodes[i].total && d->nodes[d->nodes[i].parent].total)
			gone += diff_baseline(d, d->nodes[i].base_total);
	if (gone > 0)
		strbuf_appendf(out, "; not drawn, as it is gone: %s", diff_amount(d, gone).s);
}

static int write_svg(const struct diff_report *r, FILE *out)
{
	_cleanup_(strbuf_releasep) struct strbuf subtitle = STRBUF_INIT, title = STRBUF_INIT;
	_cleanup_(boxes_release) struct boxes boxes = { 0 };
	const struct diff *d = r->diff;
	struct svg_colour shown[DIFF_CLASS_COUNT];
	int e = make_boxes(d, &boxes);

	if (e < 0)
		return e;
	memcpy(shown, colours, sizeof(shown));
	shown[DIFF_SLOWER_3].word = diff_class_word(d, DIFF_SLOWER_3);
	shown[DIFF_FASTER_3].word = diff_class_word(d, DIFF_FASTER_3);
	for (size_t i = 0; i < r->input->cube.runs.len; i++)
		strbuf_appendf(&title, "%s%s", i ? " - " : "", r->input->cube.runs.items[i].file);
	strbuf_appendf(&subtitle, "%s: %s -> %s", diff_amount_words(d).s,
		       diff_amount(d, d->total.baseline).s, diff_amount(d, d->total.value).s);
	put_gone(&subtitle, d);
	if (strbuf_error(&title) || strbuf_error(&subtitle))
		return -ENOMEM;
	return svg_write(
		&(struct svg_picture){
			.title = strbuf_str(&title),
			.subtitle = strbuf_str(&subtitle),
			.colours = shown,
			.colour_count = DIFF_CLASS_COUNT,
			.boxes = boxes.items,
			.box_count = boxes.len,
			.put_title = put_title,
			.arg = d,
		},
		out);
}

const struct diff_exporter diff_exporter_svg = {
	.name = "svg",
	.suffix = ".svg",
	.help = "a flame graph as a picture, in the colours of what changed",
	.write = write_svg,
};
