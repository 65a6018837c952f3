/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * pprof's format: a gzipped protobuf message, pprof.proto. Two values a sample: samples and, where
 * a tick is a time, nanoseconds of CPU. The system name of a function stays empty: readers demangle
 * it, and of `<module>` nothing would be left. Threads and processes are labels, and only there if
 * asked for: to some engines each label makes a series of its own.
 *
 * Each part is packed alone, as a message with one field: protobuf messages one after the other are
 * one message with the fields of all. So memory does not grow with the number of stacks.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/gzip.h"
#include "base/strbuf.h"
#include "export/escape.h"
#include "export/export.h"
#include "export/symbols.h"
#include "pprof.pb-c.h"

#define LABELS_MAX 8

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
};

static void pprof_release(struct pprof *w)
{
	symbols_release(&w->symbols);
	gzip_free(w->gzip);
	strbuf_release(&w->packed);
	vec_release(&w->stack);
	vec_release(&w->ids);
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

/* A text label if `string` (of the profile) is one that says something. */
static int add_text_label(struct pprof *w, const char *name, uint32_t string, Pprof__Label *labels,
			  size_t *count)
{
	uint32_t key, value;
	int r;

	if (!string)
		return 0;
	if ((r = symbols_text(&w->symbols, name, &key)) < 0 ||
	    (r = symbols_string(&w->symbols, string, &value)) < 0)
		return r;
	labels[*count] = (Pprof__Label)PPROF__LABEL__INIT;
	labels[*count].key = key;
	labels[(*count)++].str = value;
	return 0;
}

/* A text label and a number. */
static int add_labels(struct pprof *w, const char *name, uint32_t string, const char *number_name,
		      uint32_t number, Pprof__Label *labels, size_t *count)
{
	uint32_t key;
	int r;

	if ((r = add_text_label(w, name, string, labels, count)) < 0 ||
	    (r = symbols_text(&w->symbols, number_name, &key)) < 0)
		return r;
	labels[*count] = (Pprof__Label)PPROF__LABEL__INIT;
	labels[*count].key = key;
	labels[(*count)++].num = number;
	return 0;
}

/* As the agent's labels are called. */
static int add_place_labels(struct pprof *w, const struct process *process, Pprof__Label *labels,
			    size_t *count)
{
	int r;

	if ((r = add_text_label(w, "container_id", process->container, labels, count)) < 0 ||
	    (r = add_text_label(w, "pod_uid", process->pod_uid, labels, count)) < 0 ||
	    (r = add_text_label(w, "pod", process->pod_name, labels, count)) < 0)
		return r;
	return add_text_label(w, "namespace", process->pod_namespace, labels, count);
}

static int label_sample(struct pprof *w, uint32_t index, Pprof__Label *labels, size_t *count)
{
	const struct thread *thread = &w->p->threads.items[index];
	const struct process *process = &w->p->processes.items[thread->process];
	int r = 0;

	if (w->o->processes)
		r = add_labels(w, "process", process->name, "pid", process->pid, labels, count);
	if (w->o->processes && !r)
		r = add_place_labels(w, process, labels, count);
	if (w->o->threads && !r)
		r = add_labels(w, "thread", thread->name, "tid", thread->tid, labels, count);
	return r;
}

static int put_sample(struct pprof *w, const struct cube_cell *row)
{
	int64_t values[] = { (int64_t)row->value,
			     (int64_t)(row->value * profile_recording(w->p)->interval_ns) };
	Pprof__Label labels[LABELS_MAX], *label_list[LABELS_MAX];
	Pprof__Sample sample = PPROF__SAMPLE__INIT, *samples = &sample;
	Pprof__Profile part = PPROF__PROFILE__INIT;
	uint32_t thread = w->cube->tags.items[row->tag].thread;
	int r;

	for (size_t i = 0; i < LABELS_MAX; i++)
		label_list[i] = &labels[i];
	if (thread != CUBE_NO_THREAD && (r = label_sample(w, thread, labels, &sample.n_label)) < 0)
		return r;
	if ((r = symbols_stack(&w->symbols, row->stack, &w->stack)) < 0)
		return r;
	w->ids.len = 0;
	for (size_t i = 0; i < w->stack.len && !r; i++)
		r = vec_push(&w->ids, (uint64_t)w->stack.items[i] + 1);
	if (r < 0)
		return r;
	sample.n_location_id = w->ids.len;
	sample.location_id = w->ids.items;
	sample.n_value = profile_recording(w->p)->interval_ns ? 2 : 1;
	sample.value = values;
	sample.label = label_list;
	part.n_sample = 1;
	part.sample = &samples;
	return put(w, &part);
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

static int put_head(struct pprof *w)
{
	const struct recording facts = profile_facts(w->p), *m = &facts;
	Pprof__ValueType samples, cpu, *types[] = { &samples, &cpu };
	Pprof__Profile part = PPROF__PROFILE__INIT;
	int r;

	if ((r = value_type(w, "samples", "count", &samples)) < 0 ||
	    (r = value_type(w, "cpu", "nanoseconds", &cpu)) < 0)
		return r;
	part.n_sample_type = m->interval_ns ? 2 : 1;
	part.sample_type = types;
	part.time_nanos = (int64_t)m->start_realtime_ns;
	part.duration_nanos = (int64_t)m->duration_ns;
	part.period_type = m->interval_ns ? &cpu : &samples;
	part.period = m->interval_ns ? (int64_t)m->interval_ns : 1;
	part.default_sample_type = part.period_type->type;
	r = put(w, &part);
	return r ? r : put_comments(w);
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

	if ((r = symbols_init(&w.symbols, x->p)) < 0 || (r = gzip_new(x->out, &w.gzip)) < 0)
		return r;
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
	.finish = write_pprof,
};
