/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A folder of pages: each source file with the heat of its lines, who calls its functions and whom
 * its lines call, and a page of all modules. Each page is whole by itself, needs no network, and
 * is of use without scripts; the head of assets/hotlines.* lets nothing else in. All that is not
 * ours goes through markup_foreign().
 *
 * Where the source is not here, or not the one that was recorded (export/source_text.h), the page
 * says why and has the lines' numbers and functions alone.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/folder.h"
#include "base/strbuf.h"
#include "base/escape.h"
#include "export/export.h"
#include "export/heat.h"
#include "export/markup.h"
#include "export/source_text.h"
#include "profile/kinds.h"
#include "profile/module.h"
#include "profile/numbered.h"
#include "hotlines_assets.h"

#define INDEX_STEM "index"
#define INDEX INDEX_STEM ".html"
#define NUMBER_BYTES sizeof("-4294967295")
#define SUFFIX ".html"
#define NAME_MAX_BYTES 120 /* of a page's file, without its suffix */
#define LEVELS 8           /* of heat: assets/hotlines.css */
#define CALLS_MAX 50       /* callers, or callees, that a line lists */
#define BAR_WIDTH 120
#define ELLIPSIS "\xe2\x80\xa6"

struct page_file {
	char *name;     /* of the page, "json.decoder.html"; owned */
	char *module;   /* as people call it; owned */
	uint8_t origin; /* enum origin */
	uint8_t status; /* enum source_status */
};

struct heatmap {
	const struct profile *p;
	struct folder *folder;
	struct heat heat;
	struct modules modules;
	struct value_unit unit;
	struct source_reader *sources; /* NULL: without source text */
	VEC(struct page_file) pages;   /* as the files of heat */
	uint32_t *page_of;             /* by string id of a file: index + 1; 0: it has none */
	struct numbered names;         /* of those pages, without suffix, in small letters */
	struct strbuf text;            /* what goes to the page next */
	FILE *out;                     /* that page */
};

static void heatmap_release(struct heatmap *m)
{
	source_reader_free(m->sources);
	heat_release(&m->heat);
	modules_release(&m->modules);
	for (size_t i = 0; i < m->pages.len; i++) {
		free(m->pages.items[i].name);
		free(m->pages.items[i].module);
	}
	vec_release(&m->pages);
	numbered_release(&m->names);
	free(m->page_of);
	strbuf_release(&m->text);
}

/* --- names ------------------------------------------------------------------------------------ */

/* "json.decoder", "<string>": where a file has no module it is called by its path. */
static int module_of_file(const struct heatmap *m, uint32_t file, char **name)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	int r = modules_put_name(&m->modules, file, &text);

	if (!r && !text.len)
		r = strbuf_append(&text, strtab_get(m->p->strings, file),
				  strtab_len(m->p->strings, file));
	*name = r < 0 ? NULL : strbuf_take(&text);
	return *name ? 0 : -ENOMEM;
}

static bool is_harmless(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-' || c == '.';
}

/* How often it was asked for. Names of files may be alike elsewhere: letters count as small. */
static int count_name(struct heatmap *m, const char *name, uint32_t *number)
{
	char small[NAME_MAX_BYTES + NUMBER_BYTES];
	size_t len = strlen(name);

	for (size_t i = 0; i < len; i++)
		small[i] = (char)tolower((unsigned char)name[i]);
	return numbered_next(&m->names, small, len, number);
}

/* The same in the next heatmap, so that links last. */
static int name_page(struct heatmap *m, const char *module, char **name)
{
	char stem[NAME_MAX_BYTES + 1], page[NAME_MAX_BYTES + NUMBER_BYTES];
	uint32_t number, times;
	size_t len = 0;
	int r;

	for (; module[len] && len < NAME_MAX_BYTES; len++)
		stem[len] =
			is_harmless(module[len]) && (len || module[len] != '.') ? module[len] : '_';
	stem[len] = '\0';
	memcpy(page, stem, len + 1);
	do {
		times = 1;
		r = count_name(m, stem, &number);
		if (!r && number > 1) {
			snprintf(page, sizeof(page), "%s-%u", stem, number);
			r = count_name(m, page, &times);
		}
	} while (!r && times > 1);
	if (!r && asprintf(name, "%s" SUFFIX, page) < 0) {
		*name = NULL;
		r = -ENOMEM;
	}
	return r;
}

