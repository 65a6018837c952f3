/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "diff/diff.h"
#include "export/diff_export.h"
#include "export/diff_words.h"
#include "export/flamegraph.h"
#include "export/page.h"
#include "export/sources.h"

_Static_assert((int)DIFF_BASE == SLOT_BASE && (int)DIFF_CURRENT == SLOT_CURRENT, "sides are one");

/* --- the runs --------------------------------------------------------------------------------- */

/* The blocks are those the comparison was made with. */
static int take_runs(struct slots *s, const struct diff_input *in)
{
	int r = 0;

	for (size_t i = 0; i < in->runs.len; i++)
		if (in->runs.items[i]->block_count > s->blocks)
			s->blocks = in->runs.items[i]->block_count;
	if (!s->blocks)
		s->blocks = 1;
	for (size_t i = 0; i < in->runs.len && !r; i++) {
		const struct diff_run *run = in->runs.items[i];
		uint32_t first = (uint32_t)i * s->blocks;

		r = slots_begin_run(s, (enum slot_side)run->side, run->file, SLOTS_NO_TIMES);
		if (!r)
			r = slots_describe_run(s, diff_run_recording(in, run), run->lost, 0);
		if (r < 0)
			break;
		s->runs.items[i].ticks = run->ticks;
		s->runs.items[i].is_dealt = run->is_dealt;
		s->runs.items[i].span_ns = run->block_ns * s->blocks;
		s->runs.items[i].last_ns =
			run->block_count ? run->block_ns * (run->block_count - 1) : 0;
		for (uint32_t b = 0; b < run->block_count && !r; b++)
			r = vec_push(&s->kept, ((struct slot_block){ first + b, &run->blocks[b] }));
	}
	return r;
}

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
			.self = { [SLOT_BASE] = n->base_self, [SLOT_CURRENT] = n->self },
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

int page_of_diff(struct page *page, const struct diff *d, struct slots *slots)
{
	const uint32_t *const node_of[SLOT_SIDES] = { d->node_of[DIFF_BASE],
						      d->node_of[DIFF_CURRENT] };
	int r = take_runs(slots, d->input);

	*page = (struct page){
		.profile = d->input->profile,
		.slots = slots,
		.stack_count = d->stack_count,
		.diff = d,
	};
	if (r < 0 || (r = add_functions(page, d)) < 0 || (r = add_nodes(page, d)) < 0)
		return r;
	return page_make_sites(page, node_of);
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
	_cleanup_(slots_release) struct slots slots = { 0 };
	_cleanup_(page_release) struct page page = { 0 };
	int r = page_of_diff(&page, report->diff, &slots);

	if (r < 0 || (r = add_environment(&notes, report->environment)) < 0 ||
	    (r = add_texts(&notes, report->losses)) < 0 ||
	    (r = add_texts(&notes, report->notes)) < 0)
		return r;
	page.notes = &notes;
	for (int s = 0; s < SLOT_SIDES; s++)
		page.counters[s] = report->sides[s];
	r = sources_read(&sources, &page);
	return r < 0 ? r : flamegraph_write(&page, &sources, out);
}

const struct diff_exporter diff_exporter_html = {
	.name = "html",
	.suffix = ".html",
	.help = "one page with differential flame graphs, table, timeline, for any browser",
	.needs_threads = true,
	.write = write_html,
};
