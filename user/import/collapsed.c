/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Collapsed stacks: what `pyebpf export -f collapsed`, `py-spy record -f raw`, FlameGraph's
 * stackcollapse-*.pl and CPython's `profiling.sampling --collapsed` write. One line a stack, root
 *first, frames joined by `;`, a space, the ticks.
 *
 *	first line      `# pyebpf-collapsed interval_us=1000 work=N`, or none; keys in any order or
 *	                left out, unknown ones ignored
 *	`name (file:line)` a Python frame, split at its last ` (`; `name (file)`: line 0
 *	anything else   a marker, without file and line
 *	`process NAME (PID)`, `thread NAME (TID)` in front: no frames, but whose stack it is; one of
 *	                each, in any order
 *	`process PID:"COMMAND"`, `thread (ID): NAME` the same of py-spy's
 *	`tid:ID`        the same of CPython's profiling.sampling; the line's frames are then
 *	                `file:name:line`, or markers
 *	`\xHH`          one byte, once a line was taken apart; any other backslash is itself
 *	blank lines, other lines that start with `#`, counts of 0: skipped and counted
 *
 * Bytes that are not UTF-8 are kept. More than TICKS_MAX samples are refused: beyond that doubles
 * lose them. A count beyond 32 bits is several samples.
 */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "import/import.h"
#include "import/intake.h"
#include "import/py_spy.h"
#include "import/span.h"
#include "import/text_reader.h"

#define HEADER "# pyebpf-collapsed"
#define SOURCE "collapsed text"
#define INTERVAL_US_MAX 1e12 /* 11 days; %.15g writes it exactly, to the ns */
#define WORK_MAX 1e18
#define DECIMAL_CHARS_MAX 40
#define TICKS_MAX (UINT64_C(1) << 53) /* of a file */

/* Where a frame of the line before ends, and the stack up to it. */
struct mark {
	size_t end;
	uint32_t stack;
};

/*
 * The frames of the line before. Most writers sort: what a line has in common with the one before
 * it need not be taken apart again.
 */
struct before {
	VEC(char) text;
	VEC(struct mark) marks;
	bool is_cpython;
};

struct collapsed {
	struct profile *p; /* of this call */
	struct import_facts *facts;
	struct text_reader reader;
	struct strbuf text; /* a name without its escapes */
	struct span first;  /* the first line, unless it was the header; NULL: it was read */
	bool is_cpython;    /* the line at hand: its frames are FILE:NAME:LINE */
	struct before before;
	uint64_t ticks;
};

static void collapsed_free(void *reader)
{
	struct collapsed *c = reader;

	text_reader_release(&c->reader);
	strbuf_release(&c->text);
	vec_release(&c->before.text);
	vec_release(&c->before.marks);
	free(c);
}

DEFINE_CLEANUP(struct collapsed *, collapsed_free)

static int malformed(const struct collapsed *c, const char *what)
{
	return text_malformed(&c->reader, what);
}

/* All of s: digits, with or without a point and an exponent; above 0, up to max. */
static bool parse_decimal(struct span s, double max, double *out)
{
	char text[DECIMAL_CHARS_MAX + 1], *end;
	double value;

	if (!s.len || s.len > DECIMAL_CHARS_MAX)
		return false;
	memcpy(text, s.bytes, s.len);
	text[s.len] = '\0';
	if (strspn(text, "0123456789.eE+-") != s.len)
		return false;
	value = strtod(text, &end);
	if (*end || !(value > 0 && value <= max))
		return false;
	*out = value;
	return true;
}

/* --- the header ------------------------------------------------------------------------------- */

static bool is_header(struct span line)
{
	size_t len = strlen(HEADER);

	return line.len >= len && !memcmp(line.bytes, HEADER, len) &&
	       (line.len == len || line.bytes[len] == ' ');
}

