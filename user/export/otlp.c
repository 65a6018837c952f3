/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * OpenTelemetry's profiles, as a Collector takes them: the body of an export request, otlp.proto,
 * not compressed. A profile for each kind of samples, of one sample type, as the format has it. CPU
 * time is samples/count, which every receiver stores, and the period says how long a sample is: 1
 * ns where values are exact times. The kind of a frame is its profile.frame.type.
 *
 * What runs in different containers, as far as the cube tells threads apart, is of different
 * resources, with a profile each.
 *
 * The samples stand before the dictionary that they point into, and messages around them begin with
 * their length: both are held in memory, packed.
 */
#include "export/otlp.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "base/escape.h"
#include "export/export.h"
#include "export/symbols.h"
#include "export/value_type.h"
#include "otlp.pb-c.h"
#include "profile/idmap.h"

#define MESSAGE_MAX INT32_MAX               /* of protobuf */
#define ATTRIBUTES_MAX (4 + LABEL_SET_MAX)  /* of a sample */
#define NOWHERE UINT32_MAX                  /* in no container, or in several */
#define NO_SERVICE "unknown_service:python" /* what OpenTelemetry calls a program without name */

/* Indices into the attribute table, by enum frame_type; markers have none. */
enum { ATTRIBUTE_NONE, ATTRIBUTE_CPYTHON, ATTRIBUTE_NATIVE, ATTRIBUTE_KERNEL };

/* A message as it is put together. */
struct packed {
	ProtobufCBuffer buffer; /* appends to bytes */
	struct strbuf bytes;
};

static void append_packed(ProtobufCBuffer *buffer, size_t len, const uint8_t *bytes)
{
	struct packed *p = (struct packed *)((char *)buffer - offsetof(struct packed, buffer));

	strbuf_append(&p->bytes, bytes, len);
}

static void packed_release(struct packed *p)
{
	strbuf_release(&p->bytes);
}

#define PACKED_INIT                                                         \
	{                                                                   \
		.buffer = { .append = append_packed }, .bytes = STRBUF_INIT \
	}

/* The span that a sample is of. */
struct link {
	uint8_t trace[PROFILE_TRACE_ID_BYTES], span[PROFILE_SPAN_ID_BYTES];
};

struct otlp {
	const struct profile *p;
	const struct cube *cube;
	const struct export_opts *o;
	struct symbols symbols;
	struct packed samples;    /* a Profile */
	struct packed profiles;   /* a ScopeProfiles: those of a resource */
	struct packed resources;  /* an ExportRequest: ResourceProfiles that are complete */
	struct packed dictionary; /* a Dictionary */
	struct symbols_stack stack;
	VEC(int32_t) locations;
	uint32_t *stack_of;    /* by stack id: index in the stack table; 0: not there yet */
	uint32_t *process_of;  /* by process: its first attribute; 0: none yet */
	uint32_t *place_of;    /* by process: the first one that runs where it does; NOWHERE */
	uint32_t common_place; /* of rows that tell no threads apart, likewise */
	uint32_t stacks, attributes; /* entries of these tables so far */
	uint32_t *label_of;          /* by set of labels: the attribute that its own one is */
	uint32_t *link_of;           /* by set of labels: its link; 0: not there yet */
	VEC(struct link) links;      /* without entry 0 */
	struct idmap link_ids;       /* of them */
	uint32_t labelled;           /* the thread that thread_attribute is of */
	uint32_t thread_attribute;   /* its first */
};

static void otlp_release(struct otlp *w)
{
	symbols_release(&w->symbols);
	packed_release(&w->samples);
	packed_release(&w->profiles);
	packed_release(&w->resources);
	packed_release(&w->dictionary);
	vec_release(&w->stack);
	vec_release(&w->locations);
	free(w->stack_of);
	free(w->process_of);
	free(w->place_of);
	free(w->label_of);
	free(w->link_of);
	vec_release(&w->links);
	idmap_release(&w->link_ids);
}

static int put_dictionary(struct otlp *w, const Otlp__Dictionary *part)
{
	otlp__dictionary__pack_to_buffer(part, &w->dictionary.buffer);
	return strbuf_error(&w->dictionary.bytes);
}

