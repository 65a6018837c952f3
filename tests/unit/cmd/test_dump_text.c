/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/dump.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "collect/wait_words.h"
#include "target/offsets.h"
#include "target/proc.h"

#define SOURCE                                   \
	"import threading\n"                     \
	"\n"                                     \
	"def work(lock):\n"                      \
	"    with lock: grind(1 + \"\u00e9\")\n" \
	"    work(lock)\n"

static struct sources *sources;
static char folder[] = "/tmp/test_dump_text.XXXXXX";
static char file[64];

static struct inspect_frame frame_at(const char *name, int line, int column, int end_column)
{
	return (struct inspect_frame){
		.identity = (uint64_t)line,
		.name = name,
		.name_len = strlen(name),
		.file = file,
		.file_len = strlen(file),
		.at = { line, line, column, end_column },
	};
}

static struct inspect_thread thread_at(pid_t tid, const char *name, struct inspect_frame *frames,
				       size_t count)
{
	struct inspect_thread t = {
		.pause_ns = -1,
		.tid = tid,
		.tstate = 1,
		.name = (char *)name,
		.state = THREAD_BLOCKED,
		.wait = WAIT_LOCK,
		.syscall = SYSCALL_NONE,
		.fd = -1,
		.wait_ns = 1500000000,
		.is_consistent = true,
		.frames = frames,
		.frame_count = count,
	};

	snprintf(t.comm, sizeof(t.comm), "python3");
	return t;
}

/* The text of a process with these threads, its first line left out. */
static char *text_of(struct inspect_thread *threads, size_t count, bool recent_first)
{
	struct inspect_process p = { .pid = getpid(),
				     .door = getpid(),
				     .command_line = (char *)"python3 app.py",
				     .runtime.version = VERSION_HEX(3, 13, 0, VERSION_LEVEL_FINAL),
				     .threads = threads,
				     .thread_count = count };
	const struct dump d = { .sources = sources, .recent_first = recent_first };
	const struct dump_item item = { .pid = p.pid, .process = &p };
	struct terminal t = { 0 };
	struct proc_stat stat;
	char *text = NULL, *rest;
	size_t len;

	assert_int_equal(rights_read(p.door, &p.rights), 0);
	assert_int_equal(proc_stat(p.pid, &stat), 0);
	p.start_ticks = stat.start_ticks;
	t.out = open_memstream(&text, &len);
	assert_non_null(t.out);
	assert_int_equal(dump_text(&t, &d, &item), 0);
	fclose(t.out);
	rest = strchr(text, '\n');
	assert_non_null(rest);
	memmove(text, rest + 1, strlen(rest));
	return text;
}

/* @ stands for the source's path. */
static void check(const char *got, const char *format)
{
	char want[4096];
	size_t len = 0;

	for (const char *c = format; *c; c++)
		len += (size_t)(*c == '@' ? snprintf(want + len, sizeof(want) - len, "%s", file)
					  : snprintf(want + len, sizeof(want) - len, "%c", *c));
	if (strcmp(got, want) != 0)
		fail_msg("got:\n%s\nwanted:\n%s", got, want);
}

static void test_stack_is_as_python_prints_it(void **state)
{
	struct inspect_frame frames[] = { frame_at("grind", 4, 24, 28), frame_at("work", 4, 15, 30),
					  frame_at("<module>", 5, 4, 14) };
	struct inspect_thread t = thread_at(412, "MainThread", frames, 3);
	char *text;

	(void)state;
	text = text_of(&t, 1, false);
	check(text, "\n"
		    "Thread 412 \"MainThread\" (python3): blocked 1.5 s: lock\n"
		    "  File \"@\", line 5, in <module>\n"
		    "    work(lock)\n"
		    "    ~~~~^^^^^^\n"
		    "  File \"@\", line 4, in work\n"
		    "    with lock: grind(1 + \"\u00e9\")\n"
		    "               ~~~~~^^^^^^^^^\n"
		    "  File \"@\", line 4, in grind\n"
		    "    with lock: grind(1 + \"\u00e9\")\n"
		    "                        ^^^\n");
	free(text);
	text = text_of(&t, 1, true);
	assert_true(strstr(text, "in grind") < strstr(text, "in <module>"));
	free(text);
}

