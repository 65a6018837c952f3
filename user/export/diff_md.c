/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A comparison as a comment on a pull request, in GitHub's Markdown, which GitLab reads as well.
 * Its first line is hidden: by it a later comparison finds the comment, to put itself in its place.
 * Names are foreign: they stand in <code>, with everything that Markdown or HTML could take for
 * its own written as an entity.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/utf8.h"
#include "export/diff_export.h"
#include "export/diff_words.h"
#include "base/escape.h"

#define MARKER "<!-- pyebpf-diff -->"
#define NAME_BYTES_MAX 120 /* as they are shown; longer names lose their end */

struct page {
	const struct diff_report *r;
	struct diff_findings findings;
	struct strbuf text;
};

static void page_release(struct page *p)
{
	diff_findings_release(&p->findings);
	strbuf_release(&p->text);
}

/* --- names ------------------------------------------------------------------------------------ */

/* Is the byte at text[i] to be an entity? `.` and `:` only where they could make a link. */
static bool is_special(const char *text, size_t i)
{
	if (text[i] == ':')
		return text[i + 1] == '/';
	if (text[i] == '.')
		return i && (text[i - 1] == 'w' || text[i - 1] == 'W');
	return strchr("\\`*_{}[]()#+!|<>&~@$\"'=^", text[i]) != NULL;
}

static int put_entities(struct strbuf *out, const char *text, size_t len)
{
	int r = 0;

	for (size_t i = 0; i < len && !r; i++)
		r = is_special(text, i) ? strbuf_appendf(out, "&#%d;", text[i])
					: strbuf_putc(out, text[i]);
	return r;
}

/* A target's text, made harmless. */
static int put_foreign(struct strbuf *out, const char *bytes, size_t len)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	size_t cut;

	if (escape_append(&text, bytes, len, "") < 0)
		return -ENOMEM;
	if (text.len <= NAME_BYTES_MAX)
		return put_entities(out, strbuf_str(&text), text.len);
	for (cut = NAME_BYTES_MAX; cut && ((unsigned char)text.bytes[cut] & 0xc0) == 0x80;)
		cut--; /* to the start of a character */
	put_entities(out, text.bytes, cut);
	return strbuf_puts(out, "...");
}

static int put_code(struct strbuf *out, const char *bytes, size_t len)
{
	strbuf_puts(out, "<code>");
	put_foreign(out, bytes, len);
	return strbuf_puts(out, "</code>");
}

static int put_name(struct page *p, const struct diff_function *f)
{
	size_t len;
	const char *name = diff_name(p->r->diff, f, &len);

	return put_code(&p->text, name, len);
}

static int put_place(struct page *p, const struct diff_function *f)
{
	size_t len;
	const char *module = diff_module(p->r->diff, f, &len);
	uint32_t line = diff_line(p->r->diff, f);

	if (!len)
		return 0;
	strbuf_puts(&p->text, " <sub>");
	put_foreign(&p->text, module, len);
	if (line)
		strbuf_appendf(&p->text, ":%" PRIu32, line);
	return strbuf_puts(&p->text, "</sub>");
}

/* --- rows ------------------------------------------------------------------------------------- */

static void put_table_head(struct page *p)
{
	strbuf_puts(&p->text,
		    "| | function | before | after | change | 95 % interval | certainty |\n"
		    "|---|---|---:|---:|---:|:---:|---|\n");
}

static void put_row(struct page *p, const char *what, const struct diff_function *f,
		    const struct diff_row *row, const char *remark)
{
	const struct diff *d = p->r->diff;
	bool has_before = row->before > 0, has_after = row->after > 0;

	strbuf_appendf(&p->text, "| %s | ", what);
	put_name(p, f);
	put_place(p, f);
	strbuf_appendf(&p->text, " | %s | %s | ", has_before ? diff_amount(d, row->before).s : "",
		       has_after ? diff_amount(d, row->after).s : "");
	if (has_before && has_after)
		strbuf_appendf(&p->text, "**%s** | %s", diff_change(row->measure->ratio).s,
			       diff_interval(row->measure->low, row->measure->high).s);
	else
		strbuf_puts(&p->text, " | ");
	strbuf_appendf(&p->text, " | %s |\n", remark);
}

