/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "diff/diff.h"
#include "export/diff_export.h"
#include "export/diff_words.h"
#include "export/page/flamegraph.h"
#include "export/page/page.h"
#include "export/page/sources.h"

_Static_assert((int)DIFF_BASE == CUBE_BASE && (int)DIFF_CURRENT == CUBE_CURRENT, "sides are one");

/* --- the tree --------------------------------------------------------------------------------- */

static uint32_t def_line(const struct profile *p, uint32_t frame)
{
	return frametab_get(p->frames, frame)->first_line;
}

/* Functions of the comparison, then the former names of those that were renamed. */
static int add_functions(struct page *page, const struct diff *d)
{
	struct page_function root = { .kind = FRAME_MARKER };
	int r = vec_push(&page->functions, root);

	for (size_t i = 0; i < d->function_count && !r; i++) {
		const struct diff_function *f = &d->functions[i];
		struct page_function made = { .name = f->name, .file = f->file, .kind = f->kind };

		made.line = def_line(page->profile, f->frame);
		r = vec_push(&page->functions, made);
	}
	for (size_t i = 0; i < d->function_count && !r; i++) {
		const struct diff_function *f = &d->functions[i];
		struct page_function former = { .name = f->renamed_from,
						.file = f->renamed_from_file,
						.kind = f->kind };

		if (!f->renamed_from)
			continue;
		page->functions.items[i + 1].renamed_from = (uint32_t)page->functions.len;
		r = vec_push(&page->functions, former);
	}
	return r;
}

static int add_nodes(struct page *page, const struct diff *d)
{
	if (vec_reserve(&page->nodes, d->node_count) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < d->node_count; i++) {
		const struct diff_node *n = &d->nodes[i];

		page->nodes.items[i] = (struct page_node){
			.self = { [CUBE_BASE] = n->base_self, [CUBE_CURRENT] = n->self },
			.parent = n->parent,
			.function = i ? n->function + 1 : 0,
			.class = n->class,
			.self_class = n->self_class,
			.match = n->match,
		};
	}
	page->nodes.len = d->node_count;
	return 0;
}

/* The blocks are those that the comparison was made with. */
static uint32_t blocks_in_use(const struct cube *c)
{
	uint32_t blocks = 1;

	for (size_t i = 0; i < c->runs.len; i++)
		if (c->runs.items[i].block_count > blocks)
			blocks = c->runs.items[i].block_count;
	return blocks;
}

int page_of_diff(struct page *page, const struct diff *d)
{
	const uint32_t *const node_of[CUBE_SIDES] = { d->node_of[DIFF_BASE],
						      d->node_of[DIFF_CURRENT] };
	int r;

	*page = (struct page){
		.profile = d->input->profile,
		.cube = &d->input->cube,
		.blocks = blocks_in_use(&d->input->cube),
		.stack_count = d->stack_count,
		.diff = d,
	};
	if ((r = add_functions(page, d)) < 0 || (r = add_nodes(page, d)) < 0 ||
	    (r = page_find_tags(page)) < 0)
		return r;
	return page_complete(page, node_of);
}

/* --- the exporter ----------------------------------------------------------------------------- */

static int add_texts(struct texts *to, const struct texts *more)
{
	int r = 0;

	for (size_t i = 0; more && i < more->len && !r; i++)
		r = texts_addf(to, "%s", more->items[i]);
	return r;
}

static int add_environment(struct texts *to, const struct differences *environment)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	int r = 0;

	for (size_t i = 0; i < environment->len && !r; i++) {
		strbuf_truncate(&text, 0);
		r = diff_put_difference(&text, &environment->items[i]);
		if (!r)
			r = texts_addf(to, "%s", strbuf_str(&text));
	}
	return r;
}

static int write_html(const struct diff_report *report, FILE *out)
{
	_cleanup_(texts_release) struct texts notes = { 0 };
	_cleanup_(sources_release) struct sources sources = { 0 };
	_cleanup_(page_release) struct page page = { 0 };
	int r = page_of_diff(&page, report->diff);

	if (r < 0 || (r = add_environment(&notes, report->environment)) < 0 ||
	    (r = add_texts(&notes, report->losses)) < 0 ||
	    (r = add_texts(&notes, report->notes)) < 0)
		return r;
	page.notes = &notes;
	for (int s = 0; s < CUBE_SIDES; s++)
		page.counters[s] = report->sides[s];
	r = sources_read(&sources, &page, report->source_root);
	return r < 0 ? r : flamegraph_write(&page, &sources, out);
}

const struct diff_exporter diff_exporter_html = {
	.name = "html",
	.suffix = ".html",
	.help = "one page with differential flame graphs, table, timeline, for any browser",
	.needs_threads = true,
	.write = write_html,
};
