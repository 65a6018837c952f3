/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The file format of speedscope (its file-format-schema.json): a profile a thread and kind, the
 * frames of all in one list. What is time is a sequence of events, frames that open and close: a
 * sample ends where it was taken and is as long as it stands for, or begins where the one before it
 * has ended, so that totals are exact and moments within a tick. The rest, and what nobody knows
 * the time of, are samples and their weights. A frame is a function with the line of its def: each
 * is a row of its own in speedscope's tables.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "export/export.h"
#include "export/functions.h"
#include "export/json_parts.h"
#include "export/timeline.h"
#include "profile/kinds.h"

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

struct speedscope {
	struct timeline timeline;

	/* while it is written */
	struct json j;
	struct functions functions;
	VEC(uint32_t) open, stack; /* functions, root first */
};

static int begin(struct exporting *x)
{
	x->state = calloc(1, sizeof(struct speedscope));
	return x->state ? 0 : -ENOMEM;
}

static void release(struct exporting *x)
{
	struct speedscope *s = x->state;

	if (s) {
		timeline_release(&s->timeline);
		functions_release(&s->functions);
		vec_release(&s->open);
		vec_release(&s->stack);
	}
	free(s);
}

static int take(struct exporting *x)
{
	struct speedscope *s = x->state;

	return timeline_add(&s->timeline, x->p, x->kinds);
}

/* --- frames ----------------------------------------------------------------------------------- */

static void put_frames(struct speedscope *s, const struct profile *p)
{
	struct json *j = &s->j;

	json_key(j, "shared");
	json_object(j);
	json_key(j, "frames");
	json_array_lines(j);
	for (uint32_t i = 0; i < s->functions.none; i++) {
		const struct frame *f = functions_get(&s->functions, i);

		json_object(j);
		json_key(j, "name");
		json_string_len(j, strtab_get(p->strings, f->name),
				strtab_len(p->strings, f->name));
		if (f->file) {
			json_key(j, "file");
			json_interned(j, p, f->file);
		}
		if (f->first_line)
			json_key_u64(j, "line", f->first_line);
		json_end(j);
	}
	json_object(j);
	json_key_string(j, "name", PROFILE_NO_FRAMES);
	json_end(j);
	json_end(j);
	json_end(j);
}

/* s->stack becomes the functions of a stack, root first. */
static int read_stack(struct speedscope *s, const struct profile *p, uint32_t stack)
{
	const struct stack_entry *entries = stacktab_entries(p->stacks);
	size_t len;
	int r = 0;

	s->stack.len = 0;
	if (!stack)
		return vec_push(&s->stack, s->functions.none);
	for (; stack && !r; stack = entries[stack].parent)
		r = vec_push(&s->stack, s->functions.of_frame[entries[stack].frame]);
	len = s->stack.len;
	for (size_t i = 0; i < len / 2; i++) {
		uint32_t other = s->stack.items[i];

		s->stack.items[i] = s->stack.items[len - 1 - i];
		s->stack.items[len - 1 - i] = other;
	}
	return r;
}

/* --- profiles --------------------------------------------------------------------------------- */

/* What a list is of, where not all are of the same. */
static const char *kind_of(const struct profile *p, const struct timeline_list *l)
{
	if (l->kind == TIMELINE_TIME)
		return l->has_waits ? KINDS_WALL : KINDS_CPU;
	return strtab_get(p->strings, p->kinds.items[l->kind - 1].name);
}

static void put_name(struct speedscope *s, const struct profile *p, const struct timeline_list *l)
{
	const struct thread *t = &p->threads.items[l->thread];
	const struct process *process = &p->processes.items[t->process];
	_cleanup_(strbuf_releasep) struct strbuf name = STRBUF_INIT;

	strbuf_append(&name, strtab_get(p->strings, process->name),
		      strtab_len(p->strings, process->name));
	strbuf_appendf(&name, " (%u) ", process->pid);
	strbuf_append(&name, strtab_get(p->strings, t->name), strtab_len(p->strings, t->name));
	strbuf_appendf(&name, " (%u)", t->tid);
	if (p->kinds.len)
		strbuf_appendf(&name, ": %s", kind_of(p, l));
	json_key(&s->j, "name");
	json_string_len(&s->j, strbuf_str(&name), name.len);
}

static void put_event(struct speedscope *s, const char *type, uint32_t function, uint64_t at)
{
	json_object(&s->j);
	json_key_string(&s->j, "type", type);
	json_key_u64(&s->j, "frame", function);
	json_key_u64(&s->j, "at", at);
	json_end(&s->j);
}

