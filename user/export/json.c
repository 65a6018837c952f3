/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A profile for programs, docs/json.md: one object, keys in a fixed order, each element of a list
 * on a line of its own, so that it is written and can be read as a stream. What is not known is
 * null.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "export/export.h"
#include "export/json_parts.h"
#include "export/largest.h"
#include "profile/calltree.h"
#include "profile/gil.h"
#include "profile/kinds.h"
#include "profile/loss.h"
#include "profile/module.h"

#define SCHEMA "pyebpf-profile/1"
#define NO_ROW (-1)

/* What values of one name are: ticks, a kind of samples, or both. */
struct column {
	const char *name;
	uint8_t unit;    /* enum sample_unit */
	uint64_t period; /* of a tick; 0: values are of the unit */
	uint64_t samples;
	uint64_t *self, *total;                   /* by node, in the unit */
	uint64_t *function_self, *function_total; /* by function */
	struct cube_sum *threads;                 /* by index, as they are shown */
	bool is_time; /* that threads lived: paths are ordered by the sum of these */
};

struct writer {
	struct json j;
	const struct profile *p;
	const struct cube *cube;
	const struct gil *gil;
	const struct export_opts *o;
	struct calltree *tree; /* of all kinds: its sums have no unit */
	struct modules modules;
	VEC(struct column) columns;
	uint64_t *weight;          /* by node: what it is ordered by, and left out */
	uint64_t *function_weight; /* by function */
	uint32_t *order;           /* nodes but the root in preorder, heaviest first */
	uint32_t *functions;       /* heaviest first */
	bool *is_kept;             /* by place in `order` */
	bool *keeps_function;      /* by place in `functions` */
	bool *keeps_thread;        /* by index */
	bool has_unknown;          /* stacks without frames */
	bool keeps_unknown;
	bool has_time; /* columns that are time: what things weigh is their sum, else the first */
	size_t gil_rows;
	struct {
		struct left_out paths, functions, threads, gil;
	} left_out;
	int64_t *row_of;      /* by node */
	uint32_t *index_of;   /* by frame id: 1 + its index in `frames`; 0: it is in no path */
	VEC(uint32_t) frames; /* ids of the frames of the paths */
	bool has_times;       /* of samples: not so of sums */
	struct strbuf text;
};

static void writer_release(struct writer *w)
{
	for (size_t i = 0; i < w->columns.len; i++) {
		free(w->columns.items[i].self);
		free(w->columns.items[i].total);
		free(w->columns.items[i].function_self);
		free(w->columns.items[i].function_total);
		free(w->columns.items[i].threads);
	}
	calltree_free(w->tree);
	modules_release(&w->modules);
	vec_release(&w->columns);
	free(w->weight);
	free(w->function_weight);
	free(w->order);
	free(w->functions);
	free(w->is_kept);
	free(w->keeps_function);
	free(w->keeps_thread);
	free(w->row_of);
	free(w->index_of);
	vec_release(&w->frames);
	strbuf_release(&w->text);
}

/* --- values ----------------------------------------------------------------------------------- */

/* A hostile file's values may be anything: callers must not look smaller than what they call. */
static void add_to(uint64_t *sum, uint64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = UINT64_MAX;
}

/* What a kind of the cube is; ticks are what was selected, where that is one kind. */
static struct column describe(const struct writer *w, uint16_t kind)
{
	const struct recording facts = profile_facts(w->p);
	struct value_unit of = recording_value_unit(&facts);
	bool has_kinds = w->cube->axes & CUBE_KINDS && w->p->kinds.len;
	struct column c = { .name = has_kinds ? KINDS_CPU : json_tick_kind(&facts) };

	if (kind != KIND_TICKS) {
		const struct sample_kind *k = &w->p->kinds.items[kind - 1];

		c.name = strtab_get(w->p->strings, k->name);
		of = (struct value_unit){ k->period, k->unit };
	}
	c.unit = of.unit;
	c.period = of.period;
	c.is_time =
		kind == KIND_TICKS || !strcmp(c.name, KINDS_CPU) || !strcmp(c.name, KINDS_OFF_CPU);
	return c;
}

