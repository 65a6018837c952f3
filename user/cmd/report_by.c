/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/report_by.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/breakdown.h"
#include "cmd/figures.h"
#include "cmd/ranking.h"
#include "profile/calltree.h"

#define NAME_COLUMN 21 /* of the table */
#define VALUE_WORD "label:"

static const char *const words[] = {
	[BY_FUNCTION] = "function", [BY_THREAD] = "thread", [BY_PROCESS] = "process",
	[BY_LABEL] = "label",       [BY_MODULE] = "module", [BY_FILE] = "file",
};

enum report_by report_by_read(const char **word, struct select_query *q)
{
	if (!strcmp(*word, PROFILE_INTERPRETER))
		*word = VALUE_WORD PROFILE_INTERPRETER;
	if (!strncmp(*word, VALUE_WORD, strlen(VALUE_WORD)))
		return BY_VALUE;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!words[i] || strcmp(words[i], *word) != 0)
			continue;
		if (i == BY_MODULE || i == BY_FILE)
			q->merge = i == BY_MODULE ? SELECT_BY_MODULE : SELECT_BY_FILE;
		return (enum report_by)i;
	}
	q->patterns[SELECT_GROUP] = (struct select_patterns){ word, 1 };
	return BY_GROUP;
}

unsigned int report_by_axes(enum report_by by)
{
	return by == BY_LABEL || by == BY_VALUE ? CUBE_LABELS : 0;
}

/* --- rows ------------------------------------------------------------------------------------- */

struct row {
	uint32_t id; /* of a thread, a process, a set of labels that is one label, a frame */
	uint64_t value;
};

struct rows {
	struct row *items; /* a VEC */
	size_t len;
	size_t cap;
};

static void rows_release(struct rows *rows)
{
	vec_release(rows);
}

struct values {
	uint64_t *items; /* a VEC, by id */
	size_t len;
	size_t cap;
};

static void values_release(struct values *values)
{
	vec_release(values);
}

/* values: by id. */
static int take_values(struct rows *rows, const uint64_t *values, size_t count)
{
	int r = 0;

	for (size_t i = 0; i < count && !r; i++)
		if (values[i])
			r = vec_push(rows, ((struct row){ (uint32_t)i, values[i] }));
	return r;
}

static int find_threads(const struct load *loaded, bool of_processes, struct rows *rows)
{
	const struct profile *p = loaded->profile;
	size_t count = of_processes ? p->processes.len : p->threads.len;
	_cleanup_(freep) struct cube_sum *sums = calloc(p->threads.len + 1, sizeof(*sums));
	_cleanup_(freep) uint64_t *values = calloc(count + 1, sizeof(*values));

	if (!sums || !values)
		return -ENOMEM;
	cube_sum_threads(&loaded->cube, p, KIND_TICKS, sums);
	for (size_t i = 0; i < p->threads.len; i++) {
		uint32_t process = p->threads.items[i].process;

		values[of_processes ? p->processes.items[process].same : i] += sums[i].value;
	}
	return take_values(rows, values, count);
}

static int add_value(uint32_t id, uint64_t value, struct values *values)
{
	int r = 0;

	while (!r && values->len <= id)
		r = vec_push(values, 0);
	if (!r)
		values->items[id] += value;
	return r;
}

/* By the set that is one label alone. */
static int add_label(const struct profile *p, const struct label_entry *label, uint64_t value,
		     struct values *values)
{
	uint32_t one;
	int r = labeltab_add(p->labels, 0, label->name, label->value, &one);

	return r ? r : add_value(one, value, values);
}

static bool is_named(const struct profile *p, const struct label_entry *label, const char *name)
{
	return !name || !strcmp(strtab_get(p->strings, label->name), name);
}

/* Of all names, or (name) of that one; then set 0 is for the samples that have none. */
static int find_labels(const struct load *loaded, const char *name, struct rows *rows)
{
	const struct profile *p = loaded->profile;
	_cleanup_(values_release) struct values values = VEC_INIT;
	int r = 0;

	for (size_t i = 0; i < loaded->cube.all.cells.len && !r; i++) {
		const struct cube_cell *cell = &loaded->cube.all.cells.items[i];
		uint32_t set = loaded->cube.tags.items[cell->tag].labels;
		bool has_any = false;

		while (set && !r) {
			struct label_entry label = labeltab_entries(p->labels)[set];

			if (is_named(p, &label, name)) {
				r = add_label(p, &label, cell->value, &values);
				has_any = true;
			}
			set = label.parent;
		}
		if (!r && name && !has_any)
			r = add_value(0, cell->value, &values);
	}
	return r ? r : take_values(rows, values.items, values.len);
}

/* Roots of the tree. */
static int find_groups(const struct load *loaded, struct rows *rows)
{
	_cleanup_(calltree_freep) struct calltree *tree = NULL;
	int r = calltree_new(loaded->profile, &loaded->cube, KIND_TICKS, CALLTREE_BY_FUNCTION,
			     &tree);

	for (uint32_t i = 1; !r && i < tree->node_count; i = tree->nodes[i].end)
		r = vec_push(rows, ((struct row){ tree->nodes[i].frame, tree->nodes[i].total }));
	return r;
}

static int find_rows(const struct load *loaded, enum report_by by, const char *word,
		     struct rows *rows)
{
	switch (by) {
	case BY_LABEL:
		return find_labels(loaded, NULL, rows);
	case BY_VALUE:
		return find_labels(loaded, word + strlen(VALUE_WORD), rows);
	case BY_GROUP:
		return find_groups(loaded, rows);
	default:
		return find_threads(loaded, by == BY_PROCESS, rows);
	}
}

