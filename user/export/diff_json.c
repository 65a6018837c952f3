/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A comparison for programs, docs/diff.md: one object, keys in a fixed order, each element of a
 * list on a line of its own, so that it is written and can be read as a stream. What is not known
 * is null.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "export/diff_export.h"
#include "export/diff_words.h"
#include "export/largest.h"

#define SCHEMA "pyebpf-diff/1"

/* Greater than 0, else it is not known. */
static void key_known(struct json *j, const char *key, double v)
{
	json_key_double(j, key, v > 0 ? v : (double)NAN);
}

static void key_float(struct json *j, const char *key, float v)
{
	json_key(j, key);
	json_float(j, v);
}

static void put_text(struct json *j, const struct diff_report *r, uint32_t string)
{
	const struct strtab *strings = r->input->profile->strings;

	json_string_len(j, strtab_get(strings, string), strtab_len(strings, string));
}

/* --- the sides -------------------------------------------------------------------------------- */

/* What all runs of a side say; NULL where they differ or do not say. */
static const char *common(const struct diff_report *r, enum diff_side side,
			  const char *(*get)(const struct diff_report *, const struct cube_run *))
{
	const char *found = NULL;

	for (size_t i = 0; i < r->input->cube.runs.len; i++) {
		const struct cube_run *run = &r->input->cube.runs.items[i];
		const char *text = run->side == side ? get(r, run) : NULL;

		if (run->side != side)
			continue;
		if (!text || (found && strcmp(found, text) != 0))
			return NULL;
		found = text;
	}
	return found;
}

static const char *get_mode(const struct diff_report *r, const struct cube_run *run)
{
	return diff_run_recording(r->input, run)->mode;
}

static const char *get_python(const struct diff_report *r, const struct cube_run *run)
{
	return diff_run_python(r->input, run);
}

static const char *get_host(const struct diff_report *r, const struct cube_run *run)
{
	return diff_run_recording(r->input, run)->host;
}

static const char *get_command(const struct diff_report *r, const struct cube_run *run)
{
	const struct recording *recording = diff_run_recording(r->input, run);

	return recording->target ? recording->target : recording->command;
}

static uint64_t first_start(const struct diff_report *r, enum diff_side side)
{
	uint64_t first = 0;

	for (size_t i = 0; i < r->input->cube.runs.len; i++) {
		const struct cube_run *run = &r->input->cube.runs.items[i];
		uint64_t start = diff_run_recording(r->input, run)->start_realtime_ns;

		if (run->side == side && start && (!first || start < first))
			first = start;
	}
	return first;
}

static void put_environment(struct json *j, const struct diff_report *r, enum diff_side side)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;

	json_key(j, "environment");
	json_object(j);
	for (size_t i = 0; i < ENVIRONMENT_FACTS; i++) {
		strbuf_truncate(&text, 0);
		environment_put(r->input, side, i, &text);
		json_key_string(j, environment_keys[i], text.len ? strbuf_str(&text) : NULL);
	}
	json_end(j);
}

static void put_side(struct json *j, const struct diff_report *r, enum diff_side side)
{
	struct diff_side_sum sum;

	diff_input_sum(r->input, side, &sum);
	json_object(j);
	json_key(j, "files");
	json_array(j);
	for (size_t i = 0; i < r->input->cube.runs.len; i++)
		if (r->input->cube.runs.items[i].side == side)
			json_string(j, r->input->cube.runs.items[i].file);
	json_end(j);
	json_key_u64(j, "runs", sum.runs);
	json_key_u64(j, "samples", sum.ticks);
	json_key_u64(j, "lost", sum.lost);
	key_known(j, "interval_us", sum.interval_ns / 1e3);
	json_key(j, "ms");
	if (sum.interval_ns > 0)
		json_double(j, (double)sum.ticks * sum.interval_ns / 1e6);
	else
		json_null(j);
	key_known(j, "seconds", sum.seconds);
	key_known(j, "work", sum.work);
	json_key_string(j, "mode", common(r, side, get_mode));
	json_key_string(j, "python", common(r, side, get_python));
	json_key_string(j, "host", common(r, side, get_host));
	json_key_string(j, "command", common(r, side, get_command));
	json_key_time(j, "start", first_start(r, side));
	put_environment(j, r, side);
	json_end(j);
}