static int allocate(const struct writer *w, struct column *c)
{
	c->self = calloc(w->tree->node_count, sizeof(*c->self));
	c->total = calloc(w->tree->node_count, sizeof(*c->total));
	c->function_self = calloc(w->tree->function_count + 1, sizeof(*c->function_self));
	c->function_total = calloc(w->tree->function_count + 1, sizeof(*c->function_total));
	c->threads = calloc(w->p->threads.len + 1, sizeof(*c->threads));
	return c->self && c->total && c->function_self && c->function_total && c->threads ? 0
											  : -ENOMEM;
}

/* The column of that name, which may be new. */
static int find_column(struct writer *w, uint16_t kind, struct column **out)
{
	struct column made = describe(w, kind);
	int r;

	for (size_t i = 0; i < w->columns.len; i++)
		if (!strcmp(w->columns.items[i].name, made.name)) {
			*out = &w->columns.items[i];
			return 0;
		}
	r = vec_push(&w->columns, made);
	if (r < 0)
		return r;
	*out = &w->columns.items[w->columns.len - 1];
	return allocate(w, *out);
}

/* A tick may weigh as much as several, each of which was a sample that was due. */
static void add_threads(const struct writer *w, uint16_t kind, uint64_t period, struct column *c)
{
	bool is_tick = kind == KIND_TICKS && (c->unit == UNIT_COUNT || c->period > 1);

	for (size_t i = 0; kind < w->cube->sums.len && i < w->cube->sums.items[kind].len; i++) {
		struct cube_sum sum = w->cube->sums.items[kind].items[i];

		c->samples += is_tick ? sum.value : sum.count;
		sum.value = json_scaled(sum.value, period);
		cube_sum_add(&c->threads[w->p->threads.items[i].same], &sum);
	}
}

/* Self times and threads; ticks of a kind that is no time count. */
static int add_kind(struct writer *w, uint16_t kind, bool is_needed)
{
	_cleanup_(freep) uint64_t *values = calloc(w->tree->stack_count + 1, sizeof(*values));
	uint64_t period = describe(w, kind).period;
	struct column *c;
	bool has_any = is_needed;
	int r;

	if (!values)
		return -ENOMEM;
	cube_sum_stacks(w->cube, CUBE_BOTH_SIDES, kind, values);
	for (size_t i = 0; i < w->tree->stack_count; i++)
		has_any = has_any || values[i];
	if (!has_any)
		return 0;
	r = find_column(w, kind, &c);
	if (r < 0)
		return r;
	for (size_t i = 0; i < w->tree->stack_count; i++)
		add_to(&c->self[w->tree->node_of[i]], json_scaled(values[i], period));
	add_threads(w, kind, period, c);
	return 0;
}

/* Totals: callees come after their callers. A function that stands below itself was counted. */
static int sum_column(const struct writer *w, struct column *c)
{
	_cleanup_(freep) uint32_t *inside = calloc(w->tree->function_count + 1, sizeof(*inside));
	const struct calltree_node *nodes = w->tree->nodes;

	if (!inside)
		return -ENOMEM;
	for (size_t i = w->tree->node_count; i-- > 0;) {
		add_to(&c->total[i], c->self[i]);
		if (i)
			add_to(&c->total[nodes[i].parent], c->total[i]);
	}
	for (uint32_t i = 1; i < w->tree->node_count; i++) {
		uint32_t f = nodes[i].function;

		add_to(&c->function_self[f], c->self[i]);
		if (i < inside[f])
			continue;
		add_to(&c->function_total[f], c->total[i]);
		inside[f] = nodes[i].end;
	}
	return 0;
}

/* Is it part of what things are ordered by, and left out? */
static bool weighs(const struct writer *w, size_t column)
{
	return w->has_time ? w->columns.items[column].is_time : column == 0;
}

static int weigh(struct writer *w)
{
	size_t nodes = w->tree->node_count, functions = w->tree->function_count;

	w->weight = calloc(nodes, sizeof(*w->weight));
	w->function_weight = calloc(functions + 1, sizeof(*w->function_weight));
	if (!w->weight || !w->function_weight)
		return -ENOMEM;
	for (size_t i = 0; i < w->columns.len; i++)
		w->has_time = w->has_time || w->columns.items[i].is_time;
	for (size_t i = 0; i < w->columns.len; i++) {
		const struct column *c = &w->columns.items[i];

		w->has_unknown = w->has_unknown || c->self[0];
		if (!weighs(w, i))
			continue;
		for (size_t n = 0; n < nodes; n++)
			add_to(&w->weight[n], c->total[n]);
		for (size_t f = 0; f < functions; f++)
			add_to(&w->function_weight[f], c->function_total[f]);
	}
	return 0;
}