static int read_header(struct collapsed *c, struct span line)
{
	const char *at = line.bytes + strlen(HEADER), *end = line.bytes + line.len;
	double interval_us;

	while (at < end) {
		const char *space = memchr(at, ' ', (size_t)(end - at));
		struct span word = { at, (size_t)((space ? space : end) - at) };

		at = space ? space + 1 : end;
		if (span_take_prefix(&word, "interval_us=")) {
			if (!parse_decimal(word, INTERVAL_US_MAX, &interval_us))
				return malformed(c, "interval_us is no time of a sample");
			c->facts->recording.interval_ns = (uint64_t)(interval_us * 1000 + 0.5);
			if (!c->facts->recording.interval_ns)
				return malformed(c, "interval_us is less than a nanosecond");
		} else if (span_take_prefix(&word, "work=")) {
			if (!parse_decimal(word, WORK_MAX, &c->facts->recording.work))
				return malformed(c, "work is no number of units");
		}
	}
	return 0;
}

/* --- lines ------------------------------------------------------------------------------------ */

static bool is_blank_or_comment(struct span line)
{
	return !line.len || line.bytes[0] == '#';
}

/* Takes ` COUNT` off the end of a line. */
static bool take_count(struct span *line, struct span *count)
{
	const char *space = line->len ? memrchr(line->bytes, ' ', line->len) : NULL;

	if (!space)
		return false;
	*count = (struct span){ space + 1, (size_t)(line->bytes + line->len - space) - 1 };
	for (size_t i = 0; i < count->len; i++)
		if (!span_is_digit(count->bytes[i]))
			return false;
	line->len = (size_t)(space - line->bytes);
	return count->len > 0;
}

static int intern(struct collapsed *c, struct span s, uint32_t *id)
{
	int r;

	if (memchr(s.bytes, '\\', s.len)) {
		strbuf_truncate(&c->text, 0);
		r = span_unescape(s, &c->text);
		if (r < 0)
			return r;
		s = (struct span){ strbuf_str(&c->text), c->text.len };
	}
	r = intake_string(c->p, s, id);
	return r == -EMSGSIZE ? malformed(c, "a name is longer than 1 MiB") : r;
}

/* Splits `FILE:NAME:LINE`, as CPython's profiling.sampling writes it, at its last two colons. */
static bool split_cpython(struct span text, struct span *name, struct span *file, uint32_t *line)
{
	if (!span_take_line(&text, line) || !span_take_last(&text, ':', name))
		return false;
	*file = text;
	return true;
}

/* Appends the frame that text is to the stack. */
static int push_frame(struct collapsed *c, struct span text, uint32_t *stack)
{
	struct frame f = { .kind = FRAME_MARKER };
	struct span name = text, file;
	bool is_approximate;
	uint32_t id;
	int r = 0;

	if (c->is_cpython && split_cpython(text, &name, &file, &f.line)) {
		f.kind = FRAME_PYTHON;
		r = intern(c, file, &f.file);
	} else if (span_split_place(text, &name, &file)) {
		f.kind = FRAME_PYTHON;
		if (span_take_marked_line(&file, &f.line, &is_approximate) && is_approximate)
			f.flags |= FRAME_LINE_APPROXIMATE;
		r = intern(c, file, &f.file);
	}
	if (r < 0 || (r = intern(c, name, &f.name)) < 0 ||
	    (r = frametab_intern(c->p->frames, &f, &id)) < 0)
		return r;
	return stacktab_intern(c->p->stacks, *stack, id, stack);
}

/* Is text `KIND NAME (ID)`? */
static bool parse_tag(struct span text, const char *kind, struct span *name, uint32_t *id)
{
	struct span head, tail;
	size_t len = strlen(kind);
	uint64_t number;

	if (!span_split_place(text, &head, &tail) || head.len <= len ||
	    memcmp(head.bytes, kind, len) || head.bytes[len] != ' ' ||
	    !span_number(tail, UINT32_MAX, &number))
		return false;
	*name = (struct span){ head.bytes + len + 1, head.len - len - 1 };
	*id = (uint32_t)number;
	return true;
}

