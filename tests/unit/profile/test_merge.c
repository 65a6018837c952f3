/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "profile/merge.h"

#define ROWS 50

/* Some of its strings other files have, some not. */
static uint32_t text(struct profile *p, int file, int row, const char *of)
{
	char s[64];
	uint32_t id;
	int len = snprintf(s, sizeof(s), "%s%d", of, row % 3 ? row : row + 1000 * file);

	assert_int_equal(strtab_intern(p->strings, s, (size_t)len, &id), 0);
	return id;
}

static struct profile *new_profile(void)
{
	struct profile *p = NULL;

	assert_int_equal(profile_new(&p), 0);
	return p;
}

static void add_row(struct profile *p, int file, int row, uint32_t recording, uint32_t *stack)
{
	struct frame f = { .line = (uint32_t)row, .kind = FRAME_PYTHON };
	struct process process = { .recording = recording, .pid = (uint32_t)row, .start_ns = 7 };
	struct thread t = { .tid = (uint32_t)row, .start_ns = (uint64_t)row };
	uint32_t frame, id;

	memset(&f, 0,
	       sizeof(f)); /* with what lies between its fields: they are compared by bytes */
	f.line = (uint32_t)row;
	f.kind = FRAME_PYTHON;
	f.name = text(p, file, row, "name");
	f.file = text(p, file, row, "file");
	assert_int_equal(frametab_intern(p->frames, &f, &frame), 0);
	assert_int_equal(stacktab_intern(p->stacks, row % 5 ? *stack : 0, frame, stack), 0);
	process.name = text(p, file, row, "process");
	process.command_line = text(p, file, row, "command");
	process.python_version = text(p, file, row, "version");
	process.implementation = text(p, file, row, "implementation");
	process.executable = text(p, file, row, "executable");
	process.container = text(p, file, row, "container");
	process.pod_uid = text(p, file, row, "uid");
	process.pod_name = text(p, file, row, "pod");
	process.pod_namespace = text(p, file, row, "namespace");
	assert_int_equal(profile_add_process(p, &process, &t.process), 0);
	t.name = text(p, file, row, "thread");
	assert_int_equal(profile_add_thread(p, &t, &id), 0);
}

/* What reading a file into p does. */
static void add_file(struct profile *p, int file)
{
	uint32_t stack = 0, recording;
	struct recording *r;

	assert_int_equal(profile_begin_recording(p, &recording), 0);
	for (int row = 0; row < ROWS; row++)
		add_row(p, file, row, recording, &stack);
	r = &p->recordings.items[recording];
	r->duration_ns = 5;
	r->has_ended = file == 1;
	r->work = file;
	assert_int_equal(recording_set_text(&r->host, file == 1 ? "one" : "two"), 0);
	assert_int_equal(recording_set_counter(r, "lost", (uint64_t)file), 0);
	assert_int_equal(recording_set_counter(r, file == 1 ? "first" : "second", 1), 0);
}

/* The bytes between their fields may be any. */
static void assert_same_process(const struct process *a, const struct process *b)
{
	assert_memory_equal(a, b,
			    offsetof(struct process, pod_namespace) + sizeof(a->pod_namespace));
	assert_int_equal(a->start_ns, b->start_ns);
	assert_int_equal(a->same, b->same);
	assert_int_equal(a->number, b->number);
}

static void assert_same_thread(const struct thread *a, const struct thread *b)
{
	assert_memory_equal(a, b, offsetof(struct thread, name) + sizeof(a->name));
	assert_int_equal(a->start_ns, b->start_ns);
	assert_int_equal(a->same, b->same);
	assert_int_equal(a->number, b->number);
}

static void assert_same_tables(const struct profile *a, const struct profile *b)
{
	assert_int_equal(strtab_count(a->strings), strtab_count(b->strings));
	for (uint32_t i = 0; i < strtab_count(a->strings); i++)
		assert_string_equal(strtab_get(a->strings, i), strtab_get(b->strings, i));
	assert_int_equal(frametab_count(a->frames), frametab_count(b->frames));
	for (uint32_t i = 0; i < frametab_count(a->frames); i++) {
		const struct frame *x = frametab_get(a->frames, i), *y = frametab_get(b->frames, i);

		assert_true(x->name == y->name && x->file == y->file && x->line == y->line &&
			    x->kind == y->kind);
	}
	assert_int_equal(stacktab_count(a->stacks), stacktab_count(b->stacks));
	assert_memory_equal(stacktab_entries(a->stacks), stacktab_entries(b->stacks),
			    stacktab_count(a->stacks) * sizeof(struct stack_entry));
	assert_int_equal(a->processes.len, b->processes.len);
	for (size_t i = 0; i < a->processes.len; i++)
		assert_same_process(&a->processes.items[i], &b->processes.items[i]);
	assert_int_equal(a->threads.len, b->threads.len);
	for (size_t i = 0; i < a->threads.len; i++)
		assert_same_thread(&a->threads.items[i], &b->threads.items[i]);
}

