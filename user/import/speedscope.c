/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The file format of speedscope (its file-format-schema.json), as speedscope itself, py-spy,
 * Austin's converter, pyebpf and many others write it. The file is read three times, as frames and
 * units may stand behind what needs them: what profiles there are, the frames, the samples.
 *
 *	sampled		stacks, root first, and a weight each: sums, of which nobody knows the time
 *	evented		frames open and close: what is open until the next event is a sample
 *
 * Where nothing is on the stack nothing is counted, as in speedscope's own tables. A kind is named
 * by its writer where that is known, else by its unit: nobody knows whether it is CPU time. The
 * same with threads: of other writers a profile's name is a thread's.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "import/import.h"
#include "import/intake.h"
#include "import/json_reader.h"
#include "import/py_spy.h"
#include "profile/kinds.h"

#define PROFILES_MAX (1u << 16)
#define EXPORTER_PYEBPF "pyebpf "
#define EXPORTER_PY_SPY "py-spy"
#define FRAME_IS_TAG UINT32_MAX  /* it says whose the stack is, and is none */
#define STACK_NOTHING UINT32_MAX /* there was nothing on it, not even a tag */

enum profile_type { PROFILE_UNKNOWN, PROFILE_SAMPLED, PROFILE_EVENTED };

/* What a profile says of itself. */
struct head {
	char *name, *unit; /* owned; NULL: none */
	enum profile_type type;
	double start;
};

/* What its samples are put into. */
struct source {
	uint32_t thread;    /* index */
	uint32_t values;    /* index of kinds */
	uint64_t scale;     /* of its unit */
	uint64_t offset_ns; /* of its start, from the file's first one */
};

/* A kind, which several profiles may be of. */
struct kind {
	char *name; /* owned */
	struct intake_values values;
};

struct open_frame {
	uint32_t frame; /* of the file */
	uint32_t stack; /* id: up to this one */
};

enum state {
	STATE_FILE,
	STATE_PROFILES,
	STATE_PROFILE,
	STATE_SAMPLES,
	STATE_WEIGHTS,
	STATE_EVENTS
};

struct speedscope {
	struct content *content;
	struct json_reader j;
	bool is_ours, is_py_spys, has_begun;
	VEC(struct head) heads;
	VEC(struct source) sources;
	VEC(struct kind *) kinds;
	VEC(uint32_t) frames; /* ids, or FRAME_IS_TAG */

	/* the profile that is being read */
	enum state state;
	size_t profile; /* its index; that of the next one between two */
	VEC(uint32_t) stacks;
	VEC(double) weights;
	size_t paired; /* samples that were told */
	VEC(struct open_frame) open;
	uint64_t at; /* the last event, in the unit, from the profile's start */
};

static void speedscope_free(void *reader)
{
	struct speedscope *s = reader;

	json_reader_release(&s->j);
	for (size_t i = 0; i < s->heads.len; i++) {
		free(s->heads.items[i].name);
		free(s->heads.items[i].unit);
	}
	vec_release(&s->heads);
	vec_release(&s->sources);
	for (size_t i = 0; i < s->kinds.len; i++) {
		free(s->kinds.items[i]->name);
		free(s->kinds.items[i]);
	}
	vec_release(&s->kinds);
	vec_release(&s->frames);
	vec_release(&s->stacks);
	vec_release(&s->weights);
	vec_release(&s->open);
	free(s);
}

DEFINE_CLEANUP(struct speedscope *, speedscope_free)

static int malformed(const struct speedscope *s, const char *what)
{
	return json_reader_malformed(&s->j, what);
}

static bool is_text(const struct json_reader *j, const char *text)
{
	return j->text.len == strlen(text) && !memcmp(strbuf_str(&j->text), text, j->text.len);
}

/* --- walking ---------------------------------------------------------------------------------- */

/* From the start of the text. */
static int rewind_text(struct speedscope *s)
{
	json_reader_release(&s->j);
	s->j = (struct json_reader){ 0 };
	return json_reader_open(&s->j, s->content);
}

static int expect(struct speedscope *s, int token, const char *what)
{
	int r = json_reader_next(&s->j);

	return r < 0 || r == token ? (r < 0 ? r : 0) : malformed(s, what);
}

static int skip_value(struct speedscope *s)
{
	return json_reader_skip(&s->j, json_reader_next(&s->j));
}

