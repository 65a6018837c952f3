/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "cmd/load.h"
#include "export/export.h"

/* Collapsed text, written and read again: exporter and importer must agree on every name. */

static void load_text(struct load *l, const char *text, size_t len, bool by_thread)
{
	_cleanup_(closep) int fd = memfd_create("text", MFD_CLOEXEC);
	const char *paths[1];
	char path[64];
	int r;

	assert_true(fd >= 0);
	assert_int_equal(file_write(fd, text, len), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	paths[0] = path;
	*l = (struct load){ .cube.axes = by_thread ? CUBE_THREADS : 0 };
	r = load_files(l, paths, 1);
	if (r < 0)
		fail_msg("%s of\n%s", err_message(r), text);
}

static char *export_text(const struct profile *p, const struct cube *c, const struct export_opts *o,
			 size_t *len)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, len);

	assert_non_null(out);
	assert_int_equal(exporter_write(&exporter_collapsed, p, c, o, out), 0);
	assert_int_equal(fclose(out), 0);
	return text;
}

static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

/* Pieces that mean something to the format, or to a terminal, or are no text at all. */
static uint32_t random_name(struct profile *p, uint64_t *random)
{
	static const char *const pieces[] = {
		"f",
		"a.py",
		" ",
		"(",
		")",
		" (",
		":",
		";",
		"\\",
		"\\x28",
		"\\x",
		"5",
		":12",
		"thread ",
		"process ",
		"#",
		"~",
		"[",
		" [",
		"]",
		"\n",
		"\r",
		"\x1b[31m",
		"\x7f",
		"\xc2\x9b",
		"\xff",
		"\xc3\xbc",
		"\xe2\x80\xae",
		"\t",
		"tid:",
		"process 4:\"",
		"\"",
	};
	char name[64] = "";
	size_t len = 0;
	uint32_t id;

	for (uint32_t count = next_random(random) % 6; count; count--) {
		const char *piece =
			pieces[next_random(random) % (sizeof(pieces) / sizeof(*pieces))];

		memcpy(name + len, piece, strlen(piece));
		len += strlen(piece);
	}
	if (len && !(next_random(random) % 16))
		name[len - 1] = '\0';
	assert_int_equal(strtab_intern(p->strings, name, len, &id), 0);
	return id;
}

static uint32_t random_stack(struct profile *p, uint64_t *random)
{
	uint32_t stack = 0, id;

	for (uint32_t depth = next_random(random) % 5; depth; depth--) {
		struct frame f = { .kind = (uint8_t)(next_random(random) % FRAME_TYPE_COUNT) };

		f.name = random_name(p, random);
		if (f.kind != FRAME_MARKER)
			f.file = random_name(p, random);
		if (f.kind == FRAME_PYTHON)
			f.line = next_random(random) % 3;
		assert_int_equal(frametab_intern(p->frames, &f, &id), 0);
		assert_int_equal(stacktab_intern(p->stacks, stack, id, &stack), 0);
	}
	return stack;
}

static struct profile *random_profile(uint64_t *random)
{
	struct profile *p = NULL;
	uint32_t index;

	assert_int_equal(profile_new(&p), 0);
	profile_recording(p)->interval_ns =
		next_random(random) % 4 ? 1 + next_random(random) % 100000000 : 0;
	if (next_random(random) % 2)
		profile_recording(p)->work =
			(double)(1 + next_random(random)) / (1 + next_random(random) % 1000);
	for (int i = 0; i < 8; i++) {
		struct process process = { .pid = next_random(random) };
		struct thread thread = { .tid = next_random(random) };

		process.name = random_name(p, random);
		thread.name = random_name(p, random);
		assert_int_equal(profile_add_process(p, &process, &thread.process), 0);
		assert_int_equal(profile_add_thread(p, &thread, &index), 0);
	}
	for (int i = 0; i < 100; i++) {
		struct sample s = { .thread = (uint32_t)i % 8,
				    .stack = random_stack(p, random),
				    .value = 1 + next_random(random) % (i % 10 ? 10 : UINT32_MAX) };

		assert_int_equal(profile_add_sample(p, &s), 0);
	}
	return p;
}

