/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "base/varint.h"
#include "base/vec.h"
#include "import/import.h"

/* Files as 3.15.2 writes them, byte by byte; its own files are read in tests/integration. */
struct bytes {
	uint8_t *items;
	size_t len, cap;
};

struct maker {
	bool is_big;
	bool is_zstd;
	bool has_stats;
	uint32_t version, config, threads;
	uint64_t start_us, interval_us, samples;
	double error_percent, missed_percent;
	struct bytes stream;
	struct bytes file;
	size_t string_at, frame_at;
};

static void put(struct bytes *b, const void *bytes, size_t len)
{
	assert_int_equal(vec_append(b, (const uint8_t *)bytes, len), 0);
}

static void put_u8(struct bytes *b, uint8_t v)
{
	put(b, &v, 1);
}

static void put_fixed(const struct maker *m, struct bytes *b, uint64_t v, size_t len)
{
	for (size_t i = 0; i < len; i++)
		put_u8(b, (uint8_t)(v >> 8 * (m->is_big ? len - 1 - i : i)));
}

static void put_f64(const struct maker *m, struct bytes *b, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	put_fixed(m, b, bits, 8);
}

static void put_varint(struct bytes *b, uint64_t v)
{
	uint8_t room[VARINT_MAX_BYTES], *end = room;

	assert_int_equal(varint_put(&end, room + sizeof(room), v), 0);
	put(b, room, (size_t)(end - room));
}

static const char *const strings[] = {
	"/a.py", "main", "f", "~", "<GC>", "b.py", "/x/_sync_coordinator.py"
};

/* file, name, line */
static const struct {
	uint32_t file, name;
	int64_t line;
} frames[] = {
	{ 0, 1, 10 }, /* 0: main@/a.py:10 */
	{ 0, 2, 20 }, /* 1: f@/a.py:20 */
	{ 3, 4, -1 }, /* 2: <GC> */
	{ 5, 2, -1 }, /* 3: f@b.py without a line */
	{ 6, 1, 5 },  /* 4: start-up code */
};
#define FRAMES (sizeof(frames) / sizeof(frames[0]))

/* thread, interpreter, kind */
static void put_record(struct maker *m, uint64_t tid, uint32_t interpreter, uint8_t kind)
{
	put_fixed(m, &m->stream, tid, 8);
	put_fixed(m, &m->stream, interpreter, 4);
	put_u8(&m->stream, kind);
}

static void put_numbers(struct maker *m, const uint64_t *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		put_varint(&m->stream, numbers[i]);
}
#define PUT(m, ...) \
	put_numbers(m, (uint64_t[]){ __VA_ARGS__ }, sizeof((uint64_t[]){ __VA_ARGS__ }) / 8)

static void put_stream(struct maker *m)
{
	size_t bound = ZSTD_compressBound(m->stream.len);
	uint8_t *out;

	if (!m->is_zstd) {
		put(&m->file, m->stream.items, m->stream.len);
		return;
	}
	out = malloc(bound);
	assert_non_null(out);
	put(&m->file, out, ZSTD_compress(out, bound, m->stream.items, m->stream.len, 5));
	free(out);
}

static void put_tables(struct maker *m)
{
	struct bytes *b = &m->file;

	m->string_at = b->len;
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
		put_varint(b, strlen(strings[i]));
		put(b, strings[i], strlen(strings[i]));
	}
	m->frame_at = b->len;
	for (size_t i = 0; i < FRAMES; i++) {
		put_varint(b, frames[i].file);
		put_varint(b, frames[i].name);
		put_varint(b, zigzag_encode(frames[i].line));
		put_varint(b, 0);
		put_varint(b, zigzag_encode(-1));
		put_varint(b, 0);
		put_u8(b, 255);
	}
}