/* A function for a key's value, which it reads whole. */
typedef int read_field(struct speedscope *s, void *arg);

/* All keys of the object that was entered; those without a function are read over. */
struct field {
	const char *key;
	read_field *read;
};

static int read_fields(struct speedscope *s, const struct field *fields, void *arg)
{
	int r;

	while ((r = json_reader_next(&s->j)) > 0) {
		const struct field *f = fields;

		while (f->key && !is_text(&s->j, f->key))
			f++;
		r = f->key ? f->read(s, arg) : skip_value(s);
		if (r < 0)
			break;
	}
	return r;
}

/* All objects of an array, which is the next value. */
static int read_objects(struct speedscope *s, read_field *read, void *arg, const char *what)
{
	int r = expect(s, JSON_ARRAY, what);

	while (!r && (r = json_reader_next(&s->j)) > 0)
		r = r == JSON_OBJECT ? read(s, arg) : malformed(s, what);
	return r;
}

/* Of a text; of anything else *out stays as it is. */
static int read_text(struct speedscope *s, char **out)
{
	int token = json_reader_next(&s->j);

	if (token != JSON_STRING)
		return json_reader_skip(&s->j, token);
	free(*out);
	*out = strndup(strbuf_str(&s->j.text), s->j.text.len);
	return *out ? 0 : -ENOMEM;
}

/* --- first look: what profiles there are ------------------------------------------------------ */

static int read_name(struct speedscope *s, void *head)
{
	return read_text(s, &((struct head *)head)->name);
}

static int read_unit(struct speedscope *s, void *head)
{
	return read_text(s, &((struct head *)head)->unit);
}

static int read_type(struct speedscope *s, void *head)
{
	struct head *h = head;
	int r = json_reader_next(&s->j);

	if (r == JSON_STRING && is_text(&s->j, "sampled"))
		h->type = PROFILE_SAMPLED;
	else if (r == JSON_STRING && is_text(&s->j, "evented"))
		h->type = PROFILE_EVENTED;
	else
		return r < 0 ? r : malformed(s, "a profile neither sampled nor evented");
	return 0;
}

static int read_start(struct speedscope *s, void *head)
{
	int r = json_reader_next(&s->j);

	if (r == JSON_NUMBER)
		((struct head *)head)->start = s->j.number;
	return json_reader_skip(&s->j, r);
}

static int read_head(struct speedscope *s, void *arg)
{
	static const struct field fields[] = { { "name", read_name },
					       { "unit", read_unit },
					       { "type", read_type },
					       { "startValue", read_start },
					       { NULL, NULL } };
	(void)arg;
	if (s->heads.len == PROFILES_MAX)
		return err_set(-E2BIG, "more than %u profiles", PROFILES_MAX);
	if (vec_push(&s->heads, (struct head){ 0 }) < 0)
		return -ENOMEM;
	return read_fields(s, fields, &s->heads.items[s->heads.len - 1]);
}

static int read_heads(struct speedscope *s, void *arg)
{
	return read_objects(s, read_head, arg, "no list of profiles");
}

static int read_exporter(struct speedscope *s, void *source)
{
	return read_text(s, source);
}

static int read_overview(struct speedscope *s, char **exporter)
{
	static const struct field fields[] = { { "profiles", read_heads },
					       { "exporter", read_exporter },
					       { NULL, NULL } };
	int r = rewind_text(s);

	if (!r)
		r = expect(s, JSON_OBJECT, "no object of speedscope's");
	if (!r)
		r = read_fields(s, fields, exporter);
	if (!r)
		r = json_reader_next(&s->j); /* nothing behind it */
	return r;
}

/* --- second look: frames ---------------------------------------------------------------------- */

struct frame_texts {
	struct profile *p;
	uint32_t name, file, line;
};

static int read_string_id(struct speedscope *s, struct profile *p, uint32_t *id)
{
	int r = json_reader_next(&s->j);

	if (r != JSON_STRING)
		return json_reader_skip(&s->j, r);
	return intake_string(p, (struct span){ strbuf_str(&s->j.text), s->j.text.len }, id);
}

static int read_frame_name(struct speedscope *s, void *texts)
{
	struct frame_texts *t = texts;

	return read_string_id(s, t->p, &t->name);
}

static int read_frame_file(struct speedscope *s, void *texts)
{
	struct frame_texts *t = texts;

	return read_string_id(s, t->p, &t->file);
}

