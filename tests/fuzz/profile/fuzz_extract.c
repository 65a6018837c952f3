/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Samples of a profile that somebody else filled, extracted and stripped: none is lost, all keep
 * their frames' lines, no own file has a folder, and to strip once more changes no name.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profile/extract.h"
#include "profile/module.h"
#include "tests/fuzz/hostile_profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static size_t depth(const struct profile *p, uint32_t stack)
{
	const struct stack_entry *entries = stacktab_entries(p->stacks);
	size_t n = 0;

	for (; stack; stack = entries[stack].parent)
		n++;
	return n;
}

/* "orders.py", "2/orders.py" */
static void check_own(const char *path)
{
	const char *slash = strchr(path, '/');

	if (slash)
		require(strspn(path, "0123456789") == (size_t)(slash - path) &&
			!strchr(slash + 1, '/'));
}

static void check_frame(const struct profile *p, const struct frame *f)
{
	const char *file = strtab_get(p->strings, f->file);
	size_t len = strtab_len(p->strings, f->file);

	if (strlen(file) != len)
		return; /* bytes behind a NUL are no C string's */
	if (f->kind != FRAME_PYTHON)
		require(!strchr(file, '/'));
	else if (module_library_root(file, len))
		require(*file == '/');
	else
		check_own(file);
}

static void check_rows(const struct profile *from, const struct profile *to)
{
	require(to->samples.len == from->samples.len);
	for (size_t i = 0; i < to->samples.len; i++) {
		const struct sample *a = &from->samples.items[i], *b = &to->samples.items[i];

		require(a->value == b->value && a->time_ns == b->time_ns && a->flags == b->flags);
		require(depth(from, a->stack) == depth(to, b->stack));
		require(from->threads.items[a->thread].tid == to->threads.items[b->thread].tid);
	}
	for (size_t i = 0; i < to->processes.len; i++)
		require(!to->processes.items[i].command_line && !to->processes.items[i].container);
	for (uint32_t i = 0; i < frametab_count(to->frames); i++)
		check_frame(to, frametab_get(to->frames, i));
}

static void extract(const struct profile *from, bool only_sampled, struct profile *to)
{
	struct strip strip = { .paths = true };
	struct extract x = { .strip = &strip, .only_sampled = only_sampled };

	require(extract_begin(&x, from, 0, to) == 0);
	require(extract_samples(&x, from, to) == 0);
	extract_release(&x);
	strip_release(&strip);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct profile *from = NULL, *once = NULL, *twice = NULL;
	struct hostile h = { bytes, bytes + len };
	uint32_t recording;

	require(profile_new(&from) == 0 && profile_new(&once) == 0 && profile_new(&twice) == 0);
	require(profile_begin_recording(from, &recording) == 0);
	hostile_fill(&h, from);
	extract(from, len % 2, once);
	check_rows(from, once);
	extract(once, len % 2, twice);
	check_rows(once, twice);
	require(frametab_count(once->frames) == frametab_count(twice->frames));
	profile_free(from);
	profile_free(once);
	profile_free(twice);
	return 0;
}
