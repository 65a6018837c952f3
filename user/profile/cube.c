/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "profile/cube.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "profile/merge.h"

#define FIRST_SPAN_NS 1000000000 /* where it is not known: what it takes comes of itself */
#define HINTS_MIN 1024
#define PREFETCH 16            /* samples ahead: of many stacks, few are in the cache */
#define TAG_STRIDE 2654435761u /* spreads tags over the hints: 2^32 / golden ratio, odd */

static void block_release(struct cube_block *b)
{
	vec_release(&b->cells);
	b->value = 0;
}

static void run_release(const struct cube *c, struct cube_run *run)
{
	for (uint32_t i = 0; run->blocks && i < c->blocks; i++)
		block_release(&run->blocks[i]);
	free(run->blocks);
	free(run->file);
}

void cube_release(struct cube *c)
{
	for (size_t i = 0; i < c->runs.len; i++)
		run_release(c, &c->runs.items[i]);
	for (size_t i = 0; i < c->sums.len; i++)
		vec_release(&c->sums.items[i]);
	for (size_t i = 0; i < c->dense.len; i++)
		vec_release(&c->dense.items[i]);
	block_release(&c->all);
	vec_release(&c->dense);
	vec_release(&c->tags);
	vec_release(&c->runs);
	vec_release(&c->sums);
	vec_release(&c->hints);
	idmap_release(&c->tag_map);
}

int cube_begin_run(struct cube *c, uint8_t side, const char *file, uint32_t recording,
		   uint64_t span_ns)
{
	struct cube_run run = {
		.side = side,
		.has_times = span_ns != CUBE_NO_TIMES,
		.recording = recording,
		.process = CUBE_NO_PROCESS,
		.file = strdup(file),
		.is_known = span_ns != 0,
		.span_ns = span_ns ? span_ns : FIRST_SPAN_NS,
	};

	if (!c->blocks) {
		c->blocks = CUBE_BLOCKS_MAX;
		c->blocks_min = CUBE_BLOCKS_MIN;
	}
	if (span_ns == CUBE_NO_TIMES)
		run.span_ns = 0;
	run.blocks = calloc(c->blocks, sizeof(*run.blocks));
	if (run.file && run.blocks && vec_push(&c->runs, run) == 0)
		return 0;
	run_release(c, &run);
	return -ENOMEM;
}

/* Kinds have a dense row each: to tell them apart takes no cells. */
static bool is_dense(const struct cube *c)
{
	return !(c->axes & ~(unsigned int)CUBE_KINDS);
}

/* --- tags ------------------------------------------------------------------------------------- */

static struct cube_tag tag_of(const struct cube *c, const struct profile *p, const struct sample *s)
{
	return (struct cube_tag){
		.thread =
			c->axes & CUBE_THREADS ? p->threads.items[s->thread].same : CUBE_NO_THREAD,
		.labels = c->axes & CUBE_LABELS ? s->labels : 0,
		.opcode = c->axes & CUBE_OPCODES ? s->opcode : 0,
		.kind = s->kind,
	};
}

static bool is_same_tag(const struct cube_tag *a, const struct cube_tag *b)
{
	return a->thread == b->thread && a->labels == b->labels && a->opcode == b->opcode &&
	       a->kind == b->kind;
}

static int intern_tag(struct cube *c, const struct cube_tag *tag, uint32_t *id)
{
	uint64_t hash = hash_combine((uint64_t)tag->thread << 32 | tag->labels,
				     (uint64_t)tag->opcode << 16 | tag->kind);
	size_t at = IDMAP_START;

	while ((*id = idmap_next(&c->tag_map, hash, &at)) != IDMAP_NONE)
		if (is_same_tag(&c->tags.items[*id], tag))
			return 0;
	if (c->tags.len == IDMAP_NONE)
		return -EOVERFLOW;
	if (idmap_reserve(&c->tag_map) < 0 || vec_push(&c->tags, *tag) < 0)
		return -ENOMEM;
	*id = (uint32_t)c->tags.len - 1;
	idmap_insert(&c->tag_map, hash, *id);
	return 0;
}

