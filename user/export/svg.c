/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/svg.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "base/utf8.h"
#include "base/escape.h"
#include "export/markup.h"
#include "svg_script.h"

#define WIDTH 1200
#define MARGIN 10
#define TITLE_COLUMNS 100
#define ROW 16         /* of a box, a pixel of which is the gap to the next */
#define HEAD 58        /* title, subtitle, legend or what the mouse is on */
#define CHARACTER 7.25 /* the width of one, at 12 pixels; also in assets/svg.js */
#define WIDE 0x1100    /* code points from there on take two, as that has it */

/* The first line, as far as it fits into so many columns, ".." where it does not. */
static int put_shortened(struct strbuf *out, const char *bytes, size_t len, size_t room)
{
	size_t columns = 0, cut = 0, i = 0;
	uint32_t c;

	while (i < len && columns <= room) {
		i += utf8_decode(bytes + i, len - i, &c);
		columns += 1 + (c >= WIDE);
		if (columns <= room - 2)
			cut = i;
	}
	if (columns <= room)
		return markup_append(out, bytes, len);
	if (room < 3)
		return 0;
	markup_append(out, bytes, cut);
	return strbuf_puts(out, "..");
}

/* Foreign bytes as a line of XML: controls, which that may not hold, are escaped by then. */
static int put_foreign(struct strbuf *out, const char *bytes, size_t len, size_t room)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	int r = escape_append(&text, bytes, len, "");

	return r < 0 ? r : put_shortened(out, strbuf_str(&text), text.len, room);
}

/* --- what is around the boxes ----------------------------------------------------------------- */

/* The relative luminance of WCAG 2.2, of "#rrggbb". */
static double luminance(const char *colour)
{
	static const double weights[] = { 0.0722, 0.7152, 0.2126 };
	unsigned long rgb = strtoul(colour + 1, NULL, 16);
	double sum = 0;

	for (int i = 0; i < 3; i++, rgb >>= 8) {
		double v = (double)(rgb & 0xff) / 255;

		sum += weights[i] * (v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4));
	}
	return sum;
}

/* Of a colour, and of the text on it: black and white have the same contrast at 0.179. */
static void put_fill(struct strbuf *out, size_t i, const char *colour)
{
	strbuf_appendf(out, ".c%zu { fill: %s; }\n.c%zu + text { fill: %s; }\n", i, colour, i,
		       luminance(colour) > 0.179 ? "#07080a" : "#ffffff");
}

static void put_style(struct strbuf *out, const struct svg_picture *p)
{
	strbuf_puts(out, "<style>\n"
			 "text { font: 12px monospace; fill: #07080a; }\n"
			 ".title { font: bold 15px sans-serif; }\n"
			 ".small, .button { font: 12px sans-serif; fill: #5a6270; }\n"
			 ".button { cursor: pointer; text-anchor: end; text-decoration: underline;"
			 " display: none; }\n"
			 ".alive .button { display: inline; }\n"
			 ".alive #graph g { cursor: pointer; }\n"
			 "#graph g:hover rect { stroke: #07080a; }\n"
			 "#graph .found rect { fill: #e83fe0; }\n"
			 ".paper { fill: #ffffff; }\n.lines { stroke: #07080a; }\n");
	for (size_t i = 0; i < p->colour_count; i++)
		put_fill(out, i, p->colours[i].light);
	strbuf_puts(out, "@media (prefers-color-scheme: dark) {\n"
			 "text { fill: #ffffff; }\n.small, .button { fill: #a3abb8; }\n"
			 "#graph g:hover rect { stroke: #ffffff; }\n"
			 "#graph .found rect { fill: #a3189c; }\n"
			 ".paper { fill: #16191e; }\n.lines { stroke: #ffffff; }\n");
	for (size_t i = 0; i < p->colour_count; i++)
		put_fill(out, i, p->colours[i].dark);
	strbuf_puts(out, "}\n</style>\n");
}

