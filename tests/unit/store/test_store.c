/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/hash.h"
#include "store/checksum.h"
#include "store/format.h"
#include "store/reader.h"
#include "store/writer.h"

/* A sample as an outsider sees it: everything but the time hashed by content, not by id. */
struct seen {
	uint64_t content;
	uint64_t time_ns;
};

struct seen_list {
	struct seen *items;
	size_t len, cap;
};

static char folder[64];
static char path[96], other_path[96];

static uint64_t hash_id(const struct profile *p, uint32_t id, uint64_t seed)
{
	return hash_bytes(strtab_get(p->strings, id), strtab_len(p->strings, id), seed);
}

static uint64_t hash_frame(const struct profile *p, const struct frame *f, uint64_t h)
{
	h = hash_id(p, f->file, hash_id(p, f->name, h));
	h = hash_combine(h, (uint64_t)f->line << 32 | f->first_line);
	h = hash_combine(h, f->offset);
	return hash_combine(h, (uint64_t)f->kind << 8 | f->flags);
}

static uint64_t hash_kind(const struct profile *p, uint16_t kind, uint64_t h)
{
	const struct sample_kind *k = kind ? &p->kinds.items[kind - 1] : NULL;

	return k ? hash_id(p, k->event, hash_id(p, k->name, hash_combine(h + k->unit, k->period)))
		 : h;
}

/* In whatever order: ids of names differ from profile to profile. */
static uint64_t hash_labels(const struct profile *p, uint32_t set, uint64_t h)
{
	const struct label_entry *entries = labeltab_entries(p->labels);
	uint64_t sum = 0;

	for (; set; set = entries[set].parent)
		sum += hash_id(p, entries[set].value, hash_id(p, entries[set].name, 1));
	return hash_combine(h, sum);
}

static uint64_t hash_sample(const struct profile *p, const struct sample *s)
{
	const struct stack_entry *entries = stacktab_entries(p->stacks);
	const struct thread *t = &p->threads.items[s->thread];
	const struct process *process = &p->processes.items[t->process];
	uint64_t h = hash_id(p, t->name, t->tid);

	h = hash_combine(h, (uint64_t)process->pid << 32 | process->ns_pid);
	h = hash_combine(hash_combine(h, process->ppid), process->start_ns);
	h = hash_id(p, process->command_line, hash_id(p, process->name, h));
	h = hash_id(p, process->implementation, hash_id(p, process->python_version, h));
	h = hash_id(p, process->executable, h);
	h = hash_id(p, process->pod_uid, hash_id(p, process->container, h));
	h = hash_id(p, process->pod_namespace, hash_id(p, process->pod_name, h));
	for (uint32_t stack = s->stack; stack; stack = entries[stack].parent)
		h = hash_frame(p, frametab_get(p->frames, entries[stack].frame), h);
	h = hash_combine(hash_id(p, s->opcode, h), s->gil);
	h = hash_combine(hash_combine(h, s->value), s->duration_ns);
	h = hash_kind(p, s->kind, hash_labels(p, s->labels, h));
	return hash_combine(h, (uint32_t)s->cpu << 16 | s->flags);
}

static void see(struct seen_list *list, const struct profile *p)
{
	for (size_t i = 0; i < p->samples.len; i++) {
		struct seen s = { hash_sample(p, &p->samples.items[i]),
				  p->samples.items[i].time_ns };

		assert_int_equal(vec_push(list, s), 0);
	}
}