static void put_section(struct page *p, enum diff_section section)
{
	const struct diff_list *list = &p->findings.section[section];
	const struct diff *d = p->r->diff;
	size_t shown = p->r->limit && p->r->limit < list->len ? p->r->limit : list->len;

	for (size_t i = 0; i < shown; i++) {
		const struct diff_function *f = &d->functions[list->items[i]];
		struct diff_row row = diff_row(d, f, diff_section_key(section, DIFF_KEY_SELF));

		put_row(p, diff_section_name(p->r->diff, section), f, &row,
			diff_certainty(row.measure->q));
	}
	if (shown < list->len)
		strbuf_appendf(&p->text, "| %s | %s more | | | | | |\n",
			       diff_section_name(p->r->diff, section),
			       units_count(list->len - shown).s);
}

static size_t verdict_count(const struct gate *g, enum gate_verdict verdict)
{
	size_t count = 0;

	for (size_t i = 0; i < g->row_count; i++)
		count += g->rows[i].verdict == verdict;
	return count;
}

/* What the gate says of functions, by the exposure it knows: with its own intervals. */
static void put_verdict_rows(struct page *p, enum gate_verdict verdict, const char *what,
			     const char *remark)
{
	const struct diff *d = p->r->diff;

	for (size_t i = 0, shown = 0; i < p->r->gate->row_count; i++) {
		const struct gate_row *g = &p->r->gate->rows[i];
		const struct diff_function *f = &d->functions[g->function];
		struct diff_row row = diff_row(d, f, DIFF_KEY_TOTAL);
		struct diff_measure measure = { g->ratio, g->low, g->high, NAN };
		char text[96] = "";

		if (g->verdict != verdict || (p->r->limit && shown++ >= p->r->limit))
			continue;
		row.measure = &measure;
		if (verdict == GATE_SLOWER && g->paid > 0)
			snprintf(text, sizeof(text), "%s; %s of it moved here from the caller",
				 remark, diff_amount(d, g->paid).s);
		put_row(p, what, f, &row, *text ? text : remark);
	}
}

/* --- parts ------------------------------------------------------------------------------------ */

static void put_change_words(struct page *p, const struct diff_function *f,
			     const struct diff_row *row)
{
	const struct diff *d = p->r->diff;

	put_name(p, f);
	if (f->class == DIFF_NEW)
		strbuf_appendf(&p->text, " is new, %s", diff_amount(d, row->after).s);
	else if (f->class == DIFF_REMOVED)
		strbuf_appendf(&p->text, " is gone, it took %s", diff_amount(d, row->before).s);
	else
		strbuf_appendf(&p->text, " %s -> %s, %s", diff_amount(d, row->before).s,
			       diff_amount(d, row->after).s, diff_change(row->measure->ratio).s);
}

/* The first function the gate fails; NULL: none. */
static const struct diff_function *failed_function(const struct page *p, struct diff_row *row,
						   struct diff_measure *measure)
{
	const struct diff *d = p->r->diff;
	const struct gate *g = p->r->gate;

	for (size_t i = 0; p->r->is_gated && i < g->row_count; i++) {
		const struct diff_function *f = &d->functions[g->rows[i].function];

		if (g->rows[i].verdict != GATE_SLOWER)
			continue;
		*row = diff_row(d, f, DIFF_KEY_TOTAL);
		*measure = (struct diff_measure){ g->rows[i].ratio, g->rows[i].low, g->rows[i].high,
						  NAN };
		row->measure = measure;
		return f;
	}
	return NULL;
}

