/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The binary format of CPython 3.15's profiling.sampling (`--binary`), version 1, as 3.15.0 and
 * later write it: a header, a stream of records (raw or one zstd frame), a table of strings, one of
 * frames, perhaps statistics, a footer. Fixed-width numbers are in the writer's byte order. What of
 * a file is not as the release writes it, also the pre-releases' layouts of the same version
 * number, is refused.
 *
 * A stack belongs to a thread of an interpreter and is told as a change of that thread's last one.
 * As in upstream's own outputs, frames of its start-up code (_sync_coordinator.py) are left out,
 * and samples that have no frame then: those are counted as "no_frame". A stack of 256 frames, the
 * most the format keeps, is taken for a cut one. Columns are left behind.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "base/varint.h"
#include "import/byte_stream.h"
#include "import/import.h"
#include "import/intake.h"
#include "profile/idmap.h"
#include "profile/opcodes.h"
#include "profile/module.h"

/* Sizes and numbers: Modules/_remote_debugging/binary_io.h, 3.15.0 */
#define MAGIC "HCAT" /* 0x54414348, little-endian */
#define MAGIC_BIG "TACH"
#define VERSION 1
#define HEADER_BYTES 64
#define FOOTER_BYTES 32
#define STATS_BYTES 56
#define STATS_MAGIC "TACHSTAT"
#define STATS_VERSION 1
#define DEPTH_MAX 256
#define COMPRESSION_ZSTD 1
#define FRAME_BYTES_MIN 7  /* six varints and the opcode */
#define FRAME_BYTES_MAX 64 /* of seven at most, rounded up */
#define RECORD_BYTES_MAX                                                         \
	64 /* up to the frames: thread, interpreter, kind, three varints, status \
	    */
#define FRAME_INDEX_BYTES 5

#define TIME_US_MAX ((uint64_t)INT64_MAX / 1000)
#define THREADS_MAX (1u << 18) /* what a hostile file may make us hold: 256 MiB */
#define TICKS_MAX (UINT64_C(1) << 53)
#define INTERNAL_SUFFIX "_sync_coordinator.py" /* constants.py, _INTERNAL_FRAME_SUFFIXES */
#define MARKER_FILE "~"

enum record_kind { RECORD_REPEAT, RECORD_FULL, RECORD_SUFFIX, RECORD_POP_PUSH, RECORD_KINDS };
enum status_bits { STATUS_HAS_GIL = 1 << 0 };
enum stats_bits { STATS_HAS_ERROR_RATE = 1 << 0, STATS_HAS_MISSED = 1 << 1 };

static const char *const modes[] = { NULL, "wall", "cpu", "gil", "all", "exception" };
static const char *const features[] = { "all threads", "native", "gc", "opcodes", "blocking" };
#define CONFIG_MODE_MASK 7
#define CONFIG_HAS_FEATURES (1u << 3)
#define CONFIG_FEATURES_SHIFT 4

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

struct header {
	uint32_t version;
	uint8_t python[3];
	uint64_t interval_us;
	uint64_t samples;
	uint32_t threads;
	uint64_t string_offset;
	uint64_t frame_offset;
	uint32_t compression;
	uint32_t config;
};

/* Unknown: NAN. */
struct stats {
	double duration_s;
	double rate_hz; /* of ticks, as achieved */
	double error_percent;
	double missed_percent;
};

struct string {
	uint32_t id; /* in the profile */
	bool is_marker;
	bool is_internal;
};

#define FRAME_INTERNAL UINT32_MAX /* instead of a frame id: left out */
#define OPCODE_NONE 255           /* was not captured */

/* What a frame of the file is in the profile. */
struct source_frame {
	uint32_t id;     /* or FRAME_INTERNAL */
	uint32_t opcode; /* string id; 0: not known */
};

/* An entry of a thread's stack. */
struct source_entry {
	uint32_t stack; /* stack id of all entries up to this one */
	uint32_t opcode;
};

/* One thread of one interpreter. */
struct source_thread {
	uint64_t tid;
	uint32_t interpreter;
	uint32_t index;                /* in the profile */
	uint64_t time_us;              /* of its last sample, since the start of the recording */
	VEC(struct source_entry) path; /* root first */
};

