/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "cmd/top_inside.h"

void top_detail_release(struct top_detail *d)
{
	vec_release(&d->callers);
	vec_release(&d->lines);
	vec_release(&d->stack);
	*d = (struct top_detail){ 0 };
}

static int put_part(struct parts *to, uint32_t frame, const struct sample *s)
{
	return vec_push(to, ((struct part){ s->kind, frame, s->value, 0 }));
}

/* Where a stack has a function: TOP_NONE, TOP_NONE if nowhere. */
static void find_in_stack(const struct top_model *m, uint32_t stack, uint32_t function,
			  uint32_t *line, uint32_t *caller)
{
	const struct stack_entry *entries = stacktab_entries(m->profile->stacks);

	*line = *caller = TOP_NONE;
	for (uint32_t at = stack; at; at = entries[at].parent) {
		uint32_t parent = entries[at].parent;

		if (m->function_of.items[entries[at].frame] != function)
			continue;
		if (*line == TOP_NONE)
			*line = entries[at].frame;
		*caller = parent ? m->function_of.items[entries[parent].frame] : TOP_NONE;
	}
}

static int compare_top_parts(const void *a, const void *b)
{
	const struct top_part *x = a, *y = b;
	uint64_t x_ns = x->cpu_ns + x->wait_ns, y_ns = y->cpu_ns + y->wait_ns;

	if (x_ns != y_ns)
		return x_ns > y_ns ? -1 : 1;
	return x->frame < y->frame ? -1 : x->frame > y->frame;
}

/* By frame, of both kinds: those of a kind stand together, and each once. */
static int join_kinds(struct parts *from, struct top_parts *out)
{
	parts_fold(from);
	for (size_t i = 0; i < from->len; i++) {
		const struct part *p = &from->items[i];
		size_t k = 0;

		while (k < out->len && out->items[k].frame != p->what)
			k++;
		if (k == out->len && vec_push(out, ((struct top_part){ .frame = p->what })) < 0)
			return -ENOMEM;
		if (p->row == SUMMED_CPU)
			out->items[k].cpu_ns += p->ns;
		else
			out->items[k].wait_ns += p->ns;
	}
	if (out->len)
		qsort(out->items, out->len, sizeof(out->items[0]), compare_top_parts);
	return 0;
}

static int copy_stack(const struct profile *p, uint32_t stack, struct top_detail *out)
{
	const struct stack_entry *entries = stacktab_entries(p->stacks);
	size_t depth = 0;

	for (uint32_t at = stack; at; at = entries[at].parent)
		depth++;
	if (vec_reserve(&out->stack, depth) < 0)
		return -ENOMEM;
	out->stack.len = depth;
	for (uint32_t at = stack; at; at = entries[at].parent)
		out->stack.items[--depth] = entries[at].frame;
	return 0;
}

static int look_at_stacks(const struct parts *stacks, const struct profile *p,
			  struct top_detail *out)
{
	uint32_t best = 0;

	for (size_t i = 0; i < stacks->len; i++) {
		out->all_ns += stacks->items[i].ns;
		if (stacks->items[i].ns > out->stack_ns) {
			out->stack_ns = stacks->items[i].ns;
			best = stacks->items[i].what;
		}
	}
	return copy_stack(p, best, out);
}

int top_model_look(struct top_model *m, uint32_t frame, struct top_detail *out)
{
	_cleanup_(parts_releasep) struct parts callers = VEC_INIT, lines = VEC_INIT,
					       stacks = VEC_INIT;
	uint32_t function = m->function_of.items[frame], line, caller;
	int r = 0;

	top_detail_release(out);
	for (size_t i = 0; i < m->profile->samples.len && !r; i++) {
		const struct sample *s = &m->profile->samples.items[i];

		find_in_stack(m, s->stack, function, &line, &caller);
		if (line == TOP_NONE)
			continue;
		if ((r = put_part(&callers, caller, s)) < 0 || (r = put_part(&lines, line, s)) < 0)
			break;
		r = vec_push(&stacks, ((struct part){ 0, s->stack, s->value, 0 }));
	}
	parts_fold(&stacks);
	if (!r)
		r = join_kinds(&callers, &out->callers);
	if (!r)
		r = join_kinds(&lines, &out->lines);
	return r < 0 ? r : look_at_stacks(&stacks, m->profile, out);
}
