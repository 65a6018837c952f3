/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/diff_group.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <string.h>

#include "diff/input.h"

#define GROUP_NONE UINT32_MAX
#define GROUP_BLOCK_NS 1000000

/* "TestOrders.test_total" by itself, or as "test_total". */
static bool is_match(const struct diff_group *g, const struct profile *p, uint32_t frame)
{
	const struct frame *f = frametab_get(p->frames, frame);
	const char *name = strtab_get(p->strings, f->name), *dot = strrchr(name, '.');

	if (f->kind != FRAME_PYTHON)
		return false;
	return !fnmatch(g->pattern, name, 0) || (dot && !fnmatch(g->pattern, dot + 1, 0));
}

/* Parents come before their children, so one pass does; stacks it adds wait for the next. */
static int map_stacks(struct diff_group *g, struct profile *p)
{
	uint32_t count = stacktab_count(p->stacks);
	int r = 0;

	if (vec_reserve(&g->stacks, count - g->stacks.len) < 0)
		return -ENOMEM;
	while (g->stacks.len < count && !r) {
		uint32_t id = (uint32_t)g->stacks.len, to = GROUP_NONE;
		struct stack_entry e = stacktab_entries(p->stacks)[id];

		if (id && g->stacks.items[e.parent] != GROUP_NONE)
			r = stacktab_intern(p->stacks, g->stacks.items[e.parent], e.frame, &to);
		else if (id && is_match(g, p, e.frame))
			r = stacktab_intern(p->stacks, 0, e.frame, &to);
		g->stacks.items[g->stacks.len++] = to;
	}
	return r;
}

int diff_group_samples(struct diff_group *g, struct profile *p)
{
	size_t kept = 0;
	int r = map_stacks(g, p);

	if (r < 0)
		return r;
	for (size_t i = 0; i < p->samples.len; i++) {
		struct sample s = p->samples.items[i];

		g->ticks += s.value;
		s.time_ns = g->turn++ % DIFF_BLOCKS * GROUP_BLOCK_NS;
		s.stack = g->stacks.items[s.stack];
		if (s.stack == GROUP_NONE)
			g->left_out += s.value;
		else
			p->samples.items[kept++] = s;
	}
	p->samples.len = kept;
	return 0;
}
