/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/decode.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/varint.h"
#include "store/rows.h"

#define PREFETCH 16 /* samples ahead: of many stacks, few are in the cache */

/* A section's bytes, consumed from the front. */
struct cursor {
	const uint8_t *p;
	const uint8_t *end;
};

int decoder_restart(struct decoder *d, uint64_t interval_ns)
{
	d->strings.len = d->frames.len = d->stacks.len = d->processes.len = d->threads.len = 0;
	d->labels.len = d->kinds.len = 0;
	if (vec_push(&d->strings, 0) < 0 || vec_push(&d->stacks, 0) < 0 ||
	    vec_push(&d->labels, 0) < 0 || vec_push(&d->kinds, KIND_TICKS) < 0)
		return -ENOMEM;
	return model_restart(&d->model, interval_ns);
}

void decoder_release(struct decoder *d)
{
	model_release(&d->model);
	vec_release(&d->strings);
	vec_release(&d->frames);
	vec_release(&d->stacks);
	vec_release(&d->processes);
	vec_release(&d->threads);
	vec_release(&d->labels);
	vec_release(&d->kinds);
	vec_release(&d->scratch);
	column_coder_release(&d->coder);
}

static int get(struct cursor *c, uint64_t max, uint64_t *v)
{
	return varint_get_max(&c->p, c->end, max, v);
}

/* Rows are paid before memory is taken for them. 0, or -EFBIG: they cost more than the budget. */
static int pay(struct decoder *d, uint64_t cost)
{
	d->model.cost += cost;
	return d->model.cost > d->budget ? -EFBIG : 0;
}

/* Number of rows, and room for that many numbers in each of `columns` columns. */
static int get_rows(struct decoder *d, struct cursor *c, size_t columns, enum row_cost cost,
		    size_t *rows)
{
	uint64_t count;
	int r = get(c, CHUNK_ROWS_MAX, &count);

	if (r < 0)
		return r;
	if (!count)
		return -EBADMSG;
	r = pay(d, count * cost);
	if (r < 0)
		return r;
	d->scratch.len = 0;
	if (vec_reserve(&d->scratch, columns * count) < 0)
		return -ENOMEM;
	*rows = count;
	return 0;
}

/* The next `count` numbers, appended to the scratch that get_rows() made room in. */
static int get_column(struct decoder *d, struct cursor *c, uint64_t max, size_t count,
		      const uint64_t **values)
{
	uint64_t *into = d->scratch.items + d->scratch.len;
	int r = column_decode(&d->coder, &c->p, c->end, max, into, count);

	if (r < 0)
		return r;
	d->scratch.len += count;
	*values = into;
	return 0;
}

/* get_column() for several columns of equal length, each with its greatest number. */
static int get_columns(struct decoder *d, struct cursor *c, const uint64_t *max, size_t columns,
		       size_t count, const uint64_t **values)
{
	int r = 0;

	for (size_t i = 0; i < columns && !r; i++)
		r = get_column(d, c, max[i], count, &values[i]);
	return r;
}

static int decode_strings(struct decoder *d, struct cursor *c, struct profile *p)
{
	const uint64_t *lengths;
	const uint8_t *text;
	uint64_t sum = 0;
	size_t rows;
	int r;

	r = get_rows(d, c, 1, COST_STRING, &rows);
	if (!r)
		r = get_column(d, c, STRTAB_LEN_MAX, rows, &lengths);
	for (size_t i = 0; i < rows && !r; i++)
		sum += lengths[i];
	if (!r && sum > CHUNK_TEXT_MAX)
		return -EBADMSG;
	if (!r)
		r = pay(d, sum);
	if (!r)
		r = text_decode(&d->coder, &c->p, c->end, sum, &text);
	if (!r)
		r = vec_reserve(&d->strings, rows);
	for (size_t i = 0; i < rows && !r; i++) {
		uint32_t id;

		r = strtab_intern_name(p->strings, (const char *)text, lengths[i], &id);
		text += lengths[i];
		if (!r)
			d->strings.items[d->strings.len++] = id;
	}
	return r;
}

