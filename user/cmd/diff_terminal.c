/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/diff_terminal.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cmd/figures.h"
#include "cmd/terminal.h"
#include "profile/kinds.h"

#define LABEL_COLUMN 10
#define NUMBERS_COLUMNS 58 /* of a row, behind the name */
#define NAME_COLUMNS_MIN 20
#define NAME_COLUMNS_MAX 50
#define PLACE_WIDTH_MIN 110 /* terminals narrower than this show no places */
#define UNTOLD_SHOWN 3
#define FILES_SHOWN 2

struct screen {
	const struct diff_report *r;
	const struct terminal *t;
	enum diff_key key;
	struct line line; /* of a table: cut at the terminal's width */
	struct line text; /* better wrapped than cut */
	struct diff_findings findings;
	size_t name_columns;
};

static void screen_release(struct screen *s)
{
	line_release(&s->line);
	line_release(&s->text);
	diff_findings_release(&s->findings);
}

/* --- what was compared ------------------------------------------------------------------------ */

static void put_label(struct line *l, const char *label)
{
	line_put(l, STYLE_DIM, label);
	line_pad(l, LABEL_COLUMN);
}

static void put_files(struct line *l, const struct diff_input *in, enum diff_side side)
{
	size_t shown = 0, further = 0;

	for (size_t i = 0; i < in->cube.runs.len; i++) {
		const struct cube_run *run = &in->cube.runs.items[i];

		if (run->side != side)
			continue;
		if (shown == FILES_SHOWN) {
			further++;
			continue;
		}
		line_put(l, STYLE_PLAIN, shown++ ? ", " : "");
		line_put_foreign(l, STYLE_BOLD, run->file, strlen(run->file));
	}
	if (further)
		line_putf(l, STYLE_PLAIN, " and %zu more", further);
}

/* The side's first run; NULL: it has none. */
static const struct cube_run *first_run(const struct diff_input *in, enum diff_side side)
{
	for (size_t i = 0; i < in->cube.runs.len; i++)
		if (in->cube.runs.items[i].side == side)
			return &in->cube.runs.items[i];
	return NULL;
}

/* "1,234 samples, 1.2 s of CPU time"; "1.2 s of waiting"; "12.3 MiB of memory" */
static void put_size(struct line *l, const struct diff_side_sum *sum, const struct recording *r)
{
	struct value_unit of = recording_value_unit(r);
	const char *noun = kinds_noun(r), *comma = "";

	if (value_is_tick(of)) {
		line_putf(l, STYLE_PLAIN, "%s sample%s", units_count(sum->ticks).s,
			  sum->ticks == 1 ? "" : "s");
		comma = ", ";
	}
	if (sum->interval_ns > 0)
		line_putf(l, STYLE_PLAIN, "%s%s of %s", comma,
			  units_ns((uint64_t)llround((double)sum->ticks * sum->interval_ns)).s,
			  noun);
	else if (of.unit == UNIT_BYTES)
		line_putf(l, STYLE_PLAIN, "%s of %s", value_text(sum->ticks, of).s, noun);
}

static int put_side(struct screen *s, enum diff_side side)
{
	struct line *l = &s->text;
	struct diff_side_sum sum;
	const struct cube_run *run = first_run(s->r->input, side);
	const char *python = run ? diff_run_python(s->r->input, run) : NULL;
	struct recording none = { 0 };

	diff_input_sum(s->r->input, side, &sum);
	put_label(l, side == DIFF_BASE ? "base" : "current");
	put_files(l, s->r->input, side);
	line_put(l, STYLE_PLAIN, ": ");
	put_size(l, &sum, run ? diff_run_recording(s->r->input, run) : &none);
	if (python) {
		line_put(l, STYLE_PLAIN, ", Python ");
		line_put_foreign(l, STYLE_PLAIN, python, strlen(python));
	}
	if (sum.lost)
		line_putf(l, STYLE_WARM, ", %s lost", value_text(sum.lost, sum.of).s);
	return line_end(l);
}