static int put_attribute(struct otlp *w, const char *key, Otlp__AnyValue *value)
{
	Otlp__KeyValueAndUnit attribute = OTLP__KEY_VALUE_AND_UNIT__INIT, *attributes = &attribute;
	Otlp__Dictionary part = OTLP__DICTIONARY__INIT;
	uint32_t key_id;
	int r = symbols_text(&w->symbols, key, &key_id);

	if (r < 0)
		return r;
	attribute.key_strindex = (int32_t)key_id;
	attribute.value = value;
	part.n_attribute_table = 1;
	part.attribute_table = &attributes;
	w->attributes++;
	return put_dictionary(w, &part);
}

static int put_text_attribute(struct otlp *w, const char *key, const char *text)
{
	Otlp__AnyValue value = OTLP__ANY_VALUE__INIT;

	value.value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
	value.string_value = (char *)text;
	return put_attribute(w, key, &value);
}

static int put_number_attribute(struct otlp *w, const char *key, int64_t number)
{
	Otlp__AnyValue value = OTLP__ANY_VALUE__INIT;

	value.value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
	value.int_value = number;
	return put_attribute(w, key, &value);
}

/* Entry 0 of each table, and the kinds of frames. */
static int put_zero_values(struct otlp *w)
{
	Otlp__Mapping mapping = OTLP__MAPPING__INIT, *mappings = &mapping;
	Otlp__Location location = OTLP__LOCATION__INIT, *locations = &location;
	Otlp__Function function = OTLP__FUNCTION__INIT, *functions = &function;
	Otlp__Link link = OTLP__LINK__INIT, *links = &link;
	Otlp__KeyValueAndUnit attribute = OTLP__KEY_VALUE_AND_UNIT__INIT, *attributes = &attribute;
	Otlp__Stack stack = OTLP__STACK__INIT, *stacks = &stack;
	Otlp__Dictionary part = OTLP__DICTIONARY__INIT;
	int r;

	part.n_mapping_table = part.n_location_table = part.n_function_table = 1;
	part.n_link_table = part.n_attribute_table = part.n_stack_table = 1;
	part.mapping_table = &mappings;
	part.location_table = &locations;
	part.function_table = &functions;
	part.link_table = &links;
	part.attribute_table = &attributes;
	part.stack_table = &stacks;
	w->stacks = w->attributes = 1;
	if ((r = put_dictionary(w, &part)) < 0 ||
	    (r = put_text_attribute(w, "profile.frame.type", "cpython")) < 0 ||
	    (r = put_text_attribute(w, "profile.frame.type", "native")) < 0)
		return r;
	return put_text_attribute(w, "profile.frame.type", "kernel");
}

static int put_stack(struct otlp *w, uint32_t stack, uint32_t *index)
{
	Otlp__Stack entry = OTLP__STACK__INIT, *entries = &entry;
	Otlp__Dictionary part = OTLP__DICTIONARY__INIT;
	int r = 0;

	if (!w->stack_of[stack]) {
		r = symbols_stack(&w->symbols, stack, &w->stack);
		w->locations.len = 0;
		for (size_t i = 0; i < w->stack.len && !r; i++)
			r = vec_push(&w->locations, (int32_t)w->stack.items[i] + 1);
		if (r < 0)
			return r;
		entry.n_location_indices = w->locations.len;
		entry.location_indices = w->locations.items;
		part.n_stack_table = 1;
		part.stack_table = &entries;
		r = put_dictionary(w, &part);
		w->stack_of[stack] = w->stacks++;
	}
	*index = w->stack_of[stack];
	return r;
}

/* Two attributes, a name and a number; *first is the index of the former. */
static int put_names(struct otlp *w, const char *name_key, uint32_t name, const char *number_key,
		     uint32_t number, uint32_t *first)
{
	uint32_t text;
	int r = symbols_string(&w->symbols, name, &text);

	*first = w->attributes;
	if (!r)
		r = put_text_attribute(w, name_key, strtab_get(w->symbols.strings, text));
	return r ? r : put_number_attribute(w, number_key, number);
}

