/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/export.h"

/* A profile in the making and what was written of it. */
struct fixture {
	struct profile *p;
	struct cube cube;
	char *text;
	size_t len;
};

static void fixture_init(struct fixture *f, bool by_thread)
{
	struct process process = { .pid = 1 };
	struct thread thread = { .tid = 1 };
	uint32_t index;

	*f = (struct fixture){ .cube.axes = by_thread ? CUBE_THREADS : 0 };
	assert_int_equal(profile_new(&f->p), 0);
	assert_int_equal(profile_add_process(f->p, &process, &index), 0);
	assert_int_equal(profile_add_thread(f->p, &thread, &index), 0);
}

static void fixture_release(struct fixture *f)
{
	cube_release(&f->cube);
	profile_free(f->p);
	free(f->text);
}

static uint32_t add_string(struct fixture *f, const char *s)
{
	uint32_t id;

	assert_int_equal(strtab_intern(f->p->strings, s, strlen(s), &id), 0);
	return id;
}

static uint32_t push(struct fixture *f, uint32_t stack, const char *name, const char *file,
		     uint32_t line, uint8_t kind)
{
	struct frame frame = { .line = line, .kind = kind };
	uint32_t id;

	frame.name = add_string(f, name);
	frame.file = add_string(f, file);
	assert_int_equal(frametab_intern(f->p->frames, &frame, &id), 0);
	assert_int_equal(stacktab_intern(f->p->stacks, stack, id, &stack), 0);
	return stack;
}

static void add(struct fixture *f, uint32_t thread, uint32_t stack, uint32_t ticks)
{
	struct sample s = { .thread = thread, .stack = stack, .value = ticks };

	assert_int_equal(profile_add_sample(f->p, &s), 0);
}

/* Sums in two parts, as a reader of chunks does, and writes. */
static void write_text(struct fixture *f, const struct export_opts *o)
{
	FILE *out = open_memstream(&f->text, &f->len);

	assert_non_null(out);
	assert_int_equal(cube_add(&f->cube, f->p), 0);
	profile_clear_samples(f->p);
	assert_int_equal(cube_add(&f->cube, f->p), 0);
	assert_int_equal(cube_finish(&f->cube, f->p), 0);
	assert_int_equal(exporter_write(&exporter_collapsed, f->p, &f->cube, o, out), 0);
	assert_int_equal(fclose(out), 0);
}

