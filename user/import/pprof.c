/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * pprof's format (export/pprof.proto), as Go, Pyroscope, Parca and others write it. Its parts come
 * in any order, what they name perhaps last: one look takes the tables, another the samples. Each
 * part is unpacked alone, so that memory grows with the tables and not with the samples.
 *
 * A type of values is a kind of samples, of its name and unit; what the file says is to be shown
 * first, is. Where samples are counted, and all of them weigh what the file says its period of CPU
 * time is, they are ticks. Wall time that is the sum of both its parts is left out. Labels that
 * pyebpf and others have for threads and processes are these again. Files of sources are
 * functions', those of mappings modules'.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "base/varint.h"
#include "import/byte_stream.h"
#include "import/import.h"
#include "import/intake.h"
#include "import/key_map.h"
#include "pprof.pb-c.h"
#include "profile/kinds.h"

#define PART_BYTES_MAX (2u << 20)
#define STRINGS_BYTES_MAX (1u << 30)
#define TYPES_MAX 64
#define UNIT_BYTES_MAX 64      /* of a label's number: each number makes a text with it */
#define LINES_REMEMBERED_MIN 8 /* a location of fewer is put on a stack line by line */
#define HEAD_BYTES 20          /* of a part: a tag, a length */

enum wire { WIRE_VARINT = 0, WIRE_LEN = 2 };
#define FIELD_SAMPLE 2

#define COUNT "count"
#define SAMPLES "samples"

/* Indices of strings are of the file. */
struct value_name {
	int64_t type, unit;
};

struct function {
	int64_t name, file;
	uint32_t first_line;
};

struct line {
	uint64_t function; /* its id */
	uint32_t line;
};

struct location {
	uint64_t mapping, address;
	uint32_t first, count; /* of its lines; innermost first; then of its frames, likewise */
	uint64_t offset;       /* where it stands, for messages */
};

/* What becomes of a type of values. */
enum column_use { COLUMN_IS_KIND, COLUMN_IS_TICKS, COLUMN_IS_LEFT_OUT };
struct column {
	enum column_use use;
	struct intake_values values;
};

struct pprof {
	struct content *content;
	struct byte_stream stream;
	uint64_t part_at; /* where the part at hand begins */

	VEC(char) text; /* strings, each with its NUL */
	VEC(uint32_t) strings;
	VEC(struct value_name) types;
	VEC(struct function) functions;
	VEC(int64_t) mappings; /* their files */
	VEC(struct location) locations;
	VEC(struct line) lines;
	struct key_map function_ids, mapping_ids, location_ids;
	VEC(int64_t) comments;
	struct value_name period_type;
	int64_t period, time_ns, duration_ns, first_type;

	bool has_columns, is_ticks; /* see find_ticks() */
	struct column columns[TYPES_MAX];
	VEC(uint32_t) interned; /* of strings: id in the profile, plus one; 0: not asked for yet */
	VEC(uint32_t) frames;   /* of all locations: their lines' */
	struct key_map stacks;  /* by stack and row of a location with many lines: stack with it */
	uint32_t recording;     /* index */
	struct strbuf word;
};

static void pprof_free(void *reader)
{
	struct pprof *f = reader;

	byte_stream_release(&f->stream);
	vec_release(&f->text);
	vec_release(&f->strings);
	vec_release(&f->types);
	vec_release(&f->functions);
	vec_release(&f->mappings);
	vec_release(&f->locations);
	vec_release(&f->lines);
	key_map_release(&f->function_ids);
	key_map_release(&f->mapping_ids);
	key_map_release(&f->location_ids);
	vec_release(&f->comments);
	vec_release(&f->interned);
	vec_release(&f->frames);
	key_map_release(&f->stacks);
	strbuf_release(&f->word);
	free(f);
}

DEFINE_CLEANUP(struct pprof *, pprof_free)

static void part_free(Pprof__Profile *part)
{
	pprof__profile__free_unpacked(part, NULL);
}

DEFINE_CLEANUP(Pprof__Profile *, part_free)

static int malformed_at(uint64_t offset, const char *what)
{
	return err_set(-EBADMSG, "at byte %" PRIu64 ": %s", offset, what);
}