static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->value != y->value)
		return x->value > y->value ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* --- names ------------------------------------------------------------------------------------ */

static void put_string(struct line *l, enum style style, const struct profile *p, uint32_t id)
{
	line_put_foreign(l, style, strtab_get(p->strings, id), strtab_len(p->strings, id));
}

static void put_process(struct line *l, enum style style, const struct profile *p,
			const struct process *process)
{
	put_string(l, style, p, process->name);
	line_putf(l, style, " (%" PRIu32, process->pid);
	if (process->ns_pid && process->ns_pid != process->pid)
		line_putf(l, style, ", %" PRIu32 " in its namespace", process->ns_pid);
	line_put(l, style, ")");
	if (!process_has_place(process))
		return;
	line_put(l, STYLE_DIM, " in ");
	put_place(l, STYLE_DIM, p, process);
}

static void put_thread(struct line *l, const struct profile *p, const struct thread *thread)
{
	put_string(l, STYLE_PLAIN, p, thread->name);
	line_putf(l, STYLE_PLAIN, " (%" PRIu32 ")", thread->tid);
	line_put(l, STYLE_DIM, " of ");
	put_process(l, STYLE_DIM, p, &p->processes.items[thread->process]);
}

static void put_name(struct line *l, const struct profile *p, enum report_by by, uint32_t id)
{
	const struct label_entry *label;

	switch (by) {
	case BY_PROCESS:
		put_process(l, STYLE_PLAIN, p, &p->processes.items[id]);
		break;
	case BY_LABEL:
		label = &labeltab_entries(p->labels)[id];
		put_string(l, STYLE_DIM, p, label->name);
		line_put(l, STYLE_DIM, "=");
		put_string(l, STYLE_PLAIN, p, label->value);
		break;
	case BY_VALUE:
		if (id)
			put_string(l, STYLE_PLAIN, p, labeltab_entries(p->labels)[id].value);
		else
			line_put(l, STYLE_DIM, "(none)");
		break;
	case BY_GROUP:
		line_put_name(l, STYLE_PLAIN, p, id);
		line_put(l, STYLE_PLAIN, "  ");
		line_put_place(l, STYLE_DIM, p, id, false);
		break;
	default:
		put_thread(l, p, &p->threads.items[id]);
	}
}

/* --- the table -------------------------------------------------------------------------------- */

static void put_share(struct line *l, const struct load *loaded, uint64_t ticks)
{
	put_percent(l, ticks, loaded->ticks);
	line_put(l, STYLE_PLAIN, "  ");
	put_value(l, ticks, recording_value_unit(profile_recording(loaded->profile)));
	line_put(l, STYLE_PLAIN, "  ");
}

static void put_title(struct line *l, enum report_by by, const char *word)
{
	const char *name = by == BY_VALUE   ? word + strlen(VALUE_WORD)
			   : by == BY_GROUP ? "function"
					    : words[by];

	line_put_foreign(l, STYLE_BOLD, name, strlen(name));
}

/* Under a thread what it did with its life; whole: of the kinds that tell, not of the row. */
static int put_breakdown(struct line *l, const struct load *loaded, const uint64_t *ns)
{
	uint64_t whole = 0;

	for (size_t i = 0; i < loaded->waits.rows.len; i++)
		whole += ns[i];
	if (!whole)
		return 0;
	line_pad(l, NAME_COLUMN);
	breakdown_put(l, loaded, ns, whole);
	return line_end(l);
}

int report_by_put(const struct load *loaded, enum report_by by, const char *word, uint32_t limit,
		  const struct terminal *t)
{
	_cleanup_(line_release) struct line l = LINE_INIT(t);
	_cleanup_(rows_release) struct rows rows = VEC_INIT;
	int r = find_rows(loaded, by, word, &rows);
	_cleanup_(freep) uint64_t *of_threads = NULL;
	uint64_t rest = 0;
	size_t shown;

	if (!r && by == BY_THREAD && breakdown_is_known(loaded))
		r = breakdown_of_threads(loaded, &of_threads);
	if (r < 0)
		return r;
	if (rows.len)
		qsort(rows.items, rows.len, sizeof(*rows.items), compare_rows);
	shown = limit && limit < rows.len ? limit : rows.len;
	line_putf(&l, STYLE_BOLD, " share  %11s  ",
		  value_word(recording_value_unit(profile_recording(loaded->profile))));
	put_title(&l, by, word);
	r = line_end(&l);
	for (size_t i = 0; i < shown && !r; i++) {
		put_share(&l, loaded, rows.items[i].value);
		put_name(&l, loaded->profile, by, rows.items[i].id);
		r = line_end(&l);
		if (!r && of_threads)
			r = put_breakdown(&l, loaded,
					  &of_threads[rows.items[i].id * loaded->waits.rows.len]);
	}
	if (!r && !rows.len) {
		line_put(&l, STYLE_DIM, "no sample has this label");
		r = line_end(&l);
	}
	for (size_t i = shown; i < rows.len; i++)
		rest += rows.items[i].value;
	if (!r && rest) {
		put_share(&l, loaded, rest);
		line_putf(&l, STYLE_DIM, "%s more", units_count(rows.len - shown).s);
		r = line_end(&l);
	}
	return r ? r : line_end(&l);
}