/* *v moves by a zigzag difference and must end up below limit. */
static int move_by(uint32_t *v, uint64_t difference, uint64_t limit)
{
	int64_t now = (int64_t)*v + zigzag_decode(difference);

	if (now < 0 || (uint64_t)now >= limit)
		return -EBADMSG;
	*v = (uint32_t)now;
	return 0;
}

static size_t count_equal(const uint64_t *values, size_t count, uint64_t v)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		n += values[i] == v;
	return n;
}

/* The functions that a frames section brings. */
static int decode_functions(struct decoder *d, struct cursor *c, size_t count)
{
	static const uint64_t max[4] = { UINT64_C(1) << 33, UINT64_C(1) << 33, UINT32_MAX,
					 FRAME_TYPE_COUNT - 1 };
	struct function fn = { 0 };
	const uint64_t *column[4];
	int r;

	r = get_columns(d, c, max, 4, count, column);
	if (!r)
		r = vec_reserve(&d->model.functions, count);
	for (size_t i = 0; i < count && !r; i++) {
		if (move_by(&fn.name, column[0][i], d->strings.len) < 0 ||
		    move_by(&fn.file, column[1][i], d->strings.len) < 0)
			return -EBADMSG;
		fn.first_line = (uint32_t)column[2][i];
		fn.kind = (uint8_t)column[3][i];
		d->model.functions.items[d->model.functions.len++] = fn;
	}
	return r;
}

/* One for each row whose function is native; backwards: the rows' functions, by how many back. */
static int decode_offsets(struct decoder *d, struct cursor *c, const uint64_t *backwards,
			  size_t rows, size_t known, const uint64_t **offsets)
{
	size_t natives = 0;

	for (size_t i = 0; i < rows; i++) {
		if (backwards[i] > known)
			return -EBADMSG;
		natives += d->model.functions.items[known - backwards[i]].kind == FRAME_NATIVE;
		known += backwards[i] == 0;
	}
	return get_column(d, c, UINT64_MAX, natives, offsets);
}

static int decode_frames(struct decoder *d, struct cursor *c, struct profile *p)
{
	static const uint64_t max[3] = { UINT32_MAX, UINT64_C(1) << 33, UINT8_MAX };
	size_t rows, known = d->model.functions.len;
	const uint64_t *column[3], *offsets;
	int r;

	r = get_rows(d, c, 8, COST_FRAME, &rows);
	if (!r)
		r = get_columns(d, c, max, 3, rows, column);
	if (!r)
		r = decode_functions(d, c, count_equal(column[0], rows, 0));
	if (!r)
		r = decode_offsets(d, c, column[0], rows, known, &offsets);
	if (!r)
		r = vec_reserve(&d->frames, rows);
	for (size_t i = 0; i < rows && !r; i++) {
		const struct function *fn;
		uint32_t id;
		struct frame f;

		fn = &d->model.functions.items[known - column[0][i]];
		known += column[0][i] == 0;
		f = (struct frame){
			.name = d->strings.items[fn->name],
			.file = d->strings.items[fn->file],
			.line = fn->first_line,
			.first_line = fn->first_line,
			.kind = fn->kind,
			.flags = (uint8_t)column[2][i],
			.offset = fn->kind == FRAME_NATIVE ? *offsets++ : 0,
		};
		if (move_by(&f.line, column[1][i], UINT64_C(1) << 32) < 0)
			return -EBADMSG;
		r = frametab_intern(p->frames, &f, &id);
		if (!r)
			d->frames.items[d->frames.len++] = id;
	}
	return r ? r : model_cover_frames(&d->model, d->frames.len);
}

/* What is left of the columns of chains and children. */
struct stack_columns {
	const uint64_t *steps, *distances, *lengths, *children, *frames;
	size_t distances_left, frames_left;
};

/* Reads a chain's start: the parent of its first entry. */
static int chain_parent(const struct model *m, struct stack_columns *in, uint32_t *parent)
{
	uint32_t previous = (uint32_t)m->stacks.len - 1;
	uint64_t steps = *in->steps++;

	if (steps) {
		while (steps--)
			previous = m->stacks.items[previous].parent;
		*parent = previous;
		return 0;
	}
	if (!in->distances_left-- || *in->distances > previous)
		return -EBADMSG;
	*parent = previous - (uint32_t)*in->distances++;
	return 0;
}

