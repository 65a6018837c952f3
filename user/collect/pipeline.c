/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/pipeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/vec.h"
#include "bpf/events.h"
#include "collect/looker.h"
#include "collect/processes.h"
#include "collect/sample.h"
#include "collect/stacks.h"
#include "collect/threads.h"
#include "profile/opcodes.h"
#include "symbolize/code.h"

#define WAIT_NS 2000000000ULL
#define LAST_WAIT_NS 200000000ULL /* for answers, at the end: some looks that hang */
#define WAITING_BYTES_MAX (4u << 20)

struct pipeline {
	struct session *session;
	struct discovery *discovery;
	struct profile *profile;
	struct processes *processes;
	struct threads *threads;
	struct stacks *stacks;
	uint64_t start_ns;
	uint64_t resent_ns;
	VEC(uint64_t) waiting;      /* sample records, 8-byte aligned, one behind the other */
	uint16_t kinds[EVENTS_MAX]; /* of the session's events, as the profile has them */
	struct pipeline_stats stats;
};

/* Of the session's events, in their order. */
static int add_kinds(struct pipeline *p)
{
	const struct event *e;
	int r = 0;

	for (uint32_t i = 0; i < EVENTS_MAX && r >= 0 && (e = session_event(p->session, i)); i++) {
		struct sample_kind kind = { .period = e->config.period, .unit = e->unit };

		r = strtab_intern(p->profile->strings, e->name, strlen(e->name), &kind.name);
		kind.event = kind.name;
		if (r >= 0)
			r = profile_add_kind(p->profile, &kind, &p->kinds[i]);
	}
	return r;
}

static uint16_t sample_kind(const struct pipeline *p, const struct sample_event *e)
{
	return e->source == SOURCE_EVENTS ? p->kinds[e->event] : KIND_TICKS;
}

int pipeline_new(struct session *session, struct discovery *discovery, struct profile *profile,
		 uint64_t start_ns, struct pipeline **out)
{
	_cleanup_(pipeline_freep) struct pipeline *p = calloc(1, sizeof(*p));
	uint64_t seed;
	int r;

	if (!p)
		return -ENOMEM;
	p->session = session;
	p->discovery = discovery;
	p->profile = profile;
	p->start_ns = start_ns;
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) < 0)
		seed = start_ns;
	if ((r = processes_new(discovery, profile, &p->processes)) < 0 ||
	    (r = threads_new(session, discovery, profile, p->processes, &p->threads)) < 0 ||
	    (r = stacks_new(discovery, profile, seed, &p->stacks)) < 0 || (r = add_kinds(p)) < 0)
		return r;
	*out = take_ptr(p);
	return 0;
}

void pipeline_free(struct pipeline *p)
{
	if (!p)
		return;
	stacks_free(p->stacks);
	threads_free(p->threads);
	processes_free(p->processes);
	vec_release(&p->waiting);
	free(p);
}

/* What the parts count by themselves. */
static void count(struct pipeline *p)
{
	processes_count(p->processes, &p->stats.processes, &p->stats.contained);
	p->stats.refused = discovery_refused(p->discovery) + stacks_refused(p->stacks);
}

/* Name of the leaf's instruction, "" where it is not known. */
static int opcode_id(struct pipeline *p, const struct sample_event *e, uint32_t *id)
{
	const struct known_process *process = processes_find(p->processes, e->process);
	const struct py_offsets *off = NULL;
	const char *name = NULL;

	if (process)
		off = discovery_layout(p->discovery, process->event.layout);
	if (off)
		name = opcode_name(off->minor, sample_part(e)->opcode);
	return strtab_intern(p->profile->strings, name ? name : "", name ? strlen(name) : 0, id);
}