/* Samples that follow each other mostly have the same. */
static int find_tag(struct cube *c, const struct profile *p, const struct sample *s)
{
	struct cube_tag tag = tag_of(c, p, s);

	if (c->last_tag < c->tags.len && is_same_tag(&c->tags.items[c->last_tag], &tag))
		return 0;
	return intern_tag(c, &tag, &c->last_tag);
}

/* --- sums of threads -------------------------------------------------------------------------- */

static int reserve_sums(struct cube *c, size_t kinds, size_t threads)
{
	while (c->sums.len < kinds)
		if (vec_push(&c->sums, (struct cube_sums){ 0 }) < 0)
			return -ENOMEM;
	for (size_t i = 0; i < kinds; i++) {
		struct cube_sums *s = &c->sums.items[i];
		size_t more = threads > s->len ? threads - s->len : 0;

		if (vec_reserve(s, more) < 0)
			return -ENOMEM;
		memset(s->items + s->len, 0, more * sizeof(*s->items));
		s->len += more;
	}
	return 0;
}

void cube_sum_add(struct cube_sum *to, const struct cube_sum *from)
{
	if (!from->value)
		return;
	if (!to->value || from->first_ns < to->first_ns)
		to->first_ns = from->first_ns;
	if (from->last_ns > to->last_ns)
		to->last_ns = from->last_ns;
	to->value += from->value;
	to->count += from->count;
}

void cube_sum_threads(const struct cube *c, const struct profile *p, uint16_t kind,
		      struct cube_sum *sums)
{
	for (size_t i = 0; kind < c->sums.len && i < c->sums.items[kind].len; i++)
		cube_sum_add(&sums[p->threads.items[i].same], &c->sums.items[kind].items[i]);
}

/* --- blocks ----------------------------------------------------------------------------------- */

static int append_block(struct cube *c, struct cube_block *to, struct cube_block *from)
{
	size_t twice = to->cells.len < from->cells.len ? to->cells.len : from->cells.len;

	if (!to->cells.len) {
		struct cube_block empty = *to;

		*to = *from;
		*from = empty;
	} else if (vec_append(&to->cells, from->cells.items, from->cells.len) < 0) {
		return -ENOMEM;
	} else {
		to->value += from->value;
		c->twice += c->blocks > c->blocks_min ? twice : 0;
	}
	block_release(from);
	return 0;
}

/* Pairs of a run's blocks become the first half of them. */
static int pair_blocks(struct cube *c, struct cube_run *run)
{
	for (uint32_t i = 0; i < run->block_count; i++)
		if (i && append_block(c, &run->blocks[i / 2], &run->blocks[i]) < 0)
			return -ENOMEM;
	run->block_count = (run->block_count + 1) / 2;
	c->last_block = NULL;
	return 0;
}

/* Where a block begins: the first time that is in it or beyond. */
static uint64_t block_start(const struct cube *c, const struct cube_run *run, uint32_t block)
{
	return (uint64_t)(((unsigned __int128)run->span_ns * block + c->blocks - 1) / c->blocks);
}

/* The block that samples go to, for as long as their times are from .. to - 1. */
struct cursor {
	struct cube_block *block;
	uint64_t from, to;
	bool is_known; /* the hints are of it, or it has no cells */
};

static int find_block(struct cube *c, uint64_t time_ns, struct cursor *out)
{
	struct cube_run *run = c->axes & CUBE_TIME ? cube_run(c) : NULL;
	uint32_t at = 0;

	*out = (struct cursor){ &c->all, 0, UINT64_MAX, true };
	if (!run)
		return 0;
	while (run->span_ns && !run->is_known && time_ns >= run->span_ns) {
		if (pair_blocks(c, run) < 0)
			return -ENOMEM;
		run->span_ns *= 2;
	}
	if (run->span_ns) {
		at = time_ns < run->span_ns
			     ? (uint32_t)((unsigned __int128)time_ns * c->blocks / run->span_ns)
			     : c->blocks - 1;
		out->from = block_start(c, run, at);
		if (at + 1 < c->blocks || !run->is_known)
			out->to = block_start(c, run, at + 1);
	}
	if (run->block_count <= at)
		run->block_count = at + 1;
	out->block = &run->blocks[at];
	out->is_known = out->block == c->last_block || !out->block->cells.len;
	c->last_block = out->block;
	return 0;
}