struct tachyon {
	struct content *content;
	uint64_t size;
	bool is_big; /* endian */
	struct header header;
	struct stats stats;
	uint32_t string_count, frame_count;
	uint64_t tables_end;
	bool has_tables;
	VEC(struct source_frame) frames;
	VEC(struct source_thread) threads;
	struct idmap thread_map;     /* by tid and interpreter */
	uint32_t recording, process; /* indices in the profile */
	struct byte_stream stream;
	uint32_t thread;      /* index of the record's */
	uint64_t repeat_left; /* samples of a RECORD_REPEAT still to come */
	uint64_t samples;     /* so far */
	uint64_t without_frame, truncated;
};

static void tachyon_free(void *reader)
{
	struct tachyon *t = reader;

	byte_stream_release(&t->stream);
	vec_release(&t->frames);
	for (size_t i = 0; i < t->threads.len; i++)
		vec_release(&t->threads.items[i].path);
	vec_release(&t->threads);
	idmap_release(&t->thread_map);
	free(t);
}

DEFINE_CLEANUP(struct tachyon *, tachyon_free)

static uint64_t get_fixed(const uint8_t *p, size_t bytes, bool is_big)
{
	uint64_t v = 0;

	for (size_t i = 0; i < bytes; i++)
		v |= (uint64_t)p[is_big ? bytes - 1 - i : i] << 8 * i;
	return v;
}

static uint32_t get_u32(const struct tachyon *t, const uint8_t *p)
{
	return (uint32_t)get_fixed(p, 4, t->is_big);
}

static uint64_t get_u64(const struct tachyon *t, const uint8_t *p)
{
	return get_fixed(p, 8, t->is_big);
}