static int name_pages(struct heatmap *m)
{
	uint32_t number;
	int r = count_name(m, INDEX_STEM, &number) ?: modules_find(&m->modules, m->p, NULL, NULL);

	m->page_of = calloc(strtab_count(m->p->strings), sizeof(*m->page_of));
	if (!m->page_of)
		return -ENOMEM;
	for (size_t i = 0; i < m->heat.files.len && !r; i++) {
		uint32_t file = m->heat.files.items[i].file;
		struct page_file page = {
			.origin = (uint8_t)origin_of(m->p, 0, file, FRAME_PYTHON),
		};

		if ((r = module_of_file(m, file, &page.module)) < 0 ||
		    (r = name_page(m, page.module, &page.name)) < 0 ||
		    (r = vec_push(&m->pages, page)) < 0) {
			free(page.module);
			free(page.name);
			return r;
		}
		m->page_of[file] = (uint32_t)m->pages.len;
	}
	return r;
}

/* Of a file that we write: what stands in a heatmap's folder. */
static bool is_page(const char *name)
{
	size_t len = strlen(name), suffix = strlen(SUFFIX);

	return len > suffix && !strcmp(name + len - suffix, SUFFIX);
}

/* --- parts of pages --------------------------------------------------------------------------- */

static void put_string(struct heatmap *m, uint32_t string)
{
	markup_foreign(&m->text, strtab_get(m->p->strings, string),
		       strtab_len(m->p->strings, string));
}

static double percent_of(const struct heatmap *m, uint64_t value)
{
	return m->heat.whole ? 100.0 * (double)value / (double)m->heat.whole : 0;
}

static void put_percent(struct heatmap *m, uint64_t value)
{
	double percent = percent_of(m, value);

	if (value && percent < 0.05)
		strbuf_puts(&m->text, "&lt;0.1%");
	else
		strbuf_appendf(&m->text, "%.1f%%", percent);
}

/* 1 to LEVELS; small ones are told apart better than large ones. 0: there is none. */
static int level_of(uint64_t value, uint64_t hottest)
{
	return value ? (int)ceil(LEVELS * sqrt((double)value / (double)hottest)) : 0;
}

static void put_level(struct heatmap *m, char name, uint64_t value, uint64_t hottest)
{
	if (value)
		strbuf_appendf(&m->text, " data-%c=\"%d\"", name, level_of(value, hottest));
}

static void put_value_cell(struct heatmap *m, uint64_t value)
{
	if (!value) {
		strbuf_puts(&m->text, "<td>");
		return;
	}
	strbuf_appendf(&m->text, "<td title=\"%s\">", value_text(value, m->unit).s);
	put_percent(m, value);
}

static void put_head(struct heatmap *m, const char *title)
{
	strbuf_append(&m->text, (const char *)hotlines_head, sizeof(hotlines_head));
	strbuf_puts(&m->text, "<title>");
	markup_foreign(&m->text, title, strlen(title));
	strbuf_puts(&m->text, "</title>\n<body class=\"self\">\n<header><div>\n");
}

static void put_tools(struct heatmap *m, bool has_lines)
{
	strbuf_puts(&m->text,
		    "</div>\n<div class=\"tools\" hidden><button value=\"self\" "
		    "title=\"by what runs while a line is the innermost one (s)\">Self</button>"
		    "<button value=\"total\" title=\"with all that it calls (t)\">Total</button>");
	if (has_lines)
		strbuf_puts(&m->text, "<button value=\"hot\" title=\"hide lines without samples "
				      "(h); next and previous: n, p\">Hot lines</button>");
	strbuf_puts(&m->text, "</div></header>\n");
}