static int make_columns(struct writer *w)
{
	size_t kinds = w->cube->axes & CUBE_KINDS ? w->p->kinds.len : 0;
	int r = 0;

	for (size_t kind = KIND_TICKS; kind <= kinds && !r; kind++)
		r = add_kind(w, (uint16_t)kind, false);
	if (!r && !w->columns.len)
		r = add_kind(w, KIND_TICKS, true);
	for (size_t i = 0; i < w->columns.len && !r; i++)
		r = sum_column(w, &w->columns.items[i]);
	return r ? r : weigh(w);
}

/* --- order ------------------------------------------------------------------------------------ */

static int compare_nodes(const void *a, const void *b, void *writer)
{
	const struct writer *w = writer;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint32_t of_x = w->tree->nodes[x].parent, of_y = w->tree->nodes[y].parent;

	if (of_x != of_y)
		return of_x < of_y ? -1 : 1;
	if (w->weight[x] != w->weight[y])
		return w->weight[x] > w->weight[y] ? -1 : 1;
	return x < y ? -1 : x > y;
}

static int compare_functions(const void *a, const void *b, void *writer)
{
	const struct writer *w = writer;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (w->function_weight[x] != w->function_weight[y])
		return w->function_weight[x] > w->function_weight[y] ? -1 : 1;
	return x < y ? -1 : x > y;
}

/*
 * Preorder without recursion: siblings stand next to each other when all nodes are in order of
 * their parents, from first[parent] on; those that are left of each are in next[].
 */
static int order_nodes(struct writer *w)
{
	size_t count = w->tree->node_count;
	_cleanup_(freep) uint32_t *sorted = calloc(count + 1, sizeof(*sorted));
	_cleanup_(freep) uint32_t *next = calloc(count + 1, sizeof(*next));
	size_t placed = 0;
	uint32_t at = 0;

	w->order = calloc(count, sizeof(*w->order));
	if (!sorted || !next || !w->order)
		return -ENOMEM;
	for (uint32_t i = 1; i < count; i++)
		sorted[i - 1] = i;
	qsort_r(sorted, count - 1, sizeof(*sorted), compare_nodes, w);
	for (size_t i = count - 1; i-- > 0;)
		next[w->tree->nodes[sorted[i]].parent] = (uint32_t)i;
	while (placed + 1 < count) {
		uint32_t i = next[at], child = sorted[i];
		bool has_child = i < count - 1 && w->tree->nodes[at].end > at + 1 &&
				 w->tree->nodes[child].parent == at;

		if (has_child) {
			next[at]++;
			w->order[placed++] = child;
			at = child;
		} else {
			at = w->tree->nodes[at].parent;
		}
	}
	return 0;
}

static int order_functions(struct writer *w)
{
	w->functions = calloc(w->tree->function_count + 1, sizeof(*w->functions));
	if (!w->functions)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->tree->function_count; i++)
		w->functions[i] = i;
	qsort_r(w->functions, w->tree->function_count, sizeof(*w->functions), compare_functions, w);
	return 0;
}

/* --- what is left out ------------------------------------------------------------------------- */

/* What a row has of its own, of what it is ordered by. */
static uint64_t own_weight(const struct writer *w, uint32_t node)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < w->columns.len; i++)
		if (weighs(w, i))
			add_to(&sum, w->columns.items[i].self[node]);
	return sum;
}

static uint64_t own_function_weight(const struct writer *w, uint32_t function)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < w->columns.len; i++)
		if (weighs(w, i))
			add_to(&sum, w->columns.items[i].function_self[function]);
	return sum;
}

static uint64_t thread_weight(const struct writer *w, size_t thread)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < w->columns.len; i++)
		if (weighs(w, i))
			add_to(&sum, w->columns.items[i].threads[thread].value);
	return sum;
}

static struct largest limits(const struct writer *w)
{
	return (struct largest){ w->o->limit, w->o->min_percent };
}