static uint16_t sample_bits(const struct sample_event *e, const struct sample_stack *stack)
{
	/* clang-format off */
	static const uint16_t by_status[] = {
		[UNWIND_COMPLETE] = 0,
		[UNWIND_TRUNCATED] = SAMPLE_BIT_TRUNCATED,
		[UNWIND_FAULT] = SAMPLE_BIT_FAULT,
		[UNWIND_CUT] = SAMPLE_BIT_CUT,
		[UNWIND_INVALID] = SAMPLE_BIT_CUT,
		[UNWIND_LATE] = SAMPLE_BIT_TRUNCATED,
		[UNWIND_OUTSIDE] = 0,
		[UNWIND_UNIDENTIFIED] = 0,
	};
	static const struct { uint16_t from, to; } by_flag[] = {
		{ SAMPLE_HOLDS_GIL, SAMPLE_BIT_HOLDS_GIL },
		{ SAMPLE_WEIGHTED, SAMPLE_BIT_WEIGHTED },
		{ SAMPLE_AMBIGUOUS, SAMPLE_BIT_AMBIGUOUS },
		{ SAMPLE_TASK_WORK, SAMPLE_BIT_TASK_WORK },
		{ SAMPLE_KERNEL, SAMPLE_BIT_KERNEL },
		{ SAMPLE_CODE_FAULT, SAMPLE_BIT_FAULT },
	};
	/* clang-format on */
	uint16_t bits = by_status[sample_part(e)->status];

	for (size_t i = 0; i < sizeof(by_flag) / sizeof(by_flag[0]); i++)
		if (e->flags & by_flag[i].from)
			bits |= by_flag[i].to;
	return stack->is_approximate ? bits | SAMPLE_BIT_APPROX_LINES : bits;
}

/*
 * A tick of a process that was not identified then. If it has a Python since, which had not begun
 * when that was first looked at, after the tick, it was outside Python code; if it has none, of no
 * interest; else nobody knows, and it stays lost. 1: outside; 0: not to be added; -EAGAIN: not
 * known yet.
 */
static int judge_unidentified(struct pipeline *p, const struct sample_event *e, bool is_last_chance)
{
	bool has_python = processes_find(p->processes, e->process);
	uint64_t found; /* as the source's counters count */

	if (!has_python && !is_last_chance)
		return -EAGAIN;
	if (!discovery_saw_nothing(p->discovery, e->process, e->ktime_ns))
		return 0;
	found = e->source == SOURCE_TICKS ? e->value : 1;
	if (has_python)
		p->stats.found_outside[e->source] += found;
	else
		p->stats.found_other[e->source] += found;
	return has_python;
}

/* 0, -EAGAIN: some code object, or the thread's or process's name, is not known yet, -ENOMEM. */
static int add_sample(struct pipeline *p, const struct sample_event *e, bool allow_unknown)
{
	const struct sample_part *part = sample_part(e);
	struct sample s = { .value = e->value, .cpu = e->cpu };
	bool is_identified = part->status != UNWIND_UNIDENTIFIED;
	struct sample_stack stack;
	int r;

	if (is_identified && (r = processes_introduce(p->processes, e)) < 0)
		return r;
	if (!allow_unknown &&
	    (threads_is_awaited(p->threads, e) || processes_is_awaited(p->processes, e->process)))
		return -EAGAIN;
	if (!is_identified && (r = judge_unidentified(p, e, allow_unknown)) <= 0)
		return r;
	if ((r = stacks_intern(p->stacks, part, allow_unknown, &stack)) < 0 ||
	    (r = threads_id(p->threads, e, &s.thread)) < 0 ||
	    (part->opcode != OPCODE_NONE && stack.has_leaf && (r = opcode_id(p, e, &s.opcode)) < 0))
		return r;
	s.kind = sample_kind(p, e);
	s.stack = stack.id;
	s.time_ns = e->ktime_ns > p->start_ns ? e->ktime_ns - p->start_ns : 0;
	s.flags = sample_bits(e, &stack);
	r = profile_add_sample(p->profile, &s);
	if (r < 0)
		return r;
	p->stats.samples++;
	p->stats.weight += e->value;
	p->stats.unnamed += stack.is_unnamed;
	return 0;
}

