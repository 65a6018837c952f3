/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/diff_run.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/units.h"
#include "cmd/account.h"
#include "cmd/browser.h"
#include "cmd/diff_load.h"
#include "cmd/input.h"
#include "cmd/select_opts.h"
#include "cmd/diff_terminal.h"
#include "cmd/terminal.h"
#include "export/export.h"

#define ROWS_DEFAULT 10

/* What a comparison holds from the files to the outputs. */
struct comparison {
	const struct call *call;
	const struct diff_call *c;
	struct select_sum selected[DIFF_SIDES];
	struct diff_input *input;
	struct diff_renames renames;
	struct texts notes;
	struct differences environment;
	struct profile *sides[DIFF_SIDES]; /* counters only */
	struct texts losses;
	struct diff *diff;
	struct gate *gate;
	struct compat *compat;
};

static void comparison_release(struct comparison *k)
{
	compat_free(k->compat);
	gate_free(k->gate);
	diff_free(k->diff);
	texts_release(&k->notes);
	texts_release(&k->losses);
	differences_release(&k->environment);
	for (size_t i = 0; i < DIFF_SIDES; i++)
		profile_free(k->sides[i]);
	diff_renames_release(&k->renames);
	diff_input_free(k->input);
}

static bool has_compat(const struct diff_call *c)
{
	return c->compat != DIFF_NO_COMPAT;
}

static const struct diff_exporter *exporter_of(const struct diff_call *c, const char *path)
{
	return c->format ? c->format : diff_exporter_for_path(path);
}

/* --- usage ------------------------------------------------------------------------------------ */

static int unknown_format(const struct call *call, const char *path)
{
	_cleanup_(strbuf_releasep) struct strbuf names = STRBUF_INIT;

	for (const struct diff_exporter *const *e = diff_exporters; *e; e++)
		strbuf_appendf(&names, "%s%s", e == diff_exporters ? "" : ", ", (*e)->name);
	return cmd_usage(call, "%s: unknown suffix: set the format with -f (%s)", path,
			 strbuf_str(&names));
}

static int check_outputs(const struct call *call, const struct diff_call *c)
{
	const char *page = NULL;

	if (c->format && c->outputs->len > 1)
		return cmd_usage(call,
				 "-f applies to one output, but there are %zu: omit -f and use a "
				 "suffix for each",
				 c->outputs->len);
	for (size_t i = 0; i < c->outputs->len; i++) {
		const char *path = c->outputs->items[i];
		const struct diff_exporter *e = exporter_of(c, path);

		if (!*path)
			return cmd_usage(call, "--output: no file name");
		if (!e)
			return unknown_format(call, path);
		if (!page && e == &diff_exporter_html)
			page = path;
		if (has_compat(c) && !e->knows_compat)
			return cmd_usage(
				call, "%s: results of --compat can be written as JSON only", path);
		for (size_t k = 0; k < i; k++)
			if (!strcmp(c->outputs->items[k], path))
				return cmd_usage(call, "%s is given twice as output", path);
	}
	if (c->should_open && (!page || !strcmp(page, "-")))
		return cmd_usage(call, "--open needs an HTML output: add -o FILE.html");
	return EXIT_OK;
}

int diff_check_usage(const struct call *call, const struct diff_call *c)
{
	const char *clash = c->is_gated              ? "--gate"
			    : c->group_by            ? "--group-by"
			    : c->renames->len        ? "--rename"
			    : diff_call_has_parts(c) ? "--base-label and --current-label"
			    : c->normalize           ? "--normalize"
			    : c->folds_imports       ? "--fold-imports"
						     : NULL;
	bool has_one_work = (c->work[DIFF_BASE] > 0) != (c->work[DIFF_CURRENT] > 0);

	if (has_compat(c) && clash)
		return cmd_usage(call, "--compat cannot be combined with %s", clash);
	if (has_one_work)
		return cmd_usage(call, "--work: units of work must be more than 0");
	if (c->work[DIFF_BASE] > 0 && c->normalize && c->normalize != DIFF_WORK)
		return cmd_usage(call,
				 "--work implies --normalize work: it cannot be combined with "
				 "--normalize %s",
				 diff_normalize_names[c->normalize]);
	return check_outputs(call, c);
}