static void put_sides(struct json *j, const struct diff_report *r)
{
	json_key(j, "base");
	put_side(j, r, DIFF_BASE);
	json_key(j, "current");
	put_side(j, r, DIFF_CURRENT);
}

/* Where the sides ran, as far as it differs, comes first. */
static void put_notes(struct json *j, const struct diff_report *r)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;

	json_key(j, "notes");
	json_array_lines(j);
	for (size_t i = 0; i < r->environment->len; i++) {
		strbuf_truncate(&text, 0);
		if (!diff_put_difference(&text, &r->environment->items[i]))
			json_string(j, strbuf_str(&text));
	}
	for (size_t i = 0; i < r->notes->len; i++)
		json_string(j, r->notes->items[i]);
	json_end(j);
}

static void put_names(struct json *j, const char *key, const char *const *names, size_t count)
{
	json_key(j, key);
	json_array(j);
	for (size_t i = 0; i < count; i++)
		json_string(j, names[i]);
	json_end(j);
}

/* --- what changed ----------------------------------------------------------------------------- */

static void put_measure_keys(struct json *j, const struct diff_measure *m)
{
	key_float(j, "ratio", m->ratio);
	key_float(j, "low", m->low);
	key_float(j, "high", m->high);
	key_float(j, "q", m->q);
}

static void put_total(struct json *j, const struct diff *d)
{
	json_key(j, "total");
	json_object(j);
	json_key_double(j, "baseline", d->total.baseline);
	json_key_double(j, "value", d->total.value);
	json_key_double(j, "diff", d->total.value - d->total.baseline);
	put_measure_keys(j, &d->total.measure);
	json_key_string(j, "class", diff_class_names[d->total.class]);
	json_end(j);
}

static void put_counts(struct json *j, const struct diff *d)
{
	json_key(j, "counts");
	json_object(j);
	for (size_t i = 0; i < DIFF_CLASS_COUNT; i++)
		json_key_u64(j, diff_class_names[i], d->counts[i]);
	json_end(j);
	json_key_double(j, "coloured", d->coloured);
}

/* What is left of the functions and paths, and where. */
struct kept {
	bool *paths, *functions; /* by node, by index */
	uint64_t *weights;
	uint32_t *frame_of; /* by function: 1 + its index in `frames`; 0: it is not there */
	uint32_t *row_of;   /* by node: 1 + its index in `paths`, the root 0 */
	struct left_out left_paths, left_functions;
};

static void kept_release(struct kept *k)
{
	free(k->paths);
	free(k->functions);
	free(k->weights);
	free(k->frame_of);
	free(k->row_of);
}

/* On the side where it is larger. */
static uint64_t weigh(const struct diff *d, uint64_t base, uint64_t current)
{
	uint64_t baseline = (uint64_t)llround(diff_baseline(d, base));

	return baseline > current ? baseline : current;
}

/* Of both sides. */
static uint64_t sum_sides(const struct diff *d, uint64_t base, uint64_t current)
{
	return (uint64_t)llround(diff_baseline(d, base)) + current;
}

static void leave_row_out(const struct diff *d, uint64_t base, uint64_t current,
			  struct left_out *left)
{
	left_out_add(left, sum_sides(d, base, current),
		     sum_sides(d, d->nodes[0].base_total, d->nodes[0].total));
}