static int label_thread(struct otlp *w, uint32_t index, int32_t *attributes, size_t *count)
{
	const struct thread *thread = &w->p->threads.items[index];
	const struct process *process = &w->p->processes.items[thread->process];
	uint32_t *of_process = &w->process_of[thread->process];
	int r = 0;

	if (w->o->processes) {
		if (!*of_process)
			r = put_names(w, "process.executable.name", process->name, "process.pid",
				      process->pid, of_process);
		attributes[(*count)++] = (int32_t)*of_process;
		attributes[(*count)++] = (int32_t)*of_process + 1;
	}
	if (w->o->threads && !r) {
		if (w->labelled != index) /* rows are in order of threads */
			r = put_names(w, "thread.name", thread->name, "thread.id", thread->tid,
				      &w->thread_attribute);
		w->labelled = index;
		attributes[(*count)++] = (int32_t)w->thread_attribute;
		attributes[(*count)++] = (int32_t)w->thread_attribute + 1;
	}
	return r;
}

/* All of its digits; of another length it is none. */
static bool read_id(const char *text, size_t len, uint8_t *id, size_t bytes)
{
	static const char digits[] = "0123456789abcdef";

	if (len != 2 * bytes)
		return false;
	for (size_t i = 0; i < len; i++) {
		const char *digit = text[i] ? strchr(digits, text[i]) : NULL;

		if (!digit)
			return false;
		id[i / 2] = (uint8_t)(id[i / 2] << 4 | (digit - digits));
	}
	return true;
}

/* Do the labels of a set tell a span? One of zeros is none. */
static bool read_link(const struct profile *p, uint32_t set, struct link *link)
{
	static const struct link none;
	const struct label_entry *entries = labeltab_entries(p->labels);
	bool has_trace = false, has_span = false;

	*link = none;
	for (; set; set = entries[set].parent) {
		const char *name = strtab_get(p->strings, entries[set].name);
		const char *text = strtab_get(p->strings, entries[set].value);
		size_t len = strtab_len(p->strings, entries[set].value);

		if (!strcmp(name, PROFILE_TRACE_ID))
			has_trace = read_id(text, len, link->trace, sizeof(link->trace));
		if (!strcmp(name, PROFILE_SPAN_ID))
			has_span = read_id(text, len, link->span, sizeof(link->span));
	}
	return has_trace && has_span && memcmp(link->trace, none.trace, sizeof(none.trace)) != 0 &&
	       memcmp(link->span, none.span, sizeof(none.span)) != 0;
}

static int put_link(struct otlp *w, const struct link *link)
{
	Otlp__Link entry = OTLP__LINK__INIT, *entries = &entry;
	Otlp__Dictionary part = OTLP__DICTIONARY__INIT;
	int r = vec_push(&w->links, *link);

	if (r < 0)
		return r;
	entry.trace_id = (ProtobufCBinaryData){ sizeof(link->trace), (uint8_t *)link->trace };
	entry.span_id = (ProtobufCBinaryData){ sizeof(link->span), (uint8_t *)link->span };
	part.n_link_table = 1;
	part.link_table = &entries;
	return put_dictionary(w, &part);
}

/* The index of the span that the labels tell of, in the table of links; 0: of none. */
static int find_link(struct otlp *w, uint32_t set, int32_t *index)
{
	struct link link;
	uint64_t hash;
	size_t at = IDMAP_START;
	uint32_t found;
	int r;

	*index = (int32_t)w->link_of[set];
	if (*index || !read_link(w->p, set, &link))
		return 0;
	hash = hash_bytes(&link, sizeof(link), 0);
	while ((found = idmap_next(&w->link_ids, hash, &at)) != IDMAP_NONE)
		if (!memcmp(&w->links.items[found], &link, sizeof(link)))
			break;
	if (found == IDMAP_NONE) {
		if ((r = idmap_reserve(&w->link_ids)) < 0 || (r = put_link(w, &link)) < 0)
			return r;
		found = (uint32_t)w->links.len - 1;
		idmap_insert(&w->link_ids, hash, found);
	}
	*index = (int32_t)(w->link_of[set] = found + 1);
	return 0;
}

/* The labels that the sample was recorded with. */
static int label_set(struct otlp *w, uint32_t set, int32_t *attributes, size_t *count)
{
	const struct label_entry *entries = labeltab_entries(w->p->labels);
	int r = 0;

	for (; set && !r; set = entries[set].parent) {
		uint32_t *attribute = &w->label_of[set], key, value;

		if (export_leaves_out(w->o, w->p, &entries[set]))
			continue;
		if (!*attribute) {
			if ((r = symbols_string(&w->symbols, entries[set].name, &key)) < 0 ||
			    (r = symbols_string(&w->symbols, entries[set].value, &value)) < 0)
				return r;
			*attribute = w->attributes;
			r = put_text_attribute(w, strtab_get(w->symbols.strings, key),
					       strtab_get(w->symbols.strings, value));
		}
		attributes[(*count)++] = (int32_t)*attribute;
	}
	return r;
}

