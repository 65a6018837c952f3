/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "../../fuzz/inspect/task_image.h"
#include "base/file.h"
#include "inspect/task_layout.h"
#include "inspect/tasks.h"

/*
 * tests/workloads/few_awaits.py as it lay in memory, of each way in which versions keep a frame.
 * Real processes of all versions are met in tests/integration/test_dump_tasks.py.
 */
static const char *const images[] = { "3.8", "3.10", "3.11", "3.13", "3.15" };
#define IMAGES (sizeof(images) / sizeof(*images))

static struct task_image image;

static void open_image(const char *name, uint8_t **bytes)
{
	char path[512];
	size_t len;

	snprintf(path, sizeof(path), PYEBPF_CORPUS "/tasks/%s", name);
	assert_int_equal(file_read(path, 1 << 20, (char **)bytes, &len), 0);
	assert_true(image_open(&image, *bytes, len));
}

static struct inspect_tasks collect(uint32_t reads_max)
{
	const struct tasks_process process = { .read = image_read,
					       .peek = image_peek,
					       .arg = &image,
					       .off = &image.off,
					       .runtime = image.runtime,
					       .reads_max = reads_max,
					       .is_uncached = true };
	struct inspect_tasks tasks = { 0 };

	assert_int_equal(tasks_collect(&process, &tasks), 0);
	return tasks;
}

static const struct inspect_task *find(const struct inspect_tasks *t, const char *name)
{
	for (size_t i = 0; i < t->tasks.len; i++)
		if (!strcmp(t->tasks.items[i].name, name))
			return &t->tasks.items[i];
	fail_msg("no task %s", name);
	return NULL;
}

static void test_chains_go_down_to_the_innermost_await(void **state)
{
	static const struct {
		const char *name;
		const char *frames[4];
		int lines[4];
		const char *waits_for; /* how that begins */
	} cases[] = {
		{ "Task-1", { "main" }, { 34 }, "shield" },
		{ "parent", { "parent" }, { 27 }, "gather of 2" },
		{ "first",
		  { "over_numbers", "numbers", "leaf", "sleep" },
		  { 18, 14, 10 },
		  "sleep(3600)" },
		{ "second", { "acquire" }, { 0 }, "Lock.acquire of 0x" },
	};

	(void)state;
	for (size_t i = 0; i < IMAGES; i++) {
		uint8_t *bytes;
		struct inspect_tasks t;

		open_image(images[i], &bytes);
		t = collect(TASK_READS_MAX);
		assert_int_equal(t.tasks.len, 5);
		assert_int_equal(t.unreadable, 0);
		assert_false(t.is_cut);
		assert_int_equal(t.loops.len, 1);
		assert_int_not_equal(t.loops.items[0].ident, 0);
		assert_string_equal(t.loops.items[0].type, "_UnixSelectorEventLoop");
		for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
			const struct inspect_task *task = find(&t, cases[k].name);
			uint32_t n = 0;

			for (; n < 4 && cases[k].frames[n]; n++) {
				const struct task_frame *f = &t.frames.items[task->frames + n];

				if (n >= task->frames_len ||
				    strcmp(f->own_name, cases[k].frames[n]) != 0 ||
				    (cases[k].lines[n] && f->line != cases[k].lines[n]))
					fail_msg("%s, %s: frame %u is %s:%d", images[i],
						 cases[k].name, n, f->own_name, f->line);
			}
			assert_int_equal(task->frames_len, n);
			assert_int_equal(task->state, TASK_WAITING);
			if (strncmp(task->waits_for, cases[k].waits_for,
				    strlen(cases[k].waits_for)) != 0)
				fail_msg("%s, %s: waits for %s", images[i], cases[k].name,
					 task->waits_for);
		}
		inspect_tasks_release(&t);
		free(bytes);
	}
}

static void test_who_waits_is_found_through_gather_wait_and_shield(void **state)
{
	(void)state;
	for (size_t i = 0; i < IMAGES; i++) {
		const struct inspect_task *first, *second, *parent, *wait;
		uint8_t *bytes;
		struct inspect_tasks t;

		open_image(images[i], &bytes);
		t = collect(TASK_READS_MAX);
		first = find(&t, "first");
		second = find(&t, "second");
		parent = find(&t, "parent");
		assert_int_equal(first->awaited_by_len, 1);
		wait = &t.tasks.items[t.links.items[first->awaited_by]];
		assert_memory_equal(wait->waits_for, "wait of 1", 9);
		assert_int_equal(wait->awaited_by_len, 1);
		assert_ptr_equal(&t.tasks.items[t.links.items[wait->awaited_by]], parent);
		assert_int_equal(second->awaited_by_len, 1);
		assert_ptr_equal(&t.tasks.items[t.links.items[second->awaited_by]], parent);
		assert_int_equal(parent->awaited_by_len, 1);
		assert_string_equal(t.tasks.items[t.links.items[parent->awaited_by]].name,
				    "Task-1");
		assert_int_equal(t.cycles.len, 0);
		inspect_tasks_release(&t);
		free(bytes);
	}
}

