/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/top_model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "profile/calltree.h"
#include "profile/cube.h"
#include "profile/idmap.h"
#include "profile/imports.h"
#include "profile/merge.h"
#include "profile/waits.h"

/* What the values of a cell have in common; its values are ns. */
struct key {
	uint32_t stack, thread, labels;
	uint16_t kind;
};

struct cell {
	uint32_t key; /* index */
	uint64_t ns;
};

struct slice {
	uint64_t from_ns, to_ns; /* CLOCK_MONOTONIC */
	struct top_counts counts;
	VEC(struct cell) cells;
};

/* Kinds of samples that are summed, once they are selected. */
enum summed_kind { SUMMED_CPU, SUMMED_WAIT };

struct top_model {
	uint64_t window_ns;
	uint64_t since_ns, now_ns; /* 0: nothing has come */
	uint32_t generation;
	struct profile *profile; /* its samples are those that were summed last */
	struct profile_ids ids;
	struct kinds kinds; /* of the profile that samples come from */
	struct import_fold imports;
	struct select select;
	struct top_counts counts; /* since the start */
	bool has_waits;
	bool is_held;
	uint64_t held_until_ns; /* what has come meanwhile, is in held_values, held_counts */
	struct top_counts held_counts;

	VEC(struct key) keys;
	struct idmap key_map;
	VEC(uint64_t) values[TOP_SPANS], held_values; /* by key */
	VEC(uint32_t) hints;      /* by key: where its cell in the newest slice may be */
	VEC(struct slice) slices; /* oldest first; the last one is being filled */

	/* by id, as far as they were looked at */
	VEC(uint32_t) function_of; /* frame: the first one of its function */
	VEC(uint32_t) thread_of;   /* thread: the first entry of its process and tid */
	VEC(uint32_t) newest_of;   /* such an entry: the last one */
	struct idmap function_map, thread_map;
};

/* --- begin and end ---------------------------------------------------------------------------- */

int top_model_new(uint64_t window_ns, struct top_model **out)
{
	_cleanup_(top_model_freep) struct top_model *m = calloc(1, sizeof(*m));
	int r = m ? profile_new(&m->profile) : -ENOMEM;

	if (r < 0)
		return r;
	m->window_ns = window_ns;
	m->select.keeps_kinds = true;
	*out = take_ptr(m);
	return 0;
}

static void drop_slices(struct top_model *m)
{
	for (size_t i = 0; i < m->slices.len; i++)
		vec_release(&m->slices.items[i].cells);
	vec_release(&m->slices);
}

static void drop_keys(struct top_model *m)
{
	drop_slices(m);
	vec_release(&m->keys);
	idmap_release(&m->key_map);
	for (int i = 0; i < TOP_SPANS; i++)
		vec_release(&m->values[i]);
	vec_release(&m->held_values);
	vec_release(&m->hints);
	vec_release(&m->function_of);
	vec_release(&m->thread_of);
	vec_release(&m->newest_of);
	idmap_release(&m->function_map);
	idmap_release(&m->thread_map);
}

void top_model_free(struct top_model *m)
{
	if (!m)
		return;
	drop_keys(m);
	import_fold_release(&m->imports);
	select_release(&m->select);
	kinds_release(&m->kinds);
	profile_ids_release(&m->ids);
	profile_free(m->profile);
	free(m);
}

void top_model_select(struct top_model *m, const struct select_query *q)
{
	select_release(&m->select);
	m->select = (struct select){ .query = *q, .keeps_kinds = true };
}

void top_model_forget_ids(struct top_model *m)
{
	profile_ids_forget_tables(&m->ids);
	kinds_release(&m->kinds);
}

int top_model_reset(struct top_model *m, uint64_t now_ns)
{
	struct select_query query = m->select.query;
	int r = profile_reset(m->profile);

	if (r < 0)
		return r;
	drop_keys(m);
	import_fold_release(&m->imports);
	m->imports = (struct import_fold){ 0 };
	top_model_select(m, &query); /* what it knew were ids */
	profile_ids_forget_tables(&m->ids);
	m->counts = (struct top_counts){ 0 };
	m->held_counts = (struct top_counts){ 0 };
	m->since_ns = m->now_ns = m->held_until_ns = now_ns;
	m->generation++;
	return 0;
}