/* What was appended so far goes out. 0 or a negative errno. */
static int flush(struct heatmap *m)
{
	if (strbuf_error(&m->text))
		return strbuf_error(&m->text);
	fwrite(strbuf_str(&m->text), 1, m->text.len, m->out);
	strbuf_truncate(&m->text, 0);
	return 0;
}

static int begin_page(struct heatmap *m, const char *name)
{
	strbuf_truncate(&m->text, 0);
	return folder_begin_file(m->folder, name, &m->out);
}

static int end_page(struct heatmap *m)
{
	int r;

	strbuf_append(&m->text, (const char *)hotlines_tail, sizeof(hotlines_tail));
	r = flush(m);
	return folder_end_file(m->folder) ?: r;
}

/* --- calls ------------------------------------------------------------------------------------ */

/* An item: how much, and a link to a line that has a page, of which it tells the function. */
static void put_link(struct heatmap *m, uint64_t value, uint32_t file, uint32_t line,
		     uint32_t function)
{
	const struct frame *f = functions_get(&m->heat.functions, function);
	const struct page_file *page = &m->pages.items[m->page_of[file] - 1];

	strbuf_puts(&m->text, "<li><span>");
	put_percent(m, value);
	strbuf_appendf(&m->text, "</span><a href=\"%s#line-%u\">", page->name, line);
	put_string(m, f->name);
	strbuf_puts(&m->text, "</a> <i>");
	markup_foreign(&m->text, page->module, strlen(page->module));
	strbuf_appendf(&m->text, ":%u</i>", line);
}

static void begin_list(struct heatmap *m, const char *arrow, const char *what, size_t count)
{
	strbuf_appendf(&m->text, "<details><summary title=\"%s\">%s%zu</summary><ol>", what, arrow,
		       count);
}

static void end_list(struct heatmap *m, size_t count)
{
	if (count > CALLS_MAX)
		strbuf_appendf(&m->text, "<li>and %zu more", count - CALLS_MAX);
	strbuf_puts(&m->text, "</ol></details>");
}

/* Whom a line calls. Where a function begins is not always known: then the file is what is shown.
 */
static void put_callees(struct heatmap *m, uint32_t line)
{
	size_t first, count = heat_calls_of(&m->heat, line, &first);

	if (!count)
		return;
	begin_list(m, "\xe2\x86\x92", "calls", count);
	for (size_t i = first; i < first + count && i < first + CALLS_MAX; i++) {
		const struct heat_call *call = &m->heat.calls.items[i];
		const struct frame *f = functions_get(&m->heat.functions, call->function);

		put_link(m, call->value, f->file, m->heat.def_line[call->function], call->function);
	}
	end_list(m, count);
}

static void put_callers(struct heatmap *m, uint32_t function)
{
	size_t first, count = heat_callers_of(&m->heat, function, &first);

	if (!count)
		return;
	begin_list(m, "\xe2\x86\x90", "called by", count);
	for (size_t i = first; i < first + count && i < first + CALLS_MAX; i++) {
		const struct heat_call *call = &m->heat.calls.items[m->heat.callers.items[i]];
		const struct heat_line *from = &m->heat.lines.items[call->line];

		put_link(m, call->value, from->file, from->line, from->function);
	}
	end_list(m, count);
}

/* --- a page of source ------------------------------------------------------------------------- */

/* Goes through all lines that the page shows: of the source, with samples, with defs. */
struct rows {
	const struct source_text *source;
	size_t line, line_end; /* of heat: the next, and behind the last */
	size_t def, def_end;
	uint32_t at; /* the line before */
	bool has_begun;
};

static void lower_to(uint32_t *next, bool *has_next, uint32_t line)
{
	if (!*has_next || line < *next)
		*next = line;
	*has_next = true;
}

/* What is next. false: that was the last. */
static bool next_row(const struct heatmap *m, const struct rows *r, uint32_t *next)
{
	bool has_next = false;

	if (r->line < r->line_end)
		lower_to(next, &has_next, m->heat.lines.items[r->line].line);
	if (r->def < r->def_end)
		lower_to(next, &has_next, m->heat.defs.items[r->def].line);
	if (r->at < source_text_lines(r->source))
		lower_to(next, &has_next, r->at + 1);
	return has_next;
}