/* export(import(export(p))) is export(p), byte for byte, and no tick is lost. */
static void test_collapsed_comes_back(void **state)
{
	uint64_t random = 7;

	(void)state;
	for (unsigned int round = 0; round < 640; round++) {
		struct export_opts o = { .no_lines = round & 1,
					 .threads = round & 2,
					 .processes = round & 4,
					 .header = round & 8 };
		bool by_thread = o.threads || o.processes;
		struct profile *p = random_profile(&random);
		struct cube cube = { .axes = by_thread ? CUBE_THREADS : 0 };
		size_t len, again_len;
		uint64_t ticks = 0;
		char *text, *again;
		struct load l;

		for (size_t i = 0; i < p->samples.len; i++)
			ticks += p->samples.items[i].value;
		assert_int_equal(cube_add(&cube, p), 0);
		assert_int_equal(cube_finish(&cube, p), 0);
		text = export_text(p, &cube, &o, &len);
		load_text(&l, text, len, by_thread);
		assert_int_equal(l.ticks, ticks);
		assert_int_equal(l.records, ticks);
		again = export_text(l.profile, &l.cube, &o, &again_len);
		if (len != again_len || memcmp(text, again, len))
			fail_msg("round %u:\n%s---\n%s", round, text, again);
		load_release(&l);
		cube_release(&cube);
		profile_free(p);
		free(text);
		free(again);
	}
}

/* Names come back, not just texts. */
static void test_collapsed_names_come_back(void **state)
{
	static const char name[] = "we;ird (\\x41)\n\xff", file[] = "/tmp/x (1);\\y:12";
	_cleanup_(freep) char *text = NULL;
	struct cube cube = { 0 };
	struct process process = { .pid = 1 };
	struct thread thread = { .tid = 2 };
	struct frame f = { .line = 3 };
	struct sample s = { .value = 4 };
	struct profile *p = NULL;
	const struct frame *back;
	struct load l;
	uint32_t id;
	size_t len;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(profile_add_process(p, &process, &thread.process), 0);
	assert_int_equal(profile_add_thread(p, &thread, &s.thread), 0);
	assert_int_equal(strtab_intern(p->strings, name, strlen(name), &f.name), 0);
	assert_int_equal(strtab_intern(p->strings, file, strlen(file), &f.file), 0);
	assert_int_equal(frametab_intern(p->frames, &f, &id), 0);
	assert_int_equal(stacktab_intern(p->stacks, 0, id, &s.stack), 0);
	assert_int_equal(profile_add_sample(p, &s), 0);
	assert_int_equal(cube_add(&cube, p), 0);
	assert_int_equal(cube_finish(&cube, p), 0);
	text = export_text(p, &cube, &(struct export_opts){ 0 }, &len);
	load_text(&l, text, len, false);
	assert_int_equal(frametab_count(l.profile->frames), 1);
	back = frametab_get(l.profile->frames, 0);
	assert_string_equal(strtab_get(l.profile->strings, back->name), name);
	assert_string_equal(strtab_get(l.profile->strings, back->file), file);
	assert_int_equal(back->line, 3);
	assert_int_equal(back->kind, FRAME_PYTHON);
	load_release(&l);
	cube_release(&cube);
	profile_free(p);
}

/* Work, and a root that looks like a comment. */
static void test_collapsed_header_comes_back(void **state)
{
	static const char text[] = "# pyebpf-collapsed work=0.3\n"
				   "\\x23f (a.py:1) 2\n"
				   "f (a.py:1);\\x23g 1\n";
	_cleanup_(freep) char *again = NULL;
	struct load l;
	size_t len;

	(void)state;
	load_text(&l, text, strlen(text), false);
	assert_int_equal(l.ticks, 3);
	assert_int_equal(profile_recording(l.profile)->interval_ns, 0);
	assert_true(profile_recording(l.profile)->work == 0.3);
	again = export_text(l.profile, &l.cube, &(struct export_opts){ .header = true }, &len);
	assert_string_equal(again, text);
	load_release(&l);
}

/* The header alone is a profile without samples. */
static void test_collapsed_empty_profile(void **state)
{
	static const char text[] = "# pyebpf-collapsed interval_us=50\n";
	struct load l;

	(void)state;
	load_text(&l, text, strlen(text), true);
	assert_int_equal(l.ticks, 0);
	assert_int_equal(l.cube.all.cells.len, 0);
	assert_int_equal(profile_recording(l.profile)->interval_ns, 50000);
	assert_false(l.is_cut);
	load_release(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_collapsed_comes_back),
		cmocka_unit_test(test_collapsed_names_come_back),
		cmocka_unit_test(test_collapsed_header_comes_back),
		cmocka_unit_test(test_collapsed_empty_profile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