/* `tid:ID`, as CPython's profiling.sampling writes it. */
static bool parse_cpython_thread(struct span text, uint32_t *id)
{
	uint64_t number;

	if (!span_take_prefix(&text, "tid:") || !span_number(text, UINT32_MAX, &number))
		return false;
	*id = (uint32_t)number;
	return true;
}

/* The frame or tag that line starts with; rest.bytes is NULL behind the last one. */
static struct span take_text(struct span *rest)
{
	const char *end = rest->len ? memchr(rest->bytes, ';', rest->len) : NULL;
	struct span text = { rest->bytes, end ? (size_t)(end - rest->bytes) : rest->len };

	*rest = end ? (struct span){ end + 1, rest->len - text.len - 1 } : (struct span){ NULL, 0 };
	return text;
}

/* Takes the tags off the line, and finds whose they are. */
static int take_thread(struct collapsed *c, struct span *line, uint32_t *index)
{
	bool has_process = false, has_thread = false;
	struct process process = { .recording = c->facts->index };
	struct thread thread = { 0 };
	int r = 0;

	c->is_cpython = false;
	while (line->bytes && !r) {
		struct span rest = *line, text = take_text(&rest), name;

		if (!has_process && (parse_tag(text, "process", &name, &process.pid) ||
				     py_spy_process(text, &name, &process.pid))) {
			r = intern(c, name, &process.name);
			has_process = true;
		} else if (!has_thread && (parse_tag(text, "thread", &name, &thread.tid) ||
					   py_spy_thread(text, &name, &thread.tid))) {
			r = intern(c, name, &thread.name);
			has_thread = true;
		} else if (!has_thread && parse_cpython_thread(text, &thread.tid)) {
			c->is_cpython = has_thread = true;
		} else {
			break;
		}
		*line = rest;
	}
	if (!r)
		r = profile_add_process(c->p, &process, &thread.process);
	return r ? r : profile_add_thread(c->p, &thread, index);
}

static int add_ticks(struct collapsed *c, struct sample s, uint64_t ticks)
{
	int r = 0;

	for (; ticks && !r; ticks -= s.value) {
		s.value = ticks < UINT32_MAX ? (uint32_t)ticks : UINT32_MAX;
		r = profile_add_sample(c->p, &s);
	}
	return r;
}

static size_t common_bytes(const char *a, const char *b, size_t len)
{
	size_t n = 0;
	uint64_t x, y;

	for (; n + sizeof(x) <= len; n += sizeof(x)) {
		memcpy(&x, a + n, sizeof(x));
		memcpy(&y, b + n, sizeof(y));
		if (x != y)
			break;
	}
	while (n < len && a[n] == b[n])
		n++;
	return n;
}

/* Takes the frames off the line that it shares with the one before, which then ends there. */
static void take_common(struct collapsed *c, struct span *line, uint32_t *stack)
{
	struct before *b = &c->before;
	size_t len = b->text.len < line->len ? b->text.len : line->len, common = 0;

	if (b->is_cpython == c->is_cpython && len)
		common = common_bytes(b->text.items, line->bytes, len);
	while (b->marks.len) {
		size_t end = b->marks.items[b->marks.len - 1].end;

		if (end < common ||
		    (end == common && (end == line->len || line->bytes[end] == ';')))
			break;
		b->marks.len--;
	}
	b->is_cpython = c->is_cpython;
	b->text.len = 0;
	if (!b->marks.len)
		return;
	*stack = b->marks.items[b->marks.len - 1].stack;
	b->text.len = b->marks.items[b->marks.len - 1].end;
	if (b->text.len == line->len)
		*line = (struct span){ NULL, 0 };
	else
		*line = (struct span){ line->bytes + b->text.len + 1, line->len - b->text.len - 1 };
}

