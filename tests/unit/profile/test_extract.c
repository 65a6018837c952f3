/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "profile/extract.h"
#include "profile/strip.h"

static uint32_t text(struct profile *p, const char *s)
{
	uint32_t id;

	assert_int_equal(strtab_intern(p->strings, s, strlen(s), &id), 0);
	return id;
}

static struct profile *new_profile(void)
{
	struct profile *p = NULL;

	assert_int_equal(profile_new(&p), 0);
	return p;
}

static uint32_t stack(struct profile *p, uint32_t parent, const char *name, const char *file)
{
	struct frame f;
	uint32_t frame, id;

	memset(&f, 0, sizeof(f)); /* frames are compared by bytes */
	f.name = text(p, name);
	f.file = text(p, file);
	f.line = 3;
	assert_int_equal(frametab_intern(p->frames, &f, &frame), 0);
	assert_int_equal(stacktab_intern(p->stacks, parent, frame, &id), 0);
	return id;
}

static uint32_t thread(struct profile *p, uint32_t recording, uint32_t pid, const char *name)
{
	struct process process = { .recording = recording,
				   .pid = pid,
				   .name = text(p, "python3"),
				   .command_line = text(p, "python3 -c 'import secret'"),
				   .executable = text(p, "/opt/house/bin/python3"),
				   .container = text(p, "0123456789ab") };
	struct thread t = { .tid = pid, .name = text(p, name) };
	uint32_t id;

	assert_int_equal(profile_add_process(p, &process, &t.process), 0);
	assert_int_equal(profile_add_thread(p, &t, &id), 0);
	return id;
}

static void sample(struct profile *p, uint64_t time_ns, uint32_t of, uint32_t at, uint32_t labels)
{
	struct sample s = {
		.time_ns = time_ns, .value = 1, .thread = of, .stack = at, .labels = labels
	};

	assert_int_equal(profile_add_sample(p, &s), 0);
}

static bool has_text(const struct profile *p, const char *part)
{
	for (uint32_t i = 0; i < strtab_count(p->strings); i++)
		if (strstr(strtab_get(p->strings, i), part))
			return true;
	return false;
}

static void test_extract_takes_what_samples_need(void **state)
{
	struct profile *from = new_profile(), *to = new_profile();
	struct extract x = { .only_sampled = true };
	uint32_t recording, one, two, root, kept, dropped, labels;

	(void)state;
	assert_int_equal(profile_begin_recording(from, &recording), 0);
	assert_int_equal(recording_set_counter(&from->recordings.items[0], "lost", 5), 0);
	one = thread(from, recording, 1, "one");
	two = thread(from, recording, 2, "two");
	root = stack(from, 0, "main", "/house/main.py");
	dropped = stack(from, root, "dropped", "/house/dropped.py");
	kept = stack(from, root, "kept", "/house/kept.py");
	assert_int_equal(
		labeltab_add(from->labels, 0, text(from, "route"), text(from, "/slow"), &labels),
		0);
	assert_int_equal(extract_begin(&x, from, recording, to), 0);
	sample(from, 1, two, kept, labels);
	sample(from, 2, two, root, 0);
	assert_int_equal(extract_samples(&x, from, to), 0);
	assert_int_equal(to->samples.len, 2);
	assert_int_equal(to->threads.len, 1);
	assert_int_equal(to->processes.len, 1);
	assert_int_equal(stacktab_count(to->stacks), 3);
	assert_int_equal(labeltab_count(to->labels), 2);
	assert_false(has_text(to, "dropped"));
	assert_false(has_text(to, "one"));
	assert_true(has_text(to, "kept"));
	assert_true(has_text(to, "/slow"));
	assert_int_equal(profile_counter(to, "lost"), 5);

	/* what comes later joins what is there */
	profile_clear_samples(from);
	sample(from, 3, one, dropped, 0);
	assert_int_equal(recording_set_counter(&from->recordings.items[0], "lost", 7), 0);
	assert_int_equal(extract_samples(&x, from, to), 0);
	assert_int_equal(extract_facts(&x, from, to), 0);
	assert_int_equal(stacktab_count(to->stacks), 4);
	assert_int_equal(to->threads.len, 2);
	assert_int_equal(profile_counter(to, "lost"), 7);
	extract_release(&x);
	profile_free(from);
	profile_free(to);
}