/* --- cells ------------------------------------------------------------------------------------ */

/*
 * The hints are a lossy map from stack and tag to a cell (index + 1): what stands there is checked
 * against the cell, so a wrong one only makes a second cell. Hence one table does for all blocks.
 */
static uint32_t *hint_of(const struct cube *c, uint32_t stack, const struct cube_tag *t)
{
	uint32_t tag = t->thread + t->kind + (t->opcode + t->labels * TAG_STRIDE) * TAG_STRIDE;

	return &c->hints.items[(stack + tag * TAG_STRIDE) & (c->hints.len - 1)];
}

static int reserve_hints(struct cube *c, size_t stacks)
{
	const struct cube_block *open = c->last_block ? c->last_block : &c->all;
	size_t want = c->hints.len ? c->hints.len : HINTS_MIN;

	while (want < stacks || want < open->cells.len)
		want *= 2;
	if (want == c->hints.len)
		return 0;
	if (want > UINT32_MAX || vec_reserve(&c->hints, want - c->hints.len) < 0)
		return -ENOMEM;
	memset(c->hints.items, 0, want * sizeof(uint32_t));
	c->hints.len = want;
	for (size_t i = 0; i < open->cells.len; i++) {
		const struct cube_cell *cell = &open->cells.items[i];

		*hint_of(c, cell->stack, &c->tags.items[cell->tag]) = (uint32_t)i + 1;
	}
	return 0;
}

/* The cell that a hint is of; NULL: none of this block. */
static struct cube_cell *hinted(const struct cube_block *b, uint32_t hint)
{
	return hint - 1 < b->cells.len ? &b->cells.items[hint - 1] : NULL;
}

/* hint: hint_of() it, or NULL where it is not known yet. */
static int add_cell(struct cube *c, const struct cursor *to, const struct cube_cell *added,
		    uint32_t *hint)
{
	struct cube_block *b = to->block;
	struct cube_cell *cell;

	if (!hint)
		hint = hint_of(c, added->stack, &c->tags.items[added->tag]);
	cell = hinted(b, *hint);

	b->value += added->value;
	if (cell && cell->stack == added->stack && cell->tag == added->tag) {
		cell->value += added->value;
		return 0;
	}
	c->twice += !to->is_known ||
		    (cell && hint_of(c, cell->stack, &c->tags.items[cell->tag]) == hint);
	if (b->cells.len >= UINT32_MAX - 1)
		return -EOVERFLOW;
	if (vec_push(&b->cells, *added) < 0)
		return -ENOMEM;
	c->cells++;
	*hint = (uint32_t)b->cells.len;
	return 0;
}

/* Makes cells of one stack and tag one. */
static int merge_block(struct cube *c, struct cube_block *b)
{
	_cleanup_(idmap_release) struct idmap map = { 0 };
	size_t kept = 0;

	for (size_t i = 0; i < b->cells.len; i++) {
		struct cube_cell cell = b->cells.items[i];
		uint64_t hash = hash_u64((uint64_t)cell.tag << 32 | cell.stack);
		size_t at = IDMAP_START;
		uint32_t id;

		while ((id = idmap_next(&map, hash, &at)) != IDMAP_NONE)
			if (b->cells.items[id].stack == cell.stack &&
			    b->cells.items[id].tag == cell.tag)
				break;
		if (id != IDMAP_NONE) {
			b->cells.items[id].value += cell.value;
			c->cells--;
			continue;
		}
		if (idmap_reserve(&map) < 0)
			return -ENOMEM;
		idmap_insert(&map, hash, (uint32_t)kept);
		b->cells.items[kept++] = cell;
	}
	b->cells.len = kept;
	return 0;
}

