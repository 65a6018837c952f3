/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The bytes are stacks, NAME@FILE;NAME@FILE a line, as a file may have them. Folded: none of
 * importlib's frames is left, weights are as they were, and folding once more changes nothing.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profile/imports.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void require(int fact)
{
	if (!fact)
		abort();
}

static size_t until(const char *text, size_t len, char end)
{
	const char *at = memchr(text, end, len);

	return at ? (size_t)(at - text) : len;
}

static uint32_t push_frame(struct profile *p, uint32_t stack, const char *text, size_t len)
{
	size_t name = until(text, len, '@');
	struct frame f = { .kind = name < len ? FRAME_PYTHON : FRAME_MARKER };
	uint32_t id;

	require(strtab_intern(p->strings, text, name, &f.name) == 0);
	if (name < len)
		require(strtab_intern(p->strings, text + name + 1, len - name - 1, &f.file) == 0);
	require(frametab_intern(p->frames, &f, &id) == 0);
	require(stacktab_intern(p->stacks, stack, id, &stack) == 0);
	return stack;
}

static void add_line(struct profile *p, const char *text, size_t len)
{
	struct sample s = { .value = (uint32_t)p->samples.len + 1 };

	for (size_t at = 0; at < len;) {
		size_t frame = until(text + at, len - at, ';');

		s.stack = push_frame(p, s.stack, text + at, frame);
		at += frame + 1;
	}
	require(profile_add_sample(p, &s) == 0);
}

static void check(const struct profile *p, size_t samples)
{
	const struct stack_entry *entries = stacktab_entries(p->stacks);

	require(p->samples.len == samples);
	for (size_t i = 0; i < samples; i++) {
		require(p->samples.items[i].value == i + 1);
		for (uint32_t id = p->samples.items[i].stack; id; id = entries[id].parent) {
			const struct frame *f = frametab_get(p->frames, entries[id].frame);
			const char *file = strtab_get(p->strings, f->file);

			require(entries[id].parent < id && f->name < strtab_count(p->strings));
			require(f->kind != FRAME_PYTHON ||
				strcmp(file, "<frozen importlib._bootstrap>") != 0);
		}
	}
}

static void fold_again(struct profile *p)
{
	struct import_fold fresh = { 0 };
	uint32_t *before = calloc(p->samples.len + 1, sizeof(*before));

	require(before != NULL);
	for (size_t i = 0; i < p->samples.len; i++)
		before[i] = p->samples.items[i].stack;
	require(import_fold_samples(&fresh, p) == 0);
	for (size_t i = 0; i < p->samples.len; i++)
		require(p->samples.items[i].stack == before[i]);
	import_fold_release(&fresh);
	free(before);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct import_fold fold = { 0 };
	struct process process = { .pid = 1 };
	struct thread t = { .tid = 1 };
	const char *text = (const char *)bytes;
	uint32_t index;

	require(profile_new(&p) == 0 && profile_add_process(p, &process, &t.process) == 0 &&
		profile_add_thread(p, &t, &index) == 0);
	for (size_t at = 0; at < len;) {
		size_t line = until(text + at, len - at, '\n');

		add_line(p, text + at, line);
		at += line + 1;
		if (p->samples.len % 3 == 0) /* by and by, as chunks come: those folded stay */
			require(import_fold_samples(&fold, p) == 0);
	}
	require(import_fold_samples(&fold, p) == 0);
	check(p, p->samples.len);
	fold_again(p);
	import_fold_release(&fold);
	return 0;
}