static int compare_seen(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	if (x->content != y->content)
		return x->content < y->content ? -1 : 1;
	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

/* The same samples in any order, times within half a unit. */
static void assert_same_samples(struct seen_list *want, struct seen_list *got)
{
	assert_int_equal(got->len, want->len);
	if (!want->len)
		return;
	qsort(want->items, want->len, sizeof(*want->items), compare_seen);
	qsort(got->items, got->len, sizeof(*got->items), compare_seen);
	for (size_t i = 0; i < want->len; i++) {
		uint64_t a = want->items[i].time_ns, b = got->items[i].time_ns;

		if (want->items[i].content != got->items[i].content)
			fail_msg("sample %zu of %zu differs", i, want->len);
		/* The first unit of all is rounded up. */
		if ((a > b ? a - b : b - a) > (a < TIME_UNIT_NS ? TIME_UNIT_NS : TIME_UNIT_NS / 2))
			fail_msg("time %llu came back as %llu", (unsigned long long)a,
				 (unsigned long long)b);
	}
}

static uint32_t random_below(uint32_t limit)
{
	return (uint32_t)rand() % limit;
}

static uint32_t random_string(struct profile *p, const char *prefix, uint32_t count)
{
	char text[64];
	uint32_t n = random_below(count), id;
	int len = n ? snprintf(text, sizeof(text), "%s %u", prefix, n) : 0;

	assert_int_equal(strtab_intern(p->strings, text, (size_t)len, &id), 0);
	return id;
}

static uint32_t string_id(struct profile *p, const char *text)
{
	uint32_t id;

	assert_int_equal(strtab_intern(p->strings, text, strlen(text), &id), 0);
	return id;
}

/* What runs in none, in a container, in a pod of which nothing else is known, and in all. */
static void place_process(struct profile *p, struct process *process)
{
	if (process->pid % 4 == 2 || process->pid % 4 == 0)
		process->container = string_id(p, process->ppid == 1 ? "a1" : "b2");
	if (process->pid % 4 == 3 || process->pid % 4 == 0)
		process->pod_uid = string_id(p, "1f2e");
	if (process->pid % 4 == 0) {
		process->pod_name = string_id(p, "shop-1");
		process->pod_namespace = string_id(p, "prod");
	}
}

static uint32_t random_thread(struct profile *p)
{
	struct process process = {
		.pid = 1 + random_below(4),
		.ns_pid = random_below(2),
		.ppid = random_below(2) ? UINT32_MAX : 1,
		.start_ns = random_below(2) ? UINT64_MAX : 0,
		.name = random_string(p, "python", 3),
		.command_line = random_string(p, "python -m app", 3),
		.python_version = random_string(p, "3.12", 2),
		.implementation = random_string(p, "CPython", 2),
		.executable = random_string(p, "/usr/bin/python", 2),
	};
	struct thread t = { .tid = 1 + random_below(5),
			    .name = random_string(p, "thread", 4),
			    .start_ns = random_below(3) };
	uint32_t index;

	place_process(p, &process);
	assert_int_equal(profile_add_process(p, &process, &t.process), 0);
	assert_int_equal(profile_add_thread(p, &t, &index), 0);
	return index;
}

static uint32_t random_stack(struct profile *p)
{
	uint32_t stack = 0, id, depth = random_below(30);

	for (uint32_t i = 0; i < depth; i++) {
		struct frame f = {
			.name = random_string(p, "function", 6 + i),
			.file = random_string(p, "/srv/app/module.py", 4),
			.line = random_below(9) ? random_below(20) : UINT32_MAX,
			.first_line = random_below(9) ? 1 : 0,
			.kind = (uint8_t)(random_below(20) ? 0 : random_below(FRAME_TYPE_COUNT)),
			.flags = (uint8_t)(random_below(20) ? 0 : random_below(256)),
		};

		if (f.kind == FRAME_NATIVE && random_below(2))
			f.offset = (uint64_t)random_below(UINT32_MAX) << random_below(32);
		assert_int_equal(frametab_intern(p->frames, &f, &id), 0);
		assert_int_equal(stacktab_intern(p->stacks, stack, id, &stack), 0);
	}
	return stack;
}

/* Of a further kind, with labels. */
static void make_span(struct profile *p, struct sample *s)
{
	struct sample_kind kind = {
		.name = random_string(p, "off-cpu", 3),
		.event = random_string(p, "sched_switch", 2),
		.period = 1 + random_below(3),
		.unit = (uint8_t)random_below(UNIT_COUNT + 1),
	};

	assert_int_equal(profile_add_kind(p, &kind, &s->kind), 0);
	s->value = 1 + ((uint64_t)random_below(UINT32_MAX) << random_below(32));
	s->duration_ns = random_below(2) ? random_below(UINT32_MAX) : 0;
	s->gil = (uint16_t)random_below(3);
	for (uint32_t i = random_below(4); i; i--)
		assert_int_equal(labeltab_add(p->labels, s->labels, random_string(p, "route", 4),
					      random_string(p, "value", 9), &s->labels),
				 0);
}

/*
 * A flush's worth: regular ticks, and now and then anything at all. Half of them have opcodes, a
 * third samples of other kinds.
 */
static void add_random_samples(struct profile *p, uint32_t count, uint64_t *time_ns)
{
	bool has_opcodes = random_below(2), has_kinds = !random_below(3);
	uint32_t stacks[8], threads[4];

	for (int i = 0; i < 8; i++)
		stacks[i] = random_stack(p);
	for (int i = 0; i < 4; i++)
		threads[i] = random_thread(p);
	for (uint32_t i = 0; i < count; i++) {
		bool is_odd = !random_below(10);
		struct sample s = {
			.time_ns = *time_ns + random_below(30000),
			.thread = is_odd ? random_thread(p) : threads[random_below(4)],
			.stack = is_odd ? random_stack(p) : stacks[random_below(8)],
			.value = is_odd ? 1 + random_below(UINT32_MAX) : 1,
			.cpu = (uint16_t)(is_odd ? random_below(65536) : random_below(2)),
			.flags = (uint16_t)(is_odd ? random_below(65536) : 1),
			.opcode = has_opcodes ? random_string(p, "LOAD_ATTR", 5) : 0,
		};

		if (has_kinds && random_below(2))
			make_span(p, &s);
		if (random_below(100) == 0)
			s.time_ns = random_below(2) ? random_below(100000) : INT64_MAX / 2;
		assert_int_equal(profile_add_sample(p, &s), 0);
		*time_ns += profile_recording(p)->interval_ns;
	}
}

static struct profile *new_profile(uint64_t interval_ns, const char *event)
{
	struct profile *p = NULL;

	assert_int_equal(profile_new(&p), 0);
	profile_recording(p)->interval_ns = interval_ns;
	profile_recording(p)->rate_hz = 1000;
	profile_recording(p)->start_realtime_ns = 1700000000123456789;
	profile_recording(p)->cpus = 2;
	assert_int_equal(recording_set_text(&profile_recording(p)->event, event), 0);
	assert_int_equal(recording_set_text(&profile_recording(p)->host, "box"), 0);
	assert_int_equal(recording_set_text(&profile_recording(p)->source, "another tool"), 0);
	profile_recording(p)->work = 0.1;
	return p;
}

/*
 * Writes a recording of `flushes` flushes; counters "ticks" and "lost" are 10 and 3 a flush. What
 * went in is appended to want (may be NULL).
 */
static void write_recording(const char *to, unsigned int seed, int flushes, bool is_finished,
			    struct seen_list *want)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	_cleanup_(writer_freep) struct writer *w = NULL;
	uint64_t time_ns = 700000;

	srand(seed);
	unlink(to); /* an old one stays where there are no samples */
	p = new_profile(seed % 3 ? 1000000 : 0, seed % 2 ? "cpu-clock" : "task-clock");
	assert_int_equal(writer_open(to, p, &w), 0);
	for (int i = 0; i < flushes; i++) {
		uint64_t before = writer_size(w);
		ssize_t n;

		add_random_samples(p, 1 + random_below(40), &time_ns);
		assert_int_equal(profile_set_counter(p, "ticks", 10 * ((uint64_t)i + 1)), 0);
		assert_int_equal(profile_set_counter(p, "lost", 3 * ((uint64_t)i + 1)), 0);
		if (want)
			see(want, p);
		n = writer_flush(w, p);
		assert_true(n > 0);
		assert_int_equal(writer_size(w), before + (uint64_t)n);
		profile_clear_samples(p);
		if (random_below(4) == 0) {
			assert_int_equal(profile_reset(p), 0);
			assert_int_equal(writer_segment(w), 0);
		}
	}
	profile_recording(p)->duration_ns = 5000000000;
	profile_recording(p)->has_ended = 1;
	if (is_finished)
		assert_int_equal(writer_finish(w, p), 0);
}

static int load(const char *from, struct seen_list *got, struct profile **out)
{
	struct profile *p = NULL;
	int r;

	assert_int_equal(profile_new(&p), 0);
	r = profile_load(from, p);
	see(got, p);
	if (out)
		*out = p;
	else
		profile_free(p);
	return r;
}

static void read_file(const char *from, uint8_t **bytes, size_t *len)
{
	char *text = NULL;

	assert_int_equal(file_read(from, 64 << 20, &text, len), 0);
	*bytes = (uint8_t *)text;
}