/* First of all: what ran elsewhere may be slower for that. */
static int put_environment(struct screen *s)
{
	struct line *l = &s->text;

	if (!s->r->environment->len)
		return 0;
	put_label(l, "differs");
	for (size_t i = 0; i < s->r->environment->len; i++) {
		const struct difference *d = &s->r->environment->items[i];

		line_putf(l, STYLE_WARM, "%s%s: ", i ? "; " : "", d->what);
		line_put_foreign(l, STYLE_WARM, d->value[DIFF_BASE], strlen(d->value[DIFF_BASE]));
		line_put(l, STYLE_WARM, " -> ");
		line_put_foreign(l, STYLE_WARM, d->value[DIFF_CURRENT],
				 strlen(d->value[DIFF_CURRENT]));
	}
	return line_end(l);
}

static int put_notes(struct screen *s)
{
	int r = 0;

	for (size_t i = 0; i < s->r->notes->len && !r; i++) {
		put_label(&s->text, "note");
		line_put_foreign(&s->text, STYLE_WARM, s->r->notes->items[i],
				 strlen(s->r->notes->items[i]));
		r = line_end(&s->text);
	}
	return r;
}

static enum style class_style(uint8_t class)
{
	return diff_class_is_slower(class) || class == DIFF_NEW       ? STYLE_HOT
	       : diff_class_is_faster(class) || class == DIFF_REMOVED ? STYLE_COOL
								      : STYLE_PLAIN;
}

/* "+15..+28%" */
static struct units_text interval_text(const struct diff_measure *m)
{
	struct units_text t = { "" };

	if (isnan(m->low) || isnan(m->high))
		return t;
	if (m->high < 10)
		snprintf(t.s, sizeof(t.s), "%+.0f..%+.0f%%", 100 * ((double)m->low - 1),
			 100 * ((double)m->high - 1));
	else if (m->high < 1000)
		snprintf(t.s, sizeof(t.s), "x%.2g..x%.3g", (double)m->low, (double)m->high);
	else if (m->low >= 0.01f)
		snprintf(t.s, sizeof(t.s), "x%.2g or more", (double)m->low);
	else
		snprintf(t.s, sizeof(t.s), "any");
	return t;
}

static int put_total(struct screen *s)
{
	const struct diff *d = s->r->diff;
	const struct diff_measure *m = &d->total.measure;
	struct line *l = &s->text;

	put_label(l, "compared");
	line_putf(l, STYLE_PLAIN, "%s; %s", diff_amount_words(d).s, diff_noise(d).s);
	line_end(l);
	put_label(l, "total");
	if (d->normalize == DIFF_SHARE) {
		line_put(l, STYLE_PLAIN, "not compared: the total is 100% on both sides");
		return line_end(l);
	}
	line_putf(l, STYLE_BOLD, "%s -> %s", diff_amount(d, d->total.baseline).s,
		  diff_amount(d, d->total.value).s);
	if (!isnan(m->ratio)) {
		line_putf(l, class_style(d->total.class), "  %s", diff_change(m->ratio).s);
		line_putf(l, STYLE_PLAIN, "  (%s)  %s", diff_interval(m->low, m->high).s,
			  diff_class_word(d, d->total.class));
	}
	return line_end(l);
}

/* --- tables ----------------------------------------------------------------------------------- */

static size_t widest_name(const struct screen *s)
{
	const struct diff *d = s->r->diff;
	size_t most = NAME_COLUMNS_MIN;

	for (size_t section = 0; section < DIFF_SECTION_COUNT; section++) {
		const struct diff_list *list = &s->findings.section[section];

		for (size_t i = 0; i < list->len && (!s->r->limit || i < s->r->limit); i++) {
			size_t len, columns;
			const char *name = diff_name(d, &d->functions[list->items[i]], &len);

			columns = foreign_columns(name, len);
			if (columns > most)
				most = columns;
		}
	}
	return most < NAME_COLUMNS_MAX ? most : NAME_COLUMNS_MAX;
}

