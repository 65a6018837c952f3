/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "diff/compat.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/vec.h"
#include "profile/idmap.h"

#define NONE UINT32_MAX
#define PRUNED_SHARE 0.001 /* of all samples: nodes with less are not drawn */

const char *const compat_names[COMPAT_COUNT] = {
	[COMPAT_3_15_0A8] = "3.15.0a8",
	[COMPAT_3_15] = "3.15",
};

/* A call path of (file, function), of both sides. */
struct path {
	uint32_t parent;
	uint32_t function;
	uint64_t self[DIFF_SIDES], total[DIFF_SIDES];
};

/* A call path of lines, of one side; parents before children. */
struct line {
	uint32_t parent;
	uint32_t frame; /* the first of its (file, line, function) */
	uint32_t path;
	uint32_t first_child, next; /* NONE: none */
	bool is_drawn;
	bool is_large; /* in one of the threads */
	uint64_t self, total;
};

struct tree {
	VEC(struct line) lines; /* [0] is the root */
	uint32_t *line_of;      /* by stack id */
	uint64_t samples;
};

struct builder {
	const struct diff_input *in;
	struct compat *c;
	struct idmap map;
	uint32_t *frame_of;    /* by frame id: the first of that line */
	uint32_t *function_of; /* by frame id: the first of that function */
	VEC(struct path) paths;
	struct tree tree[DIFF_SIDES];
	VEC(uint32_t) work;
	VEC(uint32_t) children;
};

static void builder_release(struct builder *b)
{
	idmap_release(&b->map);
	free(b->frame_of);
	free(b->function_of);
	vec_release(&b->paths);
	for (int s = 0; s < DIFF_SIDES; s++) {
		vec_release(&b->tree[s].lines);
		free(b->tree[s].line_of);
	}
	vec_release(&b->work);
	vec_release(&b->children);
}

/* --- frames, paths, lines --------------------------------------------------------------------- */

/* Markers are of no file, or of "~". */
static uint32_t file_of(const struct frame *f)
{
	return frame_has_place(f->kind) ? f->file : 0;
}

static bool is_same(const struct frame *f, const struct frame *g, bool by_line)
{
	return f->name == g->name && file_of(f) == file_of(g) && (!by_line || f->line == g->line);
}

/* For each frame the first with the same name, file, and if by_line the same line. */
static int group_frames(struct builder *b, bool by_line, uint32_t **out)
{
	const struct frametab *frames = b->in->profile->frames;
	uint32_t count = frametab_count(frames), found;
	uint32_t *first = calloc((size_t)count + 1, sizeof(*first));

	*out = first;
	if (!first)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		const struct frame *f = frametab_get(frames, i);
		uint64_t hash =
			hash_combine((uint64_t)f->name << 32 | file_of(f), by_line ? f->line : 0);
		size_t at = IDMAP_START;

		while ((found = idmap_next(&b->map, hash, &at)) != IDMAP_NONE)
			if (is_same(f, frametab_get(frames, found), by_line))
				break;
		first[i] = found != IDMAP_NONE ? found : i;
		if (found != IDMAP_NONE)
			continue;
		if (idmap_reserve(&b->map) < 0)
			return -ENOMEM;
		idmap_insert(&b->map, hash, i);
	}
	idmap_release(&b->map);
	return 0;
}

static int path_intern(struct builder *b, uint32_t parent, uint32_t function, uint32_t *out)
{
	struct path fresh = { .parent = parent, .function = function };
	uint64_t hash = hash_u64((uint64_t)parent << 32 | function);
	size_t at = IDMAP_START;

	while ((*out = idmap_next(&b->map, hash, &at)) != IDMAP_NONE)
		if (b->paths.items[*out].parent == parent &&
		    b->paths.items[*out].function == function)
			return 0;
	if (b->paths.len == NONE)
		return -EOVERFLOW;
	if (idmap_reserve(&b->map) < 0 || vec_push(&b->paths, fresh) < 0)
		return -ENOMEM;
	*out = (uint32_t)b->paths.len - 1;
	idmap_insert(&b->map, hash, *out);
	return 0;
}

