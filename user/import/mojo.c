/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * MOJO, Austin's binary format (src/mojo.h, 3.7; austin-python 2.4's reader for what 4.0 added):
 * "MOJ", the version, then events, of which the first byte tells which. Numbers have six bits in
 * their first byte beside a sign (0x40), then seven; strings end in a NUL. Keys of strings and
 * frames are of the process of the sample that is open, and may be given anew.
 *
 * A sample goes from its stack event to the next one. Frames stand root first; a repetition begins
 * with what was that thread's last stack, without the native frames on top. Tasks of asyncio have
 * no numbers of their own: they are read over. Columns and end lines are left behind.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "import/austin_values.h"
#include "import/byte_stream.h"
#include "import/intake.h"
#include "import/key_map.h"

#define MAGIC "MOJ"
#define VERSION_MAX 4
#define EVENT_BYTES_MAX 256 /* but for strings */
#define STRING_BYTES_MAX (1u << 20)
#define TOO_DEEP "a stack deeper than 65,536 frames"

enum mojo_event {
	EVENT_METADATA = 1,
	EVENT_STACK,
	EVENT_FRAME,
	EVENT_FRAME_INVALID,
	EVENT_FRAME_REF,
	EVENT_FRAME_KERNEL,
	EVENT_GC,
	EVENT_IDLE,
	EVENT_TIME,
	EVENT_MEMORY,
	EVENT_STRING,
	EVENT_STRING_REF,
	EVENT_STACK_REPEAT,
	EVENT_TASK_STACK,
	EVENT_TASK_WAITER,
	EVENT_TASK_RUNNING,
};

enum last_scope { SCOPE_STACK, SCOPE_DEPTH };
enum mojo_string { STRING_EMPTY, STRING_UNKNOWN };

/* The one that is open. */
struct mojo_sample {
	bool is_open, is_repeated, has_gc;
	uint64_t pid;
	uint32_t thread; /* index */
	struct austin_metrics metrics;
};

struct mojo {
	struct byte_stream stream;
	struct austin_values values;
	uint64_t version;
	bool has_begun; /* behind the metadata at its start */
	struct mojo_sample sample;
	VEC(uint32_t) frames;          /* of it, ids, root first */
	uint64_t task_frames;          /* references that are a task's */
	struct key_map strings, known; /* by pid: string ids, frame ids */
	struct key_map last; /* by index of a thread: stack id, and in SCOPE_DEPTH its depth */
	struct profile *p;   /* of this call */
	struct import_facts *facts;
};

static void mojo_free(void *reader)
{
	struct mojo *m = reader;

	byte_stream_release(&m->stream);
	vec_release(&m->frames);
	key_map_release(&m->strings);
	key_map_release(&m->known);
	key_map_release(&m->last);
	free(m);
}

DEFINE_CLEANUP(struct mojo *, mojo_free)

static int malformed(const struct mojo *m, const char *what)
{
	return err_set(-EBADMSG, "at byte %llu: %s",
		       (unsigned long long)byte_stream_offset(&m->stream), what);
}

/* --- numbers and strings ---------------------------------------------------------------------- */

/* A number without its sign: of 64 bits, as keys are, and lines of which nobody knows (-1). */
static int get_magnitude(struct mojo *m, uint64_t *out, bool *is_below)
{
	struct byte_stream *s = &m->stream;
	uint64_t value = 0, bits;
	unsigned int shift = 0;
	uint8_t byte = 0x80;
	int r = byte_stream_fill(s, EVENT_BYTES_MAX);

	if (r < 0)
		return r;
	while (byte & 0x80) {
		if (s->p == s->end)
			return malformed(m, "it ends within a number");
		byte = *s->p++;
		bits = byte & (shift ? 0x7f : 0x3f);
		if (!shift)
			*is_below = byte & 0x40;
		if (shift > 63 || bits << shift >> shift != bits)
			return malformed(m, "a number of more than 64 bits");
		value |= bits << shift;
		shift += shift ? 7 : 6;
	}
	*out = value;
	return 0;
}

