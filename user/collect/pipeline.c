/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/pipeline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"
#include "base/vec.h"
#include "bpf/events.h"
#include "collect/label_sets.h"
#include "collect/published.h"
#include "collect/looker.h"
#include "collect/processes.h"
#include "collect/sample.h"
#include "collect/source_versions.h"
#include "collect/stacks.h"
#include "collect/threads.h"
#include "collect/times.h"
#include "collect/wait_words.h"
#include "profile/opcodes.h"
#include "symbolize/code.h"

#define WAIT_NS 2000000000ULL
#define NAMES_WAIT_NS 20000000ULL   /* for names of threads, each time that samples are written */
#define LAST_WAIT_NS 200000000ULL   /* for answers, at the end: some looks that hang */
#define LAST_LINES_NS 1000000000ULL /* for line tables: many, one after the other */
#define LAST_PAUSE_NS 1000000
#define WAITING_BYTES_MAX (4u << 20)

/*
 * What a sample that waits for names is worth, in periods of its kind; its record follows.
 * contention_ns: that others waited meanwhile for the GIL that its thread held.
 */
struct worth {
	uint64_t value, contention_ns;
	uint64_t since_ns; /* CLOCK_MONOTONIC: when it began to wait */
};
#define WORTH_WORDS (sizeof(struct worth) / sizeof(uint64_t))

/* The kinds of samples where time off the CPU is recorded: all in ns. */
enum timed_kind { TIMED_CPU, TIMED_OFF_CPU, TIMED_CONTENTION, TIMED_COUNT_ };

static const struct {
	const char *name, *event;
} timed_kinds[TIMED_COUNT_] = {
	[TIMED_CPU] = { "cpu", "cpu-clock" },
	[TIMED_OFF_CPU] = { "off-cpu", "sched_switch" },
	[TIMED_CONTENTION] = { "gil-contention", "gil" },
};

struct pipeline {
	struct session *session;
	struct discovery *discovery;
	struct profile *profile;
	struct processes *processes;
	struct threads *threads;
	struct stacks *stacks;
	struct source_versions *sources;    /* NULL: not recorded */
	struct label_sets *labels;          /* NULL: none are asked for */
	struct task_stacks *tasks;          /* the same */
	struct publications *published;     /* NULL: what processes publish is not */
	struct times *times;                /* NULL: ticks alone are recorded, and count as such */
	uint16_t timed_kinds[TIMED_COUNT_]; /* in the profile; 0: not yet */
	uint16_t event_kinds[EVENTS_MAX];   /* of the session's events */
	struct pipeline_opts opts;
	uint64_t end_ns;       /* of the part; 0: not known yet */
	VEC(uint64_t) waiting; /* struct worth, a sample record, and so on */
	struct pipeline_stats stats;
};

static int take_timed(void *arg, const struct timed_sample *s);

static int new_times(struct pipeline *p, const struct pipeline_opts *o)
{
	const struct times_opts opts = { .interval_ns = o->interval_ns,
					 .has_all_ticks = o->modes & MODE_CPU,
					 .fn = take_timed,
					 .arg = p };

	return o->modes & MODE_OFF_CPU ? times_new(&opts, &p->times) : 0;
}

/* Of the session's events, in their order. */
static int add_event_kinds(struct pipeline *p)
{
	struct strtab *strings = p->profile->strings;
	const struct event *e;
	int r = 0;

	for (uint32_t i = 0; i < EVENTS_MAX && r >= 0 && (e = session_event(p->session, i)); i++) {
		struct sample_kind kind = { .period = e->config.period, .unit = e->unit };
		const char *source = event_source(e);

		if ((r = strtab_intern(strings, e->name, strlen(e->name), &kind.name)) >= 0 &&
		    (r = strtab_intern(strings, source, strlen(source), &kind.event)) >= 0)
			r = profile_add_kind(p->profile, &kind, &p->event_kinds[i]);
	}
	return r;
}