static int child_frame(struct decoder *d, struct stack_columns *in, uint32_t parent,
		       uint32_t *frame)
{
	struct model *m = &d->model;
	struct recent *list = model_recent(m, parent);
	unsigned int at = (unsigned int)*in->children++;
	uint32_t f;

	if (at < CHILD_RECENT) {
		f = list->frame[at];
	} else if (at == CHILD_NEXT) {
		f = m->next_frame;
	} else {
		if (!in->frames_left--)
			return -EBADMSG;
		f = (uint32_t)*in->frames++;
	}
	if (f >= d->frames.len)
		return -EBADMSG;
	if (f >= m->next_frame)
		m->next_frame = f + 1;
	recent_promote(list, at < CHILD_RECENT ? at : CHILD_RECENT, f);
	*frame = f;
	return 0;
}

/* Also fills ends, which has room for one entry a chain. */
static int decode_stacks(struct decoder *d, struct cursor *c, struct profile *p,
			 struct id_map *ends)
{
	struct model *m = &d->model;
	struct stack_columns in = { 0 };
	uint64_t chains = 0, sum = 0;
	size_t rows;
	int r;

	r = get_rows(d, c, 5, COST_STACK, &rows);
	if (!r)
		r = get(c, rows, &chains);
	if (!r)
		r = get_column(d, c, ANCESTOR_MAX, chains, &in.steps);
	if (r < 0)
		return r;
	in.distances_left = count_equal(in.steps, chains, 0);
	r = get_column(d, c, UINT32_MAX, in.distances_left, &in.distances);
	if (!r)
		r = get_column(d, c, rows, chains, &in.lengths);
	if (!r)
		r = get_column(d, c, CHILD_EXPLICIT, rows, &in.children);
	if (r < 0)
		return r;
	in.frames_left = count_equal(in.children, rows, CHILD_EXPLICIT);
	r = get_column(d, c, UINT32_MAX, in.frames_left, &in.frames);
	if (r < 0)
		return r;
	for (size_t i = 0; i < chains; i++)
		sum += in.lengths[i] + 1;
	if (sum != rows || m->stacks.len + rows > UINT32_MAX)
		return -EBADMSG;
	if (vec_reserve(&m->stacks, rows) < 0 || vec_reserve(&d->stacks, rows) < 0 ||
	    vec_reserve(ends, chains) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < chains && !r; i++) {
		struct stack_entry e;

		r = chain_parent(m, &in, &e.parent);
		for (uint64_t left = in.lengths[i] + 1; left && !r; left--) {
			uint32_t id;

			r = child_frame(d, &in, e.parent, &e.frame);
			if (!r)
				r = stacktab_intern(p->stacks, d->stacks.items[e.parent],
						    d->frames.items[e.frame], &id);
			if (r < 0)
				return r;
			m->stacks.items[m->stacks.len++] = e;
			d->stacks.items[d->stacks.len++] = id;
			e.parent = (uint32_t)m->stacks.len - 1;
		}
		if (!r)
			ends->items[ends->len++] = e.parent;
	}
	return r;
}

static uint64_t max_of(const struct decoder *d, const struct row_field *f)
{
	if (!f)
		return UINT64_MAX;
	switch (f->type) {
	case ROW_U8:
		return UINT8_MAX;
	case ROW_U64:
		return UINT64_MAX;
	case ROW_STRING:
		return d->strings.len - 1;
	case ROW_U32:
		break;
	}
	return UINT32_MAX;
}

static const struct row_field *find_field(const struct row_field *fields, uint64_t id)
{
	for (; fields->id; fields++)
		if (fields->id == id)
			return fields;
	return NULL;
}

/* Columns to the end of the section into `count` rows, which are zero; strings have p's ids then.
 */