/* None is kept without the one it is in, which is as large and comes before it. */
static int keep_paths(struct writer *w)
{
	size_t paths = w->tree->node_count - 1, kept;
	_cleanup_(freep) uint64_t *weights = calloc(paths + 1, sizeof(*weights));
	const struct largest of = limits(w), all = { .min_percent = of.min_percent };
	uint64_t unknown = own_weight(w, 0);
	int r;

	w->is_kept = calloc(paths + 1, sizeof(*w->is_kept));
	if (!weights || !w->is_kept)
		return -ENOMEM;
	for (size_t i = 0; i < paths; i++)
		weights[i] = w->weight[w->order[i]];
	r = largest_keep(&of, weights, paths, w->weight[0], w->is_kept, &kept);
	if (!r && w->has_unknown)
		r = largest_keep(&all, &unknown, 1, w->weight[0], &w->keeps_unknown, &kept);
	if (w->has_unknown && !w->keeps_unknown) {
		left_out_add(&w->left_out.paths, unknown, w->weight[0]);
		left_out_add(&w->left_out.functions, unknown, w->weight[0]);
	}
	for (size_t i = 0; i < paths && !r; i++)
		if (!w->is_kept[i])
			left_out_add(&w->left_out.paths, own_weight(w, w->order[i]), w->weight[0]);
	return r;
}

static int keep_functions(struct writer *w)
{
	size_t count = w->tree->function_count, kept;
	_cleanup_(freep) uint64_t *weights = calloc(count + 1, sizeof(*weights));
	const struct largest of = limits(w);
	int r;

	w->keeps_function = calloc(count + 1, sizeof(*w->keeps_function));
	if (!weights || !w->keeps_function)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		weights[i] = w->function_weight[w->functions[i]];
	r = largest_keep(&of, weights, count, w->weight[0], w->keeps_function, &kept);
	for (size_t i = 0; i < count && !r; i++)
		if (!w->keeps_function[i])
			left_out_add(&w->left_out.functions,
				     own_function_weight(w, w->functions[i]), w->weight[0]);
	return r;
}

static bool has_samples(const struct writer *w, size_t thread)
{
	for (size_t i = 0; i < w->columns.len; i++)
		if (w->columns.items[i].threads[thread].value)
			return true;
	return false;
}

static int keep_threads(struct writer *w)
{
	size_t count = w->p->threads.len, kept;
	_cleanup_(freep) uint64_t *weights = calloc(count + 1, sizeof(*weights));
	const struct largest of = limits(w);
	int r;

	w->keeps_thread = calloc(count + 1, sizeof(*w->keeps_thread));
	if (!weights || !w->keeps_thread)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		weights[i] = thread_weight(w, i);
	r = largest_keep(&of, weights, count, w->weight[0], w->keeps_thread, &kept);
	for (size_t i = 0; i < count && !r; i++)
		if (!w->keeps_thread[i] && has_samples(w, i))
			left_out_add(&w->left_out.threads, weights[i], w->weight[0]);
	return r;
}

/* They are the largest first. */
static void keep_gil(struct writer *w)
{
	size_t count = w->gil ? w->gil->rows.len : 0;
	double whole = 0, least;

	for (size_t i = 0; i < count; i++)
		whole += w->gil->rows.items[i].ns;
	least = whole * w->o->min_percent / 100;
	for (size_t i = 0; i < count; i++) {
		const struct gil_row *row = &w->gil->rows.items[i];

		if (row->ns >= least && (!w->o->limit || i < w->o->limit))
			w->gil_rows++;
		else
			left_out_add(&w->left_out.gil, (uint64_t)row->ns, (uint64_t)whole);
	}
}

static int leave_out(struct writer *w)
{
	int r = keep_paths(w);

	if (!r)
		r = keep_functions(w);
	if (!r)
		r = keep_threads(w);
	keep_gil(w);
	return r;
}

static void put_left_out(struct writer *w)
{
	json_key(&w->j, "left_out");
	json_object(&w->j);
	json_left_out(&w->j, "paths", &w->left_out.paths);
	json_left_out(&w->j, "functions", &w->left_out.functions);
	json_left_out(&w->j, "threads", &w->left_out.threads);
	json_left_out(&w->j, "gil", &w->left_out.gil);
	json_end(&w->j);
}

/* --- recordings and kinds --------------------------------------------------------------------- */

/* "1.5", of which 0 says that it is not known. */
static void key_known(struct json *j, const char *key, double v)
{
	json_key_double(j, key, v > 0 ? v : (double)NAN);
}

static bool is_of_version(const struct process *process, uint32_t recording, uint32_t version)
{
	return process->recording == recording && process->python_version == version;
}

