/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/page/facts.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/texts.h"
#include "diff/counts.h"
#include "diff/diff.h"
#include "export/json_parts.h"
#include "profile/gil.h"
#include "profile/idle.h"
#include "profile/kinds.h"

#define NS_PER_S 1e9

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

/* A run's own value is of all kinds, whatever their units. */
static uint64_t run_ticks(const struct page *page, const struct cube_run *run)
{
	uint64_t ticks = 0, factor[KINDS_MAX + 1] = { 0 };

	if (!page_has_kinds(page))
		return run->value;
	for (uint16_t kind = 0; kind <= page->profile->kinds.len; kind++)
		factor[kind] = page_factor(page, kind);
	for (uint32_t b = 0; b < run->block_count; b++)
		for (size_t i = 0; i < run->blocks[b].cells.len; i++) {
			const struct cube_cell *cell = &run->blocks[b].cells.items[i];

			ticks += cell->value * factor[page->cube->tags.items[cell->tag].kind];
		}
	return ticks;
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
	put_number(j, "ticks", run_ticks(page, run));
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
	if (process->ns_pid != process->pid)
		put_number(j, "own_pid", process->ns_pid);
	json_key(j, "name");
	json_string_len(j, strtab_get(p->strings, process->name),
			strtab_len(p->strings, process->name));
	put_interned(j, "command_line", p, process->command_line);
	put_interned(j, "python", p, process->python_version);
	put_interned(j, "implementation", p, process->implementation);
	put_interned(j, "executable", p, process->executable);
	if (place.len)
		put_text(j, "pod", strbuf_str(&place));
	put_interned(j, "container", p, process->container);
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

/*
 * What the page is of: the two files of a comparison; else the program if there was but one, else
 * what was asked for, else the file.
 */
static void put_title(struct json *j, const struct page *page)
{
	const struct cube_run *base = page_first_run(page, CUBE_BASE);
	const struct cube_run *run = page_first_run(page, CUBE_CURRENT);
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

/* As put_kinds() lists them. */
static uint32_t kind_index(const struct page *page, uint16_t kind)
{
	uint32_t index = 0;

	for (uint16_t before = 0; before < kind; before++)
		index += page->has_kind[before];
	return index;
}

/* Those of rows, where they are more than threads. */
static void put_tags(struct json *j, const struct page *page)
{
	if (!page->tags.len)
		return;
	json_key(j, "tags");
	json_array(j);
	for (size_t i = 0; i < page->tags.len; i++) {
		const struct cube_tag *tag = &page->tags.items[i];

		json_array(j);
		json_u64(j, page->profile->threads.items[tag->thread].number);
		json_u64(j, tag->labels);
		json_u64(j, kind_index(page, tag->kind));
		json_end(j);
	}
	json_end(j);
}

/* Sets of labels as the profile has them. */
static void put_labels(struct json *j, const struct page *page)
{
	const struct profile *p = page->profile;
	const struct label_entry *entries = labeltab_entries(p->labels);
	uint32_t count = labeltab_count(p->labels);

	if (!page->tags.len || count == 1)
		return;
	json_key(j, "labels");
	json_array(j);
	for (uint32_t i = 0; i < count; i++) {
		json_array(j);
		json_u64(j, entries[i].parent);
		json_string(j, i ? strtab_get(p->strings, entries[i].name) : "");
		json_string(j, i ? strtab_get(p->strings, entries[i].value) : "");
		json_end(j);
	}
	json_end(j);
}

static void put_kind(struct json *j, const char *name, struct value_unit of)
{
	json_object(j);
	put_text(j, "name", name);
	put_text(j, "unit", json_units[of.unit]);
	put_number(j, "period", of.period);
	json_end(j);
}

/* Those of rows, ticks first if there are any; of a page of one kind that one, where it is said. */
static void put_kinds(struct json *j, const struct page *page)
{
	const struct profile *p = page->profile;
	const struct recording *m = profile_recording(p);
	bool has_several = page_has_kinds(page);

	if (!has_several && !(p->kinds.len && m->mode))
		return;
	json_key(j, "kinds");
	json_array(j);
	if (!has_several)
		put_kind(j, m->mode, recording_value_unit(m));
	else if (page->has_kind[KIND_TICKS])
		put_kind(j, KINDS_CPU, (struct value_unit){ m->interval_ns, UNIT_NS });
	for (size_t i = 0; has_several && i < p->kinds.len; i++) {
		const struct sample_kind *kind = &p->kinds.items[i];

		if (page->has_kind[i + 1])
			put_kind(j, strtab_get(p->strings, kind->name),
				 (struct value_unit){ kind->period, kind->unit });
	}
	json_end(j);
	if (has_several)
		put_text(j, "shown",
			 page->kinds && page->kinds->name ? page->kinds->name : KINDS_CPU);
}

/* What nodes' rules of it are called. */
static void put_idle(struct json *j, const struct page *page)
{
	if (!page->idle)
		return;
	json_key(j, "idle");
	json_array(j);
	for (const struct idle_rule *rule = idle_rules; rule->what; rule++)
		json_string(j, rule->what);
	json_end(j);
}

#define GIL_ROWS_MAX 500 /* the longest; the rest as one */

static void put_function(struct json *j, const struct page *page, uint32_t function)
{
	const struct strtab *t = page->profile->strings;
	const struct gil_function *f = NULL;

	if (function != GIL_NOBODY)
		f = &page->gil->functions.items[function];
	json_string_len(j, f ? strtab_get(t, f->name) : "", f ? strtab_len(t, f->name) : 0);
	json_string_len(j, f ? strtab_get(t, f->file) : "", f ? strtab_len(t, f->file) : 0);
}

static void put_gil_row(struct json *j, const struct page *page, const struct gil_row *row)
{
	json_array(j);
	put_function(j, page, row->waiter);
	put_function(j, page, row->holder);
	json_double(j, row->ns / NS_PER_S);
	json_double(j, row->episodes);
	json_end(j);
}

/* Who waited for the GIL, and who held it meanwhile. */
static void put_gil(struct json *j, const struct page *page)
{
	struct gil_row rest = { .waiter = GIL_NOBODY, .holder = GIL_NOBODY };
	size_t count = page->gil ? page->gil->rows.len : 0;

	if (!count)
		return;
	json_key(j, "gil");
	json_array(j);
	for (size_t i = 0; i < count; i++) {
		const struct gil_row *row = &page->gil->rows.items[i];

		if (i < GIL_ROWS_MAX) {
			put_gil_row(j, page, row);
			continue;
		}
		rest.ns += row->ns;
		rest.episodes += row->episodes;
	}
	if (count > GIL_ROWS_MAX)
		put_gil_row(j, page, &rest);
	json_end(j);
}

static void put_ratio(struct json *j, const char *key, double v)
{
	json_key(j, key);
	json_double(j, v);
}

/*
 * In the order in which noise.js takes them. It counts values as they are, and has one law for all:
 * that of things whose samples are as the whole's (diff_unit()).
 */
static void put_noise(struct json *j, const char *key, const struct diff *d, const struct noise *n)
{
	double unit = diff_unit(d, COUNTED_NODE, 0);
	const double numbers[] = { n->phi * unit,     n->tau2,    n->of_phi / unit / unit,
				   n->of_both / unit, n->of_tau2, n->phi_varies,
				   n->tau_varies,     n->alike };

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
	if (d->dispersion == DIFF_BY_PRESUMPTION)
		put_ratio(j, "presumed", diff_variance_of_runs(d));
	put_noise(j, "node_noise", d, &d->node_noise);
	put_noise(j, "function_noise", d, &d->function_noise);
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
static void put_opcodes(struct json *j, const struct profile *p, const struct page_names *opcodes)
{
	if (opcodes->len == 1)
		return;
	json_key(j, "opcodes");
	json_array(j);
	for (size_t i = 0; i < opcodes->len; i++)
		json_string(j, strtab_get(p->strings, opcodes->items[i]));
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

void page_put_facts(struct json *j, const struct page *page, const struct page_names *opcodes)
{
	const struct profile *p = page->profile;

	json_object(j);
	json_key(j, "schema");
	json_string(j, PAGE_SCHEMA);
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
	put_tags(j, page);
	put_labels(j, page);
	put_kinds(j, page);
	put_idle(j, page);
	put_gil(j, page);
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
