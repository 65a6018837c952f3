/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "cmd/doctor.h"
#include "cmd/doctor_text.h"
#include "collect/recorder.h"

/* A test stack: one sample of one process, by the same way that `record` goes. */

#define TEST_HZ 997 /* a process that uses 1 ms of CPU time is likely to be seen */
#define TEST_NS NS_PER_SECOND
#define POLL_MS 10

static bool is_of_python(const struct profile *p, const struct sample *s)
{
	const struct stack_entry *leaf = &stacktab_entries(p->stacks)[s->stack];

	return frametab_get(p->frames, leaf->frame)->kind == FRAME_PYTHON;
}

/* The first one in Python code; NULL: there is none. */
static const struct sample *find_sample(const struct profile *p)
{
	for (size_t i = 0; i < p->samples.len; i++)
		if (is_of_python(p, &p->samples.items[i]))
			return &p->samples.items[i];
	return NULL;
}

/* A deep stack may take some ticks until all its names have come. */
static int wait_for_sample(struct recorder *recorder, uint64_t start_ns)
{
	int r = recorder_start(recorder);

	while (r >= 0 && !find_sample(recorder_profile(recorder)) &&
	       monotonic_ns() - start_ns < TEST_NS) {
		r = recorder_step(recorder, -1, POLL_MS);
		if (r >= 0)
			r = recorder_settle(recorder);
	}
	return r < 0 ? r : recorder_finish(recorder);
}

int doctor_stack_record(pid_t pid, const struct kernel_opts *kernel, struct doctor_stack *out)
{
	const struct pids pids = { .items = &pid, .len = 1 };
	const struct recorder_opts opts = {
		.session = { .freq_hz = TEST_HZ,
			     .ring_bytes = 1 << 20,
			     .old_kernel = kernel->is_old,
			     .btf = kernel->btf },
		.pids = &pids,
	};
	_cleanup_(recorder_freep) struct recorder *recorder = NULL;
	uint64_t begin_ns = monotonic_ns(), start_ns;
	const struct sample *first;
	int r;

	if ((r = recorder_open(&opts, &recorder)) < 0 || (r = recorder_attach(recorder)) < 0 ||
	    (r = recorder_aim(recorder)) < 0)
		return r;
	start_ns = monotonic_ns();
	out->load_ns = start_ns - begin_ns;
	if ((r = recorder_begin(recorder)) < 0 || (r = wait_for_sample(recorder, start_ns)) < 0)
		return r;
	out->ticks = recorder_target_events(recorder);
	out->profile = recorder_take_profile(recorder);
	first = find_sample(out->profile);
	out->wait_ns = first ? first->time_ns : monotonic_ns() - start_ns;
	return first != NULL;
}

void doctor_stack_release(struct doctor_stack *s)
{
	profile_free(s->profile);
	s->profile = NULL;
}

static const struct sample *first_sample(const struct doctor_stack *s)
{
	return s->profile ? find_sample(s->profile) : NULL;
}

/* Frame ids of a stack, root first. len of them are there; returns how many the stack has. */
static size_t stack_frames(const struct profile *p, uint32_t stack, uint32_t *frames, size_t len)
{
	const struct stack_entry *entries = stacktab_entries(p->stacks);
	size_t depth = 0, at;

	for (uint32_t id = stack; id; id = entries[id].parent)
		depth++;
	at = depth;
	for (uint32_t id = stack; id; id = entries[id].parent)
		if (--at < len)
			frames[at] = entries[id].frame;
	return depth;
}

static void put_frame(struct line *l, const struct profile *p, uint32_t id)
{
	const struct frame *f = frametab_get(p->frames, id);

	line_put_foreign(l, STYLE_PLAIN, strtab_get(p->strings, f->name),
			 strtab_len(p->strings, f->name));
	if (!f->file)
		return;
	line_put(l, STYLE_PLAIN, "  ");
	line_put_foreign(l, STYLE_DIM, strtab_get(p->strings, f->file),
			 strtab_len(p->strings, f->file));
	line_putf(l, STYLE_DIM, ":%s%u", f->flags & FRAME_LINE_APPROXIMATE ? "~" : "", f->line);
}

/* What is said where there is no stack to show. */
static int print_nothing(const struct terminal *t, const struct doctor_stack *s)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;

	if (s->ticks)
		strbuf_appendf(&text, "none: %s with %s samples, none of them in Python code",
			       units_ns(s->wait_ns).s, units_count(s->ticks).s);
	else
		strbuf_appendf(&text, "none: the process was idle for %s (not an error)",
			       units_ns(s->wait_ns).s);
	return doctor_put(t, "test stack", STYLE_WARM, strbuf_str(&text));
}

int doctor_stack_print(const struct terminal *t, const struct doctor_stack *s)
{
	const struct sample *sample = first_sample(s);
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	uint32_t frames[64];
	struct line l = LINE_INIT(t);
	const struct thread *thread;
	size_t depth;
	int r;

	if (!sample)
		return print_nothing(t, s);
	thread = &s->profile->threads.items[sample->thread];
	depth = stack_frames(s->profile, sample->stack, frames, 64);
	strbuf_appendf(&text, "ok: loaded in %s, first sample %s later: thread %u, %zu frame%s",
		       units_ns(s->load_ns).s, units_ns(s->wait_ns).s, thread->tid, depth,
		       depth == 1 ? "" : "s");
	r = doctor_put(t, "test stack", STYLE_BOLD, strbuf_str(&text));
	for (size_t i = 0; r >= 0 && i < depth && i < 64; i++) {
		line_pad(&l, DOCTOR_LABEL_COLUMN + 2);
		put_frame(&l, s->profile, frames[i]);
		r = line_end(&l);
	}
	if (r >= 0 && depth > 64) {
		line_pad(&l, DOCTOR_LABEL_COLUMN + 2);
		line_putf(&l, STYLE_DIM, "... and %zu further in", depth - 64);
		r = line_end(&l);
	}
	line_release(&l);
	return r;
}

void doctor_stack_json(struct json *j, const struct doctor_stack *s)
{
	const struct sample *sample = first_sample(s);
	const struct profile *p = s->profile;
	uint32_t frames[1024];
	size_t depth;

	json_object(j);
	json_key(j, "load_ns");
	json_u64(j, s->load_ns);
	json_key(j, "wait_ns");
	json_u64(j, s->wait_ns);
	json_key(j, "ticks");
	json_u64(j, s->ticks);
	json_key(j, "thread");
	if (sample)
		json_u64(j, p->threads.items[sample->thread].tid);
	else
		json_null(j);
	json_key(j, "frames");
	json_array(j);
	depth = sample ? stack_frames(p, sample->stack, frames, 1024) : 0;
	for (size_t i = 0; i < depth && i < 1024; i++) {
		const struct frame *f = frametab_get(p->frames, frames[i]);

		json_object(j);
		json_key(j, "name");
		json_string_len(j, strtab_get(p->strings, f->name),
				strtab_len(p->strings, f->name));
		json_key(j, "file");
		json_string_len(j, strtab_get(p->strings, f->file),
				strtab_len(p->strings, f->file));
		json_key(j, "line");
		json_u64(j, f->line);
		json_end(j);
	}
	json_end(j);
	json_end(j);
}
