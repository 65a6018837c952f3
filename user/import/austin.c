/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Austin's text, of versions 3 and earlier: a line a sample, root first.
 *
 *	# KEY: VALUE            austin (its version), interval (us), mode, ... at the start;
 *duration (us) at the end P<pid>;T<iid>:<tid>;FRAME;... METRIC up to 3.5 without <iid>: ; without
 *frames where no Python code ran FRAME			FILE:FUNCTION:LINE; kernel:FUNCTION:0; :GC:
 *and :INVALID: METRIC			us since the thread's last sample; in mode memory bytes,
 *below 0 where they were freed; in mode full us,idle (0 or 1),bytes
 *
 * Blank lines and samples of 0 are skipped; the latter are counted. Of a text without its header
 * nobody knows what numbers are: they are counts, unless there are three.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "import/austin_values.h"
#include "import/intake.h"
#include "import/text_reader.h"

struct austin {
	struct text_reader reader;
	struct austin_values values;
	struct span first; /* behind the header; NULL: it was read */
	bool has_kinds;    /* a sample came: its numbers are known */
};

static void austin_free(void *reader)
{
	struct austin *a = reader;

	text_reader_release(&a->reader);
	free(a);
}

DEFINE_CLEANUP(struct austin *, austin_free)

static int malformed(const struct austin *a, const char *what)
{
	return text_malformed(&a->reader, what);
}

/* `# KEY: VALUE`. */
static int read_comment(struct austin *a, struct recording *r, struct span line)
{
	struct span key;

	if (!span_take_prefix(&line, "# ") || !span_take_until(&line, ": ", &key))
		return 0;
	return austin_metadata(&a->values, r, key, line);
}

/* A number with or without a minus. */
static bool parse_signed(struct span s, int64_t *out)
{
	bool is_below = span_take_prefix(&s, "-");
	uint64_t value;

	if (!span_number(s, INT64_MAX, &value))
		return false;
	*out = is_below ? -(int64_t)value : (int64_t)value;
	return true;
}

static bool parse_full(struct span text, struct austin_metrics *m)
{
	struct span us, idle;
	int64_t flag;

	if (!span_take_until(&text, ",", &us) || !span_take_until(&text, ",", &idle) ||
	    !parse_signed(us, &m->time_us) || !parse_signed(idle, &flag) ||
	    !parse_signed(text, &m->memory_bytes))
		return false;
	m->is_idle = flag != 0;
	return true;
}

static bool parse_metrics(struct austin *a, struct span text, struct austin_metrics *m)
{
	if (memchr(text.bytes, ',', text.len)) {
		if (a->values.mode == AUSTIN_UNKNOWN && !a->has_kinds)
			a->values.mode = AUSTIN_FULL;
		return a->values.mode == AUSTIN_FULL && parse_full(text, m);
	}
	if (a->values.mode == AUSTIN_FULL)
		return false;
	return parse_signed(text, a->values.mode == AUSTIN_MEMORY ? &m->memory_bytes : &m->time_us);
}

/* The frame or tag that rest begins with; rest->bytes is NULL behind the last one. */
static struct span take_part(struct span *rest)
{
	struct span part = *rest;

	if (!span_take_until(rest, ";", &part))
		*rest = (struct span){ NULL, 0 };
	return part;
}

/* `P<pid>;T<iid>:<tid>` */
static int take_thread(struct austin *a, struct profile *p, uint32_t recording, struct span *line,
		       uint32_t *thread)
{
	struct process process = { .recording = recording };
	struct span part = take_part(line), behind, interpreter = { NULL, 0 };
	uint64_t pid, tid = 0, iid = 0;
	uint32_t index;
	int r;

	if (!span_take_prefix(&part, "P") || !span_number(part, UINT32_MAX, &pid))
		return malformed(a, "no P<pid> at its start");
	process.pid = (uint32_t)pid;
	if ((r = profile_add_process(p, &process, &index)) < 0)
		return r;
	behind = *line;
	part = behind.bytes ? take_part(&behind) : interpreter;
	if (part.bytes && span_take_prefix(&part, "T")) {
		if (span_take_until(&part, ":", &interpreter) &&
		    !span_number(interpreter, UINT64_MAX, &iid))
			return malformed(a, "no number of an interpreter behind T");
		if (!span_number(part, UINT64_MAX, &tid) &&
		    !(span_take_prefix(&part, "0x") && span_hex(part, &tid)))
			return malformed(a, "no thread id behind T");
		*line = behind;
	}
	return intake_thread(p, index, tid, iid, thread);
}