static void write_file(const char *to, const uint8_t *bytes, size_t len)
{
	int fd;

	unlink(to); /* a file that is truncated is flushed to disk by some file systems: slow */
	fd = open(to, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(file_write(fd, bytes, len), 0);
	close(fd);
}

static void test_profile_load_gives_back_what_was_written(void **state)
{
	(void)state;
	for (unsigned int seed = 1; seed <= 30; seed++) {
		_cleanup_(profile_freep) struct profile *p = NULL;
		struct seen_list want = { 0 }, got = { 0 };
		int flushes = (int)(seed % 7);

		write_recording(path, seed, flushes, true, &want);
		assert_int_equal(load(path, &got, &p), 0);
		assert_same_samples(&want, &got);
		assert_int_equal(profile_counter(p, "ticks"), 10 * flushes);
		assert_int_equal(profile_counter(p, "lost"), 3 * flushes);
		assert_int_equal(profile_recording(p)->duration_ns, 5000000000);
		assert_int_equal(profile_recording(p)->has_ended, 1);
		assert_true(profile_recording(p)->start_realtime_ns == 1700000000123456789);
		assert_int_equal(profile_recording(p)->cpus, 2);
		assert_string_equal(profile_recording(p)->host, "box");
		assert_null(profile_recording(p)->kernel);
		assert_string_equal(profile_recording(p)->source, "another tool");
		assert_true(profile_recording(p)->work == 0.1);
		assert_string_equal(profile_recording(p)->event,
				    seed % 2 ? "cpu-clock" : "task-clock");
		vec_release(&want);
		vec_release(&got);
	}
}

/* More rows of every table, and more samples, than one chunk holds. */
static void test_writer_flush_splits_what_is_too_much_for_a_chunk(void **state)
{
	_cleanup_(profile_freep) struct profile *p = new_profile(1000000, "task-clock");
	_cleanup_(writer_freep) struct writer *w = NULL;
	struct seen_list want = { 0 }, got = { 0 };
	char text[32];

	(void)state;
	for (uint32_t i = 0; i < CHUNK_ROWS_MAX + 1000; i++) {
		int len = snprintf(text, sizeof(text), "name %u", i);
		struct process process = { .pid = i };
		struct thread t = { .tid = i };
		struct frame f = { .line = i };
		struct sample s = { .time_ns = i * UINT64_C(1000000), .value = 1 };
		uint32_t frame;

		place_process(p, &process);
		assert_int_equal(strtab_intern(p->strings, text, (size_t)len, &f.name), 0);
		assert_int_equal(frametab_intern(p->frames, &f, &frame), 0);
		assert_int_equal(stacktab_intern(p->stacks, i % 3 ? i : 0, frame, &s.stack), 0);
		assert_int_equal(profile_add_process(p, &process, &t.process), 0);
		assert_int_equal(profile_add_thread(p, &t, &s.thread), 0);
		assert_int_equal(profile_add_sample(p, &s), 0);
	}
	see(&want, p);
	assert_int_equal(writer_open(path, p, &w), 0);
	assert_true(writer_flush(w, p) > 0);
	profile_clear_samples(p);
	assert_int_equal(writer_flush(w, p), 0); /* nothing new: nothing written */
	assert_int_equal(writer_finish(w, p), 0);
	assert_int_equal(load(path, &got, NULL), 0);
	assert_same_samples(&want, &got);
	vec_release(&want);
	vec_release(&got);
}

/* A recorder that starts a segment now and then holds no more after an hour than after a minute. */
static void test_writer_segment_bounds_memory(void **state)
{
	_cleanup_(profile_freep) struct profile *p = new_profile(1000000, "task-clock");
	_cleanup_(writer_freep) struct writer *w = NULL;
	struct seen_list want = { 0 }, got = { 0 };
	uint64_t time_ns = 0;
	size_t after_one = 0;

	(void)state;
	srand(9);
	assert_int_equal(writer_open(path, p, &w), 0);
	for (int segment = 0; segment < 20; segment++) {
		for (int flush = 0; flush < 5; flush++) {
			add_random_samples(p, 200, &time_ns);
			see(&want, p);
			assert_true(writer_flush(w, p) > 0);
			profile_clear_samples(p);
		}
		if (!segment)
			after_one = profile_bytes(p) + writer_bytes(w);
		assert_true(profile_bytes(p) + writer_bytes(w) < after_one + after_one / 2);
		assert_int_equal(profile_reset(p), 0);
		assert_int_equal(writer_segment(w), 0);
	}
	assert_int_equal(writer_finish(w, p), 0);
	assert_int_equal(load(path, &got, NULL), 0);
	assert_same_samples(&want, &got);
	vec_release(&want);
	vec_release(&got);
}

/* Samples in the chunks that lie wholly within the first len bytes. */
static size_t samples_within(const struct reader_chunk *chunks, size_t count, uint64_t len)
{
	size_t samples = 0;

	for (size_t i = 0; i < count && chunks[i].offset + chunks[i].bytes <= len; i++)
		samples += chunks[i].samples;
	return samples;
}

static void test_profile_load_reads_every_prefix_up_to_its_last_whole_chunk(void **state)
{
	_cleanup_(freep) struct reader_chunk *chunks = NULL;
	_cleanup_(reader_freep) struct reader *r = NULL;
	_cleanup_(freep) uint8_t *bytes = NULL;
	struct seen_list whole = { 0 };
	size_t len, count, all;

	(void)state;
	write_recording(path, 5, 3, true, NULL);
	assert_int_equal(load(path, &whole, NULL), 0);
	assert_int_equal(reader_open(path, &r), 0);
	assert_int_equal(reader_index(r, &chunks, &count), 0);
	read_file(path, &bytes, &len);
	all = samples_within(chunks, count, len);
	assert_int_equal(all, whole.len);
	assert_true(count >= 5);
	for (size_t cut = 0; cut < len; cut++) {
		struct seen_list got = { 0 };
		size_t want = samples_within(chunks, count, cut);
		int n;

		write_file(other_path, bytes, cut);
		n = load(other_path, &got, NULL);
		if (cut < chunks[0].offset + chunks[0].bytes) {
			if (n != (cut ? -EBADMSG : -ENODATA))
				fail_msg("cut at %zu: got %d", cut, n);
			continue;
		}
		if (n != 1 || got.len != want)
			fail_msg("cut at %zu: got %d with %zu samples, want %zu", cut, n, got.len,
				 want);
		if (want)
			assert_memory_equal(got.items, whole.items, want * sizeof(*got.items));
		vec_release(&got);
	}
	vec_release(&whole);
}

/*
 * Every step-th bit of a recording, one at a time. Finished: an error, or all that was there. Not
 * finished: also a proper prefix that is reported as cut off.
 */
static void flip_bits(bool is_finished, int flushes, size_t step)
{
	_cleanup_(freep) uint8_t *bytes = NULL;
	struct seen_list whole = { 0 };
	size_t len, errors = 0, intact = 0;

	write_recording(path, 4, flushes, is_finished, NULL);
	assert_int_equal(load(path, &whole, NULL), !is_finished);
	read_file(path, &bytes, &len);
	for (size_t bit = 0; bit < len * 8; bit += step) {
		_cleanup_(profile_freep) struct profile *p = NULL;
		struct seen_list got = { 0 };
		bool is_same;
		int n;

		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		write_file(other_path, bytes, len);
		n = load(other_path, &got, &p);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);

		if (got.len > whole.len ||
		    (got.len && memcmp(got.items, whole.items, got.len * sizeof(*got.items))))
			fail_msg("byte %zu bit %zu: other samples", bit / 8, bit % 8);
		is_same = got.len == whole.len &&
			  profile_counter(p, "ticks") == 10 * (uint64_t)flushes &&
			  profile_recording(p)->start_realtime_ns == 1700000000123456789 &&
			  profile_recording(p)->event &&
			  !strcmp(profile_recording(p)->event, "task-clock");
		if (n >= 0 && !is_same && (is_finished || n != 1))
			fail_msg("byte %zu bit %zu: taken for good", bit / 8, bit % 8);
		errors += n < 0;
		intact += n >= 0 && is_same;
		vec_release(&got);
	}
	/* The minor version, and the end chunk, may change without harm. */
	assert_in_range(intact, 16 / step, (16 + CHUNK_END_BYTES * 8) / step + 1);
	assert_true(errors > 0);
	vec_release(&whole);
}

static void test_profile_load_notices_every_changed_bit(void **state)
{
	(void)state;
	flip_bits(true, 1, 1);
	flip_bits(false, 3, 7);
}

