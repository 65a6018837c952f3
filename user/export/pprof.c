/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * pprof's format: a gzipped protobuf message, pprof.proto. A value of each type that the kinds of
 * samples have (export/value_type.h): of ticks how many, and their time where that is known; of
 * time on and off the CPU also its sum, wall time. The system name of a function stays empty:
 * readers demangle it, and of `<module>` nothing would be left. Threads, processes and labels are
 * labels, and only there if asked for: to some engines each label makes a series of its own.
 *
 * Each part is packed alone, as a message with one field: protobuf messages one after the other are
 * one message with the fields of all. So memory does not grow with the number of stacks.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/gzip.h"
#include "base/strbuf.h"
#include "base/escape.h"
#include "export/export.h"
#include "export/symbols.h"
#include "export/value_type.h"
#include "pprof.pb-c.h"

/* A value that each sample has. */
struct column {
	const char *type, *unit; /* constant, or of a kind */
};

/* Where the values of a kind go, as indices of columns. */
#define NO_COLUMN SIZE_MAX
struct kind_columns {
	struct value_type type;
	bool is_used;
	size_t samples, value, wall;
};

struct pprof {
	const struct profile *p;
	const struct cube *cube;
	const struct export_opts *o;
	struct symbols symbols;
	struct gzip *gzip;
	ProtobufCBuffer buffer; /* appends to packed */
	struct strbuf packed;
	struct symbols_stack stack;
	VEC(uint64_t) ids;
	struct kind_columns *kinds; /* by kind */
	VEC(struct column) columns;
	int64_t *values; /* by column: zeros but for those of the sample that is put */
	VEC(Pprof__Label) labels;
	VEC(Pprof__Label *) label_list;
};

static void pprof_release(struct pprof *w)
{
	symbols_release(&w->symbols);
	gzip_free(w->gzip);
	strbuf_release(&w->packed);
	vec_release(&w->stack);
	vec_release(&w->ids);
	free(w->kinds);
	vec_release(&w->columns);
	free(w->values);
	vec_release(&w->labels);
	vec_release(&w->label_list);
}

static void append_packed(ProtobufCBuffer *buffer, size_t len, const uint8_t *bytes)
{
	struct pprof *w = (struct pprof *)((char *)buffer - offsetof(struct pprof, buffer));

	strbuf_append(&w->packed, bytes, len);
}

/* -EIO: the stream failed, which is told by whoever closes it. */
static int put(struct pprof *w, const Pprof__Profile *part)
{
	strbuf_truncate(&w->packed, 0);
	pprof__profile__pack_to_buffer(part, &w->buffer);
	if (strbuf_error(&w->packed))
		return -ENOMEM;
	return gzip_write(w->gzip, w->packed.bytes, w->packed.len);
}

/* --- labels ----------------------------------------------------------------------------------- */

/* A text label if `string` (of the profile) is one that says something. */
static int add_text_label(struct pprof *w, const char *name, uint32_t string)
{
	Pprof__Label label = PPROF__LABEL__INIT;
	uint32_t key, value;
	int r;

	if (!string)
		return 0;
	if ((r = symbols_text(&w->symbols, name, &key)) < 0 ||
	    (r = symbols_string(&w->symbols, string, &value)) < 0)
		return r;
	label.key = key;
	label.str = value;
	return vec_push(&w->labels, label);
}

/* A text label and a number. */
static int add_labels(struct pprof *w, const char *name, uint32_t string, const char *number_name,
		      uint32_t number)
{
	Pprof__Label label = PPROF__LABEL__INIT;
	uint32_t key;
	int r;

	if ((r = add_text_label(w, name, string)) < 0 ||
	    (r = symbols_text(&w->symbols, number_name, &key)) < 0)
		return r;
	label.key = key;
	label.num = number;
	return vec_push(&w->labels, label);
}

/* As the agent's labels are called. */
static int add_place_labels(struct pprof *w, const struct process *process)
{
	int r;

	if ((r = add_text_label(w, "container_id", process->container)) < 0 ||
	    (r = add_text_label(w, "pod_uid", process->pod_uid)) < 0 ||
	    (r = add_text_label(w, "pod", process->pod_name)) < 0)
		return r;
	return add_text_label(w, "namespace", process->pod_namespace);
}

static int label_thread(struct pprof *w, uint32_t index)
{
	const struct thread *thread = &w->p->threads.items[index];
	const struct process *process = &w->p->processes.items[thread->process];
	int r = 0;

	if (w->o->processes)
		r = add_labels(w, "process", process->name, "pid", process->pid);
	if (w->o->processes && !r)
		r = add_place_labels(w, process);
	if (w->o->threads && !r)
		r = add_labels(w, "thread", thread->name, "tid", thread->tid);
	return r;
}