/* The name column takes what the numbers leave, and what names need. */
static size_t choose_name_columns(const struct screen *s)
{
	size_t columns = widest_name(s), room;

	if (!s->t->width)
		return columns;
	room = s->t->width > NUMBERS_COLUMNS + NAME_COLUMNS_MIN ? s->t->width - NUMBERS_COLUMNS
								: NAME_COLUMNS_MIN;
	return columns < room ? columns : room;
}

static void put_name(struct screen *s, enum style style, const struct diff_function *f)
{
	size_t len;
	const char *name = diff_name(s->r->diff, f, &len);

	line_put_tail(&s->line, style, name, len, "", s->t->width ? s->name_columns : SIZE_MAX);
}

static void put_function_place(struct screen *s, const struct diff_function *f)
{
	size_t len;
	const char *module = diff_module(s->r->diff, f, &len);
	uint32_t line = diff_line(s->r->diff, f);

	if (!len || (s->t->width && s->t->width < PLACE_WIDTH_MIN))
		return;
	line_put(&s->line, STYLE_PLAIN, "  ");
	line_put_foreign(&s->line, STYLE_DIM, module, len);
	if (line)
		line_putf(&s->line, STYLE_DIM, ":%" PRIu32, line);
}

static void put_remark(struct screen *s, const struct diff_function *f)
{
	const struct strtab *strings = s->r->input->profile->strings;
	uint32_t from = f->renamed_from ? f->renamed_from : f->renamed_from_file;

	if (!from)
		return;
	line_put(&s->line, STYLE_DIM, "  was ");
	line_put_foreign(&s->line, STYLE_DIM, strtab_get(strings, from), strtab_len(strings, from));
}

static int put_row(struct screen *s, const struct diff_function *f, const struct diff_row *row)
{
	const struct diff *d = s->r->diff;
	struct line *l = &s->line;

	line_put(l, STYLE_PLAIN, "  ");
	put_name(s, STYLE_PLAIN, f);
	line_pad(l, 2 + s->name_columns);
	line_putf(l, STYLE_PLAIN, " %10s %10s",
		  row->before > 0 ? diff_amount(d, row->before).s : "-",
		  row->after > 0 ? diff_amount(d, row->after).s : "-");
	line_putf(l, class_style(row->class), " %7s",
		  row->before > 0 && row->after > 0 ? diff_change(row->measure->ratio).s : "");
	line_putf(l, STYLE_PLAIN, " %13s  ",
		  row->before > 0 && row->after > 0 ? interval_text(row->measure).s : "");
	line_putf(l, STYLE_PLAIN, "%-11s", diff_certainty(row->measure->q));
	put_function_place(s, f);
	put_remark(s, f);
	return line_end(l);
}

static int put_heading(struct screen *s, const char *title)
{
	struct line *l = &s->line;

	line_end(l);
	line_put(l, STYLE_BOLD, title);
	line_pad(l, 2 + s->name_columns);
	line_putf(l, STYLE_DIM, " %10s %10s %7s %13s  %s", "before", "after", "change", "interval",
		  "certainty");
	return line_end(l);
}

static int put_more(struct screen *s, size_t more)
{
	if (!more)
		return 0;
	line_putf(&s->line, STYLE_DIM, "  and %s more", units_count(more).s);
	return line_end(&s->line);
}

static int put_section(struct screen *s, enum diff_section section)
{
	const struct diff *d = s->r->diff;
	const struct diff_list *list = &s->findings.section[section];
	size_t shown = s->r->limit && s->r->limit < list->len ? s->r->limit : list->len;
	enum diff_key key = diff_section_key(section, s->key);
	char title[64];
	int r;

	if (!list->len)
		return 0;
	snprintf(title, sizeof(title), "%s, %s", diff_section_name(d, section),
		 key == DIFF_KEY_SELF ? "self" : "total");
	r = put_heading(s, title);
	for (size_t i = 0; i < shown && !r; i++) {
		const struct diff_function *f = &d->functions[list->items[i]];
		struct diff_row row = diff_row(d, f, key);

		r = put_row(s, f, &row);
	}
	return r ? r : put_more(s, list->len - shown);
}