/* --- input ------------------------------------------------------------------------------------ */

static void add_files(struct diff_file *files, enum diff_side side, const char *const *paths,
		      size_t count)
{
	for (size_t i = 0; i < count; i++)
		files[i] = (struct diff_file){ side, paths[i] };
}

static struct select_query query_of(const struct diff_call *c, enum diff_side side)
{
	static const char *const options[DIFF_SIDES] = { "--base-label", "--current-label" };
	struct select_query q = c->select;
	enum diff_side of = c->labels[side].len ? side : !side;

	q.part = (struct select_part){ .labels = { c->labels[of].items, c->labels[of].len },
				       .is_rest = of != side,
				       .option = options[of] };
	return q;
}

static int read_sides(struct comparison *k, bool is_in_ns)
{
	const struct diff_call *c = k->c;
	const struct diff_reading how = {
		.choice = c->choice,
		.folds_imports = c->folds_imports,
		.is_in_ns = is_in_ns,
		.has_unit = has_compat(c),
		.select = { query_of(c, DIFF_BASE), query_of(c, DIFF_CURRENT) },
	};
	size_t count = c->base_count + c->current_count;
	_cleanup_(freep) struct diff_file *files = calloc(count, sizeof(*files));
	int r;

	if (!files || profile_new(&k->sides[DIFF_BASE]) < 0 ||
	    profile_new(&k->sides[DIFF_CURRENT]) < 0)
		return -ENOMEM;
	add_files(files, DIFF_BASE, c->base, c->base_count);
	add_files(files + c->base_count, DIFF_CURRENT, c->current, c->current_count);
	r = diff_load(k->input, files, count, &how, k->sides, k->selected);
	for (size_t i = 0; i < k->input->cube.runs.len; i++) {
		struct cube_run *run = &k->input->cube.runs.items[i];

		if (c->work[run->side] > 0)
			diff_run_recording(k->input, run)->work = c->work[run->side];
	}
	return r;
}

static bool needs_threads(const struct diff_call *c)
{
	bool is_needed = c->format && c->format->needs_threads;

	for (size_t i = 0; i < c->outputs->len; i++)
		is_needed = is_needed || exporter_of(c, c->outputs->items[i])->needs_threads;
	return is_needed;
}

/* Ticks of ours, and times as other tools write them? */
static bool mixes_ticks_and_times(const struct diff_input *in)
{
	bool has_ticks = false, has_times = false;

	for (size_t i = 0; i < in->cube.runs.len; i++) {
		uint64_t ns = diff_run_recording(in, &in->cube.runs.items[i])->interval_ns;

		has_ticks = has_ticks || ns > 1;
		has_times = has_times || ns == 1;
	}
	return has_ticks && has_times;
}

/* What was read is of no use: again, all of it as times. */
static int read_as_times(struct comparison *k)
{
	for (int side = 0; side < DIFF_SIDES; side++) {
		profile_free(take_ptr(k->sides[side]));
		k->selected[side] = (struct select_sum){ 0 };
	}
	diff_input_free(take_ptr(k->input));
	return diff_input_new(needs_threads(k->c), &k->input) ?: read_sides(k, true);
}

static int load_all(struct comparison *k)
{
	int r = diff_input_new(has_compat(k->c) || needs_threads(k->c), &k->input);

	for (size_t i = 0; i < k->c->renames->len && !r; i++)
		r = diff_renames_add(&k->renames, k->c->renames->items[i]);
	if (r < 0)
		return r == -EINVAL ? err_wrap(r, "--rename") : r;
	r = read_sides(k, false);
	return !r && !has_compat(k->c) && mixes_ticks_and_times(k->input) ? read_as_times(k) : r;
}

