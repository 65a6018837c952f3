/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/* Cells are marked with the part they go to, then each part picks its own and sorts them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parallel.h"
#include "profile/cube.h"

#define STRETCH_CELLS (1u << 18) /* that a thread marks at a time */
_Static_assert(CUBE_PARTS <= UINT8_MAX + 1, "a mark is a byte");

/* Cells of a block that follow each other. */
struct stretch {
	const struct cube_cell *cells;
	const uint32_t *key_of; /* by stack */
	size_t count;
	size_t first; /* of all cells */
	uint32_t slot;
};

struct sorting {
	const struct cube_tag *tags;
	VEC(struct stretch) stretches;
	size_t cells;
	uint32_t *start; /* by key: where its rows begin, and how far they have come */
	uint8_t *part_of_key, *part_of_cell;
	uint32_t first_key[CUBE_PARTS + 1], first_row[CUBE_PARTS + 1];
	const struct cube_taker *taker;
	int error[CUBE_PARTS];
};

static void sorting_release(struct sorting *w)
{
	vec_release(&w->stretches);
	free(w->start);
	free(w->part_of_key);
	free(w->part_of_cell);
}

static int add_block(struct sorting *w, const struct cube_block *b, const uint32_t *key_of,
		     uint32_t slot)
{
	int r = 0;

	for (size_t i = 0; i < b->cells.len && !r; i += STRETCH_CELLS) {
		size_t left = b->cells.len - i;
		struct stretch t = { .cells = &b->cells.items[i],
				     .key_of = key_of,
				     .count = left < STRETCH_CELLS ? left : STRETCH_CELLS,
				     .first = w->cells,
				     .slot = slot };

		w->cells += t.count;
		r = vec_push(&w->stretches, t);
	}
	return r;
}

static inline uint32_t key_at(const struct stretch *t, size_t i)
{
	return t->key_of[t->cells[i].stack];
}

static int allocate(struct sorting *w, const struct cube *c, uint32_t blocks,
		    const uint32_t *const key_of[CUBE_SIDES], uint32_t keys)
{
	int r = 0;

	for (size_t i = 0; i < c->runs.len && !r; i++) {
		const struct cube_run *run = &c->runs.items[i];

		for (uint32_t b = 0; b < run->block_count && !r; b++)
			r = add_block(w, &run->blocks[b], key_of[run->side],
				      (uint32_t)i * blocks + b);
	}
	if (r < 0 || w->cells >= UINT32_MAX)
		return r < 0 ? r : -EOVERFLOW;
	w->start = calloc((size_t)keys + 1, sizeof(*w->start));
	w->part_of_key = malloc((size_t)keys + 1);
	w->part_of_cell = malloc(w->cells + 1);
	return w->start && w->part_of_key && w->part_of_cell ? 0 : -ENOMEM;
}

static void count_rows(struct sorting *w, uint32_t keys)
{
	for (size_t i = 0; i < w->stretches.len; i++) {
		const struct stretch *t = &w->stretches.items[i];

		for (size_t row = 0; row < t->count; row++)
			w->start[key_at(t, row) + 1]++;
	}
	for (uint32_t i = 0; i < keys; i++)
		w->start[i + 1] += w->start[i];
}

/* Parts of about as many rows each, but whole keys. */
static void cut_parts(struct sorting *w, uint32_t keys)
{
	uint32_t part = 0;

	for (uint32_t key = 0; key < keys; key++) {
		uint64_t at = w->start[key] * (uint64_t)CUBE_PARTS / (w->cells + 1);

		while (part < at) {
			w->first_key[++part] = key;
			w->first_row[part] = w->start[key];
		}
		w->part_of_key[key] = (uint8_t)part;
	}
	while (part < CUBE_PARTS) {
		w->first_key[++part] = keys;
		w->first_row[part] = (uint32_t)w->cells;
	}
}