static void test_extract_strips(void **state)
{
	struct profile *from = new_profile(), *to = new_profile();
	struct strip strip = { .paths = true };
	struct extract x = { .strip = &strip };
	struct recording *r;
	uint32_t recording, of;

	(void)state;
	assert_int_equal(profile_begin_recording(from, &recording), 0);
	r = &from->recordings.items[recording];
	assert_int_equal(recording_set_text(&r->host, "house"), 0);
	assert_int_equal(recording_set_text(&r->command, "pyebpf record -- python3 /house/x"), 0);
	assert_int_equal(recording_set_text(&r->target, "python3 /house/x"), 0);
	assert_int_equal(recording_set_text(&r->mode, "uprobe:/house/lib/x.so:run"), 0);
	of = thread(from, recording, 1, "serves /house/socket");
	sample(from, 1, of, stack(from, 0, "main", "/house/main.py"), 0);
	assert_int_equal(extract_begin(&x, from, recording, to), 0);
	assert_int_equal(extract_samples(&x, from, to), 0);
	assert_false(has_text(to, "house"));
	assert_false(has_text(to, "secret"));
	assert_false(has_text(to, "0123456789ab"));
	assert_true(has_text(to, "serves socket"));
	r = profile_recording(to);
	assert_null(r->host);
	assert_null(r->command);
	assert_null(r->target);
	assert_string_equal(r->mode, "uprobe:x.so:run");
	extract_release(&x);
	strip_release(&strip);
	profile_free(from);
	profile_free(to);
}

static void test_strip_file(void **state)
{
	/* in this order: names depend on those before */
	static const struct {
		const char *name, *path;
		uint8_t kind;
		const char *want;
	} cases[] = {
		{ "own code", "/home/me/shop/orders.py", FRAME_PYTHON, "orders.py" },
		{ "the same again", "/home/me/shop/orders.py", FRAME_PYTHON, "orders.py" },
		{ "of another folder", "/home/me/orders.py", FRAME_PYTHON, "2/orders.py" },
		{ "a relative path", "shop/orders.py", FRAME_PYTHON, "3/orders.py" },
		{ "a bare name that is taken", "orders.py", FRAME_PYTHON, "4/orders.py" },
		{ "a bare name", "main.py", FRAME_PYTHON, "main.py" },
		{ "a package", "/home/me/shop/__init__.py", FRAME_PYTHON, "__init__.py" },
		{ "a folder, which is no file", "/home/me/shop/", FRAME_PYTHON, "2/" },
		{ "none", "", FRAME_PYTHON, "" },
		{ "frozen", "<frozen importlib._bootstrap>", FRAME_PYTHON,
		  "<frozen importlib._bootstrap>" },
		{ "standard library", "/home/me/.pyenv/lib/python3.12/json/decoder.py",
		  FRAME_PYTHON, "/lib/python3.12/json/decoder.py" },
		{ "zipped", "/opt/me/lib/python312.zip/json/decoder.py", FRAME_PYTHON,
		  "/lib/python312.zip/json/decoder.py" },
		{ "a library", "/home/me/venv/lib/python3.12/site-packages/django/db/models.py",
		  FRAME_PYTHON, "/site-packages/django/db/models.py" },
		{ "the same stripped before", "/site-packages/django/db/models.py", FRAME_PYTHON,
		  "/site-packages/django/db/models.py" },
		{ "Debian's", "/usr/lib/python3/dist-packages/yaml/reader.py", FRAME_PYTHON,
		  "/dist-packages/yaml/reader.py" },
		{ "native", "/home/me/build/fast.so", FRAME_NATIVE, "fast.so" },
	};
	struct profile *from = new_profile(), *to = new_profile();
	struct strip strip = { .paths = true };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t id;

		assert_int_equal(
			strip_file(&strip, from, text(from, cases[i].path), cases[i].kind, to, &id),
			0);
		if (strcmp(strtab_get(to->strings, id), cases[i].want) != 0)
			fail_msg("%s: got %s, want %s", cases[i].name, strtab_get(to->strings, id),
				 cases[i].want);
	}
	strip_release(&strip);
	profile_free(from);
	profile_free(to);
}

static void test_strip_text(void **state)
{
	static const struct {
		const char *name, *text, *want;
	} cases[] = {
		{ "no path", "ThreadPoolExecutor-0_1", "ThreadPoolExecutor-0_1" },
		{ "a path", "/home/me/socket", "socket" },
		{ "behind words", "serves /home/me/socket now", "serves socket now" },
		{ "in brackets", "run [/usr/lib/x.so]", "run [x.so]" },
		{ "of an event", "uprobe:/usr/lib/x.so:run", "uprobe:x.so:run" },
		{ "two", "/a/b=/c/d", "b=d" },
		{ "a folder", "in /home/me/ now", "in  now" },
		{ "a relation, no path", "requests/s", "requests/s" },
		{ "an operator", "operator/(int)", "operator/(int)" },
	};
	struct profile *from = new_profile(), *to = new_profile();
	struct strip strip = { .paths = true }, source = { .source = true };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t given = text(from, cases[i].text), id;

		assert_int_equal(strip_text(&strip, from, given, to, &id), 0);
		if (strcmp(strtab_get(to->strings, id), cases[i].want) != 0)
			fail_msg("%s: got %s, want %s", cases[i].name, strtab_get(to->strings, id),
				 cases[i].want);
		assert_int_equal(strip_text(&source, from, given, to, &id), 0);
		assert_string_equal(strtab_get(to->strings, id), cases[i].text);
	}
	profile_free(from);
	profile_free(to);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_extract_takes_what_samples_need),
		cmocka_unit_test(test_extract_strips),
		cmocka_unit_test(test_strip_file),
		cmocka_unit_test(test_strip_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
