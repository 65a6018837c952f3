/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile.h"

#define MANY 100000

static void test_strtab_intern_gives_dense_ids_and_keeps_bytes(void **state)
{
	static const struct {
		const char *name;
		const char *s;
		size_t len;
		uint32_t want;
	} cases[] = {
		{ "the empty string is 0", "", 0, 0 },
		{ "first new string", "main", 4, 1 },
		{ "again", "main", 4, 1 },
		{ "a prefix is another string", "mai", 3, 2 },
		{ "NUL inside", "ma\0n", 4, 3 },
		{ "NUL inside, other tail", "ma\0m", 4, 4 },
		{ "not UTF-8", "\xff\xfe", 2, 5 },
		{ "empty again", "x", 0, 0 },
	};
	struct strtab *t = NULL;

	(void)state;
	assert_int_equal(strtab_new(&t), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t id = 77;

		if (strtab_intern(t, cases[i].s, cases[i].len, &id) || id != cases[i].want)
			fail_msg("%s: got id %u, want %u", cases[i].name, id, cases[i].want);
		if (strtab_len(t, id) != cases[i].len ||
		    memcmp(strtab_get(t, id), cases[i].s, cases[i].len) ||
		    strtab_get(t, id)[cases[i].len])
			fail_msg("%s: bytes differ", cases[i].name);
	}
	assert_int_equal(strtab_count(t), 6);
	strtab_free(t);
	strtab_free(NULL);
}

static void test_strtab_strings_do_not_move_while_it_grows(void **state)
{
	struct strtab *t = NULL;
	const char *first;
	char text[32];
	uint32_t id;

	(void)state;
	assert_int_equal(strtab_new(&t), 0);
	assert_int_equal(strtab_intern(t, "first", 5, &id), 0);
	first = strtab_get(t, id);
	for (uint32_t i = 0; i < MANY; i++) {
		int len = snprintf(text, sizeof(text), "name %u", i);

		assert_int_equal(strtab_intern(t, text, (size_t)len, &id), 0);
		assert_int_equal(id, i + 2);
	}
	for (uint32_t i = 0; i < MANY; i++) {
		int len = snprintf(text, sizeof(text), "name %u", i);

		assert_int_equal(strtab_intern(t, text, (size_t)len, &id), 0);
		assert_int_equal(id, i + 2);
		assert_string_equal(strtab_get(t, id), text);
	}
	assert_ptr_equal(strtab_get(t, 1), first);
	assert_string_equal(first, "first");
	/* Text, entries and slots: a bound that a leak of memory per string would break. */
	assert_in_range(strtab_bytes(t), MANY * 11, MANY * 70);
	strtab_free(t);
}

static void test_strtab_intern_takes_long_strings_up_to_its_limit(void **state)
{
	char *s = calloc(1, STRTAB_LEN_MAX + 2);
	struct strtab *t = NULL;
	uint32_t id = 77;

	(void)state;
	assert_non_null(s);
	memset(s, 'x', STRTAB_LEN_MAX + 1);
	assert_int_equal(strtab_new(&t), 0);
	assert_int_equal(strtab_intern(t, s, STRTAB_LEN_MAX + 1, &id), -EMSGSIZE);
	assert_int_equal(id, 77);
	assert_int_equal(strtab_intern(t, s, STRTAB_LEN_MAX, &id), 0);
	assert_int_equal(id, 1);
	assert_memory_equal(strtab_get(t, 1), s, STRTAB_LEN_MAX);
	assert_int_equal(strtab_intern(t, "after", 5, &id), 0);
	assert_string_equal(strtab_get(t, 2), "after");
	strtab_free(t);
	free(s);
}