static int new_tasks(struct pipeline *p, const struct pipeline_opts *o)
{
	const struct task_stacks_opts opts = { .session = p->session,
					       .profile = p->profile,
					       .processes = p->processes,
					       .threads = p->threads,
					       .start_ns = o->start_ns,
					       .has_filter = o->has_filter,
					       .has_time = o->modes & MODE_OFF_CPU };

	return o->has_async ? task_stacks_new(&opts, &p->tasks) : 0;
}

static int new_labels(struct pipeline *p)
{
	const struct context_label_list *labels = p->opts.labels;
	int r;

	if ((!labels || !labels->len) && !p->opts.has_async)
		return 0;
	r = label_sets_new(labels, p->profile, &p->labels);
	if (r < 0 || !labels || !labels->has_otel)
		return r;
	r = publications_new(p->session, p->discovery, p->profile, !labels->no_resources,
			     &p->published);
	if (!r)
		label_sets_set_names(p->labels, publications_name, p->published,
				     publications_changes(p->published));
	return r;
}

int pipeline_new(struct session *session, struct discovery *discovery, struct profile *profile,
		 const struct pipeline_opts *opts, struct pipeline **out)
{
	_cleanup_(pipeline_freep) struct pipeline *p = calloc(1, sizeof(*p));
	uint64_t seed;
	int r;

	if (!p)
		return -ENOMEM;
	p->session = session;
	p->discovery = discovery;
	p->profile = profile;
	p->opts = *opts;
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) < 0)
		seed = opts->start_ns;
	if ((r = processes_new(discovery, profile, &p->processes)) < 0 ||
	    (r = threads_new(session, discovery, profile, p->processes, &p->threads)) < 0 ||
	    (r = stacks_new(session, discovery, profile, seed, &p->stacks)) < 0 ||
	    (r = new_times(p, opts)) < 0 || (r = add_event_kinds(p)) < 0 ||
	    (r = new_tasks(p, opts)) < 0 ||
	    (opts->has_sources && (r = source_versions_new(profile, &p->sources)) < 0))
		return r;
	if ((r = new_labels(p)) < 0)
		return r;
	if (opts->has_native)
		stacks_show_native(p->stacks);
	*out = take_ptr(p);
	return 0;
}

void pipeline_free(struct pipeline *p)
{
	if (!p)
		return;
	times_free(p->times);
	task_stacks_free(p->tasks);
	label_sets_free(p->labels);
	publications_free(p->published);
	source_versions_free(p->sources);
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
	p->stats.labels_lost = p->labels ? label_sets_lost(p->labels) : 0;
	p->stats.refused = discovery_refused(p->discovery);
}

/* What is said of the leaf's instruction: its name, and where it has called C the marker. */
static int note_opcode(struct pipeline *p, const struct sample_event *e, struct sample *s)
{
	const struct known_process *process = processes_find(p->processes, e->process);
	const struct py_offsets *off = NULL;
	const struct sample_part *part = sample_part(e);
	const char *name = NULL;
	int r = 0;

	if (process)
		off = discovery_layout(p->discovery, process->event.layout);
	if (off)
		name = opcode_name(off->minor, part->opcode);
	if (p->opts.has_opcodes)
		r = strtab_intern(p->profile->strings, name ? name : "", name ? strlen(name) : 0,
				  &s->opcode);
	if (r < 0 || !p->opts.has_native || part_frames(part)->flags & FRAME_COLLECTS || !off ||
	    !opcode_calls_c(off->minor, off->is_free_threaded, part->opcode))
		return r;
	return stacks_push_marker(p->stacks, PROFILE_NATIVE, &s->stack);
}

static int add_label(struct pipeline *p, const char *name, const char *value, struct sample *s)
{
	struct strtab *strings = p->profile->strings;
	uint32_t name_id, value_id;
	int r;

	if ((r = strtab_intern(strings, name, strlen(name), &name_id)) < 0 ||
	    (r = strtab_intern(strings, value, strlen(value), &value_id)) < 0)
		return r;
	return labeltab_add(p->profile->labels, s->labels, name_id, value_id, &s->labels);
}

static int note_exception(struct pipeline *p, const struct sample_event *e, struct sample *s)
{
	return e->flags & SAMPLE_HANDLES ? add_label(p, PROFILE_HANDLES_EXCEPTION, "yes", s) : 0;
}