static int read_frame_line(struct speedscope *s, void *texts)
{
	struct frame_texts *t = texts;
	int r = json_reader_next(&s->j);

	if (r == JSON_NUMBER && s->j.number >= 1 && s->j.number <= INT32_MAX)
		t->line = (uint32_t)s->j.number;
	return json_reader_skip(&s->j, r);
}

/* py-spy has the names of its profiles also as outermost frames. */
static bool is_tag(const struct speedscope *s, const struct frame_texts *t)
{
	struct span text = { strtab_get(t->p->strings, t->name),
			     strtab_len(t->p->strings, t->name) },
		    name;
	uint32_t id;

	if (!s->is_py_spys || t->file)
		return false;
	return py_spy_process(text, &name, &id) || py_spy_thread(text, &name, &id) ||
	       (span_take_prefix(&text, "thread (") && span_ends_in(text, ")"));
}

static int read_frame(struct speedscope *s, void *profile)
{
	static const struct field fields[] = { { "name", read_frame_name },
					       { "file", read_frame_file },
					       { "line", read_frame_line },
					       { NULL, NULL } };
	struct frame_texts t = { .p = profile };
	struct frame f;
	uint32_t id;
	int r = read_fields(s, fields, &t);

	if (r < 0)
		return r;
	if (s->frames.len == INTAKE_ROWS_MAX)
		return err_set(-E2BIG, "more than %u frames", INTAKE_ROWS_MAX);
	if (is_tag(s, &t))
		return vec_push(&s->frames, FRAME_IS_TAG);
	f = (struct frame){ .kind = t.file ? FRAME_PYTHON : FRAME_MARKER,
			    .name = t.name,
			    .file = t.file };
	if (t.file && s->is_ours)
		f.first_line = t.line; /* of the def */
	else if (t.file)
		f.line = t.line;
	r = frametab_intern(t.p->frames, &f, &id);
	return r ? r : vec_push(&s->frames, id);
}

static int read_frames(struct speedscope *s, void *profile)
{
	return read_objects(s, read_frame, profile, "no list of frames");
}

static int read_shared(struct speedscope *s, void *profile)
{
	static const struct field fields[] = { { "frames", read_frames }, { NULL, NULL } };
	int r = expect(s, JSON_OBJECT, "no object `shared`");

	return r ? r : read_fields(s, fields, profile);
}

static int read_tables(struct speedscope *s, struct profile *p)
{
	static const struct field fields[] = { { "shared", read_shared }, { NULL, NULL } };
	int r = rewind_text(s);

	if (!r)
		r = expect(s, JSON_OBJECT, "no object of speedscope's");
	return r ? r : read_fields(s, fields, p);
}

/* --- whose and what a profile is -------------------------------------------------------------- */

/* What a profile's name says; kind: empty if nothing. */
struct owner {
	struct span process, thread, kind;
	uint64_t pid, tid, interpreter;
};

/* `NAME (ID)`: of text, up to its first `) `, or all of it. */
static bool take_numbered(struct span *text, struct span *name, uint64_t *id)
{
	struct span whole = *text, rest = *text, tail;

	if (span_take_until(&rest, ") ", &whole))
		whole.len++;
	else
		rest.len = 0;
	if (!span_split_place(whole, name, &tail) || !span_number(tail, UINT32_MAX, id))
		return false;
	*text = rest;
	return true;
}

/* `PROCESS (PID) THREAD (TID)`, `: KIND` behind it where there are several. */
static bool parse_pyebpf(struct span text, struct owner *o)
{
	struct span head = text, kind;

	if (span_take_last(&head, ':', &kind) && span_ends_in(head, ")") &&
	    span_take_prefix(&kind, " ")) {
		o->kind = kind;
		text = head;
	}
	return take_numbered(&text, &o->process, &o->pid) &&
	       span_split_place(text, &o->thread, &text) && span_number(text, UINT32_MAX, &o->tid);
}

/* py-spy: `Process PID Thread TID "NAME"`, the process only where there are several. */
static bool parse_py_spy(struct span text, struct owner *o)
{
	struct span id;

	if (span_take_prefix(&text, "Process ") &&
	    (!span_take_until(&text, " ", &id) || !span_number(id, UINT32_MAX, &o->pid)))
		return false;
	if (!span_take_prefix(&text, "Thread ") || !span_take_until(&text, " \"", &id) ||
	    !span_number(id, UINT32_MAX, &o->tid) || !span_ends_in(text, "\""))
		return false;
	o->thread = (struct span){ text.bytes, text.len - 1 };
	return true;
}

