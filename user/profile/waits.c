/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "profile/waits.h"

#include <errno.h>
#include <string.h>

/* As the recorder writes them: a name, or what names of several begin with. */
static const struct {
	const char *name;
	bool is_prefix;
} markers[] = {
	{ "<runnable>", false },   { WAIT_MARKER_LOCK, false }, { WAIT_MARKER_GIL, false },
	{ "<sleep>", false },      { "<poll>", false },         { "<read: ", true },
	{ "<lock: ", true },       { "<write: ", true },        { "<wait: ", true },
	{ "<page fault>", false }, { "<disk>", false },         { "<stopped>", false },
	{ "<other: ", true },
};

static bool is_wait(const char *name)
{
	for (size_t i = 0; i < sizeof(markers) / sizeof(markers[0]); i++)
		if (markers[i].is_prefix ? !strncmp(name, markers[i].name, strlen(markers[i].name))
					 : !strcmp(name, markers[i].name))
			return true;
	return false;
}

bool wait_is_marker(const struct profile *p, uint32_t frame)
{
	const struct frame *f = frametab_get(p->frames, frame);

	return f->kind == FRAME_MARKER && is_wait(strtab_get(p->strings, f->name));
}

uint32_t wait_of_stack(const struct profile *p, uint32_t stack)
{
	uint32_t frame = stacktab_entries(p->stacks)[stack].frame;

	return stack && wait_is_marker(p, frame) ? frametab_get(p->frames, frame)->name : 0;
}

void waits_release(struct waits *w)
{
	for (size_t i = 0; i < w->rows.len; i++)
		vec_release(&w->rows.items[i].of_thread);
	vec_release(&w->rows);
	vec_release(&w->row_of);
}

/* The row of a marker, which may be new. 0 or -ENOMEM. */
static int find_row(struct waits *w, uint32_t marker, size_t *row)
{
	*row = WAITS_UNKNOWN;
	if (!marker)
		return 0;
	for (*row = WAITS_UNKNOWN + 1; *row < w->rows.len; (*row)++)
		if (w->rows.items[*row].marker == marker)
			return 0;
	if (*row == WAITS_MAX) {
		*row = WAITS_UNKNOWN;
		return 0;
	}
	return vec_push(&w->rows, (struct waits_row){ .marker = marker });
}

static int row_of_stack(struct waits *w, const struct profile *p, uint32_t stack, size_t *row)
{
	int r = 0;

	while (w->row_of.len <= stack && !r)
		r = vec_push(&w->row_of, 0);
	if (r < 0)
		return r;
	*row = (size_t)w->row_of.items[stack] - 1;
	if (w->row_of.items[stack])
		return 0;
	r = find_row(w, wait_of_stack(p, stack), row);
	w->row_of.items[stack] = (uint8_t)(*row + 1);
	return r;
}

static uint64_t sum_of(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

int waits_add(struct waits *w, const struct kinds *k, const struct profile *p,
	      const struct sample *s)
{
	uint8_t role = k->roles.items[s->kind];
	uint64_t ns = kinds_scaled(p, s);
	size_t row = WAITS_CPU;
	struct waits_row *of;
	int r = 0;

	if (!(role & (KIND_IS_CPU | KIND_IS_OFF_CPU)))
		return 0;
	while (w->rows.len <= WAITS_UNKNOWN && !r)
		r = vec_push(&w->rows, (struct waits_row){ 0 });
	if (!r && role & KIND_IS_OFF_CPU)
		r = row_of_stack(w, p, s->stack, &row);
	if (r < 0)
		return r;
	of = &w->rows.items[row];
	while (of->of_thread.len <= s->thread && !r)
		r = vec_push(&of->of_thread, 0);
	if (r < 0)
		return r;
	of->ns = sum_of(of->ns, ns);
	of->of_thread.items[s->thread] = sum_of(of->of_thread.items[s->thread], ns);
	return 0;
}

uint64_t waits_waited_ns(const struct waits *w)
{
	uint64_t ns = 0;

	for (size_t i = WAITS_UNKNOWN; i < w->rows.len; i++)
		ns = sum_of(ns, w->rows.items[i].ns);
	return ns;
}

void waits_sum_threads(const struct waits *w, const struct profile *p, size_t row, uint64_t *ns)
{
	const struct waits_row *of = &w->rows.items[row];

	for (size_t i = 0; i < of->of_thread.len; i++)
		ns[p->threads.items[i].same] =
			sum_of(ns[p->threads.items[i].same], of->of_thread.items[i]);
}