static int line_intern(struct tree *t, struct idmap *map, uint32_t parent, uint32_t frame,
		       uint32_t *out)
{
	struct line fresh = { .parent = parent, .frame = frame, .first_child = NONE };
	uint64_t hash = hash_u64((uint64_t)parent << 32 | frame);
	size_t at = IDMAP_START;

	while ((*out = idmap_next(map, hash, &at)) != IDMAP_NONE)
		if (t->lines.items[*out].parent == parent && t->lines.items[*out].frame == frame)
			return 0;
	if (t->lines.len == NONE)
		return -EOVERFLOW;
	fresh.next = t->lines.items[parent].first_child;
	if (idmap_reserve(map) < 0 || vec_push(&t->lines, fresh) < 0)
		return -ENOMEM;
	*out = (uint32_t)t->lines.len - 1;
	t->lines.items[parent].first_child = *out;
	idmap_insert(map, hash, *out);
	return 0;
}

/* Ticks of all stacks but the empty one, which upstream does not have. */
static void sum_stacks(const struct builder *b, int side, uint64_t *self, uint64_t *totals)
{
	const struct profile *p = b->in->profile;
	const struct stack_entry *entries = stacktab_entries(p->stacks);

	cube_sum_stacks(&b->in->cube, (uint8_t)side, KIND_TICKS, self);
	self[0] = 0;
	for (size_t i = stacktab_count(p->stacks) - 1; i > 0; i--) {
		totals[i] += self[i];
		totals[entries[i].parent] += totals[i];
	}
}

static int make_lines(struct builder *b, int side, const uint64_t *self, const uint64_t *totals)
{
	_cleanup_(idmap_release) struct idmap map = { 0 };
	const struct stack_entry *entries = stacktab_entries(b->in->profile->stacks);
	uint32_t count = stacktab_count(b->in->profile->stacks);
	struct line root = { .first_child = NONE, .next = NONE };
	struct tree *t = &b->tree[side];
	int r = vec_push(&t->lines, root);

	t->line_of = calloc(count, sizeof(*t->line_of));
	if (!t->line_of)
		return -ENOMEM;
	t->samples = totals[0];
	for (uint32_t i = 1; i < count && !r; i++) {
		uint32_t parent = t->line_of[entries[i].parent], at;

		if (!totals[i])
			continue;
		r = line_intern(t, &map, parent, b->frame_of[entries[i].frame], &at);
		if (!r)
			r = path_intern(b, t->lines.items[parent].path,
					b->function_of[entries[i].frame], &t->lines.items[at].path);
		if (r < 0)
			return r;
		t->line_of[i] = at;
		t->lines.items[at].self += self[i];
		t->lines.items[at].total += totals[i];
		b->paths.items[t->lines.items[at].path].self[side] += self[i];
		b->paths.items[t->lines.items[at].path].total[side] += totals[i];
	}
	return r;
}

static int make_side(struct builder *b, int side)
{
	size_t count = stacktab_count(b->in->profile->stacks);
	_cleanup_(freep) uint64_t *self = calloc(count, sizeof(*self));
	_cleanup_(freep) uint64_t *totals = calloc(count, sizeof(*totals));

	if (!self || !totals)
		return -ENOMEM;
	sum_stacks(b, side, self, totals);
	return make_lines(b, side, self, totals);
}

/* --- what is drawn ---------------------------------------------------------------------------- */

static uint64_t pruning_limit(uint64_t samples)
{
	uint64_t limit = (uint64_t)((double)samples * PRUNED_SHARE);

	return limit > 1 ? limit : 1;
}

/* A cell with its thread. */
struct thread_cell {
	uint32_t thread, line;
	uint64_t ticks;
};