static void test_profile_merge_is_as_reading_one_after_another(void **state)
{
	struct profile *both = new_profile(), *first = new_profile(), *second = new_profile();
	struct profile_ids ids = { 0 };
	struct recording facts;

	(void)state;
	add_file(both, 1);
	add_file(both, 2);
	add_file(first, 1);
	add_file(second, 2);
	assert_int_equal(profile_merge(first, second, &ids), 0);
	assert_same_tables(first, both);
	assert_int_equal(first->recordings.len, 2);
	assert_string_equal(first->recordings.items[0].host, "one");
	assert_string_equal(first->recordings.items[1].host, "two");
	assert_int_equal(recording_counter(&first->recordings.items[1], "lost"), 2);
	assert_int_equal(recording_counter(&first->recordings.items[1], "first"), 0);
	facts = profile_facts(first);
	assert_int_equal(facts.duration_ns, 10);
	assert_int_equal(facts.has_ended, 0);
	assert_true(facts.work == 3);
	assert_int_equal(profile_counter(first, "lost"), 3);
	assert_int_equal(profile_counter(first, "first"), 1);
	assert_int_equal(profile_counter(first, "second"), 1);
	for (uint32_t i = 0; i < strtab_count(second->strings); i++)
		assert_string_equal(strtab_get(first->strings, ids.strings[i]),
				    strtab_get(second->strings, i));
	for (size_t i = 0; i < second->threads.len; i++) {
		const struct thread *t = &first->threads.items[ids.threads[i]];

		assert_int_equal(t->tid, second->threads.items[i].tid);
		assert_int_equal(t->process, ids.processes[second->threads.items[i].process]);
	}
	profile_ids_release(&ids);
	profile_free(both);
	profile_free(first);
	profile_free(second);
}

static void add_rows(struct profile *p, int from, int to, uint32_t *stack)
{
	for (int row = from; row < to; row++)
		add_row(p, 2, row, 0, stack);
}

/* A recorder's profile, which is merged each second and emptied now and then. */
static void test_profile_merge_adds_what_is_new(void **state)
{
	struct profile *whole = new_profile(), *merged = new_profile(), *growing = new_profile();
	struct profile_ids ids = { 0 };
	uint32_t stack = 0, recording;

	(void)state;
	assert_int_equal(profile_begin_recording(whole, &recording), 0);
	assert_int_equal(profile_begin_recording(growing, &recording), 0);
	add_rows(whole, 0, ROWS, &stack);
	stack = 0;
	add_rows(growing, 0, 20, &stack);
	assert_int_equal(profile_merge(merged, growing, &ids), 0);
	assert_int_equal(profile_merge(merged, growing, &ids), 0);
	add_rows(growing, 20, ROWS, &stack);
	assert_int_equal(profile_merge(merged, growing, &ids), 0);
	assert_same_tables(merged, whole);
	assert_int_equal(ids.threads[ROWS - 1], ROWS - 1);

	assert_int_equal(profile_reset(growing), 0);
	profile_ids_forget_tables(&ids);
	stack = 0;
	add_rows(growing, 5, ROWS, &stack);
	assert_int_equal(profile_merge(merged, growing, &ids), 0);
	assert_same_tables(merged, whole);
	assert_int_equal(ids.threads[0], 5);
	assert_int_equal(merged->recordings.len, 1);
	profile_ids_release(&ids);
	profile_free(whole);
	profile_free(merged);
	profile_free(growing);
}

static void test_profile_merge_learns_where_a_process_runs(void **state)
{
	struct profile *to = new_profile(), *from = new_profile();
	struct process process = { .pid = 7 };
	struct profile_ids ids = { 0 };
	uint32_t index;

	(void)state;
	assert_int_equal(profile_begin_recording(from, &index), 0);
	assert_int_equal(profile_add_process(from, &process, &index), 0);
	assert_int_equal(profile_merge(to, from, &ids), 0);
	process.container = text(from, 1, 1, "container");
	process_set_place(&from->processes.items[index], &process);
	assert_int_equal(profile_merge(to, from, &ids), 0);
	assert_int_equal(to->processes.len, 1);
	assert_string_equal(strtab_get(to->strings, to->processes.items[0].container),
			    "container1");
	profile_ids_release(&ids);
	profile_free(to);
	profile_free(from);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_profile_merge_is_as_reading_one_after_another),
		cmocka_unit_test(test_profile_merge_adds_what_is_new),
		cmocka_unit_test(test_profile_merge_learns_where_a_process_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
