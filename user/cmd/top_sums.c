/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "cmd/top_inside.h"
#include "profile/calltree.h"
#include "profile/cube.h"
#include "profile/waits.h"

/* --- parts ------------------------------------------------------------------------------------ */

static int compare_parts(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	return x->what < y->what ? -1 : x->what > y->what;
}

static void add_part(struct part *to, const struct part *from)
{
	to->ns += from->ns;
	to->wanted_ns += from->wanted_ns;
}

void parts_fold(struct parts *p)
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

const struct part *parts_largest_of_row(const struct parts *p, size_t *at)
{
	const struct part *best = &p->items[*at];

	for (uint32_t row = best->row; *at < p->len && p->items[*at].row == row; ++*at)
		if (is_larger(&p->items[*at], best))
			best = &p->items[*at];
	return best;
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

static int intern_task(const struct profile *p, uint32_t *name)
{
	return strtab_intern(p->strings, PROFILE_TASK, strlen(PROFILE_TASK), name);
}

/* --- which samples ---------------------------------------------------------------------------- */

/* What the task of these labels is called; TOP_NONE: there is none. */
static uint32_t task_of(const struct profile *p, uint32_t labels, uint32_t task_name)
{
	const struct label_entry *entries = labeltab_entries(p->labels);

	for (uint32_t set = labels; set; set = entries[set].parent)
		if (entries[set].name == task_name)
			return entries[set].value;
	return TOP_NONE;
}

static bool is_in_scope(const struct profile *p, const struct key *k, uint32_t task_name,
			const struct top_scope *scope)
{
	const struct thread *t = &p->threads.items[k->thread];

	if (scope->task && task_of(p, k->labels, task_name) != scope->task)
		return false;
	return scope->process == TOP_NONE ||
	       (t->process == scope->process && (!scope->tid || t->tid == scope->tid));
}

static enum summed_kind summed_kind(uint8_t role)
{
	return role & KIND_IS_TASK      ? SUMMED_TASK
	       : role & KIND_IS_OFF_CPU ? SUMMED_WAIT
					: SUMMED_CPU;
}

/* The profile holds them then, each as a summed_kind; those of tasks where these are looked at. */
static int select_cells(struct top_model *m, enum top_span span, enum top_table table,
			const struct top_scope *scope)
{
	struct profile *p = m->profile;
	bool has_tasks = table == TOP_TASKS || scope->task;
	uint32_t task_name;
	size_t kept = 0;
	int r = intern_task(p, &task_name);

	profile_clear_samples(p);
	for (size_t i = 0; i < m->keys.len && !r; i++) {
		const struct key *k = &m->keys.items[i];
		uint64_t ns = m->values[span].items[i];

		if (ns && is_in_scope(p, k, task_name, scope))
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
		struct sample s = p->samples.items[i];

		s.kind = summed_kind(m->select.kinds.roles.items[s.kind]);
		if (s.kind != SUMMED_TASK || has_tasks)
			p->samples.items[kept++] = s;
	}
	p->samples.len = kept;
	return 0;
}

/* --- rows ------------------------------------------------------------------------------------- */

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

		if (s->kind == SUMMED_TASK)
			continue; /* no time of threads */
		add_time(out->ns, p, s, marker);
		if (s->kind == SUMMED_WAIT)
			r = vec_push(&waits, ((struct part){ marker, marker, s->value, 0 }));
	}
	parts_fold(&waits);
	while (at < waits.len && !r) {
		const struct part *wait = parts_largest_of_row(&waits, &at);

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

	parts_fold(&g->places);
	parts_fold(&g->waits);
	for (size_t at = 0; at < g->places.len;) {
		const struct part *part = parts_largest_of_row(&g->places, &at);

		rows[part->row].mostly = part->what;
	}
	for (size_t at = 0; at < g->waits.len;) {
		const struct part *part = parts_largest_of_row(&g->waits, &at);

		rows[part->row].waits_for = part->what;
	}
}

static uint32_t row_of_sample(const struct top_model *m, enum top_table table,
			      const struct sample *s, uint32_t task_name)
{
	uint32_t first = m->thread_of.items[s->thread];

	if (table == TOP_TASKS)
		return task_of(m->profile, s->labels, task_name);
	return table == TOP_THREADS ? first : m->profile->threads.items[first].process;
}

static int gather_rows(const struct top_model *m, enum top_table table, enum top_column column,
		       struct top_sums *out)
{
	const struct profile *p = m->profile;
	_cleanup_(gathering_release) struct gathering g = { .m = m, .out = out, .column = column };
	uint32_t task_name;
	size_t count;
	int r = intern_task(p, &task_name);

	count = table == TOP_TASKS     ? strtab_count(p->strings)
		: table == TOP_THREADS ? p->threads.len
				       : p->processes.len;
	g.row_of = calloc(count + 1, sizeof(*g.row_of));
	if (!g.row_of)
		return -ENOMEM;
	for (size_t i = 0; i < p->samples.len && !r; i++) {
		const struct sample *s = &p->samples.items[i];
		uint32_t id = row_of_sample(m, table, s, task_name);

		if (id != TOP_NONE)
			r = gather(&g, s, id);
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
	_cleanup_(calltree_freep) struct calltree *cpu = NULL, *wait = NULL, *task = NULL;
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
	if ((r = calltree_new(p, &cube, SUMMED_WAIT, CALLTREE_BY_FUNCTION, &wait)) < 0 ||
	    (r = calltree_new(p, &cube, SUMMED_TASK, CALLTREE_BY_FUNCTION, &task)) < 0 ||
	    (r = add_waits(p, wait, &f)) < 0)
		return r;
	return add_waits(p, task, &f);
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
		top_counts_add(&out->counts, &m->slices.items[i].counts);
	if (m->slices.len)
		out->span_ns = m->now_ns - m->slices.items[0].from_ns;
}

int top_model_sum(struct top_model *m, enum top_span span, enum top_table table,
		  enum top_column column, const struct top_scope *scope, struct top_sums *out)
{
	int r;

	top_sums_release(out);
	sum_counts(m, span, out);
	if ((r = select_cells(m, span, table, scope)) < 0 || (r = judge(m)) < 0 ||
	    (r = sum_all(m->profile, out)) < 0)
		return r;
	if (out->waits.len)
		qsort(out->waits.items, out->waits.len, sizeof(out->waits.items[0]), compare_waits);
	r = table == TOP_FUNCTIONS ? gather_functions(m, out) : gather_rows(m, table, column, out);
	return r < 0 ? r : count_threads(m, table, out);
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