/* The largest sure finding of a section; NULL: none. */
static const struct diff_function *surest(const struct page *p, enum diff_section section,
					  struct diff_row *row)
{
	const struct diff *d = p->r->diff;
	const struct diff_list *list = &p->findings.section[section];

	for (size_t i = 0; i < list->len; i++) {
		const struct diff_function *f = &d->functions[list->items[i]];

		*row = diff_row(d, f, diff_section_key(section, DIFF_KEY_SELF));
		if (row->measure->q <= DIFF_Q_MAX)
			return f;
	}
	return NULL;
}

static double size(const struct diff_row *row)
{
	return fabs(row->after - row->before);
}

/* The larger of the findings of two sections; NULL: of none. */
static const struct diff_function *larger(const struct page *p, enum diff_section x,
					  enum diff_section y, struct diff_row *row)
{
	struct diff_row other;
	const struct diff_function *f = surest(p, x, row), *g = surest(p, y, &other);

	if (!g || (f && size(row) >= size(&other)))
		return f;
	*row = other;
	return g;
}

static bool is_total_sure(const struct diff *d)
{
	return d->normalize != DIFF_SHARE &&
	       (diff_class_is_slower(d->total.class) || diff_class_is_faster(d->total.class));
}

/*
 * What a reader is to know first: what the gate fails; else what became of the total, if that is
 * sure, and the finding that did most to it; else the largest finding, slower ones first.
 */
static bool put_findings_words(struct page *p)
{
	static const enum diff_section order[] = { DIFF_SECTION_SLOWER, DIFF_SECTION_NEW,
						   DIFF_SECTION_FASTER, DIFF_SECTION_REMOVED };
	const struct diff *d = p->r->diff;
	bool is_sure = is_total_sure(d),
	     is_faster = is_sure && diff_class_is_faster(d->total.class);
	struct diff_measure measure;
	struct diff_row row;
	const struct diff_function *failed = failed_function(p, &row, &measure), *f = failed;

	if (!f && is_sure && !is_faster)
		f = larger(p, DIFF_SECTION_SLOWER, DIFF_SECTION_NEW, &row);
	else if (!f && is_sure)
		f = larger(p, DIFF_SECTION_FASTER, DIFF_SECTION_REMOVED, &row);
	for (size_t i = 0; !is_sure && !f && i < sizeof(order) / sizeof(order[0]); i++)
		f = surest(p, order[i], &row);
	if (is_sure && !failed)
		strbuf_appendf(&p->text, "total %s%s", diff_change(d->total.measure.ratio).s,
			       f ? ": " : "");
	if (f)
		put_change_words(p, f, &row);
	return is_sure || f;
}

static void put_headline(struct page *p)
{
	static const char *const results[GATE_RESULT_COUNT] = {
		[GATE_PASS] = "Pass",
		[GATE_REGRESSION] = "Regression",
		[GATE_INCONCLUSIVE] = "Inconclusive",
	};

	strbuf_puts(&p->text, "### ");
	if (p->r->is_gated)
		strbuf_appendf(&p->text, "%s%s: ", results[p->r->gate->result],
			       p->r->gate->is_elsewhere ? ", different environments" : "");
	if (!put_findings_words(p))
		strbuf_puts(&p->text, p->r->diff->total.class == DIFF_UNCHANGED
					      ? "no change found"
					      : "no change is sure");
	strbuf_puts(&p->text, "\n\n");
}

static void put_environment(struct page *p)
{
	const struct differences *all = p->r->environment;

	for (size_t i = 0; i < all->len; i++) {
		const struct difference *d = &all->items[i];

		strbuf_appendf(&p->text, "%s%s ",
			       i ? "; " : "**Different environments**: ", d->what);
		put_code(&p->text, d->value[DIFF_BASE], strlen(d->value[DIFF_BASE]));
		strbuf_puts(&p->text, " -> ");
		put_code(&p->text, d->value[DIFF_CURRENT], strlen(d->value[DIFF_CURRENT]));
	}
	if (all->len)
		strbuf_puts(&p->text, ".\n\n");
}