static void test_frametab_intern_tells_every_field_apart(void **state)
{
	static const struct {
		const char *name;
		struct frame frame;
		uint32_t want;
	} cases[] = {
		{ "first", { 1, 2, 3, 4, 0, FRAME_PYTHON, 0 }, 0 },
		{ "again", { 1, 2, 3, 4, 0, FRAME_PYTHON, 0 }, 0 },
		{ "name", { 9, 2, 3, 4, 0, FRAME_PYTHON, 0 }, 1 },
		{ "file", { 1, 9, 3, 4, 0, FRAME_PYTHON, 0 }, 2 },
		{ "line", { 1, 2, 9, 4, 0, FRAME_PYTHON, 0 }, 3 },
		{ "first line", { 1, 2, 3, 9, 0, FRAME_PYTHON, 0 }, 4 },
		{ "kind", { 1, 2, 3, 4, 0, FRAME_KERNEL, 0 }, 5 },
		{ "flags", { 1, 2, 3, 4, 0, FRAME_PYTHON, FRAME_LINE_APPROXIMATE }, 6 },
		{ "name and file exchanged", { 2, 1, 3, 4, 0, FRAME_PYTHON, 0 }, 7 },
		{ "offset", { 1, 2, 3, 4, 5, FRAME_PYTHON, 0 }, 8 },
	};
	struct frametab *t = NULL;

	(void)state;
	assert_int_equal(frametab_new(&t), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t id = 77;

		if (frametab_intern(t, &cases[i].frame, &id) || id != cases[i].want)
			fail_msg("%s: got id %u, want %u", cases[i].name, id, cases[i].want);
		assert_int_equal(frametab_get(t, id)->line, cases[i].frame.line);
	}
	assert_int_equal(frametab_count(t), 9);
	frametab_free(t);
}

static void test_stacktab_intern_shares_prefixes(void **state)
{
	static const struct {
		const char *name;
		uint32_t parent, frame, want;
	} cases[] = {
		{ "outermost frame", 0, 5, 1 },
		{ "one deeper", 1, 6, 2 },
		{ "the same again", 1, 6, 2 },
		{ "a sibling", 1, 7, 3 },
		{ "same frame elsewhere", 2, 7, 4 },
		{ "recursion", 4, 7, 5 },
		{ "frame 0 below the empty stack is not the empty stack", 0, 0, 6 },
	};
	struct stacktab *t = NULL;
	uint32_t id;

	(void)state;
	assert_int_equal(stacktab_new(&t), 0);
	assert_int_equal(stacktab_count(t), 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		id = 77;
		if (stacktab_intern(t, cases[i].parent, cases[i].frame, &id) || id != cases[i].want)
			fail_msg("%s: got id %u, want %u", cases[i].name, id, cases[i].want);
	}
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(stacktab_intern(t, i, i % 50 + 100, &id), 0);
	for (uint32_t i = 1; i < stacktab_count(t); i++)
		assert_true(stacktab_entries(t)[i].parent < i);
	assert_in_range(stacktab_bytes(t), (size_t)MANY * 16, (size_t)MANY * 48);
	stacktab_free(t);
}

static void test_profile_add_interns_processes_and_threads(void **state)
{
	struct process process = { .pid = 412, .start_ns = 5 };
	struct thread t = { .tid = 413, .name = 0 };
	struct profile *p = NULL;
	uint32_t a, b, name;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(profile_add_process(p, &process, &a), 0);
	assert_int_equal(profile_add_process(p, &process, &b), 0);
	assert_int_equal(a, b);
	process.start_ns = 6; /* the pid was used again */
	assert_int_equal(profile_add_process(p, &process, &b), 0);
	assert_int_equal(b, 1);

	t.process = b;
	assert_int_equal(profile_add_thread(p, &t, &a), 0);
	assert_int_equal(profile_add_thread(p, &t, &b), 0);
	assert_int_equal(a, b);
	assert_int_equal(strtab_intern(p->strings, "worker", 6, &name), 0);
	t.name = name; /* renamed: a new entry */
	assert_int_equal(profile_add_thread(p, &t, &b), 0);
	assert_int_equal(b, 1);
	assert_int_equal(p->threads.len, 2);
	profile_free(p);
}

