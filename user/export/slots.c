/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/slots.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "diff/input.h"

#define NO_SLOT UINT32_MAX
#define FIRST_SPAN_NS 1000000000 /* where it is not known: what it takes comes of itself */

void slots_release(struct slots *s)
{
	for (size_t i = 0; i < s->runs.len; i++) {
		free(s->runs.items[i].path);
		recording_release(&s->runs.items[i].recording);
	}
	vec_release(&s->runs);
	vec_release(&s->rows);
	vec_release(&s->kept);
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

int slots_describe_run(struct slots *s, const struct recording *m, uint64_t lost, uint64_t busy)
{
	struct slot_run *run = &s->runs.items[s->runs.len - 1];

	run->lost = lost;
	run->busy = busy;
	return recording_copy(&run->recording, m);
}

/* A row of the open slot, found or made. */
static int find_row(struct slots *s, const struct sample *sample, uint32_t thread,
		    struct slot_row **row)
{
	struct slot_row made = {
		.stack = sample->stack,
		.thread = thread,
		.slot = s->open_slot,
		.opcode = sample->opcode,
	};
	uint64_t hash = hash_combine((uint64_t)thread << 32 | sample->stack, sample->opcode);
	size_t at = IDMAP_START;
	uint32_t id;

	while ((id = idmap_next(&s->map, hash, &at)) != IDMAP_NONE) {
		*row = &s->rows.items[s->open + id];
		if ((*row)->thread == thread && (*row)->stack == sample->stack &&
		    (*row)->opcode == sample->opcode)
			return 0;
	}
	if (idmap_reserve(&s->map) < 0 || vec_push(&s->rows, made) < 0)
		return -ENOMEM;
	idmap_insert(&s->map, hash, (uint32_t)(s->rows.len - 1 - s->open));
	*row = &s->rows.items[s->rows.len - 1];
	return 0;
}

static int add_ticks(struct slots *s, const struct profile *p, const struct sample *sample)
{
	struct slot_row *row, more;
	int r = find_row(s, sample, p->threads.items[sample->thread].same, &row);

	if (r < 0 || !__builtin_add_overflow(row->ticks, sample->value, &row->ticks))
		return r;
	row->ticks -= sample->value;
	more = *row;
	more.ticks = sample->value;
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

/* --- in order of a key ------------------------------------------------------------------------ */

#define STRETCH_ROWS (1u << 18) /* of `rows`: what a thread marks at a time */
_Static_assert(SLOTS_PARTS <= UINT8_MAX + 1, "a mark is a byte");

/* Rows that follow each other: some of `rows`, or those of a block that is kept elsewhere. */
struct stretch {
	const struct slot_row *rows; /* NULL: of a block */
	const struct diff_cell *cells;
	const struct diff_tag *tags;
	uint32_t slot; /* of a block */
	size_t count;
	size_t first; /* row, of all */
};

struct stretches {
	struct stretch *items; /* a VEC */
	size_t len, cap;
	size_t rows;
};

static void stretches_release(struct stretches *t)
{
	vec_release(t);
}

static int add_stretch(struct stretches *to, struct stretch t)
{
	t.first = to->rows;
	to->rows += t.count;
	return t.count ? vec_push(to, t) : 0;
}

static int find_stretches(const struct slots *s, struct stretches *out)
{
	int r = 0;

	for (size_t i = 0; i < s->rows.len && !r; i += STRETCH_ROWS) {
		size_t left = s->rows.len - i;
		struct stretch t = { .rows = &s->rows.items[i],
				     .count = left < STRETCH_ROWS ? left : STRETCH_ROWS };

		r = add_stretch(out, t);
	}
	for (size_t i = 0; i < s->kept.len && !r; i++) {
		const struct diff_block *block = s->kept.items[i].block;
		struct stretch t = { .cells = block->cells.items,
				     .tags = block->tags.items,
				     .slot = s->kept.items[i].slot,
				     .count = block->cells.len };

		assert(block->tags.len == block->cells.len);
		r = add_stretch(out, t);
	}
	return r;
}

static inline struct slot_row row_of(const struct stretch *t, size_t i)
{
	if (t->rows)
		return t->rows[i];
	return (struct slot_row){
		.stack = t->cells[i].stack,
		.thread = t->tags[i].thread,
		.slot = t->slot,
		.ticks = t->cells[i].ticks,
		.opcode = t->tags[i].opcode,
	};
}

int slots_each_opcode(const struct slots *s, int (*use)(void *context, uint32_t opcode),
		      void *context)
{
	_cleanup_(stretches_release) struct stretches all = { 0 };
	int r = find_stretches(s, &all);

	for (size_t i = 0; i < all.len; i++) {
		const struct stretch *t = &all.items[i];

		for (size_t row = 0; row < t->count && !r; row++) {
			uint32_t opcode = t->rows ? t->rows[row].opcode : t->tags[row].opcode;

			if (opcode)
				r = use(context, opcode);
		}
	}
	return r;
}

/* Rows are marked with the part they go to, then each part picks its own and sorts them. */
struct sorting {
	compare_fn *compare;
	struct stretches stretches;
	const uint32_t **key_of_slot; /* by slot, then by stack; NULL: the stack itself */
	uint32_t *start;              /* by key: where its rows begin, and how far they have come */
	uint8_t *part_of_key, *part_of_row;
	uint32_t first_key[SLOTS_PARTS + 1], first_row[SLOTS_PARTS + 1];
	const struct slots_taker *taker;
	struct slot_row *sorted; /* where there is no taker: all parts */
	size_t count[SLOTS_PARTS];
	int error[SLOTS_PARTS];
};

static void sorting_release(struct sorting *w)
{
	stretches_release(&w->stretches);
	free(w->key_of_slot);
	free(w->start);
	free(w->part_of_key);
	free(w->part_of_row);
	free(w->sorted);
}

static inline uint32_t key_at(const struct sorting *w, const struct stretch *t, size_t i)
{
	uint32_t stack = t->rows ? t->rows[i].stack : t->cells[i].stack;
	const uint32_t *keys = w->key_of_slot[t->rows ? t->rows[i].slot : t->slot];

	return keys ? keys[stack] : stack;
}

static int allocate(struct sorting *w, const struct slots *s, uint32_t keys)
{
	if (find_stretches(s, &w->stretches) < 0)
		return -ENOMEM;
	if (w->stretches.rows >= UINT32_MAX)
		return -EOVERFLOW;
	w->key_of_slot = calloc(s->runs.len * s->blocks + 1, sizeof(*w->key_of_slot));
	w->start = calloc((size_t)keys + 1, sizeof(*w->start));
	w->part_of_key = malloc((size_t)keys + 1);
	w->part_of_row = malloc(w->stretches.rows + 1);
	return w->key_of_slot && w->start && w->part_of_key && w->part_of_row ? 0 : -ENOMEM;
}

static void count_rows(struct sorting *w, uint32_t keys)
{
	for (size_t i = 0; i < w->stretches.len; i++) {
		const struct stretch *t = &w->stretches.items[i];

		for (size_t row = 0; row < t->count; row++)
			w->start[key_at(w, t, row) + 1]++;
	}
	for (uint32_t i = 0; i < keys; i++)
		w->start[i + 1] += w->start[i];
}

/* Parts of about as many rows each, but whole keys. */
static void cut_parts(struct sorting *w, uint32_t keys)
{
	uint64_t rows = w->stretches.rows;
	uint32_t part = 0;

	for (uint32_t key = 0; key < keys; key++) {
		uint64_t at = w->start[key] * (uint64_t)SLOTS_PARTS / (rows + 1);

		while (part < at) {
			w->first_key[++part] = key;
			w->first_row[part] = w->start[key];
		}
		w->part_of_key[key] = (uint8_t)part;
	}
	while (part < SLOTS_PARTS) {
		w->first_key[++part] = keys;
		w->first_row[part] = (uint32_t)rows;
	}
}

static void mark_rows(void *sorting, size_t i)
{
	const struct sorting *w = sorting;
	const struct stretch *t = &w->stretches.items[i];

	for (size_t row = 0; row < t->count; row++)
		w->part_of_row[t->first + row] = w->part_of_key[key_at(w, t, row)];
}

static int sorting_begin(struct sorting *w, const struct slots *s,
			 const uint32_t *const key_of[SLOT_SIDES], uint32_t keys)
{
	int r = allocate(w, s, keys);

	if (r < 0)
		return r;
	for (size_t i = 0; key_of && i < s->runs.len * s->blocks; i++)
		w->key_of_slot[i] = key_of[s->runs.items[i / s->blocks].side];
	count_rows(w, keys);
	cut_parts(w, keys);
	parallel_run(w->stretches.len, mark_rows, w);
	return 0;
}

/* Counting sort by key, whose start ends where the next one begins. */
static void pick_rows(const struct sorting *w, size_t part, struct slot_row *out)
{
	for (size_t i = 0; i < w->stretches.len; i++) {
		const struct stretch *t = &w->stretches.items[i];
		const uint8_t *marks = w->part_of_row + t->first, *end = marks + t->count;
		const uint8_t *at = marks;

		while (at < end && (at = memchr(at, (int)part, (size_t)(end - at)))) {
			struct slot_row row = row_of(t, (size_t)(at - marks));

			row.stack = key_at(w, t, (size_t)(at - marks));
			out[w->start[row.stack]++ - w->first_row[part]] = row;
			at++;
		}
	}
}

/* Each key's few by compare(). Returns how many are left. */
static size_t sort_part(const struct sorting *w, size_t part, struct slot_row *out)
{
	uint32_t first = w->first_row[part], from = 0;

	pick_rows(w, part, out);
	for (uint32_t key = w->first_key[part]; key < w->first_key[part + 1]; key++) {
		uint32_t end = w->start[key] - first;

		if (!is_sorted(out + from, end - from, w->compare))
			qsort(out + from, end - from, sizeof(*out), w->compare);
		from = end;
	}
	return merge_rows(out, from);
}

static void give_part(void *sorting, size_t part)
{
	struct sorting *w = sorting;
	size_t count = w->first_row[part + 1] - w->first_row[part];
	_cleanup_(freep) struct slot_row *rows = malloc((count + 1) * sizeof(*rows));

	if (!rows) {
		w->error[part] = -ENOMEM;
		return;
	}
	count = sort_part(w, part, rows);
	w->error[part] = w->taker->take(w->taker->context, part, rows, count);
}

int slots_by_key(const struct slots *s, const uint32_t *const key_of[SLOT_SIDES], uint32_t keys,
		 const struct slots_taker *taker)
{
	_cleanup_(sorting_release) struct sorting w = { .compare = compare_rows, .taker = taker };
	int r = sorting_begin(&w, s, key_of, keys);

	if (!r)
		parallel_run(SLOTS_PARTS, give_part, &w);
	for (size_t i = 0; i < SLOTS_PARTS && !r; i++)
		r = w.error[i];
	return r;
}

static void put_part(void *sorting, size_t part)
{
	struct sorting *w = sorting;

	w->count[part] = sort_part(w, part, w->sorted + w->first_row[part]);
}

/* Puts the rows in order of stack, opcode, thread, slot. */
static int order_rows(struct slots *s, uint32_t stacks)
{
	_cleanup_(sorting_release) struct sorting w = { .compare = compare_by_opcode };
	size_t count = 0;
	int r = sorting_begin(&w, s, NULL, stacks);

	if (r < 0)
		return r;
	w.sorted = malloc((s->rows.len + 1) * sizeof(*w.sorted));
	if (!w.sorted)
		return -ENOMEM;
	parallel_run(SLOTS_PARTS, put_part, &w);
	for (size_t part = 0; part < SLOTS_PARTS; part++) {
		memmove(w.sorted + count, w.sorted + w.first_row[part],
			w.count[part] * sizeof(*w.sorted));
		count += w.count[part];
	}
	free(s->rows.items);
	s->rows.items = take_ptr(w.sorted);
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
		r = add_ticks(s, p, sample);
		run->ticks += sample->value;
	}
	if (r || s->rows.len <= SLOTS_ROWS_MAX || s->blocks <= SLOTS_BLOCKS_MIN)
		return r;
	r = order_rows(s, stacktab_count(p->stacks));
	if (r < 0)
		return r;
	do /* room for a while, as sorting takes time */
		halve_blocks(s);
	while (s->rows.len > SLOTS_ROWS_MAX / 2 && s->blocks > SLOTS_BLOCKS_MIN);
	return 0;
}