/* Those that the sample was recorded with. */
static int label_set(struct pprof *w, uint32_t set)
{
	const struct label_entry *entries = labeltab_entries(w->p->labels);
	int r = 0;

	for (; set && !r; set = entries[set].parent) {
		Pprof__Label label = PPROF__LABEL__INIT;
		uint32_t key, value;

		if (export_leaves_out(w->o, w->p, &entries[set]))
			continue;
		if ((r = symbols_string(&w->symbols, entries[set].name, &key)) < 0 ||
		    (r = symbols_string(&w->symbols, entries[set].value, &value)) < 0)
			return r;
		label.key = key;
		label.str = value;
		r = vec_push(&w->labels, label);
	}
	return r;
}

static int label_sample(struct pprof *w, const struct cube_tag *tag)
{
	int r = 0;

	w->labels.len = w->label_list.len = 0;
	if (tag->thread != CUBE_NO_THREAD)
		r = label_thread(w, tag->thread);
	if (!r)
		r = label_set(w, tag->labels);
	for (size_t i = 0; i < w->labels.len && !r; i++)
		r = vec_push(&w->label_list, &w->labels.items[i]);
	return r;
}

/* --- values ----------------------------------------------------------------------------------- */

static int find_column(struct pprof *w, const char *type, const char *unit, size_t *index)
{
	for (size_t i = 0; i < w->columns.len; i++) {
		*index = i;
		if (!strcmp(w->columns.items[i].type, type) &&
		    !strcmp(w->columns.items[i].unit, unit))
			return 0;
	}
	*index = w->columns.len;
	return vec_push(&w->columns, ((struct column){ type, unit }));
}

static int add_columns(struct pprof *w, uint16_t kind)
{
	struct kind_columns *k = &w->kinds[kind];
	int r = 0;

	value_type_of(w->p, kind, w->o->names, &k->type);
	k->is_used = true;
	if (k->type.is_ticks)
		r = find_column(w, "samples", "count", &k->samples);
	if (k->type.scale && !r)
		r = find_column(w, value_name(&k->type), k->type.unit, &k->value);
	return r;
}

static bool is_exact_time(const struct kind_columns *k, const char *type)
{
	return k->is_used && !k->type.is_ticks && !strcmp(value_name(&k->type), type);
}

/* Of threads of which both is known: their sum. */
static int add_wall(struct pprof *w)
{
	static const char *const parts[] = { "cpu", "off_cpu" };
	bool has[2] = { false };
	size_t wall;
	int r;

	for (size_t kind = 0; kind <= w->p->kinds.len; kind++)
		for (size_t i = 0; i < 2; i++)
			has[i] |= is_exact_time(&w->kinds[kind], parts[i]);
	if (!has[0] || !has[1])
		return 0;
	r = find_column(w, "wall", "nanoseconds", &wall);
	for (size_t kind = 0; kind <= w->p->kinds.len; kind++)
		for (size_t i = 0; i < 2; i++)
			if (is_exact_time(&w->kinds[kind], parts[i]))
				w->kinds[kind].wall = wall;
	return r;
}

/* Of the kinds that there are; of ticks where there is no sample at all. */
static int find_columns(struct pprof *w)
{
	size_t kinds = w->p->kinds.len + 1;
	_cleanup_(freep) bool *has = calloc(kinds, sizeof(*has));
	int r = 0;

	w->kinds = calloc(kinds, sizeof(*w->kinds));
	if (!has || !w->kinds)
		return -ENOMEM;
	for (size_t i = 0; i < w->cube->all.cells.len; i++)
		has[w->cube->tags.items[w->cube->all.cells.items[i].tag].kind] = true;
	has[KIND_TICKS] |= !w->cube->all.cells.len;
	for (size_t kind = 0; kind < kinds && !r; kind++) {
		w->kinds[kind].samples = w->kinds[kind].value = w->kinds[kind].wall = NO_COLUMN;
		if (has[kind])
			r = add_columns(w, (uint16_t)kind);
	}
	if (!r)
		r = add_wall(w);
	w->values = calloc(w->columns.len + 1, sizeof(*w->values));
	return r || w->values ? r : -ENOMEM;
}

static void set_values(struct pprof *w, const struct kind_columns *k, uint64_t value)
{
	if (k->samples != NO_COLUMN)
		w->values[k->samples] = value_scaled(value, 1);
	if (k->value != NO_COLUMN)
		w->values[k->value] = value_scaled(value, k->type.scale);
	if (k->wall != NO_COLUMN)
		w->values[k->wall] = value_scaled(value, 1);
}

/* --- the message ------------------------------------------------------------------------------ */