/* --group-by: the functions it found, each with all it calls. */
static int put_groups(struct screen *s)
{
	const struct diff *d = s->r->diff;
	size_t shown = 0, more = 0;
	int r;

	if (!s->r->group_by)
		return 0;
	r = put_heading(s, "by function");
	for (size_t i = 1; i < d->node_count && !r; i = d->nodes[i].end) {
		const struct diff_node *n = &d->nodes[i];
		struct diff_row row = { diff_baseline(d, n->base_total), (double)n->total,
					&n->measure, n->class };

		if (s->r->limit && shown++ >= s->r->limit)
			more++;
		else
			r = put_row(s, &d->functions[n->function], &row);
	}
	return r ? r : put_more(s, more);
}

/* --- what is not known ------------------------------------------------------------------------ */

/* Does it take enough of either side that not to know it matters? */
static bool is_large(const struct screen *s, const struct diff_row *row)
{
	const struct diff_total *t = &s->r->diff->total;

	return row->before >= DIFF_FLOOR * t->baseline || row->after >= DIFF_FLOOR * t->value;
}

/* Those that may hide a change, and how large it would have to be. */
static int put_untold(struct screen *s)
{
	const struct diff *d = s->r->diff;
	const struct diff_list *list = &s->findings.section[DIFF_SECTION_UNTOLD];
	size_t count = 0;

	for (size_t i = 0; i < list->len; i++) {
		const struct diff_function *f = &d->functions[list->items[i]];
		struct diff_row row = diff_row(d, f, s->key);

		if (!is_large(s, &row) || count++ >= UNTOLD_SHOWN)
			continue;
		if (count == 1)
			put_heading(s, "inconclusive");
		put_row(s, f, &row);
	}
	return put_more(s, count > UNTOLD_SHOWN ? count - UNTOLD_SHOWN : 0);
}

/* Of the functions that take most of the time. */
static int put_detectable(struct screen *s)
{
	const struct diff *d = s->r->diff;
	const struct diff_function *largest = NULL;
	struct line *l = &s->text;
	const char *name;
	size_t len;

	for (size_t i = 0; i < d->function_count; i++) {
		const struct diff_function *f = &d->functions[i];

		if (isfinite(f->detectable) && f->self && f->base_self &&
		    (!largest || f->self + f->base_self > largest->self + largest->base_self))
			largest = f;
	}
	if (!largest)
		return 0;
	name = diff_name(d, largest, &len);
	line_end(l);
	line_putf(l, STYLE_PLAIN, "smallest detectable change: %s of ",
		  diff_change(largest->detectable).s);
	line_put_foreign(l, STYLE_PLAIN, name, len);
	line_putf(l, STYLE_PLAIN, ", %s", diff_amount(d, (double)largest->total).s);
	return line_end(l);
}

/* --- the gate --------------------------------------------------------------------------------- */