static void test_collapsed_frame_text(void **state)
{
	static const struct {
		const char *row, *name, *file;
		uint32_t line;
		uint8_t kind;
		bool no_lines;
		const char *want;
	} cases[] = {
		{ "plain", "f", "a.py", 3, FRAME_PYTHON, false, "f (a.py:3) 1\n" },
		{ "line unknown", "f", "a.py", 0, FRAME_PYTHON, false, "f (a.py:0) 1\n" },
		{ "without lines", "f", "a.py", 3, FRAME_PYTHON, true, "f (a.py) 1\n" },
		{ "name keeps its parenthesis", "f (x)", "a.py", 3, FRAME_PYTHON, false,
		  "f (x) (a.py:3) 1\n" },
		{ "file does not", "f", "a (1) (2).py", 3, FRAME_PYTHON, false,
		  "f (a \\x281) \\x282).py:3) 1\n" },
		{ "file begins with it", "f", "(a.py", 3, FRAME_PYTHON, false, "f ((a.py:3) 1\n" },
		{ "semicolon, backslash", "a;b", "c\\d", 1, FRAME_PYTHON, false,
		  "a\\x3bb (c\\x5cd:1) 1\n" },
		{ "file ends like a line", "f", "a:12", 3, FRAME_PYTHON, true, "f (a\\x3a12) 1\n" },
		{ "the same, with lines", "f", "a:12", 3, FRAME_PYTHON, false, "f (a:12:3) 1\n" },
		{ "file of digits", "thread x", "12", 3, FRAME_PYTHON, true,
		  "thread x (\\x312) 1\n" },
		{ "digits behind a letter", "f", "a12", 3, FRAME_PYTHON, true, "f (a12) 1\n" },
		{ "no file", "f", "", 3, FRAME_PYTHON, false, "f (:3) 1\n" },
		{ "neither file nor line", "f", "", 0, FRAME_PYTHON, false, "f (:0) 1\n" },
		{ "no file, without lines", "f", "", 3, FRAME_PYTHON, true, "f () 1\n" },
		{ "no comment", "#f#", "#a.py", 3, FRAME_PYTHON, false, "\\x23f# (#a.py:3) 1\n" },
		{ "marker, no comment", "#", "", 0, FRAME_MARKER, false, "\\x23 1\n" },
		{ "marker", "<truncated>", "", 0, FRAME_MARKER, false, "<truncated> 1\n" },
		{ "marker does not split", "thread x (12)", "", 0, FRAME_MARKER, false,
		  "thread x \\x2812) 1\n" },
		{ "native", "read", "libc.so.6", 0, FRAME_NATIVE, false, "read [libc.so.6] 1\n" },
		{ "kernel", "vfs_read", "kernel", 0, FRAME_KERNEL, true, "vfs_read [kernel] 1\n" },
		{ "empty name", "", "a.py", 1, FRAME_PYTHON, false, " (a.py:1) 1\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct export_opts o = { .no_lines = cases[i].no_lines };
		struct fixture f;

		fixture_init(&f, false);
		add(&f, 0, push(&f, 0, cases[i].name, cases[i].file, cases[i].line, cases[i].kind),
		    1);
		write_text(&f, &o);
		if (strcmp(f.text, cases[i].want))
			fail_msg("%s: got %s", cases[i].row, f.text);
		fixture_release(&f);
	}
}

static void test_collapsed_header(void **state)
{
	static const struct {
		const char *name;
		uint64_t interval_ns;
		const char *want;
	} cases[] = {
		{ "whole", 1000000, "# pyebpf-collapsed interval_us=1000\n" },
		{ "parts", 10101010, "# pyebpf-collapsed interval_us=10101.01\n" },
		{ "no time", 0, "# pyebpf-collapsed\n" },
	};
	static const struct export_opts o = { .header = true };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f;

		fixture_init(&f, false);
		profile_recording(f.p)->interval_ns = cases[i].interval_ns;
		write_text(&f, &o);
		if (strcmp(f.text, cases[i].want))
			fail_msg("%s: got %s", cases[i].name, f.text);
		fixture_release(&f);
	}
}

static void test_collapsed_tags(void **state)
{
	static const struct {
		const char *name;
		struct export_opts o;
		const char *want;
	} cases[] = {
		{ "none", { 0 }, "f (a:1) 15\n" },
		{ "threads",
		  { .threads = true },
		  "thread  (1);f (a:1) 8\nthread w (7);f (a:1) 7\n" },
		{ "processes",
		  { .processes = true },
		  "process  (1);f (a:1) 10\nprocess other (5);f (a:1) 5\n" },
		{ "both",
		  { .threads = true, .processes = true },
		  "process  (1);thread  (1);f (a:1) 8\nprocess  (1);thread w (7);f (a:1) 2\n"
		  "process other (5);thread w (7);f (a:1) 5\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct process process = { .pid = 5 };
		struct thread thread = { .tid = 7 };
		uint32_t index, stack;
		struct fixture f;

		fixture_init(&f, cases[i].o.threads || cases[i].o.processes);
		process.name = add_string(&f, "other");
		thread.name = add_string(&f, "w");
		assert_int_equal(profile_add_thread(f.p, &thread, &index), 0);
		assert_int_equal(profile_add_process(f.p, &process, &thread.process), 0);
		assert_int_equal(profile_add_thread(f.p, &thread, &index), 0);
		stack = push(&f, 0, "f", "a", 1, FRAME_PYTHON);
		add(&f, 0, stack, 3);
		add(&f, 2, stack, 5);
		add(&f, 1, stack, 2);
		add(&f, 0, stack, 5);
		write_text(&f, &cases[i].o);
		if (strcmp(f.text, cases[i].want))
			fail_msg("%s: got %s", cases[i].name, f.text);
		fixture_release(&f);
	}
}

/* A stack without frames is a sample all the same. */
static void test_collapsed_empty_stack(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, false);
	add(&f, 0, 0, 4);
	write_text(&f, &(struct export_opts){ 0 });
	assert_string_equal(f.text, "<unknown> 4\n");
	fixture_release(&f);
}