static void put_hatching(struct strbuf *out)
{
	strbuf_puts(out, "<defs><pattern id=\"hatched\" width=\"6\" height=\"6\" "
			 "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
			 "<path d=\"M0 0V6\" class=\"lines\" stroke-opacity=\"0.25\" "
			 "stroke-width=\"3\"/></pattern></defs>\n");
}

/*
 * Words of the colours from the right end of the subtitle's line. Each stands in a group: a word
 * behind another one's box would have the colour of the names in such boxes.
 */
static void put_legend(struct strbuf *out, const struct svg_picture *p)
{
	double x = WIDTH - MARGIN;

	for (size_t i = p->colour_count; i--;) {
		const struct svg_colour *c = &p->colours[i];

		if (!c->word)
			continue;
		x -= (double)strlen(c->word) * 6.5;
		strbuf_appendf(out, "<g><text x=\"%.0f\" y=\"36\" class=\"small\">%s</text>", x,
			       c->word);
		x -= 16;
		strbuf_appendf(out,
			       "<rect x=\"%.0f\" y=\"26\" width=\"12\" height=\"12\" "
			       "class=\"c%zu\"/>",
			       x, i);
		if (c->is_hatched)
			strbuf_appendf(out,
				       "<rect x=\"%.0f\" y=\"26\" width=\"12\" height=\"12\" "
				       "fill=\"url(#hatched)\"/>",
				       x);
		strbuf_puts(out, "</g>\n");
		x -= 12;
	}
}

static void put_head(struct strbuf *out, const struct svg_picture *p, uint32_t depth, size_t narrow)
{
	uint32_t height = HEAD + (depth + 1) * ROW + MARGIN;

	strbuf_appendf(out,
		       "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		       "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%d\" "
		       "height=\"%u\" viewBox=\"0 0 %d %u\">\n<title>",
		       WIDTH, height, WIDTH, height);
	put_foreign(out, p->title, strlen(p->title), SIZE_MAX);
	strbuf_puts(out, "</title>\n");
	put_style(out, p);
	put_hatching(out);
	strbuf_puts(out, "<rect width=\"100%\" height=\"100%\" class=\"paper\"/>\n"
			 "<text x=\"10\" y=\"20\" class=\"title\">");
	put_foreign(out, p->title, strlen(p->title), TITLE_COLUMNS);
	strbuf_puts(out, "</text>\n<text x=\"10\" y=\"36\" class=\"small\">");
	markup_append(out, p->subtitle, strlen(p->subtitle));
	if (narrow)
		strbuf_appendf(out, "; %s too narrow to be drawn", units_count(narrow).s);
	strbuf_puts(out, "</text>\n"
			 "<text x=\"10\" y=\"52\" class=\"small\" id=\"details\"></text>\n"
			 "<text x=\"1190\" y=\"20\" class=\"button\" id=\"search\">Search</text>\n"
			 "<text x=\"1130\" y=\"20\" class=\"button\" id=\"reset\" "
			 "style=\"display: none\">Reset zoom</text>\n"
			 "<text x=\"1190\" y=\"52\" class=\"small\" text-anchor=\"end\" "
			 "id=\"found\"></text>\n");
	put_legend(out, p);
}

/* --- boxes ------------------------------------------------------------------------------------ */

/* Figures with three digits behind the point, without zeros at their end. */
static void put_figure(struct strbuf *out, const char *name, double figure)
{
	char text[32];
	size_t len = (size_t)snprintf(text, sizeof(text), "%.3f", figure);

	while (text[len - 1] == '0')
		len--;
	len -= text[len - 1] == '.';
	strbuf_appendf(out, " %s=\"%.*s\"", name, (int)len, text);
}

static void put_rect(struct strbuf *out, double x, uint32_t y, double width)
{
	strbuf_puts(out, "<rect");
	put_figure(out, "x", x);
	strbuf_appendf(out, " y=\"%u\"", y);
	put_figure(out, "width", width);
	strbuf_appendf(out, " height=\"%d\"", ROW - 1);
}

