/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What `perf script` prints, and pyebpf export -f script: a line of who, when, how much of what,
 * the frames, innermost first, an empty line.
 *
 *	COMM TID|PID/TID [CPU] SECONDS.FRACTION: PERIOD EVENT: TEXT
 *	    ADDRESS SYMBOL+0xOFFSET (FILE)
 *
 * A command may hold spaces: the first number with a time behind it is the thread. CPU and period
 * may be missing, PERIOD with it what a sample stands for: then one is one. py::NAME:FILE is what
 * CPython's `-X perf` calls a function of Python; it says no line, and the frames of the
 * interpreter stay where they are. FILE:LINE is a line of a source, as pyebpf writes it; `\xHH` is
 * one byte, and behind a colon our events have their flags and labels. Text without a
 * call chain has one frame at its end, if any. Comments and lines that perf adds on losses are
 * counted as skipped.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "import/intake.h"
#include "import/text_reader.h"
#include "profile/kinds.h"
#include "profile/sample_flag.h"

#define PYTHON_PREFIX "py::"
#define EVENTS_MAX                                                                    \
	255 /* as many kinds of samples as a profile has; each line looks for its own \
	     */
#define NS_DIGITS 9
#define SECONDS_MAX 9000000000u
#define KERNEL_ADDRESS (UINT64_C(1) << 63)

/* Events whose periods are no counts. */
static const struct {
	const char *event, *kind;
	enum sample_unit unit;
} units[] = {
	{ "cpu-clock", KINDS_CPU, UNIT_NS }, { "task-clock", KINDS_CPU, UNIT_NS },
	{ KINDS_CPU, KINDS_CPU, UNIT_NS },   { KINDS_OFF_CPU, KINDS_OFF_CPU, UNIT_NS },
	{ KINDS_GIL, KINDS_GIL, UNIT_NS },   { "memory", "memory", UNIT_BYTES },
};

struct perf_event {
	char *name; /* owned */
	bool has_period;
	struct intake_values values;
};

struct perf {
	struct text_reader reader;
	struct profile *p;
	struct import_facts *facts;
	VEC(struct perf_event *) events;
	struct strbuf text;
	bool has_start, is_open;
	uint64_t start_ns;
	struct sample sample; /* that is open */
	int64_t value;
	struct perf_event *event;
	VEC(struct frame) frames; /* of it, innermost first */
};

static void perf_free(void *reader)
{
	struct perf *f = reader;

	text_reader_release(&f->reader);
	for (size_t i = 0; i < f->events.len; i++) {
		free(f->events.items[i]->name);
		free(f->events.items[i]);
	}
	vec_release(&f->events);
	vec_release(&f->frames);
	strbuf_release(&f->text);
	free(f);
}

DEFINE_CLEANUP(struct perf *, perf_free)

static int malformed(const struct perf *f, const char *what)
{
	return text_malformed(&f->reader, what);
}

static int intern(struct perf *f, struct span s, uint32_t *id)
{
	int r = 0;

	if (s.len && memchr(s.bytes, '\\', s.len)) {
		strbuf_truncate(&f->text, 0);
		r = span_unescape(s, &f->text);
		s = (struct span){ strbuf_str(&f->text), f->text.len };
	}
	if (!r)
		r = intake_string(f->p, s, id);
	return r == -EMSGSIZE ? malformed(f, "a name is longer than 1 MiB") : r;
}

/* --- the first line of a sample --------------------------------------------------------------- */

struct head {
	struct span comm;
	uint64_t pid, tid, cpu, time_ns;
	struct span rest; /* behind the time */
};

static void trim_left(struct span *s)
{
	while (s->len && (*s->bytes == ' ' || *s->bytes == '\t'))
		*s = (struct span){ s->bytes + 1, s->len - 1 };
}

/* A word off the start of s, and the spaces in front of it. */
static struct span take_word(struct span *s)
{
	struct span word;
	size_t len = 0;

	trim_left(s);
	while (len < s->len && s->bytes[len] != ' ' && s->bytes[len] != '\t')
		len++;
	word = (struct span){ s->bytes, len };
	*s = (struct span){ s->bytes + len, s->len - len };
	return word;
}