static void put_source(struct heatmap *m, const struct source_text *source, uint32_t line)
{
	size_t len;
	bool is_cut;
	const char *bytes = source_text_line(source, line, &len, &is_cut), *tab;

	while ((tab = memchr(bytes, '\t', len))) {
		markup_foreign(&m->text, bytes, (size_t)(tab - bytes));
		strbuf_putc(&m->text, '\t');
		len -= (size_t)(tab + 1 - bytes);
		bytes = tab + 1;
	}
	markup_foreign(&m->text, bytes, len);
	if (is_cut)
		strbuf_puts(&m->text, ELLIPSIS);
}

/* Where there is no source: which function it is of, or which begins. */
static void put_function(struct heatmap *m, uint32_t function)
{
	strbuf_puts(&m->text, "<i>in ");
	put_string(m, functions_get(&m->heat.functions, function)->name);
	strbuf_puts(&m->text, "</i>");
}

static int put_row(struct heatmap *m, struct rows *r, uint32_t at)
{
	const struct heat *h = &m->heat;
	uint32_t hot = r->line < r->line_end && h->lines.items[r->line].line == at
			       ? (uint32_t)r->line++
			       : UINT32_MAX;
	struct heat_line none = { 0 };
	const struct heat_line *l = hot == UINT32_MAX ? &none : &h->lines.items[hot];
	uint32_t function = l->function;

	strbuf_appendf(&m->text, "<tr id=\"line-%u\"", at);
	put_level(m, 's', l->self, h->hottest_self);
	put_level(m, 't', l->total, h->hottest_total);
	if (at)
		strbuf_appendf(&m->text, "><td><a href=\"#line-%u\">%u</a>", at, at);
	else
		strbuf_puts(&m->text, " title=\"line unknown\"><td>?");
	put_value_cell(m, l->self);
	put_value_cell(m, l->total);
	strbuf_puts(&m->text, "<td>");
	for (; r->def < r->def_end && h->defs.items[r->def].line == at; r->def++) {
		function = h->defs.items[r->def].function;
		put_callers(m, function);
	}
	if (hot != UINT32_MAX)
		put_callees(m, hot);
	strbuf_puts(&m->text, "<td>");
	if (at && at <= source_text_lines(r->source))
		put_source(m, r->source, at);
	else
		put_function(m, function);
	strbuf_putc(&m->text, '\n');
	r->at = at;
	return flush(m);
}

static int put_rows(struct heatmap *m, const struct heat_file *file,
		    const struct source_text *source)
{
	struct rows rows = { .source = source, .line = file->first };
	size_t defs = heat_defs_of(&m->heat, file->file, &rows.def);
	uint32_t at = 0;
	int r = 0;

	rows.line_end = rows.line + file->count;
	rows.def_end = rows.def + defs;
	strbuf_puts(&m->text,
		    "<main><table class=\"code\">\n<thead><tr><td>Line<td>Self<td>Total<td>"
		    "<td></thead>\n<tbody>\n");
	while (!r && next_row(m, &rows, &at))
		r = put_row(m, &rows, at);
	strbuf_puts(&m->text, "</table></main>\n");
	return r;
}

static const char *const reasons[] = {
	[SOURCE_EMBEDDED] = NULL,
	[SOURCE_CHANGED] = "Source not shown: the file has changed since it was recorded.",
	[SOURCE_MISSING] = "Source not shown: the file cannot be read on this machine.",
	[SOURCE_UNKNOWN] = "Source not shown: the recording does not have the file's "
			   "digest. The process "
			   "could not read the file, or pyebpf did not record it. --source-root "
			   "DIR shows files "
			   "below DIR.",
	[SOURCE_TOO_LARGE] = "Source not shown: the file is too large.",
};