static int note_interpreter(struct pipeline *p, const struct sample_event *e, struct sample *s)
{
	char id[sizeof("18446744073709551615")];

	if (!e->interpreter)
		return 0;
	snprintf(id, sizeof(id), "%" PRIu64, (uint64_t)e->interpreter - 1);
	return add_label(p, PROFILE_INTERPRETER, id, s);
}

static int note_labels(struct pipeline *p, const struct sample_event *e, struct sample *s)
{
	int r = 0;

	if (p->published)
		r = publications_labels(p->published, e->process, &s->labels);
	if (r < 0 || !e->labels || !p->labels)
		return r;
	return label_sets_find(p->labels, e->labels, &s->labels);
}

/* The frame of the task's outermost coroutine; NULL: it is in none. */
static const struct frame_record *task_root(const struct pipeline *p, const struct sample_event *e)
{
	const struct sample_part *part = sample_part(e);
	const struct frame_record *frames = part_frames(part);

	for (uint32_t i = 0; p->tasks && e->task && i < part->depth; i++)
		if (frames[i].flags & FRAME_TASK_ROOT)
			return &frames[i];
	return NULL;
}

/* A task that was given no name is called like its coroutine: asyncio's own say nothing. */
static int note_task(struct pipeline *p, const struct sample_event *e,
		     const struct frame_record *root, struct sample *s)
{
	const char *name = root ? stacks_name(p->stacks, root) : NULL;

	return name && !(e->flags & SAMPLE_TASK_NAMED) ? add_label(p, PROFILE_TASK, name, s) : 0;
}

/*
 * The task's frames on those of who awaits it, and these on the loop's, where they are kept. What
 * is missing of the loop's frames does not matter where they are not.
 */
static int intern_task(struct pipeline *p, const struct sample_event *e,
		       const struct frame_record *root, bool allow_unknown,
		       struct sample_stack *out)
{
	const struct sample_part *part = sample_part(e);
	const struct frame_record *frames = part_frames(part);
	uint32_t depth = (uint32_t)(root - frames) + 1;
	const struct stack_part loop = { root + 1, part->depth - depth, part->status, 0 };
	struct stack_part task = { frames, depth, UNWIND_COMPLETE, 0 };
	struct sample_stack below = { 0 };
	int r = 0;

	if (p->opts.keeps_loop)
		r = stacks_intern(p->stacks, &loop, allow_unknown, &below);
	if (r < 0 || (r = task_stacks_find(p->tasks, e, allow_unknown, below.id, &task.below)) < 0)
		return r;
	r = stacks_intern(p->stacks, &task, allow_unknown, out);
	if (r < 0)
		return r;
	out->is_approximate |= below.is_approximate;
	out->is_unnamed |= below.is_unnamed;
	return 0;
}

static int intern_stack(struct pipeline *p, const struct sample_event *e,
			const struct frame_record *root, bool allow_unknown,
			struct sample_stack *out)
{
	const struct sample_part *part = sample_part(e);
	const struct stack_part all = { part_frames(part), part->depth, part->status, 0 };

	return root ? intern_task(p, e, root, allow_unknown, out)
		    : stacks_intern(p->stacks, &all, allow_unknown, out);
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
		[UNWIND_NOT_SAMPLED] = 0,
	};
	static const struct { uint16_t from, to; } by_flag[] = {
		{ SAMPLE_HOLDS_GIL, SAMPLE_BIT_HOLDS_GIL },
		{ SAMPLE_WEIGHTED, SAMPLE_BIT_WEIGHTED },
		{ SAMPLE_AMBIGUOUS, SAMPLE_BIT_AMBIGUOUS },
		{ SAMPLE_TASK_WORK, SAMPLE_BIT_TASK_WORK },
		{ SAMPLE_KERNEL, SAMPLE_BIT_KERNEL },
		{ SAMPLE_CODE_FAULT, SAMPLE_BIT_FAULT },
		{ SAMPLE_EPISODE, SAMPLE_BIT_EPISODE },
	};
	/* clang-format on */
	uint16_t bits = by_status[sample_part(e)->status];

	for (size_t i = 0; i < sizeof(by_flag) / sizeof(by_flag[0]); i++)
		if (e->flags & by_flag[i].from)
			bits |= by_flag[i].to;
	return stack->is_approximate ? bits | SAMPLE_BIT_APPROX_LINES : bits;
}