static void test_reader_open_says_what_is_wrong(void **state)
{
	static const struct {
		const char *name;
		const char *bytes;
		size_t len;
		int want;
		const char *message;
	} cases[] = {
		{ "empty", "", 0, -ENODATA, "empty file" },
		{ "short", "\x89PYEB", 5, -EBADMSG, "not a pyebpf recording" },
		{ "text", "main;f 12\nmain;g 3\n", 19, -EBADMSG, "not a pyebpf recording" },
		{ "newer major", "\x89PYEBPF\n\3\0\0\0", 12, -EPROTONOSUPPORT,
		  "written by a newer pyebpf (format 3.0); this one reads up to 2.x" },
		{ "much newer", "\x89PYEBPF\n\1\2\3\1", 12, -EPROTONOSUPPORT,
		  "written by a newer pyebpf (format 513.259); this one reads up to 2.x" },
		{ "1.x", "\x89PYEBPF\n\1\0\3\0", 12, -EPROTONOSUPPORT,
		  "written by a development version of pyebpf (format 1.3), which is not "
		  "supported: "
		  "record it again" },
		{ "no such version", "\x89PYEBPF\n\0\0\0\0", 12, -EBADMSG,
		  "damaged at byte 8: no such format version" },
		{ "header alone", "\x89PYEBPF\n\2\0\0\0", 12, -EBADMSG,
		  "cut off before its first sample" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct reader *r = NULL;
		char want[256];
		int got;

		write_file(path, (const uint8_t *)cases[i].bytes, cases[i].len);
		got = reader_open(path, &r);
		snprintf(want, sizeof(want), "%s: %s", path, cases[i].message);
		if (got != cases[i].want || r || strcmp(err_message(got), want))
			fail_msg("%s: got %d, %s", cases[i].name, got, err_message(got));
	}
	{
		struct reader *r = NULL;

		assert_int_equal(reader_open(folder, &r), -EINVAL);
		assert_int_equal(reader_open("/nonexistent", &r), -ENOENT);
	}
}

/* Puts a chunk with a right checksum at *out; returns its length. */
static size_t make_chunk(uint8_t *out, uint8_t type, const uint8_t *content, size_t len)
{
	assert_true(len < 128);
	out[4] = type;
	out[5] = (uint8_t)len;
	if (len)
		memcpy(out + 6, content, len);
	put_le32(out, crc32c(out + 4, len + 2));
	return len + 6;
}

static void test_reader_next_skips_what_it_does_not_know(void **state)
{
	static const uint8_t section[] = { 130, 3, 1, 2, 3 };
	static const uint8_t field[] = { 99, 2, 1, 2 };
	static const struct {
		const char *name;
		uint8_t type;
		const uint8_t *content;
		size_t len;
	} cases[] = {
		{ "chunk type", 99, (const uint8_t *)"later", 5 },
		{ "empty chunk", 120, NULL, 0 },
		{ "section", CHUNK_FLUSH, section, sizeof(section) },
		{ "metadata field", CHUNK_METADATA, field, sizeof(field) },
	};
	_cleanup_(freep) uint8_t *bytes = NULL;
	struct seen_list whole = { 0 };
	uint8_t built[8192], *p;
	size_t len, first;

	(void)state;
	write_recording(path, 8, 3, false, NULL);
	assert_int_equal(load(path, &whole, NULL), 1);
	read_file(path, &bytes, &len);
	assert_true(len < sizeof(built) - 200);
	first = 12 + 6 + bytes[17]; /* behind the metadata */
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct seen_list got = { 0 };

		memcpy(built, bytes, first);
		built[10] = 7; /* minor version */
		p = built + first;
		p += make_chunk(p, cases[i].type, cases[i].content, cases[i].len);
		memcpy(p, bytes + first, len - first);
		write_file(other_path, built, (size_t)(p - built) + len - first);
		if (load(other_path, &got, NULL) != 1 || got.len != whole.len ||
		    memcmp(got.items, whole.items, got.len * sizeof(*got.items)))
			fail_msg("%s: %zu of %zu samples: %s", cases[i].name, got.len, whole.len,
				 err_message(-EBADMSG));
		vec_release(&got);
	}
	vec_release(&whole);
}