static int put_verdict(struct screen *s, const struct gate_row *row)
{
	const struct diff_function *f = &s->r->diff->functions[row->function];
	struct diff_row amounts = diff_row(s->r->diff, f, DIFF_KEY_TOTAL);
	struct diff_measure m = { row->ratio, row->low, row->high, NAN };
	struct line *l = &s->line;

	line_put(l, STYLE_PLAIN, "  ");
	put_name(s, STYLE_PLAIN, f);
	line_pad(l, 2 + s->name_columns);
	line_putf(l, STYLE_PLAIN, " %10s %10s",
		  amounts.before > 0 ? diff_amount(s->r->diff, amounts.before).s : "-",
		  diff_amount(s->r->diff, amounts.after).s);
	line_putf(l, row->verdict == GATE_SLOWER ? STYLE_HOT : STYLE_PLAIN, " %7s",
		  amounts.before > 0 ? diff_change(row->ratio).s : "new");
	line_putf(l, STYLE_PLAIN, " %13s  ", amounts.before > 0 ? interval_text(&m).s : "");
	line_putf(l, STYLE_DIM, "%-11s",
		  row->verdict == GATE_MOVED ? "" : diff_change(row->detectable).s);
	put_function_place(s, f);
	if (row->verdict == GATE_SLOWER && row->paid > 0)
		line_putf(l, STYLE_DIM, "  %s of it moved here from the caller",
			  diff_amount(s->r->diff, row->paid).s);
	return line_end(l);
}

/* The heading's last column: the smallest change that would have failed nine times in ten. */
static int put_verdicts(struct screen *s, enum gate_verdict verdict, const char *title,
			size_t limit)
{
	const struct gate *g = s->r->gate;
	size_t count = 0;
	int r = 0;

	for (size_t i = 0; i < g->row_count && !r; i++) {
		if (g->rows[i].verdict != verdict)
			continue;
		if (!count++) {
			line_put(&s->line, STYLE_BOLD, title);
			line_pad(&s->line, 2 + s->name_columns);
			line_putf(&s->line, STYLE_DIM, " %10s %10s %7s %13s  %s", "before", "after",
				  "change", "interval", verdict == GATE_MOVED ? "" : "detectable");
			r = line_end(&s->line);
		}
		if (!r && (!limit || count <= limit))
			r = put_verdict(s, &g->rows[i]);
	}
	return r || !limit || count <= limit ? r : put_more(s, count - limit);
}

static int put_gate(struct screen *s)
{
	static const char *const words[GATE_RESULT_COUNT] = {
		[GATE_PASS] = "pass",
		[GATE_REGRESSION] = "REGRESSION",
		[GATE_INCONCLUSIVE] = "inconclusive",
	};
	static const enum style styles[GATE_RESULT_COUNT] = {
		[GATE_PASS] = STYLE_BOLD,
		[GATE_REGRESSION] = STYLE_HOT,
		[GATE_INCONCLUSIVE] = STYLE_WARM,
	};
	const struct gate *g = s->r->gate;
	struct line *l = &s->text;
	int r;

	if (!s->r->is_gated)
		return 0;
	line_end(l);
	put_label(l, "gate");
	line_put(l, styles[g->result], words[g->result]);
	if (g->is_elsewhere)
		line_put(l, STYLE_WARM, ", different environments");
	line_putf(l, STYLE_PLAIN,
		  ": fails if a function is %s by more than %.3g%% and takes more than %.3g%% of "
		  "the total",
		  diff_section_name(s->r->diff, DIFF_SECTION_SLOWER), 100 * g->threshold,
		  100 * g->floor);
	r = line_end(l);
	if (g->is_blind && !r) {
		put_label(l, "");
		line_put(l, STYLE_WARM, DIFF_BLIND_WORDS);
		r = line_end(l);
	}
	if (g->run_noise > 0 && !r) {
		put_label(l, "");
		line_put(l, STYLE_PLAIN, diff_presumed(g).s);
		r = line_end(l);
	}
	if (g->reason && !r) {
		put_label(l, "");
		line_put(l, STYLE_PLAIN, g->reason);
		r = line_end(l);
	}
	if (!r)
		r = put_verdicts(s, GATE_SLOWER, "fails", s->r->limit);
	if (!r)
		r = put_verdicts(s, GATE_MOVED, "moved from the caller", s->r->limit);
	return r ? r : put_verdicts(s, GATE_UNDETERMINED, "inconclusive", UNTOLD_SHOWN);
}

/* --- CPython's rules -------------------------------------------------------------------------- */