uint32_t top_model_generation(const struct top_model *m)
{
	return m->generation;
}

const struct profile *top_model_profile(const struct top_model *m)
{
	return m->profile;
}

/* --- what comes ------------------------------------------------------------------------------- */

static uint64_t hash_of(const struct key *k)
{
	return hash_combine((uint64_t)k->stack << 32 | k->thread,
			    (uint64_t)k->labels << 16 | k->kind);
}

static int key_id(struct top_model *m, const struct key *k, uint32_t *id)
{
	uint64_t hash = hash_of(k);
	size_t at = IDMAP_START;
	int r;

	while ((*id = idmap_next(&m->key_map, hash, &at)) != IDMAP_NONE) {
		const struct key *found = &m->keys.items[*id];

		if (found->stack == k->stack && found->thread == k->thread &&
		    found->labels == k->labels && found->kind == k->kind)
			return 0;
	}
	*id = (uint32_t)m->keys.len;
	if ((r = idmap_reserve(&m->key_map)) < 0 || (r = vec_reserve(&m->keys, 1)) < 0 ||
	    (r = vec_push(&m->values[TOP_LAST], 0)) < 0 ||
	    (r = vec_push(&m->values[TOP_SINCE_START], 0)) < 0 ||
	    (r = vec_push(&m->held_values, 0)) < 0 || (r = vec_push(&m->hints, 0)) < 0)
		return r;
	m->keys.items[m->keys.len++] = *k;
	idmap_insert(&m->key_map, hash, *id);
	return 0;
}

