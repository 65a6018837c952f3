/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/ranking.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/calltree.h"
#include "profile/module.h"
#include "profile/waits.h"

/* rows: by what of(tree, node) says, which a node's function or line is. */
typedef uint32_t row_of_node(const struct calltree *tree, uint32_t node);

static uint32_t function_of(const struct calltree *tree, uint32_t node)
{
	return tree->nodes[node].function;
}

static uint32_t line_of(const struct calltree *tree, uint32_t node)
{
	return tree->nodes[node].frame;
}

/* Why a function waited is no function that it called: the time is its own. */
static void take_waits(const struct profile *p, const struct calltree *tree, row_of_node *of,
		       struct ranked *rows)
{
	for (uint32_t i = 1; i < tree->node_count; i++) {
		const struct calltree_node *n = &tree->nodes[i];
		struct ranked *marker, *caller;

		if (!n->parent || !wait_is_marker(p, n->frame))
			continue;
		marker = &rows[of(tree, i)];
		caller = &rows[of(tree, n->parent)];
		marker->self -= n->self;
		marker->total -= n->total;
		caller->self += n->self;
		caller->waits += n->self;
	}
}

static void drop_empty(struct ranking *out, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (out->items[i].total)
			out->items[kept++] = out->items[i];
	out->len = kept;
}

static int rank_functions(const struct profile *p, const struct calltree *tree, struct ranking *out)
{
	if (vec_reserve(out, tree->function_count) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < tree->function_count; i++) {
		const struct calltree_function *f = &tree->functions[i];

		out->items[i] = (struct ranked){ f->frame, f->self, f->total, 0 };
	}
	take_waits(p, tree, function_of, out->items);
	drop_empty(out, tree->function_count);
	return 0;
}

/* Preorder: a line that stands below itself was counted further out. */
static int rank_lines(const struct profile *p, const struct calltree *tree, struct ranking *out)
{
	uint32_t count = frametab_count(p->frames);
	_cleanup_(freep) uint32_t *inside = calloc((size_t)count + 1, sizeof(*inside));

	if (!inside || vec_reserve(out, count) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		out->items[i] = (struct ranked){ .frame = i };
	for (uint32_t i = 1; i < tree->node_count; i++) {
		const struct calltree_node *n = &tree->nodes[i];

		out->items[n->frame].self += n->self;
		if (i < inside[n->frame])
			continue;
		out->items[n->frame].total += n->total;
		inside[n->frame] = n->end;
	}
	take_waits(p, tree, line_of, out->items);
	drop_empty(out, count);
	return 0;
}

/* -1 for the larger. */
static int compare_ticks(uint64_t x, uint64_t y)
{
	return x > y ? -1 : x < y;
}

static int compare_by_self(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	int d = compare_ticks(x->self, y->self);

	if (!d)
		d = compare_ticks(x->total, y->total);
	return d ? d : x->frame < y->frame ? -1 : x->frame > y->frame;
}

static int compare_by_total(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	int d = compare_ticks(x->total, y->total);

	return d ? d : compare_by_self(a, b);
}

int ranking_make(const struct load *l, bool by_line, enum ranking_key key, struct ranking *out)
{
	_cleanup_(calltree_freep) struct calltree *tree = NULL;
	int r = calltree_new(l->profile, &l->cube, KIND_TICKS,
			     by_line ? CALLTREE_BY_LINE : CALLTREE_BY_FUNCTION, &tree);

	if (!r)
		r = by_line ? rank_lines(l->profile, tree, out)
			    : rank_functions(l->profile, tree, out);
	if (r < 0) {
		vec_release(out);
		return r;
	}
	if (out->len)
		qsort(out->items, out->len, sizeof(*out->items),
		      key == RANKING_SELF ? compare_by_self : compare_by_total);
	while (key == RANKING_SELF && out->len && !out->items[out->len - 1].self)
		out->len--;
	return 0;
}

/* What is left of a path for a table. */
static const char *short_path(const struct profile *p, uint32_t file, size_t *len)
{
	const char *path = strtab_get(p->strings, file), *end, *at;
	size_t root_len = profile_library_root(p, file);

	*len = strtab_len(p->strings, file) - root_len;
	if (root_len)
		return path + root_len;
	end = path + *len;
	at = memrchr(path, '/', *len);
	if (at)
		at = memrchr(path, '/', (size_t)(at - path));
	if (!at)
		return path;
	at++;
	*len = (size_t)(end - at);
	return at;
}

void frame_line_text(const struct frame *f, bool by_line, char text[LINE_TEXT_BYTES])
{
	uint32_t number = by_line ? f->line : f->first_line;
	bool is_approximate = by_line && (f->flags & FRAME_LINE_APPROXIMATE);

	*text = 0;
	if (number && frame_has_place(f->kind))
		snprintf(text, LINE_TEXT_BYTES, ":%s%" PRIu32, is_approximate ? "~" : "", number);
}

void line_put_place(struct line *l, enum style style, const struct profile *p, uint32_t frame,
		    bool by_line)
{
	const struct frame *f = frametab_get(p->frames, frame);
	size_t len;
	const char *file = short_path(p, f->file, &len);
	char line[LINE_TEXT_BYTES];

	if (!frame_has_place(f->kind))
		return;
	frame_line_text(f, by_line, line);
	line_put_tail(l, style, file, len, line, line_room(l));
}

void line_put_name(struct line *l, enum style style, const struct profile *p, uint32_t frame)
{
	const struct frame *f = frametab_get(p->frames, frame);
	size_t room = line_room(l);

	if (frame_has_place(f->kind) && room != SIZE_MAX)
		room = room > PLACE_COLUMNS_MIN ? room - PLACE_COLUMNS_MIN : 0;
	line_put_tail(l, style, strtab_get(p->strings, f->name), strtab_len(p->strings, f->name),
		      "", room);
}