/* A recursion this deep would overflow a thread's stack. */
static void test_collapsed_deep_stack(void **state)
{
	enum { DEPTH = 300000 };
	struct fixture f;
	uint32_t stack = 0;

	(void)state;
	fixture_init(&f, false);
	for (int i = 0; i < DEPTH; i++)
		stack = push(&f, stack, "f", "", 0, FRAME_MARKER);
	add(&f, 0, stack, 1);
	write_text(&f, &(struct export_opts){ 0 });
	assert_int_equal(f.len, 2 * DEPTH + 2); /* f;f;...;f 1 and the newline */
	assert_string_equal(f.text + f.len - 5, ";f 1\n");
	fixture_release(&f);
}

/* A short name of the characters that matter. */
static void random_name(uint64_t *random, char *name, size_t size)
{
	static const char letters[] = "a( ;:5)!\\";
	size_t len;

	*random = *random * 6364136223846793005u + 1442695040888963407u;
	len = (*random >> 33) % size;
	for (size_t i = 0; i < len; i++)
		name[i] = letters[(*random >> (20 + 5 * i)) % (sizeof(letters) - 1)];
	name[len] = '\0';
}

/* Any names: lines strictly ascend, no stack twice, no tick lost. */
static void test_collapsed_lines_are_ordered(void **state)
{
	uint64_t random = 1;

	(void)state;
	for (int round = 0; round < 300; round++) {
		uint64_t ticks = 0, written = 0;
		char *save, *previous = NULL;
		struct fixture f;

		fixture_init(&f, false);
		for (int i = 0; i < 60; i++) {
			uint32_t stack = 0;

			for (int depth = 0; depth < 1 + i % 4; depth++) {
				char name[4], file[4];

				random_name(&random, name, sizeof(name));
				random_name(&random, file, sizeof(file));
				stack = push(&f, stack, name, file, i % 2,
					     i % 3 ? FRAME_MARKER : FRAME_PYTHON);
			}
			add(&f, 0, stack, 1 + (uint32_t)i);
			ticks += 1 + (uint32_t)i;
		}
		write_text(&f, &(struct export_opts){ .no_lines = round % 2 });
		for (char *line = strtok_r(f.text, "\n", &save); line;
		     line = strtok_r(NULL, "\n", &save)) {
			char *count = strrchr(line, ' ');
			size_t stack_len = (size_t)(count - line);

			written += strtoull(count + 1, NULL, 10);
			if (previous && strcmp(previous, line) >= 0)
				fail_msg("round %d: '%s' before '%s'", round, previous, line);
			if (previous && !strncmp(previous, line, stack_len) &&
			    strrchr(previous, ' ') == previous + stack_len)
				fail_msg("round %d: '%s' twice", round, line);
			previous = line;
		}
		assert_int_equal(written, ticks);
		fixture_release(&f);
	}
}

static void test_exporter_for_path(void **state)
{
	static const struct {
		const char *path;
		bool is_collapsed;
	} cases[] = {
		{ "x.collapsed", true }, { "/a/b.c/x.folded", true },
		{ "x.y.txt", true },     { "x.pyebpf", false },
		{ "-", false },          { "", false },
		{ ".txt", false },       { "a.txt/x", false },
		{ "x.TXT", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if ((exporter_for_path(cases[i].path) == &exporter_collapsed) !=
		    cases[i].is_collapsed)
			fail_msg("%s", cases[i].path);
	assert_ptr_equal(exporter_find("collapsed"), &exporter_collapsed);
	assert_null(exporter_find("nonsense"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_collapsed_frame_text),
		cmocka_unit_test(test_collapsed_header),
		cmocka_unit_test(test_collapsed_tags),
		cmocka_unit_test(test_collapsed_empty_stack),
		cmocka_unit_test(test_collapsed_deep_stack),
		cmocka_unit_test(test_collapsed_lines_are_ordered),
		cmocka_unit_test(test_exporter_for_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