static int keep_functions(const struct diff_report *r, uint64_t whole, struct kept *k)
{
	const struct largest all = { .min_percent = r->largest.min_percent };
	const struct diff *d = r->diff;
	size_t count;
	int e;

	for (size_t i = 0; i < d->function_count; i++)
		k->weights[i] = weigh(d, d->functions[i].base_total, d->functions[i].total);
	e = largest_keep(&all, k->weights, d->function_count, whole, k->functions, &count);
	count = 0;
	for (size_t i = 0; i < d->function_count && !e; i++) {
		const struct diff_function *f = &d->functions[i];

		/* those that changed most come first */
		k->functions[i] &= !r->largest.limit || count < r->largest.limit;
		count += k->functions[i];
		if (!k->functions[i])
			leave_row_out(d, f->base_self, f->self, &k->left_functions);
	}
	return e;
}

static int keep_paths(const struct diff_report *r, uint64_t whole, struct kept *k)
{
	const struct diff *d = r->diff;
	uint32_t row = 0;
	size_t count;
	int e;

	for (size_t i = 1; i < d->node_count; i++)
		k->weights[i - 1] = weigh(d, d->nodes[i].base_total, d->nodes[i].total);
	e = largest_keep(&r->largest, k->weights, d->node_count - 1, whole, k->paths, &count);
	for (size_t i = 1; i < d->node_count && !e; i++) {
		const struct diff_node *n = &d->nodes[i];

		if (k->paths[i - 1])
			k->row_of[i] = ++row;
		else
			leave_row_out(d, n->base_self, n->self, &k->left_paths);
	}
	return e;
}

/* The functions that are kept, then those of paths besides. */
static void number_frames(const struct diff *d, struct kept *k)
{
	uint32_t count = 0;

	for (size_t i = 0; i < d->function_count; i++)
		if (k->functions[i])
			k->frame_of[i] = ++count;
	for (size_t i = 1; i < d->node_count; i++)
		if (k->paths[i - 1] && !k->frame_of[d->nodes[i].function])
			k->frame_of[d->nodes[i].function] = ++count;
}

static int leave_out(const struct diff_report *r, struct kept *k)
{
	const struct diff *d = r->diff;
	size_t rows = d->function_count > d->node_count ? d->function_count : d->node_count;
	uint64_t whole = weigh(d, d->nodes[0].base_total, d->nodes[0].total);
	int e;

	k->paths = calloc(d->node_count + 1, sizeof(*k->paths));
	k->functions = calloc(d->function_count + 1, sizeof(*k->functions));
	k->weights = calloc(rows + 1, sizeof(*k->weights));
	k->frame_of = calloc(d->function_count + 1, sizeof(*k->frame_of));
	k->row_of = calloc(d->node_count + 1, sizeof(*k->row_of));
	if (!k->paths || !k->functions || !k->weights || !k->frame_of || !k->row_of)
		return -ENOMEM;
	e = keep_functions(r, whole, k);
	if (!e)
		e = keep_paths(r, whole, k);
	if (!e)
		number_frames(d, k);
	return e;
}

static void put_frame(struct json *j, const struct diff_report *r, size_t function)
{
	json_array(j);
	put_text(j, r, r->diff->functions[function].name);
	put_text(j, r, r->diff->functions[function].file);
	json_null(j);
	json_end(j);
}

static void put_frames(struct json *j, const struct diff_report *r, const struct kept *k)
{
	const struct diff *d = r->diff;
	uint32_t count = 0;

	json_key(j, "frames");
	json_array_lines(j);
	for (size_t i = 0; i < d->function_count; i++)
		if (k->functions[i] && ++count)
			put_frame(j, r, i);
	for (size_t i = 1; i < d->node_count; i++)
		if (k->paths[i - 1] && k->frame_of[d->nodes[i].function] > count) {
			count = k->frame_of[d->nodes[i].function];
			put_frame(j, r, d->nodes[i].function);
		}
	json_end(j);
}

