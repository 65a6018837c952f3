/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/slots.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"

#define NO_SLOT UINT32_MAX
#define FIRST_SPAN_NS 1000000000 /* where it is not known: what it takes comes of itself */

void slots_release(struct slots *s)
{
	for (size_t i = 0; i < s->runs.len; i++) {
		free(s->runs.items[i].path);
		metadata_release(&s->runs.items[i].meta);
	}
	vec_release(&s->runs);
	vec_release(&s->rows);
	idmap_release(&s->map);
}

static uint32_t block_of(const struct slots *s, const struct slot_run *run, uint64_t time_ns)
{
	if (!run->span_ns)
		return 0;
	if (time_ns >= run->span_ns)
		return s->blocks - 1;
	return (uint32_t)((unsigned __int128)time_ns * s->blocks / run->span_ns);
}

static void set_span(struct slot_run *run, uint64_t span_ns)
{
	run->is_span_guessed = !span_ns;
	run->span_ns = span_ns == SLOTS_NO_TIMES ? 0 : span_ns ? span_ns + 1 : FIRST_SPAN_NS;
}

int slots_begin_run(struct slots *s, enum slot_side side, const char *path, uint64_t span_ns)
{
	struct slot_run run = { .side = side, .path = strdup(path) };
	int r = run.path ? vec_push(&s->runs, run) : -ENOMEM;

	if (r < 0) {
		free(run.path);
		return r;
	}
	if (!s->blocks)
		s->blocks = SLOTS_BLOCKS_MAX;
	s->open_slot = NO_SLOT;
	set_span(&s->runs.items[s->runs.len - 1], span_ns);
	return 0;
}

uint32_t slots_blocks_used(const struct slots *s, const struct slot_run *run)
{
	return run->ticks ? block_of(s, run, run->last_ns) + 1 : 0;
}

int slots_describe_run(struct slots *s, const struct metadata *m, uint64_t lost, uint64_t busy)
{
	struct slot_run *run = &s->runs.items[s->runs.len - 1];

	run->lost = lost;
	run->busy = busy;
	return metadata_copy(&run->meta, m);
}

/* A row of the open slot, found or made. */
static int find_row(struct slots *s, const struct sample *sample, struct slot_row **row)
{
	struct slot_row made = {
		.stack = sample->stack,
		.thread = sample->thread,
		.slot = s->open_slot,
		.opcode = sample->opcode,
	};
	uint64_t hash =
		hash_combine((uint64_t)sample->thread << 32 | sample->stack, sample->opcode);
	size_t at = IDMAP_START;
	uint32_t id;

	while ((id = idmap_next(&s->map, hash, &at)) != IDMAP_NONE) {
		*row = &s->rows.items[s->open + id];
		if ((*row)->thread == sample->thread && (*row)->stack == sample->stack &&
		    (*row)->opcode == sample->opcode)
			return 0;
	}
	if (idmap_reserve(&s->map) < 0 || vec_push(&s->rows, made) < 0)
		return -ENOMEM;
	idmap_insert(&s->map, hash, (uint32_t)(s->rows.len - 1 - s->open));
	*row = &s->rows.items[s->rows.len - 1];
	return 0;
}

static int add_ticks(struct slots *s, const struct sample *sample)
{
	struct slot_row *row, more;
	int r = find_row(s, sample, &row);

	if (r < 0 || !__builtin_add_overflow(row->ticks, sample->weight, &row->ticks))
		return r;
	row->ticks -= sample->weight;
	more = *row;
	more.ticks = sample->weight;
	return vec_push(&s->rows, more);
}

/* Rows of one slot follow each other; where samples come back to it, it gets further ones. */
static void open_slot(struct slots *s, uint32_t slot)
{
	if (s->map.size > 8 * (s->map.used + 64))
		idmap_release(&s->map);
	else if (s->map.size)
		memset(s->map.slots, 0, idmap_bytes(&s->map));
	s->map.used = 0;
	s->open = s->rows.len;
	s->open_slot = slot;
}

static bool is_same_row(const struct slot_row *a, const struct slot_row *b)
{
	return a->stack == b->stack && a->thread == b->thread && a->slot == b->slot &&
	       a->opcode == b->opcode;
}

static int compare_rows(const void *a, const void *b)
{
	const struct slot_row *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->slot != y->slot)
		return x->slot < y->slot ? -1 : 1;
	return x->opcode < y->opcode ? -1 : x->opcode > y->opcode;
}

/* So that rows that become those of one slot stay next to each other: see halve_blocks(). */
static int compare_by_opcode(const void *a, const void *b)
{
	const struct slot_row *x = a, *y = b;

	if (x->opcode != y->opcode)
		return x->opcode < y->opcode ? -1 : 1;
	return compare_rows(a, b);
}

typedef int compare_fn(const void *a, const void *b);

/* As they mostly are: samples come in order of time, and many stacks are of one thread. */
static bool is_sorted(const struct slot_row *rows, size_t count, compare_fn *compare)
{
	for (size_t i = 1; i < count; i++)
		if (compare(&rows[i - 1], &rows[i]) > 0)
			return false;
	return true;
}