/* CPython 3.15.2 refuses another mode; its interval and number of samples may differ. */
static int check_mode(const struct diff_input *in, struct texts *reasons)
{
	const struct cube_run *a = &in->cube.runs.items[0];
	const char *mode = diff_run_recording(in, a)->mode;
	int r = 0;

	for (size_t i = 1; i < in->cube.runs.len && !r; i++) {
		const struct cube_run *b = &in->cube.runs.items[i];
		const char *other = diff_run_recording(in, b)->mode;

		if (mode && other && strcmp(mode, other) != 0)
			r = texts_addf(reasons, "%s was recorded in mode %s, %s in mode %s",
				       a->file, mode, b->file, other);
	}
	return r;
}

static const char *file_without_unit(const struct diff_input *in)
{
	for (size_t i = 0; i < in->cube.runs.len; i++)
		if (!diff_run_has_unit(in, &in->cube.runs.items[i]))
			return in->cube.runs.items[i].file;
	return NULL;
}

/* Of samples of unknown length only shares can be compared. EXIT_OK, or EXIT_USAGE with a message.
 */
static int check_unit(const struct comparison *k)
{
	const char *file = has_compat(k->c) ? NULL : file_without_unit(k->input);
	bool is_share = k->c->normalize == DIFF_AUTO || k->c->normalize == DIFF_SHARE;

	if (!file || (is_share && !(k->c->work[DIFF_BASE] > 0)))
		return EXIT_OK;
	return cmd_usage(k->call,
			 "%s has no sampling interval: compare shares (--normalize share), or "
			 "import it with -F HZ",
			 file);
}

static int find_reasons(struct comparison *k, struct texts *reasons)
{
	int r;

	if (has_compat(k->c))
		return k->c->compat == COMPAT_3_15 ? check_mode(k->input, reasons) : 0;
	r = diff_load_check_twice(k->input, reasons);
	return r ? r : diff_input_check(k->input, reasons);
}

/* 0: go on; 1: refused, which is said; a negative errno. */
static int judge_reasons(struct comparison *k, const struct texts *reasons)
{
	char prefix[64];
	int r = 0;

	if (!reasons->len)
		return 0;
	snprintf(prefix, sizeof(prefix), "pyebpf %s: not comparable: ", k->call->command->name);
	for (size_t i = 0; i < reasons->len && !r; i++) {
		if (!k->c->is_forced)
			log_line(prefix, reasons->items[i]);
		else
			r = texts_addf(&k->notes, "compared despite (--force): %s",
				       reasons->items[i]);
	}
	if (!k->c->is_forced)
		cmd_try("pyebpf diff --force, to compare them anyway");
	return r ? r : !k->c->is_forced;
}

static int check_comparable(struct comparison *k)
{
	struct texts reasons = { 0 };
	int r = find_reasons(k, &reasons);

	if (!r)
		r = judge_reasons(k, &reasons);
	texts_release(&reasons);
	return r;
}

/* --- comparing -------------------------------------------------------------------------------- */

static int note_input(struct comparison *k)
{
	int r = diff_call_has_parts(k->c) ? 0 : diff_load_note_same(k->input, &k->notes);

	if (!r && k->c->group_by && k->c->base_count + k->c->current_count == 2)
		r = texts_addf(&k->notes, "one run per side: only sampling noise is known, not "
					  "run-to-run noise; add runs with --baseline");
	return r;
}

static bool is_selected(const struct diff_call *c)
{
	return select_is_active(&c->select) || diff_call_has_parts(c);
}

/* Of the side's first recording. */
static struct value_unit unit_of(const struct comparison *k, enum diff_side side)
{
	const struct cube *c = &k->input->cube;

	for (size_t i = 0; i < c->runs.len; i++)
		if (c->runs.items[i].side == side)
			return recording_value_unit(
				diff_run_recording(k->input, &c->runs.items[i]));
	return (struct value_unit){ 1, UNIT_COUNT };
}