static int put_sample(struct pprof *w, const struct cube_cell *row)
{
	const struct cube_tag *tag = &w->cube->tags.items[row->tag];
	Pprof__Sample sample = PPROF__SAMPLE__INIT, *samples = &sample;
	Pprof__Profile part = PPROF__PROFILE__INIT;
	int r;

	if ((r = label_sample(w, tag)) < 0 ||
	    (r = symbols_stack(&w->symbols, row->stack, &w->stack)) < 0)
		return r;
	w->ids.len = 0;
	for (size_t i = 0; i < w->stack.len && !r; i++)
		r = vec_push(&w->ids, (uint64_t)w->stack.items[i] + 1);
	if (r < 0)
		return r;
	set_values(w, &w->kinds[tag->kind], row->value);
	sample.n_location_id = w->ids.len;
	sample.location_id = w->ids.items;
	sample.n_value = w->columns.len;
	sample.value = w->values;
	sample.n_label = w->label_list.len;
	sample.label = w->label_list.items;
	part.n_sample = 1;
	part.sample = &samples;
	r = put(w, &part);
	memset(w->values, 0, w->columns.len * sizeof(*w->values));
	return r;
}

/* That it has functions keeps readers from looking for symbols of their own. */
static int put_mapping(struct pprof *w, size_t index)
{
	Pprof__Mapping mapping = PPROF__MAPPING__INIT, *mappings = &mapping;
	Pprof__Profile part = PPROF__PROFILE__INIT;

	mapping.id = index + 1;
	mapping.filename = w->symbols.mappings.items[index];
	mapping.has_functions = mapping.has_filenames = mapping.has_line_numbers = true;
	part.n_mapping = 1;
	part.mapping = &mappings;
	return put(w, &part);
}

static int put_location(struct pprof *w, size_t index)
{
	const struct symbols_location *from = &w->symbols.locations.items[index];
	Pprof__Line line = PPROF__LINE__INIT, *lines = &line;
	Pprof__Location location = PPROF__LOCATION__INIT, *locations = &location;
	Pprof__Profile part = PPROF__PROFILE__INIT;

	line.function_id = (uint64_t)from->function + 1;
	line.line = from->line;
	location.id = index + 1;
	if (from->mapping != SYMBOLS_NO_MAPPING)
		location.mapping_id = (uint64_t)from->mapping + 1;
	location.n_line = 1;
	location.line = &lines;
	part.n_location = 1;
	part.location = &locations;
	return put(w, &part);
}

static int put_function(struct pprof *w, uint32_t index)
{
	const struct frame *from = frametab_get(w->symbols.functions, index);
	Pprof__Function function = PPROF__FUNCTION__INIT, *functions = &function;
	Pprof__Profile part = PPROF__PROFILE__INIT;

	function.id = (uint64_t)index + 1;
	function.name = from->name;
	function.filename = from->file;
	function.start_line = from->first_line;
	part.n_function = 1;
	part.function = &functions;
	return put(w, &part);
}

static int put_string(struct pprof *w, uint32_t id)
{
	char *string = (char *)strtab_get(w->symbols.strings, id);
	Pprof__Profile part = PPROF__PROFILE__INIT;

	part.n_string_table = 1;
	part.string_table = &string;
	return put(w, &part);
}

static int value_type(struct pprof *w, const char *type, const char *unit, Pprof__ValueType *out)
{
	uint32_t type_id, unit_id;
	int r;

	if ((r = symbols_text(&w->symbols, type, &type_id)) < 0 ||
	    (r = symbols_text(&w->symbols, unit, &unit_id)) < 0)
		return r;
	*out = (Pprof__ValueType)PPROF__VALUE_TYPE__INIT;
	out->type = type_id;
	out->unit = unit_id;
	return 0;
}

/* Which program wrote it, where, of what: pprof -comments shows it. */
static int put_comments(struct pprof *w)
{
	const struct recording facts = profile_facts(w->p), *m = &facts;
	const char *lines[][2] = { { "pyebpf ", PYEBPF_VERSION },
				   { "host: ", m->host },
				   { "target: ", m->target },
				   { "event: ", m->event } };
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	Pprof__Profile part = PPROF__PROFILE__INIT;
	int64_t comments[sizeof(lines) / sizeof(lines[0])];
	uint32_t id;
	int r = 0;

	part.comment = comments;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]) && !r; i++) {
		if (!lines[i][1])
			continue;
		strbuf_truncate(&text, 0);
		strbuf_puts(&text, lines[i][0]);
		r = escape_append(&text, lines[i][1], strlen(lines[i][1]), "");
		if (!r)
			r = symbols_text(&w->symbols, strbuf_str(&text), &id);
		if (!r)
			comments[part.n_comment++] = id;
	}
	return r ? r : put(w, &part);
}