/* Returns how many are left. */
static size_t merge_rows(struct slot_row *rows, size_t count)
{
	size_t kept = 0;
	uint32_t sum;

	for (size_t i = 0; i < count; i++) {
		if (kept && is_same_row(&rows[kept - 1], &rows[i]) &&
		    !__builtin_add_overflow(rows[kept - 1].ticks, rows[i].ticks, &sum))
			rows[kept - 1].ticks = sum;
		else
			rows[kept++] = rows[i];
	}
	return kept;
}

static uint32_t key_of_row(const struct slots *s, const uint32_t *const key_of[SLOT_SIDES],
			   const struct slot_row *row)
{
	return key_of ? key_of[s->runs.items[row->slot / s->blocks].side][row->stack] : row->stack;
}

/* Counting sort by key, then each key's few by compare(). key_of NULL: the stack itself. */
static int sort_rows(const struct slots *s, const uint32_t *const key_of[SLOT_SIDES], uint32_t keys,
		     compare_fn *compare, struct slot_row **out, size_t *count)
{
	_cleanup_(freep) uint32_t *start = calloc((size_t)keys + 1, sizeof(*start));
	_cleanup_(freep) struct slot_row *sorted = malloc((s->rows.len + 1) * sizeof(*sorted));

	if (!start || !sorted)
		return -ENOMEM;
	for (size_t i = 0; i < s->rows.len; i++)
		start[key_of_row(s, key_of, &s->rows.items[i]) + 1]++;
	for (uint32_t i = 0; i < keys; i++)
		start[i + 1] += start[i];
	for (size_t i = 0; i < s->rows.len; i++) {
		struct slot_row row = s->rows.items[i];

		row.stack = key_of_row(s, key_of, &row);
		sorted[start[row.stack]++] = row;
	}
	for (uint32_t i = 0, from = 0; i < keys; from = start[i++])
		if (!is_sorted(sorted + from, start[i] - from, compare))
			qsort(sorted + from, start[i] - from, sizeof(*sorted), compare);
	*count = merge_rows(sorted, s->rows.len);
	*out = take_ptr(sorted);
	return 0;
}

/* Puts the rows in order of stack, opcode, thread, slot. */
static int order_rows(struct slots *s, uint32_t stacks)
{
	struct slot_row *rows;
	size_t count;

	if (sort_rows(s, NULL, stacks, compare_by_opcode, &rows, &count) < 0)
		return -ENOMEM;
	free(s->rows.items);
	s->rows.items = rows;
	s->rows.cap = s->rows.len + 1;
	s->rows.len = count;
	s->open_slot = NO_SLOT;
	return 0;
}

/* Blocks of twice the length. Rows are in order, and stay so. */
static void halve_blocks(struct slots *s)
{
	for (size_t i = 0; i < s->rows.len; i++) {
		struct slot_row *row = &s->rows.items[i];
		uint32_t run = row->slot / s->blocks, block = row->slot % s->blocks;

		row->slot = run * (s->blocks / 2) + block / 2;
	}
	s->blocks /= 2;
	s->rows.len = merge_rows(s->rows.items, s->rows.len);
}

/* The run that is being added takes longer than was thought: its blocks become twice as long. */
static void double_span(struct slots *s)
{
	struct slot_run *run = &s->runs.items[s->runs.len - 1];
	uint32_t first = (uint32_t)(s->runs.len - 1) * s->blocks;

	run->span_ns *= 2;
	for (size_t i = 0; i < s->rows.len; i++)
		if (s->rows.items[i].slot >= first)
			s->rows.items[i].slot = first + (s->rows.items[i].slot - first) / 2;
	s->open_slot = NO_SLOT;
}

int slots_add(struct slots *s, const struct profile *p)
{
	uint32_t run_index = (uint32_t)s->runs.len - 1;
	struct slot_run *run = &s->runs.items[run_index];
	int r = 0;

	for (size_t i = 0; i < p->samples.len && !r; i++) {
		const struct sample *sample = &p->samples.items[i];
		uint32_t slot;

		while (run->is_span_guessed && sample->time_ns >= run->span_ns)
			double_span(s);
		if (sample->time_ns > run->last_ns)
			run->last_ns = sample->time_ns;
		slot = run_index * s->blocks + block_of(s, run, sample->time_ns);
		if (slot != s->open_slot)
			open_slot(s, slot);
		r = add_ticks(s, sample);
		run->ticks += sample->weight;
	}
	if (r || s->rows.len <= SLOTS_ROWS_MAX || s->blocks <= SLOTS_BLOCKS_MIN)
		return r;
	if (order_rows(s, stacktab_count(p->stacks)) < 0)
		return -ENOMEM;
	do /* room for a while, as sorting takes time */
		halve_blocks(s);
	while (s->rows.len > SLOTS_ROWS_MAX / 2 && s->blocks > SLOTS_BLOCKS_MIN);
	return 0;
}

int slots_rows_by(const struct slots *s, const uint32_t *const key_of[SLOT_SIDES], uint32_t keys,
		  struct slot_row **rows, size_t *count)
{
	return sort_rows(s, key_of, keys, compare_rows, rows, count);
}