static void test_reader_next_refuses_malformed_chunks(void **state)
{
	static const struct {
		const char *name;
		uint8_t type;
		uint8_t content[48];
		size_t len;
		int want; /* 1: unfinished, but well-formed */
	} cases[] = {
		{ "no sections", CHUNK_FLUSH, { 0 }, 0, 1 },
		{ "one string", CHUNK_FLUSH, { 1, 6, 1, 0, 1, 4, 1, 'x' }, 8, 1 },
		{ "no rows", CHUNK_FLUSH, { 1, 1, 0 }, 3, -EBADMSG },
		{ "bytes behind the rows",
		  CHUNK_FLUSH,
		  { 1, 7, 1, 0, 1, 4, 1, 'x', 0 },
		  9,
		  -EBADMSG },
		{ "section beyond the chunk",
		  CHUNK_FLUSH,
		  { 1, 9, 1, 0, 1, 4, 1, 'x' },
		  8,
		  -EBADMSG },
		{ "section twice", CHUNK_FLUSH, { 130, 0, 130, 0 }, 4, -EBADMSG },
		{ "sections out of order", CHUNK_FLUSH, { 131, 0, 130, 0 }, 4, -EBADMSG },
		{ "a critical section", CHUNK_FLUSH, { 127, 0 }, 2, -EPROTONOSUPPORT },
		{ "65,537 rows", CHUNK_FLUSH, { 1, 5, 0x81, 0x80, 4, 0, 0 }, 7, -EBADMSG },
		{ "strings of 64 GiB",
		  CHUNK_FLUSH,
		  { 1, 8, 0x80, 0x80, 4, 0, 0x80, 0x80, 0x40, 0 },
		  10,
		  -EBADMSG },
		{ "frame of an unknown string",
		  CHUNK_FLUSH,
		  { 2, 15, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0 },
		  17,
		  -EBADMSG },
		{ "frame of function 1 of 0",
		  CHUNK_FLUSH,
		  { 2, 7, 1, 0, 1, 0, 0, 0, 0 },
		  9,
		  -EBADMSG },
		{ "frame kind 5",
		  CHUNK_FLUSH,
		  { 2, 15, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5 },
		  17,
		  -EBADMSG },
		{ "frame",
		  CHUNK_FLUSH,
		  { 2, 15, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
		  17,
		  1 },
		{ "stack of an unknown frame",
		  CHUNK_FLUSH,
		  { 3, 10, 1, 1, 0, 0, 0, 0, 0, 0, 0, 8 },
		  12,
		  -EBADMSG },
		{ "stack below a later one",
		  CHUNK_FLUSH,
		  { 3, 10, 1, 1, 0, 0, 0, 1, 0, 0, 0, 8 },
		  12,
		  -EBADMSG },
		{ "chains longer than the rows",
		  CHUNK_FLUSH,
		  { 3, 10, 1, 1, 0, 0, 0, 0, 0, 1, 0, 8 },
		  12,
		  -EBADMSG },
		{ "thread without process", CHUNK_FLUSH, { 5, 1, 1 }, 3, -EBADMSG },
		{ "process", CHUNK_FLUSH, { 4, 4, 1, 1, 0, 9 }, 6, 1 },
		{ "process of an unknown string", CHUNK_FLUSH, { 4, 4, 1, 5, 0, 9 }, 6, -EBADMSG },
		{ "field twice", CHUNK_FLUSH, { 4, 7, 1, 1, 0, 9, 1, 0, 9 }, 9, -EBADMSG },
		{ "field to come", CHUNK_FLUSH, { 4, 7, 1, 1, 0, 9, 99, 0, 9 }, 9, 1 },
		{ "field without a column", CHUNK_FLUSH, { 4, 2, 1, 1 }, 4, -EBADMSG },
		{ "kind", CHUNK_FLUSH, { 0x41, 4, 1, 3, 0, 7 }, 6, 1 },
		{ "kind without period", CHUNK_FLUSH, { 0x41, 1, 1 }, 3, -EBADMSG },
		{ "kind of unit 3", CHUNK_FLUSH, { 0x41, 7, 1, 3, 0, 7, 4, 0, 3 }, 9, -EBADMSG },
		{ "label set", CHUNK_FLUSH, { 0x42, 1, 1 }, 3, 1 },
		{ "label set below itself", CHUNK_FLUSH, { 0x42, 4, 1, 1, 0, 1 }, 6, -EBADMSG },
		{ "kinds without samples", CHUNK_FLUSH, { 0x43, 2, 0, 0 }, 4, -EBADMSG },
		{ "sample without thread",
		  CHUNK_FLUSH,
		  { 6, 22, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0 },
		  24,
		  -EBADMSG },
		{ "counter", CHUNK_FLUSH, { 7, 4, 1, 1, 'x', 5 }, 6, 1 },
		{ "counter beyond the section", CHUNK_FLUSH, { 7, 4, 1, 9, 'x', 5 }, 6, -EBADMSG },
		{ "metadata beyond the chunk", CHUNK_METADATA, { 1, 9, 1 }, 3, -EBADMSG },
		{ "metadata number of two", CHUNK_METADATA, { 1, 2, 1, 1 }, 4, -EBADMSG },
		{ "work", CHUNK_METADATA, { 16, 8, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f }, 10, 1 },
		{ "work below 0",
		  CHUNK_METADATA,
		  { 16, 8, 0, 0, 0, 0, 0, 0, 0xf0, 0xbf },
		  10,
		  -EBADMSG },
		{ "a place of no process", CHUNK_FLUSH, { 9, 1, 1 }, 3, -EBADMSG },
		{ "opcodes without samples", CHUNK_FLUSH, { 8, 2, 0, 0 }, 4, -EBADMSG },
		{ "GILs without samples", CHUNK_FLUSH, { 12, 2, 0, 0 }, 4, -EBADMSG },
		{ "rests of times without samples", CHUNK_FLUSH, { 10, 2, 0, 0 }, 4, -EBADMSG },
		{ "no titles", CHUNK_TITLES, { 0 }, 0, 1 },
		{ "title", CHUNK_TITLES, { 7, 5, 1, 'a', 0, 1, 'b' }, 7, 1 },
		{ "title beyond the chunk",
		  CHUNK_TITLES,
		  { 7, 5, 1, 'a', 0, 2, 'b' },
		  7,
		  -EBADMSG },
		{ "title without a text", CHUNK_TITLES, { 7, 5, 1, 'a', 0 }, 5, -EBADMSG },
		{ "work without end",
		  CHUNK_METADATA,
		  { 16, 8, 0, 0, 0, 0, 0, 0, 0xf0, 0x7f },
		  10,
		  -EBADMSG },
		{ "work of seven bytes",
		  CHUNK_METADATA,
		  { 16, 7, 0, 0, 0, 0, 0, 0, 0 },
		  9,
		  -EBADMSG },
	};
	_cleanup_(freep) uint8_t *bytes = NULL;
	uint8_t built[1024];
	size_t len;

	(void)state;
	write_recording(path, 1, 0, false, NULL);
	read_file(path, &bytes, &len);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct seen_list got = { 0 };
		int n;

		memcpy(built, bytes, len);
		write_file(other_path, built,
			   len + make_chunk(built + len, cases[i].type, cases[i].content,
					    cases[i].len));
		n = load(other_path, &got, NULL);
		if (n != cases[i].want)
			fail_msg("%s: got %d, want %d", cases[i].name, n, cases[i].want);
		vec_release(&got);
	}
}

static void test_profile_load_merges_files(void **state)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct seen_list want = { 0 }, got = { 0 };
	struct recording facts;
	uint32_t stacks;

	(void)state;
	write_recording(path, 11, 3, true, &want);
	write_recording(other_path, 12, 5, true, &want);
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(profile_load(path, p), 0);
	assert_int_equal(profile_load(other_path, p), 0);
	see(&got, p);
	assert_same_samples(&want, &got);
	assert_int_equal(p->recordings.len, 2);
	facts = profile_facts(p);
	assert_int_equal(profile_counter(p, "ticks"), 80);
	assert_int_equal(profile_counter(p, "lost"), 24);
	assert_int_equal(facts.duration_ns, 10000000000);
	assert_true(facts.work == 0.2);
	assert_string_equal(facts.event, "cpu-clock"); /* the first one's */
	assert_int_equal(facts.has_ended, 1);
	assert_string_equal(p->recordings.items[1].event, "task-clock");
	assert_int_equal(recording_counter(&p->recordings.items[1], "ticks"), 50);

	/* The same file again adds samples, but no rows. */
	stacks = stacktab_count(p->stacks);
	assert_int_equal(profile_load(path, p), 0);
	assert_int_equal(stacktab_count(p->stacks), stacks);

	write_recording(path, 13, 2, false, NULL);
	assert_int_equal(profile_load(path, p), 1);
	assert_int_equal(profile_facts(p).has_ended, 0); /* not all of them */
	vec_release(&want);
	vec_release(&got);
}

/* Of recorded times, which lie anywhere, and of those that were read from such a file again. */
static void test_writer_keep_times_to_the_ns(void **state)
{
	(void)state;
	for (unsigned int seed = 1; seed <= 6; seed++) {
		_cleanup_(profile_freep) struct profile *p = NULL;
		_cleanup_(writer_freep) struct writer *w = NULL;
		struct seen_list want = { 0 }, got = { 0 };

		write_recording(path, seed, 4, seed % 2, NULL);
		assert_in_range(load(path, &want, &p), 0, 1);
		for (size_t i = 0; i < p->samples.len; i++)
			want.items[i].time_ns = p->samples.items[i].time_ns += random_below(16000);
		unlink(other_path);
		assert_int_equal(writer_open(other_path, p, &w), 0);
		writer_keep_times(w);
		assert_int_equal(writer_finish(w, p), 0);
		assert_int_equal(load(other_path, &got, NULL), 0);
		assert_same_samples(&want, &got);
		for (size_t i = 0; i < want.len; i++)
			assert_true(want.items[i].time_ns == got.items[i].time_ns);
		vec_release(&want);
		vec_release(&got);
	}
}