static void mark_cells(void *sorting, size_t i)
{
	const struct sorting *w = sorting;
	const struct stretch *t = &w->stretches.items[i];

	for (size_t row = 0; row < t->count; row++)
		w->part_of_cell[t->first + row] = w->part_of_key[key_at(t, row)];
}

/* Counting sort by key, whose start ends where the next one begins. */
static void pick_rows(const struct sorting *w, size_t part, struct cube_row *out)
{
	for (size_t i = 0; i < w->stretches.len; i++) {
		const struct stretch *t = &w->stretches.items[i];
		const uint8_t *marks = w->part_of_cell + t->first, *end = marks + t->count;
		const uint8_t *at = marks;

		while (at < end && (at = memchr(at, (int)part, (size_t)(end - at)))) {
			const struct cube_cell *cell = &t->cells[at - marks];
			uint32_t key = key_at(t, (size_t)(at - marks));

			out[w->start[key]++ - w->first_row[part]] = (struct cube_row){
				.key = key,
				.tag = cell->tag,
				.slot = t->slot,
				.value = cell->value,
			};
			at++;
		}
	}
}

/* Of one key: by thread, slot, tag. */
static int compare_rows(const void *a, const void *b, void *tags)
{
	const struct cube_row *x = a, *y = b;
	const struct cube_tag *of = tags;
	uint32_t thread = of[x->tag].thread, other = of[y->tag].thread;

	if (thread != other)
		return thread < other ? -1 : 1;
	if (x->slot != y->slot)
		return x->slot < y->slot ? -1 : 1;
	return x->tag < y->tag ? -1 : x->tag > y->tag;
}

/* As they mostly are: samples come in order of time, and many stacks are of one thread. */
static bool is_sorted(const struct sorting *w, const struct cube_row *rows, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (compare_rows(&rows[i - 1], &rows[i], (void *)w->tags) > 0)
			return false;
	return true;
}

/* Returns how many are left. */
static size_t merge_rows(struct cube_row *rows, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		struct cube_row *last = kept ? &rows[kept - 1] : NULL;

		if (last && last->key == rows[i].key && last->tag == rows[i].tag &&
		    last->slot == rows[i].slot)
			last->value += rows[i].value;
		else
			rows[kept++] = rows[i];
	}
	return kept;
}

/* Each key's few. Returns how many are left. */
static size_t sort_part(const struct sorting *w, size_t part, struct cube_row *out)
{
	uint32_t first = w->first_row[part], from = 0;

	pick_rows(w, part, out);
	for (uint32_t key = w->first_key[part]; key < w->first_key[part + 1]; key++) {
		uint32_t end = w->start[key] - first;

		if (!is_sorted(w, out + from, end - from))
			qsort_r(out + from, end - from, sizeof(*out), compare_rows,
				(void *)w->tags);
		from = end;
	}
	return merge_rows(out, from);
}

static void give_part(void *sorting, size_t part)
{
	struct sorting *w = sorting;
	size_t count = w->first_row[part + 1] - w->first_row[part];
	_cleanup_(freep) struct cube_row *rows = malloc((count + 1) * sizeof(*rows));

	if (!rows) {
		w->error[part] = -ENOMEM;
		return;
	}
	count = sort_part(w, part, rows);
	w->error[part] = w->taker->take(w->taker->context, part, rows, count);
}

int cube_by_key(const struct cube *c, uint32_t blocks, const uint32_t *const key_of[CUBE_SIDES],
		uint32_t keys, const struct cube_taker *taker)
{
	_cleanup_(sorting_release) struct sorting w = { .tags = c->tags.items, .taker = taker };
	int r = allocate(&w, c, blocks, key_of, keys);

	if (r < 0)
		return r;
	count_rows(&w, keys);
	cut_parts(&w, keys);
	parallel_run(w.stretches.len, mark_cells, &w);
	parallel_run(CUBE_PARTS, give_part, &w);
	for (size_t i = 0; i < CUBE_PARTS && !r; i++)
		r = w.error[i];
	return r;
}