/* Of the recording's processes. */
static void put_versions(struct writer *w, uint32_t recording)
{
	const struct profile *p = w->p;

	json_key(&w->j, "python");
	json_array(&w->j);
	for (size_t i = 0; i < p->processes.len; i++) {
		const struct process *process = &p->processes.items[i];
		size_t before = 0;

		while (before < i && !is_of_version(&p->processes.items[before], recording,
						    process->python_version))
			before++;
		if (process->recording == recording && process->python_version && before == i)
			json_interned(&w->j, w->p, process->python_version);
	}
	json_end(&w->j);
}

static void put_recording(struct writer *w, uint32_t index)
{
	const struct recording *r = &w->p->recordings.items[index];

	json_object(&w->j);
	json_key_time(&w->j, "start", r->start_realtime_ns);
	key_known(&w->j, "seconds", (double)r->duration_ns / (double)NS_PER_SECOND);
	json_key_string(&w->j, "command", r->command);
	json_key_string(&w->j, "target", r->target);
	json_key_string(&w->j, "host", r->host);
	put_versions(w, index);
	json_key_string(&w->j, "mode", r->mode);
	json_key_string(&w->j, "part", r->part);
	key_known(&w->j, "rate_hz", (double)r->rate_hz);
	key_known(&w->j, "work", r->work);
	json_end(&w->j);
}

static void put_recordings(struct writer *w)
{
	json_key(&w->j, "recordings");
	json_array_lines(&w->j);
	for (uint32_t i = 0; i < w->p->recordings.len; i++)
		put_recording(w, i);
	json_end(&w->j);
}

static void put_kinds(struct writer *w)
{
	json_key(&w->j, "kinds");
	json_array_lines(&w->j);
	for (size_t i = 0; i < w->columns.len; i++) {
		const struct column *c = &w->columns.items[i];

		json_object(&w->j);
		json_key_string(&w->j, "name", c->name);
		json_key_string(&w->j, "unit", json_units[c->unit]);
		json_key_u64(&w->j, "period", c->period);
		json_key_u64(&w->j, "samples", c->samples);
		json_key_u64(&w->j, "total", c->total[0]);
		json_end(&w->j);
	}
	json_end(&w->j);
}

/* --- frames and paths ------------------------------------------------------------------------- */

static void put_module(struct writer *w, const struct frame *f)
{
	if (f->kind != FRAME_PYTHON) {
		json_interned(&w->j, w->p, f->kind == FRAME_NATIVE ? f->file : 0);
		return;
	}
	strbuf_truncate(&w->text, 0);
	modules_put_name(&w->modules, f->file, &w->text);
	if (w->text.len)
		json_string_len(&w->j, w->text.bytes, w->text.len);
	else
		json_null(&w->j);
}

static void put_frame(struct writer *w, const struct frame *f)
{
	json_array(&w->j);
	json_frame_fields(&w->j, w->p, f, f->kind == FRAME_PYTHON ? f->file : 0, !w->o->no_lines);
	put_module(w, f);
	json_end(&w->j);
}

static void put_unknown_frame(struct writer *w)
{
	json_array(&w->j);
	json_no_frame_fields(&w->j);
	json_null(&w->j);
	json_end(&w->j);
}

/* The frames of all paths that are kept, and after them the one of stacks without any. */
static int put_frames(struct writer *w)
{
	w->index_of = calloc((size_t)frametab_count(w->p->frames) + 1, sizeof(*w->index_of));
	if (!w->index_of)
		return -ENOMEM;
	json_key(&w->j, "frames");
	json_array_lines(&w->j);
	for (size_t i = 0; i + 1 < w->tree->node_count; i++) {
		uint32_t frame = w->tree->nodes[w->order[i]].frame;

		if (!w->is_kept[i] || w->index_of[frame])
			continue;
		if (vec_push(&w->frames, frame) < 0)
			return -ENOMEM;
		w->index_of[frame] = (uint32_t)w->frames.len;
		put_frame(w, frametab_get(w->p->frames, frame));
	}
	if (w->keeps_unknown)
		put_unknown_frame(w);
	json_end(&w->j);
	return 0;
}

/* The root stands for stacks without frames: what is below it is not of these. */
static void put_path(struct writer *w, int64_t parent, uint64_t frame, uint32_t node)
{
	json_array(&w->j);
	json_i64(&w->j, parent);
	json_u64(&w->j, frame);
	for (size_t i = 0; i < w->columns.len; i++) {
		const struct column *c = &w->columns.items[i];

		json_u64(&w->j, c->self[node]);
		json_u64(&w->j, node ? c->total[node] : c->self[node]);
	}
	json_end(&w->j);
}

