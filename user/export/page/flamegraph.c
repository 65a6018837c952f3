/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/page/flamegraph.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/parallel.h"
#include "base/varint.h"
#include "export/page/blob.h"
#include "export/export.h"
#include "export/page/facts.h"
#include "export/page/rows.h"
#include "page_assets.h"

#define MAGIC PAGE_SCHEMA "\n"

/* Strings of a part of the page: those of the profile that it uses, in order of first use. */
struct page_strings {
	uint32_t *id_of; /* by string id of the profile; 0: not used (yet), or the empty string */
	VEC(uint32_t) used;
};

static void page_strings_release(struct page_strings *s)
{
	free(s->id_of);
	vec_release(&s->used);
}

static int use_string(struct page_strings *s, uint32_t string)
{
	if (!string || s->id_of[string])
		return 0;
	s->id_of[string] = (uint32_t)s->used.len;
	return vec_push(&s->used, string);
}

static int page_strings_init(struct page_strings *s, const struct page *page)
{
	s->id_of = calloc(strtab_count(page->profile->strings) + 1, sizeof(*s->id_of));
	return s->id_of ? vec_push(&s->used, 0) : -ENOMEM;
}

static int collect_strings(struct page_strings *s, const struct page *page,
			   const struct sources *sources)
{
	int r = page_strings_init(s, page);

	for (size_t i = 0; i < page->functions.len && !r; i++) {
		r = use_string(s, page->functions.items[i].name);
		if (!r)
			r = use_string(s, page->functions.items[i].file);
	}
	for (size_t i = 0; i < sources->files.len && !r; i++)
		r = use_string(s, sources->files.items[i].file);
	return r;
}

/* Names of instructions: of the rows alone. */
static int collect_opcodes(struct page_strings *s, const struct page *page)
{
	const struct cube *c = page->cube;
	int r = page_strings_init(s, page);

	for (size_t i = 0; i < c->tags.len && !r; i++)
		if (c->tags.items[i].opcode)
			r = use_string(s, c->tags.items[i].opcode);
	return r;
}

/* --- columns ---------------------------------------------------------------------------------- */

/* Those of the profile, behind them the names of modules. */
static void write_strings(struct blob *b, const struct page *page, const struct page_strings *s)
{
	const struct strtab *t = page->profile->strings, *m = page->modules;
	uint32_t modules = strtab_count(m);

	blob_number(b, s->used.len + modules - 1);
	for (size_t i = 0; i < s->used.len; i++)
		blob_number(b, strtab_len(t, s->used.items[i]));
	for (uint32_t i = 1; i < modules; i++)
		blob_number(b, strtab_len(m, i));
	for (size_t i = 0; i < s->used.len; i++)
		blob_bytes(b, strtab_get(t, s->used.items[i]), strtab_len(t, s->used.items[i]));
	for (uint32_t i = 1; i < modules; i++)
		blob_bytes(b, strtab_get(m, i), strtab_len(m, i));
}

/* A column: one number of each item. */
#define WRITE_COLUMN(blob, vec, item, number)                 \
	do {                                                  \
		for (size_t i_ = 0; i_ < (vec)->len; i_++) {  \
			__auto_type item = &(vec)->items[i_]; \
			blob_number(blob, number);            \
		}                                             \
	} while (0)

static void write_functions(struct blob *b, const struct page *page, const struct page_strings *s)
{
	blob_number(b, page->functions.len);
	WRITE_COLUMN(b, &page->functions, f, s->id_of[f->name]);
	WRITE_COLUMN(b, &page->functions, f, s->id_of[f->file]);
	WRITE_COLUMN(b, &page->functions, f, f->module ? s->used.len + f->module - 1 : 0);
	WRITE_COLUMN(b, &page->functions, f, f->origin);
	WRITE_COLUMN(b, &page->functions, f, f->line);
	WRITE_COLUMN(b, &page->functions, f, f->renamed_from);
}

/* How far each node's parent is above the node before it. */
static void write_levels(struct blob *b, const struct page *page)
{
	const struct page_node *nodes = page->nodes.items;

	blob_number(b, 0);
	for (uint32_t i = 1; i < page->nodes.len; i++) {
		uint32_t levels = 0;

		for (uint32_t at = i - 1; at != nodes[i].parent; at = nodes[at].parent)
			levels++;
		blob_number(b, levels);
	}
}

static void write_nodes(struct blob *b, const struct page *page)
{
	blob_number(b, page->nodes.len);
	write_levels(b, page);
	WRITE_COLUMN(b, &page->nodes, n, n->function);
	WRITE_COLUMN(b, &page->nodes, n, n->self[CUBE_CURRENT]);
	if (page_first_run(page, CUBE_BASE))
		WRITE_COLUMN(b, &page->nodes, n, n->self[CUBE_BASE]);
	for (size_t i = 0; page->waits && i < page->nodes.len; i++)
		blob_number(b, page->waits[i]);
	for (size_t i = 0; page->idle && i < page->nodes.len; i++)
		blob_number(b, page->idle[i]);
}

static uint64_t line_number(const struct page *page, const struct page_site *s)
{
	const struct page_node *n = &page->nodes.items[s->node];
	int64_t defined = page->functions.items[n->function].line;

	return s->line ? zigzag_encode((int64_t)s->line - defined) + 1 : 0;
}