static double get_f64(const struct tachyon *t, const uint8_t *p)
{
	uint64_t bits = get_u64(t, p);
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

static int malformed_at(uint64_t offset, const char *what)
{
	return err_set(-EBADMSG, "at byte %llu: %s", (unsigned long long)offset, what);
}

/* Where the stream is; file_start is its own place. */
static int malformed(const struct tachyon *t, uint64_t file_start, const char *what)
{
	uint64_t offset = byte_stream_offset(&t->stream);

	if (t->stream.is_zstd)
		return err_set(-EBADMSG, "at byte %llu of its decompressed samples: %s",
			       (unsigned long long)offset, what);
	return malformed_at(file_start + offset, what);
}

/* --- header, footer, statistics --------------------------------------------------------------- */

static int read_at(const struct tachyon *t, uint64_t offset, void *to, size_t len)
{
	ssize_t n = content_pread(t->content, to, len, offset);

	if (n < 0)
		return (int)n;
	return (size_t)n == len ? 0 : malformed_at(offset + (uint64_t)n, "unexpected end of file");
}

static bool is_zero(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (p[i])
			return false;
	return true;
}

static int foreign_version(const struct header *h)
{
	if (h->version > VERSION && h->version < 256 && h->python[0] == 3)
		return err_set(-EPROTONOSUPPORT,
			       "version %u of profiling.sampling's format, of Python %u.%u or a "
			       "pre-release; only version %d is known, of 3.15",
			       h->version, h->python[0], h->python[1], VERSION);
	return err_set(-EPROTONOSUPPORT,
		       "version %u of profiling.sampling's format; only version %d is known, of "
		       "Python 3.15",
		       h->version, VERSION);
}

/* Pre-releases of 3.15 wrote other layouts under the same version: their fields make no sense. */
static int check_header(const struct tachyon *t)
{
	const struct header *h = &t->header;

	if (h->version != VERSION)
		return foreign_version(h);
	if (h->python[0] != 3 || h->python[1] < 15 || h->string_offset < HEADER_BYTES ||
	    h->frame_offset < h->string_offset || h->frame_offset > t->size - FOOTER_BYTES ||
	    (h->config & CONFIG_MODE_MASK) >= ARRAY_SIZE(modes))
		return malformed_at(0, "not a header of Python 3.15.0 or later: written by a "
				       "pre-release, or damaged");
	if (h->compression > COMPRESSION_ZSTD)
		return malformed_at(56, "unknown compression");
	if (h->interval_us > TIME_US_MAX)
		return malformed_at(20, "impossible sampling interval");
	if (h->samples > TICKS_MAX)
		return malformed_at(28, "more than 2^53 samples");
	return 0;
}

static int read_header(struct tachyon *t)
{
	struct header *h = &t->header;
	uint8_t b[HEADER_BYTES];
	int r;

	r = read_at(t, 0, b, sizeof(b));
	if (r < 0)
		return r;
	if (is_zero(b, sizeof(b)))
		return malformed_at(0, "64 zero bytes: profiling.sampling was probably killed "
				       "before it wrote the names, which are lost");
	if (t->size < HEADER_BYTES + FOOTER_BYTES)
		return malformed_at(t->size, "unexpected end of file");
	t->is_big = !memcmp(b, MAGIC_BIG, 4);
	h->version = get_u32(t, b + 4);
	memcpy(h->python, b + 8, sizeof(h->python));
	h->interval_us = get_u64(t, b + 20);
	h->samples = get_u64(t, b + 28);
	h->threads = get_u32(t, b + 36);
	h->string_offset = get_u64(t, b + 40);
	h->frame_offset = get_u64(t, b + 48);
	h->compression = get_u32(t, b + 56);
	h->config = get_u32(t, b + 60);
	return check_header(t);
}

static int read_footer(struct tachyon *t)
{
	uint64_t offset = t->size - FOOTER_BYTES;
	uint8_t b[FOOTER_BYTES];
	int r = read_at(t, offset, b, sizeof(b));

	if (r < 0)
		return r;
	t->string_count = get_u32(t, b);
	t->frame_count = get_u32(t, b + 4);
	t->tables_end = offset;
	if (get_u64(t, b + 8) != t->size)
		return malformed_at(offset + 8, "the file has another size than its end says: it "
						"was cut off or is of a pre-release");
	if (t->string_count > t->header.frame_offset - t->header.string_offset)
		return malformed_at(offset, "more strings than their table can hold");
	return 0;
}

/* A number that makes sense, or NAN. */
static double sane(double v, bool is_there)
{
	return is_there && isfinite(v) && v >= 0 && v <= 1e12 ? v : NAN;
}

/* In front of the footer, if at all. */
static int read_stats(struct tachyon *t)
{
	uint8_t b[STATS_BYTES];
	uint32_t flags;
	bool is_known;
	int r;

	t->stats = (struct stats){ NAN, NAN, NAN, NAN };
	if (t->tables_end - t->header.frame_offset < STATS_BYTES)
		return 0;
	r = read_at(t, t->tables_end - STATS_BYTES, b, sizeof(b));
	if (r < 0 || memcmp(b + 40, STATS_MAGIC, 8))
		return r;
	t->tables_end -= STATS_BYTES;
	flags = get_u32(t, b + 32);
	is_known = get_u32(t, b + 48) == STATS_VERSION;
	t->stats.duration_s = sane(get_f64(t, b), is_known);
	t->stats.rate_hz = sane(get_f64(t, b + 8), is_known);
	t->stats.error_percent = sane(get_f64(t, b + 16), is_known && flags & STATS_HAS_ERROR_RATE);
	t->stats.missed_percent = sane(get_f64(t, b + 24), is_known && flags & STATS_HAS_MISSED);
	return 0;
}

/* "CPython 3.15.2 profiling.sampling (all threads, gc)" */
static int describe_source(const struct header *h, char **out)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	const char *comma = " (";

	strbuf_appendf(&text, "CPython %u.%u.%u profiling.sampling", h->python[0], h->python[1],
		       h->python[2]);
	for (size_t i = 0; i < ARRAY_SIZE(features) && h->config & CONFIG_HAS_FEATURES; i++) {
		if (!(h->config >> CONFIG_FEATURES_SHIFT >> i & 1))
			continue;
		strbuf_appendf(&text, "%s%s", comma, features[i]);
		comma = ", ";
	}
	if (*comma == ',')
		strbuf_putc(&text, ')');
	*out = strbuf_take(&text);
	return *out ? 0 : -ENOMEM;
}

