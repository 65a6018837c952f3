/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files whose few bytes claim many rows, a kind for each section: what reading one takes is bounded
 * by its bytes. And recordings that are as regular as that still read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/varint.h"
#include "profile/calltree.h"
#include "store/checksum.h"
#include "store/column.h"
#include "store/format.h"
#include "store/reader.h"
#include "store/writer.h"

#define HOSTILE_BYTES (104u << 10)
#ifdef __SANITIZE_ADDRESS__
#define PEAK_MAX_KIB (512l << 10) /* it keeps 256 MiB of what was freed, and shadows */
#else
#define PEAK_MAX_KIB (96l << 10) /* with the 68 MiB that 104 KiB pay for, and the test itself */
#endif

static char path[64];

static void put(struct bytes *b, uint64_t v)
{
	assert_int_equal(bytes_put_varint(b, v), 0);
}

static void constant(struct bytes *b, uint64_t v)
{
	put(b, 0);
	put(b, v);
}

static void chunk(struct bytes *file, enum chunk_type type, const struct bytes *content)
{
	size_t start = file->len;

	assert_int_equal(vec_append(file, (const uint8_t *)"\0\0\0\0", 4), 0);
	put(file, type);
	put(file, content->len);
	assert_int_equal(vec_append(file, content->items, content->len), 0);
	put_le32(file->items + start, crc32c(file->items + start + 4, file->len - start - 4));
}

static void section(struct bytes *content, enum section id, struct bytes *rows)
{
	put(content, id);
	put(content, rows->len);
	assert_int_equal(vec_append(content, rows->items, rows->len), 0);
	rows->len = 0;
}

/* Numbers of which none is like another, in few bytes. */
static void counting(struct column_coder *z, struct bytes *b, uint64_t first, uint64_t step,
		     size_t count)
{
	static uint64_t values[CHUNK_ROWS_MAX];

	for (size_t i = 0; i < count; i++)
		values[i] = first + step * i;
	assert_int_equal(column_encode(z, b, values, count), 0);
}

/* What the sections of the n-th chunk are made with. */
struct maker {
	struct column_coder z;
	struct bytes rows;
	uint32_t n;
};

static void empty_strings(struct maker *m)
{
	put(&m->rows, CHUNK_ROWS_MAX);
	constant(&m->rows, 0);
}

/* Five strings of a MiB, unlike those of other chunks. */
static void long_strings(struct maker *m)
{
	static uint8_t text[CHUNK_TEXT_MAX];

	for (uint32_t i = 0; i < CHUNK_TEXT_MAX / STRTAB_LEN_MAX; i++)
		snprintf((char *)text + i * STRTAB_LEN_MAX, 32, "%u %u", m->n, i);
	put(&m->rows, CHUNK_TEXT_MAX / STRTAB_LEN_MAX);
	constant(&m->rows, STRTAB_LEN_MAX);
	assert_int_equal(text_encode(&m->z, &m->rows, text, sizeof(text)), 0);
}

/* The first ones bring the function of all. */
static void frames(struct maker *m, uint64_t count, bool is_equal)
{
	put(&m->rows, count);
	constant(&m->rows, m->n ? 1 : 0);
	if (is_equal)
		constant(&m->rows, 0);
	else
		counting(&m->z, &m->rows, 2 * m->n * count, 2, count); /* zigzag */
	constant(&m->rows, 0);
	for (int i = 0; !m->n && i < 4; i++)
		constant(&m->rows, 0);
}

static void empty_frames(struct maker *m)
{
	frames(m, CHUNK_ROWS_MAX, true);
}

static void lines(struct maker *m)
{
	frames(m, CHUNK_ROWS_MAX, false);
}

static void functions(struct maker *m)
{
	put(&m->rows, CHUNK_ROWS_MAX);
	for (int i = 0; i < 7; i++)
		constant(&m->rows, 0);
}