static void put_total(struct page *p)
{
	const struct diff *d = p->r->diff;
	const struct diff_measure *m = &d->total.measure;

	strbuf_appendf(&p->text, "Total %s -> %s", diff_amount(d, d->total.baseline).s,
		       diff_amount(d, d->total.value).s);
	if (!isnan(m->ratio) && d->normalize != DIFF_SHARE)
		strbuf_appendf(&p->text, ", %s (%s), %s", diff_change(m->ratio).s,
			       diff_interval(m->low, m->high).s,
			       diff_class_word(d, d->total.class));
	strbuf_appendf(&p->text, "; %s, %s.\n", diff_amount_words(d).s, diff_noise(d).s);
	if (p->r->is_gated) {
		strbuf_appendf(&p->text,
			       "Fails what is surely %s by more than %.3g %% and costs more "
			       "than %.3g %% of the whole",
			       diff_section_name(d, DIFF_SECTION_SLOWER),
			       100 * p->r->gate->threshold, 100 * p->r->gate->floor);
		if (p->r->gate->run_noise > 0)
			strbuf_appendf(&p->text, "; %s", diff_presumed(p->r->gate).s);
		strbuf_putc(&p->text, '.');
		if (p->r->gate->is_blind)
			strbuf_puts(&p->text, " **Note that " DIFF_BLIND_WORDS ".**");
		if (p->r->gate->reason)
			strbuf_appendf(&p->text, " **It cannot be told: %s.**", p->r->gate->reason);
		strbuf_putc(&p->text, '\n');
	}
	strbuf_putc(&p->text, '\n');
}

static void open_fold(struct page *p, const char *title, size_t count)
{
	strbuf_appendf(&p->text, "\n<details><summary>%s (%s)</summary>\n\n", title,
		       units_count(count).s);
}

static void close_fold(struct page *p)
{
	strbuf_puts(&p->text, "\n</details>\n");
}

/* The verdicts, then what changed whatever the gate thinks of it. */
static void put_changes(struct page *p)
{
	const struct diff_list *s = p->findings.section;
	size_t failed = p->r->is_gated ? verdict_count(p->r->gate, GATE_SLOWER) : 0;
	size_t moved = p->r->is_gated ? verdict_count(p->r->gate, GATE_MOVED) : 0;
	size_t changed = s[DIFF_SECTION_SLOWER].len + s[DIFF_SECTION_FASTER].len +
			 s[DIFF_SECTION_NEW].len + s[DIFF_SECTION_REMOVED].len;

	if (failed) {
		put_table_head(p);
		put_verdict_rows(p, GATE_SLOWER, "fails", "with what it calls");
		strbuf_putc(&p->text, '\n');
	}
	if (changed) {
		strbuf_puts(&p->text, "Time of functions themselves; new and removed ones with "
				      "what they call:\n\n");
		put_table_head(p);
		for (enum diff_section i = 0; i < DIFF_SECTION_UNTOLD; i++)
			put_section(p, i);
	}
	if (moved) {
		open_fold(p, "Cost that moved from the caller itself", moved);
		put_table_head(p);
		put_verdict_rows(p, GATE_MOVED, "moved", "its caller takes no longer");
		close_fold(p);
	}
}

/* Functions above the floor that the gate could not judge, with what it could have found. */
static void put_undetermined(struct page *p)
{
	const struct diff *d = p->r->diff;
	const struct gate *g = p->r->gate;
	size_t count = verdict_count(g, GATE_UNDETERMINED);

	if (!count)
		return;
	open_fold(p, "The data cannot tell", count);
	strbuf_puts(&p->text, "| function | change | interval | smallest change that would be "
			      "found |\n|---|---:|:---:|---:|\n");
	for (size_t i = 0, shown = 0; i < g->row_count; i++) {
		const struct gate_row *row = &g->rows[i];

		if (row->verdict != GATE_UNDETERMINED || (p->r->limit && shown++ >= p->r->limit))
			continue;
		strbuf_puts(&p->text, "| ");
		put_name(p, &d->functions[row->function]);
		put_place(p, &d->functions[row->function]);
		strbuf_appendf(&p->text, " | %s | %s | %s |\n", diff_change(row->ratio).s,
			       diff_interval(row->low, row->high).s,
			       diff_change(row->detectable).s);
	}
	close_fold(p);
}