static int compare_threads(const void *a, const void *b)
{
	const struct thread_cell *x = a, *y = b;

	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

/* One thread's cells: marks the lines with a large enough part of its samples. */
static int mark_thread(struct builder *b, const struct thread_cell *cells, size_t count,
		       uint64_t *ticks)
{
	struct line *lines = b->tree[DIFF_CURRENT].lines.items;
	uint64_t samples = 0, limit;
	int r = 0;

	b->work.len = 0;
	for (size_t i = 0; i < count && !r; i++) {
		samples += cells[i].ticks;
		for (uint32_t at = cells[i].line; at && !r; at = lines[at].parent) {
			if (!ticks[at])
				r = vec_push(&b->work, at);
			ticks[at] += cells[i].ticks;
		}
	}
	limit = pruning_limit(samples);
	for (size_t i = 0; i < b->work.len; i++) {
		uint32_t at = b->work.items[i];

		lines[at].is_large = lines[at].is_large || ticks[at] >= limit;
		ticks[at] = 0;
	}
	return r;
}

static int mark_threads(struct builder *b)
{
	const struct tree *t = &b->tree[DIFF_CURRENT];
	_cleanup_(freep) uint64_t *ticks = calloc(t->lines.len, sizeof(*ticks));
	_cleanup_(freep) struct thread_cell *cells = NULL;
	const struct cube_tag *tags = b->in->cube.tags.items;
	size_t count = 0, end;
	int r = 0;

	for (int pass = 0; pass < 2; pass++) {
		if (pass)
			cells = calloc(count + 1, sizeof(*cells));
		if (!ticks || (pass && !cells))
			return -ENOMEM;
		count = 0;
		for (size_t i = 0; i < b->in->cube.runs.len; i++) {
			const struct cube_run *run = &b->in->cube.runs.items[i];

			for (uint32_t k = 0; run->side == DIFF_CURRENT && k < run->block_count; k++)
				for (size_t j = 0; j < run->blocks[k].cells.len; j++, count++) {
					const struct cube_block *block = &run->blocks[k];

					if (pass)
						cells[count] = (struct thread_cell){
							tags[block->cells.items[j].tag].thread,
							t->line_of[block->cells.items[j].stack],
							block->cells.items[j].value,
						};
				}
		}
	}
	if (count)
		qsort(cells, count, sizeof(*cells), compare_threads);
	for (size_t i = 0; i < count && !r; i = end) {
		for (end = i; end < count && cells[end].thread == cells[i].thread; end++)
			;
		r = mark_thread(b, cells + i, end - i, ticks);
	}
	return r;
}

/* Parents come first, and have at least as many samples. */
static void choose_drawn(struct tree *t, uint64_t limit)
{
	t->lines.items[0].is_drawn = true;
	for (size_t i = 1; i < t->lines.len; i++) {
		struct line *l = &t->lines.items[i];

		l->is_drawn =
			t->lines.items[l->parent].is_drawn && (l->total >= limit || l->is_large);
	}
}

/* --- nodes ------------------------------------------------------------------------------------ */

static int compare_siblings(const void *a, const void *b, void *lines)
{
	const struct line *x = (const struct line *)lines + *(const uint32_t *)a;
	const struct line *y = (const struct line *)lines + *(const uint32_t *)b;

	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return x->frame < y->frame ? -1 : x->frame > y->frame;
}

/* Lists the drawn lines below the root in preorder: order[place], and their places. */
static int order_lines(struct builder *b, const struct tree *t, uint32_t *order, uint32_t *place,
		       size_t *out)
{
	const struct line *lines = t->lines.items;
	size_t count = 0;

	b->work.len = 0;
	if (vec_push(&b->work, 0) < 0)
		return -ENOMEM;
	while (b->work.len) {
		uint32_t at = b->work.items[--b->work.len];

		if (at) {
			order[count] = at;
			place[at] = (uint32_t)count++;
		}
		b->children.len = 0;
		for (uint32_t c = lines[at].first_child; c != NONE; c = lines[c].next)
			if (lines[c].is_drawn && vec_push(&b->children, c) < 0)
				return -ENOMEM;
		if (b->children.len > 1)
			qsort_r(b->children.items, b->children.len, sizeof(uint32_t),
				compare_siblings, t->lines.items);
		while (b->children.len)
			if (vec_push(&b->work, b->children.items[--b->children.len]) < 0)
				return -ENOMEM;
	}
	*out = count;
	return 0;
}

static double percent(double self, double baseline)
{
	if (baseline > 0)
		return (self - baseline) / baseline * 100;
	return self > 0 ? 100 : 0;
}

/* What part of a path's baseline belongs to one of its lines. */
static double line_weight(uint64_t value, uint64_t all, uint64_t total, uint64_t all_total)
{
	if (all)
		return (double)value / (double)all;
	return all_total ? (double)total / (double)all_total : 0;
}

static void compare_line(const struct builder *b, const struct line *l, struct compat_node *n)
{
	const struct path *p = &b->paths.items[l->path];
	uint64_t base_self = p->self[DIFF_BASE], base_total = p->total[DIFF_BASE];
	uint64_t self = p->self[DIFF_CURRENT], total = p->total[DIFF_CURRENT];

	n->self = (double)l->self;
	n->value = (double)l->total;
	if (b->c->version == COMPAT_3_15_0A8) {
		n->self_time = (double)self;
		n->baseline = (double)base_self * b->c->scale;
		n->baseline_total = (double)base_total * b->c->scale;
	} else {
		n->self_time = (double)l->self;
		n->baseline = (double)base_self * b->c->scale *
			      line_weight(l->self, self, l->total, total);
		n->baseline_total =
			n->baseline +
			(double)(base_total - base_self) * b->c->scale *
				line_weight(l->total - l->self, total - self, l->total, total);
	}
	n->diff = n->self_time - n->baseline;
	n->diff_pct = percent(n->self_time, n->baseline);
}

/* Preorder nodes of the drawn lines, with parents. *out is theirs to free. */
static int make_nodes(struct builder *b, const struct tree *t, struct compat_node **out,
		      size_t *count, uint32_t **order)
{
	_cleanup_(freep) uint32_t *place = calloc(t->lines.len, sizeof(*place));
	int r;

	*order = calloc(t->lines.len, sizeof(**order));
	if (!place || !*order)
		return -ENOMEM;
	r = order_lines(b, t, *order, place, count);
	if (r < 0)
		return r;
	*out = calloc(*count + 1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	for (size_t i = 0; i < *count; i++) {
		const struct line *l = &t->lines.items[(*order)[i]];

		(*out)[i].parent = l->parent ? place[l->parent] : COMPAT_ROOT;
		(*out)[i].frame = l->frame;
	}
	return 0;
}

static int make_main_view(struct builder *b)
{
	struct tree *t = &b->tree[DIFF_CURRENT];
	_cleanup_(freep) uint32_t *order = NULL;
	struct compat *c = b->c;
	size_t roots = 0;
	int r = 0;

	if (c->version != COMPAT_3_15_0A8)
		r = mark_threads(b);
	choose_drawn(t, pruning_limit(t->samples));
	if (!r)
		r = make_nodes(b, t, &c->nodes, &c->node_count, &order);
	for (size_t i = 0; i < c->node_count && !r; i++) {
		compare_line(b, &t->lines.items[order[i]], &c->nodes[i]);
		roots += c->nodes[i].parent == COMPAT_ROOT;
	}
	c->has_promoted_root = roots == 1 && (c->version == COMPAT_3_15_0A8 ||
					      c->nodes[0].value == (double)t->samples);
	return r;
}

/* --- the elided view -------------------------------------------------------------------------- */

static bool is_elided(const struct builder *b, const struct line *l)
{
	const struct path *p = &b->paths.items[l->path];

	return p->total[DIFF_BASE] && !p->total[DIFF_CURRENT];
}

/* Keeps what is elided and what is above it; sums what such ancestors have below them. */
static void choose_elided(const struct builder *b, uint64_t *values)
{
	const struct tree *t = &b->tree[DIFF_BASE];
	struct line *lines = t->lines.items;

	for (size_t i = t->lines.len; i-- > 1;) {
		struct line *l = &lines[i], *parent = &lines[l->parent];
		bool is_kept = l->is_drawn && (is_elided(b, l) || l->is_large);

		if (is_elided(b, l))
			values[i] = l->total;
		l->is_drawn = is_kept;
		if (!is_kept)
			continue;
		parent->is_large = true; /* here: has something elided below it */
		if (!is_elided(b, parent))
			values[l->parent] += values[i];
	}
}

static void elide_line(const struct builder *b, const struct line *l, uint64_t value,
		       struct compat_node *n)
{
	const struct path *p = &b->paths.items[l->path];
	double scale = b->c->scale;

	n->is_elided = is_elided(b, l);
	if (b->c->version == COMPAT_3_15_0A8) {
		n->value = (double)value;
		n->self = (double)l->self;
		n->baseline = (double)p->self[DIFF_BASE] * scale;
		n->baseline_total = (double)p->total[DIFF_BASE] * scale;
	} else {
		n->value = (double)value * scale;
		n->self = n->is_elided ? (double)l->self * scale : 0;
		n->baseline = n->self;
		n->baseline_total = n->value;
	}
	n->diff = -n->baseline;
	n->diff_pct = n->baseline > 0 ? -100 : 0;
}

static int make_elided_view(struct builder *b)
{
	struct tree *t = &b->tree[DIFF_BASE];
	_cleanup_(freep) uint64_t *values = calloc(t->lines.len, sizeof(*values));
	_cleanup_(freep) uint32_t *order = NULL;
	struct compat *c = b->c;
	int r;

	if (!values)
		return -ENOMEM;
	choose_drawn(t, c->version == COMPAT_3_15_0A8 ? pruning_limit(t->samples) : 1);
	choose_elided(b, values);
	r = make_nodes(b, t, &c->elided, &c->elided_node_count, &order);
	for (size_t i = 0; i < c->elided_node_count && !r; i++)
		elide_line(b, &t->lines.items[order[i]], values[order[i]], &c->elided[i]);
	return r;
}

static void count_elided(const struct builder *b)
{
	for (size_t i = 1; i < b->paths.len; i++) {
		const struct path *p = &b->paths.items[i];

		if (p->total[DIFF_BASE] && !p->total[DIFF_CURRENT])
			b->c->elided_count +=
				b->c->version == COMPAT_3_15_0A8 || p->self[DIFF_BASE];
	}
}

/* --- all of it -------------------------------------------------------------------------------- */

static double find_scale(const struct builder *b)
{
	double base = (double)b->tree[DIFF_BASE].samples;
	double current = (double)b->tree[DIFF_CURRENT].samples, us[DIFF_SIDES];

	for (int s = 0; s < DIFF_SIDES; s++) {
		struct diff_side_sum sum;

		diff_input_sum(b->in, s, &sum);
		us[s] = sum.interval_ns > 0 ? sum.interval_ns / 1000 : 1;
	}
	if (!(base > 0))
		return 1;
	if (b->c->version == COMPAT_3_15)
		return us[DIFF_BASE] / us[DIFF_CURRENT];
	if (!(current > 0))
		return us[DIFF_CURRENT] / us[DIFF_BASE];
	return current * us[DIFF_CURRENT] / (base * us[DIFF_BASE]);
}

static int build(struct builder *b)
{
	int r = group_frames(b, true, &b->frame_of);

	if (!r)
		r = group_frames(b, false, &b->function_of);
	if (!r)
		r = vec_push(&b->paths, ((struct path){ .function = NONE }));
	for (int s = 0; s < DIFF_SIDES && !r; s++)
		r = make_side(b, s);
	if (r < 0)
		return r;
	b->c->scale = find_scale(b);
	b->c->value = b->tree[DIFF_CURRENT].samples;
	b->c->base_samples = b->tree[DIFF_BASE].samples;
	count_elided(b);
	r = make_main_view(b);
	return r ? r : make_elided_view(b);
}

int compat_new(const struct diff_input *in, enum compat_version version, struct compat **out)
{
	_cleanup_(compat_freep) struct compat *c = calloc(1, sizeof(*c));
	_cleanup_(builder_release) struct builder b = { .in = in, .c = c };
	int r;

	assert(in->cube.axes & CUBE_THREADS);
	if (!c)
		return -ENOMEM;
	c->version = version;
	r = build(&b);
	if (r < 0)
		return r;
	*out = take_ptr(c);
	return 0;
}

void compat_free(struct compat *c)
{
	if (!c)
		return;
	free(c->nodes);
	free(c->elided);
	free(c);
}