static void put_file_head(struct heatmap *m, const struct heat_file *file,
			  const struct page_file *page)
{
	put_head(m, page->module);
	strbuf_puts(&m->text, "<h1><a href=\"" INDEX "\" title=\"all modules (i)\">Heatmap</a> / ");
	markup_foreign(&m->text, page->module, strlen(page->module));
	strbuf_puts(&m->text, "</h1>\n<p>");
	put_string(m, file->file);
	strbuf_puts(&m->text, "<p>itself ");
	put_percent(m, file->self);
	strbuf_appendf(&m->text, ", %s; with what it calls ", value_text(file->self, m->unit).s);
	put_percent(m, file->total);
	strbuf_appendf(&m->text, ", %s; %u %s with samples\n", value_text(file->total, m->unit).s,
		       file->count, file->count == 1 ? "line" : "lines");
	put_tools(m, true);
	if (reasons[page->status])
		strbuf_appendf(&m->text, "<p class=\"said\">%s\n", reasons[page->status]);
}

static int read_source(struct heatmap *m, const struct heat_file *file, struct source_text *source,
		       uint8_t *status)
{
	enum source_status found = SOURCE_UNKNOWN;
	int r = m->sources ? source_reader_read(m->sources, file->file, source, &found) : 0;

	*status = (uint8_t)found;
	return r;
}

static int write_file(struct heatmap *m, size_t i)
{
	_cleanup_(source_text_release) struct source_text source = { 0 };
	const struct heat_file *file = &m->heat.files.items[i];
	struct page_file *page = &m->pages.items[i];
	int r;

	if ((r = read_source(m, file, &source, &page->status)) < 0 ||
	    (r = begin_page(m, page->name)) < 0)
		return r;
	put_file_head(m, file, page);
	r = put_rows(m, file, &source);
	return end_page(m) ?: r;
}

/* --- the page of all modules ------------------------------------------------------------------ */

static const struct {
	uint8_t origin;
	const char *title;
} groups[] = {
	{ ORIGIN_OWN, "Own code" },
	{ ORIGIN_LIBRARY, "Libraries" },
	{ ORIGIN_STDLIB, "Standard library" },
	{ ORIGIN_IMPORT, "Import" },
};

static void put_bar(struct heatmap *m, const struct heat_file *file)
{
	strbuf_appendf(&m->text,
		       "<td class=\"bar\"><svg width=\"%d\" height=\"10\" aria-hidden=\"true\">"
		       "<rect class=\"total\" width=\"%.1f\" height=\"10\"/>"
		       "<rect width=\"%.1f\" height=\"10\"/></svg>",
		       BAR_WIDTH, BAR_WIDTH * percent_of(m, file->total) / 100,
		       BAR_WIDTH * percent_of(m, file->self) / 100);
}

static void put_number_cell(struct heatmap *m, uint64_t value)
{
	strbuf_appendf(&m->text, "<td class=\"n\" title=\"%s\">", value_text(value, m->unit).s);
	put_percent(m, value);
}

static void put_module(struct heatmap *m, size_t i)
{
	const struct heat_file *file = &m->heat.files.items[i];
	const struct page_file *page = &m->pages.items[i];

	strbuf_appendf(&m->text, "<tr data-self=\"%.3f\" data-sum=\"%.3f\">",
		       percent_of(m, file->self), percent_of(m, file->total));
	put_bar(m, file);
	put_number_cell(m, file->self);
	put_number_cell(m, file->total);
	strbuf_appendf(&m->text, "<td><a href=\"%s\">", page->name);
	markup_foreign(&m->text, page->module, strlen(page->module));
	strbuf_puts(&m->text,
		    page->status == SOURCE_EMBEDDED ? "</a><td>" : "</a> (no source)<td>");
	put_string(m, file->file);
	strbuf_putc(&m->text, '\n');
}