static int get_signed(struct mojo *m, int64_t *out)
{
	bool is_below = false;
	uint64_t value = 0;
	int r = get_magnitude(m, &value, &is_below);

	if (!r && value > INT64_MAX)
		r = malformed(m, "a number of more than 63 bits");
	*out = is_below ? -(int64_t)value : (int64_t)value;
	return r;
}

static int get_number(struct mojo *m, uint64_t *out)
{
	bool is_below = false;
	int r = get_magnitude(m, out, &is_below);

	return !r && is_below ? malformed(m, "a number below 0") : r;
}

/* Borrowed: valid until the stream is filled again. */
static int get_string(struct mojo *m, struct span *out)
{
	struct byte_stream *s = &m->stream;
	const uint8_t *end = NULL;
	size_t want = 4096, left;
	int r;

	do {
		r = byte_stream_fill(s, want);
		if (r < 0)
			return r;
		left = (size_t)(s->end - s->p);
		end = left ? memchr(s->p, '\0', left) : NULL;
		if (!end && left < want)
			return malformed(m, "it ends within a string");
		want *= 8;
	} while (!end && want / 8 <= STRING_BYTES_MAX);
	if (!end || (size_t)(end - s->p) > STRING_BYTES_MAX)
		return malformed(m, "a string longer than 1 MiB");
	*out = (struct span){ (const char *)s->p, (size_t)(end - s->p) };
	s->p = end + 1;
	return 0;
}

/* --- tables ----------------------------------------------------------------------------------- */

static int read_metadata(struct mojo *m, struct recording *r)
{
	char key[32];
	struct span text;
	size_t len;
	int e = get_string(m, &text);

	if (e < 0)
		return e;
	len = text.len < sizeof(key) ? text.len : sizeof(key); /* longer ones are not known */
	memcpy(key, text.bytes, len);
	e = get_string(m, &text);
	return e ? e : austin_metadata(&m->values, r, (struct span){ key, len }, text);
}

static int read_string(struct mojo *m)
{
	struct span text;
	uint64_t key;
	uint32_t id;
	int r;

	if ((r = get_number(m, &key)) < 0 || (r = get_string(m, &text)) < 0 ||
	    (r = intake_string(m->p, text, &id)) < 0)
		return r;
	return key_map_set(&m->strings, m->sample.pid, key, id);
}

static int find_string(struct mojo *m, uint64_t key, uint32_t *id)
{
	static const char *const fixed[] = { [STRING_EMPTY] = "", [STRING_UNKNOWN] = "<unknown>" };

	if (key <= STRING_UNKNOWN)
		return intake_string(m->p, (struct span){ fixed[key], strlen(fixed[key]) }, id);
	if (!key_map_find(&m->strings, m->sample.pid, key, id))
		return malformed(m, "a frame names no string");
	return 0;
}

static int read_frame(struct mojo *m)
{
	uint64_t key, file, scope, line, end;
	struct frame f = { .kind = FRAME_PYTHON };
	uint32_t id;
	int r;

	if ((r = get_number(m, &key)) < 0 || (r = get_number(m, &file)) < 0 ||
	    (r = get_number(m, &scope)) < 0 || (r = get_number(m, &line)) < 0)
		return r;
	for (int i = 0; i < 3 && m->version > 1 && !r; i++) /* end line, columns */
		r = get_number(m, &end);
	if (r < 0 || (r = find_string(m, file, &f.file)) < 0 ||
	    (r = find_string(m, scope, &f.name)) < 0)
		return r;
	f.line = line <= INT32_MAX ? (uint32_t)line : 0;
	if (!f.file)
		f = (struct frame){ .kind = FRAME_MARKER, .name = f.name };
	r = frametab_intern(m->p->frames, &f, &id);
	return r ? r : key_map_set(&m->known, m->sample.pid, key, id);
}

/* --- samples ---------------------------------------------------------------------------------- */

static int push_id(struct mojo *m, uint32_t frame)
{
	if (m->frames.len >= INTAKE_DEPTH_MAX)
		return malformed(m, TOO_DEEP);
	return vec_push(&m->frames, frame);
}

static int push_reference(struct mojo *m)
{
	uint64_t key;
	uint32_t frame;
	int r = get_number(m, &key);

	if (r < 0)
		return r;
	if (!key_map_find(&m->known, m->sample.pid, key, &frame))
		return malformed(m, "a frame that is not there");
	if (m->task_frames) {
		m->task_frames--;
		return 0;
	}
	return push_id(m, frame);
}

