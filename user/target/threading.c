/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/threading.h"

#include <errno.h>

#include "target/object.h"

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

/* Lists threading._active of all interpreters that have one. Returns the last error that is more
 * than "it has none". */
static int list_actives(struct object_reader *r, struct threading_process *p)
{
	uint64_t interp, found;
	int e = object_get_pointer(r, p->runtime + p->off->runtime_interpreters_head, &interp);
	int result = e;

	p->count = 0;
	for (int i = 0; i < THREADING_INTERPRETERS_MAX && !e && interp; i++) {
		e = object_global(r, interp, "threading", "_active", &found);
		if (!e)
			p->actives[p->count++] = found;
		else if (e == -E2BIG)
			return e;
		else if (e != -ENOENT)
			result = e;
		e = object_get_pointer(r, interp + p->off->interp_next, &interp);
	}
	p->is_listed = p->is_of_one_moment && !result;
	return result;
}

static int name_in_process(struct object_reader *r, struct threading_process *p, uint64_t ident,
			   struct threading_name *out)
{
	int result = p->is_listed ? 0 : list_actives(r, p);

	for (unsigned int i = 0; i < p->count && result != -E2BIG; i++) {
		int e = name_in_dict(r, p->actives[i], ident, out);

		if (!e) {
			p->active = p->actives[i];
			return 0;
		}
		if (e != -ENOENT)
			result = e;
	}
	return result ?: -ENOENT;
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
		e = name_in_process(&r, p, ident, &name);
	if (!e)
		*out = name;
	return e;
}