static int push_frame(struct profile *p, struct span text, uint32_t *stack)
{
	static const char *const markers[][2] = { { ":GC:", PROFILE_GC },
						  { ":INVALID:", "<invalid>" } };
	static const struct span none = { NULL, 0 };
	struct frame f = { .kind = FRAME_MARKER };
	struct span file = text, name = text;

	for (size_t i = 0; i < sizeof(markers) / sizeof(markers[0]); i++)
		if (span_is(text, markers[i][0])) {
			name = (struct span){ markers[i][1], strlen(markers[i][1]) };
			return intake_frame(p, f, name, none, stack);
		}
	if (!span_take_line(&file, &f.line) || !span_take_last(&file, ':', &name)) {
		f.line = 0;
		return intake_frame(p, f, text, none, stack);
	}
	f = span_is(file, AUSTIN_KERNEL) && !f.line ? (struct frame){ .kind = FRAME_KERNEL }
						    : intake_source_frame(file, f.line);
	return intake_frame(p, f, name, file, stack);
}

static int read_sample(struct austin *a, struct profile *p, struct import_facts *facts,
		       struct span line)
{
	struct austin_metrics m = { 0 };
	struct sample s = { 0 };
	struct span metric;
	int r;

	if (!span_take_last(&line, ' ', &metric) || !parse_metrics(a, metric, &m))
		return malformed(
			a,
			"expected the numbers that this Austin mode writes at the end of the line");
	a->has_kinds = true;
	if (!m.time_us && !m.memory_bytes) {
		facts->skipped++;
		return 0;
	}
	r = take_thread(a, p, facts->index, &line, &s.thread);
	for (uint32_t depth = 0; line.bytes && !r; depth++) {
		if (depth == INTAKE_DEPTH_MAX)
			return malformed(a, "a stack deeper than 65,536 frames");
		r = push_frame(p, take_part(&line), &s.stack);
	}
	if (r == -EMSGSIZE)
		return malformed(a, "a name is longer than 1 MiB");
	r = r ? r : austin_add(&a->values, p, s, &m);
	return r == -ERANGE ? malformed(a, "its numbers add up to more than 2^63") : r;
}

/* Up to the first sample. */
static int read_header(struct austin *a, struct recording *r)
{
	struct span line;
	int e;

	while ((e = text_reader_next(&a->reader, &line.bytes, &line.len)) > 0) {
		if (line.len && line.bytes[0] != '#') {
			a->first = line;
			return 0;
		}
		e = read_comment(a, r, line);
		if (e < 0)
			return e;
	}
	return e;
}

static int open_austin(struct content *content, struct import_facts *facts, void **out)
{
	_cleanup_(austin_freep) struct austin *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	a->reader.content = content;
	r = austin_describe(&facts->recording);
	if (!r)
		r = read_header(a, &facts->recording);
	if (r < 0)
		return r;
	*out = take_ptr(a);
	return 0;
}

static int read_line(struct austin *a, struct profile *p, struct import_facts *facts,
		     struct span line)
{
	if (!line.len)
		return 0;
	if (line.bytes[0] != '#')
		return read_sample(a, p, facts, line);
	return read_comment(a, &p->recordings.items[facts->index], line);
}

static int next_austin(void *reader, struct profile *p, struct import_facts *facts)
{
	struct austin *a = reader;
	size_t before = p->samples.len;
	struct span line = a->first;
	int r = 0, more = 1;

	if (line.bytes)
		r = read_line(a, p, facts, line);
	a->first.bytes = NULL;
	while (!r && p->samples.len - before < IMPORT_BATCH_SAMPLES &&
	       (more = text_reader_next(&a->reader, &line.bytes, &line.len)) > 0)
		r = read_line(a, p, facts, line);
	return r ? r : more;
}

/* By its header, or the first line that is no comment: P<pid>;T */
static bool sniff(const char *head, size_t len)
{
	struct span rest = { head, len }, line, pid;
	uint64_t number;

	while (rest.len) {
		if (!span_take_until(&rest, "\n", &line)) {
			line = rest;
			rest.len = 0;
		}
		if (span_take_prefix(&line, "# austin: "))
			return true;
		if (line.len && line.bytes[0] != '#' && line.bytes[0] != '\r')
			return span_take_prefix(&line, "P") && span_take_until(&line, ";T", &pid) &&
			       span_number(pid, UINT32_MAX, &number);
	}
	return false;
}

const struct importer importer_austin = {
	.name = "austin",
	.sniff = sniff,
	.open = open_austin,
	.next = next_austin,
	.free = austin_free,
};