static int push_special(struct mojo *m, uint8_t kind, struct span name, const char *file)
{
	struct frame f = { .kind = kind };
	uint32_t id;
	int r;

	if ((r = intake_string(m->p, name, &f.name)) < 0 ||
	    (r = intake_string(m->p, (struct span){ file, strlen(file) }, &f.file)) < 0 ||
	    (r = frametab_intern(m->p->frames, &f, &id)) < 0)
		return r;
	return push_id(m, id);
}

static int push_marker(struct mojo *m, const char *name)
{
	return push_special(m, FRAME_MARKER, (struct span){ name, strlen(name) }, "");
}

/* As austin-python tells them: neither a .py nor <...>. */
static bool is_native(const struct profile *p, const struct frame *f)
{
	const char *file = strtab_get(p->strings, f->file);
	size_t len = strtab_len(p->strings, f->file);
	struct span s = { file, len };

	return !span_ends_in(s, ".py") && !(len > 1 && file[0] == '<' && file[len - 1] == '>');
}

/* The stack of a repetition: that thread's last one. Returns its depth. */
static uint32_t repeated_stack(const struct mojo *m, uint32_t *stack)
{
	const struct stack_entry *entries = stacktab_entries(m->p->stacks);
	uint32_t depth;

	if (!key_map_find(&m->last, SCOPE_STACK, m->sample.thread, stack) ||
	    !key_map_find(&m->last, SCOPE_DEPTH, m->sample.thread, &depth))
		return 0;
	for (; *stack && is_native(m->p, frametab_get(m->p->frames, entries[*stack].frame));
	     depth--)
		*stack = entries[*stack].parent;
	return depth;
}

static int finish_sample(struct mojo *m)
{
	struct sample s = { .thread = m->sample.thread };
	uint32_t depth = 0;
	int r = 0;

	if (!m->sample.is_open)
		return 0;
	if (m->sample.has_gc)
		r = push_marker(m, PROFILE_GC);
	if (m->sample.is_repeated)
		depth = repeated_stack(m, &s.stack);
	depth += (uint32_t)m->frames.len;
	if (!r && depth > INTAKE_DEPTH_MAX)
		r = malformed(m, TOO_DEEP);
	for (size_t i = 0; i < m->frames.len && !r; i++)
		r = stacktab_intern(m->p->stacks, s.stack, m->frames.items[i], &s.stack);
	if (!r)
		r = key_map_set(&m->last, SCOPE_STACK, s.thread, s.stack);
	if (!r)
		r = key_map_set(&m->last, SCOPE_DEPTH, s.thread, depth);
	if (!r)
		r = austin_add(&m->values, m->p, s, &m->sample.metrics);
	m->sample.is_open = false;
	m->frames.len = 0;
	return r == -ERANGE ? malformed(m, "numbers that add up to more than 2^63") : r;
}

static int begin_sample(struct mojo *m)
{
	struct process process = { .recording = m->facts->index };
	uint64_t pid, interpreter = 0, tid = 0;
	struct span text;
	uint32_t index;
	int r = finish_sample(m);

	if (!r)
		r = get_number(m, &pid);
	if (!r && m->version >= 3)
		r = get_number(m, &interpreter);
	if (!r)
		r = get_string(m, &text);
	if (r < 0)
		return r;
	if (pid > UINT32_MAX || !span_hex(text, &tid))
		return malformed(m, "no ids of a process and a thread");
	process.pid = (uint32_t)pid;
	m->sample = (struct mojo_sample){ .is_open = true, .pid = pid };
	r = profile_add_process(m->p, &process, &index);
	return r ? r : intake_thread(m->p, index, tid, interpreter, &m->sample.thread);
}

static int get_metric(struct mojo *m, int64_t *value)
{
	if (!m->sample.is_open)
		return malformed(m, "a number of no sample");
	return get_signed(m, value);
}

static int skip_numbers(struct mojo *m, unsigned int count, uint64_t *last)
{
	int r = 0;

	while (count-- && !r)
		r = get_number(m, last);
	return r;
}