static int put_sample(struct otlp *w, const struct cube_cell *row, uint64_t scale)
{
	Otlp__Sample sample = OTLP__SAMPLE__INIT, *samples = &sample;
	Otlp__Profile part = OTLP__PROFILE__INIT;
	const struct cube_tag *tag = &w->cube->tags.items[row->tag];
	int32_t attributes[ATTRIBUTES_MAX];
	int64_t value = value_scaled(row->value, scale);
	uint32_t stack;
	int r = put_stack(w, row->stack, &stack);

	if (!r && tag->thread != CUBE_NO_THREAD)
		r = label_thread(w, tag->thread, attributes, &sample.n_attribute_indices);
	if (!r)
		r = label_set(w, tag->labels, attributes, &sample.n_attribute_indices);
	if (!r)
		r = find_link(w, tag->labels, &sample.link_index);
	if (r < 0)
		return r;
	sample.stack_index = (int32_t)stack;
	sample.attribute_indices = attributes;
	sample.n_values = 1;
	sample.values = &value;
	part.n_samples = 1;
	part.samples = &samples;
	otlp__profile__pack_to_buffer(&part, &w->samples.buffer);
	return strbuf_error(&w->samples.bytes);
}

static int value_type(struct otlp *w, const char *type, const char *unit, Otlp__ValueType *out)
{
	uint32_t type_id, unit_id;
	int r;

	if ((r = symbols_text(&w->symbols, type, &type_id)) < 0 ||
	    (r = symbols_text(&w->symbols, unit, &unit_id)) < 0)
		return r;
	*out = (Otlp__ValueType)OTLP__VALUE_TYPE__INIT;
	out->type_strindex = (int32_t)type_id;
	out->unit_strindex = (int32_t)unit_id;
	return 0;
}

/* What a profile counts. */
struct counted_type {
	const char *type, *unit, *period_type, *period_unit; /* the latter two NULL: no period */
	uint64_t period, scale;
};

/* CPU time as samples of a period; of unknown length they are their own. */
static void count_samples(const struct value_type *v, struct counted_type *out)
{
	bool has_length = v->scale;

	*out = (struct counted_type){ .type = "samples", .unit = "count", .scale = 1 };
	out->period_type = has_length ? v->period_type : out->type;
	out->period_unit = has_length ? v->period_unit : out->unit;
	out->period = has_length ? v->scale : 1;
}

static struct counted_type type_of_kind(const struct value_type *v)
{
	struct counted_type t = { .type = value_name(v), .unit = v->unit, .scale = v->scale };

	if (v->is_ticks || !strcmp(value_series(v), "process_cpu")) {
		count_samples(v, &t);
	} else if (v->period_unit) { /* by its type Pyroscope names what is stored */
		t.period_type = value_series(v);
		t.period_unit = v->period_unit;
		t.period = v->period;
	}
	return t;
}

static int put_head(struct otlp *w, const struct counted_type *t)
{
	const struct recording facts = profile_facts(w->p), *m = &facts;
	Otlp__Profile part = OTLP__PROFILE__INIT;
	Otlp__ValueType counted, period;
	int r = value_type(w, t->type, t->unit, &counted);

	if (!r && t->period_type)
		r = value_type(w, t->period_type, t->period_unit, &period);
	if (r < 0)
		return r;
	part.sample_type = &counted;
	part.time_unix_nano = m->start_realtime_ns;
	part.duration_nano = m->duration_ns;
	if (t->period_type) {
		part.period_type = &period;
		part.period = value_scaled(t->period, 1);
	}
	otlp__profile__pack_to_buffer(&part, &w->samples.buffer);
	return strbuf_error(&w->samples.bytes);
}