static int put_types(struct pprof *w)
{
	_cleanup_(freep) Pprof__ValueType *types = calloc(w->columns.len, sizeof(*types));
	_cleanup_(freep) Pprof__ValueType **list = calloc(w->columns.len, sizeof(*list));
	Pprof__Profile part = PPROF__PROFILE__INIT;
	int r = types && list ? 0 : -ENOMEM;

	for (size_t i = 0; i < w->columns.len && !r; i++) {
		r = value_type(w, w->columns.items[i].type, w->columns.items[i].unit, &types[i]);
		list[i] = &types[i];
	}
	if (r < 0)
		return r;
	part.n_sample_type = w->columns.len;
	part.sample_type = list;
	return put(w, &part);
}

/*
 * The kind that readers show first: time on a CPU, whichever came first; wall time, which is a sum,
 * has none of its own.
 */
static const struct kind_columns *first_kind(const struct pprof *w)
{
	const struct kind_columns *first = NULL;

	for (size_t kind = 0; kind <= w->p->kinds.len; kind++) {
		const struct kind_columns *k = &w->kinds[kind];

		if (k->is_used && k->value != NO_COLUMN && !strcmp(value_name(&k->type), "cpu"))
			return k;
		if (k->is_used && !first)
			first = k;
	}
	return first;
}

static size_t default_column(const struct pprof *w)
{
	const struct kind_columns *k = first_kind(w);

	if (k->wall != NO_COLUMN)
		return k->wall;
	return k->value != NO_COLUMN ? k->value : k->samples;
}

/* Of what the first kind's samples stand for. */
static int put_period(struct pprof *w)
{
	const struct value_type *v = &first_kind(w)->type;
	const struct column *first = &w->columns.items[default_column(w)];
	Pprof__Profile part = PPROF__PROFILE__INIT;
	Pprof__ValueType period, shown;
	int r = value_type(w, first->type, first->unit, &shown);

	if (r < 0)
		return r;
	part.default_sample_type = shown.type;
	if (v->is_ticks && !v->scale) {
		part.period_type = &shown;
		part.period = 1;
	} else if (v->period_unit) {
		r = value_type(w, value_period_type(v), v->period_unit, &period);
		part.period_type = &period;
		part.period = value_scaled(v->period, 1);
	}
	return r ? r : put(w, &part);
}

static int put_head(struct pprof *w)
{
	const struct recording facts = profile_facts(w->p), *m = &facts;
	Pprof__Profile part = PPROF__PROFILE__INIT;
	int r;

	part.time_nanos = (int64_t)m->start_realtime_ns;
	part.duration_nanos = (int64_t)m->duration_ns;
	if ((r = put_types(w)) < 0 || (r = put(w, &part)) < 0 || (r = put_period(w)) < 0)
		return r;
	return put_comments(w);
}

/* What the samples pointed to. */
static int put_tables(struct pprof *w)
{
	int r = 0;

	for (size_t i = 0; i < w->symbols.mappings.len && !r; i++)
		r = put_mapping(w, i);
	for (size_t i = 0; i < w->symbols.locations.len && !r; i++)
		r = put_location(w, i);
	for (uint32_t i = 0; i < frametab_count(w->symbols.functions) && !r; i++)
		r = put_function(w, i);
	for (uint32_t i = 0; i < strtab_count(w->symbols.strings) && !r; i++)
		r = put_string(w, i);
	return r;
}

static int write_pprof(struct exporting *x)
{
	_cleanup_(pprof_release) struct pprof w = { .p = x->p,
						    .cube = x->cube,
						    .o = x->o,
						    .buffer = { .append = append_packed },
						    .packed = STRBUF_INIT };
	int r;

	/* go tool pprof would open the file, and end while it looks for code at the address 0 */
	if ((r = symbols_init(&w.symbols, x->p, SYMBOLS_PYTHON_NAME)) < 0 ||
	    (r = gzip_new(x->out, &w.gzip)) < 0)
		return r;
	r = find_columns(&w);
	if (!r)
		r = put_head(&w);
	for (size_t i = 0; i < x->cube->all.cells.len && !r; i++)
		r = put_sample(&w, &x->cube->all.cells.items[i]);
	if (!r)
		r = put_tables(&w);
	if (!r)
		r = gzip_finish(w.gzip);
	return r == -EIO ? 0 : r;
}

static const char *const suffixes[] = { ".pb.gz", ".pprof", NULL };

const struct exporter exporter_pprof = {
	.name = "pprof",
	.suffixes = suffixes,
	.help = "gzipped protobuf, for go tool pprof, Pyroscope, Parca",
	.needs = CUBE_KINDS,
	.finish = write_pprof,
};
