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
#include "profile/calltree.h"
#include "profile/loss.h"
#include "profile/module.h"

#define SCHEMA "pyebpf-profile/1"
#define NO_ROW (-1)

struct writer {
	struct json j;
	const struct profile *p;
	const struct cube *cube;
	const struct export_opts *o;
	struct calltree *tree;
	struct modules modules;
	bool *is_kept;        /* by node */
	bool keeps_unknown;   /* the stacks without frames */
	int64_t *row_of;      /* by node */
	uint32_t *index_of;   /* by frame id: 1 + its index in `frames`; 0: it is in no path */
	VEC(uint32_t) frames; /* ids of the frames of the paths */
	bool has_times;       /* of samples: not so of sums */
	struct strbuf text;
};

static void writer_release(struct writer *w)
{
	calltree_free(w->tree);
	modules_release(&w->modules);
	free(w->is_kept);
	free(w->row_of);
	free(w->index_of);
	vec_release(&w->frames);
	strbuf_release(&w->text);
}

/* --- what is left out ------------------------------------------------------------------------- */

static int compare_totals(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x > y ? -1 : x < y;
}

static uint64_t least_ticks(const struct writer *w)
{
	return (uint64_t)ceil(w->o->min_percent / 100 * (double)w->tree->nodes[0].total);
}

/*
 * The largest: so none is kept without the one it is in, which is as large and comes before it.
 * Sets is_kept and returns how many are.
 */
static int keep_paths(struct writer *w, size_t *kept)
{
	size_t paths = w->tree->node_count - 1, limit = w->o->limit ? w->o->limit : paths;
	_cleanup_(freep) uint64_t *totals = calloc(paths + 1, sizeof(*totals));
	uint64_t least = least_ticks(w);
	size_t equal = 0; /* of the last one's size, that still fit in */

	w->keeps_unknown = w->tree->nodes[0].self && w->tree->nodes[0].self >= least;
	w->is_kept = calloc(paths + 1, sizeof(*w->is_kept));
	if (!totals || !w->is_kept)
		return -ENOMEM;
	for (size_t i = 0; i < paths; i++)
		totals[i] = w->tree->nodes[i + 1].total;
	if (limit < paths) {
		qsort(totals, paths, sizeof(*totals), compare_totals);
		if (least < totals[limit - 1])
			least = totals[limit - 1];
		for (size_t i = limit; i > 0 && totals[i - 1] == least; i--)
			equal++;
	} else {
		equal = paths;
	}
	*kept = 0;
	for (size_t i = 1; i <= paths; i++) {
		uint64_t total = w->tree->nodes[i].total;

		w->is_kept[i] = total > least || (total == least && equal);
		equal -= total == least && equal;
		*kept += w->is_kept[i];
	}
	return 0;
}

