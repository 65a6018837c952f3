/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A sample a line, docs/json.md: an object that says everything of it, for programs that read one
 * after the other. In the order of the recording, in which samples of different threads may be a
 * little out of order.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/vec.h"
#include "export/export.h"
#include "export/frame_texts.h"
#include "export/json_parts.h"
#include "export/sample_words.h"
#include "profile/sample_flag.h"

struct jsonl {
	VEC(uint32_t) frames; /* of the stack that is being written, leaf first */
	struct frame_texts texts;
};

static int begin(struct exporting *x)
{
	x->state = calloc(1, sizeof(struct jsonl));
	return x->state ? 0 : -ENOMEM;
}

static void release(struct exporting *x)
{
	struct jsonl *l = x->state;

	if (l) {
		vec_release(&l->frames);
		frame_texts_release(&l->texts);
	}
	free(l);
}

static void put_seconds(struct json *j, const char *key, uint64_t ns)
{
	json_key_double(j, key, (double)ns / (double)NS_PER_SECOND);
}

/* Of a sum nobody knows when. */
static void put_times(struct json *j, const struct recording *r, const struct sample *s)
{
	if (r->is_summed)
		json_key_string(j, "time", NULL);
	else
		put_seconds(j, "time", s->time_ns);
	if (s->duration_ns)
		put_seconds(j, "duration", s->duration_ns);
	else
		json_key_string(j, "duration", NULL);
}

static void put_thread(struct json *j, const struct profile *p, const struct thread *t)
{
	const struct process *process = &p->processes.items[t->process];

	json_key_u64(j, "pid", process->pid);
	json_key_u64(j, "tid", t->tid);
	json_key(j, "process");
	json_interned(j, p, process->name);
	json_key(j, "thread");
	json_interned(j, p, t->name);
}

static void put_value(struct json *j, const struct profile *p, const struct recording *r,
		      const struct sample *s)
{
	struct sample_kind_words kind = sample_kind_of(p, r, s);

	json_key_string(j, "kind", kind.name);
	json_key_string(j, "unit", json_units[kind.unit]);
	json_key_u64(j, "value", json_scaled(s->value, kind.period));
}

static void put_flags(struct json *j, uint16_t flags)
{
	json_key(j, "flags");
	json_array(j);
	for (size_t i = 0; i < sample_flag_count; i++)
		if (flags & sample_flags[i].bit)
			json_string(j, sample_flags[i].name);
	json_end(j);
}

static void put_labels(struct json *j, const struct profile *p, uint32_t set)
{
	const struct label_entry *entries = labeltab_entries(p->labels);

	json_key(j, "labels");
	json_object(j);
	for (; set; set = entries[set].parent) {
		json_key(j, strtab_get(p->strings, entries[set].name));
		json_interned(j, p, entries[set].value);
	}
	json_end(j);
}

static int write_frame(const struct exporting *x, const struct frame *f, struct strbuf *out)
{
	_cleanup_(freep) char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);
	struct json j;

	if (!file)
		return -errno;
	json_init(&j, file);
	json_array(&j);
	json_frame_fields(&j, x->p, f, f->file, !x->o->no_lines);
	json_end(&j);
	if (fclose(file) != 0)
		return -ENOMEM;
	return strbuf_append(out, text, len);
}

static int put_stack(struct exporting *x, struct json *j, uint32_t stack)
{
	const struct stack_entry *entries = stacktab_entries(x->p->stacks);
	struct jsonl *l = x->state;
	const char *text;
	size_t len;
	int r = 0;

	json_key(j, "stack");
	json_array(j);
	l->frames.len = 0;
	for (uint32_t at = stack; at && !r; at = entries[at].parent)
		r = vec_push(&l->frames, entries[at].frame);
	if (!stack) {
		json_array(j);
		json_no_frame_fields(j);
		json_end(j);
	}
	for (size_t i = l->frames.len; i-- > 0 && !r;) {
		r = frame_texts_find(&l->texts, x, l->frames.items[i], write_frame, &text, &len);
		if (!r)
			json_written(j, text, len);
	}
	json_end(j);
	return r;
}

static int put_sample(struct exporting *x, const struct sample *s)
{
	const struct profile *p = x->p;
	const struct thread *t = &p->threads.items[s->thread];
	uint32_t recording = p->processes.items[t->process].recording;
	const struct recording *of = &p->recordings.items[recording];
	struct json j;
	int r;

	json_init(&j, x->out);
	json_object(&j);
	json_key_u64(&j, "recording", recording);
	put_times(&j, of, s);
	put_thread(&j, p, t);
	json_key_u64(&j, "cpu", s->cpu);
	put_value(&j, p, of, s);
	put_flags(&j, s->flags);
	json_key(&j, "opcode");
	json_interned(&j, p, s->opcode);
	put_labels(&j, p, s->labels);
	r = put_stack(x, &j, s->stack);
	json_end(&j);
	fputc('\n', x->out);
	return r;
}

static int take(struct exporting *x)
{
	int r = 0;

	for (size_t i = 0; i < x->p->samples.len && !r; i++)
		r = put_sample(x, &x->p->samples.items[i]);
	return r;
}

static int finish(struct exporting *x)
{
	(void)x;
	return 0;
}

static const char *const suffixes[] = { ".jsonl", ".ndjson", NULL };

const struct exporter exporter_jsonl = {
	.name = "jsonl",
	.suffixes = suffixes,
	.help = "a sample a line, for programs: time, thread, value, labels, stack",
	.needs = EXPORT_NEEDS_SAMPLES,
	.begin = begin,
	.take = take,
	.release = release,
	.finish = finish,
};