/* Another thread has its TID later; a name that comes late is the one of its row. */
static void test_profile_add_tells_threads_apart_by_their_start(void **state)
{
	struct process process = { .pid = 412, .start_ns = 5 };
	struct thread t = { .tid = 413, .start_ns = 6 };
	struct profile *p = NULL;
	uint32_t first, second, again, name;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(strtab_intern(p->strings, "worker", 6, &name), 0);
	assert_int_equal(profile_add_process(p, &process, &t.process), 0);
	assert_int_equal(profile_add_thread(p, &t, &first), 0);
	t.start_ns = 7;
	assert_int_equal(profile_add_thread(p, &t, &second), 0);
	assert_int_not_equal(first, second);
	assert_int_equal(profile_count_threads(p), 2);
	assert_int_equal(profile_name_thread(p, second, name), 0);
	assert_int_equal(p->threads.items[first].name, 0);
	t.name = name;
	assert_int_equal(profile_add_thread(p, &t, &again), 0);
	assert_int_equal(again, second);
	t.name = 0;
	assert_int_equal(profile_add_thread(p, &t, &again), 0);
	assert_int_equal(profile_name_thread(p, again, name), 0);
	assert_int_equal(p->threads.items[again].same, second);
	assert_int_equal(profile_count_threads(p), 2);
	profile_free(p);
}

static void test_profile_count_threads_takes_names_together(void **state)
{
	static const struct {
		const char *name;
		uint32_t process, tid, thread_name;
		size_t want;
	} cases[] = {
		{ "the first", 0, 413, 1, 1 },
		{ "the same", 0, 413, 1, 1 },
		{ "by another name", 0, 413, 2, 1 },
		{ "by its first name", 0, 413, 1, 1 },
		{ "another", 0, 414, 2, 2 },
		{ "of another process", 1, 413, 1, 3 },
		{ "of the first process, in another recording", 2, 413, 1, 3 },
		{ "the same, by a third name", 2, 413, 3, 3 },
		{ "another one there", 2, 415, 3, 4 },
		{ "without a number", 0, 0, 1, 5 },
		{ "without a number, another name", 0, 0, 2, 6 },
	};
	struct process processes[] = {
		{ .pid = 412 },
		{ .pid = 500 },
		{ .pid = 412, .recording = 1 },
	};
	struct profile *p = NULL;
	uint32_t id;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(profile_begin_recording(p, &id), 0);
	assert_int_equal(profile_begin_recording(p, &id), 0);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(profile_add_process(p, &processes[i], &id), 0);
		assert_int_equal(id, i);
	}
	assert_int_equal(profile_count_processes(p), 2);
	assert_int_equal(profile_count_threads(p), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct thread t = { .process = cases[i].process,
					  .tid = cases[i].tid,
					  .name = cases[i].thread_name };
		size_t got;

		assert_int_equal(profile_add_thread(p, &t, &id), 0);
		got = profile_count_threads(p);
		if (got != cases[i].want)
			fail_msg("%s: got %zu, want %zu", cases[i].name, got, cases[i].want);
	}
	profile_free(p);
}

static void test_profile_set_counter_creates_then_replaces(void **state)
{
	char name[COUNTER_NAME_MAX + 2];
	struct profile *p = NULL;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(profile_counter(p, "ring_full"), 0);
	assert_int_equal(profile_set_counter(p, "ring_full", 7), 0);
	assert_int_equal(profile_set_counter(p, "idle", 1), 0);
	assert_int_equal(profile_set_counter(p, "ring_full", UINT64_MAX), 0);
	assert_int_equal(profile_recording(p)->counters.len, 2);
	assert_true(profile_counter(p, "ring_full") == UINT64_MAX);
	assert_int_equal(profile_counter(p, "idle"), 1);
	memset(name, 'x', sizeof(name));
	name[COUNTER_NAME_MAX + 1] = '\0';
	assert_int_equal(profile_set_counter(p, name, 1), -EMSGSIZE);
	for (int i = 2; i < COUNTERS_MAX; i++) {
		snprintf(name, sizeof(name), "counter %d", i);
		assert_int_equal(profile_set_counter(p, name, 1), 0);
	}
	assert_int_equal(profile_set_counter(p, "one more", 1), -EOVERFLOW);
	assert_int_equal(profile_set_counter(p, "idle", 9), 0);
	profile_free(p);
}