/* `5021.301221:`, or with nine digits. */
static bool parse_time(struct span word, uint64_t *ns)
{
	struct span seconds;
	uint64_t whole, part;

	if (!span_ends_in(word, ":"))
		return false;
	word.len--;
	if (!span_take_until(&word, ".", &seconds) || word.len > NS_DIGITS ||
	    !span_number(seconds, SECONDS_MAX, &whole) || !span_number(word, UINT32_MAX, &part))
		return false;
	for (size_t i = word.len; i < NS_DIGITS; i++)
		part *= 10;
	*ns = whole * 1000000000 + part;
	return true;
}

/* `TID` or `PID/TID`. */
static bool parse_ids(struct span word, struct head *h)
{
	struct span pid;

	h->pid = 0;
	if (span_take_until(&word, "/", &pid) && !span_number(pid, UINT32_MAX, &h->pid))
		return false;
	return span_number(word, UINT32_MAX, &h->tid);
}

static bool parse_cpu(struct span word, uint64_t *cpu)
{
	if (!span_take_prefix(&word, "[") || !span_ends_in(word, "]"))
		return false;
	word.len--;
	return span_number(word, UINT16_MAX, cpu);
}

static bool parse_head(struct span line, struct head *h)
{
	struct span rest = line, word, behind, next;

	*h = (struct head){ 0 };
	if (!line.len || line.bytes[0] == '#')
		return false;
	take_word(&rest); /* at least one word is the command */
	for (;;) {
		word = take_word(&rest);
		if (!word.len)
			return false;
		if (!parse_ids(word, h))
			continue;
		behind = rest;
		next = take_word(&behind);
		if (parse_cpu(next, &h->cpu))
			next = take_word(&behind);
		if (parse_time(next, &h->time_ns))
			break;
	}
	h->comm = (struct span){ line.bytes, (size_t)(word.bytes - line.bytes) };
	trim_left(&h->comm);
	h->comm.len = text_trim(h->comm.bytes, (size_t)(word.bytes - h->comm.bytes));
	h->rest = behind;
	return true;
}

/* The next of `WORD,WORD`, which is NAME=VALUE or a NAME alone. */
static bool take_modifier(struct span *rest, struct span *name, struct span *value)
{
	struct span word;

	if (!rest->len)
		return false;
	if (!span_take_until(rest, ",", &word)) {
		word = *rest;
		rest->len = 0;
	}
	*value = word;
	if (!span_take_until(value, "=", name))
		*name = word;
	return true;
}

/* `cpu-clock:gil,route=/cart` is of ours; `cycles:u` and `sched:sched_switch` are not. */
static bool are_ours(struct span modifiers)
{
	struct span name, value;

	while (take_modifier(&modifiers, &name, &value))
		if (name.bytes == value.bytes && !sample_flag_bit(name.bytes, name.len))
			return false;
	return true;
}

static int add_modifiers(struct perf *f, struct span modifiers)
{
	struct span name, value;
	uint32_t key, text;
	int r = 0;

	while (!r && take_modifier(&modifiers, &name, &value)) {
		if (name.bytes == value.bytes) {
			f->sample.flags |= sample_flag_bit(name.bytes, name.len);
			continue;
		}
		if (!(r = intern(f, name, &key)) && !(r = intern(f, value, &text)))
			r = labeltab_add(f->p->labels, f->sample.labels, key, text,
					 &f->sample.labels);
	}
	return r == -E2BIG ? malformed(f, "too many labels of a sample") : r;
}

/* `cpu-clock:u` is cpu-clock here. */
static bool is_event(struct span name, const char *event)
{
	struct span modifiers = name;

	return span_is(name, event) ||
	       (span_take_prefix(&modifiers, event) && modifiers.bytes[0] == ':');
}