static void put_stats(struct maker *m)
{
	struct bytes *b = &m->file;

	put_f64(m, b, 2.5);
	put_f64(m, b, 800);
	put_f64(m, b, m->error_percent);
	put_f64(m, b, m->missed_percent);
	put_fixed(m, b, 3, 4);
	put_fixed(m, b, 0, 4);
	put(b, "TACHSTAT", 8);
	put_fixed(m, b, 1, 4);
	put_fixed(m, b, 56, 4);
}

/* m->file from the rest. */
static void make(struct maker *m)
{
	struct bytes head = { 0 };

	m->file.len = 0;
	put_fixed(m, &m->file, 0, 8);
	for (int i = 0; i < 7; i++)
		put_fixed(m, &m->file, 0, 8);
	put_stream(m);
	put_tables(m);
	if (m->has_stats)
		put_stats(m);
	put_fixed(m, &m->file, sizeof(strings) / sizeof(strings[0]), 4);
	put_fixed(m, &m->file, FRAMES, 4);
	put_fixed(m, &m->file, m->file.len + 24, 8);
	put_fixed(m, &m->file, 0, 8);
	put_fixed(m, &m->file, 0, 8);

	put_fixed(m, &head, 0x54414348, 4);
	put_fixed(m, &head, m->version, 4);
	put(&head, (uint8_t[]){ 3, 15, 2, 0 }, 4);
	put_fixed(m, &head, m->start_us, 8);
	put_fixed(m, &head, m->interval_us, 8);
	put_fixed(m, &head, m->samples, 8);
	put_fixed(m, &head, m->threads, 4);
	put_fixed(m, &head, m->string_at, 8);
	put_fixed(m, &head, m->frame_at, 8);
	put_fixed(m, &head, m->is_zstd, 4);
	put_fixed(m, &head, m->config, 4);
	assert_int_equal(head.len, 64);
	memcpy(m->file.items, head.items, head.len);
	vec_release(&head);
}

static struct maker maker_new(void)
{
	return (struct maker){ .version = 1, .interval_us = 1000, .threads = 9 };
}

static void maker_release(struct maker *m)
{
	vec_release(&m->stream);
	vec_release(&m->file);
}