static int merge_cells(struct cube *c)
{
	int r = merge_block(c, &c->all);

	for (size_t i = 0; i < c->runs.len; i++)
		for (uint32_t b = 0; b < c->runs.items[i].block_count && !r; b++)
			r = merge_block(c, &c->runs.items[i].blocks[b]);
	memset(c->hints.items, 0, c->hints.len * sizeof(uint32_t));
	c->twice = 0;
	return r;
}

/* Blocks of twice the length. */
static int halve_blocks(struct cube *c)
{
	int r = 0;

	for (size_t i = 0; i < c->runs.len && !r; i++)
		r = pair_blocks(c, &c->runs.items[i]);
	c->blocks /= 2;
	return r ? r : merge_cells(c);
}

/* So that memory is bounded by what there is to tell apart: with room for a while, as it takes
 * time. */
static int stay_small(struct cube *c)
{
	bool can_halve = c->axes & CUBE_TIME && c->blocks > c->blocks_min;
	int r = 0;

	if (c->cells <= CUBE_CELLS_MAX)
		return 0;
	if (can_halve ? c->twice > 0 : c->twice > c->cells / 2)
		r = merge_cells(c);
	if (c->cells <= CUBE_CELLS_MAX)
		return r;
	while (!r && c->cells > CUBE_CELLS_MAX / 2 && c->blocks > c->blocks_min &&
	       c->axes & CUBE_TIME)
		r = halve_blocks(c);
	return r;
}

static int reserve_dense(struct cube *c, size_t kinds, size_t stacks)
{
	while (c->dense.len < kinds)
		if (vec_push(&c->dense, (struct cube_values){ 0 }) < 0)
			return -ENOMEM;
	for (size_t i = 0; i < kinds; i++) {
		struct cube_values *v = &c->dense.items[i];
		size_t more = stacks > v->len ? stacks - v->len : 0;

		if (vec_reserve(v, more) < 0)
			return -ENOMEM;
		memset(v->items + v->len, 0, more * sizeof(*v->items));
		v->len += more;
	}
	return 0;
}

static void add_to_sum(struct cube *c, const struct profile *p, const struct sample *s)
{
	struct cube_sum sum = { s->value, 1, s->time_ns, sample_end_ns(s) };

	if (s->thread < p->threads.len) /* not so where a recorder sums functions alone */
		cube_sum_add(&c->sums.items[s->kind].items[s->thread], &sum);
}

/* Where nothing but stacks and kinds is told apart, no cell has to be looked for. */
static int add_dense(struct cube *c, const struct profile *p)
{
	int r = reserve_dense(c, p->kinds.len + 1, stacktab_count(p->stacks));

	for (size_t i = 0; i < p->samples.len && !r; i++) {
		const struct sample *s = &p->samples.items[i];

		c->dense.items[s->kind].items[s->stack] += s->value;
		add_to_sum(c, p, s);
	}
	return r;
}

/* Where the hints of the samples to come are, each looked up once: of many, few are in the cache.
 */
struct hints_ahead {
	uint32_t *at[4 * PREFETCH]; /* by index of the sample, modulo */
};

static void look_ahead(struct hints_ahead *h, const struct cube *c, const struct profile *p,
		       const struct cube_block *block, size_t i)
{
	size_t far = i + 2 * PREFETCH, near = i + PREFETCH;

	if (far < p->samples.len) {
		const struct sample *s = &p->samples.items[far];
		struct cube_tag tag = tag_of(c, p, s);

		h->at[far % (4 * PREFETCH)] = hint_of(c, s->stack, &tag);
		__builtin_prefetch(h->at[far % (4 * PREFETCH)], 1);
	}
	if (near < p->samples.len && i >= PREFETCH)
		__builtin_prefetch(hinted(block, *h->at[near % (4 * PREFETCH)]), 1);
}

