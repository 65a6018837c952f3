/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/flamegraph.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/parallel.h"
#include "base/strbuf.h"
#include "base/varint.h"
#include "diff/diff.h"
#include "export/blob.h"
#include "export/export.h"
#include "export/page_rows.h"
#include "page_assets.h"

#define SCHEMA "pyebpf-page/3"
#define MAGIC SCHEMA "\n"
#define NS_PER_S 1e9

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

/* --- facts ------------------------------------------------------------------------------------ */

static void put_text(struct json *j, const char *key, const char *text)
{
	if (!text || !*text)
		return;
	json_key(j, key);
	json_string(j, text);
}

static void put_interned(struct json *j, const char *key, const struct profile *p, uint32_t string)
{
	if (!string)
		return;
	json_key(j, key);
	json_string_len(j, strtab_get(p->strings, string), strtab_len(p->strings, string));
}

static void put_number(struct json *j, const char *key, uint64_t v)
{
	if (!v)
		return;
	json_key(j, key);
	json_u64(j, v);
}

static void put_run(struct json *j, const struct page *page, const struct cube_run *run)
{
	const struct recording *m = &page->profile->recordings.items[run->recording];

	json_object(j);
	json_key(j, "side");
	json_u64(j, run->side);
	put_text(j, "file", run->file);
	json_key(j, "blocks");
	json_u64(j, run->block_count);
	put_number(j, "interval_ns", m->interval_ns);
	if (run->span_ns) {
		json_key(j, "block_ns");
		json_double(j, cube_block_ns(page->cube, run));
	}
	if (run->is_dealt) {
		json_key(j, "dealt");
		json_bool(j, true);
	}
	put_number(j, "duration_ns", m->duration_ns);
	if (m->start_realtime_ns) {
		json_key(j, "start");
		json_double(j, (double)m->start_realtime_ns / NS_PER_S);
	}
	put_number(j, "rate_hz", m->rate_hz);
	put_number(j, "ticks", run->value);
	put_number(j, "lost", run->lost);
	put_text(j, "host", m->host);
	put_text(j, "kernel", m->kernel);
	put_text(j, "command", m->command);
	put_text(j, "target", m->target);
	put_text(j, "mode", m->mode);
	put_text(j, "event", m->event);
	put_text(j, "version", m->version);
	put_text(j, "source", m->source);
	if (m->work > 0) {
		json_key(j, "work");
		json_double(j, m->work);
	}
	json_end(j);
}

static void put_process(struct json *j, const struct profile *p, const struct process *process)
{
	_cleanup_(strbuf_releasep) struct strbuf place = STRBUF_INIT;

	process_put_place(p, process, &place);
	json_object(j);
	put_number(j, "pid", process->pid);
	json_key(j, "name");
	json_string_len(j, strtab_get(p->strings, process->name),
			strtab_len(p->strings, process->name));
	put_interned(j, "command_line", p, process->command_line);
	put_interned(j, "python", p, process->python_version);
	put_interned(j, "implementation", p, process->implementation);
	put_interned(j, "executable", p, process->executable);
	if (place.len)
		put_text(j, "pod", strbuf_str(&place));
	json_end(j);
}

static void put_threads(struct json *j, const struct profile *p)
{
	json_key(j, "threads");
	json_array(j);
	for (size_t i = 0; i < p->threads.len; i++) {
		const struct thread *t = &p->threads.items[i];

		if (t->same != i)
			continue;
		json_object(j);
		json_key(j, "process");
		json_u64(j, p->processes.items[t->process].number);
		json_key(j, "tid");
		json_u64(j, t->tid);
		json_key(j, "name");
		json_string_len(j, strtab_get(p->strings, t->name),
				strtab_len(p->strings, t->name));
		json_end(j);
	}
	json_end(j);
}

static const struct cube_run *first_run(const struct page *page, enum cube_side side)
{
	for (size_t i = 0; i < page->cube->runs.len; i++)
		if (page->cube->runs.items[i].side == side)
			return &page->cube->runs.items[i];
	return NULL;
}

/*
 * What the page is of: the two files of a comparison; else the program if there was but one, else
 * what was asked for, else the file.
 */
static void put_title(struct json *j, const struct page *page)
{
	const struct cube_run *base = first_run(page, CUBE_BASE);
	const struct cube_run *run = first_run(page, CUBE_CURRENT);
	_cleanup_(strbuf_releasep) struct strbuf title = STRBUF_INIT;
	const struct profile *p = page->profile;
	const char *target = run ? p->recordings.items[run->recording].target : NULL;

	if (page->diff)
		strbuf_appendf(&title, "%s \xe2\x86\x92 %s", base ? base->file : "",
			       run ? run->file : "");
	else if (p->processes.len == 1 && p->processes.items[0].command_line)
		strbuf_puts(&title, strtab_get(p->strings, p->processes.items[0].command_line));
	else if (run)
		strbuf_puts(&title, target ? target : run->file);
	json_key(j, "title");
	json_string(j, strbuf_str(&title));
}

static void put_ratio(struct json *j, const char *key, double v)
{
	json_key(j, key);
	json_double(j, v);
}

/* In the order in which noise.js takes them. */
static void put_noise(struct json *j, const char *key, const struct noise *n)
{
	const double numbers[] = { n->phi,     n->tau2,       n->of_phi,     n->of_both,
				   n->of_tau2, n->phi_varies, n->tau_varies, n->alike };

	json_key(j, key);
	json_array(j);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		json_double(j, numbers[i]);
	json_end(j);
}

