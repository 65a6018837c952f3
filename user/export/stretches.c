/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/stretches.h"

#include <string.h>

#include "profile/waits.h"

const char *const stretch_names[STRETCH_KINDS] = {
	[STRETCH_WAIT] = "Wait",
	[STRETCH_GIL] = "GIL",
	[STRETCH_GC] = "GC",
};

static const struct frame *leaf_of(const struct profile *p, uint32_t stack)
{
	return stack ? frametab_get(p->frames, stacktab_entries(p->stacks)[stack].frame) : NULL;
}

/* Is the leaf of a stack this marker? */
static bool ends_in(const struct profile *p, uint32_t stack, const char *marker)
{
	const struct frame *f = leaf_of(p, stack);

	return f && f->kind == FRAME_MARKER && !strcmp(strtab_get(p->strings, f->name), marker);
}

/*
 * String id of the marker at the leaf of a stack, that says what it waits for; 0: it does not, or
 * nobody knows when it did.
 */
static uint32_t wait_of(const struct profile *p, const struct timeline_entry *e)
{
	uint32_t outer = stacktab_entries(p->stacks)[e->stack].parent;

	if (!e->duration_ns || ends_in(p, outer, PROFILE_NOT_SAMPLED))
		return 0;
	return wait_of_stack(p, e->stack);
}

struct stretches stretches_begin(const struct profile *p, const struct timeline_list *list)
{
	struct stretches s = { .p = p, .at = timeline_begin(list) };

	s.has_entry = list->kind == TIMELINE_TIME && timeline_next(&s.at);
	return s;
}

/* From the cursor's entry on, to the last sample of them. */
static void take_collection(struct stretches *s, struct stretch *out)
{
	out->kind = STRETCH_GC;
	for (; s->has_entry && ends_in(s->p, s->at.entry.stack, PROFILE_GC);
	     s->has_entry = timeline_next(&s->at))
		out->end_ns = s->at.entry.time_ns;
}

bool stretches_next(struct stretches *s, struct stretch *out)
{
	const struct timeline_entry *e = &s->at.entry;

	for (; s->has_entry; s->has_entry = timeline_next(&s->at)) {
		uint32_t wait = wait_of(s->p, e);

		*out = (struct stretch){ e->time_ns, e->time_ns + e->duration_ns, e->stack,
					 STRETCH_WAIT };
		if (wait) {
			if (!strcmp(strtab_get(s->p->strings, wait), WAIT_MARKER_GIL))
				out->kind = STRETCH_GIL;
			s->has_entry = timeline_next(&s->at);
			return true;
		}
		if (ends_in(s->p, e->stack, PROFILE_GC)) {
			take_collection(s, out);
			return true;
		}
	}
	return false;
}

/* Without the brackets. */
const char *stretch_reason(const struct profile *p, const struct stretch *s, size_t *len)
{
	uint32_t name = leaf_of(p, s->stack)->name;
	const char *reason = strtab_get(p->strings, name);

	*len = strtab_len(p->strings, name);
	if (*len <= 2)
		return reason;
	*len -= 2;
	return reason + 1;
}

uint32_t stretch_function(const struct profile *p, const struct stretch *s)
{
	const struct stack_entry *e = stacktab_entries(p->stacks);
	uint32_t at = s->stack;

	while (at && frametab_get(p->frames, e[at].frame)->kind != FRAME_PYTHON)
		at = e[at].parent;
	return at ? frametab_get(p->frames, e[at].frame)->name : 0;
}