static int add_event(struct perf *f, struct span name, bool has_period)
{
	struct perf_event *e;
	bool is_clock = false;

	if (f->events.len == EVENTS_MAX)
		return err_set(-E2BIG, "line %llu: more than %d events",
			       (unsigned long long)f->reader.number, EVENTS_MAX);
	e = calloc(1, sizeof(*e));
	if (!e || vec_push(&f->events, e) < 0) {
		free(e);
		return -ENOMEM;
	}
	f->event = e;
	e->has_period = has_period;
	e->name = strndup(name.bytes, name.len);
	if (!e->name)
		return -ENOMEM;
	e->values = (struct intake_values){ .name = e->name, .unit = UNIT_COUNT, .scale = 1 };
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (is_event(name, units[i].event)) {
			is_clock = !strcmp(units[i].kind, KINDS_CPU);
			e->values.name = units[i].kind;
			if (has_period)
				e->values.unit = units[i].unit;
		}
	if (strcmp(e->values.name, e->name) != 0)
		e->values.event = e->name;
	/* of a clock that does not say how long its ticks are they are ticks */
	return is_clock && !has_period ? 0 : intake_values_init(&e->values, f->p);
}

/* Sets f->event. */
static int find_event(struct perf *f, struct span name, bool has_period)
{
	for (size_t i = 0; i < f->events.len; i++) {
		f->event = f->events.items[i];
		if (f->event->has_period == has_period && span_is(name, f->event->name))
			return 0;
	}
	return add_event(f, name, has_period);
}

/* `PERIOD EVENT:`; what is behind it is left in rest. */
static int read_event(struct perf *f, struct span *rest)
{
	struct span word = take_word(rest), modifiers, name;
	uint64_t period;
	bool has_period = span_number(word, INT64_MAX, &period);
	int r = 0;

	if (!has_period && strspn(word.bytes, "0123456789") >= word.len)
		return malformed(f, "a period beyond 2^63, or neither that nor an event");
	f->value = 1;
	if (has_period) {
		f->value = (int64_t)period;
		word = take_word(rest);
	}
	if (span_ends_in(word, ":"))
		word.len--;
	modifiers = word;
	if (span_take_until(&modifiers, ":", &name) && are_ours(modifiers)) {
		r = add_modifiers(f, modifiers);
		word = name;
	}
	return r ? r : find_event(f, word, has_period);
}

static int add_thread(struct perf *f, const struct head *h)
{
	struct process process = { .recording = f->facts->index, .pid = (uint32_t)h->pid };
	struct thread thread = { .tid = (uint32_t)h->tid };
	int r = intern(f, h->comm, &thread.name);

	if (!r)
		r = profile_add_process(f->p, &process, &thread.process);
	return r ? r : profile_add_thread(f->p, &thread, &f->sample.thread);
}

static int push_frame(struct perf *f, struct span line);

static int begin_sample(struct perf *f, const struct head *h)
{
	struct span rest = h->rest;
	int r;

	if (!f->has_start)
		f->start_ns = h->time_ns;
	f->has_start = f->is_open = true;
	f->frames.len = 0;
	f->sample = (struct sample){ .cpu = (uint16_t)h->cpu };
	if (h->time_ns > f->start_ns)
		f->sample.time_ns = h->time_ns - f->start_ns;
	r = add_thread(f, h);
	if (!r)
		r = read_event(f, &rest);
	trim_left(&rest);
	if (!r && rest.len && span_ends_in(rest, ")"))
		r = push_frame(f, rest);
	return r;
}

/* --- frames ----------------------------------------------------------------------------------- */

static bool is_kernel(struct span file, uint64_t address)
{
	return address >= KERNEL_ADDRESS ||
	       (span_take_prefix(&file, "[") &&
		(span_take_prefix(&file, "kernel") || span_take_prefix(&file, "guest.kernel")));
}

/* Takes `+0xOFFSET` off a symbol. */
static void take_offset(struct span *symbol)
{
	struct span head = *symbol, tail;
	uint64_t offset;

	if (span_take_last(&head, '+', &tail) && span_take_prefix(&tail, "0x") &&
	    span_hex(tail, &offset))
		*symbol = head;
}

/* What is between the address and the end of a line. */
static void split_symbol(struct span line, struct span *symbol, struct span *file)
{
	*symbol = line;
	*file = (struct span){ NULL, 0 };
	if (span_is(line, "()")) {
		symbol->len = 0;
		return;
	}
	if (!span_split_place(line, symbol, file))
		return;
	if (span_is(*file, "inlined") || span_is(*file, "[unknown]"))
		*file = (struct span){ NULL, 0 };
}