/* A tick outside Python code, where the mode asks for some of the ticks. */
static bool is_left_out(const struct pipeline *p, const struct sample_event *e)
{
	return e->source == SOURCE_TICKS && p->opts.modes && !(p->opts.modes & MODE_CPU);
}

/*
 * A tick of a process that was not identified then, or what a thread waited for whose process never
 * was. If it has a Python since, which had not begun when that was first looked at, after the tick
 * or in the latter half of the thread's life, it was outside Python code; if it has none, of no
 * interest; else nobody knows, and it stays lost. 1: outside; 0: not to be added; -EAGAIN: not
 * known yet. Where the mode asks for some of the ticks, those outside are not among them.
 */
static int judge_unidentified(struct pipeline *p, const struct sample_event *e, bool is_last_chance)
{
	bool has_python = processes_find(p->processes, e->process);
	uint64_t found; /* as the source's counters count */

	if (!has_python && !is_last_chance)
		return -EAGAIN;
	if (!discovery_saw_nothing(p->discovery, e->process, e->ktime_ns - e->duration_ns / 2))
		return 0;
	found = e->source == SOURCE_EVENTS ? 1 : e->value;
	if (has_python && is_left_out(p, e))
		p->stats.found_left_out[e->source] += found;
	else if (has_python)
		p->stats.found_outside[e->source] += found;
	else
		p->stats.found_other[e->source] += found;
	return has_python && !is_left_out(p, e);
}

/* In the profile, *kind KIND_TICKS where ticks alone are recorded. */
static int timed_kind_id(struct pipeline *p, enum timed_kind timed, uint16_t *kind)
{
	const char *name = timed_kinds[timed].name, *event = timed_kinds[timed].event;
	struct sample_kind k = { .period = 1, .unit = UNIT_NS };
	int r;

	*kind = p->timed_kinds[timed];
	if (!p->times || *kind)
		return 0;
	if ((r = strtab_intern(p->profile->strings, name, strlen(name), &k.name)) < 0 ||
	    (r = strtab_intern(p->profile->strings, event, strlen(event), &k.event)) < 0 ||
	    (r = profile_add_kind(p->profile, &k, &p->timed_kinds[timed])) < 0)
		return r;
	*kind = p->timed_kinds[timed];
	return 0;
}

static int sample_kind(struct pipeline *p, const struct sample_event *e, uint16_t *kind)
{
	if (e->source != SOURCE_EVENTS)
		return timed_kind_id(p, e->source == SOURCE_SWITCHES ? TIMED_OFF_CPU : TIMED_CPU,
				     kind);
	*kind = p->event_kinds[e->event];
	return 0;
}

/* What the thread waited for: on top of its stack, and as a label. */
static int add_wait(struct pipeline *p, const struct sample_event *e, struct sample *s)
{
	struct wait_text text = wait_text(e->wait, e->syscall);
	char marker[sizeof(text.s) + 2];
	int r;

	snprintf(marker, sizeof(marker), "<%s>", text.s);
	r = stacks_push_marker(p->stacks, marker, &s->stack);
	return r < 0 ? r : add_label(p, PROFILE_WAIT, text.s, s);
}

static bool waits_for_gil(const struct sample_event *e)
{
	return e->wait == WAIT_GIL || e->wait == WAIT_OF_CLASS(CLASS_GIL);
}

/* A span, which begins where it began. */
static int add_span(struct pipeline *p, const struct sample_event *e, struct sample *s)
{
	int r = 0;

	s->duration_ns = e->duration_ns;
	if (s->value != s->duration_ns)
		s->flags |= SAMPLE_BIT_WEIGHTED;
	if (waits_for_gil(e))
		r = processes_gil(p->processes, e->process, e->gil, &s->gil);
	return r || !e->wait ? r : add_wait(p, e, s);
}

