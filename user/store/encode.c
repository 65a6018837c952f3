/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/encode.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/varint.h"
#include "store/rows.h"

/* Columns of the section being made; what each holds is FORMAT.md's order. */
enum { COL_A, COL_B, COL_C, COL_D, COL_E, COL_F, COL_G, COL_H, COL_I };

int encoder_restart(struct encoder *e, uint64_t interval_ns, enum grid grid)
{
	e->strings = 1; /* "" is known to everyone */
	e->frames = e->processes = e->threads = e->places = e->kinds = 0;
	e->sources = e->titles = 0;
	e->labels = 1; /* so is the empty set */
	e->grid = grid;
	e->counters.len = 0;
	vec_release(&e->group);
	vec_release(&e->sampled_of);
	idmap_release(&e->functions);
	return model_restart(&e->model, interval_ns);
}

void encoder_release(struct encoder *e)
{
	model_release(&e->model);
	idmap_release(&e->functions);
	column_coder_release(&e->coder);
	vec_release(&e->text);
	vec_release(&e->counters);
	vec_release(&e->sampled_of);
	vec_release(&e->ends);
	vec_release(&e->order);
	vec_release(&e->group);
	vec_release(&e->rests);
	for (size_t i = 0; i < sizeof(e->columns) / sizeof(e->columns[0]); i++)
		vec_release(&e->columns[i]);
}

size_t encoder_bytes(const struct encoder *e)
{
	size_t bytes = model_bytes(&e->model) + idmap_bytes(&e->functions) + e->counters.cap +
		       e->text.cap + e->coder.planes.cap + e->coder.packed.cap;

	bytes += e->rests.cap * sizeof(uint64_t);
	bytes += (e->sampled_of.cap + e->ends.cap + e->order.cap + e->group.cap) * sizeof(uint32_t);
	for (size_t i = 0; i < sizeof(e->columns) / sizeof(e->columns[0]); i++)
		bytes += e->columns[i].cap * sizeof(uint64_t);
	return bytes;
}