static int read_bytes(const uint8_t *bytes, size_t len, struct profile *p)
{
	_cleanup_(closep) int fd = memfd_create("tachyon", MFD_CLOEXEC);
	_cleanup_(import_freep) struct import *i = NULL;
	char path[64];
	int r;

	assert_true(fd >= 0);
	assert_int_equal(file_write(fd, bytes, len), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = import_open(path, (struct import_choice){ 0 }, &i);
	if (r <= 0)
		return r;
	assert_string_equal(import_format(i), "tachyon");
	do {
		r = import_next(i, p);
	} while (r > 0);
	return r < 0 ? r : 1;
}

static void append_stack(const struct profile *p, uint32_t stack, struct strbuf *out)
{
	const struct stack_entry *entry = &stacktab_entries(p->stacks)[stack];
	const struct frame *f;

	if (!stack)
		return;
	append_stack(p, entry->parent, out);
	f = frametab_get(p->frames, entry->frame);
	strbuf_appendf(out, " %s%s@%s:%" PRIu32, f->kind == FRAME_MARKER ? "!" : "",
		       strtab_get(p->strings, f->name), strtab_get(p->strings, f->file), f->line);
}

/* "TID[NAME] TIME_US[ gil][ cut] STACK", root first, a line a sample. */
static char *describe(const struct profile *p)
{
	struct strbuf out = STRBUF_INIT;

	for (size_t i = 0; i < p->samples.len; i++) {
		const struct sample *s = &p->samples.items[i];
		const struct thread *t = &p->threads.items[s->thread];

		assert_int_equal(s->value, 1);
		strbuf_appendf(&out, "%" PRIu32 "[%s] %" PRIu64 "%s%s", t->tid,
			       strtab_get(p->strings, t->name), s->time_ns / 1000,
			       s->flags & SAMPLE_BIT_HOLDS_GIL ? " gil" : "",
			       s->flags & SAMPLE_BIT_TRUNCATED ? " cut" : "");
		append_stack(p, s->stack, &out);
		strbuf_putc(&out, '\n');
	}
	assert_int_equal(strbuf_error(&out), 0);
	return out.bytes ? strbuf_take(&out) : strdup("");
}

static void put_every_kind(struct maker *m)
{
	put_record(m, 7, 0, 0); /* a repetition first: an empty stack */
	PUT(m, 1, 5, 1);
	put_record(m, 7, 0, 1); /* full: main, f, innermost first */
	PUT(m, 10, 1, 2, 1, 0);
	put_record(m, 8, 2, 1); /* another interpreter's */
	PUT(m, 100, 0, 1, 0);
	put_record(m, 7, 0, 2); /* suffix: two kept, <GC> inside */
	PUT(m, 5, 2, 2, 1, 2);
	put_record(m, 7, 0, 0); /* three times more */
	PUT(m, 3, 1, 1, 1, 0, 1, 1);
	put_record(m, 7, 0, 3); /* pop two, push one without a line */
	PUT(m, 200, 0, 2, 1, 3);
	put_record(m, UINT64_C(0x100000000), 1, 3); /* pop from nothing */
	PUT(m, 0, 0, 5, 1, 1);
	put_record(m, 7, 0, 1); /* start-up code outside is left out */
	PUT(m, 1, 0, 3, 1, 0, 4);
	put_record(m, 7, 0, 3); /* and where it is all there is */
	PUT(m, 1, 0, 2, 0);
	m->samples = 10;
}

static const char every_kind[] = "7[] 15 gil main@/a.py:10 f@/a.py:20\n"
				 "8[interpreter 2] 100 main@/a.py:10\n"
				 "7[] 20 main@/a.py:10 f@/a.py:20 !<GC>@:0\n"
				 "7[] 21 gil main@/a.py:10 f@/a.py:20 !<GC>@:0\n"
				 "7[] 22 main@/a.py:10 f@/a.py:20 !<GC>@:0\n"
				 "7[] 23 gil main@/a.py:10 f@/a.py:20 !<GC>@:0\n"
				 "7[] 223 main@/a.py:10 f@b.py:0\n"
				 "0[thread 0x100000000, interpreter 1] 0 f@/a.py:20\n"
				 "7[] 224 main@/a.py:10 f@/a.py:20\n";

static void test_tachyon_samples(void **state)
{
	(void)state;
	for (int variant = 0; variant < 8; variant++) {
		_cleanup_(profile_freep) struct profile *p = NULL;
		_cleanup_(freep) char *text = NULL;
		struct maker m = maker_new();

		m.is_big = variant & 1;
		m.is_zstd = variant & 2;
		m.has_stats = variant & 4;
		m.start_us = UINT64_C(1) << 62; /* what times are relative to: never added */
		put_every_kind(&m);
		m.samples++; /* the one of start-up code alone */
		make(&m);
		assert_int_equal(profile_new(&p), 0);
		if (read_bytes(m.file.items, m.file.len, p) != 1)
			fail_msg("variant %d: %s", variant, err_message(-EBADMSG));
		text = describe(p);
		assert_string_equal(text, every_kind);
		assert_int_equal(profile_counter(p, "no_frame"), 2);
		assert_int_equal(profile_recording(p)->duration_ns, m.has_stats ? 2500000000 : 0);
		assert_int_equal(p->processes.len, 1);
		assert_string_equal(strtab_get(p->strings, p->processes.items[0].python_version),
				    "3.15");
		maker_release(&m);
	}
}

static void test_tachyon_metadata(void **state)
{
	static const struct {
		uint32_t config;
		const char *mode, *source;
	} cases[] = {
		{ 0, NULL, "CPython 3.15.2 profiling.sampling" },
		{ 0x59, "wall", "CPython 3.15.2 profiling.sampling (all threads, gc)" },
		{ 0xed, "exception", "CPython 3.15.2 profiling.sampling (native, gc, opcodes)" },
		{ 0x0b, "gil", "CPython 3.15.2 profiling.sampling" },
		{ 0x14a, "cpu", "CPython 3.15.2 profiling.sampling (gc, blocking)" },
		{ 0xf4, "all", "CPython 3.15.2 profiling.sampling" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(profile_freep) struct profile *p = NULL;
		struct maker m = maker_new();

		m.config = cases[i].config;
		m.interval_us = 10101;
		make(&m);
		assert_int_equal(profile_new(&p), 0);
		assert_int_equal(read_bytes(m.file.items, m.file.len, p), 1);
		if (cases[i].mode)
			assert_string_equal(profile_recording(p)->mode, cases[i].mode);
		else
			assert_null(profile_recording(p)->mode);
		assert_string_equal(profile_recording(p)->source, cases[i].source);
		assert_int_equal(profile_recording(p)->interval_ns, 10101000);
		assert_int_equal(profile_recording(p)->start_realtime_ns, 0);
		assert_int_equal(profile_recording(p)->is_summed, 0);
		assert_null(profile_recording(p)->host);
		assert_null(profile_recording(p)->command);
		assert_null(profile_recording(p)->target);
		assert_int_equal(p->samples.len, 0);
		maker_release(&m);
	}
}

/* 2,000 ticks in 2.5 s of 1 ms; NAN: unknown. */
static void test_tachyon_stats(void **state)
{
	static const struct {
		double error_percent, missed_percent;
		uint64_t failed, missed;
		size_t counters;
	} cases[] = {
		{ 0, 0, 0, 0, 2 },        { 12.5, 20, 250, 500, 2 }, { -1, 20, 0, 500, 1 },
		{ 1e300, 20, 0, 500, 1 }, { 5, -0.5, 100, 0, 1 },    { 1e13, -1, 0, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(profile_freep) struct profile *p = NULL;
		struct maker m = maker_new();

		m.has_stats = true;
		m.error_percent = cases[i].error_percent;
		m.missed_percent = cases[i].missed_percent;
		make(&m);
		assert_int_equal(profile_new(&p), 0);
		assert_int_equal(read_bytes(m.file.items, m.file.len, p), 1);
		assert_int_equal(profile_counter(p, "sampler_failed"), cases[i].failed);
		assert_int_equal(profile_counter(p, "sampler_missed"), cases[i].missed);
		assert_int_equal(profile_recording(p)->counters.len, cases[i].counters);
		maker_release(&m);
	}
}

/* 256 frames are what the format keeps. */
static void test_tachyon_deep_stack(void **state)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct maker m = maker_new();

	(void)state;
	put_record(&m, 7, 0, 1);
	PUT(&m, 0, 0, 255);
	for (int i = 0; i < 255; i++)
		PUT(&m, 1);
	put_record(&m, 7, 0, 2);
	PUT(&m, 1, 0, 255, 1, 0);
	m.samples = 2;
	make(&m);
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(read_bytes(m.file.items, m.file.len, p), 1);
	assert_int_equal(p->samples.items[0].flags, 0);
	assert_int_equal(p->samples.items[1].flags, SAMPLE_BIT_TRUNCATED);
	assert_int_equal(profile_counter(p, "truncated"), 1);
	assert_int_equal(stacktab_count(p->stacks), 257);
	maker_release(&m);
}

/* A repetition larger than batches; batches are cleared in between. */
static void test_tachyon_batches(void **state)
{
	enum { COUNT = 3 * IMPORT_BATCH_SAMPLES + 5 };
	_cleanup_(closep) int fd = memfd_create("tachyon", MFD_CLOEXEC);
	_cleanup_(profile_freep) struct profile *p = NULL;
	_cleanup_(import_freep) struct import *i = NULL;
	struct maker m = maker_new();
	uint64_t samples = 0;
	char path[64];
	int r;

	(void)state;
	put_record(&m, 7, 0, 1);
	PUT(&m, 0, 0, 1, 1);
	put_record(&m, 7, 0, 0);
	PUT(&m, COUNT);
	for (int k = 0; k < COUNT; k++)
		PUT(&m, 1000, 0);
	m.samples = COUNT + 1;
	m.is_zstd = true;
	make(&m);
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(file_write(fd, m.file.items, m.file.len), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(import_open(path, (struct import_choice){ 0 }, &i), 1);
	while ((r = import_next(i, p)) > 0) {
		assert_true(p->samples.len <= IMPORT_BATCH_SAMPLES);
		samples += p->samples.len;
		profile_clear_samples(p);
	}
	assert_int_equal(r, 0);
	assert_int_equal(samples + p->samples.len, COUNT + 1);
	maker_release(&m);
}

/* What is written over a good file at a place, and what is said then. */
static void test_tachyon_malformed(void **state)
{
	static const struct {
		const char *row;
		int place; /* below 0: from the end */
		const char *bytes;
		size_t len;
		int want;
		const char *message; /* behind the path */
	} cases[] = {
		{ "version 0", 4, "\0", 1, -EPROTONOSUPPORT, "version 0 of profiling.sampling" },
		{ "version 2", 4, "\2", 1, -EPROTONOSUPPORT, "version 2 of profiling.sampling" },
		{ "python 3.14", 9, "\16", 1, -EBADMSG,
		  "at byte 0: not a header of Python 3.15.0" },
		{ "python 2", 8, "\2", 1, -EBADMSG, "at byte 0: not a header of" },
		{ "interval", 27, "\x7f", 1, -EBADMSG, "at byte 20: impossible" },
		{ "2^60 samples", 35, "\x10", 1, -EBADMSG, "at byte 28: more than 2^53" },
		{ "more samples", 28, "\14", 1, -EBADMSG, "fewer samples than its header says" },
		{ "fewer samples", 28, "\12", 1, -EBADMSG, "more samples than its header says" },
		{ "fewer threads", 36, "\2", 1, -EBADMSG, "more threads than its header says" },
		{ "strings in the header", 40, "\77", 1, -EBADMSG, "at byte 0: not a header of" },
		{ "strings behind frames", 46, "\1", 1, -EBADMSG, "at byte 0: not a header of" },
		{ "frames beyond the end", 54, "\1", 1, -EBADMSG, "at byte 0: not a header of" },
		{ "compression", 56, "\2", 1, -EBADMSG, "at byte 56: unknown compression" },
		{ "no zstd", 56, "\1", 1, -EBADMSG, "its compressed part, before byte" },
		{ "mode", 60, "\7", 1, -EBADMSG, "at byte 0: not a header of" },
		{ "kind", 76, "\4", 1, -EBADMSG, "at byte 64: unknown kind of record" },
		{ "endless repetition", 77, "\xff", 1, -EBADMSG, ": " },
		{ "strings", -29, "\1", 1, -EBADMSG, "more strings than their table" },
		{ "one string more", -32, "\10", 1, -EBADMSG, "a string without length" },
		{ "one string less", -32, "\6", 1, -EBADMSG, "bytes behind a table" },
		{ "frames", -25, "\1", 1, -EBADMSG, "more frames than their table" },
		{ "one frame less", -28, "\4", 1, -EBADMSG, "bytes behind a table" },
		{ "size", -24, "\1", 1, -EBADMSG, "another size than its end says" },
		{ "file of a frame", -32 - 7, "\11", 1, -EBADMSG, "a frame names no string" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(profile_freep) struct profile *p = NULL;
		struct maker m = maker_new();
		uint8_t *at;
		int r;

		put_every_kind(&m);
		m.samples++;
		m.threads = 3;
		make(&m);
		at = cases[i].place < 0 ? m.file.items + m.file.len : m.file.items;
		memcpy(at + cases[i].place, cases[i].bytes, cases[i].len);
		assert_int_equal(profile_new(&p), 0);
		r = read_bytes(m.file.items, m.file.len, p);
		if (r != cases[i].want || !strstr(err_message(r), cases[i].message))
			fail_msg("%s: %d, %s", cases[i].row, r, r < 0 ? err_message(r) : "");
		maker_release(&m);
	}
}

/* Records that break the rules; what came before them stays. */
static void test_tachyon_malformed_records(void **state)
{
	static const struct {
		const char *row;
		uint8_t kind;
		uint64_t numbers[6];
		size_t count;
		const char *message;
	} cases[] = {
		{ "frame beyond the table", 1, { 0, 0, 1, FRAMES }, 4, "a frame that is not in" },
		{ "257 frames", 1, { 0, 0, 257 }, 3, "a stack deeper than 256" },
		{ "2^63 frames", 1, { 0, 0, UINT64_C(1) << 63 }, 3, "no number, or one out of" },
		{ "keeps more than there are", 2, { 0, 0, 2, 1, 0 }, 5, "a stack deeper than 256" },
		{ "ends behind the time", 1, { 5 }, 1, "a record ends early" },
		{ "ends in the frames", 1, { 0, 0, 3, 1, 1 }, 5, "no number, or one out of" },
		{ "ends in a repetition", 0, { 3, 1, 0 }, 3, "no number, or one out of" },
		{ "2^30 repetitions", 0, { 1 << 30, 1, 0 }, 3, "no number, or one out of" },
		{ "before the start", 1, { UINT64_MAX, 0, 0 }, 3, "a time before the start" },
		{ "in 300 years", 1, { UINT64_C(9500000000000000), 0, 0 }, 3, "a time before the" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(profile_freep) struct profile *p = NULL;
		struct maker m = maker_new();
		int r;

		put_record(&m, 7, 0, 1);
		PUT(&m, 0, 0, 1, 0);
		put_record(&m, 7, 0, cases[i].kind);
		put_numbers(&m, cases[i].numbers, cases[i].count);
		m.samples = UINT64_C(1) << 40;
		make(&m);
		assert_int_equal(profile_new(&p), 0);
		r = read_bytes(m.file.items, m.file.len, p);
		if (r != -EBADMSG || !strstr(err_message(r), ": at byte ") ||
		    !strstr(err_message(r), cases[i].message))
			fail_msg("%s: %d, %s", cases[i].row, r, r < 0 ? err_message(r) : "");
		assert_true(p->samples.len >= 1);
		maker_release(&m);
	}
}

/* Every length of a good file but the whole one is an error, or not known. */
static void test_tachyon_cut_off(void **state)
{
	struct maker m = maker_new();

	(void)state;
	put_every_kind(&m);
	m.samples++;
	m.is_zstd = true;
	make(&m);
	for (size_t len = 0; len < m.file.len; len++) {
		_cleanup_(profile_freep) struct profile *p = NULL;
		int r;

		assert_int_equal(profile_new(&p), 0);
		r = read_bytes(m.file.items, len, p);
		if (len < 64 ? r != 0 : r != -EBADMSG)
			fail_msg("%zu bytes: %d", len, r);
	}
	maker_release(&m);
}

/* The writer was killed. */
static void test_tachyon_without_header(void **state)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	static const uint8_t bytes[100] = { 0 };

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(read_bytes(bytes, sizeof(bytes), p), -EBADMSG);
	assert_non_null(strstr(err_message(-EBADMSG), "was probably killed"));
	assert_int_equal(read_bytes(bytes, 64, p), -EBADMSG);
	assert_int_equal(read_bytes(bytes, 63, p), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tachyon_samples),
		cmocka_unit_test(test_tachyon_metadata),
		cmocka_unit_test(test_tachyon_stats),
		cmocka_unit_test(test_tachyon_deep_stack),
		cmocka_unit_test(test_tachyon_batches),
		cmocka_unit_test(test_tachyon_malformed),
		cmocka_unit_test(test_tachyon_malformed_records),
		cmocka_unit_test(test_tachyon_cut_off),
		cmocka_unit_test(test_tachyon_without_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