static int write_sites(struct blob *b, const struct page *page)
{
	_cleanup_(freep) uint32_t *first = calloc(page->nodes.len + 1, sizeof(*first));

	if (!first)
		return -ENOMEM;
	for (size_t i = 0; i < page->sites.len; i++)
		first[page->sites.items[i].node + 1]++;
	for (size_t i = 0; i < page->nodes.len; i++) {
		blob_number(b, first[i + 1]);
		first[i + 1] += first[i];
	}
	WRITE_COLUMN(b, &page->sites, s,
		     s->node ? s->caller - first[page->nodes.items[s->node].parent] : 0);
	WRITE_COLUMN(b, &page->sites, s, line_number(page, s));
	return 0;
}

static void write_classes(struct blob *b, const struct page *page)
{
	blob_number(b, page->diff ? 1 : 0);
	if (!page->diff)
		return;
	WRITE_COLUMN(b, &page->nodes, n, n->class);
	WRITE_COLUMN(b, &page->nodes, n, n->self_class);
	WRITE_COLUMN(b, &page->nodes, n, n->match);
}

static void write_sources(struct blob *b, const struct sources *sources,
			  const struct page_strings *s)
{
	blob_number(b, sources->files.len);
	WRITE_COLUMN(b, &sources->files, f, s->id_of[f->file]);
	WRITE_COLUMN(b, &sources->files, f, f->status);
	blob_number(b, sources->pieces.len);
	WRITE_COLUMN(b, &sources->pieces, p, p->file);
	WRITE_COLUMN(b, &sources->pieces, p, p->line);
	WRITE_COLUMN(b, &sources->pieces, p, p->len);
	for (size_t i = 0; i < sources->pieces.len; i++)
		blob_bytes(b, sources->pieces.items[i].text, sources->pieces.items[i].len);
}

static int write_facts(struct blob *b, const struct page *page, const struct page_strings *opcodes)
{
	_cleanup_(freep) char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	struct json j;
	int r;

	if (!f)
		return -ENOMEM;
	json_init(&j, f);
	page_put_facts(&j, page, &(struct page_names){ opcodes->used.items, opcodes->used.len });
	r = json_finish(&j);
	if (fclose(f) || r < 0)
		return -ENOMEM;
	blob_number(b, len);
	blob_bytes(b, text, len);
	return 0;
}

/* What is written first, and what is written then: rows are put in order meanwhile. */
struct writing {
	struct blob *blob;
	const struct page *page;
	const struct page_strings *strings, *opcodes;
	struct page_rows *rows; /* owned */
	int error[2];
};

static void write_or_order(void *writing, size_t i)
{
	struct writing *w = writing;

	if (i) {
		w->error[i] = page_rows_new(
			w->page, w->opcodes->used.len > 1 ? w->opcodes->id_of : NULL, &w->rows);
		return;
	}
	write_strings(w->blob, w->page, w->strings);
	write_functions(w->blob, w->page, w->strings);
	write_nodes(w->blob, w->page);
	write_classes(w->blob, w->page);
	w->error[i] = write_sites(w->blob, w->page);
}

static int write_blob(struct blob *b, const struct page *page, const struct sources *sources,
		      const struct page_strings *strings, const struct page_strings *opcodes)
{
	struct writing w = { .blob = b, .page = page, .strings = strings, .opcodes = opcodes };
	int r;

	blob_bytes(b, MAGIC, sizeof(MAGIC) - 1);
	r = write_facts(b, page, opcodes);
	if (r < 0)
		return r;
	parallel_run(2, write_or_order, &w);
	r = w.error[0] ? w.error[0] : w.error[1];
	if (!r)
		page_rows_write(b, w.rows);
	page_rows_free(w.rows);
	if (r < 0)
		return r;
	write_sources(b, sources, strings);
	blob_finish(b);
	return 0;
}

/* --- the page --------------------------------------------------------------------------------- */

int flamegraph_write(const struct page *page, const struct sources *sources, FILE *out)
{
	_cleanup_(page_strings_release) struct page_strings strings = { 0 }, opcodes = { 0 };
	_cleanup_(blob_release) struct blob b;
	int r;

	r = blob_init(&b, out);
	if (r < 0)
		return r;
	if ((r = collect_strings(&strings, page, sources)) < 0 ||
	    (r = collect_opcodes(&opcodes, page)) < 0)
		return r;
	fwrite(page_head, 1, sizeof(page_head), out);
	r = write_blob(&b, page, sources, &strings, &opcodes);
	if (r < 0)
		return r;
	fwrite(page_tail, 1, sizeof(page_tail), out);
	return 0;
}

static int write_html(struct exporting *x)
{
	const struct cube *c = x->cube;
	_cleanup_(calltree_freep) struct calltree *tree = NULL;
	_cleanup_(sources_release) struct sources sources = { 0 };
	_cleanup_(page_release) struct page page = { 0 };
	int r;

	assert(((c->axes | CUBE_KINDS) & PAGE_AXES) == PAGE_AXES); /* one kind is ticks */
	if ((r = calltree_new(x->p, c, CUBE_ALL_KINDS, CALLTREE_BY_FUNCTION, &tree)) < 0 ||
	    (r = page_of_tree(&page, x->p, c, tree, x->kinds)) < 0)
		return r;
	page.notes = x->o->notes;
	page.gil = x->gil;
	calltree_free(take_ptr(tree));
	if (!x->o->no_sources)
		r = sources_read(&sources, &page, x->o->source_root);
	return r < 0 ? r : flamegraph_write(&page, &sources, x->out);
}

static const char *const suffixes[] = { ".html", ".htm", NULL };

const struct exporter exporter_html = {
	.name = "html",
	.suffixes = suffixes,
	.help = "one page with flame graph, table, timeline, for any browser",
	.needs = PAGE_AXES | EXPORT_NEEDS_GIL | EXPORT_FOLDS_IMPORTS,
	.finish = write_html,
};