static uint64_t sum_of(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static void add_to(uint64_t *value, uint64_t ns)
{
	*value = sum_of(*value, ns);
}

/* The newest slice has most of them: there one cell a key. */
static int put_cell(struct top_model *m, size_t slice, uint32_t key, uint64_t ns)
{
	struct slice *s = &m->slices.items[slice];
	uint32_t *hint = &m->hints.items[key];

	add_to(&m->values[TOP_LAST].items[key], ns);
	if (slice + 1 == m->slices.len) {
		if (*hint < s->cells.len && s->cells.items[*hint].key == key) {
			add_to(&s->cells.items[*hint].ns, ns);
			return 0;
		}
		*hint = (uint32_t)s->cells.len;
	}
	return vec_push(&s->cells, ((struct cell){ .key = key, .ns = ns }));
}

/* Before the recording's start there is nothing. */
static uint64_t since(uint64_t ns, uint64_t start_ns)
{
	return ns > start_ns ? ns - start_ns : 0;
}

/* Deals a sample's ns out over the slices that it covers: a span comes as it ends. */
static int deal(struct top_model *m, const struct sample *s, uint64_t start_ns, uint32_t key)
{
	uint64_t until = s->value; /* of the value, what is before the end of the slice */
	int r = 0;

	for (size_t i = m->slices.len; i-- && until && !r;) {
		uint64_t from_ns = since(m->slices.items[i].from_ns, start_ns);
		uint64_t before = sample_end_ns(s) <= from_ns ? until
				  : s->duration_ns            ? sample_value_until(s, from_ns)
							      : 0;

		if (before < until)
			r = put_cell(m, i, key, until - before);
		until = before;
	}
	return r;
}

static int take_sample(struct top_model *m, const struct profile *p, const struct sample *from)
{
	uint8_t role = m->kinds.roles.items[from->kind];
	const struct key k = { .stack = m->ids.stacks[from->stack],
			       .thread = m->ids.threads[from->thread],
			       .labels = m->ids.labels[from->labels],
			       .kind = m->ids.kinds[from->kind] };
	struct sample s = *from;
	uint32_t key;
	int r;

	if (!(role & (KIND_IS_CPU | KIND_IS_OFF_CPU)))
		return 0;
	m->has_waits |= !!(role & KIND_IS_OFF_CPU);
	s.value = kinds_scaled(p, from);
	r = key_id(m, &k, &key);
	if (r < 0)
		return r;
	if (m->is_held) {
		add_to(&m->held_values.items[key], s.value);
		return 0;
	}
	add_to(&m->values[TOP_SINCE_START].items[key], s.value);
	return deal(m, &s, profile_recording(p)->start_monotonic_ns, key);
}

static void add_counts(struct top_counts *to, const struct top_counts *from)
{
	to->samples += from->samples;
	to->lost += from->lost;
	to->lost_wait_ns += from->lost_wait_ns;
	to->ticks += from->ticks;
	to->idle_ticks += from->idle_ticks;
	to->python_ticks += from->python_ticks;
	to->own_ns += from->own_ns;
	to->sampler_ns += from->sampler_ns;
}

static void expire(struct top_model *m)
{
	size_t gone = 0;

	while (gone + 1 < m->slices.len &&
	       m->slices.items[gone].to_ns + m->window_ns <= m->now_ns) {
		struct slice *s = &m->slices.items[gone++];

		for (size_t i = 0; i < s->cells.len; i++)
			m->values[TOP_LAST].items[s->cells.items[i].key] -= s->cells.items[i].ns;
		vec_release(&s->cells);
	}
	m->slices.len -= gone;
	if (gone)
		memmove(m->slices.items, m->slices.items + gone,
			m->slices.len * sizeof(m->slices.items[0]));
}

static size_t bytes_of(const struct top_model *m)
{
	return profile_bytes(m->profile) + m->keys.cap * sizeof(struct key) +
	       idmap_bytes(&m->key_map) + 3 * m->values[TOP_LAST].cap * sizeof(uint64_t);
}

/* What comes is of a slice until then. */
static int begin_slice(struct top_model *m, uint64_t now_ns, const struct top_counts *counts)
{
	struct slice slice = { .from_ns = m->now_ns, .to_ns = now_ns, .counts = *counts };

	if (m->is_held) {
		m->held_until_ns = now_ns;
		add_counts(&m->held_counts, counts);
		return 0;
	}
	m->now_ns = now_ns;
	add_counts(&m->counts, counts);
	return vec_push(&m->slices, slice);
}

int top_model_add(struct top_model *m, const struct profile *p, uint64_t now_ns,
		  const struct top_counts *counts)
{
	int r = 0;

	if (bytes_of(m) > TOP_BYTES_MAX)
		r = top_model_reset(m, m->now_ns);
	if (!m->since_ns)
		m->since_ns = m->now_ns = profile_recording(p)->start_monotonic_ns;
	if (r < 0 || (r = profile_merge(m->profile, p, &m->ids)) < 0 ||
	    (r = kinds_choose(&m->kinds, p, NULL)) < 0 || (r = begin_slice(m, now_ns, counts)) < 0)
		return r;
	for (size_t i = 0; i < p->samples.len && !r; i++)
		r = take_sample(m, p, &p->samples.items[i]);
	expire(m);
	return r;
}

static void let_go(struct top_model *m)
{
	for (size_t i = 0; i < m->keys.len; i++) {
		add_to(&m->values[TOP_SINCE_START].items[i], m->held_values.items[i]);
		m->values[TOP_LAST].items[i] = m->held_values.items[i] = 0;
	}
	add_counts(&m->counts, &m->held_counts);
	m->held_counts = (struct top_counts){ 0 };
	m->now_ns = m->held_until_ns;
	drop_slices(m);
}

void top_model_hold(struct top_model *m, bool is_held)
{
	if (m->is_held == is_held)
		return;
	m->is_held = is_held;
	m->held_until_ns = is_held ? m->now_ns : m->held_until_ns;
	if (!is_held)
		let_go(m);
}

/* --- functions and threads -------------------------------------------------------------------- */

static int judge_frame(struct top_model *m, uint32_t frame)
{
	const struct frame *f = frametab_get(m->profile->frames, frame);
	uint64_t hash = hash_combine((uint64_t)f->name << 32 | f->file, f->kind);
	size_t at = IDMAP_START;
	uint32_t first;
	int r;

	while ((first = idmap_next(&m->function_map, hash, &at)) != IDMAP_NONE) {
		const struct frame *g = frametab_get(m->profile->frames, first);

		if (g->name == f->name && g->file == f->file && g->kind == f->kind)
			return vec_push(&m->function_of, first);
	}
	if ((r = idmap_reserve(&m->function_map)) < 0 || (r = vec_push(&m->function_of, frame)) < 0)
		return r;
	idmap_insert(&m->function_map, hash, frame);
	return 0;
}

static int judge_thread(struct top_model *m, uint32_t thread)
{
	const struct thread *t = &m->profile->threads.items[thread];
	uint64_t hash = hash_u64((uint64_t)t->process << 32 | t->tid);
	size_t at = IDMAP_START;
	uint32_t first;
	int r = vec_push(&m->newest_of, thread);

	while (!r && (first = idmap_next(&m->thread_map, hash, &at)) != IDMAP_NONE) {
		const struct thread *f = &m->profile->threads.items[first];

		if (f->process != t->process || f->tid != t->tid)
			continue;
		m->newest_of.items[first] = thread;
		return vec_push(&m->thread_of, first);
	}
	if (r < 0 || (r = idmap_reserve(&m->thread_map)) < 0 ||
	    (r = vec_push(&m->thread_of, thread)) < 0)
		return r;
	idmap_insert(&m->thread_map, hash, thread);
	return 0;
}

static int judge(struct top_model *m)
{
	int r = 0;

	while (m->function_of.len < frametab_count(m->profile->frames) && !r)
		r = judge_frame(m, (uint32_t)m->function_of.len);
	while (m->thread_of.len < m->profile->threads.len && !r)
		r = judge_thread(m, (uint32_t)m->thread_of.len);
	return r;
}

/* --- which samples ---------------------------------------------------------------------------- */

static bool is_in_scope(const struct profile *p, uint32_t thread, const struct top_scope *scope)
{
	const struct thread *t = &p->threads.items[thread];

	return scope->process == TOP_NONE ||
	       (t->process == scope->process && (!scope->tid || t->tid == scope->tid));
}

/* The profile holds them then, as one of SUMMED_CPU and SUMMED_WAIT each. */
static int select_cells(struct top_model *m, enum top_span span, const struct top_scope *scope)
{
	struct profile *p = m->profile;
	int r = 0;

	profile_clear_samples(p);
	for (size_t i = 0; i < m->keys.len && !r; i++) {
		const struct key *k = &m->keys.items[i];
		uint64_t ns = m->values[span].items[i];

		if (ns && is_in_scope(p, k->thread, scope))
			r = profile_add_sample(p, &(struct sample){ .value = ns,
								    .stack = k->stack,
								    .thread = k->thread,
								    .labels = k->labels,
								    .kind = k->kind });
	}
	if (r < 0 || !p->samples.len || (r = import_fold_samples(&m->imports, p)) < 0 ||
	    (r = select_samples(&m->select, p)) < 0)
		return r;
	for (size_t i = 0; i < p->samples.len; i++) {
		struct sample *s = &p->samples.items[i];
		bool is_wait = m->select.kinds.roles.items[s->kind] & KIND_IS_OFF_CPU;

		s->kind = is_wait ? SUMMED_WAIT : SUMMED_CPU;
	}
	return 0;
}

/* --- rows ------------------------------------------------------------------------------------- */

/* Time of a row, by what it was in or waited for. */
struct part {
	uint32_t row, what;
	uint64_t ns;
	uint64_t wanted_ns; /* of that of the column that counts */
};

static int compare_parts(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	return x->what < y->what ? -1 : x->what > y->what;
}

struct parts {
	struct part *items; /* a VEC */
	size_t len, cap;
};

static void parts_releasep(struct parts *p)
{
	vec_release(p);
}

static void add_part(struct part *to, const struct part *from)
{
	to->ns += from->ns;
	to->wanted_ns += from->wanted_ns;
}

/* Sums up parts of one row and thing. */
static void fold_parts(struct parts *p)
{
	size_t kept = 0;

	if (p->len)
		qsort(p->items, p->len, sizeof(p->items[0]), compare_parts);
	for (size_t i = 0; i < p->len; i++) {
		if (kept && !compare_parts(&p->items[kept - 1], &p->items[i]))
			add_part(&p->items[kept - 1], &p->items[i]);
		else
			p->items[kept++] = p->items[i];
	}
	p->len = kept;
}

static bool is_larger(const struct part *a, const struct part *b)
{
	return a->wanted_ns != b->wanted_ns ? a->wanted_ns > b->wanted_ns : a->ns > b->ns;
}

/* The largest of a row from *at on, where the next one begins then. */
static const struct part *largest_of_row(const struct parts *p, size_t *at)
{
	const struct part *best = &p->items[*at];

	for (uint32_t row = best->row; *at < p->len && p->items[*at].row == row; ++*at)
		if (is_larger(&p->items[*at], best))
			best = &p->items[*at];
	return best;
}

/* Why a function waits is no function that it calls: where it is not all that there is. */
static uint32_t leaf_of(const struct profile *p, uint32_t stack)
{
	const struct stack_entry *entries = stacktab_entries(p->stacks);
	uint32_t parent = stack ? entries[stack].parent : 0;

	if (!stack)
		return TOP_NONE;
	if (parent && wait_is_marker(p, entries[stack].frame))
		return entries[parent].frame;
	return entries[stack].frame;
}

static bool is_gil(const struct profile *p, uint32_t marker)
{
	return marker && !strcmp(strtab_get(p->strings, marker), WAIT_MARKER_GIL);
}

static void add_time(uint64_t ns[TOP_COLUMNS], const struct profile *p, const struct sample *s,
		     uint32_t marker)
{
	if (s->kind == SUMMED_CPU) {
		ns[TOP_SELF] += s->value;
		ns[TOP_TOTAL] += s->value;
		return;
	}
	ns[TOP_WAIT] += s->value;
	if (is_gil(p, marker))
		ns[TOP_GIL] += s->value;
}

static int sum_all(const struct profile *p, struct top_sums *out)
{
	_cleanup_(parts_releasep) struct parts waits = VEC_INIT;
	size_t at = 0;
	int r = 0;

	for (size_t i = 0; i < p->samples.len && !r; i++) {
		const struct sample *s = &p->samples.items[i];
		uint32_t marker = wait_of_stack(p, s->stack);

		add_time(out->ns, p, s, marker);
		if (s->kind == SUMMED_WAIT)
			r = vec_push(&waits, ((struct part){ marker, marker, s->value, 0 }));
	}
	fold_parts(&waits);
	while (at < waits.len && !r) {
		const struct part *wait = largest_of_row(&waits, &at);

		r = vec_push(&out->waits, ((struct top_wait){ wait->what, wait->ns }));
	}
	return r;
}

static int compare_waits(const void *a, const void *b)
{
	const struct top_wait *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return x->marker < y->marker ? -1 : x->marker > y->marker;
}

/* Rows of threads (by their first entries) or processes. */
struct gathering {
	const struct top_model *m;
	struct top_sums *out;
	enum top_column column;
	uint32_t *row_of; /* by id: index + 1 */
	struct parts places, waits;
};

static void gathering_release(struct gathering *g)
{
	free(g->row_of);
	vec_release(&g->places);
	vec_release(&g->waits);
}

static int gather(struct gathering *g, const struct sample *s, uint32_t id)
{
	const struct profile *p = g->m->profile;
	uint32_t leaf = leaf_of(p, s->stack), marker = wait_of_stack(p, s->stack), row;
	uint64_t ns[TOP_COLUMNS] = { 0 };
	int r = 0;

	if (!g->row_of[id]) {
		r = vec_push(&g->out->rows, ((struct top_row){ .id = id, .mostly = TOP_NONE }));
		if (r < 0)
			return r;
		g->row_of[id] = (uint32_t)g->out->rows.len;
	}
	row = g->row_of[id] - 1;
	add_time(g->out->rows.items[row].ns, p, s, marker);
	add_time(ns, p, s, marker);
	if (leaf != TOP_NONE)
		r = vec_push(&g->places, ((struct part){ row, g->m->function_of.items[leaf],
							 s->value, ns[g->column] }));
	if (!r && s->kind == SUMMED_WAIT && marker)
		r = vec_push(&g->waits, ((struct part){ row, marker, s->value, 0 }));
	return r;
}

static void note_largest(struct gathering *g)
{
	struct top_row *rows = g->out->rows.items;

	fold_parts(&g->places);
	fold_parts(&g->waits);
	for (size_t at = 0; at < g->places.len;) {
		const struct part *part = largest_of_row(&g->places, &at);

		rows[part->row].mostly = part->what;
	}
	for (size_t at = 0; at < g->waits.len;) {
		const struct part *part = largest_of_row(&g->waits, &at);

		rows[part->row].waits_for = part->what;
	}
}

static int gather_rows(const struct top_model *m, enum top_table table, enum top_column column,
		       struct top_sums *out)
{
	const struct profile *p = m->profile;
	size_t count = table == TOP_THREADS ? p->threads.len : p->processes.len;
	_cleanup_(gathering_release) struct gathering g = { .m = m, .out = out, .column = column };
	int r = 0;

	g.row_of = calloc(count + 1, sizeof(*g.row_of));
	if (!g.row_of)
		return -ENOMEM;
	for (size_t i = 0; i < p->samples.len && !r; i++) {
		const struct sample *s = &p->samples.items[i];
		uint32_t first = m->thread_of.items[s->thread];

		r = gather(&g, s, table == TOP_THREADS ? first : p->threads.items[first].process);
	}
	if (!r)
		note_largest(&g);
	for (size_t i = 0; i < out->rows.len && table == TOP_THREADS; i++)
		out->rows.items[i].id = m->newest_of.items[out->rows.items[i].id];
	return r;
}

/* How many threads and processes there are, and of each process how many threads. */
static int count_threads(const struct top_model *m, enum top_table table, struct top_sums *out)
{
	const struct profile *p = m->profile;
	_cleanup_(freep) uint32_t *of_process = calloc(p->processes.len + 1, sizeof(uint32_t));
	_cleanup_(freep) bool *is_counted = calloc(p->threads.len + 1, sizeof(bool));

	if (!of_process || !is_counted)
		return -ENOMEM;
	for (size_t i = 0; i < p->samples.len; i++) {
		uint32_t first = m->thread_of.items[p->samples.items[i].thread];

		if (is_counted[first])
			continue;
		is_counted[first] = true;
		out->threads++;
		out->processes += !of_process[p->threads.items[first].process]++;
	}
	for (size_t i = 0; i < out->rows.len && table == TOP_PROCESSES; i++)
		out->rows.items[i].threads = of_process[out->rows.items[i].id];
	return 0;
}

/* Rows of functions by the first frame of each. */
struct function_rows {
	struct top_sums *out;
	uint32_t *row_of; /* by frame: index + 1 */
};

/* NULL: no memory. */
static struct top_row *function_row(struct function_rows *f, uint32_t frame)
{
	if (!f->row_of[frame]) {
		if (vec_push(&f->out->rows, ((struct top_row){ .id = frame, .mostly = TOP_NONE })) <
		    0)
			return NULL;
		f->row_of[frame] = (uint32_t)f->out->rows.len;
	}
	return &f->out->rows.items[f->row_of[frame] - 1];
}

static int add_cpu(const struct calltree *tree, struct function_rows *f)
{
	for (size_t i = 0; i < tree->function_count; i++) {
		struct top_row *row = function_row(f, tree->functions[i].frame);

		if (!row)
			return -ENOMEM;
		row->ns[TOP_SELF] = tree->functions[i].self;
		row->ns[TOP_TOTAL] = tree->functions[i].total;
	}
	return 0;
}

static int add_waits(const struct profile *p, const struct calltree *tree, struct function_rows *f)
{
	for (size_t i = 1; i < tree->node_count; i++) {
		const struct calltree_node *n = &tree->nodes[i], *of = n;
		bool is_marker = n->self && wait_is_marker(p, n->frame);
		struct top_row *row;

		if (!n->self)
			continue;
		if (is_marker && n->parent)
			of = &tree->nodes[n->parent];
		row = function_row(f, of->frame);
		if (!row)
			return -ENOMEM;
		row->ns[TOP_WAIT] += n->self;
		if (is_marker && is_gil(p, frametab_get(p->frames, n->frame)->name))
			row->ns[TOP_GIL] += n->self;
	}
	return 0;
}

static void cube_releasep(struct cube *c)
{
	cube_release(c);
}

static int gather_functions(const struct top_model *m, struct top_sums *out)
{
	const struct profile *p = m->profile;
	_cleanup_(freep) uint32_t *row_of = calloc(frametab_count(p->frames) + 1, sizeof(uint32_t));
	_cleanup_(calltree_freep) struct calltree *cpu = NULL, *wait = NULL;
	_cleanup_(cube_releasep) struct cube cube = { .axes = CUBE_KINDS };
	struct function_rows f = { out, row_of };
	int r;

	if (!row_of)
		return -ENOMEM;
	if ((r = cube_add(&cube, p)) < 0 || (r = cube_finish(&cube, p)) < 0 ||
	    (r = calltree_new(p, &cube, SUMMED_CPU, CALLTREE_BY_FUNCTION, &cpu)) < 0 ||
	    (r = add_cpu(cpu, &f)) < 0)
		return r;
	if (!m->has_waits)
		return 0;
	r = calltree_new(p, &cube, SUMMED_WAIT, CALLTREE_BY_FUNCTION, &wait);
	return r < 0 ? r : add_waits(p, wait, &f);
}

/* --- sums ------------------------------------------------------------------------------------- */

void top_sums_release(struct top_sums *s)
{
	vec_release(&s->rows);
	vec_release(&s->waits);
	*s = (struct top_sums){ 0 };
}

static void sum_counts(const struct top_model *m, enum top_span span, struct top_sums *out)
{
	out->has_waits = m->has_waits;
	if (span == TOP_SINCE_START) {
		out->counts = m->counts;
		out->span_ns = m->now_ns - m->since_ns;
		return;
	}
	for (size_t i = 0; i < m->slices.len; i++)
		add_counts(&out->counts, &m->slices.items[i].counts);
	if (m->slices.len)
		out->span_ns = m->now_ns - m->slices.items[0].from_ns;
}

int top_model_sum(struct top_model *m, enum top_span span, enum top_table table,
		  enum top_column column, const struct top_scope *scope, struct top_sums *out)
{
	int r;

	top_sums_release(out);
	sum_counts(m, span, out);
	if ((r = select_cells(m, span, scope)) < 0 || (r = judge(m)) < 0 ||
	    (r = sum_all(m->profile, out)) < 0)
		return r;
	if (out->waits.len)
		qsort(out->waits.items, out->waits.len, sizeof(out->waits.items[0]), compare_waits);
	r = table == TOP_FUNCTIONS ? gather_functions(m, out) : gather_rows(m, table, column, out);
	return r < 0 ? r : count_threads(m, table, out);
}

/* --- one function ----------------------------------------------------------------------------- */

void top_detail_release(struct top_detail *d)
{
	vec_release(&d->callers);
	vec_release(&d->lines);
	vec_release(&d->stack);
	*d = (struct top_detail){ 0 };
}

static int put_part(struct parts *to, uint32_t frame, const struct sample *s)
{
	return vec_push(to, ((struct part){ s->kind, frame, s->value, 0 }));
}

/* Where a stack has a function: TOP_NONE, TOP_NONE if nowhere. */
static void find_in_stack(const struct top_model *m, uint32_t stack, uint32_t function,
			  uint32_t *line, uint32_t *caller)
{
	const struct stack_entry *entries = stacktab_entries(m->profile->stacks);

	*line = *caller = TOP_NONE;
	for (uint32_t at = stack; at; at = entries[at].parent) {
		uint32_t parent = entries[at].parent;

		if (m->function_of.items[entries[at].frame] != function)
			continue;
		if (*line == TOP_NONE)
			*line = entries[at].frame;
		*caller = parent ? m->function_of.items[entries[parent].frame] : TOP_NONE;
	}
}

static int compare_top_parts(const void *a, const void *b)
{
	const struct top_part *x = a, *y = b;
	uint64_t x_ns = x->cpu_ns + x->wait_ns, y_ns = y->cpu_ns + y->wait_ns;

	if (x_ns != y_ns)
		return x_ns > y_ns ? -1 : 1;
	return x->frame < y->frame ? -1 : x->frame > y->frame;
}

/* By frame, of both kinds: those of a kind stand together, and each once. */
static int join_kinds(struct parts *from, struct top_parts *out)
{
	fold_parts(from);
	for (size_t i = 0; i < from->len; i++) {
		const struct part *p = &from->items[i];
		size_t k = 0;

		while (k < out->len && out->items[k].frame != p->what)
			k++;
		if (k == out->len && vec_push(out, ((struct top_part){ .frame = p->what })) < 0)
			return -ENOMEM;
		if (p->row == SUMMED_CPU)
			out->items[k].cpu_ns += p->ns;
		else
			out->items[k].wait_ns += p->ns;
	}
	if (out->len)
		qsort(out->items, out->len, sizeof(out->items[0]), compare_top_parts);
	return 0;
}

static int copy_stack(const struct profile *p, uint32_t stack, struct top_detail *out)
{
	const struct stack_entry *entries = stacktab_entries(p->stacks);
	size_t depth = 0;

	for (uint32_t at = stack; at; at = entries[at].parent)
		depth++;
	if (vec_reserve(&out->stack, depth) < 0)
		return -ENOMEM;
	out->stack.len = depth;
	for (uint32_t at = stack; at; at = entries[at].parent)
		out->stack.items[--depth] = entries[at].frame;
	return 0;
}

static int look_at_stacks(const struct parts *stacks, const struct profile *p,
			  struct top_detail *out)
{
	uint32_t best = 0;

	for (size_t i = 0; i < stacks->len; i++) {
		out->all_ns += stacks->items[i].ns;
		if (stacks->items[i].ns > out->stack_ns) {
			out->stack_ns = stacks->items[i].ns;
			best = stacks->items[i].what;
		}
	}
	return copy_stack(p, best, out);
}

int top_model_look(struct top_model *m, uint32_t frame, struct top_detail *out)
{
	_cleanup_(parts_releasep) struct parts callers = VEC_INIT, lines = VEC_INIT,
					       stacks = VEC_INIT;
	uint32_t function = m->function_of.items[frame], line, caller;
	int r = 0;

	top_detail_release(out);
	for (size_t i = 0; i < m->profile->samples.len && !r; i++) {
		const struct sample *s = &m->profile->samples.items[i];

		find_in_stack(m, s->stack, function, &line, &caller);
		if (line == TOP_NONE)
			continue;
		if ((r = put_part(&callers, caller, s)) < 0 || (r = put_part(&lines, line, s)) < 0)
			break;
		r = vec_push(&stacks, ((struct part){ 0, s->stack, s->value, 0 }));
	}
	fold_parts(&stacks);
	if (!r)
		r = join_kinds(&callers, &out->callers);
	if (!r)
		r = join_kinds(&lines, &out->lines);
	return r < 0 ? r : look_at_stacks(&stacks, m->profile, out);
}

/* --- order ------------------------------------------------------------------------------------ */

static int compare_rows(const void *a, const void *b, void *column)
{
	const struct top_row *x = a, *y = b;
	const enum top_column order[] = { *(const enum top_column *)column, TOP_SELF, TOP_WAIT,
					  TOP_TOTAL };

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		if (x->ns[order[i]] != y->ns[order[i]])
			return x->ns[order[i]] > y->ns[order[i]] ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

void top_sort(struct top_row *rows, size_t count, enum top_column column)
{
	if (count)
		qsort_r(rows, count, sizeof(*rows), compare_rows, &column);
}