static int decode_columns(struct decoder *d, struct cursor *c, const struct row_field *fields,
			  void *rows, size_t row_size, size_t count)
{
	uint64_t id = 0, before;

	while (c->p < c->end) {
		const struct row_field *field;
		const uint64_t *values;
		int r;

		before = id;
		if (get(c, UINT32_MAX, &id) < 0 || id <= before)
			return -EBADMSG;
		field = find_field(fields, id);
		d->scratch.len = 0;
		r = get_column(d, c, max_of(d, field), count, &values);
		if (r < 0)
			return r;
		for (size_t i = 0; field && i < count; i++)
			row_set(field, (char *)rows + i * row_size,
				field->type == ROW_STRING ? d->strings.items[values[i]]
							  : values[i]);
	}
	return 0;
}

/* A section of described rows: to be freed, also where *r is an error. */
static void *decode_rows(struct decoder *d, struct cursor *c, const struct row_field *fields,
			 enum row_cost cost, size_t row_size, size_t *count, int *r)
{
	void *rows;

	*count = 0;
	*r = get_rows(d, c, 1, cost, count);
	if (*r < 0)
		return NULL;
	rows = calloc(*count, row_size);
	*r = rows ? decode_columns(d, c, fields, rows, row_size, *count) : -ENOMEM;
	return rows;
}

static struct title_text text_of(const struct profile *p, uint32_t string)
{
	return (struct title_text){ strtab_get(p->strings, string),
				    strtab_len(p->strings, string) };
}

/* The title that the process gives itself later is that of all its samples. */
static int set_title(const struct decoder *d, struct profile *p, struct process *row)
{
	const struct titled titled = { d->ordinal, row->pid, row->start_ns, text_of(p, row->name),
				       text_of(p, row->command_line) };
	const struct title_text *title = titles_find(d->titles, &titled);
	int r = title ? strtab_intern_name(p->strings, title->bytes, title->len, &row->name) : 0;

	if (title && !r)
		row->command_line = row->name;
	return r;
}

static int decode_processes(struct decoder *d, struct cursor *c, struct profile *p)
{
	size_t count;
	int r;
	_cleanup_(freep) struct process *rows =
		decode_rows(d, c, process_fields, COST_PROCESS, sizeof(*rows), &count, &r);

	if (!r)
		r = vec_reserve(&d->processes, count);
	for (size_t i = 0; i < count && !r; i++) {
		uint32_t index;

		rows[i].recording = d->recording;
		r = set_title(d, p, &rows[i]);
		if (!r)
			r = profile_add_process(p, &rows[i], &index);
		if (!r)
			d->processes.items[d->processes.len++] = index;
	}
	return r;
}

static int decode_threads(struct decoder *d, struct cursor *c, struct profile *p)
{
	size_t count;
	int r;
	_cleanup_(freep) struct thread *rows =
		decode_rows(d, c, thread_fields, COST_THREAD, sizeof(*rows), &count, &r);

	if (!r)
		r = vec_reserve(&d->threads, count);
	for (size_t i = 0; i < count && !r; i++) {
		uint32_t index;

		if (rows[i].process >= d->processes.len)
			return -EBADMSG;
		rows[i].process = d->processes.items[rows[i].process];
		r = profile_add_thread(p, &rows[i], &index);
		if (!r)
			d->threads.items[d->threads.len++] = index;
	}
	return r;
}

static int decode_kinds(struct decoder *d, struct cursor *c, struct profile *p)
{
	size_t count;
	int r;
	_cleanup_(freep) struct sample_kind *rows =
		decode_rows(d, c, kind_fields, COST_KIND, sizeof(*rows), &count, &r);

	for (size_t i = 0; i < count && !r; i++) {
		uint16_t kind;

		if (rows[i].unit > UNIT_COUNT || !rows[i].period)
			return -EBADMSG;
		r = profile_add_kind(p, &rows[i], &kind);
		if (!r)
			r = vec_push(&d->kinds, kind);
	}
	return r == -EOVERFLOW ? err_set(-EBADMSG, "more than %d kinds", KINDS_MAX) : r;
}

static int decode_label_sets(struct decoder *d, struct cursor *c, struct profile *p)
{
	size_t count;
	int r;
	_cleanup_(freep) struct label_entry *rows =
		decode_rows(d, c, label_fields, COST_LABELS, sizeof(*rows), &count, &r);

	if (!r)
		r = vec_reserve(&d->labels, count);
	for (size_t i = 0; i < count && !r; i++) {
		uint32_t id;

		if (rows[i].parent >= d->labels.len)
			return -EBADMSG;
		r = labeltab_add(p->labels, d->labels.items[rows[i].parent], rows[i].name,
				 rows[i].value, &id);
		if (!r)
			d->labels.items[d->labels.len++] = id;
	}
	return r == -E2BIG ? -EBADMSG : r;
}