static int put_location(struct otlp *w, size_t index)
{
	static const int32_t types[FRAME_TYPE_COUNT] = { [FRAME_PYTHON] = ATTRIBUTE_CPYTHON,
							 [FRAME_NATIVE] = ATTRIBUTE_NATIVE,
							 [FRAME_KERNEL] = ATTRIBUTE_KERNEL,
							 [FRAME_MARKER] = ATTRIBUTE_NONE,
							 [FRAME_TASK] = ATTRIBUTE_NONE };
	const struct symbols_location *from = &w->symbols.locations.items[index];
	Otlp__Line line = OTLP__LINE__INIT, *lines = &line;
	Otlp__Location location = OTLP__LOCATION__INIT, *locations = &location;
	Otlp__Dictionary part = OTLP__DICTIONARY__INIT;
	int32_t type = types[from->kind];

	line.function_index = (int32_t)from->function + 1;
	line.line = from->line;
	if (from->mapping != SYMBOLS_NO_MAPPING)
		location.mapping_index = (int32_t)from->mapping + 1;
	location.n_lines = 1;
	location.lines = &lines;
	location.n_attribute_indices = type != ATTRIBUTE_NONE;
	location.attribute_indices = &type;
	part.n_location_table = 1;
	part.location_table = &locations;
	return put_dictionary(w, &part);
}

static int put_function(struct otlp *w, uint32_t index)
{
	const struct frame *from = frametab_get(w->symbols.functions, index);
	Otlp__Function function = OTLP__FUNCTION__INIT, *functions = &function;
	Otlp__Dictionary part = OTLP__DICTIONARY__INIT;

	function.name_strindex = (int32_t)from->name;
	function.filename_strindex = (int32_t)from->file;
	function.start_line = from->first_line;
	part.n_function_table = 1;
	part.function_table = &functions;
	return put_dictionary(w, &part);
}

static int put_mapping(struct otlp *w, size_t index)
{
	Otlp__Mapping mapping = OTLP__MAPPING__INIT, *mappings = &mapping;
	Otlp__Dictionary part = OTLP__DICTIONARY__INIT;

	mapping.filename_strindex = (int32_t)w->symbols.mappings.items[index];
	part.n_mapping_table = 1;
	part.mapping_table = &mappings;
	return put_dictionary(w, &part);
}

static int put_string(struct otlp *w, uint32_t id)
{
	char *string = (char *)strtab_get(w->symbols.strings, id);
	Otlp__Dictionary part = OTLP__DICTIONARY__INIT;

	part.n_string_table = 1;
	part.string_table = &string;
	return put_dictionary(w, &part);
}

static int put_tables(struct otlp *w)
{
	int r = 0;

	for (size_t i = 0; i < w->symbols.locations.len && !r; i++)
		r = put_location(w, i);
	for (uint32_t i = 0; i < frametab_count(w->symbols.functions) && !r; i++)
		r = put_function(w, i);
	for (size_t i = 0; i < w->symbols.mappings.len && !r; i++)
		r = put_mapping(w, i);
	for (uint32_t i = 0; i < strtab_count(w->symbols.strings) && !r; i++)
		r = put_string(w, i);
	return r;
}

static ProtobufCBinaryData as_bytes(const struct packed *p)
{
	return (ProtobufCBinaryData){ p->bytes.len, (uint8_t *)p->bytes.bytes };
}

/* w->samples are one of the resource's profiles. */
static int put_profile(struct otlp *w)
{
	Otlp__ScopeProfiles part = OTLP__SCOPE_PROFILES__INIT;
	ProtobufCBinaryData bytes = as_bytes(&w->samples);

	part.n_profiles = 1;
	part.profiles = &bytes;
	otlp__scope_profiles__pack_to_buffer(&part, &w->profiles.buffer);
	return strbuf_error(&w->profiles.bytes);
}

/* The scope must be there even if it says nothing: without it a Parca server dies. */
static int put_scope(struct otlp *w)
{
	Otlp__Scope scope = OTLP__SCOPE__INIT;
	Otlp__ScopeProfiles part = OTLP__SCOPE_PROFILES__INIT;

	scope.name = (char *)"pyebpf";
	scope.version = (char *)PYEBPF_VERSION;
	part.scope = &scope;
	otlp__scope_profiles__pack_to_buffer(&part, &w->profiles.buffer);
	return strbuf_error(&w->profiles.bytes);
}

/* Values may come from targets: they are made valid UTF-8. */
static int put_resource_attribute(const char *key, const char *text, struct packed *out)
{
	_cleanup_(strbuf_releasep) struct strbuf valid = STRBUF_INIT;
	Otlp__AnyValue value = OTLP__ANY_VALUE__INIT;
	Otlp__KeyValue attribute = OTLP__KEY_VALUE__INIT, *attributes = &attribute;
	Otlp__Resource part = OTLP__RESOURCE__INIT;
	int r = escape_append(&valid, text, strlen(text), "");

	if (r < 0)
		return r;
	value.value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
	value.string_value = (char *)strbuf_str(&valid);
	attribute.key = (char *)key;
	attribute.value = &value;
	part.n_attributes = 1;
	part.attributes = &attributes;
	otlp__resource__pack_to_buffer(&part, &out->buffer);
	return strbuf_error(&out->bytes);
}

