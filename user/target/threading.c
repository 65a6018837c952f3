/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/threading.h"

#include <errno.h>

#include "target/object.h"

#define INTERPRETERS_MAX 64

/* The Thread of this ident. */
struct ident_search {
	uint64_t ident, thread;
};

/* An int below 2^61 - 1 is its own hash (Objects/longobject.c): its object need not be read. */
static int is_ident(struct object_reader *r, const struct object_entry *entry, void *arg)
{
	struct ident_search *search = arg;

	(void)r;
	if (entry->hash != search->ident)
		return 0;
	search->thread = entry->value;
	return 1;
}

static int name_of_thread(struct object_reader *r, uint64_t thread, struct threading_name *out)
{
	struct object_text text;
	uint64_t name;
	int e;

	if ((e = object_attribute(r, thread, "_name", &name)) < 0 ||
	    (e = object_str(r, name, out->bytes, sizeof(out->bytes), &text)) < 0)
		return e;
	if (!text.chars)
		return -ENOENT;
	out->kind = text.kind;
	out->len = text.len;
	out->is_cut = text.is_cut;
	if (text.len > THREADING_CHARS_MAX * text.kind) {
		out->len = THREADING_CHARS_MAX * text.kind;
		out->is_cut = true;
	}
	return 0;
}

static int name_in_dict(struct object_reader *r, uint64_t active, uint64_t ident,
			struct threading_name *out)
{
	struct ident_search search = { .ident = ident };
	int e = ident ? object_dict_each(r, active, is_ident, &search) : 0;

	if (e <= 0)
		return e < 0 ? e : -ENOENT;
	return name_of_thread(r, search.thread, out);
}

static int name_in_process(struct object_reader *r, const struct threading_process *p,
			   uint64_t ident, struct threading_name *out, uint64_t *active)
{
	uint64_t interp, found;
	int e = object_get_pointer(r, p->runtime + p->off->runtime_interpreters_head, &interp);
	int result = e < 0 ? e : -ENOENT;

	for (int i = 0; i < INTERPRETERS_MAX && !e && interp; i++) {
		e = object_global(r, interp, "threading", "_active", &found);
		if (!e)
			e = name_in_dict(r, found, ident, out);
		if (!e)
			*active = found;
		if (!e || e == -E2BIG)
			return e;
		if (e != -ENOENT)
			result = e;
		e = object_get_pointer(r, interp + p->off->interp_next, &interp);
	}
	return result;
}

int threading_name(struct threading_process *p, uint64_t ident, struct threading_name *out)
{
	struct object_reader r;
	struct threading_name name = { 0 };
	int e = object_reader_init(&r, p->off, THREADING_READS_MAX, p->read, p->arg);

	if (e < 0 || !p->off->interp_modules)
		return -ENOTSUP;
	e = -ENOENT;
	if (p->active)
		e = name_in_dict(&r, p->active, ident, &name);
	if (e < 0 && e != -E2BIG)
		e = name_in_process(&r, p, ident, &name, &p->active);
	if (!e)
		*out = name;
	return e;
}