/* Columns of one samples section. */
struct sample_columns {
	const uint64_t *threads, *sizes;                                /* a row a thread */
	const uint64_t *cpus, *values, *flags, *stacks, *ticks, *units; /* a row a sample */
	const uint64_t *fresh;                                          /* a row a zero in stacks */
	size_t thread_count;
	uint64_t start_ns;
	int64_t next_end;
};

static int get_sample_columns(struct decoder *d, struct cursor *c, size_t rows,
			      struct sample_columns *in)
{
	uint64_t grid, start, count, sum = 0;
	int r;

	r = get(c, GRID_CPU, &grid);
	if (!r)
		r = get(c, INT64_MAX / TIME_UNIT_NS, &start);
	if (!r)
		r = get(c, rows, &count);
	if (!r)
		r = get_column(d, c, UINT32_MAX, count, &in->threads);
	if (!r)
		r = get_column(d, c, rows, count, &in->sizes);
	if (!r)
		r = get_column(d, c, UINT16_MAX, rows, &in->cpus);
	if (!r)
		r = get_column(d, c, UINT64_MAX - 1, rows, &in->values);
	if (!r)
		r = get_column(d, c, UINT16_MAX, rows, &in->flags);
	if (!r)
		r = get_column(d, c, UINT32_MAX, rows, &in->stacks);
	if (r < 0)
		return r;
	r = get_column(d, c, UINT64_MAX, count_equal(in->stacks, rows, 0), &in->fresh);
	if (!r)
		r = get_column(d, c, UINT64_MAX, rows, &in->ticks);
	if (!r)
		r = get_column(d, c, UINT64_MAX, rows, &in->units);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++)
		sum += in->sizes[i] + 1;
	if (sum != rows)
		return -EBADMSG;
	d->grid = grid ? GRID_CPU : GRID_THREAD;
	in->thread_count = count;
	in->start_ns = start * TIME_UNIT_NS;
	return 0;
}

/* The stack of the next sample whose column says 0: it has none of the places yet. */
static int fresh_stack(struct decoder *d, struct sample_columns *in, const struct id_map *ends,
		       uint32_t *stack)
{
	struct model *m = &d->model;
	uint64_t code = *in->fresh++, v = code >> 1;

	if (!(code & 1)) {
		int64_t step = zigzag_decode(v);

		if (step < -in->next_end || step >= (int64_t)ends->len - in->next_end)
			return -EBADMSG;
		in->next_end += step + 1;
		v = ends->items[in->next_end - 1];
	}
	if (v >= m->stacks.len)
		return -EBADMSG;
	*stack = (uint32_t)v;
	return vec_push(&m->sampled, (uint32_t)v);
}

/* Of a sample to come: where its stack mostly still will be found. Any place, if it is a new one.
 */
static const uint32_t *place_ahead(const struct model *m, uint64_t number, bool is_promoted)
{
	uint32_t place = number && number <= m->sampled.len ? (uint32_t)number - 1 : 0;

	return &m->sampled.items[is_promoted ? model_promoted_place(place) : place];
}

static int known_stack(struct decoder *d, uint64_t number, uint32_t *stack)
{
	struct model *m = &d->model;

	if (number > m->sampled.len)
		return -EBADMSG;
	*stack = m->sampled.items[number - 1];
	model_promote_stack(m, (uint32_t)number - 1);
	return 0;
}