static int compare_files(const void *a, const void *b, void *heat)
{
	const struct heat *h = heat;
	const struct heat_file *x = &h->files.items[*(const uint32_t *)a],
			       *y = &h->files.items[*(const uint32_t *)b];

	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

static int put_group(struct heatmap *m, const uint32_t *order, size_t group)
{
	uint64_t self = 0;
	size_t count = 0;
	int r = 0;

	for (size_t i = 0; i < m->pages.len; i++) {
		if (m->pages.items[i].origin != groups[group].origin)
			continue;
		self += m->heat.files.items[i].self;
		count++;
	}
	if (!count)
		return 0;
	strbuf_appendf(&m->text, "<h2>%s<small>", groups[group].title);
	put_percent(m, self);
	strbuf_appendf(&m->text, " in %zu %s</small></h2>\n", count,
		       count == 1 ? "module" : "modules");
	strbuf_puts(&m->text,
		    "<table class=\"modules\"><thead><tr><th class=\"bar\"><th class=\"n\">"
		    "Self<th class=\"n\">Total<th>Module<th>File</thead>\n<tbody>\n");
	for (size_t i = 0; i < m->pages.len && !r; i++) {
		if (m->pages.items[order[i]].origin != groups[group].origin)
			continue;
		put_module(m, order[i]);
		r = flush(m);
	}
	strbuf_puts(&m->text, "</table>\n");
	return r;
}

static int put_groups(struct heatmap *m)
{
	_cleanup_(freep) uint32_t *order = calloc(m->pages.len + 1, sizeof(*order));
	int r = 0;

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->pages.len; i++)
		order[i] = i;
	qsort_r(order, m->pages.len, sizeof(*order), compare_files, &m->heat);
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]) && !r; i++)
		r = put_group(m, order, i);
	return r;
}

static int write_index(struct heatmap *m)
{
	struct recording facts = profile_facts(m->p);
	const char *title = facts.target ?: facts.command ?: "pyebpf";
	int r = begin_page(m, INDEX);

	if (r < 0)
		return r;
	put_head(m, title);
	strbuf_puts(&m->text, "<h1>Heatmap</h1>\n<p>");
	markup_foreign(&m->text, title, strlen(title));
	strbuf_appendf(&m->text, "<p>%s, %s", kinds_noun(&facts),
		       value_text(m->heat.whole, m->unit).s);
	if (facts.duration_ns)
		strbuf_appendf(&m->text, " in %s", units_ns(facts.duration_ns).s);
	if (m->heat.placeless) {
		strbuf_puts(&m->text, "; ");
		put_percent(m, m->heat.placeless);
		strbuf_puts(&m->text, " outside Python code");
	}
	strbuf_putc(&m->text, '\n');
	put_tools(m, false);
	strbuf_puts(&m->text, "<main>\n");
	r = put_groups(m);
	strbuf_puts(&m->text, "</main>\n");
	return end_page(m) ?: r;
}

/* --- all of it -------------------------------------------------------------------------------- */

static int write_heatmap(struct exporting *x)
{
	_cleanup_(heatmap_release) struct heatmap m = { .p = x->p, .folder = x->folder };
	struct recording facts = profile_facts(x->p);
	int r;

	m.unit = recording_value_unit(&facts);
	if (!x->o->no_sources) {
		const struct source_uses uses = { .p = x->p, .root = x->o->source_root };

		if ((r = source_reader_new(&uses, &m.sources)) < 0)
			return r;
	}
	if ((r = heat_find(&m.heat, x->p, x->cube)) < 0 || (r = name_pages(&m)) < 0)
		return r;
	for (size_t i = 0; i < m.pages.len && !r; i++)
		r = write_file(&m, i);
	return r ? r : write_index(&m); /* it tells which have their source */
}

static const char *const suffixes[] = { ".heatmap", NULL };

const struct exporter exporter_heatmap = {
	.name = "heatmap",
	.suffixes = suffixes,
	.help = "a folder of source pages with the heat of each line, callers and callees",
	.needs = EXPORT_FOLDS_IMPORTS | EXPORT_OF_FOLDERS,
	.mark = ".pyebpf-heatmap",
	.is_own = is_page,
	.finish = write_heatmap,
};