static int malformed(const struct pprof *f, const char *what)
{
	return malformed_at(f->part_at, what);
}

/* --- parts ------------------------------------------------------------------------------------ */

/* The size of the field that begins at p, tag included; 0: no field of a profile. */
static uint64_t field_size(const uint8_t *p, const uint8_t *end, uint32_t *number)
{
	const uint8_t *at = p;
	uint64_t tag, value;

	if (varint_get_max(&at, end, UINT32_MAX, &tag) < 0 || !(tag >> 3) ||
	    varint_get(&at, end, &value) < 0)
		return 0;
	*number = (uint32_t)(tag >> 3);
	if ((tag & 7) == WIRE_VARINT)
		return (uint64_t)(at - p);
	if ((tag & 7) != WIRE_LEN || value > UINT64_MAX - HEAD_BYTES)
		return 0;
	return (uint64_t)(at - p) + value;
}

/*
 * The next part. 1 and *part, which is NULL for samples where only tables are wanted; or the other
 * way round; 0 at the end.
 */
static int next_part(struct pprof *f, bool wants_samples, Pprof__Profile **part)
{
	struct byte_stream *s = &f->stream;
	uint32_t number = 0;
	uint64_t size;
	int r = byte_stream_fill(s, HEAD_BYTES);

	f->part_at = byte_stream_offset(s);
	if (r < 0 || s->p == s->end)
		return r;
	size = field_size(s->p, s->end, &number);
	if (!size)
		return malformed(f, "no field as a profile of pprof has them");
	if (size > PART_BYTES_MAX)
		return malformed(f, "a part that says it is longer than 2 MiB");
	r = byte_stream_fill(s, (size_t)size);
	if (r < 0)
		return r;
	if ((size_t)(s->end - s->p) < size)
		return malformed(f, "it ends within this part");
	if ((number == FIELD_SAMPLE) == wants_samples) {
		*part = pprof__profile__unpack(NULL, (size_t)size, s->p);
		if (!*part)
			return malformed(f, "a part that is no message of pprof's");
	}
	s->p += size;
	return 1;
}

typedef int take_part(struct pprof *f, struct profile *p, const Pprof__Profile *part);

/* Those of the kind that is wanted, up to `limit` more samples of p. 1; 0: that was the last. */
static int read_parts(struct pprof *f, bool wants_samples, take_part *take, struct profile *p,
		      size_t limit)
{
	int more = 1;

	while (more && (!p || p->samples.len < limit)) {
		_cleanup_(part_freep) Pprof__Profile *part = NULL;
		int r;

		more = next_part(f, wants_samples, &part);
		if (more < 0)
			return more;
		r = part ? take(f, p, part) : 0;
		if (r < 0)
			return r;
	}
	return more;
}

static int begin_parts(struct pprof *f)
{
	byte_stream_release(&f->stream);
	return byte_stream_open(&f->stream, f->content, 0, BYTE_STREAM_TO_END, false);
}

/* --- tables ----------------------------------------------------------------------------------- */

static int take_string(struct pprof *f, const char *text)
{
	size_t len = strlen(text);

	if (f->strings.len >= INTAKE_ROWS_MAX || len > STRINGS_BYTES_MAX - f->text.len - 1)
		return err_set(-E2BIG, "more than %u strings, or 1 GiB of them", INTAKE_ROWS_MAX);
	if (!f->strings.len && len)
		return malformed(f, "the first string is not empty");
	if (vec_push(&f->strings, (uint32_t)f->text.len) < 0)
		return -ENOMEM;
	return vec_append(&f->text, text, len + 1);
}

/* An id is 1 or more, and no other's. */
static int take_id(struct pprof *f, struct key_map *ids, uint64_t id, size_t row)
{
	uint32_t other;

	if (!id)
		return malformed(f, "an id of 0");
	if (key_map_find(ids, 0, id, &other))
		return malformed(f, "an id that another one has");
	return key_map_set(ids, 0, id, (uint32_t)row);
}

