/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/dump_tasks.h"

/* A result made by hand: tasks of one coroutine each, and who waits for whom. */
struct made {
	struct inspect_tasks t;
	char names[4096][16];
};

static struct made made;

static void begin(void)
{
	made.t = (struct inspect_tasks){ 0 };
	assert_int_equal(
		vec_push(&made.t.loops,
			 ((struct inspect_loop){
				 .id = 0x10, .type = "Loop", .tid = 7, .is_consistent = true })),
		0);
}

static uint32_t add(const char *name, const char *waits_for, const uint32_t *by, uint32_t count)
{
	struct inspect_task task = { .id = 0x100 + made.t.tasks.len,
				     .name = name,
				     .coroutine = "work",
				     .waits_for = waits_for,
				     .state = waits_for ? TASK_WAITING : TASK_RUNNING,
				     .frames = made.t.frames.len,
				     .frames_len = 1,
				     .awaited_by = made.t.links.len,
				     .awaited_by_len = count };

	assert_int_equal(
		vec_push(&made.t.frames,
			 ((struct task_frame){
				 .name = "work", .own_name = "work", .file = "a.py", .line = 3 })),
		0);
	assert_int_equal(vec_append(&made.t.links, by, count), 0);
	assert_int_equal(vec_push(&made.t.tasks, task), 0);
	return made.t.tasks.len - 1;
}

/* What is printed, to be freed; releases the result. */
static char *print(void)
{
	char *text = NULL;
	size_t len;
	struct terminal t = { .out = open_memstream(&text, &len) };

	assert_int_equal(dump_tasks_print(&t, &made.t), 0);
	fclose(t.out);
	inspect_tasks_release(&made.t);
	return text;
}

static void check(const char *want)
{
	char *text = print();

	assert_string_equal(text, want);
	free(text);
}

static void test_children_stand_below_who_waits(void **state)
{
	const uint32_t root = 0;

	(void)state;
	begin();
	add("main", "task b", NULL, 0);
	add("b10", "sleep(1)", &root, 1);
	add("b9", "its turn", &root, 1);
	check("Loop 0x10 of thread 7: 3 tasks\n"
	      "`-- main: waits for task b\n"
	      "    |   work (a.py:3)\n"
	      "    |-- b9: waits for its turn\n"
	      "    |       work (a.py:3)\n"
	      "    `-- b10: waits for sleep(1)\n"
	      "            work (a.py:3)\n");
}