static int note_selection(struct comparison *k)
{
	static const char *const names[DIFF_SIDES] = { "base", "current" };
	int r = 0;

	for (enum diff_side side = DIFF_BASE; side < DIFF_SIDES && !r; side++) {
		_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
		const struct select_query q = query_of(k->c, side);

		if (k->c->group_by && k->selected[side].kept == k->selected[side].all)
			continue;
		r = select_put_sum(&q, &k->selected[side], unit_of(k, side), &text);
		if (!r)
			r = texts_addf(&k->notes, "selected of %s: %s", names[side],
				       strbuf_str(&text));
	}
	return r;
}

static int note_losses(struct comparison *k)
{
	static const char *const names[DIFF_SIDES] = { "Baseline", "Current" };
	struct diff_side_sum sum;
	int r = 0;

	for (enum diff_side side = DIFF_BASE; side < DIFF_SIDES && !r; side++) {
		diff_input_sum(k->input, side, &sum);
		if (is_selected(k->c))
			sum.ticks = k->selected[side].all;
		r = account_note(k->sides[side], sum.ticks, names[side], &k->losses);
	}
	return r;
}

/* By our rules. */
static int compare(struct comparison *k)
{
	struct diff_options o = { .normalize = k->c->normalize,
				  .renames = &k->renames,
				  .notes = &k->notes };
	int r;

	if (!o.normalize && k->c->work[DIFF_BASE] > 0)
		o.normalize = DIFF_WORK;
	if (!o.normalize && diff_call_has_parts(k->c))
		o.normalize = DIFF_SHARE; /* one part is so much more than the other */
	if ((r = diff_new(k->input, &o, &k->diff)) < 0 ||
	    (r = gate_new(k->diff, &k->c->gate, &k->gate)) < 0 ||
	    (r = environment_compare(k->input, &k->environment)) < 0)
		return r;
	if (k->environment.len)
		gate_set_elsewhere(k->gate, k->c->is_strict);
	return 0;
}

/* --- outputs ---------------------------------------------------------------------------------- */

/* The files as they were given, and what makes them comparable, to be typed again. */
static int put_files(struct strbuf *out, const struct diff_call *c)
{
	cmd_put_word(out, c->base[0]);
	for (size_t i = 0; i < c->labels[DIFF_BASE].len; i++) {
		strbuf_puts(out, " --base-label ");
		cmd_put_word(out, c->labels[DIFF_BASE].items[i]);
	}
	for (size_t i = 0; i < c->labels[DIFF_CURRENT].len; i++) {
		strbuf_puts(out, " --current-label ");
		cmd_put_word(out, c->labels[DIFF_CURRENT].items[i]);
	}
	for (size_t i = 0; !c->is_one && i < c->current_count; i++) {
		strbuf_putc(out, ' ');
		cmd_put_word(out, c->current[i]);
	}
	for (size_t i = 1; i < c->base_count; i++) {
		strbuf_puts(out, " --baseline ");
		cmd_put_word(out, c->base[i]);
	}
	for (size_t i = 0; i < c->renames->len; i++) {
		strbuf_puts(out, " --rename ");
		cmd_put_word(out, c->renames->items[i]);
	}
	if (c->group_by) {
		strbuf_puts(out, " --group-by ");
		cmd_put_word(out, c->group_by);
	}
	if (c->work[DIFF_BASE] > 0)
		strbuf_appendf(out, " --work %g,%g", c->work[DIFF_BASE], c->work[DIFF_CURRENT]);
	return strbuf_error(out);
}