static int read_event(struct mojo *m, uint8_t event)
{
	struct span text;
	uint64_t ignored;
	int r;

	switch ((enum mojo_event)event) {
	case EVENT_METADATA:
		return read_metadata(m, &m->p->recordings.items[m->facts->index]);
	case EVENT_STACK:
		return begin_sample(m);
	case EVENT_FRAME:
		return read_frame(m);
	case EVENT_FRAME_INVALID:
		return push_marker(m, "<invalid>");
	case EVENT_FRAME_REF:
		return push_reference(m);
	case EVENT_FRAME_KERNEL:
		r = get_string(m, &text);
		return r ? r : push_special(m, FRAME_KERNEL, text, AUSTIN_KERNEL);
	case EVENT_GC:
		m->sample.has_gc = true;
		return 0;
	case EVENT_IDLE:
		m->sample.metrics.is_idle = true;
		return 0;
	case EVENT_TIME:
		return get_metric(m, &m->sample.metrics.time_us);
	case EVENT_MEMORY:
		return get_metric(m, &m->sample.metrics.memory_bytes);
	case EVENT_STRING:
		return read_string(m);
	case EVENT_STRING_REF:
	case EVENT_TASK_RUNNING:
		return skip_numbers(m, 1, &ignored);
	case EVENT_TASK_WAITER:
		return skip_numbers(m, 2, &ignored);
	case EVENT_TASK_STACK:
		return skip_numbers(m, 3, &m->task_frames);
	case EVENT_STACK_REPEAT:
		m->sample.is_repeated = true;
		return 0;
	}
	return malformed(m, "an unknown event");
}

/* --- the file --------------------------------------------------------------------------------- */

static int read_header(struct mojo *m)
{
	int r = byte_stream_fill(&m->stream, EVENT_BYTES_MAX);

	if (r < 0)
		return r;
	if (m->stream.end - m->stream.p < 3 || memcmp(m->stream.p, MAGIC, 3) != 0)
		return malformed(m, "no MOJO, which begins with " MAGIC);
	m->stream.p += 3;
	r = get_number(m, &m->version);
	if (!r && (m->version < 1 || m->version > VERSION_MAX))
		r = err_set(-EPROTONOSUPPORT, "version %llu of MOJO; 1 to %d are known",
			    (unsigned long long)m->version, VERSION_MAX);
	return r;
}

/* What stands before the first sample is known once the file is open. */
static int read_first_metadata(struct mojo *m, struct recording *r)
{
	struct byte_stream *s = &m->stream;
	int e;

	while (!(e = byte_stream_fill(s, 1)) && s->p < s->end && *s->p == EVENT_METADATA) {
		s->p++;
		e = read_metadata(m, r);
		if (e < 0)
			break;
	}
	return e;
}

static int open_mojo(struct content *content, struct import_facts *facts, void **out)
{
	_cleanup_(mojo_freep) struct mojo *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	if ((r = byte_stream_open(&m->stream, content, 0, BYTE_STREAM_TO_END, false)) < 0 ||
	    (r = austin_describe(&facts->recording)) < 0 || (r = read_header(m)) < 0 ||
	    (r = read_first_metadata(m, &facts->recording)) < 0)
		return r;
	*out = take_ptr(m);
	return 0;
}

static int next_mojo(void *reader, struct profile *p, struct import_facts *facts)
{
	struct mojo *m = reader;
	struct byte_stream *s = &m->stream;
	size_t before = p->samples.len;
	int r = 0;

	m->p = p;
	m->facts = facts;
	while (!r && p->samples.len - before < IMPORT_BATCH_SAMPLES) {
		r = byte_stream_fill(s, EVENT_BYTES_MAX);
		if (r < 0)
			break;
		if (s->p == s->end)
			return finish_sample(m);
		r = read_event(m, *s->p++);
	}
	return r ? r : 1;
}

static bool sniff(const char *head, size_t len)
{
	return len > 3 && !memcmp(head, MAGIC, 3) && head[3] >= 1 && head[3] <= 0x3f;
}

const struct importer importer_mojo = {
	.name = "mojo",
	.sniff = sniff,
	.open = open_mojo,
	.next = next_mojo,
	.free = mojo_free,
};