/* The same stack once more, for what others waited meanwhile. */
static int add_contention(struct pipeline *p, const struct sample_event *e, struct sample s,
			  uint64_t value)
{
	int r = timed_kind_id(p, TIMED_CONTENTION, &s.kind);

	s.value = value;
	if (!r)
		r = processes_gil(p->processes, e->process, e->gil, &s.gil);
	return r < 0 ? r : profile_add_sample(p->profile, &s);
}

static uint64_t since_start(const struct pipeline *p, uint64_t ktime_ns)
{
	return ktime_ns > p->opts.start_ns ? ktime_ns - p->opts.start_ns : 0;
}

/* What of a sample takes no names. */
static int describe_sample(struct pipeline *p, const struct sample_event *e,
			   const struct sample_stack *stack, struct sample *s)
{
	bool is_span = e->source == SOURCE_SWITCHES;
	int r = sample_kind(p, e, &s->kind);

	s->time_ns = since_start(p, e->ktime_ns - e->duration_ns);
	s->flags = sample_bits(e, stack);
	return r < 0 || !is_span ? r : add_span(p, e, s);
}

/* Is it of the next part, or is something of its process under way? */
static bool is_awaited(const struct pipeline *p, const struct sample_event *e)
{
	return (p->end_ns && e->ktime_ns - e->duration_ns > p->end_ns) ||
	       processes_is_awaited(p->processes, e->process) ||
	       (p->published && publications_is_awaited(p->published, e->process));
}

/* 0, -EAGAIN: some code object, or the process's name, is not known yet, -ENOMEM. */
static int add_sample(struct pipeline *p, const struct sample_event *e, const struct worth *worth,
		      bool allow_unknown)
{
	const struct sample_part *part = sample_part(e);
	const struct frame_record *root = task_root(p, e);
	struct sample s = { .value = worth->value, .cpu = e->cpu };
	bool is_identified = part->status != UNWIND_UNIDENTIFIED;
	struct sample_stack stack = { 0 };
	int r;

	if (is_identified && (r = processes_introduce(p->processes, e, NULL)) < 0)
		return r;
	if (is_identified && p->published && (r = publications_meet(p->published, e)) < 0)
		return r;
	if (!allow_unknown && is_awaited(p, e))
		return -EAGAIN;
	if (!is_identified && (r = judge_unidentified(p, e, allow_unknown)) <= 0)
		return r;
	if ((r = intern_stack(p, e, root, allow_unknown, &stack)) < 0 ||
	    (r = threads_id(p->threads, e, &s.thread)) < 0)
		return r;
	s.stack = stack.id;
	if ((part->opcode != OPCODE_NONE && stack.has_leaf && (r = note_opcode(p, e, &s)) < 0) ||
	    (r = note_labels(p, e, &s)) < 0 || (r = note_task(p, e, root, &s)) < 0 ||
	    (r = note_exception(p, e, &s)) < 0 || (r = note_interpreter(p, e, &s)) < 0 ||
	    (r = describe_sample(p, e, &stack, &s)) < 0 ||
	    (r = profile_add_sample(p->profile, &s)) < 0)
		return r;
	if (worth->contention_ns && (r = add_contention(p, e, s, worth->contention_ns)) < 0)
		return r;
	p->stats.samples++;
	p->stats.weight += e->value;
	p->stats.unnamed += stack.is_unnamed;
	p->stats.approximate += stack.is_approximate;
	return 0;
}

/* Or it waits for its names. */
static int take_sample(struct pipeline *p, const struct sample_event *e, const struct worth *worth)
{
	struct worth waits = *worth;
	int r = add_sample(p, e, worth, false);

	if (r != -EAGAIN)
		return r;
	waits.since_ns = monotonic_ns();
	if (p->waiting.len * sizeof(uint64_t) > WAITING_BYTES_MAX)
		return add_sample(p, e, worth, true);
	r = vec_reserve(&p->waiting, WORTH_WORDS + sample_size(e) / sizeof(uint64_t));
	if (r < 0)
		return r;
	p->stats.waiting++;
	vec_append(&p->waiting, (const uint64_t *)&waits, WORTH_WORDS);
	return vec_append(&p->waiting, (const uint64_t *)e, sample_size(e) / sizeof(uint64_t));
}