static int put_path_fields(struct writer *w)
{
	static const char *const ends[] = { ".self", ".total" };

	json_key(&w->j, "path_fields");
	json_array(&w->j);
	json_string(&w->j, "parent");
	json_string(&w->j, "frame");
	for (size_t i = 0; i < 2 * w->columns.len; i++) {
		strbuf_truncate(&w->text, 0);
		strbuf_puts(&w->text, w->columns.items[i / 2].name);
		if (strbuf_puts(&w->text, ends[i % 2]) < 0)
			return -ENOMEM;
		json_string(&w->j, strbuf_str(&w->text));
	}
	json_end(&w->j);
	return 0;
}

static int put_paths(struct writer *w)
{
	const struct calltree_node *nodes = w->tree->nodes;
	int64_t row = 0;
	int r = put_path_fields(w);

	w->row_of = calloc(w->tree->node_count, sizeof(*w->row_of));
	if (r < 0 || !w->row_of)
		return -ENOMEM;
	json_key(&w->j, "paths");
	json_array_lines(&w->j);
	w->row_of[0] = NO_ROW;
	for (size_t i = 0; i + 1 < w->tree->node_count; i++) {
		uint32_t node = w->order[i];

		if (!w->is_kept[i])
			continue;
		w->row_of[node] = row++;
		put_path(w, w->row_of[nodes[node].parent], w->index_of[nodes[node].frame] - 1,
			 node);
	}
	if (w->keeps_unknown)
		put_path(w, NO_ROW, w->frames.len, 0);
	json_end(&w->j);
	return 0;
}

/* --- functions, threads, losses --------------------------------------------------------------- */

static void put_values(struct writer *w, uint32_t function)
{
	for (size_t i = 0; i < w->columns.len; i++) {
		const struct column *c = &w->columns.items[i];

		json_key(&w->j, c->name);
		json_array(&w->j);
		json_u64(&w->j, c->function_self[function]);
		json_u64(&w->j, c->function_total[function]);
		json_end(&w->j);
	}
}

static void put_unknown_function(struct writer *w)
{
	json_object(&w->j);
	json_key_string(&w->j, "name", PROFILE_NO_FRAMES);
	json_key_string(&w->j, "file", NULL);
	json_key_string(&w->j, "type", json_frame_types[FRAME_MARKER]);
	for (size_t i = 0; i < w->columns.len; i++) {
		json_key(&w->j, w->columns.items[i].name);
		json_array(&w->j);
		json_u64(&w->j, w->columns.items[i].self[0]);
		json_u64(&w->j, w->columns.items[i].self[0]);
		json_end(&w->j);
	}
	json_end(&w->j);
}

static void put_functions(struct writer *w)
{
	json_key(&w->j, "functions");
	json_array_lines(&w->j);
	for (size_t i = 0; i < w->tree->function_count; i++) {
		const struct calltree_function *f = &w->tree->functions[w->functions[i]];

		if (!w->keeps_function[i])
			continue;
		json_object(&w->j);
		json_key(&w->j, "name");
		json_interned(&w->j, w->p, f->name);
		json_key(&w->j, "file");
		json_interned(&w->j, w->p, f->kind == FRAME_PYTHON ? f->file : 0);
		json_key_string(&w->j, "type", json_frame_types[f->kind]);
		put_values(w, w->functions[i]);
		json_end(&w->j);
	}
	if (w->keeps_unknown)
		put_unknown_function(w);
	json_end(&w->j);
}

static void put_thread(struct writer *w, size_t index, const struct cube_sum *all)
{
	const struct thread *thread = &w->p->threads.items[index];
	const struct process *process = &w->p->processes.items[thread->process];
	double unknown = w->has_times ? 0 : (double)NAN;

	json_object(&w->j);
	json_key_u64(&w->j, "pid", process->pid);
	json_key_u64(&w->j, "tid", thread->tid);
	json_key(&w->j, "process");
	json_interned(&w->j, w->p, process->name);
	json_key(&w->j, "name");
	json_interned(&w->j, w->p, thread->name);
	json_key_double(&w->j, "start", (double)all->first_ns / (double)NS_PER_SECOND + unknown);
	json_key_double(&w->j, "end", (double)all->last_ns / (double)NS_PER_SECOND + unknown);
	for (size_t i = 0; i < w->columns.len; i++)
		json_key_u64(&w->j, w->columns.items[i].name,
			     w->columns.items[i].threads[index].value);
	json_end(&w->j);
}