static int decode_samples(struct decoder *d, struct cursor *c, struct profile *p,
			  const struct id_map *ends)
{
	struct model *m = &d->model;
	struct sample_columns in = { 0 };
	uint64_t thread = 0, top_cpu = 0, last_ns = d->last_ns, changes = 0;
	size_t rows, at = 0, first = p->samples.len;
	struct sample *out;
	int r;

	d->before_ns = last_ns;
	r = get_rows(d, c, 9, COST_SAMPLE, &rows);
	if (!r)
		r = get_sample_columns(d, c, rows, &in);
	if (r < 0)
		return r;
	for (size_t i = 0; i < rows; i++)
		top_cpu = in.cpus[i] > top_cpu ? in.cpus[i] : top_cpu;
	if (MODEL_COVER_TIMES(&m->thread_phase, d->threads.len) < 0 ||
	    MODEL_COVER_TIMES(&m->thread_last, d->threads.len) < 0 ||
	    MODEL_COVER_TIMES(&m->cpu_phase, top_cpu + 1) < 0 || vec_reserve(&p->samples, rows) < 0)
		return -ENOMEM;
	out = p->samples.items + first;
	for (size_t group = 0; group < in.thread_count; group++) {
		uint32_t before = MODEL_NONE;

		thread += in.threads[group];
		if (thread >= d->threads.len)
			return -EBADMSG;
		for (size_t stop = at + in.sizes[group] + 1; at < stop; at++) {
			uint16_t cpu = (uint16_t)in.cpus[at];
			uint32_t stack;
			struct tick tick =
				model_tick(m, d->grid, (uint32_t)thread, cpu, in.start_ns);

			if (at + 2 * PREFETCH < rows && m->sampled.len) {
				uint64_t next = in.stacks[at + PREFETCH],
					 later = in.stacks[at + 2 * PREFETCH];

				__builtin_prefetch(place_ahead(m, later, false), 1);
				__builtin_prefetch(place_ahead(m, later, true), 1);
				__builtin_prefetch(&d->stacks.items[*place_ahead(m, next, false)]);
			}
			r = in.stacks[at] ? known_stack(d, in.stacks[at], &stack)
					  : fresh_stack(d, &in, ends, &stack);
			if (r < 0)
				return r;
			model_advance(m, tick, (int64_t)((uint64_t)zigzag_decode(in.ticks[at]) + 1),
				      zigzag_decode(in.units[at]));
			if (*tick.last > INT64_MAX)
				return -EBADMSG;
			changes += stack != before;
			before = stack;
			last_ns = *tick.last > last_ns ? *tick.last : last_ns;
			*out++ = (struct sample){
				.time_ns = *tick.last,
				.thread = d->threads.items[thread],
				.stack = d->stacks.items[stack],
				.value = in.values[at] + 1,
				.cpu = cpu,
				.flags = (uint16_t)in.flags[at],
			};
		}
	}
	r = pay(d, changes * COST_CHANGE);
	if (r < 0)
		return r;
	d->last_ns = last_ns;
	d->samples += rows;
	p->samples.len += rows;
	return 0;
}

static int decode_counters(struct decoder *d, struct cursor *c, struct profile *p)
{
	char name[COUNTER_NAME_MAX + 1];
	uint64_t count, len, value;
	int r = get(c, COUNTERS_MAX, &count);

	for (uint64_t i = 0; i < count && !r; i++) {
		r = get(c, COUNTER_NAME_MAX, &len);
		if (r < 0 || len > (size_t)(c->end - c->p))
			return -EBADMSG;
		memcpy(name, c->p, len);
		name[len] = '\0';
		c->p += len;
		r = get(c, UINT64_MAX, &value);
		if (!r)
			r = recording_set_counter(&p->recordings.items[d->recording], name, value);
	}
	return r == -EOVERFLOW ? err_set(-EBADMSG, "more than %d counters", COUNTERS_MAX) : r;
}

static void set_opcode(struct sample *s, uint64_t v)
{
	s->opcode = (uint32_t)v;
}

static void set_rest(struct sample *s, uint64_t v)
{
	s->time_ns += (uint64_t)zigzag_decode(v);
}

static void set_gil(struct sample *s, uint64_t v)
{
	s->gil = (uint16_t)v;
}

static void set_kind(struct sample *s, uint64_t v)
{
	s->kind = (uint16_t)v;
}

static void set_labels(struct sample *s, uint64_t v)
{
	s->labels = (uint32_t)v;
}

static void set_duration(struct sample *s, uint64_t v)
{
	s->duration_ns = v;
}