static size_t keep_functions(const struct writer *w)
{
	uint64_t least = least_ticks(w);
	size_t kept = w->tree->function_count;

	if (w->o->limit && w->o->limit < kept)
		kept = w->o->limit;
	while (kept && w->tree->functions[kept - 1].total < least)
		kept--;
	return kept;
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

static const char *kind_name(const struct writer *w)
{
	const struct recording facts = profile_facts(w->p);

	return json_tick_kind(&facts);
}

/* Ticks in the kind's unit. */
static uint64_t value_of(const struct writer *w, uint64_t ticks)
{
	uint64_t interval_ns = profile_recording(w->p)->interval_ns;

	return json_scaled(ticks, interval_ns ? interval_ns : 1);
}

static void put_kinds(struct writer *w)
{
	uint64_t ticks = w->tree->nodes[0].total;

	json_key(&w->j, "kinds");
	json_array_lines(&w->j);
	json_object(&w->j);
	json_key_string(&w->j, "name", kind_name(w));
	json_key_string(&w->j, "unit",
			json_units[profile_recording(w->p)->interval_ns ? UNIT_NS : UNIT_COUNT]);
	json_key_u64(&w->j, "period", value_of(w, 1));
	json_key_u64(&w->j, "samples", ticks);
	json_key_u64(&w->j, "total", value_of(w, ticks));
	json_end(&w->j);
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
	for (size_t i = 1; i < w->tree->node_count; i++) {
		uint32_t frame = w->tree->nodes[i].frame;

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

static void put_path(struct writer *w, int64_t parent, uint64_t frame, uint64_t self,
		     uint64_t total)
{
	json_array(&w->j);
	json_i64(&w->j, parent);
	json_u64(&w->j, frame);
	json_u64(&w->j, value_of(w, self));
	json_u64(&w->j, value_of(w, total));
	json_end(&w->j);
}

static int put_path_fields(struct writer *w)
{
	static const char *const ends[] = { ".self", ".total" };

	json_key(&w->j, "path_fields");
	json_array(&w->j);
	json_string(&w->j, "parent");
	json_string(&w->j, "frame");
	for (size_t i = 0; i < 2; i++) {
		strbuf_truncate(&w->text, 0);
		strbuf_puts(&w->text, kind_name(w));
		if (strbuf_puts(&w->text, ends[i]) < 0)
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
	for (size_t i = 1; i < w->tree->node_count; i++) {
		if (!w->is_kept[i])
			continue;
		w->row_of[i] = row++;
		put_path(w, w->row_of[nodes[i].parent], w->index_of[nodes[i].frame] - 1,
			 nodes[i].self, nodes[i].total);
	}
	if (w->keeps_unknown)
		put_path(w, NO_ROW, w->frames.len, nodes[0].self, nodes[0].self);
	json_end(&w->j);
	return 0;
}

/* --- functions, threads, losses --------------------------------------------------------------- */

static void put_values(struct writer *w, uint64_t self, uint64_t total)
{
	json_key(&w->j, kind_name(w));
	json_array(&w->j);
	json_u64(&w->j, value_of(w, self));
	json_u64(&w->j, value_of(w, total));
	json_end(&w->j);
}

static void put_functions(struct writer *w, size_t count)
{
	json_key(&w->j, "functions");
	json_array_lines(&w->j);
	for (size_t i = 0; i < count; i++) {
		const struct calltree_function *f = &w->tree->functions[i];

		json_object(&w->j);
		json_key(&w->j, "name");
		json_interned(&w->j, w->p, f->name);
		json_key(&w->j, "file");
		json_interned(&w->j, w->p, f->kind == FRAME_PYTHON ? f->file : 0);
		json_key_string(&w->j, "type", json_frame_types[f->kind]);
		put_values(w, f->self, f->total);
		json_end(&w->j);
	}
	if (w->keeps_unknown) {
		json_object(&w->j);
		json_key_string(&w->j, "name", PROFILE_NO_FRAMES);
		json_key_string(&w->j, "file", NULL);
		json_key_string(&w->j, "type", json_frame_types[FRAME_MARKER]);
		put_values(w, w->tree->nodes[0].self, w->tree->nodes[0].self);
		json_end(&w->j);
	}
	json_end(&w->j);
}

static void put_thread(struct writer *w, size_t index, const struct cube_sum *t)
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
	json_key_double(&w->j, "start", (double)t->first_ns / (double)NS_PER_SECOND + unknown);
	json_key_double(&w->j, "end", (double)t->last_ns / (double)NS_PER_SECOND + unknown);
	json_key_u64(&w->j, kind_name(w), value_of(w, t->value));
	json_end(&w->j);
}

static int put_threads(struct writer *w)
{
	_cleanup_(freep) struct cube_sum *sums = calloc(w->p->threads.len + 1, sizeof(*sums));

	if (!sums)
		return -ENOMEM;
	cube_sum_threads(w->cube, w->p, KIND_TICKS, sums);
	json_key(&w->j, "threads");
	json_array_lines(&w->j);
	for (size_t i = 0; i < w->p->threads.len; i++)
		if (sums[i].value)
			put_thread(w, i, &sums[i]);
	json_end(&w->j);
	return 0;
}

static void put_lost(struct writer *w)
{
	json_key(&w->j, "lost");
	if (!loss_is_known(w->p, loss_ticks)) {
		json_null(&w->j);
		return;
	}
	json_object(&w->j);
	for (const struct loss_row *row = loss_ticks; row->counter; row++) {
		uint64_t lost = profile_counter(w->p, row->counter);

		if (lost)
			json_key_u64(&w->j, row->counter, lost);
	}
	json_end(&w->j);
}

static int put_all(struct writer *w, size_t paths)
{
	size_t functions = keep_functions(w);
	bool leaves_unknown = w->tree->nodes[0].self && !w->keeps_unknown;
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
	put_functions(w, functions);
	r = put_threads(w);
	if (r < 0)
		return r;
	json_key(&w->j, "gil");
	json_array(&w->j);
	json_end(&w->j);
	put_lost(w);
	json_key_u64(&w->j, "truncated", w->tree->node_count - 1 - paths + leaves_unknown);
	json_key_u64(&w->j, "truncated_functions",
		     w->tree->function_count - functions + leaves_unknown);
	json_end(&w->j);
	return 0;
}

static int write_json(struct exporting *x)
{
	_cleanup_(writer_release) struct writer w = {
		.p = x->p,
		.cube = x->cube,
		.o = x->o,
		.has_times = !profile_facts(x->p).is_summed,
		.text = STRBUF_INIT,
	};
	size_t paths = 0;
	int r = calltree_new(x->p, x->cube, KIND_TICKS,
			     x->o->no_lines ? CALLTREE_BY_FUNCTION : CALLTREE_BY_LINE, &w.tree);

	if (!r)
		r = modules_find(&w.modules, x->p, NULL, NULL);
	if (!r)
		r = keep_paths(&w, &paths);
	if (r < 0)
		return r;
	json_init(&w.j, x->out);
	r = put_all(&w, paths);
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
	.finish = write_json,
};