static uint32_t line_of(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

static int take_function(struct pprof *f, const Pprof__Function *from)
{
	struct function function = { .name = from->name ? from->name : from->system_name,
				     .file = from->filename,
				     .first_line = line_of(from->start_line) };
	int r = take_id(f, &f->function_ids, from->id, f->functions.len);

	return r ? r : vec_push(&f->functions, function);
}

static int take_mapping(struct pprof *f, const Pprof__Mapping *from)
{
	int r = take_id(f, &f->mapping_ids, from->id, f->mappings.len);

	return r ? r : vec_push(&f->mappings, from->filename);
}

static int take_location(struct pprof *f, const Pprof__Location *from)
{
	struct location location = { .mapping = from->mapping_id,
				     .address = from->address,
				     .first = (uint32_t)f->lines.len,
				     .count = (uint32_t)from->n_line,
				     .offset = f->part_at };
	int r = take_id(f, &f->location_ids, from->id, f->locations.len);

	if (from->n_line > INTAKE_ROWS_MAX - f->lines.len)
		return err_set(-E2BIG, "more than %u lines", INTAKE_ROWS_MAX);
	for (size_t i = 0; i < from->n_line && !r; i++)
		r = vec_push(&f->lines, ((struct line){ from->line[i]->function_id,
							line_of(from->line[i]->line) }));
	return r ? r : vec_push(&f->locations, location);
}

static int take_type(struct pprof *f, const Pprof__ValueType *from)
{
	if (f->types.len >= TYPES_MAX)
		return malformed(f, "more than 64 types of values");
	return vec_push(&f->types, ((struct value_name){ from->type, from->unit }));
}

/* Fields that it does not have are 0. */
static void take_numbers(struct pprof *f, const Pprof__Profile *part)
{
	if (part->period_type)
		f->period_type =
			(struct value_name){ part->period_type->type, part->period_type->unit };
	f->period = part->period ?: f->period;
	f->time_ns = part->time_nanos ?: f->time_ns;
	f->duration_ns = part->duration_nanos ?: f->duration_ns;
	f->first_type = part->default_sample_type ?: f->first_type;
}

static int take_table(struct pprof *f, struct profile *p, const Pprof__Profile *part)
{
	int r = 0;

	(void)p;
	take_numbers(f, part);
	for (size_t i = 0; i < part->n_sample_type && !r; i++)
		r = take_type(f, part->sample_type[i]);
	for (size_t i = 0; i < part->n_mapping && !r; i++)
		r = take_mapping(f, part->mapping[i]);
	for (size_t i = 0; i < part->n_location && !r; i++)
		r = take_location(f, part->location[i]);
	for (size_t i = 0; i < part->n_function && !r; i++)
		r = take_function(f, part->function[i]);
	for (size_t i = 0; i < part->n_string_table && !r; i++)
		r = take_string(f, part->string_table[i]);
	for (size_t i = 0; i < part->n_comment && !r; i++)
		r = vec_push(&f->comments, part->comment[i]);
	return r;
}

static bool has_string(const struct pprof *f, int64_t index)
{
	return index >= 0 && (uint64_t)index < f->strings.len;
}

static const char *string_of(const struct pprof *f, int64_t index)
{
	return has_string(f, index) ? f->text.items + f->strings.items[index] : "";
}

static bool is_type(const struct pprof *f, struct value_name v, const char *type, const char *unit)
{
	return !strcmp(string_of(f, v.type), type) && !strcmp(string_of(f, v.unit), unit);
}

/* All of what tables name is there. */
static int check_tables(const struct pprof *f)
{
	bool is_right = has_string(f, 0) && has_string(f, f->first_type) &&
			has_string(f, f->period_type.type) && has_string(f, f->period_type.unit);

	for (size_t i = 0; i < f->types.len; i++)
		is_right = is_right && has_string(f, f->types.items[i].type) &&
			   has_string(f, f->types.items[i].unit);
	for (size_t i = 0; i < f->functions.len; i++)
		is_right = is_right && has_string(f, f->functions.items[i].name) &&
			   has_string(f, f->functions.items[i].file);
	for (size_t i = 0; i < f->mappings.len; i++)
		is_right = is_right && has_string(f, f->mappings.items[i]);
	for (size_t i = 0; i < f->comments.len; i++)
		is_right = is_right && has_string(f, f->comments.items[i]);
	if (!is_right)
		return malformed(f, "the file ends, and names a string that is not in it");
	if (!f->types.len)
		return malformed(f, "the file ends, and does not say what its values are");
	return 0;
}

/* --- types of values -------------------------------------------------------------------------- */

/* Names that differ from ours. */
static const struct {
	const char *type, *kind;
	bool is_ours; /* only in files that pyebpf wrote: elsewhere it is another thing */
} kind_names[] = {
	{ "off_cpu", KINDS_OFF_CPU, false },
	{ "rss_growth", "memory", false },
	{ "delay", KINDS_GIL, true },
};

static bool is_from_pyebpf(const struct pprof *f)
{
	return f->comments.len && !strncmp(string_of(f, f->comments.items[0]), "pyebpf ", 7);
}

static const char *kind_of(const struct pprof *f, size_t type)
{
	const char *name = string_of(f, f->types.items[type].type);

	for (size_t i = 0; i < sizeof(kind_names) / sizeof(kind_names[0]); i++)
		if (!strcmp(kind_names[i].type, name) &&
		    (!kind_names[i].is_ours || is_from_pyebpf(f)))
			return kind_names[i].kind;
	return *name ? name : SAMPLES;
}

/* The index of that type of values; their number: there is none. */
static size_t find_type(const struct pprof *f, const char *type, const char *unit)
{
	size_t i = 0;

	while (i < f->types.len && !is_type(f, f->types.items[i], type, unit))
		i++;
	return i;
}

static int check_ratio(struct pprof *f, struct profile *p, const Pprof__Profile *part)
{
	size_t samples = find_type(f, SAMPLES, COUNT), cpu = find_type(f, "cpu", "nanoseconds");

	(void)p;
	for (size_t i = 0; i < part->n_sample; i++) {
		const Pprof__Sample *s = part->sample[i];
		int64_t ns;

		if (s->n_value != f->types.len || s->value[samples] < 0 ||
		    __builtin_mul_overflow(s->value[samples], f->period, &ns) ||
		    ns != s->value[cpu])
			f->is_ticks = false;
	}
	return 0;
}

/* Are the samples ticks of CPU time? By a look at all of them, where the types are right. */
static int find_ticks(struct pprof *f)
{
	bool has_samples = find_type(f, SAMPLES, COUNT) < f->types.len;
	bool has_cpu = find_type(f, "cpu", "nanoseconds") < f->types.len;
	int r;

	f->is_ticks = has_samples && f->types.len == 1; /* of unknown length */
	if (!has_samples || !has_cpu || f->period <= 0 ||
	    !is_type(f, f->period_type, "cpu", "nanoseconds"))
		return 0;
	f->is_ticks = true;
	r = begin_parts(f);
	return r ? r : read_parts(f, true, check_ratio, NULL, 0);
}

/* What the file wants shown; else its last type. */
static size_t first_type(const struct pprof *f)
{
	for (size_t i = 0; f->first_type && i < f->types.len; i++)
		if (!strcmp(string_of(f, f->types.items[i].type), string_of(f, f->first_type)))
			return i;
	return f->types.len - 1;
}

static void choose_columns(struct pprof *f)
{
	size_t samples = find_type(f, SAMPLES, COUNT), cpu = find_type(f, "cpu", "nanoseconds"),
	       off_cpu = find_type(f, "off_cpu", "nanoseconds"),
	       wall = find_type(f, "wall", "nanoseconds");

	if (f->is_ticks) {
		f->columns[samples].use = COLUMN_IS_TICKS;
		if (cpu < f->types.len)
			f->columns[cpu].use = COLUMN_IS_LEFT_OUT;
	}
	if (cpu < f->types.len && off_cpu < f->types.len && wall < f->types.len)
		f->columns[wall].use = COLUMN_IS_LEFT_OUT;
}

static int add_columns(struct pprof *f, struct profile *p)
{
	int r = 0;

	for (size_t i = 0; i < f->types.len && !r; i++) {
		struct intake_values *v = &f->columns[i].values;

		if (f->columns[i].use != COLUMN_IS_KIND)
			continue;
		v->name = kind_of(f, i);
		intake_unit(string_of(f, f->types.items[i].unit), &v->unit, &v->scale);
		r = intake_values_init(v, p);
	}
	return r;
}

static int describe(struct pprof *f, struct recording *r)
{
	size_t first = first_type(f);
	bool is_ticks = f->is_ticks && f->columns[first].use != COLUMN_IS_KIND;
	_cleanup_(strbuf_releasep) struct strbuf source = STRBUF_INIT;

	strbuf_puts(&source, "pprof");
	if (f->comments.len)
		strbuf_appendf(&source, " (%s)", string_of(f, f->comments.items[0]));
	r->is_summed = 1;
	r->has_ended = 1;
	r->start_realtime_ns = f->time_ns > 0 ? (uint64_t)f->time_ns : 0;
	r->duration_ns = f->duration_ns > 0 ? (uint64_t)f->duration_ns : 0;
	if (f->is_ticks && f->types.len > 1) {
		r->interval_ns = (uint64_t)f->period;
		r->rate_hz = (1000000000 + r->interval_ns / 2) / r->interval_ns;
	}
	if (strbuf_error(&source))
		return -ENOMEM;
	return recording_set_text(&r->source, strbuf_str(&source))
		       ?: recording_set_text(&r->mode, is_ticks ? KINDS_CPU : kind_of(f, first));
}

/* --- frames ----------------------------------------------------------------------------------- */

static struct span span_of(const char *text)
{
	return (struct span){ text, strlen(text) };
}

static bool is_kernel_module(const char *file)
{
	return !strncmp(file, "[kernel", 7) || !strncmp(file, "[guest.kernel", 13);
}

/* A string of the file, read once however many rows name it. index: as has_string() wants it. */
static int intern(struct pprof *f, struct profile *p, int64_t index, uint32_t *id)
{
	uint32_t *known = &f->interned.items[index];
	int r = 0;

	if (!*known) {
		r = intake_string(p, span_of(string_of(f, index)), id);
		if (r < 0)
			return r == -EMSGSIZE ? malformed(f, "a name is longer than 1 MiB") : r;
		*known = *id + 1;
	}
	*id = *known - 1;
	return 0;
}

/* frame is whole. */
static int push_frame(struct pprof *f, struct profile *p, const struct frame *frame)
{
	uint32_t id;
	int r = frametab_intern(p->frames, frame, &id);

	return r ? r : vec_push(&f->frames, id);
}

/* module: the string of its file; 0: none. */
static int push_line(struct pprof *f, struct profile *p, const struct location *location,
		     const struct line *line, int64_t module)
{
	const struct function *function;
	struct frame frame = { .kind = FRAME_MARKER };
	int64_t file;
	uint32_t row;
	int r;

	if (!key_map_find(&f->function_ids, 0, line->function, &row))
		return malformed_at(location->offset, "a location in a function that is not there");
	function = &f->functions.items[row];
	file = function->file;
	if (*string_of(f, file)) {
		frame = (struct frame){ .kind = FRAME_PYTHON,
					.line = line->line,
					.first_line = function->first_line };
	} else if (*string_of(f, module)) {
		frame.kind = is_kernel_module(string_of(f, module)) ? FRAME_KERNEL : FRAME_NATIVE;
		file = module;
	}
	r = intern(f, p, function->name, &frame.name);
	if (!r)
		r = intern(f, p, file, &frame.file);
	return r ? r : push_frame(f, p, &frame);
}

/* Nobody named it. */
static int push_address(struct pprof *f, struct profile *p, const struct location *location,
			int64_t module)
{
	struct frame frame = { .kind = is_kernel_module(string_of(f, module)) ? FRAME_KERNEL
									      : FRAME_NATIVE };
	char name[32];
	int r;

	snprintf(name, sizeof(name), "0x%" PRIx64, location->address);
	r = intake_string(p, span_of(name), &frame.name);
	if (!r)
		r = intern(f, p, module, &frame.file);
	return r ? r : push_frame(f, p, &frame);
}

static int resolve_location(struct pprof *f, struct profile *p, struct location *location)
{
	int64_t module = 0;
	uint32_t row, first = (uint32_t)f->frames.len;
	int r = 0;

	if (location->mapping) {
		if (!key_map_find(&f->mapping_ids, 0, location->mapping, &row))
			return malformed_at(location->offset,
					    "a location in a mapping that is not there");
		module = f->mappings.items[row];
	}
	for (uint32_t i = 0; i < location->count && !r; i++)
		r = push_line(f, p, location, &f->lines.items[location->first + i], module);
	if (!location->count) {
		r = push_address(f, p, location, module);
		location->count = 1;
	}
	location->first = first;
	return r;
}

/* --- samples ---------------------------------------------------------------------------------- */

/* What is known of a sample's thread. */
struct owner {
	struct process process;
	struct thread thread;
	bool is_known;
};

/* A number and its unit, "128 bytes". */
static int intern_number(struct pprof *f, struct profile *p, const Pprof__Label *label,
			 uint32_t *id)
{
	const char *unit = string_of(f, label->num_unit);
	int r;

	if (strnlen(unit, UNIT_BYTES_MAX + 1) > UNIT_BYTES_MAX)
		return malformed(f, "the unit of a label is longer than 64 bytes");
	strbuf_truncate(&f->word, 0);
	r = strbuf_appendf(&f->word, "%" PRId64 "%s%s", label->num, *unit ? " " : "", unit);
	return r ? r : intake_string(p, (struct span){ strbuf_str(&f->word), f->word.len }, id);
}

static int add_label(struct pprof *f, struct profile *p, const Pprof__Label *label, uint32_t *set)
{
	uint32_t name, text;
	int r = intern(f, p, label->key, &name);

	if (!r)
		r = *string_of(f, label->str) ? intern(f, p, label->str, &text)
					      : intern_number(f, p, label, &text);
	return r ? r : labeltab_add(p->labels, *set, name, text, set);
}

/* 1: it is no label but whose the sample is; 0. */
static int take_owner(struct pprof *f, struct profile *p, const Pprof__Label *label,
		      struct owner *o)
{
	const char *key = string_of(f, label->key);
	bool has_text = *string_of(f, label->str) != '\0';
	bool is_id = !has_text && label->num >= 0 && label->num <= UINT32_MAX;
	int r = 0;

	if (!strcmp(key, "pid") && is_id)
		o->process.pid = (uint32_t)label->num;
	else if (!strcmp(key, "tid") && is_id)
		o->thread.tid = (uint32_t)label->num;
	else if (!strcmp(key, "process") && has_text)
		r = intern(f, p, label->str, &o->process.name);
	else if (!strcmp(key, "thread") && has_text)
		r = intern(f, p, label->str, &o->thread.name);
	else
		return 0;
	o->is_known = true;
	return r ? r : 1;
}

static int take_labels(struct pprof *f, struct profile *p, const Pprof__Sample *from,
		       struct sample *s, struct owner *o)
{
	int r = 0;

	for (size_t i = 0; i < from->n_label && r >= 0; i++) {
		const Pprof__Label *label = from->label[i];

		if (!has_string(f, label->key) || !has_string(f, label->str) ||
		    !has_string(f, label->num_unit))
			return malformed(f, "a label names a string that is not there");
		r = take_owner(f, p, label, o);
		if (!r)
			r = add_label(f, p, label, &s->labels);
	}
	if (r == -E2BIG)
		return malformed(f, "a sample of more than 64 labels");
	return r < 0 ? r : 0;
}

/*
 * The frames of a location on top of *stack. Of one with many lines that is remembered: else a few
 * bytes, a sample that names it, would cost as much as all of its lines.
 */
static int push_location(struct pprof *f, struct profile *p, uint32_t row, uint32_t *stack)
{
	const struct location *location = &f->locations.items[row];
	bool is_remembered = location->count >= LINES_REMEMBERED_MIN;
	uint32_t below = *stack;
	int r = 0;

	if (is_remembered && key_map_find(&f->stacks, below, row, stack))
		return 0;
	for (uint32_t k = location->count; k-- && !r;)
		r = stacktab_intern(p->stacks, *stack, f->frames.items[location->first + k], stack);
	if (!r && is_remembered)
		r = key_map_set(&f->stacks, below, row, *stack) ?: content_check(f->content);
	return r;
}

/* From the root on: locations stand leaf first, and so do the lines of each. */
static int take_stack(struct pprof *f, struct profile *p, const Pprof__Sample *from,
		      uint32_t *stack)
{
	uint32_t row, depth = 0;
	int r = 0;

	for (size_t i = from->n_location_id; i-- && !r;) {
		if (!key_map_find(&f->location_ids, 0, from->location_id[i], &row))
			return malformed(f, "sample refers to an undefined location");
		if (f->locations.items[row].count > INTAKE_DEPTH_MAX - depth)
			return malformed(f, "a stack deeper than 65,536 frames");
		depth += f->locations.items[row].count;
		r = push_location(f, p, row, stack);
	}
	return r;
}

static int take_values(struct pprof *f, struct profile *p, const Pprof__Sample *from,
		       struct sample s)
{
	int r = 0;

	if (from->n_value != f->types.len)
		return malformed(f, "a sample that has not a value of each type");
	for (size_t i = 0; i < f->types.len && !r; i++)
		if (f->columns[i].use != COLUMN_IS_LEFT_OUT)
			r = intake_value(&f->columns[i].values, p, s, from->value[i]);
	return r == -ERANGE ? malformed(f, "values that add up to more than is possible: 2^53 "
					   "samples, 2^63 of another unit")
			    : r;
}

static int take_sample(struct pprof *f, struct profile *p, const Pprof__Profile *part)
{
	const Pprof__Sample *from = part->sample[0];
	struct owner o = { .process.recording = f->recording };
	struct sample s = { 0 };
	int r = take_labels(f, p, from, &s, &o);

	if (!r)
		r = profile_add_process(p, &o.process, &o.thread.process);
	if (!r)
		r = profile_add_thread(p, &o.thread, &s.thread);
	if (!r)
		r = take_stack(f, p, from, &s.stack);
	if (!r)
		r = take_values(f, p, from, s);
	return r;
}

/* --- the file --------------------------------------------------------------------------------- */

static int open_pprof(struct content *content, struct import_facts *facts, void **out)
{
	_cleanup_(pprof_freep) struct pprof *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	f->content = content;
	if ((r = begin_parts(f)) < 0 || (r = read_parts(f, false, take_table, NULL, 0)) < 0 ||
	    (r = check_tables(f)) < 0 || (r = find_ticks(f)) < 0)
		return r;
	choose_columns(f);
	r = describe(f, &facts->recording);
	if (r < 0)
		return r;
	*out = take_ptr(f);
	return 0;
}

static int begin(struct pprof *f, struct profile *p, const struct import_facts *facts)
{
	int r = vec_reserve(&f->interned, f->strings.len) ?: add_columns(f, p);

	f->recording = facts->index;
	if (!r) {
		f->interned.len = f->strings.len;
		memset(f->interned.items, 0, f->interned.len * sizeof(*f->interned.items));
	}
	for (size_t i = 0; i < f->locations.len && !r; i++)
		r = resolve_location(f, p, &f->locations.items[i]);
	f->has_columns = true;
	return r ? r : begin_parts(f);
}

static int next_pprof(void *reader, struct profile *p, struct import_facts *facts)
{
	struct pprof *f = reader;
	int r = f->has_columns ? 0 : begin(f, p, facts);

	return r ? r : read_parts(f, true, take_sample, p, p->samples.len + IMPORT_BATCH_SAMPLES);
}

/* Is it one of the types of values? */
static bool is_value_type(const uint8_t *p, size_t len)
{
	Pprof__Profile *part = pprof__profile__unpack(NULL, len, p);
	bool is_type = part && part->n_sample_type == 1 && part->sample_type[0]->type > 0 &&
		       !part->sample_type[0]->base.n_unknown_fields;

	if (part)
		part_free(part);
	return is_type;
}

/*
 * By the fields at its start: of a profile, of which the first few have a type of values. All
 * writers that are known begin with these.
 */
static bool sniff(const char *head, size_t len)
{
	const uint8_t *p = (const uint8_t *)head, *end = p + len;
	uint32_t number;

	while (p < end) {
		uint64_t size = field_size(p, end, &number);

		if (!size || number > 15 || size > (uint64_t)(end - p))
			return false;
		if (number == 1)
			return is_value_type(p, (size_t)size);
		p += size;
	}
	return false;
}

const struct importer importer_pprof = {
	.name = "pprof",
	.sniff = sniff,
	.open = open_pprof,
	.next = next_pprof,
	.free = pprof_free,
};
