/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/program.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/err.h"
#include "target/maps.h"
#include "target/mem.h"

#define SEARCH_BYTES_MAX (256u << 10) /* of one mapping: the offset table comes first */

static bool is_same_file(const struct mapping *a, const struct mapping *b)
{
	return a->inode && a->inode == b->inode && a->dev_major == b->dev_major &&
	       a->dev_minor == b->dev_minor;
}

/* The mappings that hold start_code and rt's code; their paths are not valid. */
static int find_both(pid_t pid, uint64_t start_code, const struct py_runtime *rt,
		     struct mapping *program, struct mapping *text)
{
	_cleanup_(maps_closep) struct maps *maps = NULL;
	struct mapping m;
	int r = maps_open(pid, &maps);

	while (r >= 0 && (r = maps_next(maps, &m)) > 0) {
		if (start_code >= m.start && start_code < m.end)
			*program = m;
		if (m.start == rt->text_start)
			*text = m;
	}
	if (r < 0)
		return r;
	return !program->inode ? -ESRCH : text->inode ? 0 : -ENOENT;
}

/* Where in m a pointer into text is. -ENOENT: nowhere. */
static int find_pointer(pid_t pid, const struct mapping *m, const struct mapping *text,
			uint64_t *addr)
{
	_cleanup_(freep) uint64_t *words = NULL;
	size_t len = m->end - m->start < SEARCH_BYTES_MAX ? m->end - m->start : SEARCH_BYTES_MAX;
	int r;

	words = malloc(len);
	if (!words)
		return -ENOMEM;
	r = mem_read(pid, m->start, words, len);
	if (r < 0) {
		err_clear(); /* changed meanwhile */
		return -ENOENT;
	}
	for (size_t i = 0; i < len / sizeof(words[0]); i++) {
		if (words[i] >= text->start && words[i] < text->end) {
			*addr = m->start + i * sizeof(words[0]);
			return 0;
		}
	}
	return -ENOENT;
}

int program_find_lead(pid_t pid, uint64_t start_code, const struct py_runtime *rt,
		      int64_t *distance)
{
	_cleanup_(maps_closep) struct maps *maps = NULL;
	struct mapping program = { 0 }, text = { 0 }, m;
	uint64_t addr;
	int r;

	if ((r = find_both(pid, start_code, rt, &program, &text)) < 0)
		return r;
	if (is_same_file(&program, &text)) {
		*distance = (int64_t)(rt->runtime_addr - start_code);
		return 1;
	}
	r = maps_open(pid, &maps);
	while (r >= 0 && (r = maps_next(maps, &m)) > 0) {
		if (!is_same_file(&m, &program) || !(m.perms & PROT_READ) || m.perms & PROT_EXEC)
			continue;
		r = find_pointer(pid, &m, &text, &addr);
		if (!r) {
			*distance = (int64_t)(addr - start_code);
			return 0;
		}
		if (r == -ENOENT)
			r = 0;
	}
	return r < 0 ? r : -ENOENT;
}