/* austin2speedscope: `Wall time profile for PID:INTERPRETER:TID` */
static bool parse_austin(struct span text, struct owner *o)
{
	static const struct {
		const char *prefix, *kind;
	} rows[] = {
		{ "CPU time profile for ", KINDS_CPU },
		{ "Wall time profile for ", KINDS_WALL },
		{ "Memory allocation profile for ", "memory" },
		{ "Memory deallocation profile for ", "memory-freed" },
	};
	struct span pid, interpreter;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!span_take_prefix(&text, rows[i].prefix))
			continue;
		o->kind = (struct span){ rows[i].kind, strlen(rows[i].kind) };
		if (!span_take_until(&text, ":", &pid) || !span_number(pid, UINT32_MAX, &o->pid))
			return false;
		if (span_take_until(&text, ":", &interpreter) &&
		    !span_number(interpreter, UINT64_MAX, &o->interpreter))
			return false;
		return span_number(text, UINT64_MAX, &o->tid) || span_hex(text, &o->tid);
	}
	return false;
}

static struct owner parse_owner(const struct speedscope *s, const struct head *h)
{
	struct span name = { h->name ? h->name : "", h->name ? strlen(h->name) : 0 };
	struct owner o = { 0 };

	if (s->is_ours ? parse_pyebpf(name, &o) : parse_py_spy(name, &o) || parse_austin(name, &o))
		return o;
	return (struct owner){ .thread = name };
}

static int add_thread(struct profile *p, uint32_t recording, const struct owner *o, uint32_t *index)
{
	struct process process = { .recording = recording, .pid = (uint32_t)o->pid };
	struct thread thread = { .tid = (uint32_t)o->tid };
	int r = intake_string(p, o->process, &process.name);

	if (!r)
		r = profile_add_process(p, &process, &thread.process);
	if (!r && !o->thread.len)
		return intake_thread(p, thread.process, o->tid, o->interpreter, index);
	if (!r)
		r = intake_string(p, o->thread, &thread.name);
	return r ? r : profile_add_thread(p, &thread, index);
}

/* What nobody says is called by its unit. */
static struct span kind_name(const struct speedscope *s, const struct owner *o, uint8_t unit)
{
	static const char *const names[] = {
		[UNIT_NS] = "time", [UNIT_BYTES] = "bytes", [UNIT_COUNT] = "weight"
	};
	const char *name = s->is_ours && unit == UNIT_NS ? KINDS_CPU : names[unit];

	return o->kind.len ? o->kind : (struct span){ name, strlen(name) };
}

static int find_kind(struct speedscope *s, struct profile *p, struct span name, uint8_t unit,
		     uint32_t *index)
{
	struct kind *k;

	for (uint32_t i = 0; i < s->kinds.len; i++) {
		*index = i;
		if (span_is(name, s->kinds.items[i]->name) &&
		    s->kinds.items[i]->values.unit == unit)
			return 0;
	}
	k = calloc(1, sizeof(*k));
	if (!k || vec_push(&s->kinds, k) < 0) {
		free(k);
		return -ENOMEM;
	}
	*index = (uint32_t)s->kinds.len - 1;
	k->name = strndup(name.bytes, name.len);
	k->values = (struct intake_values){ .name = k->name, .unit = unit, .scale = 1 };
	return k->name ? intake_values_init(&k->values, p) : -ENOMEM;
}

static bool is_timed(const struct head *h)
{
	uint8_t unit;
	uint64_t scale;

	intake_unit(h->unit ? h->unit : "", &unit, &scale);
	return h->type == PROFILE_EVENTED && unit == UNIT_NS;
}

/* The earliest start of those that have times, in ns. */
static double first_start(const struct speedscope *s)
{
	double first = INFINITY;
	uint64_t scale;
	uint8_t unit;

	for (size_t i = 0; i < s->heads.len; i++) {
		const struct head *h = &s->heads.items[i];

		intake_unit(h->unit ? h->unit : "", &unit, &scale);
		if (is_timed(h) && h->start * (double)scale < first)
			first = h->start * (double)scale;
	}
	return first;
}