static void put_groups(struct page *p)
{
	const struct diff *d = p->r->diff;
	size_t count = 0;

	if (!p->r->group_by)
		return;
	for (size_t i = 1; i < d->node_count; i = d->nodes[i].end)
		count++;
	strbuf_puts(&p->text, "\n");
	put_table_head(p);
	for (size_t i = 1; i < d->node_count; i = d->nodes[i].end) {
		const struct diff_node *n = &d->nodes[i];
		struct diff_row row = { diff_baseline(d, n->base_total), (double)n->total,
					&n->measure, n->class };

		put_row(p, diff_class_word(p->r->diff, n->class), &d->functions[n->function], &row,
			diff_certainty(n->measure.q));
	}
	strbuf_putc(&p->text, '\n');
}

static struct units_text size_text(uint64_t value, bool is_bytes)
{
	return is_bytes ? units_bytes(value) : units_count(value);
}

static void put_run(struct page *p, const struct cube_run *run)
{
	const char *python = diff_run_python(p->r->input, run);
	const struct recording *r = diff_run_recording(p->r->input, run);
	const char *host = r->host;
	bool is_bytes = recording_value_unit(r).unit == UNIT_BYTES;

	strbuf_appendf(&p->text, "| %s | ", run->side == DIFF_BASE ? "base" : "current");
	put_code(&p->text, run->file, strlen(run->file));
	strbuf_appendf(&p->text, " | %s | ", size_text(run->value, is_bytes).s);
	strbuf_appendf(&p->text, "%s | ", size_text(run->lost, is_bytes).s);
	if (python)
		put_foreign(&p->text, python, strlen(python));
	strbuf_puts(&p->text, " | ");
	if (host)
		put_foreign(&p->text, host, strlen(host));
	strbuf_puts(&p->text, " |\n");
}

static void put_runs(struct page *p)
{
	const struct diff_input *in = p->r->input;

	open_fold(p, "What was compared", in->cube.runs.len);
	strbuf_puts(&p->text, "| | recording | samples | lost | Python | host |\n"
			      "|---|---|---:|---:|---|---|\n");
	for (size_t i = 0; i < in->cube.runs.len; i++)
		put_run(p, &in->cube.runs.items[i]);
	strbuf_putc(&p->text, '\n');
	for (size_t i = 0; i < p->r->notes->len; i++) {
		strbuf_puts(&p->text, "- ");
		put_foreign(&p->text, p->r->notes->items[i], strlen(p->r->notes->items[i]));
		strbuf_putc(&p->text, '\n');
	}
	close_fold(p);
}

static int write_markdown(const struct diff_report *r, FILE *out)
{
	_cleanup_(page_release) struct page p = { .r = r };
	int e = diff_findings_make(r->diff, DIFF_KEY_SELF, &p.findings);

	if (e < 0)
		return e;
	strbuf_puts(&p.text, MARKER "\n");
	put_headline(&p);
	put_environment(&p);
	put_total(&p);
	put_groups(&p);
	put_changes(&p);
	put_undetermined(&p);
	put_runs(&p);
	if (strbuf_error(&p.text))
		return -ENOMEM;
	fwrite(p.text.bytes, 1, p.text.len, out);
	return 0;
}

const struct diff_exporter diff_exporter_markdown = {
	.name = "markdown",
	.suffix = ".md",
	.help = "a comment for a pull request",
	.write = write_markdown,
};