/* Where the times of threads say what samples are worth. */
static int take_timed(void *arg, const struct timed_sample *s)
{
	const struct worth worth = { s->value, s->blocked_ns, 0 };
	const struct sample_event *e = s->event;
	struct pipeline *p = arg;
	int r;

	if (sample_part(e)->status == UNWIND_NOT_SAMPLED &&
	    ((r = processes_introduce(p->processes, e, s->comm)) < 0 ||
	     (r = threads_introduce(p->threads, e, s->comm)) < 0))
		return r;
	return take_sample(p, e, &worth);
}

static bool is_sound_span(const struct pipeline *p, const struct sample_event *e)
{
	bool is_unidentified = sample_part(e)->status == UNWIND_UNIDENTIFIED;

	return p->times && e->wait < WAIT_COUNT_ && e->duration_ns <= e->ktime_ns &&
	       (e->wait || e->flags & SAMPLE_OPEN || is_unidentified);
}

static bool is_sound(const struct pipeline *p, const struct sample_event *e, size_t size)
{
	const struct sample_part *part = sample_part(e);

	return e->source < SOURCE_COUNT_ && e->value && part->kind == PART_PYTHON &&
	       (e->source != SOURCE_EVENTS || session_event(p->session, e->event)) &&
	       part->status <= UNWIND_UNIDENTIFIED && part->depth <= FRAMES_MAX &&
	       (part->depth || part->status != UNWIND_COMPLETE) && sample_size(e) <= size &&
	       (e->source == SOURCE_SWITCHES ? is_sound_span(p, e) : !e->duration_ns);
}

/*
 * Of a process that was not identified then, nobody knew the times of its threads either: a tick is
 * worth what it came with.
 */
static int take_unidentified(struct pipeline *p, const struct sample_event *e)
{
	uint64_t unit_ns = e->source == SOURCE_TICKS ? p->opts.interval_ns : 1;
	const struct worth worth = { e->value * unit_ns, 0, 0 };

	return take_sample(p, e, &worth);
}

static int on_sample(struct pipeline *p, const struct sample_event *e, size_t size)
{
	const struct worth own = { e->value, 0, 0 };
	int r;

	if (!is_sound(p, e, size))
		return -EBADMSG;
	if ((r = threads_ask_name(p->threads, e)) < 0 ||
	    (r = processes_ask_title(p->processes, e->process, e->ktime_ns)) < 0)
		return r;
	if (!p->times || e->source == SOURCE_EVENTS)
		return take_sample(p, e, &own);
	if (sample_part(e)->status == UNWIND_UNIDENTIFIED)
		return take_unidentified(p, e);
	return times_add_sample(p->times, e);
}

static int on_process(struct pipeline *p, const struct process_event *e, size_t size)
{
	int r = processes_add(p->processes, e, size);

	count(p);
	return r < 0 ? r : threads_meet_process(p->threads, e->process);
}