/* Where a box is, in 1/1200 of the picture and rows. */
struct place {
	double x, width;
	double next; /* where the next box on it begins */
	uint32_t depth;
};

static struct place *find_places(const struct svg_picture *p)
{
	double whole = p->box_count ? p->boxes[0].width : 0;
	double scale = whole > 0 ? (WIDTH - 2 * MARGIN) / whole : 0;
	struct place *places = calloc(p->box_count + 1, sizeof(*places));

	for (size_t i = 0; places && i < p->box_count; i++) {
		struct place *on = &places[p->boxes[i].parent], *at = &places[i];

		at->width = p->boxes[i].width;
		if (i) {
			at->x = on->next;
			at->depth = on->depth + 1;
			on->next += at->width;
		}
		at->next = at->x;
	}
	for (size_t i = 0; places && i < p->box_count; i++) {
		places[i].x *= scale;
		places[i].width *= scale;
	}
	return places;
}

/* text: room for the title. */
static int put_box(struct strbuf *out, const struct svg_picture *p, size_t i,
		   const struct place *at, struct strbuf *text)
{
	uint32_t colour = p->boxes[i].colour, y = HEAD + at->depth * ROW;
	size_t room = (size_t)((at->width - 5 > 0 ? at->width - 5 : 0) / CHARACTER), first;
	int r;

	strbuf_truncate(text, 0);
	r = p->put_title(p->arg, i, text);
	if (r < 0)
		return r;
	first = strcspn(strbuf_str(text), "\n");
	strbuf_puts(out, "<g><title>");
	markup_append(out, strbuf_str(text), text->len);
	strbuf_puts(out, "</title>");
	put_rect(out, at->x, y, at->width);
	strbuf_appendf(out, " class=\"c%u\"/>", colour);
	if (room >= 3) {
		strbuf_puts(out, "<text");
		put_figure(out, "x", at->x + 3);
		strbuf_appendf(out, " y=\"%u\">", y + 12);
		put_shortened(out, strbuf_str(text), first, room);
		strbuf_puts(out, "</text>");
	}
	if (p->colours[colour].is_hatched) {
		put_rect(out, at->x, y, at->width);
		strbuf_puts(out, " fill=\"url(#hatched)\" pointer-events=\"none\"/>");
	}
	return strbuf_puts(out, "</g>\n");
}

static int put_boxes(const struct svg_picture *p, const struct place *places, FILE *out)
{
	_cleanup_(strbuf_releasep) struct strbuf line = STRBUF_INIT, text = STRBUF_INIT;
	int r = 0;

	fprintf(out, "<svg x=\"%d\" id=\"graph\">\n", MARGIN);
	for (size_t i = 0; i < p->box_count && !r; i++) {
		if (places[i].width < SVG_NARROWEST)
			continue;
		strbuf_truncate(&line, 0);
		r = put_box(&line, p, i, &places[i], &text);
		fwrite(strbuf_str(&line), 1, line.len, out);
	}
	fputs("</svg>\n", out);
	return r;
}

int svg_write(const struct svg_picture *p, FILE *out)
{
	_cleanup_(strbuf_releasep) struct strbuf head = STRBUF_INIT;
	_cleanup_(freep) struct place *places = find_places(p);
	uint32_t depth = 0;
	size_t narrow = 0;
	int r;

	if (!places)
		return -ENOMEM;
	for (size_t i = 0; i < p->box_count; i++) {
		if (places[i].width < SVG_NARROWEST)
			narrow += p->boxes[i].width > 0;
		else if (places[i].depth > depth)
			depth = places[i].depth;
	}
	put_head(&head, p, depth, narrow);
	if (strbuf_error(&head))
		return -ENOMEM;
	fwrite(head.bytes, 1, head.len, out);
	r = put_boxes(p, places, out);
	fputs("<script><![CDATA[\n", out);
	fwrite(svg_script, 1, sizeof(svg_script), out);
	fputs("]]></script>\n</svg>\n", out);
	return r;
}