/* The last line for people: what to type now. */
static int print_next(const struct comparison *k)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	struct terminal t;
	_cleanup_(line_release) struct line line = LINE_INIT(&t);
	bool is_inconclusive = k->gate && k->c->is_gated && k->gate->result == GATE_INCONCLUSIVE;
	bool needs_runs = k->diff && k->diff->dispersion == DIFF_BY_POISSON;

	terminal_init(&t, k->c->out);
	t.width = 0; /* better wrapped than cut */
	strbuf_puts(&text, "next: pyebpf diff ");
	put_files(&text, k->c);
	if (k->compat)
		strbuf_appendf(&text, " --compat %s -o diff.json",
			       compat_names[k->compat->version]);
	else if (is_inconclusive || needs_runs)
		strbuf_puts(&text, " MORE-RUNS... --baseline MORE-RUNS");
	else
		strbuf_puts(&text,
			    diff_exporter_for_path("diff.html") ? " -o diff.html" : " -o diff.md");
	if (strbuf_error(&text))
		return -ENOMEM;
	line_put_foreign(&line, STYLE_PLAIN, text.bytes, text.len);
	line_end(&line);
	return 0;
}

static uint64_t output_max(const struct diff_call *c)
{
	if (c->choice.is_trusted)
		return 0;
	return export_bytes_max(input_bytes(c->base, c->base_count) +
				input_bytes(c->current, c->current_count));
}

/* Tables for people, unless standard output is taken by another format, or they want to be left
 * alone. */
static int write_outputs(const struct comparison *k)
{
	bool is_limited = k->c->limit != DIFF_LIMIT_USUAL;
	const struct diff_report report = {
		.input = k->input,
		.diff = k->diff,
		.gate = k->gate,
		.compat = k->compat,
		.environment = &k->environment,
		.sides = { k->sides[DIFF_BASE], k->sides[DIFF_CURRENT] },
		.notes = k->diff ? &k->diff->notes : &k->notes,
		.losses = &k->losses,
		.group_by = k->c->group_by,
		.source_root = k->c->source_root,
		.is_gated = k->c->is_gated,
		.limit = is_limited ? k->c->limit : ROWS_DEFAULT,
		.largest = { is_limited ? k->c->limit : 0, k->c->min_percent },
	};
	uint64_t max_bytes = output_max(k->c);
	bool is_taken = k->c->format && !k->c->outputs->len;
	int r = is_taken ? diff_exporter_write(k->c->format, &report, "-", max_bytes) : 0;

	for (size_t i = 0; i < k->c->outputs->len && !r; i++) {
		const char *path = k->c->outputs->items[i];

		is_taken = is_taken || !strcmp(path, "-");
		r = diff_exporter_write(exporter_of(k->c, path), &report, path, max_bytes);
		if (!r && k->c->should_open && exporter_of(k->c, path) == &diff_exporter_html)
			browser_open(path);
		else if (!r)
			browser_tell_how(path);
	}
	if (r < 0 || is_taken || log_level() <= LOG_LEVEL_ERROR)
		return r;
	r = diff_terminal_print(k->c->out, &report, k->c->key);
	return r < 0 || k->c->outputs->len ? r : print_next(k);
}

static int run_comparison(struct comparison *k)
{
	int r;

	r = load_all(k);
	if (!r)
		r = diff_input_finish(k->input);
	if (r < 0)
		return cmd_fail(k->call, r);
	if ((r = check_unit(k)) != EXIT_OK)
		return r;
	r = check_comparable(k);
	if (r)
		return r < 0 ? cmd_fail(k->call, r) : EXIT_RUNTIME;
	r = note_input(k);
	if (!r && is_selected(k->c))
		r = note_selection(k);
	if (!r)
		r = note_losses(k);
	if (!r)
		r = has_compat(k->c) ? compat_new(k->input, k->c->compat, &k->compat) : compare(k);
	if (!r)
		r = write_outputs(k);
	if (r < 0)
		return cmd_fail(k->call, r);
	return k->c->is_gated ? gate_exit_codes[k->gate->result] : EXIT_OK;
}

int diff_run(const struct call *call, const struct diff_call *c)
{
	_cleanup_(comparison_release) struct comparison k = { .call = call, .c = c };

	return run_comparison(&k);
}