static void put_threads(struct writer *w)
{
	json_key(&w->j, "threads");
	json_array_lines(&w->j);
	for (size_t i = 0; i < w->p->threads.len; i++) {
		struct cube_sum all = { 0 };

		for (size_t c = 0; c < w->columns.len; c++)
			cube_sum_add(&all, &w->columns.items[c].threads[i]);
		if (all.value && w->keeps_thread[i])
			put_thread(w, i, &all);
	}
	json_end(&w->j);
}

static void put_gil_function(struct writer *w, uint32_t function)
{
	const struct gil_function *f =
		function == GIL_NOBODY ? NULL : &w->gil->functions.items[function];

	json_interned(&w->j, w->p, f ? f->name : 0);
	json_interned(&w->j, w->p, f ? f->file : 0);
}

static void put_gil(struct writer *w)
{
	json_key(&w->j, "gil");
	json_array_lines(&w->j);
	for (size_t i = 0; i < w->gil_rows; i++) {
		const struct gil_row *row = &w->gil->rows.items[i];

		json_array(&w->j);
		put_gil_function(w, row->waiter);
		put_gil_function(w, row->holder);
		json_double(&w->j, round(row->ns) / (double)NS_PER_SECOND);
		json_u64(&w->j, (uint64_t)llround(row->episodes));
		json_end(&w->j);
	}
	json_end(&w->j);
}

static void put_lost(struct writer *w)
{
	static const struct loss_row *const losses[] = { loss_ticks, loss_spans, loss_events };
	bool is_known = false;

	json_key(&w->j, "lost");
	for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++)
		is_known = is_known || loss_is_known(w->p, losses[i]);
	if (!is_known) {
		json_null(&w->j);
		return;
	}
	json_object(&w->j);
	for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++)
		for (const struct loss_row *row = losses[i]; row->counter; row++) {
			uint64_t lost = profile_counter(w->p, row->counter);

			if (lost)
				json_key_u64(&w->j, row->counter, lost);
		}
	json_end(&w->j);
}

static int put_all(struct writer *w)
{
	int r;

	json_object(&w->j);
	json_key_string(&w->j, "schema", SCHEMA);
	put_recordings(w);
	put_kinds(w);
	r = put_frames(w);
	if (!r)
		r = put_paths(w);
	if (r < 0)
		return r;
	put_functions(w);
	put_threads(w);
	put_gil(w);
	put_lost(w);
	json_key_u64(&w->j, "truncated", w->left_out.paths.count);
	json_key_u64(&w->j, "truncated_functions", w->left_out.functions.count);
	put_left_out(w);
	json_end(&w->j);
	return 0;
}

static int write_json(struct exporting *x)
{
	_cleanup_(writer_release) struct writer w = {
		.p = x->p,
		.cube = x->cube,
		.gil = x->gil,
		.o = x->o,
		.has_times = !profile_facts(x->p).is_summed,
		.text = STRBUF_INIT,
	};
	int r = calltree_new(x->p, x->cube, CUBE_ALL_KINDS,
			     x->o->no_lines ? CALLTREE_BY_FUNCTION : CALLTREE_BY_LINE, &w.tree);

	if (!r)
		r = modules_find(&w.modules, x->p, NULL, NULL);
	if (!r)
		r = make_columns(&w);
	if (!r)
		r = order_nodes(&w);
	if (!r)
		r = order_functions(&w);
	if (!r)
		r = leave_out(&w);
	if (r < 0)
		return r;
	json_init(&w.j, x->out);
	r = put_all(&w);
	if (r < 0)
		return r;
	json_finish(&w.j); /* -EIO is told by whoever closes the stream */
	fputc('\n', x->out);
	return 0;
}

static const char *const suffixes[] = { ".json", NULL };

const struct exporter exporter_json = {
	.name = "json",
	.suffixes = suffixes,
	.help = "one object for programs: paths, functions, threads, losses",
	.needs = CUBE_KINDS | EXPORT_NEEDS_GIL,
	.finish = write_json,
};