static void test_debug_mode_tells_where_a_task_was_made(void **state)
{
	(void)state;
	for (size_t i = 0; i < IMAGES; i++) {
		const struct inspect_task *task;
		bool is_there = false;
		uint8_t *bytes;
		struct inspect_tasks t;

		open_image(images[i], &bytes);
		t = collect(TASK_READS_MAX);
		task = find(&t, "first");
		for (uint32_t k = 0; k < task->created_len; k++) {
			const struct task_frame *f = &t.frames.items[task->created + k];

			is_there |= !strcmp(f->own_name, "parent") && f->line == 23;
		}
		assert_true(is_there);
		inspect_tasks_release(&t);
		free(bytes);
	}
}

/* The same of tests/workloads/few_nurseries.py, whose tasks are behind a variable of a stack. */
static void test_nurseries_of_trio(void **state)
{
	static const char *const names[] = { "3.8-trio", "3.11-trio", "3.15-trio" };
	static const struct {
		const char *name, *parent;
		const char *frames[3];
		const char *waits_for;
	} cases[] = {
		{ "<init>", NULL, { "init" }, "nursery" },
		{ "__main__.main", "<init>", { "main" }, "nursery" },
		{ "parent", "__main__.main", { "parent", "__aexit__" }, "nursery" },
		{ "first", "parent", { "over_numbers", "numbers", "leaf" }, "sleep(3600)" },
		{ "second", "parent", { "wants", "acquire", "park" }, "Lock.acquire of 0x" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		uint8_t *bytes;
		struct inspect_tasks t;

		open_image(names[i], &bytes);
		t = collect(TASK_READS_MAX);
		assert_int_equal(t.tasks.len, 6);
		assert_int_equal(t.unreadable, 0);
		assert_string_equal(t.loops.items[0].type, "trio.run");
		assert_int_not_equal(t.trio.variable, 0);
		for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
			const struct inspect_task *task = find(&t, cases[k].name);

			for (uint32_t n = 0; n < 3 && cases[k].frames[n]; n++)
				assert_string_equal(t.frames.items[task->frames + n].own_name,
						    cases[k].frames[n]);
			assert_memory_equal(task->waits_for, cases[k].waits_for,
					    strlen(cases[k].waits_for));
			assert_int_equal(task->awaited_by_len, cases[k].parent ? 1 : 0);
			if (cases[k].parent)
				assert_string_equal(
					t.tasks.items[t.links.items[task->awaited_by]].name,
					cases[k].parent);
		}
		inspect_tasks_release(&t);
		free(bytes);
	}
}

static void test_any_number_of_reads_is_kept_to(void **state)
{
	uint8_t *bytes;

	(void)state;
	open_image("3.11", &bytes);
	for (uint32_t reads = 0; reads < 20000; reads += 97) {
		struct inspect_tasks t = collect(reads);

		if (!t.is_cut && (t.tasks.len != 5 || t.unreadable))
			fail_msg("%u reads: %zu tasks", reads, t.tasks.len);
		inspect_tasks_release(&t);
	}
	free(bytes);
}

static void test_other_builds_are_refused(void **state)
{
	static const struct {
		const char *name;
		uint8_t minor;
		bool is_free_threaded, is_best_effort;
	} cases[] = {
		{ "too old", 7, false, false },
		{ "too new", 16, false, false },
		{ "free-threaded", 14, true, false },
		{ "not released", 15, false, true },
	};
	struct task_layout layout;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct py_offsets off = { .minor = cases[i].minor,
					  .is_free_threaded = cases[i].is_free_threaded,
					  .is_best_effort = cases[i].is_best_effort };

		if (task_layout_find(&off, &layout) != -ENOTSUP)
			fail_msg("%s is not refused", cases[i].name);
	}
}

static void test_asyncio_debug_goes_before_the_table(void **state)
{
	const struct {
		const char *name;
		int word; /* that is changed; -1: none */
		uint64_t value;
		int want;
	} cases[] = {
		{ "as 3.14.10 has it", -1, 0, 0 },
		{ "a larger task", 0, 176, 0 },
		{ "coroutine behind the task", 5, 168, -EBADMSG },
		{ "no room for who is waited for", 5, 0, -EBADMSG },
		{ "odd list of tasks", 12, 881, -EBADMSG },
		{ "list behind the thread", 12, 936, -EBADMSG },
		{ "list behind the interpreter", 8, 1 << 20, -EBADMSG },
		{ "huge interpreter", 7, 1ULL << 60, -EBADMSG },
		{ "no thread", 9, 0, -EBADMSG },
	};
	const struct py_offsets off = { .minor = 14 };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t words[ASYNCIO_DEBUG_WORDS] = { 168,    136,   96,  108, 109, 128, 152,
							225864, 10880, 936, 864, 872, 880 };
		struct task_layout layout, table;

		assert_int_equal(task_layout_find(&off, &table), 0);
		layout = table;
		if (cases[i].word >= 0)
			words[cases[i].word] = cases[i].value;
		if (task_layout_apply_debug(&layout, words) != cases[i].want)
			fail_msg("%s", cases[i].name);
		if (cases[i].word < 0 || cases[i].want)
			assert_memory_equal(&layout, &table, sizeof(layout));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chains_go_down_to_the_innermost_await),
		cmocka_unit_test(test_who_waits_is_found_through_gather_wait_and_shield),
		cmocka_unit_test(test_debug_mode_tells_where_a_task_was_made),
		cmocka_unit_test(test_nurseries_of_trio),
		cmocka_unit_test(test_any_number_of_reads_is_kept_to),
		cmocka_unit_test(test_other_builds_are_refused),
		cmocka_unit_test(test_asyncio_debug_goes_before_the_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