/* Container and pod of the process. */
static int put_place(const struct otlp *w, const struct process *process, struct packed *out)
{
	const struct {
		const char *key;
		uint32_t value;
	} known[] = {
		{ "container.id", process->container },
		{ "k8s.pod.uid", process->pod_uid },
		{ "k8s.pod.name", process->pod_name },
		{ "k8s.namespace.name", process->pod_namespace },
	};
	int r = 0;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]) && !r; i++)
		if (known[i].value)
			r = put_resource_attribute(known[i].key,
						   strtab_get(w->p->strings, known[i].value), out);
	return r;
}

static int make_resource(const struct otlp *w, uint32_t place, struct packed *out)
{
	const struct export_attributes *given = &w->o->resource;
	int r = 0;

	for (size_t i = 0; i < given->count && !r; i++)
		r = put_resource_attribute(given->items[i].key, given->items[i].value, out);
	if (!given->count && !r)
		r = put_resource_attribute("service.name", NO_SERVICE, out);
	if (!given->count && !r && profile_recording(w->p)->host)
		r = put_resource_attribute("host.name", profile_recording(w->p)->host, out);
	return r || place == NOWHERE ? r : put_place(w, &w->p->processes.items[place], out);
}

/* The messages around the profiles w has. */
static int finish_resource(struct otlp *w, uint32_t place)
{
	_cleanup_(packed_release) struct packed resource = PACKED_INIT, wrapped = PACKED_INIT;
	Otlp__ResourceProfiles profiles = OTLP__RESOURCE_PROFILES__INIT;
	Otlp__ExportRequest part = OTLP__EXPORT_REQUEST__INIT;
	ProtobufCBinaryData bytes;
	int r;

	r = make_resource(w, place, &resource);
	if (r < 0)
		return r;
	profiles.resource = as_bytes(&resource);
	profiles.scope_profiles = as_bytes(&w->profiles);
	otlp__resource_profiles__pack_to_buffer(&profiles, &wrapped.buffer);
	if ((r = strbuf_error(&wrapped.bytes)) < 0)
		return r;
	bytes = as_bytes(&wrapped);
	part.n_resource_profiles = 1;
	part.resource_profiles = &bytes;
	otlp__export_request__pack_to_buffer(&part, &w->resources.buffer);
	return strbuf_error(&w->resources.bytes);
}

static uint32_t place_of_row(const struct otlp *w, const struct cube_cell *row)
{
	uint32_t thread = w->cube->tags.items[row->tag].thread;

	return thread == CUBE_NO_THREAD ? w->common_place
					: w->place_of[w->p->threads.items[thread].process];
}

/* The rows of one place and kind; without any, nothing. Returns 1 if there are some. */
static int put_kind(struct otlp *w, uint32_t place, uint16_t kind)
{
	struct value_type v;
	struct counted_type t;
	size_t samples = 0;
	int r;

	value_type_of(w->p, kind, VALUE_NAMES_COMMON, &v);
	t = type_of_kind(&v);
	strbuf_truncate(&w->samples.bytes, 0);
	for (size_t i = 0; i < w->cube->all.cells.len; i++) {
		const struct cube_cell *row = &w->cube->all.cells.items[i];

		if (w->cube->tags.items[row->tag].kind != kind || place_of_row(w, row) != place)
			continue;
		if (!samples++ && (r = put_head(w, &t)) < 0)
			return r;
		if ((r = put_sample(w, row, t.scale)) < 0)
			return r;
	}
	r = samples ? put_profile(w) : 0;
	return r < 0 ? r : samples > 0;
}

static int put_resource(struct otlp *w, uint32_t place)
{
	bool has_any = false;
	int r;

	strbuf_truncate(&w->profiles.bytes, 0);
	r = put_scope(w);
	for (size_t kind = 0; kind <= w->p->kinds.len && r >= 0; kind++) {
		r = put_kind(w, place, (uint16_t)kind);
		has_any |= r > 0;
	}
	if (r < 0)
		return r;
	return has_any ? finish_resource(w, place) : 0;
}