static void put_function(struct json *j, const struct diff_report *r, const struct diff_function *f)
{
	const struct diff *d = r->diff;
	double baseline = diff_baseline(d, f->base_self), self = (double)f->self;

	json_object(j);
	json_key(j, "name");
	put_text(j, r, f->name);
	json_key(j, "file");
	put_text(j, r, f->file);
	json_key_string(j, "class", diff_class_names[f->class]);
	json_key_string(j, "self_class", diff_class_names[f->self_class]);
	json_key_u64(j, "base_samples", f->base_total);
	json_key_u64(j, "self", f->self);
	json_key_u64(j, "value", f->total);
	json_key_double(j, "baseline", baseline);
	json_key_double(j, "baseline_total", diff_baseline(d, f->base_total));
	json_key_double(j, "diff", self - baseline);
	json_key_double(j, "diff_pct", diff_percent(self, baseline));
	put_measure_keys(j, &f->measure);
	key_float(j, "detectable", f->detectable);
	json_key(j, "renamed_from");
	if (f->renamed_from || f->renamed_from_file) {
		json_array(j);
		put_text(j, r, f->renamed_from);
		put_text(j, r, f->renamed_from_file);
		json_end(j);
	} else {
		json_null(j);
	}
	json_end(j);
}

static void put_functions(struct json *j, const struct diff_report *r, const struct kept *k)
{
	json_key(j, "functions");
	json_array_lines(j);
	for (size_t i = 0; i < r->diff->function_count; i++)
		if (k->functions[i])
			put_function(j, r, &r->diff->functions[i]);
	json_end(j);
}

static void put_path(struct json *j, const struct diff *d, const struct kept *k,
		     const struct diff_node *n)
{
	double baseline = diff_baseline(d, n->base_self), self = (double)n->self;

	json_array(j);
	json_i64(j, (int64_t)k->row_of[n->parent] - 1);
	json_u64(j, k->frame_of[n->function] - 1);
	json_u64(j, n->self);
	json_u64(j, n->total);
	json_double(j, baseline);
	json_double(j, diff_baseline(d, n->base_total));
	json_double(j, self - baseline);
	json_double(j, diff_percent(self, baseline));
	json_float(j, n->measure.ratio);
	json_float(j, n->measure.low);
	json_float(j, n->measure.high);
	json_float(j, n->measure.q);
	json_string(j, diff_class_names[n->class]);
	json_string(j, diff_class_names[n->self_class]);
	if (diff_match_names[n->match])
		json_string(j, diff_match_names[n->match]);
	else
		json_null(j);
	json_end(j);
}

static void put_paths(struct json *j, const struct diff *d, const struct kept *k)
{
	static const char *const fields[] = {
		"parent",         "frame", "self",     "value",      "baseline",
		"baseline_total", "diff",  "diff_pct", "ratio",      "low",
		"high",           "q",     "class",    "self_class", "match",
	};

	put_names(j, "path_fields", fields, sizeof(fields) / sizeof(fields[0]));
	json_key(j, "paths");
	json_array_lines(j);
	for (size_t i = 1; i < d->node_count; i++)
		if (k->paths[i - 1])
			put_path(j, d, k, &d->nodes[i]);
	json_end(j);
}

/* With --group-by: the first frames of all paths. */
static void put_groups(struct json *j, const struct diff_report *r, const struct kept *k)
{
	const struct diff *d = r->diff;

	json_key(j, "groups");
	json_array_lines(j);
	for (size_t i = 1; i < d->node_count; i = d->nodes[i].end) {
		const struct diff_node *n = &d->nodes[i];

		json_object(j);
		json_key(j, "name");
		put_text(j, r, d->functions[n->function].name);
		json_key(j, "file");
		put_text(j, r, d->functions[n->function].file);
		json_key(j, "path");
		k->row_of[i] ? json_u64(j, k->row_of[i] - 1) : json_null(j);
		json_key_double(j, "baseline", diff_baseline(d, n->base_total));
		json_key_u64(j, "value", n->total);
		put_measure_keys(j, &n->measure);
		json_key_string(j, "class", diff_class_names[n->class]);
		json_end(j);
	}
	json_end(j);
}