/* An old file stays until there are samples, be they of a further recording. */
static void test_a_further_recording_before_any_samples(void **state)
{
	_cleanup_(profile_freep) struct profile *p = new_profile(1000000, "cpu-clock"),
						*back = NULL;
	_cleanup_(writer_freep) struct writer *w = NULL;
	struct seen_list want = { 0 }, got = { 0 };
	uint64_t time_ns = 700000;
	uint32_t index;

	(void)state;
	write_recording(path, 3, 2, true, NULL);
	assert_int_equal(profile_begin_recording(p, &index), 0);
	assert_int_equal(writer_open(path, p, &w), 0);
	assert_int_equal(profile_begin_recording(p, &index), 0);
	p->recordings.items[index].interval_ns = 2000000;
	assert_int_equal(writer_recording(w, p, index), 0);
	assert_true(writer_has_kept_old(w));
	add_random_samples(p, 30, &time_ns);
	see(&want, p);
	assert_true(writer_flush(w, p) > 0);
	assert_false(writer_has_kept_old(w));
	profile_clear_samples(p);
	assert_int_equal(writer_finish(w, p), 0);
	assert_int_equal(load(path, &got, &back), 0);
	assert_same_samples(&want, &got);
	assert_int_equal(back->recordings.len, 2);
	assert_int_equal(back->recordings.items[1].interval_ns, 2000000);
	vec_release(&want);
	vec_release(&got);
}

/* Several in one file: each with its own facts, counters, grid and start. */
static void test_recordings_of_one_file(void **state)
{
	_cleanup_(profile_freep) struct profile *p = NULL, *back = NULL;
	_cleanup_(writer_freep) struct writer *w = NULL;
	struct seen_list want = { 0 }, got = { 0 };
	struct recording *second;
	uint64_t time_ns = 700000;
	uint32_t index;

	(void)state;
	srand(5);
	unlink(path);
	p = new_profile(1000000, "cpu-clock");
	assert_int_equal(profile_begin_recording(p, &index), 0);
	assert_int_equal(writer_open(path, p, &w), 0);
	for (uint32_t i = 0; i < 3; i++) {
		if (i) {
			assert_int_equal(profile_reset(p), 0);
			assert_int_equal(profile_begin_recording(p, &index), 0);
			second = &p->recordings.items[index];
			second->interval_ns = 3000000 * i;
			assert_int_equal(recording_set_text(&second->host, i == 1 ? "b" : "c"), 0);
			assert_int_equal(writer_recording(w, p, index), 0);
		}
		add_random_samples(p, 30, &time_ns);
		for (size_t s = 0; s < p->processes.len; s++)
			p->processes.items[s].recording = index;
		assert_int_equal(
			recording_set_counter(&p->recordings.items[index], "ticks", 10 + i), 0);
		see(&want, p);
		assert_true(writer_flush(w, p) > 0);
		profile_clear_samples(p);
		p->recordings.items[index].duration_ns = 1000 * (i + 1);
		p->recordings.items[index].has_ended = 1;
	}
	assert_int_equal(writer_finish(w, p), 0);
	assert_int_equal(load(path, &got, &back), 0);
	assert_same_samples(&want, &got);
	assert_int_equal(back->recordings.len, 3);
	for (uint32_t i = 0; i < 3; i++) {
		const struct recording *r = &back->recordings.items[i];

		assert_int_equal(recording_counter(r, "ticks"), 10 + i);
		assert_int_equal(r->duration_ns, 1000 * (i + 1));
		assert_string_equal(r->host, i == 0 ? "box" : i == 1 ? "b" : "c");
		assert_int_equal(r->interval_ns, i ? 3000000 * i : 1000000);
	}
	for (size_t i = 0; i < back->samples.len; i++) {
		const struct thread *t = &back->threads.items[back->samples.items[i].thread];

		assert_int_equal(back->processes.items[t->process].recording, i / 30);
	}
	vec_release(&want);
	vec_release(&got);
}

static uint32_t string(struct profile *p, const char *text)
{
	uint32_t id;

	assert_int_equal(strtab_intern(p->strings, text, strlen(text), &id), 0);
	return id;
}

/* A sample of a process with this name and command line: its index. */
static uint32_t add_named(struct profile *p, uint32_t pid, const char *name)
{
	struct process process = { .pid = pid, .start_ns = 5 };
	struct sample s = { .value = 1, .time_ns = 1000000 };
	struct thread t = { .tid = pid };

	process.name = process.command_line = string(p, name);
	process.recording = (uint32_t)p->recordings.len - 1;
	assert_int_equal(profile_add_process(p, &process, &t.process), 0);
	assert_int_equal(profile_add_thread(p, &t, &s.thread), 0);
	assert_int_equal(profile_add_sample(p, &s), 0);
	return t.process;
}

static void flush(struct writer *w, struct profile *p)
{
	assert_true(writer_flush(w, p) > 0);
	profile_clear_samples(p);
}

static void give_title(struct writer *w, struct profile *p, uint32_t process, const char *title)
{
	assert_int_equal(profile_title_process(p, process, string(p, title)), 0);
	flush(w, p);
}

/* The name of the process of the i-th sample. */
static const char *name_of(const struct profile *p, size_t i)
{
	const struct thread *t = &p->threads.items[p->samples.items[i].thread];
	const struct process *process = &p->processes.items[t->process];

	assert_int_equal(process->name, process->command_line);
	return strtab_get(p->strings, process->name);
}

/* Each ends a chunk, which samples may be in front of; the process's name in the next segment is
 * the title of then. */
static void test_the_last_title_is_that_of_all_samples(void **state)
{
	static const struct {
		const char *name;
		const char *titles[4], *next[4];
		const char *want;
	} cases[] = {
		{ "none", { NULL }, { NULL }, "python" },
		{ "one", { "a" }, { NULL }, "a" },
		{ "several", { "a", "b", "c" }, { NULL }, "c" },
		{ "back again", { "a", "python" }, { NULL }, "python" },
		{ "in the next segment", { "a" }, { "b", "c" }, "c" },
		{ "the first one in the next segment", { NULL }, { "b" }, "b" },
		{ "back in the next segment", { "a" }, { "python", "a", "b" }, "b" },
		{ "back at last", { "a", "b" }, { "a", "python" }, "python" },
	};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(profile_freep) struct profile *p = new_profile(1000000, "cpu-clock");
		_cleanup_(profile_freep) struct profile *back = NULL;
		_cleanup_(writer_freep) struct writer *w = NULL;
		const char *last = "python";
		struct seen_list got = { 0 };
		bool is_finished = i % 2;
		uint32_t process;

		unlink(path);
		assert_int_equal(writer_open(path, p, &w), 0);
		add_named(p, 8, "python"); /* has no title */
		process = add_named(p, 7, "python");
		flush(w, p);
		for (size_t k = 0; k < 4 && cases[i / 2].titles[k]; k++)
			give_title(w, p, process, last = cases[i / 2].titles[k]);
		assert_int_equal(profile_reset(p), 0);
		assert_int_equal(writer_segment(w), 0);
		process = add_named(p, 7, last);
		flush(w, p);
		for (size_t k = 0; k < 4 && cases[i / 2].next[k]; k++)
			give_title(w, p, process, cases[i / 2].next[k]);
		if (is_finished)
			assert_int_equal(writer_finish(w, p), 0);
		assert_int_equal(load(path, &got, &back), !is_finished);
		assert_int_equal(back->samples.len, 3);
		if (strcmp(name_of(back, 0), "python") ||
		    strcmp(name_of(back, 1), cases[i / 2].want) ||
		    strcmp(name_of(back, 2), cases[i / 2].want))
			fail_msg("%s: %s, %s, %s", cases[i / 2].name, name_of(back, 0),
				 name_of(back, 1), name_of(back, 2));
		assert_int_equal(profile_count_processes(back), 2);
		vec_release(&got);
	}
}