/* py::NAME:FILE */
static bool split_python(struct span symbol, struct span *name, struct span *file)
{
	if (!span_take_prefix(&symbol, PYTHON_PREFIX) || !span_take_until(&symbol, ":", name))
		return false;
	*file = symbol;
	return true;
}

static int push_frame(struct perf *f, struct span line)
{
	struct span word = take_word(&line), symbol, file;
	struct frame frame = { .kind = FRAME_NATIVE };
	bool is_approximate = false;
	uint64_t address;
	int r;

	if (!span_hex(word, &address))
		return malformed(f, "neither a sample nor a frame of one");
	if (f->frames.len == INTAKE_DEPTH_MAX)
		return malformed(f, "a stack deeper than 65,536 frames");
	trim_left(&line);
	split_symbol(line, &symbol, &file);
	take_offset(&symbol);
	if (split_python(symbol, &symbol, &file) || span_ends_in(file, ".py") ||
	    (!address && span_take_marked_line(&file, &frame.line, &is_approximate)))
		frame.kind = FRAME_PYTHON;
	else if (is_kernel(file, address))
		frame.kind = FRAME_KERNEL;
	else if (!address && !file.len)
		frame.kind = FRAME_MARKER;
	if (is_approximate)
		frame.flags |= FRAME_LINE_APPROXIMATE;
	if ((r = intern(f, symbol, &frame.name)) < 0 || (r = intern(f, file, &frame.file)) < 0)
		return r;
	return vec_push(&f->frames, frame);
}

static int end_sample(struct perf *f)
{
	uint32_t id;
	int r = 0;

	if (!f->is_open)
		return 0;
	f->is_open = false;
	for (size_t i = f->frames.len; i-- && !r;) {
		r = frametab_intern(f->p->frames, &f->frames.items[i], &id);
		if (!r)
			r = stacktab_intern(f->p->stacks, f->sample.stack, id, &f->sample.stack);
	}
	if (!r)
		r = intake_value(&f->event->values, f->p, f->sample, f->value);
	return r == -ERANGE ? malformed(f, "periods that add up to more than 2^63") : r;
}

/* --- the text --------------------------------------------------------------------------------- */

static bool is_frame_line(struct span line)
{
	return line.len && (line.bytes[0] == '\t' || line.bytes[0] == ' ');
}

static int read_line(struct perf *f, struct span line)
{
	struct head h;
	int r;

	if (!line.len)
		return end_sample(f);
	/* a short command stands behind spaces, too */
	if (parse_head(line, &h)) {
		r = end_sample(f);
		return r ? r : begin_sample(f, &h);
	}
	if (f->is_open && is_frame_line(line))
		return push_frame(f, line);
	if (line.bytes[0] != '#')
		return malformed(f, "neither a sample nor a frame of one");
	f->facts->skipped++;
	return 0;
}

static int open_perf(struct content *content, struct import_facts *facts, void **out)
{
	_cleanup_(perf_freep) struct perf *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	f->reader.content = content;
	facts->recording.has_ended = 1;
	r = recording_set_text(&facts->recording.source, "perf script");
	if (r < 0)
		return r;
	*out = take_ptr(f);
	return 0;
}

static int next_perf(void *reader, struct profile *p, struct import_facts *facts)
{
	struct perf *f = reader;
	size_t before = p->samples.len;
	struct span line;
	int r = 0, more = 1;

	f->p = p;
	f->facts = facts;
	while (!r && p->samples.len - before < IMPORT_BATCH_SAMPLES &&
	       (more = text_reader_next(&f->reader, &line.bytes, &line.len)) > 0)
		r = read_line(f, line);
	if (!r && !more)
		r = end_sample(f);
	return r ? r : more;
}

/* By the first line that is no comment. */
static bool sniff(const char *head, size_t len)
{
	struct span rest = { head, len }, line;
	struct head h;

	while (rest.len) {
		if (!span_take_until(&rest, "\n", &line)) {
			line = rest;
			rest.len = 0;
		}
		line.len = text_trim(line.bytes, line.len);
		if (line.len && line.bytes[0] != '#')
			return parse_head(line, &h);
	}
	return false;
}

const struct importer importer_perf = {
	.name = "perf",
	.sniff = sniff,
	.open = open_perf,
	.next = next_perf,
	.free = perf_free,
};