/* --- the gate --------------------------------------------------------------------------------- */

static void put_verdicts(struct json *j, const struct diff_report *r, const char *key,
			 enum gate_verdict verdict)
{
	json_key(j, key);
	json_array_lines(j);
	for (size_t i = 0; i < r->gate->row_count; i++) {
		const struct gate_row *row = &r->gate->rows[i];

		if (row->verdict != verdict)
			continue;
		json_array(j);
		put_text(j, r, r->diff->functions[row->function].name);
		put_text(j, r, r->diff->functions[row->function].file);
		json_end(j);
	}
	json_end(j);
}

static void put_gate(struct json *j, const struct diff_report *r)
{
	const struct gate *g = r->gate;

	json_key(j, "gate");
	json_object(j);
	json_key_string(j, "result", gate_result_names[g->result]);
	json_key_u64(j, "exit", gate_exit_codes[g->result]);
	json_key_double(j, "threshold", g->threshold);
	json_key_double(j, "floor", g->floor);
	json_key_double(j, "could", g->could);
	json_key(j, "is_blind");
	json_bool(j, g->is_blind);
	json_key_double(j, "blind_share", g->blind_share);
	json_key_double(j, "run_noise", g->run_noise);
	json_key_double(j, "centre", g->centre);
	json_key(j, "total_fails");
	json_bool(j, g->total == GATE_SLOWER);
	put_verdicts(j, r, "regressions", GATE_SLOWER);
	put_verdicts(j, r, "undetermined", GATE_UNDETERMINED);
	put_verdicts(j, r, "moved", GATE_MOVED);
	json_key(j, "is_elsewhere");
	json_bool(j, g->is_elsewhere);
	json_key_string(j, "reason", g->reason);
	json_end(j);
}

/* --- CPython's rules -------------------------------------------------------------------------- */

/* The frames of all nodes, in order of first use; index[frame id] is where they went, from 1. */
static void put_compat_frames(struct json *j, const struct diff_report *r, uint32_t *index)
{
	const struct compat *c = r->compat;
	const struct frametab *frames = r->input->profile->frames;
	uint32_t used = 0;

	json_key(j, "frames");
	json_array_lines(j);
	for (size_t i = 0; i < c->node_count + c->elided_node_count; i++) {
		const struct compat_node *n =
			i < c->node_count ? &c->nodes[i] : &c->elided[i - c->node_count];
		const struct frame *f = frametab_get(frames, n->frame);

		if (index[n->frame])
			continue;
		index[n->frame] = ++used;
		json_array(j);
		put_text(j, r, f->name);
		if (!frame_has_place(f->kind))
			json_string(j, COMPAT_MARKER_FILE);
		else
			put_text(j, r, f->file);
		json_u64(j, frame_told_line(f));
		json_end(j);
	}
	json_end(j);
}

static void put_compat_node(struct json *j, const struct compat_node *n, const uint32_t *index,
			    bool is_elided_view)
{
	json_array(j);
	json_i64(j, n->parent == COMPAT_ROOT ? -1 : (int64_t)n->parent);
	json_u64(j, index[n->frame] - 1);
	json_double(j, n->self);
	json_double(j, n->value);
	json_double(j, n->self_time);
	json_double(j, n->baseline);
	json_double(j, n->baseline_total);
	json_double(j, n->diff);
	json_double(j, n->diff_pct);
	if (is_elided_view)
		json_u64(j, n->is_elided);
	json_end(j);
}

static void put_compat_nodes(struct json *j, const char *key, const struct compat_node *nodes,
			     size_t count, const uint32_t *index, bool is_elided_view)
{
	json_key(j, key);
	json_array_lines(j);
	for (size_t i = 0; i < count; i++)
		put_compat_node(j, &nodes[i], index, is_elided_view);
	json_end(j);
}