/* The same numbers and name in another recording are another process. */
static void test_titles_are_of_one_recording(void **state)
{
	_cleanup_(profile_freep) struct profile *p = new_profile(1000000, "cpu-clock");
	_cleanup_(profile_freep) struct profile *back = NULL;
	_cleanup_(writer_freep) struct writer *w = NULL;
	struct seen_list got = { 0 };
	uint32_t index;

	(void)state;
	unlink(path);
	assert_int_equal(profile_begin_recording(p, &index), 0);
	assert_int_equal(writer_open(path, p, &w), 0);
	add_named(p, 7, "python");
	flush(w, p);
	assert_int_equal(profile_reset(p), 0);
	assert_int_equal(profile_begin_recording(p, &index), 0);
	assert_int_equal(writer_recording(w, p, index), 0);
	index = add_named(p, 7, "python");
	flush(w, p);
	give_title(w, p, index, "a");
	assert_int_equal(writer_finish(w, p), 0);
	assert_int_equal(load(path, &got, &back), 0);
	assert_string_equal(name_of(back, 0), "python");
	assert_string_equal(name_of(back, 1), "a");
	vec_release(&got);
}

static void test_writer_save_is_a_finished_copy(void **state)
{
	_cleanup_(profile_freep) struct profile *p = new_profile(1000000, "cpu-clock");
	_cleanup_(writer_freep) struct writer *w = NULL;
	int fd = memfd_create("recording", MFD_CLOEXEC);
	uint64_t time_ns = 0;
	struct seen_list want = { 0 };

	(void)state;
	srand(11);
	assert_true(fd >= 0);
	assert_int_equal(writer_open_fd(fd, "what is recorded", p, &w), 0);
	for (int i = 1; i <= 3; i++) {
		_cleanup_(profile_freep) struct profile *back = NULL;
		struct seen_list got = { 0 };

		unlink(path);
		add_random_samples(p, 50, &time_ns);
		see(&want, p);
		assert_true(writer_flush(w, p) > 0);
		profile_clear_samples(p);
		profile_recording(p)->duration_ns = (uint64_t)i;
		profile_recording(p)->has_ended = 1;
		assert_int_equal(writer_save(w, p, path), 0);
		profile_recording(p)->has_ended = 0;
		assert_int_equal(load(path, &got, &back), 0);
		assert_same_samples(&want, &got);
		assert_int_equal(profile_recording(back)->duration_ns, i);
		assert_int_equal(profile_recording(back)->has_ended, 1);
		vec_release(&got);
		assert_int_equal(writer_save(w, p, path), -EEXIST);
		assert_non_null(strstr(err_message(-EEXIST), "already exists"));
	}
	assert_int_equal(writer_save(w, p, "/nonexistent/x.pyebpf"), -ENOENT);
	vec_release(&want);
}

static void limit_file_size(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void test_writer_flush_takes_back_what_did_not_fit(void **state)
{
	_cleanup_(profile_freep) struct profile *p = new_profile(1000000, "task-clock");
	_cleanup_(writer_freep) struct writer *w = NULL;
	struct seen_list first = { 0 }, all = { 0 }, got = { 0 };
	uint64_t time_ns = 0, size;
	struct stat st;
	char want[160];
	ssize_t n;

	(void)state;
	srand(3);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(writer_open(path, p, &w), 0);
	add_random_samples(p, 50, &time_ns);
	see(&first, p);
	see(&all, p);
	assert_true(writer_flush(w, p) > 0);
	profile_clear_samples(p);
	size = writer_size(w);

	add_random_samples(p, 50, &time_ns);
	see(&all, p);
	limit_file_size(size + 20); /* room for a part of the chunk */
	n = writer_flush(w, p);
	limit_file_size(RLIM_INFINITY);
	assert_int_equal(n, -EFBIG);
	snprintf(want, sizeof(want), "write %s: File too large", path);
	assert_string_equal(err_message(-EFBIG), want);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, size);
	assert_int_equal(load(path, &got, NULL), 1);
	assert_same_samples(&first, &got);

	/* There is room again: nothing is lost, nothing there twice. */
	got.len = 0;
	assert_true(writer_flush(w, p) > 0);
	profile_clear_samples(p);
	assert_int_equal(writer_finish(w, p), 0);
	assert_int_equal(load(path, &got, NULL), 0);
	assert_same_samples(&all, &got);
	vec_release(&first);
	vec_release(&all);
	vec_release(&got);
}

static void assert_recording(const char *name, struct seen_list *want)
{
	struct seen_list got = { 0 };

	if (load(path, &got, NULL) < 0)
		fail_msg("%s: %s", name, err_message(-1));
	assert_same_samples(want, &got);
	vec_release(&got);
}

static void test_writer_keeps_the_old_recording_until_there_are_samples(void **state)
{
	_cleanup_(profile_freep) struct profile *p = new_profile(1000000, "task-clock");
	struct seen_list old = { 0 }, want = { 0 };
	struct writer *w = NULL;
	uint64_t time_ns = 0;

	(void)state;
	write_recording(path, 3, 2, true, &old);
	assert_int_equal(writer_open(path, p, &w), 0);
	assert_true(writer_has_kept_old(w));
	assert_int_equal(writer_flush(w, p), 0);
	assert_int_equal(writer_segment(w), 0);
	assert_recording("opened and flushed", &old);
	assert_int_equal(writer_finish(w, p), 0);
	writer_discard(w);
	writer_free(w);
	assert_recording("finished without samples", &old);

	assert_int_equal(writer_open(path, p, &w), 0);
	add_random_samples(p, 20, &time_ns);
	see(&want, p);
	signal(SIGXFSZ, SIG_IGN);
	limit_file_size(10);
	assert_true(writer_flush(w, p) < 0);
	limit_file_size(RLIM_INFINITY);
	assert_recording("no room for the new one", &old);
	assert_true(writer_flush(w, p) > 0);
	assert_false(writer_has_kept_old(w));
	profile_clear_samples(p);
	assert_recording("flushed with samples", &want);
	assert_int_equal(writer_finish(w, p), 0);
	writer_free(w);
	assert_recording("finished with samples", &want);
	vec_release(&old);
	vec_release(&want);
}

static void test_writer_makes_a_new_recording_at_once(void **state)
{
	_cleanup_(profile_freep) struct profile *p = new_profile(1000000, "task-clock");
	struct seen_list got = { 0 };
	struct writer *w = NULL;

	(void)state;
	unlink(path);
	assert_int_equal(writer_open(path, p, &w), 0);
	assert_int_equal(load(path, &got, NULL), 1);
	assert_int_equal(got.len, 0);
	writer_discard(w);
	writer_free(w);
	assert_int_equal(access(path, F_OK), -1);
	vec_release(&got);
}