static void test_repeated_calls_are_counted(void **state)
{
	struct inspect_frame frames[6];
	struct inspect_thread t = thread_at(412, NULL, frames, 6);
	char *text;

	(void)state;
	for (size_t i = 0; i < 6; i++)
		frames[i] = frame_at("work", i < 5 ? 5 : 4, -1, -1);
	text = text_of(&t, 1, false);
	check(text, "\n"
		    "Thread 412 \"python3\": blocked 1.5 s: lock\n"
		    "  File \"@\", line 4, in work\n"
		    "    with lock: grind(1 + \"\u00e9\")\n"
		    "  File \"@\", line 5, in work\n    work(lock)\n"
		    "  File \"@\", line 5, in work\n    work(lock)\n"
		    "  File \"@\", line 5, in work\n    work(lock)\n"
		    "  [Previous line repeated 2 more times]\n");
	free(text);
}

static void test_threads_alike_are_one(void **state)
{
	struct inspect_frame frames[] = { frame_at("work", 5, -1, -1) };
	struct inspect_thread threads[4];
	char *text;

	(void)state;
	threads[0] = thread_at(7, "a", frames, 1);
	threads[1] = thread_at(8, "b", frames, 1);
	threads[1].handles = (char *)"KeyError";
	threads[2] = thread_at(9, "c", frames, 1);
	threads[2].wait_ns = 3500000000;
	threads[3] = thread_at(10, NULL, NULL, 0);
	threads[3].tstate = 0;
	text = text_of(threads, 4, false);
	check(text, "\n"
		    "Thread 7 \"a\" (python3) x 2: blocked 1.5 s to 3.5 s: lock\n"
		    "  also 9 \"c\"\n"
		    "  File \"@\", line 5, in work\n    work(lock)\n"
		    "\n"
		    "Thread 8 \"b\" (python3): blocked 1.5 s: lock, handles KeyError\n"
		    "  File \"@\", line 5, in work\n    work(lock)\n"
		    "\n"
		    "Thread 10 \"python3\": blocked 1.5 s: lock\n"
		    "  [not a Python thread]\n");
	free(text);
}

static void test_what_is_not_sure_is_said(void **state)
{
	struct inspect_frame frames[] = { frame_at("work", 5, -1, -1),
					  { .name = "?", .file = "?" } };
	struct inspect_thread t = thread_at(7, "a\033[31m", frames, 2);
	char *text;

	(void)state;
	t.state = THREAD_RUNNING;
	t.wait = WAIT_NONE;
	t.wait_ns = -1;
	t.is_consistent = false;
	t.holds_gil = true;
	t.status = UNWIND_FAULT;
	text = text_of(&t, 1, false);
	check(text, "\n"
		    "Thread 7 \"a\\x1b[31m\" (python3): on CPU, holds the GIL\n"
		    "  [the thread was running while it was read: this stack may be inconsistent]\n"
		    "  [outer frames missing: memory not readable]\n"
		    "  [frame with unreadable code object]\n"
		    "  File \"@\", line 5, in work\n    work(lock)\n");
	free(text);
}

static void test_owners_of_locks_are_named(void **state)
{
	struct inspect_frame frames[] = { frame_at("work", 5, -1, -1) };
	struct inspect_thread threads[2];
	char *text;

	(void)state;
	threads[0] = thread_at(7, "a", frames, 1);
	threads[0].lock = (struct inspect_lock){ LOCK_RLOCK, 0x7f00, 8 };
	threads[1] = thread_at(8, "b", frames, 1);
	threads[1].wait = WAIT_GIL;
	threads[1].lock = (struct inspect_lock){ LOCK_GIL, 0x100, 9 };
	threads[1].wait_ns = -1;
	text = text_of(threads, 2, false);
	assert_non_null(
		strstr(text, "blocked 1.5 s: lock, RLock at 0x7f00 held by thread 8 \"b\"\n"));
	assert_non_null(strstr(text, "\"b\" (python3): blocked: GIL, held by thread 9\n"));
	free(text);
}

static int write_source(void **state)
{
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/app.py", folder);
	f = fopen(file, "w");
	assert_non_null(f);
	fputs(SOURCE, f);
	fclose(f);
	return sources_new(&sources);
}

static int remove_source(void **state)
{
	(void)state;
	sources_free(sources);
	unlink(file);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stack_is_as_python_prints_it),
		cmocka_unit_test(test_repeated_calls_are_counted),
		cmocka_unit_test(test_threads_alike_are_one),
		cmocka_unit_test(test_what_is_not_sure_is_said),
		cmocka_unit_test(test_owners_of_locks_are_named),
	};

	return cmocka_run_group_tests(tests, write_source, remove_source);
}