static int add_source(struct speedscope *s, struct profile *p, const struct head *h,
		      uint32_t recording, double first)
{
	struct owner o = parse_owner(s, h);
	struct source source = { 0 };
	double offset;
	uint8_t unit;
	int r;

	intake_unit(h->unit ? h->unit : "", &unit, &source.scale);
	offset = is_timed(h) ? round(h->start * (double)source.scale - first) : 0;
	if (!(offset < 0x1p62))
		return malformed(s, "profiles that begin more than 146 years apart");
	source.offset_ns = (uint64_t)offset;
	if ((r = add_thread(p, recording, &o, &source.thread)) < 0 ||
	    (r = find_kind(s, p, kind_name(s, &o, unit), unit, &source.values)) < 0)
		return r;
	return vec_push(&s->sources, source);
}

/* --- third look: samples ---------------------------------------------------------------------- */

static const struct source *source_of(const struct speedscope *s)
{
	return &s->sources.items[s->profile];
}

static struct intake_values *values_of(struct speedscope *s)
{
	return &s->kinds.items[source_of(s)->values]->values;
}

static int too_much(const struct speedscope *s, int r)
{
	return r == -ERANGE ? malformed(s, "values that add up to more than 2^63") : r;
}

/* Of a number: the frame of the file. */
static int frame_index(const struct speedscope *s, uint32_t *index)
{
	double number = s->j.number;

	if (!(number >= 0 && number < (double)s->frames.len) || number != floor(number))
		return malformed(s, "a frame that is not in the list");
	*index = (uint32_t)number;
	return 0;
}

/* Samples of which both the stack and the weight are known. */
static int pair(struct speedscope *s, struct profile *p)
{
	struct sample sample = { .thread = source_of(s)->thread };
	double weight;

	if (s->paired >= s->stacks.len || s->paired >= s->weights.len)
		return 0;
	sample.stack = s->stacks.items[s->paired];
	weight = s->weights.items[s->paired++] * (double)source_of(s)->scale;
	if (sample.stack == STACK_NOTHING)
		return 0;
	return too_much(s, intake_real(values_of(s), p, sample, weight));
}

/* Puts a frame of the file on a stack. */
static int push_frame(const struct speedscope *s, struct profile *p, uint32_t index,
		      uint32_t *stack)
{
	uint32_t frame = s->frames.items[index];

	return frame == FRAME_IS_TAG ? 0 : stacktab_intern(p->stacks, *stack, frame, stack);
}

static int read_stack(struct speedscope *s, struct profile *p)
{
	uint32_t stack = 0, index = 0, depth = 0;
	int r;

	while ((r = json_reader_next(&s->j)) > 0) {
		if (r != JSON_NUMBER)
			return malformed(s, "no number of a frame");
		if (depth++ == INTAKE_DEPTH_MAX)
			return malformed(s, "a stack deeper than 65,536 frames");
		r = frame_index(s, &index);
		if (!r)
			r = push_frame(s, p, index, &stack);
		if (r < 0)
			return r;
	}
	if (!r)
		r = vec_push(&s->stacks, depth ? stack : STACK_NOTHING);
	return r ? r : pair(s, p);
}

static int step_samples(struct speedscope *s, struct profile *p)
{
	int r = json_reader_next(&s->j);

	if (r == JSON_ARRAY)
		return read_stack(s, p);
	if (r > 0)
		return malformed(s, "no list of frames in samples");
	s->state = STATE_PROFILE;
	return r;
}

static int step_weights(struct speedscope *s, struct profile *p)
{
	int r = json_reader_next(&s->j);

	if (r == JSON_NUMBER) {
		r = vec_push(&s->weights, s->j.number);
		return r ? r : pair(s, p);
	}
	if (r > 0)
		return malformed(s, "no number in weights");
	s->state = STATE_PROFILE;
	return r;
}

struct event {
	bool opens, closes, has_frame;
	uint32_t frame;
	double at;
};

static int read_event_type(struct speedscope *s, void *event)
{
	struct event *e = event;
	int r = json_reader_next(&s->j);

	e->opens = r == JSON_STRING && is_text(&s->j, "O");
	e->closes = r == JSON_STRING && is_text(&s->j, "C");
	return json_reader_skip(&s->j, r);
}