static int on_thread(struct pipeline *p, const struct thread_event *e)
{
	if (e->tid == e->pid)
		processes_renamed(p->processes, e->process);
	return threads_add(p->threads, e);
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

static int on_code(struct pipeline *p, const struct code_event *e, size_t size)
{
	int r = stacks_add_code(p->stacks, e, size);
	const char *file = !r && p->sources ? stacks_file(p->stacks, e->code) : NULL;

	return file ? source_versions_note(p->sources, file, e) : r;
}

static int end_thread(struct pipeline *p, const struct thread_times_event *e)
{
	int r;

	if (!p->times)
		return -EBADMSG;
	if (p->tasks && (r = task_stacks_end_thread(p->tasks, e)) < 0)
		return r;
	return times_end_thread(p->times, e);
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
		[EVENT_THREAD_TIMES] = sizeof(struct thread_times_event),
		[EVENT_SPAN_END] = sizeof(struct span_end_event),
		[EVENT_LABELS] = LABELS_EVENT_HEAD,
	};
	uint8_t kind = size ? *(const uint8_t *)record : 0;

	if (!kind || kind >= sizeof(heads) / sizeof(heads[0]) || size < heads[kind])
		return -EBADMSG;
	switch (kind) {
	case EVENT_SAMPLE:
		return on_sample(p, record, size);
	case EVENT_CODE:
		return on_code(p, record, size);
	case EVENT_LINES:
		return stacks_add_lines(p->stacks, record, size);
	case EVENT_PROCESS:
		return on_process(p, record, size);
	case EVENT_THREAD:
		return on_thread(p, record);
	case EVENT_WHO:
		return discovery_answer(p->discovery, record);
	case EVENT_LABELS:
		return p->labels ? label_sets_add(p->labels, record, size) : -EBADMSG;
	case EVENT_THREAD_TIMES:
		return end_thread(p, record);
	case EVENT_SPAN_END:
		return p->times ? times_end_span(p->times, record) : -EBADMSG;
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

/* A sample that waits. */
struct waiting {
	const struct worth *worth;
	const struct sample_event *event;
	size_t words;
};

static struct waiting waiting_at(const struct pipeline *p, size_t at)
{
	const struct sample_event *e = (const void *)&p->waiting.items[at + WORTH_WORDS];

	return (struct waiting){ .worth = (const void *)&p->waiting.items[at],
				 .event = e,
				 .words = WORTH_WORDS + sample_size(e) / sizeof(uint64_t) };
}

/* Takes up the samples that wait; is_last: whatever has not come. */
static int take_up(struct pipeline *p, uint64_t now_ns, bool is_last)
{
	uint64_t patience_ns = stacks_is_asking(p->stacks) ? 2 * WAIT_NS : WAIT_NS;
	size_t kept = 0, at = 0;

	while (at < p->waiting.len) {
		struct waiting w = waiting_at(p, at);
		bool is_old = is_last || w.worth->since_ns + patience_ns < now_ns;
		int r = add_sample(p, w.event, w.worth, is_old);

		if (r == -EAGAIN) {
			memmove(&p->waiting.items[kept], w.worth, w.words * sizeof(uint64_t));
			kept += w.words;
		} else if (r < 0) {
			return r;
		} else {
			p->stats.waiting--;
		}
		at += w.words;
	}
	p->waiting.len = kept;
	return 0;
}

static int step_tasks(struct pipeline *p)
{
	return p->tasks ? task_stacks_step(p->tasks, monotonic_ns()) : 0;
}

int pipeline_step(struct pipeline *p)
{
	int answered, swept, r = threads_ask(p->threads);

	if (r < 0)
		return r;
	answered = discovery_step(p->discovery);
	if (answered < 0 || (swept = step_tasks(p)) < 0)
		return answered < 0 ? answered : swept;
	if (p->sources && (r = source_versions_step(p->sources)) < 0)
		return r;
	if (!answered && !swept)
		return 0;
	count(p);
	return take_up(p, monotonic_ns(), false);
}

int pipeline_patience(const struct pipeline *p, int max_ms)
{
	const int wakeup_ms = THREAD_WAKEUP_NS / 1000000;

	return max_ms > wakeup_ms && threads_may_come(p->threads) ? wakeup_ms : max_ms;
}

/* Line tables that samples turn out to lack, and those whose looks were late, until then. */
static int await_lines(struct pipeline *p, uint64_t now_ns, uint64_t until_ns)
{
	const struct timespec pause = { .tv_nsec = LAST_PAUSE_NS };
	int r = 0;

	while (r >= 0 && p->waiting.len) {
		uint64_t begin_ns = monotonic_ns();

		r = take_up(p, now_ns, false);
		if (r < 0 || begin_ns >= until_ns || !stacks_awaits_lines(p->stacks))
			break;
		nanosleep(&pause, NULL);
		discovery_wait(p->discovery, until_ns - begin_ns);
		r = discovery_step(p->discovery);
	}
	return r < 0 ? r : 0;
}

int pipeline_settle(struct pipeline *p, uint64_t now_ns, enum pipeline_wait wait)
{
	bool is_last = wait == PIPELINE_ENDS, ends = wait >= PIPELINE_ENDS_PART;
	uint64_t until_ns = monotonic_ns() + (is_last ? LAST_LINES_NS : LAST_WAIT_NS);
	int r;

	if ((r = threads_settle(p->threads)) < 0 ||
	    (r = processes_settle(p->processes, is_last)) < 0)
		return r;
	if (is_last || (wait != PIPELINE_WAITS && p->waiting.len))
		discovery_wait(p->discovery, LAST_WAIT_NS);
	else if (threads_is_asking(p->threads))
		discovery_wait(p->discovery, NAMES_WAIT_NS);
	if ((r = discovery_step(p->discovery)) < 0 ||
	    (wait != PIPELINE_WAITS && (r = await_lines(p, now_ns, until_ns)) < 0))
		return r;
	if (p->tasks && ends && (r = task_stacks_settle(p->tasks, now_ns)) < 0)
		return r;
	if ((r = take_up(p, now_ns, is_last)) < 0)
		return r;
	if (p->sources && is_last && (r = source_versions_settle(p->sources)) < 0)
		return r;
	if (p->sources && ends && (r = source_versions_end_part(p->sources)) < 0)
		return r;
	count(p);
	if (p->labels && label_sets_has_overflown(p->labels))
		session_resend(p->session);
	return 0;
}

static bool is_known(void *arg, uint64_t process)
{
	return processes_find(arg, process);
}

static void keep_process(void *arg, uint64_t process)
{
	struct pipeline *p = arg;
	struct known_process *known = processes_find(p->processes, process);

	if (known)
		known->is_kept = true;
}

/* Those of samples that wait. */
static void keep_processes(struct pipeline *p)
{
	struct waiting w;

	for (size_t at = 0; at < p->waiting.len; at += w.words) {
		w = waiting_at(p, at);
		keep_process(p, w.event->process);
	}
	if (p->times)
		times_each_process(p->times, keep_process, p);
}

int pipeline_forget_ids(struct pipeline *p)
{
	int r;

	stacks_forget_ids(p->stacks);
	memset(p->timed_kinds, 0, sizeof(p->timed_kinds));
	keep_processes(p);
	if (p->tasks)
		task_stacks_forget_ids(p->tasks);
	if (p->labels && label_sets_forget_ids(p->labels))
		session_resend(p->session);
	if ((p->sources && (r = source_versions_forget_ids(p->sources)) < 0) ||
	    (r = add_event_kinds(p)) < 0 || (r = discovery_sweep(p->discovery)) < 0 ||
	    (r = processes_forget_ids(p->processes)) < 0 ||
	    (r = threads_forget_ids(p->threads)) < 0 ||
	    (p->published && (r = publications_forget_ids(p->published)) < 0))
		return r;
	stacks_retain(p->stacks, is_known, p->processes);
	return 0;
}

void pipeline_set_start(struct pipeline *p, uint64_t start_ns)
{
	p->opts.start_ns = start_ns;
	p->end_ns = 0;
	if (p->tasks)
		task_stacks_set_start(p->tasks, start_ns);
}

const struct task_stacks_stats *pipeline_tasks(const struct pipeline *p)
{
	return p->tasks ? task_stacks_stats(p->tasks) : NULL;
}

void pipeline_set_end(struct pipeline *p, uint64_t end_ns)
{
	p->end_ns = end_ns;
}

struct times *pipeline_times(const struct pipeline *p)
{
	return p->times;
}

bool pipeline_has_met_label(const struct pipeline *p, size_t number)
{
	return p->labels && label_sets_has_met(p->labels, number);
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
	out[2] = (struct usage){ "waiting_samples",
				 p->waiting.len * sizeof(uint64_t) +
					 (p->labels ? label_sets_bytes(p->labels) : 0) +
					 (p->times ? times_bytes(p->times) : 0),
				 WAITING_BYTES_MAX };
	out[3] = discovery_usage(p->discovery);
}
