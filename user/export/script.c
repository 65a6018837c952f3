/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A sample as `perf script` prints it, for people, grep, and what reads that: Firefox Profiler,
 * Perfetto, inferno, speedscope. A line of who, when, how much of what, then the frames, leaf
 * first, then an empty line:
 *
 *	worker  412/417  [003]  5021.301221:   10101010 cpu-clock:gil,request=7:
 *	               0 Shop.price (/srv/shop/app.py:42)
 *
 * Times are those of the monotonic clock, as perf's are. Values are ns, bytes or counts. Flags and
 * labels stand behind a colon, where perf has an event's modifiers: to readers it is one event,
 * whatever they are. Addresses are 0. As readers split at spaces, the ones in names of files,
 * events and labels are written \x20.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/escape.h"
#include "export/export.h"
#include "export/frame_texts.h"
#include "export/json_parts.h"
#include "export/sample_words.h"
#include "profile/sample_flag.h"

#define IN_WORDS " \\"    /* is escaped in what is one word */
#define IN_EVENT " \\,=:" /* in the words that an event is made of */

static void put_string(struct strbuf *out, const struct profile *p, uint32_t string,
		       const char *special)
{
	escape_append(out, strtab_get(p->strings, string), strtab_len(p->strings, string), special);
}

/* Of all of them, in the order in which they were recorded. */
static void put_modifiers(struct strbuf *out, const struct profile *p, const struct sample *s)
{
	const struct label_entry *entries = labeltab_entries(p->labels);
	const char *between = ":";

	for (size_t i = 0; i < sample_flag_count; i++) {
		if (!(s->flags & sample_flags[i].bit))
			continue;
		strbuf_appendf(out, "%s%s", between, sample_flags[i].name);
		between = ",";
	}
	for (uint32_t set = s->labels; set; set = entries[set].parent) {
		strbuf_puts(out, between);
		put_string(out, p, entries[set].name, IN_EVENT);
		strbuf_putc(out, '=');
		put_string(out, p, entries[set].value, IN_EVENT);
		between = ",";
	}
}

/* Where nobody knows when, it is 0. */
static uint64_t microseconds(const struct recording *r, const struct sample *s)
{
	return r->is_summed ? 0 : (r->start_monotonic_ns + s->time_ns) / 1000;
}

static void put_head(struct strbuf *out, const struct profile *p, const struct sample *s)
{
	const struct thread *t = &p->threads.items[s->thread];
	const struct process *process = &p->processes.items[t->process];
	const struct recording *r = &p->recordings.items[process->recording];
	struct sample_kind_words kind = sample_kind_of(p, r, s);
	uint64_t us = microseconds(r, s);

	put_string(out, p, t->name ? t->name : process->name, "");
	strbuf_appendf(out, " %" PRIu32 "/%" PRIu32 " [%03u] %" PRIu64 ".%06u: %10" PRIu64 " ",
		       process->pid, t->tid, s->cpu, us / 1000000, (unsigned int)(us % 1000000),
		       json_scaled(s->value, kind.period));
	escape_append(out, kind.name, strlen(kind.name), IN_EVENT);
	put_modifiers(out, p, s);
	strbuf_puts(out, ":\n");
}

static int write_frame(const struct exporting *x, const struct frame *f, struct strbuf *out)
{
	strbuf_appendf(out, "\t%16x ", 0);
	put_string(out, x->p, f->name, "");
	strbuf_puts(out, " (");
	put_string(out, x->p, f->file, IN_WORDS "()");
	if (f->line && !x->o->no_lines)
		strbuf_appendf(out, ":%s%" PRIu32, f->flags & FRAME_LINE_APPROXIMATE ? "~" : "",
			       f->line);
	return strbuf_puts(out, ")\n");
}

static int put_stack(struct exporting *x, uint32_t stack, struct strbuf *out)
{
	const struct stack_entry *entries = stacktab_entries(x->p->stacks);
	const char *text;
	size_t len;
	int r = 0;

	if (!stack)
		r = strbuf_appendf(out, "\t%16x %s ()\n", 0, PROFILE_NO_FRAMES);
	for (uint32_t at = stack; at && !r; at = entries[at].parent) {
		r = frame_texts_find(x->state, x, entries[at].frame, write_frame, &text, &len);
		if (!r)
			r = strbuf_append(out, text, len);
	}
	return r;
}

static int begin(struct exporting *x)
{
	x->state = calloc(1, sizeof(struct frame_texts));
	return x->state ? 0 : -ENOMEM;
}

static void release(struct exporting *x)
{
	if (x->state)
		frame_texts_release(x->state);
	free(x->state);
}

static int take(struct exporting *x)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	int r = 0;

	for (size_t i = 0; i < x->p->samples.len && !r; i++) {
		const struct sample *s = &x->p->samples.items[i];

		strbuf_truncate(&text, 0);
		put_head(&text, x->p, s);
		r = put_stack(x, s->stack, &text);
		strbuf_putc(&text, '\n');
		if (!r)
			fwrite(strbuf_str(&text), 1, text.len, x->out);
	}
	return r ? r : strbuf_error(&text);
}

static int finish(struct exporting *x)
{
	(void)x;
	return 0;
}

static const char *const suffixes[] = { ".perf", ".script", NULL };

const struct exporter exporter_script = {
	.name = "script",
	.suffixes = suffixes,
	.help = "a sample after the other, as perf script prints them",
	.needs = EXPORT_NEEDS_SAMPLES,
	.begin = begin,
	.take = take,
	.release = release,
	.finish = finish,
};