static bool same_place(const struct process *a, const struct process *b)
{
	return a->container == b->container && a->pod_uid == b->pod_uid &&
	       a->pod_name == b->pod_name && a->pod_namespace == b->pod_namespace;
}

/* Where the caller names the resource, that is all that is said of it. */
static void find_places(struct otlp *w)
{
	const struct process *items = w->p->processes.items;

	for (uint32_t i = 0; i < w->p->processes.len; i++) {
		uint32_t first = 0;

		while (!same_place(&items[first], &items[i]))
			first++;
		w->place_of[i] =
			w->o->resource.count || !process_has_place(&items[i]) ? NOWHERE : first;
	}
	w->common_place = w->p->processes.len ? w->place_of[0] : NOWHERE;
	for (size_t i = 0; i < w->p->processes.len; i++)
		if (w->place_of[i] != w->common_place)
			w->common_place = NOWHERE;
}

/* Straight to the stream, the errors of which are left to whoever closes it. */
struct stream {
	ProtobufCBuffer buffer;
	FILE *out;
};

static void append_to_stream(ProtobufCBuffer *buffer, size_t len, const uint8_t *bytes)
{
	struct stream *s = (struct stream *)((char *)buffer - offsetof(struct stream, buffer));

	fwrite(bytes, 1, len, s->out);
}

static int write_request(const struct otlp *w, FILE *out)
{
	struct stream stream = { .buffer = { .append = append_to_stream }, .out = out };
	Otlp__ExportRequest request = OTLP__EXPORT_REQUEST__INIT;

	if (w->resources.bytes.len + w->dictionary.bytes.len > MESSAGE_MAX)
		return err_set(-EFBIG, "a profile beyond 2 GiB, which no reader of protobuf takes");
	if (w->resources.bytes.len) /* none without a tick */
		append_to_stream(&stream.buffer, w->resources.bytes.len,
				 (const uint8_t *)w->resources.bytes.bytes);
	request.dictionary = as_bytes(&w->dictionary);
	otlp__export_request__pack_to_buffer(&request, &stream.buffer);
	return 0;
}

static int write_otlp(struct exporting *x)
{
	const struct profile *p = x->p;
	_cleanup_(otlp_release) struct otlp w = { .p = p,
						  .cube = x->cube,
						  .o = x->o,
						  .samples = PACKED_INIT,
						  .profiles = PACKED_INIT,
						  .resources = PACKED_INIT,
						  .dictionary = PACKED_INIT,
						  .labelled = CUBE_NO_THREAD };
	int r;

	w.stack_of = calloc(stacktab_count(p->stacks), sizeof(*w.stack_of));
	w.process_of = calloc(p->processes.len + 1, sizeof(*w.process_of));
	w.place_of = calloc(p->processes.len + 1, sizeof(*w.place_of));
	w.label_of = calloc(labeltab_count(p->labels), sizeof(*w.label_of));
	w.link_of = calloc(labeltab_count(p->labels), sizeof(*w.link_of));
	if (!w.stack_of || !w.process_of || !w.place_of || !w.label_of || !w.link_of)
		return -ENOMEM;
	find_places(&w);
	if ((r = symbols_init(&w.symbols, p, SYMBOLS_PYTHON_PATH)) < 0 ||
	    (r = put_zero_values(&w)) < 0)
		return r;
	r = put_resource(&w, NOWHERE);
	for (uint32_t i = 0; i < p->processes.len && !r; i++)
		if (w.place_of[i] == i)
			r = put_resource(&w, i);
	if (!r)
		r = put_tables(&w);
	return r ? r : write_request(&w, x->out);
}

bool otlp_answer_rejects(const uint8_t *bytes, size_t len)
{
	Otlp__ExportResponse *r = otlp__export_response__unpack(NULL, len, bytes);
	bool rejects = r && r->partial_success && r->partial_success->rejected_profiles;

	if (r)
		otlp__export_response__free_unpacked(r, NULL);
	return rejects;
}

static const char *const suffixes[] = { ".otlp", NULL };

const struct exporter exporter_otlp = {
	.name = "otlp",
	.suffixes = suffixes,
	.help = "protobuf, an export request of OpenTelemetry profiles, for a Collector",
	.needs = CUBE_KINDS,
	.finish = write_otlp,
};