static bool is_sound(const struct pipeline *p, const struct sample_event *e, size_t size)
{
	const struct sample_part *part = sample_part(e);

	return e->source < SOURCE_COUNT_ && e->value && part->kind == PART_PYTHON &&
	       (e->source != SOURCE_EVENTS || session_event(p->session, e->event)) &&
	       part->status <= UNWIND_UNIDENTIFIED && part->depth <= FRAMES_MAX &&
	       (part->depth || part->status != UNWIND_COMPLETE) && sample_size(e) <= size;
}

static int on_sample(struct pipeline *p, const struct sample_event *e, size_t size)
{
	int r;

	if (!is_sound(p, e, size))
		return -EBADMSG;
	if ((r = threads_ask_name(p->threads, e)) < 0)
		return r;
	r = add_sample(p, e, false);
	if (r != -EAGAIN)
		return r;
	if (p->waiting.len * sizeof(uint64_t) > WAITING_BYTES_MAX)
		return add_sample(p, e, true);
	p->stats.waiting++;
	return vec_append(&p->waiting, (const uint64_t *)e, sample_size(e) / sizeof(uint64_t));
}

static int on_process(struct pipeline *p, const struct process_event *e, size_t size)
{
	int r = processes_add(p->processes, e, size);

	count(p);
	return r;
}

/* What a sample could not read: a look at it brings it in for the next one. */
struct touch {
	struct question question;
	const struct py_offsets *off;
	struct page_event pages;
};

static int touch_look(struct question *q, struct looker *l)
{
	const struct touch *t = (const struct touch *)q;

	looker_touch(l, (pid_t)t->pages.pid, t->off, t->pages.ranges, t->pages.count);
	return 0;
}

static int touch_take(struct question *q)
{
	(void)q; /* the sampler will see it, with its identity */
	return 0;
}

static void touch_free(struct question *q)
{
	free(q);
}

static int on_page(struct pipeline *p, const struct page_event *e)
{
	const struct py_offsets *off = discovery_layout(p->discovery, e->layout);
	struct touch *t;
	int r;

	if (!off || e->count > FAULTS_MAX)
		return -EBADMSG;
	t = malloc(sizeof(*t));
	if (!t)
		return -ENOMEM;
	*t = (struct touch){
		.question = { .look = touch_look, .take = touch_take, .free = touch_free },
		.off = off,
		.pages = *e
	};
	r = discovery_ask(p->discovery, &t->question);
	return r == -EAGAIN ? 0 : r; /* the next sample asks again */
}

/* -EBADMSG: a record that is not what it says it is. */
static int take_record(struct pipeline *p, const void *record, size_t size)
{
	/* Smallest record of each kind. */
	static const size_t heads[] = {
		[EVENT_SAMPLE] = sizeof(struct sample_event) + sizeof(struct sample_part),
		[EVENT_CODE] = sizeof(struct code_event),
		[EVENT_LINES] = sizeof(struct lines_event),
		[EVENT_PROCESS] = sizeof(struct process_event),
		[EVENT_THREAD] = sizeof(struct thread_event),
		[EVENT_WHO] = sizeof(struct who_event),
		[EVENT_PAGE] = sizeof(struct page_event),
	};
	uint8_t kind = size ? *(const uint8_t *)record : 0;

	if (!kind || kind >= sizeof(heads) / sizeof(heads[0]) || size < heads[kind])
		return -EBADMSG;
	switch (kind) {
	case EVENT_SAMPLE:
		return on_sample(p, record, size);
	case EVENT_CODE:
		return stacks_add_code(p->stacks, record, size);
	case EVENT_LINES:
		return stacks_add_lines(p->stacks, record, size);
	case EVENT_PROCESS:
		return on_process(p, record, size);
	case EVENT_THREAD:
		return threads_add(p->threads, record);
	case EVENT_WHO:
		return discovery_answer(p->discovery, record);
	default:
		return on_page(p, record);
	}
}