static bool is_spread(const struct cube *c, const struct sample *s)
{
	return c->axes & CUBE_SPANS && s->duration_ns;
}

/*
 * What is known of a run's length is when its last sample begins: spans go on. Up to a block beyond
 * is of the last one, further on blocks become longer. Was it known, and is it no more?
 */
static bool goes_on(const struct cube *c, uint64_t end_ns)
{
	struct cube_run *run = cube_run(c);
	bool was_known = run->is_known && run->span_ns;

	if (was_known && end_ns > run->span_ns)
		run->is_known = end_ns - run->span_ns <= run->span_ns / c->blocks;
	return was_known && !run->is_known;
}

/* to: the block of its time. */
static int add_span(struct cube *c, const struct sample *s, struct cursor *to)
{
	struct cube_cell cell = { .stack = s->stack, .tag = c->last_tag };
	uint64_t done = 0;
	int r = 0;

	for (uint64_t at = s->time_ns; done < s->value && !r; at = to->to) {
		if (at < to->from || at >= to->to)
			r = find_block(c, at, to);
		cell.value = sample_value_until(s, to->to) - done;
		done += cell.value;
		if (cell.value && !r)
			r = add_cell(c, to, &cell, NULL);
	}
	return r;
}

static int add_cells(struct cube *c, const struct profile *p)
{
	struct cursor to = { .block = &c->all };
	struct hints_ahead ahead;
	uint64_t value = 0;
	int r = reserve_hints(c, stacktab_count(p->stacks));

	for (size_t i = 0; i < p->samples.len && !r; i++) {
		const struct sample *s = &p->samples.items[i];
		struct cube_cell cell = { .stack = s->stack, .value = s->value };

		look_ahead(&ahead, c, p, to.block, i);
		if (is_spread(c, s) && goes_on(c, sample_end_ns(s)))
			to.to = 0; /* the last block ends */
		if (s->time_ns < to.from || s->time_ns >= to.to)
			r = find_block(c, s->time_ns, &to);
		if (!r)
			r = find_tag(c, p, s);
		cell.tag = c->last_tag;
		if (!r && is_spread(c, s) && sample_end_ns(s) > to.to)
			r = add_span(c, s, &to);
		else if (!r)
			r = add_cell(c, &to, &cell,
				     i < 2 * PREFETCH ? NULL : ahead.at[i % (4 * PREFETCH)]);
		if (!r && c->cells > 2 * CUBE_CELLS_MAX) {
			r = stay_small(c);
			to.to = 0; /* blocks may be others */
		}
		add_to_sum(c, p, s);
		value += s->value;
	}
	if (c->axes & CUBE_TIME)
		cube_run(c)->value += value;
	return r ? r : stay_small(c);
}

int cube_add(struct cube *c, const struct profile *p)
{
	int r = reserve_sums(c, p->kinds.len + 1, p->threads.len);

	if (r < 0)
		return r;
	return is_dense(c) ? add_dense(c, p) : add_cells(c, p);
}

/* --- finished --------------------------------------------------------------------------------- */