static int read_event_frame(struct speedscope *s, void *event)
{
	struct event *e = event;
	int r = json_reader_next(&s->j);

	if (r != JSON_NUMBER)
		return r < 0 ? r : malformed(s, "no number of a frame");
	e->has_frame = true;
	return frame_index(s, &e->frame);
}

static int read_event_at(struct speedscope *s, void *event)
{
	int r = json_reader_next(&s->j);

	if (r == JSON_NUMBER)
		((struct event *)event)->at = s->j.number;
	return json_reader_skip(&s->j, r);
}

/* What was open until now. */
static int pass_time(struct speedscope *s, struct profile *p, double now)
{
	const struct source *source = source_of(s);
	double since = round((now - s->heads.items[s->profile].start) * (double)source->scale);
	struct sample sample = { .thread = source->thread };
	uint64_t until;
	int r = 0;

	if (!(since >= 0 && since < 0x1p62))
		return malformed(s, "an event before its profile's start, or 146 years later");
	until = (uint64_t)since;
	if (until < s->at)
		return malformed(s, "an event before the one in front of it");
	if (s->open.len && until > s->at) {
		sample.stack = s->open.items[s->open.len - 1].stack;
		if (is_timed(&s->heads.items[s->profile])) {
			sample.time_ns = source->offset_ns + s->at;
			sample.duration_ns = until - s->at;
		}
		r = too_much(s, intake_value(values_of(s), p, sample, (int64_t)(until - s->at)));
	}
	s->at = until;
	return r;
}

static int read_event(struct speedscope *s, struct profile *p)
{
	static const struct field fields[] = { { "type", read_event_type },
					       { "frame", read_event_frame },
					       { "at", read_event_at },
					       { NULL, NULL } };
	struct event e = { .at = NAN };
	struct open_frame o = { 0 };
	int r = read_fields(s, fields, &e);

	if (r < 0)
		return r;
	if (!e.has_frame || !(e.opens || e.closes))
		return malformed(s, "an event without frame, or neither O nor C");
	r = pass_time(s, p, e.at);
	if (r < 0)
		return r;
	if (e.closes) {
		if (!s->open.len || s->open.items[s->open.len - 1].frame != e.frame)
			return malformed(s, "an event closes a frame that is not the innermost");
		s->open.len--;
		return 0;
	}
	if (s->open.len == INTAKE_DEPTH_MAX)
		return malformed(s, "a stack deeper than 65,536 frames");
	if (s->open.len)
		o.stack = s->open.items[s->open.len - 1].stack;
	o.frame = e.frame;
	r = push_frame(s, p, e.frame, &o.stack);
	return r ? r : vec_push(&s->open, o);
}

static int step_events(struct speedscope *s, struct profile *p)
{
	int r = json_reader_next(&s->j);

	if (r == JSON_OBJECT)
		return read_event(s, p);
	if (r > 0)
		return malformed(s, "no event in a list of them");
	s->state = STATE_PROFILE;
	return r;
}

static int end_profile(struct speedscope *s)
{
	if (s->stacks.len != s->weights.len)
		return malformed(s, "a profile with more samples than weights, or fewer");
	if (s->open.len)
		return malformed(s, "profile ends with frames still open");
	s->state = STATE_PROFILES;
	s->profile++;
	return 0;
}

/* A key of a profile. */
static int step_profile(struct speedscope *s)
{
	static const struct {
		const char *key;
		enum profile_type type;
		enum state state;
	} rows[] = {
		{ "samples", PROFILE_SAMPLED, STATE_SAMPLES },
		{ "weights", PROFILE_SAMPLED, STATE_WEIGHTS },
		{ "events", PROFILE_EVENTED, STATE_EVENTS },
	};
	int r = json_reader_next(&s->j);

	if (r <= 0)
		return r < 0 ? r : end_profile(s);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!is_text(&s->j, rows[i].key) || s->heads.items[s->profile].type != rows[i].type)
			continue;
		s->state = rows[i].state;
		return expect(s, JSON_ARRAY, "no list of samples, weights or events");
	}
	return skip_value(s);
}

static int step_profiles(struct speedscope *s)
{
	int r = json_reader_next(&s->j);

	if (r <= 0) {
		s->state = STATE_FILE;
		return r;
	}
	if (r != JSON_OBJECT || s->profile == s->sources.len)
		return malformed(s, "it became another file while it was read");
	s->state = STATE_PROFILE;
	s->stacks.len = s->weights.len = s->open.len = s->paired = 0;
	s->at = 0;
	return 0;
}