int pipeline_record(void *arg, const void *record, size_t size)
{
	struct pipeline *p = arg;
	int r = take_record(p, record, size);

	if (r != -EBADMSG)
		return r;
	p->stats.malformed++;
	return 0;
}

/* Code objects that the table had to drop are asked for again, at most once a second. */
static void ask_again(struct pipeline *p, uint64_t now_ns)
{
	if (!stacks_has_evicted(p->stacks) || now_ns - p->resent_ns < WAIT_NS / 2)
		return;
	p->resent_ns = now_ns;
	session_resend(p->session);
}

/* Takes up the samples that wait; is_last: whatever has not come. */
static int take_up(struct pipeline *p, uint64_t now_ns, bool is_last)
{
	size_t kept = 0, at = 0;

	while (at < p->waiting.len) {
		const struct sample_event *e = (const void *)&p->waiting.items[at];
		size_t words = sample_size(e) / sizeof(uint64_t);
		bool is_old = is_last || e->ktime_ns + WAIT_NS < now_ns;
		int r = add_sample(p, e, is_old);

		if (r == -EAGAIN) {
			memmove(&p->waiting.items[kept], e, words * sizeof(uint64_t));
			kept += words;
		} else if (r < 0) {
			return r;
		} else {
			p->stats.waiting--;
		}
		at += words;
	}
	p->waiting.len = kept;
	return 0;
}

int pipeline_step(struct pipeline *p)
{
	int r = discovery_step(p->discovery);

	if (r <= 0)
		return r;
	count(p);
	return take_up(p, monotonic_ns(), false);
}

int pipeline_settle(struct pipeline *p, uint64_t now_ns, bool is_last)
{
	int r;

	if ((r = threads_settle(p->threads, now_ns)) < 0 ||
	    (r = processes_settle(p->processes)) < 0)
		return r;
	if (is_last)
		discovery_wait(p->discovery, LAST_WAIT_NS);
	if ((r = discovery_step(p->discovery)) < 0 || (r = take_up(p, now_ns, is_last)) < 0)
		return r;
	count(p);
	if (p->waiting.len)
		ask_again(p, now_ns);
	return 0;
}

static bool is_known(void *arg, uint64_t process)
{
	return processes_find(arg, process);
}

/* Those of samples that wait. */
static void keep_processes(struct pipeline *p)
{
	const struct sample_event *e;

	for (size_t at = 0; at < p->waiting.len; at += sample_size(e) / sizeof(uint64_t)) {
		struct known_process *process;

		e = (const void *)&p->waiting.items[at];
		process = processes_find(p->processes, e->process);
		if (process)
			process->is_kept = true;
	}
}

int pipeline_forget_ids(struct pipeline *p)
{
	int r;

	stacks_forget_ids(p->stacks);
	keep_processes(p);
	if ((r = add_kinds(p)) < 0 || (r = discovery_sweep(p->discovery)) < 0 ||
	    (r = processes_forget_ids(p->processes)) < 0 ||
	    (r = threads_forget_ids(p->threads)) < 0)
		return r;
	stacks_retain(p->stacks, is_known, p->processes);
	return 0;
}

void pipeline_set_start(struct pipeline *p, uint64_t start_ns)
{
	p->start_ns = start_ns;
}

const struct pipeline_stats *pipeline_stats(const struct pipeline *p)
{
	return &p->stats;
}

void pipeline_usage(const struct pipeline *p, struct usage out[PIPELINE_USAGES])
{
	out[0] =
		(struct usage){ "code_objects", stacks_bytes(p->stacks), CODE_TABLE_BYTES_DEFAULT };
	out[1] = (struct usage){ "processes",
				 processes_bytes(p->processes) + threads_bytes(p->threads), 0 };
	out[2] = (struct usage){ "waiting_samples", p->waiting.len * sizeof(uint64_t),
				 WAITING_BYTES_MAX };
	out[3] = discovery_usage(p->discovery);
}