static void test_writer_open_refuses(void **state)
{
	static const char text[] = "#!/usr/bin/env python3\nprint('mine')\n";
	_cleanup_(profile_freep) struct profile *p = new_profile(1000000, "task-clock");
	struct seen_list want = { 0 };
	struct writer *first = NULL, *w = NULL;
	struct stat st;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	unlink(path);
	limit_file_size(10);
	assert_int_equal(writer_open(path, p, &w), -EFBIG);
	limit_file_size(RLIM_INFINITY);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(writer_open("/dev/full", p, &w), -ENOSPC);
	assert_int_equal(writer_open("/nonexistent/x.pyebpf", p, &w), -ENOENT);
	assert_int_equal(writer_open("/", p, &w), -EISDIR);

	/* One that another has open: new, or still the old one. */
	assert_int_equal(writer_open(path, p, &first), 0);
	assert_int_equal(writer_open(path, p, &w), -EBUSY);
	writer_free(first);
	write_recording(path, 3, 2, true, &want);
	assert_int_equal(writer_open(path, p, &first), 0);
	assert_int_equal(writer_open(path, p, &w), -EBUSY);
	writer_free(first);
	assert_recording("another had it open", &want);

	/* What is no recording may be anything; a link may lead anywhere. */
	write_file(path, (const uint8_t *)text, strlen(text));
	assert_int_equal(writer_open(path, p, &w), -EEXIST);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, strlen(text));
	unlink(other_path);
	assert_int_equal(symlink(path, other_path), 0);
	assert_int_equal(writer_open(other_path, p, &w), -ELOOP);
	unlink(other_path);
	unlink(path);
	assert_null(w);
	vec_release(&want);
}

static void test_writer_open_writes_to_a_pipe_as_it_is(void **state)
{
	_cleanup_(profile_freep) struct profile *p = new_profile(1000000, "task-clock");
	struct seen_list want = { 0 }, got = { 0 };
	struct writer *w = NULL;
	uint8_t bytes[65536];
	uint64_t time_ns = 0;
	ssize_t n;
	char name[32];
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	snprintf(name, sizeof(name), "/dev/fd/%d", fds[1]);
	assert_int_equal(writer_open(name, p, &w), 0);
	add_random_samples(p, 20, &time_ns);
	see(&want, p);
	assert_true(writer_flush(w, p) > 0);
	profile_clear_samples(p);
	assert_int_equal(writer_finish(w, p), 0);
	n = read(fds[0], bytes, sizeof(bytes));
	assert_int_equal(n, writer_size(w));
	writer_free(w);
	close(fds[0]);
	close(fds[1]);
	write_file(path, bytes, (size_t)n);
	assert_int_equal(load(path, &got, NULL), 0);
	assert_same_samples(&want, &got);
	vec_release(&want);
	vec_release(&got);
}

static void test_reader_is_truncated_tells_where(void **state)
{
	static const struct {
		const char *name;
		size_t zeros;
		uint8_t last;
		int want;
	} cases[] = {
		{ "nothing behind", 0, 0, 0 },
		{ "zeros after a power cut", 5000, 0, 0 },
		{ "zeros, then something", 5000, 1, -EBADMSG },
	};
	_cleanup_(freep) uint8_t *bytes = NULL;
	size_t len;

	(void)state;
	write_recording(path, 2, 3, false, NULL);
	read_file(path, &bytes, &len);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(profile_freep) struct profile *p = NULL;
		_cleanup_(reader_freep) struct reader *r = NULL;
		uint8_t *built = calloc(1, len + cases[i].zeros + 1);
		uint64_t offset = 0;
		int n;

		assert_non_null(built);
		memcpy(built, bytes, len);
		if (cases[i].last)
			built[len + cases[i].zeros - 1] = cases[i].last;
		write_file(other_path, built, len + cases[i].zeros);
		free(built);
		assert_int_equal(profile_new(&p), 0);
		assert_int_equal(reader_open(other_path, &r), 0);
		do {
			n = reader_next(r, p);
		} while (n > 0);
		if (n != cases[i].want)
			fail_msg("%s: got %d, want %d", cases[i].name, n, cases[i].want);
		if (!n && (!reader_is_truncated(r, &offset) || offset != len))
			fail_msg("%s: cut off at %d, want %d", cases[i].name, (int)offset,
				 (int)len);
		/* The last sample says how long it ran. */
		if (!n)
			assert_true(profile_recording(p)->duration_ns > 0);
	}
}

static void test_reader_index_lists_the_chunks(void **state)
{
	_cleanup_(freep) struct reader_chunk *chunks = NULL;
	_cleanup_(profile_freep) struct profile *p = NULL;
	_cleanup_(reader_freep) struct reader *r = NULL;
	_cleanup_(freep) uint8_t *bytes = NULL;
	size_t len, count, flushes = 0;

	(void)state;
	write_recording(path, 7, 6, true, NULL);
	read_file(path, &bytes, &len);
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(reader_open(path, &r), 0);
	assert_int_equal(reader_index(r, &chunks, &count), 0);
	for (size_t i = 0; i < count; i++) {
		int n = i ? reader_next(r, p) : 1; /* the first was read by reader_open() */

		assert_int_equal(n, 1);
		assert_int_equal(bytes[chunks[i].offset + 4], chunks[i].type);
		assert_int_equal(p->samples.len, chunks[i].samples);
		for (size_t k = 0; k < p->samples.len; k++)
			assert_in_range(p->samples.items[k].time_ns + TIME_UNIT_NS,
					chunks[i].first_ns, chunks[i].last_ns + 3 * TIME_UNIT_NS);
		flushes += chunks[i].type == CHUNK_FLUSH;
		profile_clear_samples(p);
	}
	assert_in_range(flushes, 6, 7); /* counters once more, if a segment came last */
	assert_int_equal(reader_next(r, p), 0);
	assert_false(reader_is_truncated(r, NULL));
}

static int make_folder(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	snprintf(folder, sizeof(folder), "%s/test_store.XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/a.pyebpf", folder);
	snprintf(other_path, sizeof(other_path), "%s/b.pyebpf", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(path);
	unlink(other_path);
	return rmdir(folder); /* fails if a temporary file was left behind */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_profile_load_gives_back_what_was_written),
		cmocka_unit_test(test_writer_flush_splits_what_is_too_much_for_a_chunk),
		cmocka_unit_test(test_writer_segment_bounds_memory),
		cmocka_unit_test(test_profile_load_reads_every_prefix_up_to_its_last_whole_chunk),
		cmocka_unit_test(test_profile_load_notices_every_changed_bit),
		cmocka_unit_test(test_reader_open_says_what_is_wrong),
		cmocka_unit_test(test_reader_next_skips_what_it_does_not_know),
		cmocka_unit_test(test_reader_next_refuses_malformed_chunks),
		cmocka_unit_test(test_profile_load_merges_files),
		cmocka_unit_test(test_writer_keep_times_to_the_ns),
		cmocka_unit_test(test_recordings_of_one_file),
		cmocka_unit_test(test_a_further_recording_before_any_samples),
		cmocka_unit_test(test_the_last_title_is_that_of_all_samples),
		cmocka_unit_test(test_titles_are_of_one_recording),
		cmocka_unit_test(test_writer_save_is_a_finished_copy),
		cmocka_unit_test(test_writer_flush_takes_back_what_did_not_fit),
		cmocka_unit_test(test_writer_keeps_the_old_recording_until_there_are_samples),
		cmocka_unit_test(test_writer_makes_a_new_recording_at_once),
		cmocka_unit_test(test_writer_open_refuses),
		cmocka_unit_test(test_writer_open_writes_to_a_pipe_as_it_is),
		cmocka_unit_test(test_reader_is_truncated_tells_where),
		cmocka_unit_test(test_reader_index_lists_the_chunks),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