/* The stack of the frames that line has; line.bytes may be NULL: none. */
static int read_frames(struct collapsed *c, struct span line, uint32_t *stack)
{
	struct before *b = &c->before;
	int r = 0;

	if (!line.bytes)
		return 0;
	take_common(c, &line, stack);
	while (line.bytes && !r) {
		struct span text = take_text(&line);

		if (b->marks.len == INTAKE_DEPTH_MAX)
			return malformed(c, "a stack deeper than 65,536 frames");
		r = push_frame(c, text, stack);
		if (!r && b->marks.len)
			r = vec_push(&b->text, ';');
		if (!r)
			r = vec_append(&b->text, text.bytes, text.len);
		if (!r)
			r = vec_push(&b->marks, ((struct mark){ b->text.len, *stack }));
	}
	return r;
}

static int read_stack(struct collapsed *c, struct span line)
{
	struct sample s = { 0 };
	struct span count;
	uint64_t ticks;
	int r;

	if (!take_count(&line, &count))
		return malformed(c, "expected a sample count at the end of the line");
	if (!span_number(count, TICKS_MAX - c->ticks, &ticks))
		return malformed(c, "more than 2^53 samples");
	if (!ticks) {
		c->facts->skipped++;
		return 0;
	}
	c->ticks += ticks;
	r = take_thread(c, &line, &s.thread);
	if (!r)
		r = read_frames(c, line, &s.stack);
	return r ? r : add_ticks(c, s, ticks);
}

static int read_line(struct collapsed *c, struct span line)
{
	if (!is_blank_or_comment(line))
		return read_stack(c, line);
	c->facts->skipped++;
	return 0;
}

static int open_collapsed(struct content *content, struct import_facts *facts, void **out)
{
	_cleanup_(collapsed_freep) struct collapsed *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->reader.content = content;
	c->facts = facts;
	facts->recording.is_summed = 1;
	facts->recording.has_ended = 1;
	r = recording_set_text(&facts->recording.source, SOURCE);
	if (!r)
		r = text_reader_next(&c->reader, &c->first.bytes, &c->first.len);
	if (r > 0 && is_header(c->first)) {
		r = read_header(c, c->first);
		c->first.bytes = NULL;
	}
	if (r < 0)
		return r;
	*out = take_ptr(c);
	return 0;
}

/* As text_reader_next(), for the lines behind the header. */
static int next_line(struct collapsed *c, struct span *line)
{
	if (!c->first.bytes)
		return text_reader_next(&c->reader, &line->bytes, &line->len);
	*line = c->first;
	c->first.bytes = NULL;
	return 1;
}

static int next_collapsed(void *reader, struct profile *p, struct import_facts *facts)
{
	struct collapsed *c = reader;
	size_t before = p->samples.len;
	struct span line;
	int r = 0, more = 1;

	c->p = p;
	c->facts = facts;
	c->before.marks.len = 0; /* the caller may have emptied its tables */
	while (!r && p->samples.len - before < IMPORT_BATCH_SAMPLES &&
	       (more = next_line(c, &line)) > 0)
		r = read_line(c, line);
	return r ? r : more;
}

/* By the first line that is neither blank nor a comment: it ends in a count. */
static bool sniff(const char *head, size_t len)
{
	const char *end = head + len;

	for (const char *at = head; at < end;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t line_len = (size_t)((newline ? newline : end) - at);
		struct span line = { at, text_trim(at, line_len) }, count;

		if (at == head && is_header(line))
			return true;
		if (!is_blank_or_comment(line)) {
			if (memchr(at, '\0', line_len))
				return false;
			/* the end of a long one is not in the head */
			return (!newline && len == IMPORT_HEAD_BYTES) || take_count(&line, &count);
		}
		at += line_len + 1;
	}
	return false;
}

const struct importer importer_collapsed = {
	.name = "collapsed",
	.sniff = sniff,
	.open = open_collapsed,
	.next = next_collapsed,
	.free = collapsed_free,
};
