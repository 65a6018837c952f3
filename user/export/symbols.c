/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/symbols.h"

#include <errno.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/escape.h"

/* The interpreter that all processes run. */
static int name_python(struct symbols *s, enum symbols_python as)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	uint32_t common = s->p->processes.len ? s->p->processes.items[0].executable : 0;
	const char *path, *slash;
	int r;

	for (size_t i = 1; i < s->p->processes.len; i++)
		if (s->p->processes.items[i].executable != common)
			common = 0;
	if (!common)
		return symbols_text(s, "python", &s->python);
	path = strtab_get(s->p->strings, common);
	slash = as == SYMBOLS_PYTHON_NAME ? strrchr(path, '/') : NULL;
	if (!slash)
		return symbols_string(s, common, &s->python);
	r = escape_append(&text, slash + 1, strlen(slash + 1), "");
	return r ? r : strtab_intern(s->strings, strbuf_str(&text), text.len, &s->python);
}

int symbols_init(struct symbols *s, const struct profile *p, enum symbols_python python)
{
	int r;

	*s = (struct symbols){ .p = p };
	s->location_of = calloc((size_t)frametab_count(p->frames) + 1, sizeof(*s->location_of));
	s->string_of = calloc(strtab_count(p->strings), sizeof(*s->string_of));
	if (!s->location_of || !s->string_of)
		return -ENOMEM;
	if ((r = strtab_new(&s->strings)) < 0 || (r = frametab_new(&s->functions)) < 0)
		return r;
	return name_python(s, python);
}

void symbols_release(struct symbols *s)
{
	strtab_free(s->strings);
	frametab_free(s->functions);
	vec_release(&s->mappings);
	vec_release(&s->locations);
	free(s->location_of);
	free(s->string_of);
}

int symbols_text(struct symbols *s, const char *text, uint32_t *id)
{
	return strtab_intern(s->strings, text, strlen(text), id);
}

int symbols_string(struct symbols *s, uint32_t string, uint32_t *id)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	int r = 0;

	if (string && !s->string_of[string]) {
		r = escape_append(&text, strtab_get(s->p->strings, string),
				  strtab_len(s->p->strings, string), "");
		if (!r)
			r = strtab_intern(s->strings, strbuf_str(&text), text.len,
					  &s->string_of[string]);
	}
	if (!r)
		*id = s->string_of[string];
	return r;
}

/* Few modules are mapped at a time: the list is searched. */
static int add_mapping(struct symbols *s, uint32_t string, uint32_t *mapping)
{
	int r;

	for (size_t i = 0; i < s->mappings.len; i++) {
		if (s->mappings.items[i] == string) {
			*mapping = (uint32_t)i;
			return 0;
		}
	}
	r = vec_push(&s->mappings, string);
	if (!r)
		*mapping = (uint32_t)s->mappings.len - 1;
	return r;
}

/* file of a native frame is the module: it is where the code is mapped from, not its source. */
static int add_location(struct symbols *s, const struct frame *f)
{
	struct symbols_location l = { .line = frame_told_line(f),
				      .kind = f->kind,
				      .mapping = SYMBOLS_NO_MAPPING };
	struct frame function = { .first_line = f->first_line, .kind = f->kind };
	bool has_module = f->kind == FRAME_NATIVE || f->kind == FRAME_KERNEL;
	uint32_t file;
	int r;

	if ((r = symbols_string(s, f->name, &function.name)) < 0 ||
	    (r = symbols_string(s, f->file, &file)) < 0)
		return r;
	if (has_module && file)
		r = add_mapping(s, file, &l.mapping);
	else if (f->kind == FRAME_PYTHON && file)
		r = add_mapping(s, s->python, &l.mapping);
	if (!has_module)
		function.file = file;
	if (r < 0 || (r = frametab_intern(s->functions, &function, &l.function)) < 0)
		return r;
	return vec_push(&s->locations, l);
}

static int add_unknown(struct symbols *s)
{
	struct symbols_location l = { .kind = FRAME_MARKER, .mapping = SYMBOLS_NO_MAPPING };
	struct frame function = { .kind = FRAME_MARKER };
	int r;

	if ((r = symbols_text(s, PROFILE_NO_FRAMES, &function.name)) < 0 ||
	    (r = frametab_intern(s->functions, &function, &l.function)) < 0)
		return r;
	return vec_push(&s->locations, l);
}

/* frame: an id, or the count of them for a stack without any. */
static int push_location(struct symbols *s, uint32_t frame, struct symbols_stack *out)
{
	bool is_frame = frame < frametab_count(s->p->frames);
	int r = 0;

	if (!s->location_of[frame]) {
		r = is_frame ? add_location(s, frametab_get(s->p->frames, frame)) : add_unknown(s);
		if (!r)
			s->location_of[frame] = (uint32_t)s->locations.len;
	}
	return r ? r : vec_push(out, s->location_of[frame] - 1);
}

int symbols_stack(struct symbols *s, uint32_t stack, struct symbols_stack *out)
{
	const struct stack_entry *entries = stacktab_entries(s->p->stacks);
	int r = 0;

	out->len = 0;
	if (!stack)
		return push_location(s, frametab_count(s->p->frames), out);
	for (; stack && !r; stack = entries[stack].parent)
		r = push_location(s, entries[stack].frame, out);
	return r;
}