/*
 * A number for each of the chunk's samples, which are those of p from `first` on. ids: what it is
 * an id of; NULL: it is no id.
 */
static int decode_of_samples(struct decoder *d, struct cursor *c, struct profile *p, size_t first,
			     const struct id_map *ids, void (*set)(struct sample *s, uint64_t v))
{
	size_t count = p->samples.len - first;
	const uint64_t *values;
	int r;

	d->scratch.len = 0;
	if (vec_reserve(&d->scratch, count) < 0)
		return -ENOMEM;
	r = get_column(d, c, ids ? ids->len - 1 : INT64_MAX, count, &values);
	for (size_t i = 0; i < count && !r; i++)
		set(&p->samples.items[first + i], ids ? ids->items[values[i]] : values[i]);
	return r;
}

static int decode_places(struct decoder *d, struct cursor *c, struct profile *p)
{
	uint64_t row = 0;
	size_t count;
	int r;
	_cleanup_(freep) struct place_row *rows =
		decode_rows(d, c, place_fields, COST_PLACE, sizeof(*rows), &count, &r);

	for (size_t i = 0; i < count && !r; i++) {
		const struct process place = {
			.container = rows[i].container,
			.pod_uid = rows[i].pod_uid,
			.pod_name = rows[i].pod_name,
			.pod_namespace = rows[i].pod_namespace,
		};

		row += rows[i].step;
		if (row >= d->processes.len)
			return -EBADMSG;
		process_set_place(&p->processes.items[d->processes.items[row]], &place);
	}
	return r;
}

static int decode_sources(struct decoder *d, struct cursor *c, struct profile *p)
{
	size_t count;
	int r;
	_cleanup_(freep) struct source_version *rows =
		decode_rows(d, c, source_fields, COST_SOURCE, sizeof(*rows), &count, &r);

	for (size_t i = 0; i < count && !r; i++) {
		rows[i].recording = d->recording;
		r = profile_add_source(p, &rows[i]);
	}
	return r;
}

/* What the chunk's times are off by so far. */
static int decode_rests(struct decoder *d, struct cursor *c, struct profile *p, size_t first)
{
	int r = decode_of_samples(d, c, p, first, NULL, set_rest);

	if (first < p->samples.len)
		d->last_ns = d->before_ns;
	for (size_t i = first; i < p->samples.len && !r; i++) {
		uint64_t time_ns = p->samples.items[i].time_ns;

		if (time_ns > INT64_MAX)
			r = -EBADMSG;
		d->last_ns = time_ns > d->last_ns ? time_ns : d->last_ns;
	}
	return r;
}

/* Ticks are few enough for 32 bits; what they are is known once the chunk's kinds are. */
static int check_values(const struct profile *p, size_t first)
{
	for (size_t i = first; i < p->samples.len; i++)
		if (p->samples.items[i].kind == KIND_TICKS &&
		    p->samples.items[i].value > UINT32_MAX)
			return -EBADMSG;
	return 0;
}

/* ends, first_sample: what the chunk's earlier sections brought. */
static int decode_section(struct decoder *d, uint64_t id, struct cursor *c, struct profile *p,
			  struct id_map *ends, size_t first_sample)
{
	int r;

	switch (id) {
	case SECTION_STRINGS:
		r = decode_strings(d, c, p);
		break;
	case SECTION_FRAMES:
		r = decode_frames(d, c, p);
		break;
	case SECTION_STACKS:
		r = decode_stacks(d, c, p, ends);
		break;
	case SECTION_PROCESSES:
		r = decode_processes(d, c, p);
		break;
	case SECTION_THREADS:
		r = decode_threads(d, c, p);
		break;
	case SECTION_SAMPLES:
		r = decode_samples(d, c, p, ends);
		break;
	case SECTION_COUNTERS:
		r = decode_counters(d, c, p);
		break;
	case SECTION_OPCODES:
		r = decode_of_samples(d, c, p, first_sample, &d->strings, set_opcode);
		break;
	case SECTION_PLACES:
		r = decode_places(d, c, p);
		break;
	case SECTION_TIMES:
		r = decode_rests(d, c, p, first_sample);
		break;
	case SECTION_SOURCES:
		r = decode_sources(d, c, p);
		break;
	case SECTION_GILS:
		r = decode_of_samples(d, c, p, first_sample, NULL, set_gil);
		break;
	case SECTION_KINDS:
		r = decode_kinds(d, c, p);
		break;
	case SECTION_LABEL_SETS:
		r = decode_label_sets(d, c, p);
		break;
	case SECTION_SAMPLE_KINDS:
		r = decode_of_samples(d, c, p, first_sample, &d->kinds, set_kind);
		break;
	case SECTION_SAMPLE_LABELS:
		r = decode_of_samples(d, c, p, first_sample, &d->labels, set_labels);
		break;
	case SECTION_DURATIONS:
		r = decode_of_samples(d, c, p, first_sample, NULL, set_duration);
		break;
	default: /* of a later minor version */
		return id & SECTION_CRITICAL ? -EPROTONOSUPPORT : 0;
	}
	return r || c->p == c->end ? r : -EBADMSG;
}