static int compare_compat(const void *a, const void *b, void *context)
{
	const struct compat *c = context;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	double p = fabs(c->nodes[x].diff), q = fabs(c->nodes[y].diff);

	if (p != q)
		return p > q ? -1 : 1;
	return x < y ? -1 : x > y;
}

static int put_compat_row(struct screen *s, const struct compat_node *n)
{
	const struct profile *p = s->r->input->profile;
	const struct frame *f = frametab_get(p->frames, n->frame);
	struct line *l = &s->line;

	line_putf(l, STYLE_PLAIN, "%12.6g %12.6g", n->self, n->baseline);
	line_putf(l,
		  n->diff > 0   ? STYLE_HOT
		  : n->diff < 0 ? STYLE_COOL
				: STYLE_PLAIN,
		  " %+12.6g %+8.1f%%", n->diff, n->diff_pct);
	line_put(l, STYLE_PLAIN, "  ");
	line_put_foreign(l, STYLE_PLAIN, strtab_get(p->strings, f->name),
			 strtab_len(p->strings, f->name));
	line_put(l, STYLE_PLAIN, "  ");
	if (!frame_has_place(f->kind))
		line_put(l, STYLE_DIM, COMPAT_MARKER_FILE);
	else
		line_put_foreign(l, STYLE_DIM, strtab_get(p->strings, f->file),
				 strtab_len(p->strings, f->file));
	if (f->line)
		line_putf(l, STYLE_DIM, ":%" PRIu32, f->line);
	return line_end(l);
}

static int put_compat(struct screen *s)
{
	const struct compat *c = s->r->compat;
	_cleanup_(freep) uint32_t *order = malloc((c->node_count + 1) * sizeof(*order));
	size_t shown = s->r->limit && s->r->limit < c->node_count ? s->r->limit : c->node_count;
	struct line *l = &s->line;
	int r;

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->node_count; i++)
		order[i] = i;
	qsort_r(order, c->node_count, sizeof(*order), compare_compat, (void *)(uintptr_t)c);
	put_label(&s->text, "compared");
	line_putf(&s->text, STYLE_PLAIN,
		  "as CPython %s does: base x %.6g, in samples; %s path%s elided",
		  compat_names[c->version], c->scale, units_count(c->elided_count).s,
		  c->elided_count == 1 ? "" : "s");
	line_end(&s->text);
	line_end(l);
	line_putf(l, STYLE_BOLD, "%12s %12s %12s %9s  %s", "self", "baseline", "diff", "diff",
		  "line");
	r = line_end(l);
	for (size_t i = 0; i < shown && !r; i++)
		r = put_compat_row(s, &c->nodes[order[i]]);
	return r ? r : put_more(s, c->node_count - shown);
}

/* ---------------------------------------------------------------------------------------------- */

static int put_all(struct screen *s)
{
	int r = diff_findings_make(s->r->diff, s->key, &s->findings);

	if (r < 0)
		return r;
	s->name_columns = choose_name_columns(s);
	put_total(s);
	r = put_groups(s);
	for (enum diff_section i = 0; i < DIFF_SECTION_UNTOLD && !r; i++)
		r = put_section(s, i);
	if (!r && !s->r->is_gated)
		r = put_untold(s);
	if (!r)
		r = put_detectable(s);
	return r ? r : put_gate(s);
}

int diff_terminal_print(FILE *out, const struct diff_report *r, enum diff_key key)
{
	struct terminal t, unlimited;
	_cleanup_(screen_release) struct screen s = {
		.r = r, .t = &t, .key = key, .line = LINE_INIT(&t), .text = LINE_INIT(&unlimited)
	};
	int e;

	terminal_init(&t, out);
	unlimited = t;
	unlimited.width = 0;
	put_environment(&s);
	put_side(&s, DIFF_BASE);
	put_side(&s, DIFF_CURRENT);
	e = put_notes(&s);
	if (e < 0)
		return e;
	return r->compat ? put_compat(&s) : put_all(&s);
}