static int describe(const struct tachyon *t, struct recording *meta)
{
	meta->interval_ns = t->header.interval_us * 1000;
	meta->has_ended = 1;
	if (!isnan(t->stats.duration_s) && t->stats.duration_s < 1e9)
		meta->duration_ns = (uint64_t)(t->stats.duration_s * 1e9 + 0.5);
	if (recording_set_text(&meta->mode, modes[t->header.config & CONFIG_MODE_MASK]) < 0)
		return -ENOMEM;
	return describe_source(&t->header, &meta->source);
}

static int open_tachyon(struct content *content, struct import_facts *facts, void **out)
{
	_cleanup_(tachyon_freep) struct tachyon *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->content = content;
	if ((r = content_size(content, &t->size)) < 0 || (r = read_header(t)) < 0 ||
	    (r = read_footer(t)) < 0 || (r = read_stats(t)) < 0 ||
	    (r = describe(t, &facts->recording)) < 0)
		return r;
	if (t->frame_count > (t->tables_end - t->header.frame_offset) / FRAME_BYTES_MIN)
		return malformed_at(t->size - FOOTER_BYTES + 4,
				    "more frames than their table can hold");
	*out = take_ptr(t);
	return 0;
}

/* --- tables ----------------------------------------------------------------------------------- */

struct strings {
	struct string *items;
	size_t len, cap;
};

static void strings_release(struct strings *s)
{
	vec_release(s);
}

static int read_string(struct tachyon *t, struct profile *p, struct strings *strings)
{
	struct byte_stream *s = &t->stream;
	uint64_t start = t->header.string_offset, len;
	struct string string;
	int r = byte_stream_fill(s, VARINT_MAX_BYTES);

	if (r < 0)
		return r;
	if (varint_get_max(&s->p, s->end, STRTAB_LEN_MAX, &len) < 0)
		return malformed(t, start, "a string without length, or longer than 1 MiB");
	r = byte_stream_fill(s, len);
	if (r < 0)
		return r;
	if (len > (size_t)(s->end - s->p))
		return malformed(t, start, "a string beyond its table");
	string.is_marker = len == strlen(MARKER_FILE) && !memcmp(s->p, MARKER_FILE, len);
	string.is_internal = path_ends_in((const char *)s->p, len, INTERNAL_SUFFIX);
	r = intake_string(p, (struct span){ (const char *)s->p, len }, &string.id);
	s->p += len;
	return r ? r : vec_push(strings, string);
}