static int write_compat(struct json *j, const struct diff_report *r)
{
	static const char *const fields[] = { "parent",    "frame",    "self",           "value",
					      "self_time", "baseline", "baseline_total", "diff",
					      "diff_pct",  "elided" };
	const size_t count = sizeof(fields) / sizeof(fields[0]);
	const struct compat *c = r->compat;
	_cleanup_(freep) uint32_t *index = NULL;
	double baseline = (double)c->base_samples * c->scale;
	struct diff_side_sum current;

	diff_input_sum(r->input, DIFF_CURRENT, &current);
	index = calloc((size_t)frametab_count(r->input->profile->frames) + 1, sizeof(*index));
	if (!index)
		return -ENOMEM;
	json_key_string(
		j, "normalize",
		diff_normalize_names[c->version == COMPAT_3_15_0A8 ? DIFF_SHARE : DIFF_ABSOLUTE]);
	json_key_double(j, "centre", 1);
	key_known(j, "ms_per_sample", current.interval_ns / 1e6);
	json_key_double(j, "scale", c->scale);
	json_key(j, "total");
	json_object(j);
	json_key_double(j, "baseline", baseline);
	json_key_u64(j, "value", c->value);
	json_key_double(j, "diff", (double)c->value - baseline);
	json_end(j);
	json_key_u64(j, "elided_count", c->elided_count);
	put_notes(j, r);
	put_compat_frames(j, r, index);
	put_names(j, "path_fields", fields, count - 1);
	put_compat_nodes(j, "paths", c->nodes, c->node_count, index, false);
	put_names(j, "elided_fields", fields, count);
	put_compat_nodes(j, "elided", c->elided, c->elided_node_count, index, true);
	return 0;
}

static void put_left_out(struct json *j, const struct kept *k)
{
	json_key(j, "left_out");
	json_object(j);
	json_left_out(j, "functions", &k->left_functions);
	json_left_out(j, "paths", &k->left_paths);
	json_end(j);
}

static int write_changes(struct json *j, const struct diff_report *r)
{
	_cleanup_(kept_release) struct kept k = { 0 };
	const struct diff *d = r->diff;
	int e = leave_out(r, &k);

	if (e < 0)
		return e;
	json_key_string(j, "normalize", diff_normalize_names[d->normalize]);
	json_key_double(j, "centre", d->centre);
	key_known(j, "ms_per_sample", diff_ms_per_tick(d));
	json_key_double(j, "scale", d->scale);
	put_total(j, d);
	json_key_string(j, "dispersion", diff_dispersion_names[d->dispersion]);
	put_counts(j, d);
	json_key_u64(j, "elided_count", d->elided_count);
	put_notes(j, r);
	put_frames(j, r, &k);
	put_functions(j, r, &k);
	put_paths(j, d, &k);
	put_left_out(j, &k);
	if (r->group_by) {
		json_key_string(j, "group_by", r->group_by);
		put_groups(j, r, &k);
	}
	if (r->is_gated)
		put_gate(j, r);
	return 0;
}

static int write_json(const struct diff_report *r, FILE *out)
{
	struct json j;
	int e = 0;

	json_init(&j, out);
	json_object(&j);
	json_key_string(&j, "schema", SCHEMA);
	json_key_string(&j, "compat", r->compat ? compat_names[r->compat->version] : NULL);
	put_sides(&j, r);
	if (r->compat)
		e = write_compat(&j, r);
	else
		e = write_changes(&j, r);
	if (e < 0)
		return e; /* the file is not going to be */
	json_end(&j);
	e = json_finish(&j);
	fputc('\n', out);
	return e;
}

const struct diff_exporter diff_exporter_json = {
	.name = "json",
	.suffix = ".json",
	.help = "everything, for programs: docs/diff.md describes it",
	.knows_compat = true,
	.write = write_json,
};