static void put_diff(struct json *j, const struct diff *d)
{
	json_key(j, "diff");
	json_object(j);
	put_text(j, "normalize", diff_normalize_names[d->normalize]);
	put_ratio(j, "centre", d->centre);
	put_ratio(j, "centre_error", d->centre_error);
	put_text(j, "dispersion", diff_dispersion_names[d->dispersion]);
	put_noise(j, "node_noise", &d->node_noise);
	put_noise(j, "function_noise", &d->function_noise);
	json_key(j, "marks");
	json_array(j);
	for (size_t i = 0; i < sizeof(d->marks) / sizeof(d->marks[0]); i++)
		json_double(j, round(d->marks[i] * 1e6) / 1e6); /* 1.1, not the float next to it */
	json_end(j);
	put_number(j, "elided_count", d->elided_count);
	json_key(j, "total");
	json_object(j);
	put_ratio(j, "baseline", d->total.baseline);
	put_ratio(j, "value", d->total.value);
	put_ratio(j, "ratio", d->total.measure.ratio);
	put_ratio(j, "low", d->total.measure.low);
	put_ratio(j, "high", d->total.measure.high);
	put_ratio(j, "q", d->total.measure.q);
	put_text(j, "class", diff_class_names[d->total.class]);
	json_end(j);
	json_end(j);
}

static void put_notes(struct json *j, const struct texts *notes)
{
	json_key(j, "notes");
	json_array(j);
	for (size_t i = 0; i < notes->len; i++)
		json_string(j, notes->items[i]);
	json_end(j);
}

/* Only where there are some. */
static void put_opcodes(struct json *j, const struct profile *p, const struct page_strings *opcodes)
{
	if (opcodes->used.len == 1)
		return;
	json_key(j, "opcodes");
	json_array(j);
	for (size_t i = 0; i < opcodes->used.len; i++)
		json_string(j, strtab_get(p->strings, opcodes->used.items[i]));
	json_end(j);
}

/* Of a comparison, in which profile has the sums of both sides, those of base, then of current. */
static int put_counters(struct json *j, const struct page *page)
{
	const struct profile *const *side = page->counters;
	_cleanup_(recording_release) struct recording sum = { 0 };
	int r = profile_sum_counters(page->profile, &sum);

	for (size_t i = 0; i < sum.counters.len && !r; i++) {
		const char *name = sum.counters.items[i].name;

		json_array(j);
		json_string(j, name);
		if (side[CUBE_BASE] && side[CUBE_CURRENT]) {
			json_u64(j, profile_counter(side[CUBE_BASE], name));
			json_u64(j, profile_counter(side[CUBE_CURRENT], name));
		} else {
			json_u64(j, sum.counters.items[i].value);
		}
		json_end(j);
	}
	return r;
}

static void put_facts(struct json *j, const struct page *page, const struct page_strings *opcodes)
{
	const struct profile *p = page->profile;

	json_object(j);
	json_key(j, "schema");
	json_string(j, SCHEMA);
	json_key(j, "kind");
	json_string(j, page->diff ? "diff" : "profile");
	put_title(j, page);
	json_key(j, "blocks");
	json_u64(j, page->blocks);
	put_ratio(j, "scale", page->diff ? page->diff->scale : 1);
	json_key(j, "runs");
	json_array(j);
	for (size_t i = 0; i < page->cube->runs.len; i++)
		put_run(j, page, &page->cube->runs.items[i]);
	json_end(j);
	json_key(j, "processes");
	json_array(j);
	for (size_t i = 0; i < p->processes.len; i++)
		if (p->processes.items[i].same == i)
			put_process(j, p, &p->processes.items[i]);
	json_end(j);
	put_threads(j, p);
	json_key(j, "counters");
	json_array(j);
	put_counters(j, page);
	json_end(j);
	put_opcodes(j, p, opcodes);
	if (page->diff)
		put_diff(j, page->diff);
	if (page->notes)
		put_notes(j, page->notes);
	json_end(j);
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
	put_facts(&j, page, opcodes);
	r = json_finish(&j);
	if (fclose(f) || r < 0)
		return -ENOMEM;
	blob_number(b, len);
	blob_bytes(b, text, len);
	return 0;
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
	if (first_run(page, CUBE_BASE))
		WRITE_COLUMN(b, &page->nodes, n, n->self[CUBE_BASE]);
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

	assert((c->axes & PAGE_AXES) == PAGE_AXES);
	if ((r = calltree_new(x->p, c, KIND_TICKS, CALLTREE_BY_FUNCTION, &tree)) < 0 ||
	    (r = page_of_tree(&page, x->p, c, tree)) < 0)
		return r;
	page.notes = x->o->notes;
	calltree_free(take_ptr(tree));
	r = sources_read(&sources, &page);
	return r < 0 ? r : flamegraph_write(&page, &sources, x->out);
}

static const char *const suffixes[] = { ".html", ".htm", NULL };

const struct exporter exporter_html = {
	.name = "html",
	.suffixes = suffixes,
	.help = "one page with flame graph, table, timeline, for any browser",
	.needs = PAGE_AXES,
	.finish = write_html,
};