static int compare_numbers(uint32_t a, uint32_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_tags(const void *a, const void *b, void *tags)
{
	const struct cube_tag *x = (const struct cube_tag *)tags + *(const uint32_t *)a;
	const struct cube_tag *y = (const struct cube_tag *)tags + *(const uint32_t *)b;
	int d = compare_numbers(x->thread, y->thread);

	if (!d)
		d = compare_numbers(x->kind, y->kind);
	if (!d)
		d = compare_numbers(x->labels, y->labels);
	return d ? d : compare_numbers(x->opcode, y->opcode);
}

static void renumber_tags(struct cube_block *b, const uint32_t *tags)
{
	for (size_t i = 0; i < b->cells.len; i++)
		b->cells.items[i].tag = tags[b->cells.items[i].tag];
}

static int order_tags(struct cube *c)
{
	_cleanup_(freep) uint32_t *order = calloc(c->tags.len + 1, sizeof(*order));
	_cleanup_(freep) uint32_t *place = calloc(c->tags.len + 1, sizeof(*place));
	struct cube_tag *tags = calloc(c->tags.len + 1, sizeof(*tags));

	if (!order || !place || !tags) {
		free(tags);
		return -ENOMEM;
	}
	for (size_t i = 0; i < c->tags.len; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, c->tags.len, sizeof(*order), compare_tags, c->tags.items);
	for (size_t i = 0; i < c->tags.len; i++) {
		tags[i] = c->tags.items[order[i]];
		place[order[i]] = (uint32_t)i;
	}
	renumber_tags(&c->all, place);
	for (size_t i = 0; i < c->runs.len; i++)
		for (uint32_t b = 0; b < c->runs.items[i].block_count; b++)
			renumber_tags(&c->runs.items[i].blocks[b], place);
	free(c->tags.items);
	c->tags.items = tags;
	c->tags.cap = c->tags.len + 1;
	return 0;
}

/* Those of `all`, each once: by stack, then by tag, each a counting sort. */
static int order_cells(struct cube *c, uint32_t stacks)
{
	struct cube_block *b = &c->all;
	size_t keys = stacks > c->tags.len ? stacks : c->tags.len;
	_cleanup_(freep) size_t *start = calloc(keys + 2, sizeof(*start));
	_cleanup_(freep) struct cube_cell *cells = malloc((b->cells.len + 1) * sizeof(*cells));
	int r = c->twice ? merge_block(c, b) : 0;

	if (!start || !cells)
		return -ENOMEM;
	for (int pass = 0; pass < 2 && !r; pass++) {
		struct cube_cell *from = pass ? cells : b->cells.items;
		struct cube_cell *to = pass ? b->cells.items : cells;

		memset(start, 0, (keys + 2) * sizeof(*start));
		for (size_t i = 0; i < b->cells.len; i++)
			start[(pass ? from[i].tag : from[i].stack) + 1]++;
		for (size_t i = 1; i <= keys; i++)
			start[i] += start[i - 1];
		for (size_t i = 0; i < b->cells.len; i++)
			to[start[pass ? from[i].tag : from[i].stack]++] = from[i];
	}
	return r;
}

/* Each recording has processes of its own. */
static int find_processes(struct cube *c, const struct profile *p)
{
	_cleanup_(freep) uint64_t *ticks = calloc(p->processes.len + 1, sizeof(*ticks));
	_cleanup_(freep) uint32_t *found = calloc(p->recordings.len + 1, sizeof(*found));

	if (!ticks || !found)
		return -ENOMEM;
	for (size_t i = 0; c->sums.len && i < c->sums.items[KIND_TICKS].len; i++)
		ticks[p->threads.items[i].process] += c->sums.items[KIND_TICKS].items[i].value;
	for (uint32_t i = 0; i < p->processes.len; i++) {
		const struct process *process = &p->processes.items[i];
		uint32_t *best = &found[process->recording]; /* index + 1 */

		if (process->python_version && ticks[i] > (*best ? ticks[*best - 1] : 0))
			*best = i + 1;
	}
	for (size_t i = 0; i < c->runs.len; i++)
		c->runs.items[i].process = found[c->runs.items[i].recording] - 1;
	return 0;
}

/* Makes cells of what was summed by stack alone: they are in order. */
static int end_dense(struct cube *c)
{
	struct cube_cell cell = { 0 };
	int r = 0;

	for (size_t kind = 0; kind < c->dense.len && !r; kind++) {
		const struct cube_values *v = &c->dense.items[kind];
		struct cube_tag tag = { .thread = CUBE_NO_THREAD, .kind = (uint16_t)kind };

		r = intern_tag(c, &tag, &cell.tag);
		for (size_t i = 0; i < v->len && !r; i++) {
			cell.stack = (uint32_t)i;
			cell.value = v->items[i];
			if (cell.value)
				r = vec_push(&c->all.cells, cell);
		}
	}
	return r;
}

int cube_finish(struct cube *c, const struct profile *p)
{
	int r = is_dense(c) ? end_dense(c) : order_tags(c);

	if (!r)
		r = find_processes(c, p);

	idmap_release(&c->tag_map);
	vec_release(&c->hints);
	return r || is_dense(c) || c->axes & CUBE_TIME ? r
						       : order_cells(c, stacktab_count(p->stacks));
}

static void sum_block(const struct cube *c, const struct cube_block *b, uint16_t kind,
		      uint64_t *values)
{
	const struct cube_tag *tags = c->tags.items;

	for (size_t i = 0; i < b->cells.len; i++) {
		const struct cube_cell *cell = &b->cells.items[i];

		if (i + PREFETCH < b->cells.len)
			__builtin_prefetch(&values[cell[PREFETCH].stack], 1);
		if (tags[cell->tag].kind == kind || kind == CUBE_ALL_KINDS)
			values[cell->stack] += cell->value;
	}
}

void cube_sum_stacks(const struct cube *c, uint8_t side, uint16_t kind, uint64_t *values)
{
	for (size_t k = 0; k < c->dense.len; k++) {
		if (k != kind && kind != CUBE_ALL_KINDS)
			continue;
		for (size_t i = 0; i < c->dense.items[k].len; i++)
			values[i] += c->dense.items[k].items[i];
	}
	if (!c->dense.len)
		sum_block(c, &c->all, kind, values);
	for (size_t i = 0; i < c->runs.len; i++) {
		const struct cube_run *run = &c->runs.items[i];

		for (uint32_t b = 0; b < run->block_count; b++)
			if (side == CUBE_BOTH_SIDES || run->side == side)
				sum_block(c, &run->blocks[b], kind, values);
	}
}

/* --- joined ----------------------------------------------------------------------------------- */

static int join_tags(struct cube *to, const struct cube *from, const struct profile *p,
		     const struct profile_ids *ids, uint32_t *tags)
{
	int r = 0;

	for (size_t i = 0; i < from->tags.len && !r; i++) {
		struct cube_tag tag = from->tags.items[i];

		if (tag.thread != CUBE_NO_THREAD)
			tag.thread = p->threads.items[ids->threads[tag.thread]].same;
		tag.labels = ids->labels[tag.labels];
		tag.opcode = ids->strings[tag.opcode];
		tag.kind = ids->kinds[tag.kind];
		r = intern_tag(to, &tag, &tags[i]);
	}
	return r;
}

static void renumber(struct cube_run *run, const struct profile_ids *ids, const uint32_t *tags)
{
	run->recording = ids->recordings[run->recording];
	for (uint32_t i = 0; i < run->block_count; i++) {
		struct cube_block *b = &run->blocks[i];

		renumber_tags(b, tags);
		for (size_t k = 0; k < b->cells.len; k++)
			b->cells.items[k].stack = ids->stacks[b->cells.items[k].stack];
	}
}

int cube_join(struct cube *to, struct cube *from, const struct profile *p,
	      const struct profile_ids *ids)
{
	_cleanup_(freep) uint32_t *tags = calloc(from->tags.len + 1, sizeof(*tags));
	int r = tags ? vec_reserve(&to->runs, from->runs.len) : -ENOMEM;

	if (!r)
		r = reserve_sums(to, p->kinds.len + 1, p->threads.len);
	if (!r)
		r = join_tags(to, from, p, ids, tags);
	if (r < 0)
		return r;
	for (size_t k = 0; k < from->sums.len; k++)
		for (size_t i = 0; i < from->sums.items[k].len; i++)
			cube_sum_add(&to->sums.items[ids->kinds[k]].items[ids->threads[i]],
				     &from->sums.items[k].items[i]);
	for (size_t i = 0; i < from->runs.len; i++) {
		renumber(&from->runs.items[i], ids, tags);
		to->runs.items[to->runs.len++] = from->runs.items[i];
	}
	from->runs.len = 0;
	to->cells += from->cells;
	to->twice += from->twice;
	return 0;
}