/* Rows that come later with its title are the same process, those with its first name are another
 * one. */
static void test_profile_title_process_keeps_its_entry(void **state)
{
	struct process process = { .pid = 1, .start_ns = 5 }, titled;
	uint32_t name, title, id, other;
	struct profile *p = NULL;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(strtab_intern(p->strings, "python", 6, &name), 0);
	assert_int_equal(strtab_intern(p->strings, "title", 5, &title), 0);
	process.name = process.command_line = name;
	assert_int_equal(profile_add_process(p, &process, &id), 0);
	assert_int_equal(profile_title_process(p, id, title), 0);
	assert_int_equal(profile_title_process(p, id, title), 0);
	assert_int_equal(p->titles.len, 1);
	assert_int_equal(p->titles.items[0].name, name);
	assert_int_equal(p->titles.items[0].command_line, name);
	titled = process;
	titled.name = titled.command_line = title;
	assert_int_equal(profile_add_process(p, &titled, &other), 0);
	assert_int_equal(other, id);
	assert_int_equal(profile_count_processes(p), 1);
	assert_int_equal(profile_add_process(p, &process, &other), 0);
	assert_int_not_equal(other, id);
	assert_int_equal(profile_reset(p), 0);
	assert_int_equal(p->titles.len, 0);
	profile_free(p);
}

static void test_profile_reset_keeps_recordings_only(void **state)
{
	struct process process = { .pid = 1 };
	struct thread t = { .tid = 1 };
	struct profile *p = NULL;
	uint32_t id;
	size_t bytes;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	bytes = profile_bytes(p);
	assert_int_equal(recording_set_text(&profile_recording(p)->host, "box"), 0);
	assert_int_equal(profile_set_counter(p, "idle", 3), 0);
	assert_int_equal(profile_add_process(p, &process, &id), 0);
	assert_int_equal(profile_add_thread(p, &t, &id), 0);
	for (uint32_t i = 0; i < 1000; i++) {
		struct sample s = { .value = 1 };

		assert_int_equal(stacktab_intern(p->stacks, i, i, &s.stack), 0);
		assert_int_equal(profile_add_sample(p, &s), 0);
	}
	assert_true(profile_bytes(p) > bytes + 1000 * sizeof(struct sample));
	profile_clear_samples(p);
	assert_int_equal(p->samples.len, 0);
	assert_int_equal(stacktab_count(p->stacks), 1001);

	assert_int_equal(profile_reset(p), 0);
	assert_int_equal(stacktab_count(p->stacks), 1);
	assert_int_equal(strtab_count(p->strings), 1);
	assert_int_equal(p->processes.len + p->threads.len + p->samples.len, 0);
	assert_int_equal(profile_counter(p, "idle"), 3);
	assert_string_equal(profile_recording(p)->host, "box");
	assert_true(profile_bytes(p) < bytes + 1000);
	/* The old entries are forgotten in the hash tables, too. */
	assert_int_equal(profile_add_process(p, &process, &id), 0);
	assert_int_equal(id, 0);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strtab_intern_gives_dense_ids_and_keeps_bytes),
		cmocka_unit_test(test_strtab_strings_do_not_move_while_it_grows),
		cmocka_unit_test(test_strtab_intern_takes_long_strings_up_to_its_limit),
		cmocka_unit_test(test_frametab_intern_tells_every_field_apart),
		cmocka_unit_test(test_stacktab_intern_shares_prefixes),
		cmocka_unit_test(test_profile_add_interns_processes_and_threads),
		cmocka_unit_test(test_profile_add_tells_threads_apart_by_their_start),
		cmocka_unit_test(test_profile_count_threads_takes_names_together),
		cmocka_unit_test(test_profile_set_counter_creates_then_replaces),
		cmocka_unit_test(test_profile_title_process_keeps_its_entry),
		cmocka_unit_test(test_profile_reset_keeps_recordings_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