int decode_flush(struct decoder *d, const uint8_t *bytes, size_t len, struct profile *p)
{
	struct cursor c = { bytes, bytes + len };
	struct id_map ends = { 0 };
	size_t samples = p->samples.len;
	uint64_t id = 0, before, size;
	int r = 0;

	while (c.p < c.end && !r) {
		struct cursor section;

		before = id;
		id = *c.p++;
		r = get(&c, (uint64_t)(c.end - c.p), &size);
		if (!r && size > (size_t)(c.end - c.p))
			r = -EBADMSG;
		if (!r && id <= before)
			r = -EBADMSG;
		if (r < 0)
			break;
		section = (struct cursor){ c.p, c.p + size };
		r = decode_section(d, id, &section, p, &ends, samples);
		c.p += size;
	}
	vec_release(&ends);
	if (!r)
		r = check_values(p, samples);
	if (r < 0)
		p->samples.len = samples;
	if (r == -EPROTONOSUPPORT)
		return err_set(r, "written by a newer pyebpf: section %u cannot be left out",
			       (unsigned int)id);
	if (r == -EFBIG)
		return err_set(-EBADMSG, "expands to more memory than a valid recording of this "
					 "size could: refused");
	return r == -EBADMSG ? err_set(r, "malformed section %u", (unsigned int)id) : r;
}

static int decode_field(const struct recording_field *f, struct cursor c, struct recording *meta)
{
	size_t size = (size_t)(c.end - c.p);
	char **text, *copy;
	uint64_t bits;
	double real;

	switch (f->type) {
	case RECORDING_TEXT:
		copy = size ? strndup((const char *)c.p, size) : NULL;
		if (size && !copy)
			return -ENOMEM;
		text = recording_field(meta, f);
		free(*text);
		*text = copy;
		return 0;
	case RECORDING_REAL:
		if (size != sizeof(bits))
			return -EBADMSG;
		bits = get_le64(c.p);
		memcpy(&real, &bits, sizeof(real));
		if (!isfinite(real) || real < 0)
			return -EBADMSG;
		*(double *)recording_field(meta, f) = real;
		return 0;
	case RECORDING_NUMBER:
		if (get(&c, UINT64_MAX, &bits) < 0 || c.p != c.end)
			return -EBADMSG;
		*(uint64_t *)recording_field(meta, f) = bits;
		return 0;
	}
	return 0;
}

int decode_metadata(const uint8_t *bytes, size_t len, struct recording *meta)
{
	struct cursor c = { bytes, bytes + len };
	int r;

	while (c.p < c.end) {
		const struct recording_field *field = NULL;
		uint64_t id, size;

		if (get(&c, UINT32_MAX, &id) < 0 || get(&c, UINT32_MAX, &size) < 0 ||
		    size > (size_t)(c.end - c.p))
			return err_set(-EBADMSG, "malformed metadata");
		for (size_t i = 0; i < RECORDING_FIELDS; i++)
			if (recording_fields[i].id == id)
				field = &recording_fields[i];
		r = field ? decode_field(field, (struct cursor){ c.p, c.p + size }, meta) : 0;
		if (r < 0)
			return r == -EBADMSG ? err_set(r, "malformed metadata") : r;
		c.p += size;
	}
	return 0;
}