/* One chain: each entry below the one before, or all side by side. */
static void stacks(struct maker *m, bool is_deep)
{
	put(&m->rows, CHUNK_ROWS_MAX);
	put(&m->rows, is_deep ? 1 : CHUNK_ROWS_MAX);
	constant(&m->rows, is_deep && !m->n ? 0 : 1);
	if (is_deep && !m->n)
		constant(&m->rows, 0);
	constant(&m->rows, is_deep ? CHUNK_ROWS_MAX - 1 : 0);
	constant(&m->rows, CHILD_EXPLICIT);
	constant(&m->rows, 0);
}

static void recursion(struct maker *m)
{
	stacks(m, true);
}

static void equal_stacks(struct maker *m)
{
	stacks(m, false);
}

/* Described rows whose columns are all left out. */
static void empty_rows(struct maker *m)
{
	put(&m->rows, CHUNK_ROWS_MAX);
}

/* The same with one column, in which none is like another. */
static void counted_rows(struct maker *m, unsigned int field)
{
	put(&m->rows, CHUNK_ROWS_MAX);
	put(&m->rows, field);
	counting(&m->z, &m->rows, m->n * (uint64_t)CHUNK_ROWS_MAX, 1, CHUNK_ROWS_MAX);
}

static void processes(struct maker *m)
{
	counted_rows(m, 1);
}

static void threads(struct maker *m)
{
	counted_rows(m, 2);
}

/* All of one thread and of the empty stack, each said as a new one. */
static void samples(struct maker *m)
{
	put(&m->rows, CHUNK_ROWS_MAX);
	put(&m->rows, GRID_THREAD);
	put(&m->rows, 0);
	put(&m->rows, 1);
	constant(&m->rows, 0);
	constant(&m->rows, CHUNK_ROWS_MAX - 1);
	for (int i = 0; i < 4; i++)
		constant(&m->rows, 0);
	constant(&m->rows, 1);
	constant(&m->rows, 0);
	constant(&m->rows, 0);
}

static void counters(struct maker *m)
{
	char name[16];

	put(&m->rows, 100);
	for (uint32_t i = 0; i < 100; i++) {
		int len = snprintf(name, sizeof(name), "%u", m->n * 100 + i);

		put(&m->rows, (uint64_t)len);
		assert_int_equal(vec_append(&m->rows, (const uint8_t *)name, (size_t)len), 0);
		put(&m->rows, 1);
	}
}

static void no_rows(struct maker *m)
{
	(void)m;
}

static const struct hostile {
	const char *name;
	enum section id;
	void (*make)(struct maker *m);
	bool is_refused; /* others take no memory, or as much as they have bytes */
	bool restarts;   /* a segment for each */
} hostiles[] = {
	{ "empty strings", SECTION_STRINGS, empty_strings, true, false },
	{ "empty strings, segment by segment", SECTION_STRINGS, empty_strings, true, true },
	{ "long strings", SECTION_STRINGS, long_strings, true, false },
	{ "long strings, segment by segment", SECTION_STRINGS, long_strings, true, true },
	{ "empty frames", SECTION_FRAMES, empty_frames, true, false },
	{ "functions", SECTION_FRAMES, functions, true, false },
	{ "lines", SECTION_FRAMES, lines, true, false },
	{ "equal stacks", SECTION_STACKS, equal_stacks, true, false },
	{ "recursion", SECTION_STACKS, recursion, true, false },
	{ "empty processes", SECTION_PROCESSES, empty_rows, true, false },
	{ "processes", SECTION_PROCESSES, processes, true, false },
	{ "empty threads", SECTION_THREADS, empty_rows, true, false },
	{ "threads", SECTION_THREADS, threads, true, false },
	{ "samples", SECTION_SAMPLES, samples, true, false },
	{ "places", SECTION_PLACES, empty_rows, true, false },
	{ "label sets", SECTION_LABEL_SETS, empty_rows, true, false },
	{ "counters", SECTION_COUNTERS, counters, true, false },
	{ "a section to come", SECTION_PADDING, no_rows, false, false },
};
#define HOSTILES (sizeof(hostiles) / sizeof(hostiles[0]))