static void test_where_it_was_made_is_the_programs_part(void **state)
{
	static const struct task_frame frames[] = {
		{ .name = "<module>", .file = "a.py", .line = 9 },
		{ .name = "run", .file = "lib/asyncio/runners.py", .line = 44 },
		{ .name = "_run", .file = "lib/asyncio/events.py", .line = 81 },
		{ .name = "serve", .file = "a.py", .line = 5 },
		{ .name = "start", .file = "b.py", .line = 6 },
		{ .name = "create_task", .file = "lib/asyncio/tasks.py", .line = 382 },
	};
	static const struct {
		const char *name;
		uint32_t first, len; /* of these */
		const char *want;
	} cases[] = {
		{ "by a task", 0, 6,
		  "        made in serve (a.py:5)\n        made in start (b.py:6)\n" },
		{ "before the loop", 0, 2, "        made in <module> (a.py:9)\n" },
		{ "by asyncio", 1, 2,
		  "        made in run (lib/asyncio/runners.py:44)\n"
		  "        made in _run (lib/asyncio/events.py:81)\n" },
		{ "not noted", 0, 0, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		static const char head[] = "Loop 0x10 of thread 7: 1 task\n"
					   "`-- main: waits for sleep(1)\n"
					   "        work (a.py:3)\n";
		struct inspect_task *task;
		char *text;

		begin();
		add("main", "sleep(1)", NULL, 0);
		task = &made.t.tasks.items[0];
		task->created = made.t.frames.len;
		task->created_len = cases[i].len;
		assert_int_equal(vec_append(&made.t.frames, frames + cases[i].first, cases[i].len),
				 0);
		text = print();
		if (strncmp(text, head, strlen(head)) || strcmp(text + strlen(head), cases[i].want))
			fail_msg("%s: %s", cases[i].name, text);
		free(text);
	}
}

static void test_leaves_alike_are_one_entry(void **state)
{
	static const char *const names[] = { "w-1", "w-2", "w-3", "w-4", "w-5" };
	const uint32_t root = 0;

	(void)state;
	begin();
	add("main", "gather of 6", NULL, 0);
	for (size_t i = 0; i < 5; i++)
		add(names[i], i == 1 ? "Event.wait" : "sleep(1)", &root, 1);
	check("Loop 0x10 of thread 7: 6 tasks\n"
	      "`-- main: waits for gather of 6\n"
	      "    |   work (a.py:3)\n"
	      "    |-- w-1, w-3, w-4 and 1 more alike: waits for sleep(1)\n"
	      "    |       work (a.py:3)\n"
	      "    `-- w-2: waits for Event.wait\n"
	      "            work (a.py:3)\n");
}

static void test_several_waiters_of_one_task(void **state)
{
	const uint32_t both[] = { 0, 1 };

	(void)state;
	begin();
	add("a", "task c", NULL, 0);
	add("b", "task c", NULL, 0);
	add("c", NULL, both, 2);
	check("Loop 0x10 of thread 7: 3 tasks\n"
	      "|-- a: waits for task c\n"
	      "|   |   work (a.py:3)\n"
	      "|   `-- c: running (2 tasks wait for this one)\n"
	      "|           work (a.py:3)\n"
	      "`-- b: waits for task c\n"
	      "    |   work (a.py:3)\n"
	      "    `-- c: running (see above)\n");
}

static void test_a_cycle_has_a_root_and_a_line(void **state)
{
	const uint32_t second = 1, first = 0;

	(void)state;
	begin();
	add("a", "task b", &second, 1);
	add("b", "task a", &first, 1);
	assert_int_equal(vec_append(&made.t.links, ((const uint32_t[]){ 0, 1 }), 2), 0);
	assert_int_equal(vec_push(&made.t.cycles, ((struct task_cycle){ .first = 2, .len = 2 })),
			 0);
	check("Loop 0x10 of thread 7: 2 tasks\n"
	      "`-- a: waits for task b\n"
	      "    |   work (a.py:3)\n"
	      "    `-- b: waits for task a\n"
	      "        |   work (a.py:3)\n"
	      "        `-- a: waits for task b (see above)\n"
	      "cycle: a waits for b waits for a\n");
}

static void test_names_cannot_drive_the_terminal(void **state)
{
	char *text;

	(void)state;
	begin();
	add("\x1b[2J\n", "\x1b]0;x\a", NULL, 0);
	text = print();
	assert_null(strchr(text, '\x1b'));
	assert_null(strchr(text, '\a'));
	assert_non_null(strstr(text, "1 task\n"));
	free(text);
}

static void test_a_deep_tree_ends(void **state)
{
	char *text;
	uint32_t above = 0;

	(void)state;
	begin();
	for (uint32_t i = 0; i < 4096; i++) {
		snprintf(made.names[i], sizeof(made.names[i]), "t%u", i);
		above = add(made.names[i], "task", i ? &above : NULL, i > 0);
	}
	text = print();
	assert_non_null(strstr(text, "t99: waits for task\n"));
	assert_null(strstr(text, "t100: "));
	assert_non_null(strstr(text, "tasks below this one: see --json\n"));
	free(text);
}

static void test_what_is_not_sure_is_said(void **state)
{
	char *text;

	(void)state;
	begin();
	add("a", "sleep(1)", NULL, 0);
	made.t.loops.items[0].is_consistent = false;
	made.t.unreadable = 2;
	made.t.is_cut = true;
	text = print();
	assert_non_null(
		strstr(text, "1 task (was running while it was read: may be inconsistent)\n"));
	assert_non_null(strstr(text, "2 tasks could not be read\n"));
	assert_non_null(strstr(text, "there are more tasks than are read\n"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_children_stand_below_who_waits),
		cmocka_unit_test(test_where_it_was_made_is_the_programs_part),
		cmocka_unit_test(test_leaves_alike_are_one_entry),
		cmocka_unit_test(test_several_waiters_of_one_task),
		cmocka_unit_test(test_a_cycle_has_a_root_and_a_line),
		cmocka_unit_test(test_names_cannot_drive_the_terminal),
		cmocka_unit_test(test_a_deep_tree_ends),
		cmocka_unit_test(test_what_is_not_sure_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