/* Empties the first `count` columns and gives each room for rows numbers. */
static int columns_begin(struct encoder *e, size_t count, size_t rows)
{
	for (size_t i = 0; i < count; i++) {
		e->columns[i].len = 0;
		if (vec_reserve(&e->columns[i], rows) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Room was made by columns_begin(). */
static void column_add(struct encoder *e, int column, uint64_t v)
{
	e->columns[column].items[e->columns[column].len++] = v;
}

static int columns_end(struct encoder *e, size_t count, struct bytes *out)
{
	for (size_t i = 0; i < count; i++)
		if (column_encode(&e->coder, out, e->columns[i].items, e->columns[i].len) < 0)
			return -ENOMEM;
	return 0;
}

/* A section's id, and room for its length in front of what section_end() finds behind *start. */
static int section_begin(struct bytes *out, enum section id, size_t *start)
{
	if (vec_push(out, (uint8_t)id) < 0)
		return -ENOMEM;
	*start = out->len;
	return 0;
}

static int section_end(struct bytes *out, size_t start)
{
	size_t len = out->len - start, head = varint_size(len);
	uint8_t *p;

	if (vec_reserve(out, head) < 0)
		return -ENOMEM;
	p = out->items + start;
	memmove(p + head, p, len);
	varint_put(&p, p + head, len);
	out->len += head;
	return 0;
}

static int encode_strings(struct encoder *e, const struct profile *p, struct bytes *out)
{
	uint32_t first = e->strings, count = 0;
	uint32_t left = strtab_count(p->strings) - first;
	size_t bytes = 0, start;

	while (count < left && count < CHUNK_ROWS_MAX && bytes < CHUNK_TEXT_MAX - STRTAB_LEN_MAX)
		bytes += strtab_len(p->strings, first + count++);
	if (section_begin(out, SECTION_STRINGS, &start) < 0 || columns_begin(e, 1, count) < 0 ||
	    bytes_put_varint(out, count) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		column_add(e, COL_A, strtab_len(p->strings, first + i));
	e->text.len = 0;
	if (columns_end(e, 1, out) < 0 || vec_reserve(&e->text, bytes) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		size_t len = strtab_len(p->strings, first + i);

		memcpy(e->text.items + e->text.len, strtab_get(p->strings, first + i), len);
		e->text.len += len;
	}
	if (text_encode(&e->coder, out, e->text.items, e->text.len) < 0)
		return -ENOMEM;
	e->strings += count;
	e->model.cost += (uint64_t)count * COST_STRING + bytes;
	return section_end(out, start);
}

static uint64_t difference(uint32_t now, uint32_t before)
{
	return zigzag_encode((int64_t)now - before);
}

static uint32_t at_most_rows(uint32_t count)
{
	return count < CHUNK_ROWS_MAX ? count : CHUNK_ROWS_MAX;
}

/* The number of f's function; *is_new if it has just got it. 0 or -ENOMEM. */
static int number_function(struct encoder *e, const struct frame *f, uint32_t *number, bool *is_new)
{
	struct function fn = { f->name, f->file, f->first_line, f->kind };
	uint64_t hash = hash_combine((uint64_t)f->name << 32 | f->file,
				     (uint64_t)f->kind << 32 | f->first_line);
	size_t at = IDMAP_START;

	*is_new = false;
	while ((*number = idmap_next(&e->functions, hash, &at)) != IDMAP_NONE) {
		const struct function *other = &e->model.functions.items[*number];

		if (other->name == fn.name && other->file == fn.file &&
		    other->first_line == fn.first_line && other->kind == fn.kind)
			return 0;
	}
	*is_new = true;
	*number = (uint32_t)e->model.functions.len;
	if (idmap_reserve(&e->functions) < 0 || vec_push(&e->model.functions, fn) < 0)
		return -ENOMEM;
	idmap_insert(&e->functions, hash, *number);
	return 0;
}

/*
 * A row a frame: function, line, flags; a row a new function: name, file, first line, kind; a row a
 * native frame: offset.
 */
static int encode_frames(struct encoder *e, const struct profile *p, struct bytes *out)
{
	uint32_t count = at_most_rows(frametab_count(p->frames) - e->frames);
	struct frame before = { 0 };
	size_t start;

	if (section_begin(out, SECTION_FRAMES, &start) < 0 || columns_begin(e, 8, count) < 0 ||
	    bytes_put_varint(out, count) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		const struct frame *f = frametab_get(p->frames, e->frames + i);
		uint32_t functions = (uint32_t)e->model.functions.len, number;
		bool is_new;

		if (number_function(e, f, &number, &is_new) < 0)
			return -ENOMEM;
		column_add(e, COL_A, functions - number);
		column_add(e, COL_B, difference(f->line, f->first_line));
		column_add(e, COL_C, f->flags);
		if (f->kind == FRAME_NATIVE)
			column_add(e, COL_H, f->offset);
		if (is_new) {
			column_add(e, COL_D, difference(f->name, before.name));
			column_add(e, COL_E, difference(f->file, before.file));
			column_add(e, COL_F, f->first_line);
			column_add(e, COL_G, f->kind);
			before = *f;
		}
	}
	e->frames += count;
	e->model.cost += (uint64_t)count * COST_FRAME;
	if (columns_end(e, 8, out) < 0)
		return -ENOMEM;
	return section_end(out, start);
}

/* Steps up from entry `from` to its ancestor `to`, or 0 if there are none or too many. */
static unsigned int ancestor_steps(const struct model *m, uint32_t from, uint32_t to)
{
	for (unsigned int steps = 0; steps <= ANCESTOR_MAX && from >= to; steps++) {
		if (from == to)
			return steps;
		if (!from)
			break;
		from = m->stacks.items[from].parent;
	}
	return 0;
}

/* How the frame of an entry below `parent` is told; moves the model on. */
static void encode_child(struct encoder *e, uint32_t parent, uint32_t frame)
{
	struct model *m = &e->model;
	struct recent *list = model_recent(m, parent);
	unsigned int at = 0;

	while (at < CHILD_RECENT && list->frame[at] != frame)
		at++;
	if (at < CHILD_RECENT) {
		column_add(e, COL_D, at);
	} else if (frame == m->next_frame) {
		column_add(e, COL_D, CHILD_NEXT);
	} else {
		column_add(e, COL_D, CHILD_EXPLICIT);
		column_add(e, COL_E, frame);
	}
	if (frame >= m->next_frame)
		m->next_frame = frame + 1;
	recent_promote(list, at, frame);
}

/*
 * Entries come in chains: each the child of the one before. Columns: steps up to where a chain
 * starts, distances where there are no such steps, lengths - 1, children, frames of those told
 * explicitly.
 */
static int encode_stacks(struct encoder *e, const struct profile *p, struct bytes *out)
{
	const struct stack_entry *entries = stacktab_entries(p->stacks);
	struct model *m = &e->model;
	uint32_t first = (uint32_t)m->stacks.len;
	uint32_t count = at_most_rows(stacktab_count(p->stacks) - first);
	size_t start;

	if (section_begin(out, SECTION_STACKS, &start) < 0 || columns_begin(e, 5, count) < 0 ||
	    vec_reserve(&m->stacks, count) < 0 || vec_reserve(&e->ends, count) < 0)
		return -ENOMEM;
	for (uint32_t i = first; i < first + count; i++) {
		uint32_t parent = entries[i].parent;

		if (i > first && parent == i - 1) {
			e->columns[COL_C].items[e->columns[COL_C].len - 1]++;
			e->ends.items[e->ends.len - 1] = i;
		} else {
			unsigned int steps = ancestor_steps(m, i - 1, parent);

			column_add(e, COL_A, steps);
			if (!steps)
				column_add(e, COL_B, i - 1 - parent);
			column_add(e, COL_C, 0);
			e->ends.items[e->ends.len++] = i;
		}
		encode_child(e, parent, entries[i].frame);
		m->stacks.items[m->stacks.len++] = entries[i];
	}
	m->cost += (uint64_t)count * COST_STACK;
	if (bytes_put_varint(out, count) < 0 || bytes_put_varint(out, e->ends.len) < 0 ||
	    columns_end(e, 5, out) < 0)
		return -ENOMEM;
	return section_end(out, start);
}

/* Columns that are 0 in all rows are left out. */
static int encode_rows(struct encoder *e, enum section id, const struct row_field *fields,
		       const void *rows, size_t row_size, uint32_t count, struct bytes *out)
{
	size_t start;

	if (section_begin(out, id, &start) < 0 || bytes_put_varint(out, count) < 0)
		return -ENOMEM;
	for (; fields->id; fields++) {
		uint64_t any = 0;

		if (columns_begin(e, 1, count) < 0)
			return -ENOMEM;
		for (uint32_t i = 0; i < count; i++) {
			uint64_t v = row_get(fields, (const char *)rows + i * row_size);

			column_add(e, COL_A, v);
			any |= v;
		}
		if (any && (bytes_put_varint(out, fields->id) < 0 || columns_end(e, 1, out) < 0))
			return -ENOMEM;
	}
	return section_end(out, start);
}

static int encode_processes(struct encoder *e, const struct profile *p, struct bytes *out)
{
	const struct process *first = p->processes.items + e->processes;
	uint32_t count = at_most_rows((uint32_t)p->processes.len - e->processes);

	e->processes += count;
	e->model.cost += (uint64_t)count * COST_PROCESS;
	return encode_rows(e, SECTION_PROCESSES, process_fields, first, sizeof(*first), count, out);
}

static int encode_threads(struct encoder *e, const struct profile *p, struct bytes *out)
{
	const struct thread *first = p->threads.items + e->threads;
	uint32_t count = at_most_rows((uint32_t)p->threads.len - e->threads);

	e->threads += count;
	e->model.cost += (uint64_t)count * COST_THREAD;
	return encode_rows(e, SECTION_THREADS, thread_fields, first, sizeof(*first), count, out);
}

static int encode_kinds(struct encoder *e, const struct profile *p, struct bytes *out)
{
	const struct sample_kind *first = p->kinds.items + e->kinds;
	uint32_t count = (uint32_t)p->kinds.len - e->kinds;

	e->kinds += count;
	e->model.cost += (uint64_t)count * COST_KIND;
	return encode_rows(e, SECTION_KINDS, kind_fields, first, sizeof(*first), count, out);
}

static int encode_label_sets(struct encoder *e, const struct profile *p, struct bytes *out)
{
	const struct label_entry *first = labeltab_entries(p->labels) + e->labels;
	uint32_t count = at_most_rows(labeltab_count(p->labels) - e->labels);

	e->labels += count;
	e->model.cost += (uint64_t)count * COST_LABELS;
	return encode_rows(e, SECTION_LABEL_SETS, label_fields, first, sizeof(*first), count, out);
}

/*
 * Counting sort by thread of samples first .. first + count - 1 into e->order. Fills columns A
 * and B with the threads and their numbers of samples.
 */
static int group_by_thread(struct encoder *e, const struct profile *p, size_t first, size_t count)
{
	const struct sample *samples = p->samples.items + first;
	size_t more = p->threads.len > e->group.len ? p->threads.len - e->group.len : 0;
	uint32_t before = 0, sum = 0;

	if (vec_reserve(&e->group, more) < 0 || vec_reserve(&e->order, count) < 0)
		return -ENOMEM;
	memset(e->group.items + e->group.len, 0, more * sizeof(*e->group.items));
	e->group.len += more;
	for (size_t i = 0; i < count; i++)
		e->group.items[samples[i].thread]++;
	for (uint32_t i = 0; i < p->threads.len; i++) {
		uint32_t size = e->group.items[i];

		if (!size)
			continue;
		column_add(e, COL_A, i - before);
		column_add(e, COL_B, size - 1);
		before = i;
		e->group.items[i] = sum;
		sum += size;
	}
	for (size_t i = 0; i < count; i++)
		e->order.items[e->group.items[samples[i].thread]++] = (uint32_t)i;
	memset(e->group.items, 0, e->group.len * sizeof(*e->group.items));
	return 0;
}

static int64_t rounded_divide(int64_t v, int64_t by)
{
	return (v >= 0 ? v + by / 2 : v - by / 2) / by;
}

/* Columns H and I, and what they leave out of the time; moves the model on. */
static void encode_time(struct encoder *e, const struct sample *s, uint64_t start_ns)
{
	struct model *m = &e->model;
	struct tick tick = model_tick(m, e->grid, s->thread, s->cpu, start_ns);
	uint64_t base = grid_nearest(*tick.phase, *tick.last, m->interval_ns), off_ns;
	int64_t ticks = rounded_divide((int64_t)(s->time_ns - base), (int64_t)m->interval_ns);
	int64_t units;

	off_ns = s->time_ns - (base + (uint64_t)ticks * m->interval_ns);
	units = rounded_divide((int64_t)off_ns, TIME_UNIT_NS);
	if (s->time_ns < TIME_UNIT_NS &&
	    (int64_t)(s->time_ns - off_ns + (uint64_t)units * TIME_UNIT_NS) < 0)
		units++; /* not before the recording's start */
	column_add(e, COL_H, zigzag_encode(ticks - 1));
	column_add(e, COL_I, zigzag_encode(units));
	model_advance(m, tick, ticks, units);
	if (e->is_exact)
		e->rests.items[e->rests.len++] = zigzag_encode((int64_t)(s->time_ns - *tick.last));
}

/* Column F, and G for a stack without a number so far; moves the model on. */
static int encode_stack(struct encoder *e, uint32_t stack, size_t *next_end)
{
	uint32_t *number = &e->sampled_of.items[stack];
	size_t low = *next_end, high = e->ends.len;

	if (*number) {
		uint32_t to;

		column_add(e, COL_F, *number);
		to = model_promote_stack(&e->model, *number - 1);
		e->sampled_of.items[e->model.sampled.items[*number - 1]] = *number;
		*number = to + 1;
		return 0;
	}
	if (vec_push(&e->model.sampled, stack) < 0)
		return -ENOMEM;
	*number = (uint32_t)e->model.sampled.len;
	column_add(e, COL_F, 0);
	/* Most new stacks are the chain ends of this chunk, in order: look there, then all over. */
	if (low >= high || e->ends.items[low] != stack) {
		for (low = 0; low < high;) {
			size_t middle = (low + high) / 2;

			if (e->ends.items[middle] < stack)
				low = middle + 1;
			else
				high = middle;
		}
	}
	if (low < e->ends.len && e->ends.items[low] == stack) {
		column_add(e, COL_G, zigzag_encode((int64_t)low - (int64_t)*next_end) * 2);
		*next_end = low + 1;
	} else {
		column_add(e, COL_G, (uint64_t)stack * 2 + 1);
	}
	return 0;
}

static int encode_samples(struct encoder *e, const struct profile *p, size_t first, size_t count,
			  struct bytes *out, struct chunk_summary *summary)
{
	struct model *m = &e->model;
	const struct sample *before = NULL;
	uint64_t min = UINT64_MAX, max = 0;
	size_t start, next_end = 0, threads;
	uint32_t cpus = 0;

	if (section_begin(out, SECTION_SAMPLES, &start) < 0 || columns_begin(e, 9, count) < 0 ||
	    group_by_thread(e, p, first, count) < 0)
		return -ENOMEM;
	threads = e->columns[COL_A].len;
	for (size_t i = first; i < first + count; i++) {
		const struct sample *s = &p->samples.items[i];

		min = s->time_ns < min ? s->time_ns : min;
		max = s->time_ns > max ? s->time_ns : max;
		cpus = s->cpu >= cpus ? s->cpu + 1u : cpus;
	}
	assert(max <= INT64_MAX);
	*summary = (struct chunk_summary){ (uint32_t)count, min, max };
	m->cost += (uint64_t)count * COST_SAMPLE;
	min -= min % TIME_UNIT_NS;
	e->rests.len = 0;
	if (e->is_exact && vec_reserve(&e->rests, count) < 0)
		return -ENOMEM;
	if (MODEL_COVER_TIMES(&m->thread_phase, p->threads.len) < 0 ||
	    MODEL_COVER_TIMES(&m->thread_last, p->threads.len) < 0 ||
	    MODEL_COVER_TIMES(&m->cpu_phase, cpus) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct sample *s = &p->samples.items[first + e->order.items[i]];

		if (!before || s->thread != before->thread || s->stack != before->stack)
			m->cost += COST_CHANGE;
		before = s;
		column_add(e, COL_C, s->cpu);
		column_add(e, COL_D, s->value - 1);
		column_add(e, COL_E, s->flags);
		if (encode_stack(e, s->stack, &next_end) < 0)
			return -ENOMEM;
		encode_time(e, s, min);
	}
	if (bytes_put_varint(out, count) < 0 || bytes_put_varint(out, e->grid) < 0 ||
	    bytes_put_varint(out, min / TIME_UNIT_NS) < 0 || bytes_put_varint(out, threads) < 0 ||
	    columns_end(e, 9, out) < 0)
		return -ENOMEM;
	return section_end(out, start);
}

static uint64_t opcode_of(const struct sample *s)
{
	return s->opcode;
}

static uint64_t gil_of(const struct sample *s)
{
	return s->gil;
}

static uint64_t kind_of(const struct sample *s)
{
	return s->kind;
}

static uint64_t labels_of(const struct sample *s)
{
	return s->labels;
}

static uint64_t duration_of(const struct sample *s)
{
	return s->duration_ns;
}

/* A number a sample, in the order of encode_samples(), whose grouping it uses; if any is not 0. */
static int encode_of_samples(struct encoder *e, enum section id,
			     uint64_t (*get)(const struct sample *s), const struct sample *samples,
			     size_t count, struct bytes *out)
{
	uint64_t any = 0;
	size_t start;

	if (columns_begin(e, 1, count) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		uint64_t v = get(&samples[e->order.items[i]]);

		column_add(e, COL_A, v);
		any |= v;
	}
	if (!any)
		return 0;
	if (section_begin(out, id, &start) < 0 || columns_end(e, 1, out) < 0)
		return -ENOMEM;
	return section_end(out, start);
}

/* What the chunk's times are beside those of encode_samples(), if anything. */
static int encode_rests(struct encoder *e, struct bytes *out)
{
	uint64_t any = 0;
	size_t start;

	for (size_t i = 0; i < e->rests.len; i++)
		any |= e->rests.items[i];
	if (!any)
		return 0;
	if (section_begin(out, SECTION_TIMES, &start) < 0 ||
	    column_encode(&e->coder, out, e->rests.items, e->rests.len) < 0)
		return -ENOMEM;
	return section_end(out, start);
}

/* All counters, if any differs from what was written last. */
static int encode_counters(struct encoder *e, const struct profile *p, struct bytes *out)
{
	const struct recording *recording = &p->recordings.items[e->recording];
	struct bytes now = { 0 };
	size_t start;
	int r = bytes_put_varint(&now, recording->counters.len);

	for (size_t i = 0; !r && i < recording->counters.len; i++) {
		const struct counter *c = &recording->counters.items[i];
		size_t len = strlen(c->name);

		r = bytes_put_varint(&now, len);
		if (!r)
			r = vec_append(&now, (const uint8_t *)c->name, len);
		if (!r)
			r = bytes_put_varint(&now, c->value);
	}
	if (!r && recording->counters.len &&
	    (now.len != e->counters.len || memcmp(now.items, e->counters.items, now.len))) {
		r = section_begin(out, SECTION_COUNTERS, &start);
		if (!r)
			r = vec_append(out, now.items, now.len);
		if (!r)
			r = section_end(out, start);
		vec_release(&e->counters);
		e->counters = now;
		return r;
	}
	vec_release(&now);
	return r;
}

/* A row for each process that is in a container or pod. */
static int encode_places(struct encoder *e, const struct profile *p, struct bytes *out)
{
	uint32_t count = at_most_rows(e->processes - e->places), before = 0;
	VEC(struct place_row) rows = VEC_INIT;
	int r = 0;

	for (uint32_t i = e->places; i < e->places + count && !r; i++) {
		const struct process *process = &p->processes.items[i];
		struct place_row row = { i - before, process->container, process->pod_uid,
					 process->pod_name, process->pod_namespace };

		if (!process_has_place(process))
			continue;
		r = vec_push(&rows, row);
		before = i;
	}
	e->places += count;
	e->model.cost += rows.len * COST_PLACE;
	if (!r && rows.len)
		r = encode_rows(e, SECTION_PLACES, place_fields, rows.items, sizeof(*rows.items),
				(uint32_t)rows.len, out);
	vec_release(&rows);
	return r;
}

/* A row for each of this recording. */
static int encode_sources(struct encoder *e, const struct profile *p, struct bytes *out)
{
	VEC(struct source_version) rows = VEC_INIT;
	int r = 0;

	for (; e->sources < p->sources.len && rows.len < CHUNK_ROWS_MAX && !r; e->sources++)
		if (p->sources.items[e->sources].recording == e->recording)
			r = vec_push(&rows, p->sources.items[e->sources]);
	e->model.cost += rows.len * COST_SOURCE;
	if (!r && rows.len)
		r = encode_rows(e, SECTION_SOURCES, source_fields, rows.items, sizeof(*rows.items),
				(uint32_t)rows.len, out);
	vec_release(&rows);
	return r;
}

int encode_padding(struct encoder *e, uint64_t before, struct bytes *out)
{
	uint64_t budget = model_budget(before + out->len), missing;
	size_t start;

	if (e->model.cost <= budget)
		return 0;
	missing = (e->model.cost - budget) / COST_OF_BYTE + 1;
	if (section_begin(out, SECTION_PADDING, &start) < 0 || vec_reserve(out, missing) < 0)
		return -ENOMEM;
	memset(out->items + out->len, 0, missing);
	out->len += missing;
	return section_end(out, start);
}

bool encoder_is_done(const struct encoder *e, const struct profile *p, size_t sample)
{
	return e->strings == strtab_count(p->strings) && e->frames == frametab_count(p->frames) &&
	       e->model.stacks.len == stacktab_count(p->stacks) &&
	       e->processes == p->processes.len && e->threads == p->threads.len &&
	       e->places == p->processes.len && e->kinds == p->kinds.len &&
	       e->labels == labeltab_count(p->labels) && e->sources == p->sources.len &&
	       sample == p->samples.len;
}

/* The sections behind those samples. */
static int encode_beside_samples(struct encoder *e, const struct profile *p,
				 const struct sample *samples, size_t count, struct bytes *out)
{
	int r = encode_counters(e, p, out);

	if (!r)
		r = encode_of_samples(e, SECTION_OPCODES, opcode_of, samples, count, out);
	if (!r && e->places < e->processes)
		r = encode_places(e, p, out);
	if (!r && count)
		r = encode_rests(e, out);
	if (!r && e->sources < p->sources.len)
		r = encode_sources(e, p, out);
	if (!r)
		r = encode_of_samples(e, SECTION_GILS, gil_of, samples, count, out);
	if (!r && e->kinds < p->kinds.len)
		r = encode_kinds(e, p, out);
	if (!r && e->labels < labeltab_count(p->labels))
		r = encode_label_sets(e, p, out);
	if (!r)
		r = encode_of_samples(e, SECTION_SAMPLE_KINDS, kind_of, samples, count, out);
	if (!r)
		r = encode_of_samples(e, SECTION_SAMPLE_LABELS, labels_of, samples, count, out);
	return r ? r : encode_of_samples(e, SECTION_DURATIONS, duration_of, samples, count, out);
}

/* A row may refer to rows of earlier tables: a table waits until those before it are through. */
int encode_flush(struct encoder *e, const struct profile *p, size_t *sample, struct bytes *out,
		 struct chunk_summary *summary)
{
	size_t more = stacktab_count(p->stacks) - e->sampled_of.len;
	size_t count;
	int r = 0;

	/* Tables only grow; a reset of the profile goes with encoder_restart(). */
	assert(e->strings <= strtab_count(p->strings) && e->frames <= frametab_count(p->frames) &&
	       e->model.stacks.len <= stacktab_count(p->stacks) && e->threads <= p->threads.len);
	*summary = (struct chunk_summary){ 0 };
	e->ends.len = 0;
	if (e->strings < strtab_count(p->strings))
		r = encode_strings(e, p, out);
	if (r || e->strings < strtab_count(p->strings))
		return r;
	if (e->frames < frametab_count(p->frames))
		r = encode_frames(e, p, out);
	if (r || e->frames < frametab_count(p->frames))
		return r;
	if (model_cover_frames(&e->model, e->frames) < 0 || vec_reserve(&e->sampled_of, more) < 0)
		return -ENOMEM;
	memset(e->sampled_of.items + e->sampled_of.len, 0, more * sizeof(uint32_t));
	e->sampled_of.len += more;
	if (e->model.stacks.len < stacktab_count(p->stacks))
		r = encode_stacks(e, p, out);
	if (r || e->model.stacks.len < stacktab_count(p->stacks))
		return r;
	if (e->processes < p->processes.len)
		r = encode_processes(e, p, out);
	if (r || e->processes < p->processes.len)
		return r;
	if (e->threads < p->threads.len)
		r = encode_threads(e, p, out);
	if (r || e->threads < p->threads.len)
		return r;
	if (labeltab_count(p->labels) - e->labels > CHUNK_ROWS_MAX)
		return encode_label_sets(e, p, out);
	count = p->samples.len - *sample;
	if (count > CHUNK_ROWS_MAX)
		count = CHUNK_ROWS_MAX;
	if (count)
		r = encode_samples(e, p, *sample, count, out, summary);
	if (!r)
		r = encode_beside_samples(e, p, count ? p->samples.items + *sample : NULL, count,
					  out);
	*sample += count;
	return r;
}

/* A field's content; 0 bytes: unknown. At most VARINT_MAX_BYTES are put into room. */
static size_t metadata_content(const struct recording *meta, const struct recording_field *f,
			       uint8_t *room, const uint8_t **content)
{
	const char *text;
	uint8_t *end = room;
	uint64_t bits, number;

	*content = room;
	switch (f->type) {
	case RECORDING_TEXT:
		text = *(char **)recording_field(meta, f);
		*content = (const uint8_t *)text;
		return text ? strlen(text) : 0;
	case RECORDING_REAL:
		memcpy(&bits, recording_field(meta, f), sizeof(bits));
		put_le64(room, bits);
		return *(double *)recording_field(meta, f) > 0 ? sizeof(bits) : 0;
	case RECORDING_NUMBER:
		number = *(uint64_t *)recording_field(meta, f);
		varint_put(&end, room + VARINT_MAX_BYTES, number);
		return number ? (size_t)(end - room) : 0;
	}
	return 0;
}

int encode_metadata(const struct recording *meta, struct bytes *out)
{
	uint8_t room[VARINT_MAX_BYTES];
	const uint8_t *content;
	int r = 0;

	for (size_t i = 0; !r && i < RECORDING_FIELDS; i++) {
		const struct recording_field *f = &recording_fields[i];
		size_t len = metadata_content(meta, f, room, &content);

		if (!len)
			continue;
		r = bytes_put_varint(out, f->id);
		if (!r)
			r = bytes_put_varint(out, len);
		if (!r)
			r = vec_append(out, content, len);
	}
	return r;
}