/* Before any other rows: what they refer to. */
static void base_rows(struct maker *m, const struct hostile *h, struct bytes *content)
{
	if (h->id == SECTION_STACKS) {
		frames(m, 1, true);
		section(content, SECTION_FRAMES, &m->rows);
	}
	if (h->id == SECTION_THREADS || h->id == SECTION_SAMPLES || h->id == SECTION_PLACES) {
		put(&m->rows, 1);
		section(content, SECTION_PROCESSES, &m->rows);
	}
	if (h->id == SECTION_SAMPLES) {
		put(&m->rows, 1);
		section(content, SECTION_THREADS, &m->rows);
	}
}

static void write_bytes(const struct bytes *file)
{
	_cleanup_(closep) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(file_write(fd, file->items, file->len), 0);
}

static void write_hostile(const struct hostile *h, size_t bytes)
{
	struct format_header header = { FORMAT_MAGIC, { FORMAT_MAJOR }, { FORMAT_MINOR } };
	struct bytes file = { 0 }, content = { 0 };
	struct maker m = { 0 };

	assert_int_equal(vec_append(&file, (const uint8_t *)&header, sizeof(header)), 0);
	assert_int_equal(vec_reserve(&content, 1), 0);
	assert_int_equal(vec_reserve(&m.rows, 1), 0);
	chunk(&file, CHUNK_METADATA, &content);
	base_rows(&m, h, &content);
	for (; file.len < bytes; m.n++) {
		if (h->restarts) {
			content.len = 0;
			chunk(&file, CHUNK_SEGMENT, &content);
		}
		h->make(&m);
		section(&content, h->id, &m.rows);
		chunk(&file, CHUNK_FLUSH, &content);
		content.len = 0;
	}
	write_bytes(&file);
	vec_release(&file);
	vec_release(&content);
	vec_release(&m.rows);
	column_coder_release(&m.z);
}

/* As a report reads. What reader_next() gave in the end. */
static int read_all(const char *from)
{
	_cleanup_(cube_release) struct cube cube = { 0 };
	_cleanup_(calltree_freep) struct calltree *tree = NULL;
	_cleanup_(profile_freep) struct profile *p = NULL;
	_cleanup_(reader_freep) struct reader *r = NULL;
	int n = profile_new(&p);

	if (!n)
		n = reader_open(from, &r);
	if (n < 0)
		return n;
	while ((n = reader_next(r, p)) > 0) {
		if (cube_add(&cube, p) < 0)
			return -ENOMEM;
		profile_clear_samples(p);
	}
	if (calltree_new(p, &cube, KIND_TICKS, CALLTREE_BY_FUNCTION, &tree) < 0)
		return -ENOMEM;
	return n;
}

/* In a process of its own, for its peak. */
static long peak_of_reading(int *result)
{
	struct rusage usage;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(-read_all(path));
	assert_int_equal(wait4(pid, &status, 0, &usage), pid);
	assert_true(WIFEXITED(status));
	*result = -WEXITSTATUS(status);
	return usage.ru_maxrss;
}

static void test_reader_next_takes_no_more_memory_than_bytes_pay_for(void **state)
{
	(void)state;
	for (size_t i = 0; i < HOSTILES; i++) {
		const struct hostile *h = &hostiles[i];
		long kib;
		int r;

		write_hostile(h, HOSTILE_BYTES);
		kib = peak_of_reading(&r);
		if (kib > PEAK_MAX_KIB)
			fail_msg("%s: %ld KiB", h->name, kib);
		if ((r < 0) != h->is_refused)
			fail_msg("%s: got %d", h->name, r);
	}
}

static void test_reader_next_says_that_rows_are_too_many(void **state)
{
	(void)state;
	write_hostile(&hostiles[0], HOSTILE_BYTES);
	assert_int_equal(read_all(path), -EBADMSG);
	assert_non_null(strstr(err_message(-EBADMSG),
			       "more memory than a valid recording of this size could"));
}