/* A line of a frame: 0 unless it is one. */
static uint32_t line_of(uint64_t zigzag)
{
	int64_t line = zigzag_decode(zigzag);

	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

/* The name of an instruction, as a string of p: 0 where the file has none, or one we do not know.
 */
static int intern_opcode(const struct tachyon *t, struct profile *p, uint8_t opcode, uint32_t *id)
{
	const char *name = opcode == OPCODE_NONE ? NULL : opcode_name(t->header.python[1], opcode);

	*id = 0;
	return name ? strtab_intern(p->strings, name, strlen(name), id) : 0;
}

static int read_frame(struct tachyon *t, struct profile *p, const struct strings *strings)
{
	struct byte_stream *s = &t->stream;
	uint64_t field[6]; /* file, name, line; what is not kept: end, column, its end */
	const struct string *file;
	struct frame f = { 0 };
	struct source_frame frame = { .id = FRAME_INTERNAL };
	uint8_t opcode;
	int r = byte_stream_fill(s, FRAME_BYTES_MAX);

	for (size_t i = 0; i < ARRAY_SIZE(field) && !r; i++)
		r = varint_get_max(&s->p, s->end, UINT32_MAX, &field[i]);
	if (r == -EBADMSG || (!r && s->p == s->end))
		return malformed(t, t->header.frame_offset, "a frame beyond its table");
	if (r < 0)
		return r;
	opcode = *s->p++;
	if (field[0] >= strings->len || field[1] >= strings->len)
		return malformed(t, t->header.frame_offset, "a frame names no string");
	file = &strings->items[field[0]];
	f.kind = file->is_marker ? FRAME_MARKER : FRAME_PYTHON;
	f.file = file->is_marker ? 0 : file->id;
	f.name = strings->items[field[1]].id;
	f.line = file->is_marker ? 0 : line_of(field[2]);
	if (!file->is_internal)
		r = frametab_intern(p->frames, &f, &frame.id);
	if (!r && f.kind == FRAME_PYTHON)
		r = intern_opcode(t, p, opcode, &frame.opcode);
	return r ? r : vec_push(&t->frames, frame);
}

/* 0; else the table at start has bytes behind its last row. */
static int end_table(struct tachyon *t, uint64_t start)
{
	int r = byte_stream_fill(&t->stream, 1);

	if (!r && t->stream.p < t->stream.end)
		r = malformed(t, start, "bytes behind a table");
	byte_stream_release(&t->stream);
	return r;
}

static int read_tables(struct tachyon *t, struct profile *p)
{
	_cleanup_(strings_release) struct strings strings = { 0 };
	const struct header *h = &t->header;
	int r = byte_stream_open(&t->stream, t->content, h->string_offset, h->frame_offset, false);

	for (uint32_t i = 0; i < t->string_count && !r; i++)
		r = read_string(t, p, &strings);
	if (!r)
		r = end_table(t, h->string_offset);
	if (!r)
		r = byte_stream_open(&t->stream, t->content, h->frame_offset, t->tables_end, false);
	for (uint32_t i = 0; i < t->frame_count && !r; i++)
		r = read_frame(t, p, &strings);
	return r ? r : end_table(t, h->frame_offset);
}

/* --- threads ---------------------------------------------------------------------------------- */

/* Only the minor version of the target is sure: a profiler attaches to any micro version of it. */
static int add_process(struct tachyon *t, struct profile *p)
{
	struct process process = { .recording = t->recording };
	char version[16];
	int len = snprintf(version, sizeof(version), "%u.%u", t->header.python[0],
			   t->header.python[1]);
	int r = strtab_intern(p->strings, version, (size_t)len, &process.python_version);

	return r ? r : profile_add_process(p, &process, &t->process);
}

static int add_thread(struct tachyon *t, struct profile *p, struct source_thread new, uint64_t hash)
{
	int r;

	if (t->threads.len >= t->header.threads)
		return malformed(t, HEADER_BYTES, "more threads than its header says");
	if (t->threads.len >= THREADS_MAX)
		return err_set(-E2BIG, "more than %u threads", THREADS_MAX);
	r = intake_thread(p, t->process, new.tid, new.interpreter, &new.index);
	if (r < 0)
		return r;
	if (idmap_reserve(&t->thread_map) < 0 || vec_push(&t->threads, new) < 0)
		return -ENOMEM;
	t->thread = (uint32_t)t->threads.len - 1;
	idmap_insert(&t->thread_map, hash, t->thread);
	return 0;
}

static bool is_thread(const struct tachyon *t, uint32_t i, uint64_t tid, uint32_t interpreter)
{
	return i < t->threads.len && t->threads.items[i].tid == tid &&
	       t->threads.items[i].interpreter == interpreter;
}

/* Sets t->thread. */
static int find_thread(struct tachyon *t, struct profile *p, uint64_t tid, uint32_t interpreter)
{
	uint64_t hash = hash_combine(tid, interpreter);
	size_t at = IDMAP_START;
	uint32_t id;

	if (is_thread(t, t->thread, tid, interpreter))
		return 0;
	while ((id = idmap_next(&t->thread_map, hash, &at)) != IDMAP_NONE)
		if (is_thread(t, id, tid, interpreter))
			break;
	if (id == IDMAP_NONE)
		return add_thread(t, p,
				  (struct source_thread){ .tid = tid, .interpreter = interpreter },
				  hash);
	t->thread = id;
	return 0;
}

/* --- samples ---------------------------------------------------------------------------------- */

static int get(struct tachyon *t, uint64_t max, uint64_t *v)
{
	if (varint_get_max(&t->stream.p, t->stream.end, max, v) < 0)
		return malformed(t, HEADER_BYTES, "no number, or one out of range");
	return 0;
}

/* What is between a record's or repetition's head and its stack. */
static int get_time(struct tachyon *t, uint8_t *status)
{
	struct source_thread *thread = &t->threads.items[t->thread];
	uint64_t step_us;
	int r = get(t, UINT64_MAX, &step_us);

	if (r < 0)
		return r;
	if (t->stream.p == t->stream.end)
		return malformed(t, HEADER_BYTES, "a record ends early");
	/* modulo 2^64, as it was written: a clock may step back */
	if (thread->time_us + step_us > TIME_US_MAX)
		return malformed(t, HEADER_BYTES, "a time before the start, or 292 years later");
	thread->time_us += step_us;
	*status = *t->stream.p++;
	return 0;
}

/* The frames in front of `kept` outer ones, innermost first. */
static int get_stack(struct tachyon *t, struct profile *p, uint64_t kept, uint64_t count)
{
	struct source_thread *thread = &t->threads.items[t->thread];
	const struct source_frame *frames[DEPTH_MAX];
	struct source_entry e = { 0 };
	uint64_t index;
	int r;

	if (kept > thread->path.len || count > DEPTH_MAX - kept)
		return malformed(t, HEADER_BYTES, "a stack deeper than 256 frames, or than it was");
	for (uint64_t i = 0; i < count; i++) {
		r = byte_stream_fill(&t->stream, FRAME_INDEX_BYTES);
		if (r < 0 || (r = get(t, UINT32_MAX, &index)) < 0)
			return r;
		if (index >= t->frames.len)
			return malformed(t, HEADER_BYTES, "a frame that is not in the table");
		frames[i] = &t->frames.items[index];
	}
	thread->path.len = kept;
	if (kept)
		e = thread->path.items[kept - 1];
	while (count--) {
		const struct source_frame *f = frames[count];

		if (f->id != FRAME_INTERNAL) {
			r = stacktab_intern(p->stacks, e.stack, f->id, &e.stack);
			if (r < 0)
				return r;
			e.opcode = f->opcode;
		}
		if (vec_push(&thread->path, e) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int add_sample(struct tachyon *t, struct profile *p, uint8_t status)
{
	const struct source_thread *thread = &t->threads.items[t->thread];
	struct sample s = { .time_ns = thread->time_us * 1000,
			    .thread = thread->index,
			    .value = 1 };

	if (t->samples++ == t->header.samples)
		return malformed(t, HEADER_BYTES, "more samples than its header says");
	if (thread->path.len) {
		s.stack = thread->path.items[thread->path.len - 1].stack;
		s.opcode = thread->path.items[thread->path.len - 1].opcode;
	}
	if (!s.stack) {
		t->without_frame++;
		return 0;
	}
	if (status & STATUS_HAS_GIL)
		s.flags |= SAMPLE_BIT_HOLDS_GIL;
	if (thread->path.len == DEPTH_MAX) {
		s.flags |= SAMPLE_BIT_TRUNCATED;
		t->truncated++;
	}
	return profile_add_sample(p, &s);
}

static int read_stack(struct tachyon *t, struct profile *p, enum record_kind kind)
{
	uint64_t first = 0, count = 0, depth = 0;
	uint8_t status = 0; /* gcc 12 at -O3 does not see that get_time() sets it */
	int r = get_time(t, &status);

	if (!r && kind != RECORD_FULL)
		r = get(t, UINT32_MAX, &first);
	if (!r)
		r = get(t, UINT32_MAX, &count);
	if (r < 0)
		return r;
	depth = t->threads.items[t->thread].path.len;
	if (kind == RECORD_POP_PUSH)
		first = first < depth ? depth - first : 0;
	r = get_stack(t, p, first, count);
	return r ? r : add_sample(t, p, status);
}

/* A record; of a repetition only its head. */
static int read_record(struct tachyon *t, struct profile *p)
{
	struct byte_stream *s = &t->stream;
	const uint8_t *head = s->p;
	uint8_t kind;
	int r;

	if (s->end - s->p < 13)
		return malformed(t, HEADER_BYTES, "a record ends early");
	kind = head[12];
	if (kind >= RECORD_KINDS)
		return malformed(t, HEADER_BYTES, "unknown kind of record");
	r = find_thread(t, p, get_u64(t, head), get_u32(t, head + 8));
	if (r < 0)
		return r;
	s->p += 13;
	return kind == RECORD_REPEAT ? get(t, UINT32_MAX, &t->repeat_left)
				     : read_stack(t, p, (enum record_kind)kind);
}

static int read_repetition(struct tachyon *t, struct profile *p)
{
	uint8_t status = 0; /* gcc 12 at -O3 does not see that get_time() sets it */
	int r = get_time(t, &status);

	t->repeat_left--;
	return r ? r : add_sample(t, p, status);
}

static int add_counter(const struct tachyon *t, struct profile *p, const char *name, uint64_t value)
{
	struct recording *r = &p->recordings.items[t->recording];

	return recording_set_counter(r, name, recording_counter(r, name) + value);
}

/* The ticks of which percent are; unknown: not counted. */
static int add_share(const struct tachyon *t, struct profile *p, const char *name, double ticks,
		     double percent)
{
	double share = ticks * percent / 100;

	return share >= 0 && share < (double)TICKS_MAX
		       ? add_counter(t, p, name, (uint64_t)(share + 0.5))
		       : 0;
}

/* Of ticks, as the profiler counts: one tick samples all threads. sample.py, 3.15.2. */
static int add_counters(const struct tachyon *t, struct profile *p)
{
	const struct stats *s = &t->stats;
	double interval_s = (double)t->header.interval_us / 1e6;
	int r = 0;

	if (t->without_frame)
		r = add_counter(t, p, "no_frame", t->without_frame);
	if (t->truncated && !r)
		r = add_counter(t, p, "truncated", t->truncated);
	if (!r)
		r = add_share(t, p, "sampler_failed", s->duration_s * s->rate_hz, s->error_percent);
	if (!r && interval_s > 0)
		r = add_share(t, p, "sampler_missed", s->duration_s / interval_s,
			      s->missed_percent);
	return r;
}

/* Behind the last record. */
static int finish(const struct tachyon *t, struct profile *p)
{
	if (t->samples != t->header.samples)
		return malformed(t, HEADER_BYTES, "fewer samples than its header says");
	return add_counters(t, p);
}

static int begin(struct tachyon *t, struct profile *p)
{
	int r = read_tables(t, p);

	if (!r)
		r = add_process(t, p);
	t->has_tables = true;
	return r ? r
		 : byte_stream_open(&t->stream, t->content, HEADER_BYTES, t->header.string_offset,
				    t->header.compression == COMPRESSION_ZSTD);
}

static int next_tachyon(void *reader, struct profile *p, struct import_facts *facts)
{
	struct tachyon *t = reader;
	uint64_t batch_end = t->samples + IMPORT_BATCH_SAMPLES;
	int r;

	t->recording = facts->index;
	r = t->has_tables ? 0 : begin(t, p);
	while (!r && t->samples < batch_end) {
		r = byte_stream_fill(&t->stream, RECORD_BYTES_MAX);
		if (r < 0)
			break;
		if (t->repeat_left)
			r = read_repetition(t, p);
		else if (t->stream.p < t->stream.end)
			r = read_record(t, p);
		else
			return finish(t, p);
	}
	return r ? r : 1;
}

/* By its first bytes; also where a killed writer left its header empty. */
static bool sniff(const char *head, size_t len)
{
	const uint8_t *b = (const uint8_t *)head;

	if (len < HEADER_BYTES)
		return false;
	if (is_zero(b, HEADER_BYTES))
		return true;
	/* a version of 24 bits or less: no text, which may begin with any word */
	return (!memcmp(b, MAGIC, 4) && !b[7]) || (!memcmp(b, MAGIC_BIG, 4) && !b[4]);
}

const struct importer importer_tachyon = {
	.name = "tachyon",
	.sniff = sniff,
	.open = open_tachyon,
	.next = next_tachyon,
	.free = tachyon_free,
};