/* A key of the file. 1: that was the last. */
static int step_file(struct speedscope *s)
{
	int r = json_reader_next(&s->j);

	if (r <= 0)
		return r ? r : 1;
	if (!is_text(&s->j, "profiles"))
		return skip_value(s);
	s->state = STATE_PROFILES;
	return expect(s, JSON_ARRAY, "no list of profiles");
}

/* 0; 1: that was all. */
static int step(struct speedscope *s, struct profile *p)
{
	switch (s->state) {
	case STATE_FILE:
		return step_file(s);
	case STATE_PROFILES:
		return step_profiles(s);
	case STATE_PROFILE:
		return step_profile(s);
	case STATE_SAMPLES:
		return step_samples(s, p);
	case STATE_WEIGHTS:
		return step_weights(s, p);
	case STATE_EVENTS:
		return step_events(s, p);
	}
	return -EINVAL;
}

/* --- the file --------------------------------------------------------------------------------- */

static int describe(struct speedscope *s, const char *exporter, struct recording *r)
{
	_cleanup_(strbuf_releasep) struct strbuf source = STRBUF_INIT;

	strbuf_puts(&source, "speedscope");
	if (exporter)
		strbuf_appendf(&source, " (%s)", exporter);
	r->has_ended = 1;
	r->is_summed = 1;
	for (size_t i = 0; i < s->heads.len; i++)
		if (is_timed(&s->heads.items[i]))
			r->is_summed = 0;
	if (strbuf_error(&source))
		return -ENOMEM;
	return recording_set_text(&r->source, strbuf_str(&source));
}

static int open_speedscope(struct content *content, struct import_facts *facts, void **out)
{
	_cleanup_(speedscope_freep) struct speedscope *s = calloc(1, sizeof(*s));
	_cleanup_(freep) char *exporter = NULL;
	int r;

	if (!s)
		return -ENOMEM;
	s->content = content;
	r = read_overview(s, &exporter);
	if (!r && !s->heads.len)
		r = malformed(s, "no profiles in it");
	for (size_t i = 0; i < s->heads.len && !r; i++)
		if (!s->heads.items[i].type)
			r = malformed(s, "a profile that does not say its type");
	s->is_py_spys = exporter && !strncmp(exporter, EXPORTER_PY_SPY, strlen(EXPORTER_PY_SPY));
	s->is_ours = exporter && !strncmp(exporter, EXPORTER_PYEBPF, strlen(EXPORTER_PYEBPF));
	if (!r)
		r = describe(s, exporter, &facts->recording);
	if (r < 0)
		return r;
	*out = take_ptr(s);
	return 0;
}

static int begin(struct speedscope *s, struct profile *p, const struct import_facts *facts)
{
	double first = first_start(s);
	int r = read_tables(s, p);

	for (size_t i = 0; i < s->heads.len && !r; i++)
		r = add_source(s, p, &s->heads.items[i], facts->index, first);
	if (!r)
		r = rewind_text(s);
	s->has_begun = true;
	return r ? r : expect(s, JSON_OBJECT, "no object of speedscope's");
}

static int next_speedscope(void *reader, struct profile *p, struct import_facts *facts)
{
	struct speedscope *s = reader;
	size_t before = p->samples.len;
	int r = s->has_begun ? 0 : begin(s, p, facts);

	while (!r && p->samples.len - before < IMPORT_BATCH_SAMPLES)
		r = step(s, p);
	if (r == -EMSGSIZE)
		return malformed(s, "a name longer than 1 MiB");
	return r < 0 ? r : !r;
}

/* An object, of which the start tells: its schema, or the lists that it has. */
static bool sniff(const char *head, size_t len)
{
	static const char *const marks[] = { "speedscope", "\"profiles\"", "\"shared\"" };
	size_t at = 0;

	while (at < len && strchr(" \t\r\n", head[at]) && head[at])
		at++;
	if (at == len || head[at] != '{')
		return false;
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (memmem(head, len, marks[i], strlen(marks[i])))
			return true;
	return false;
}

const struct importer importer_speedscope = {
	.name = "speedscope",
	.sniff = sniff,
	.open = open_speedscope,
	.next = next_speedscope,
	.free = speedscope_free,
};