/* An index of a million chunks, in a file without any. */
static void test_reader_index_has_no_more_rows_than_chunks_fit(void **state)
{
	struct format_header header = { FORMAT_MAGIC, { FORMAT_MAJOR }, { FORMAT_MINOR } };
	struct bytes file = { 0 }, content = { 0 };
	struct reader_chunk *chunks = NULL;
	_cleanup_(reader_freep) struct reader *r = NULL;
	uint64_t index_offset;
	size_t count;

	(void)state;
	assert_int_equal(vec_append(&file, (const uint8_t *)&header, sizeof(header)), 0);
	assert_int_equal(vec_reserve(&content, 8), 0);
	chunk(&file, CHUNK_METADATA, &content);
	index_offset = file.len;
	put(&content, 0);
	put(&content, INDEX_ROWS_MAX);
	for (int i = 0; i < 5; i++)
		constant(&content, 0);
	chunk(&file, CHUNK_INDEX, &content);
	put_le64(content.items, index_offset);
	content.len = 8;
	chunk(&file, CHUNK_END, &content);
	write_bytes(&file);
	assert_int_equal(reader_open(path, &r), 0);
	assert_int_equal(reader_index(r, &chunks, &count), -EBADMSG);
	vec_release(&file);
	vec_release(&content);
}

/* Rows of which each follows from the one before: hardly a byte, were it not for the padding. */
static void test_writer_flush_pays_for_rows_that_cost_no_bytes(void **state)
{
	_cleanup_(profile_freep) struct profile *p = NULL, *again = NULL;
	_cleanup_(writer_freep) struct writer *w = NULL;
	struct process process = { .pid = 1 };
	struct thread t = { .tid = 1 };
	uint32_t frame, stack;
	struct stat st;

	(void)state;
	unlink(path);
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(profile_add_process(p, &process, &t.process), 0);
	assert_int_equal(profile_add_thread(p, &t, &stack), 0);
	assert_int_equal(writer_open(path, p, &w), 0);
	for (uint32_t i = 1; i <= 600; i++) {
		struct frame f = { .line = i };
		struct sample s = { .time_ns = i * UINT64_C(1000000), .value = 1 };

		assert_int_equal(frametab_intern(p->frames, &f, &frame), 0);
		for (uint32_t depth = 0; depth < 900; depth++)
			assert_int_equal(stacktab_intern(p->stacks, s.stack, frame, &s.stack), 0);
		assert_int_equal(profile_add_sample(p, &s), 0);
	}
	assert_int_equal(writer_finish(w, p), 0);
	assert_int_equal(profile_new(&again), 0);
	assert_int_equal(profile_load(path, again), 0);
	assert_int_equal(again->samples.len, 600);
	assert_int_equal(stacktab_count(again->stacks), 1 + 600 * 900);
	assert_int_equal(stat(path, &st), 0);
	assert_in_range(st.st_size, 64 << 10, 128 << 10); /* two bits a row at most */
}

static int make_path(void **state)
{
	const char *tmp = getenv("TMPDIR");
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/test_cost.XXXXXX", tmp ? tmp : "/tmp");
	fd = mkstemp(path);
	if (fd >= 0)
		close(fd);
	return fd < 0 ? -1 : 0;
}

static int remove_path(void **state)
{
	(void)state;
	return unlink(path);
}

/* test_cost FOLDER: a small file of each kind, for tests/fuzz/corpus/store_rows. */
static int write_seeds(const char *folder)
{
	for (size_t i = 0; i < HOSTILES; i++) {
		snprintf(path, sizeof(path), "%s/%02zu", folder, i);
		write_hostile(&hostiles[i], 600);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reader_next_takes_no_more_memory_than_bytes_pay_for),
		cmocka_unit_test(test_reader_next_says_that_rows_are_too_many),
		cmocka_unit_test(test_reader_index_has_no_more_rows_than_chunks_fit),
		cmocka_unit_test(test_writer_flush_pays_for_rows_that_cost_no_bytes),
	};

	if (argc == 2)
		return write_seeds(argv[1]);
	return cmocka_run_group_tests(tests, make_path, remove_path);
}