/* Closes what is open and not in s->stack, from the leaf on, then opens the rest of that. */
static int change_stack(struct speedscope *s, uint64_t closes_at, uint64_t opens_at)
{
	size_t same = 0;
	int r = 0;

	while (closes_at == opens_at && same < s->open.len && same < s->stack.len &&
	       s->open.items[same] == s->stack.items[same])
		same++;
	while (s->open.len > same)
		put_event(s, "C", s->open.items[--s->open.len], closes_at);
	for (size_t i = same; i < s->stack.len && !r; i++) {
		put_event(s, "O", s->stack.items[i], opens_at);
		r = vec_push(&s->open, s->stack.items[i]);
	}
	return r;
}

static int put_events(struct speedscope *s, const struct profile *p, const struct timeline_list *l)
{
	struct timeline_cursor c = timeline_begin(l);
	uint64_t end = 0;
	int r = 0;

	json_key(&s->j, "events");
	json_array_lines(&s->j);
	while (!r && timeline_next(&c)) {
		uint64_t value = c.entry.value, begin = c.entry.time_ns;

		if (!c.entry.duration_ns)
			begin = begin > value ? begin - value : 0;
		if (begin < end)
			begin = end;
		r = read_stack(s, p, c.entry.stack);
		if (!r)
			r = change_stack(s, end, begin);
		if (__builtin_add_overflow(begin, value, &end))
			end = UINT64_MAX;
	}
	s->stack.len = 0;
	change_stack(s, end, end);
	json_end(&s->j);
	json_key_u64(&s->j, "startValue", 0);
	json_key_u64(&s->j, "endValue", end);
	return r;
}

static int put_samples(struct speedscope *s, const struct profile *p, const struct timeline_list *l)
{
	struct timeline_cursor c = timeline_begin(l);
	int r = 0;

	json_key(&s->j, "samples");
	json_array_lines(&s->j);
	while (!r && timeline_next(&c)) {
		r = read_stack(s, p, c.entry.stack);
		json_array(&s->j);
		for (size_t i = 0; i < s->stack.len; i++)
			json_u64(&s->j, s->stack.items[i]);
		json_end(&s->j);
	}
	json_end(&s->j);
	json_key(&s->j, "weights");
	json_array(&s->j);
	for (c = timeline_begin(l); timeline_next(&c);)
		json_u64(&s->j, c.entry.value);
	json_end(&s->j);
	json_key_u64(&s->j, "startValue", 0);
	json_key_u64(&s->j, "endValue", l->total);
	return r;
}

static int put_profile(struct speedscope *s, const struct profile *p, const struct timeline_list *l)
{
	static const char *const units[] = {
		[UNIT_NS] = "nanoseconds", [UNIT_BYTES] = "bytes", [UNIT_COUNT] = "none"
	};
	bool is_evented = l->unit == UNIT_NS && l->has_times;
	int r;

	json_object(&s->j);
	json_key_string(&s->j, "type", is_evented ? "evented" : "sampled");
	put_name(s, p, l);
	json_key_string(&s->j, "unit", units[l->unit]);
	r = is_evented ? put_events(s, p, l) : put_samples(s, p, l);
	json_end(&s->j);
	return r;
}

/* The one to begin with: that has the most of what is time. */
static size_t largest(const struct speedscope *s)
{
	uint64_t most = 0;
	size_t found = 0;

	for (size_t i = 0; i < s->timeline.lists.len; i++) {
		const struct timeline_list *l = &s->timeline.lists.items[i];

		if (l->unit == UNIT_NS && l->total > most) {
			most = l->total;
			found = i;
		}
	}
	return found;
}

static int finish(struct exporting *x)
{
	struct speedscope *s = x->state;
	const struct profile *p = x->p;
	struct recording facts = profile_facts(p);
	int r = timeline_finish(&s->timeline, p) ?: functions_find(&s->functions, p);

	if (r < 0)
		return r;
	json_init(&s->j, x->out);
	json_object(&s->j);
	json_key_string(&s->j, "$schema", SCHEMA);
	json_key_string(&s->j, "exporter", "pyebpf " PYEBPF_VERSION);
	json_key_string(&s->j, "name", facts.target ?: "pyebpf");
	json_key_u64(&s->j, "activeProfileIndex", largest(s));
	put_frames(s, p);
	json_key(&s->j, "profiles");
	json_array(&s->j);
	for (size_t i = 0; i < s->timeline.lists.len && !r; i++)
		r = put_profile(s, p, &s->timeline.lists.items[i]);
	json_end(&s->j);
	json_end(&s->j);
	return r;
}

static const char *const suffixes[] = { ".speedscope.json", ".speedscope", NULL };

const struct exporter exporter_speedscope = {
	.name = "speedscope",
	.suffixes = suffixes,
	.help = "for speedscope.app: each thread over time",
	.needs = EXPORT_NEEDS_SAMPLES,
	.begin = begin,
	.take = take,
	.release = release,
	.finish = finish,
};
