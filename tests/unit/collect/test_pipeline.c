/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "bpf/events.h"
#include "collect/discover.h"
#include "collect/pipeline.h"
#include "profile/profile.h"
#include "tests/no_kernel.h"

/* What the ring brings is checked like foreign bytes, and nobody waits for a target. */

#define LONG_NS (20 * NS_PER_SECOND)
#define ATTEMPTS 10

int session_add_layout(struct session *s, const struct py_offsets *off)
{
	(void)s;
	(void)off;
	return -ENOSPC;
}

static const struct pipeline_opts ticks_alone = { .modes = MODE_CPU };

#define SAMPLE_BYTES (sizeof(struct sample_event) + sizeof(struct sample_part))

union record {
	uint8_t kind;
	struct {
		struct sample_event head;
		struct sample_part part;
	} sample;
	struct code_event code;
	struct lines_event lines;
	struct process_event process;
	struct thread_event thread;
	struct who_event who;
	struct thread_times_event times;
	uint8_t bytes[SAMPLE_BYTES + sizeof(struct frame_record)];
};

static void test_pipeline_record_counts_what_it_refuses(void **state)
{
	static const struct {
		const char *name;
		size_t size;
		union record record;
		bool is_refused;
	} cases[] = {
		/* clang-format off */
		{ "empty", 0, { .kind = 0 }, true },
		{ "no such kind", 64, { .kind = 200 }, true },
		{ "ends within its head", SAMPLE_BYTES - 1, { .kind = EVENT_SAMPLE }, true },
		{ "sample of no value", SAMPLE_BYTES,
		  { .sample = { { .kind = EVENT_SAMPLE }, { .status = UNWIND_FAULT } } }, true },
		{ "sample of no known source", SAMPLE_BYTES,
		  { .sample = { { .kind = EVENT_SAMPLE, .source = SOURCE_COUNT_, .value = 1 },
				{ .status = UNWIND_FAULT } } }, true },
		{ "span where none is recorded", SAMPLE_BYTES,
		  { .sample = { { .kind = EVENT_SAMPLE, .source = SOURCE_SWITCHES, .value = 1,
				  .wait = WAIT_LOCK }, { .status = UNWIND_FAULT } } }, true },
		{ "times where none are recorded", sizeof(struct thread_times_event),
		  { .times = { .kind = EVENT_THREAD_TIMES } }, true },
		{ "sample of an event that was not asked for", SAMPLE_BYTES,
		  { .sample = { { .kind = EVENT_SAMPLE, .source = SOURCE_EVENTS, .event = 1, .value = 1 },
				{ .status = UNWIND_FAULT } } }, true },
		{ "sample of a part of no known kind", SAMPLE_BYTES,
		  { .sample = { { .kind = EVENT_SAMPLE, .value = 1 },
				{ .kind = PART_COUNT_, .status = UNWIND_FAULT } } }, true },
		{ "sample with more frames than it holds", SAMPLE_BYTES,
		  { .sample = { { .kind = EVENT_SAMPLE, .value = 1 }, { .depth = 1 } } }, true },
		{ "sample of no known status", SAMPLE_BYTES,
		  { .sample = { { .kind = EVENT_SAMPLE, .value = 1 },
				{ .status = UNWIND_UNIDENTIFIED + 1 } } }, true },
		{ "code object of a layout there is not", sizeof(struct code_event),
		  { .code = { .kind = EVENT_CODE, .layout = 7 } }, true },
		{ "line table longer than its record", sizeof(struct lines_event),
		  { .lines = { .kind = EVENT_LINES, .bytes = 1 } }, true },
		{ "arguments longer than their record", sizeof(struct process_event),
		  { .process = { .kind = EVENT_PROCESS, .args_bytes = 1 } }, true },
		{ "whole process", sizeof(struct process_event),
		  { .process = { .kind = EVENT_PROCESS, .pid = 412 } }, false },
		/* clang-format on */
	};
	_cleanup_(profile_freep) struct profile *profile = NULL;
	_cleanup_(discovery_freep) struct discovery *discovery = NULL;
	_cleanup_(pipeline_freep) struct pipeline *p = NULL;
	uint64_t refused = 0;

	(void)state;
	assert_int_equal(profile_new(&profile), 0);
	assert_int_equal(discovery_new(NULL, &discovery), 0);
	assert_int_equal(pipeline_new(NULL, discovery, profile, &ticks_alone, &p), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		refused += cases[i].is_refused;
		if (pipeline_record(p, &cases[i].record, cases[i].size) < 0)
			fail_msg("%s: an error", cases[i].name);
		if (pipeline_stats(p)->malformed != refused)
			fail_msg("%s: %s", cases[i].name,
				 cases[i].is_refused ? "taken" : "refused");
	}
	assert_int_equal(pipeline_stats(p)->samples, 0);
}

/* The end of a thread, and a list of the others. */
static void feed_times(struct pipeline *p, const struct thread_times_event *e)
{
	assert_int_equal(pipeline_record(p, e, sizeof(*e)), 0);
	times_begin_list(pipeline_times(p), e->ktime_ns);
	assert_int_equal(times_settle(pipeline_times(p), e->ktime_ns, TIMES_GROUPS), 0);
}

static const char *text(const struct profile *p, uint32_t id)
{
	return strtab_get(p->strings, id);
}

/* "outside Python;read: socket" of a sample, its kind, and the value of its first label. */
static void describe(const struct profile *p, const struct sample *s, char *out, size_t size)
{
	const struct stack_entry *stacks = stacktab_entries(p->stacks);
	const struct label_entry *label = &labeltab_entries(p->labels)[s->labels];
	uint32_t leaf = s->stack, root = stacks[leaf].parent;

	snprintf(out, size, "%s: %s %s, %s=%s", text(p, p->kinds.items[s->kind - 1].name),
		 root ? text(p, frametab_get(p->frames, stacks[root].frame)->name) : "",
		 text(p, frametab_get(p->frames, stacks[leaf].frame)->name),
		 s->labels ? text(p, label->name) : "", s->labels ? text(p, label->value) : "");
}

static void test_pipeline_record_makes_kinds_of_times(void **state)
{
	static const struct pipeline_opts wall = { .start_ns = 1000,
						   .interval_ns = 100,
						   .modes = MODE_WALL };
	static const struct {
		const char *words;
		uint64_t time_ns, duration_ns, value;
		uint16_t bits, gil;
	} wants[] = {
		/* clang-format off */
		{ "cpu:  <outside Python>, =", 1000, 0, 130, SAMPLE_BIT_HOLDS_GIL, 0 },
		{ "gil-contention:  <outside Python>, =", 1000, 0, 260, SAMPLE_BIT_HOLDS_GIL, 1 },
		{ "off-cpu: <outside Python> <read: socket>, wait=read: socket", 500, 2000, 2000,
		  SAMPLE_BIT_EPISODE, 0 },
		{ "off-cpu: <outside Python> <sleep>, wait=sleep", 2900, 100, 55,
		  SAMPLE_BIT_WEIGHTED, 0 },
		{ "off-cpu: <not sampled> <GIL>, wait=GIL", 0, 3000, 300, SAMPLE_BIT_WEIGHTED, 1 },
		{ "off-cpu: <not sampled> <write>, wait=write", 0, 3000, 7, SAMPLE_BIT_WEIGHTED, 0 },
		{ "off-cpu:  <not sampled>, =", 0, 3000, 9, SAMPLE_BIT_WEIGHTED, 0 },
		/* clang-format on */
	};
	const union record records[] = {
		{ .process = { .kind = EVENT_PROCESS, .process = 5, .start_ns = 1 } },
		{ .sample = { { .kind = EVENT_SAMPLE,
				.process = 5,
				.tid = 3,
				.value = 1,
				.ktime_ns = 2000,
				.blocked_ns = 200,
				.gil = 0x7000,
				.flags = SAMPLE_HOLDS_GIL },
			      { .status = UNWIND_OUTSIDE, .opcode = OPCODE_NONE } } },
		{ .sample = { { .kind = EVENT_SAMPLE,
				.source = SOURCE_SWITCHES,
				.process = 5,
				.tid = 3,
				.value = 2000,
				.ktime_ns = 3500,
				.duration_ns = 2000,
				.wait = WAIT_READ_SOCKET,
				.flags = SAMPLE_EPISODE },
			      { .status = UNWIND_OUTSIDE, .opcode = OPCODE_NONE } } },
		{ .sample = { { .kind = EVENT_SAMPLE,
				.source = SOURCE_SWITCHES,
				.process = 5,
				.tid = 3,
				.value = 1000,
				.ktime_ns = 4000,
				.duration_ns = 100,
				.wait = WAIT_SLEEP,
				.flags = SAMPLE_SHORT },
			      { .status = UNWIND_OUTSIDE, .opcode = OPCODE_NONE } } },
	};
	struct thread_times_event times = { .kind = EVENT_THREAD_TIMES,
					    .process = 5,
					    .tid = 3,
					    .since_ns = 1000,
					    .ktime_ns = 4000,
					    .cpu_ns = 130,
					    .unseen_ns = 9,
					    .gil = 0x7000,
					    .short_ns[CLASS_SLEEP] = 55,
					    .long_ns[CLASS_GIL] = 300,
					    .long_ns[CLASS_READ] = 2000,
					    .long_ns[CLASS_WRITE] = 7 };
	_cleanup_(profile_freep) struct profile *profile = NULL;
	_cleanup_(discovery_freep) struct discovery *discovery = NULL;
	_cleanup_(pipeline_freep) struct pipeline *p = NULL;
	char words[128];

	(void)state;
	assert_int_equal(profile_new(&profile), 0);
	assert_int_equal(discovery_new(NULL, &discovery), 0);
	assert_int_equal(pipeline_new(NULL, discovery, profile, &wall, &p), 0);
	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++)
		assert_int_equal(pipeline_record(p, &records[i], sizeof(records[i])), 0);
	feed_times(p, &times);
	assert_int_equal(pipeline_settle(p, monotonic_ns(), PIPELINE_ENDS), 0);
	assert_int_equal(profile->samples.len, sizeof(wants) / sizeof(wants[0]));
	for (size_t i = 0; i < profile->samples.len; i++) {
		const struct sample *s = &profile->samples.items[i];

		describe(profile, s, words, sizeof(words));
		assert_string_equal(words, wants[i].words);
		assert_int_equal(s->time_ns, wants[i].time_ns);
		assert_int_equal(s->duration_ns, wants[i].duration_ns);
		assert_int_equal(s->value, wants[i].value);
		assert_int_equal(s->flags, wants[i].bits);
		assert_int_equal(s->gil, wants[i].gil);
	}
	assert_int_equal(pipeline_stats(p)->malformed, 0);
}

static union record tick_at(uint64_t ktime_ns)
{
	return (union record){ .sample = { { .kind = EVENT_SAMPLE,
					     .process = 5,
					     .tid = 3,
					     .value = 1,
					     .ktime_ns = ktime_ns },
					   { .status = UNWIND_OUTSIDE, .opcode = OPCODE_NONE } } };
}

/* Where the ring is emptied after the end of a part, it has samples of the next one. */
static void test_pipeline_record_keeps_later_samples_for_the_next_part(void **state)
{
	const union record process = { .process = { .kind = EVENT_PROCESS, .process = 5 } };
	const uint64_t end_ns = monotonic_ns();
	_cleanup_(profile_freep) struct profile *profile = NULL;
	_cleanup_(discovery_freep) struct discovery *discovery = NULL;
	_cleanup_(pipeline_freep) struct pipeline *p = NULL;
	union record tick;

	(void)state;
	assert_int_equal(profile_new(&profile), 0);
	assert_int_equal(discovery_new(NULL, &discovery), 0);
	assert_int_equal(pipeline_new(NULL, discovery, profile, &ticks_alone, &p), 0);
	assert_int_equal(pipeline_record(p, &process, sizeof(process)), 0);
	pipeline_set_end(p, end_ns);
	for (int i = -1; i < 2; i++) {
		tick = tick_at(end_ns + i);
		assert_int_equal(pipeline_record(p, &tick, sizeof(tick)), 0);
	}
	assert_int_equal(pipeline_settle(p, end_ns, PIPELINE_ENDS_PART), 0);
	assert_int_equal(profile->samples.len, 2);
	assert_int_equal(pipeline_stats(p)->waiting, 1);

	pipeline_set_start(p, end_ns);
	assert_int_equal(profile_reset(profile), 0);
	assert_int_equal(pipeline_forget_ids(p), 0);
	assert_int_equal(pipeline_settle(p, end_ns, PIPELINE_WAITS), 0);
	assert_int_equal(profile->samples.len, 1);
	assert_int_equal(profile->samples.items[0].time_ns, 1);
	assert_int_equal(pipeline_stats(p)->waiting, 0);
}

/* A look that does not come back before somebody writes a byte. */
struct blocking {
	struct question question;
	int fd;
};

static int read_byte(struct question *q, struct looker *l)
{
	char byte;

	(void)l;
	return read(((struct blocking *)q)->fd, &byte, 1) == 1 ? 0 : -EIO;
}

static int take_nothing(struct question *q)
{
	return q->r;
}

static void free_blocking(struct question *q)
{
	free(q);
}

static void ask_blocking(struct discovery *d, int fd)
{
	struct blocking *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->question =
		(struct question){ .look = read_byte, .take = take_nothing, .free = free_blocking };
	b->fd = fd;
	assert_int_equal(discovery_ask(d, &b->question), 0);
}

/* Of a process that runs `process` now, as its records say. */
static void feed(struct pipeline *p, uint64_t process)
{
	const uint32_t pid = (uint32_t)getpid();
	const union record records[] = {
		{ .who = { .kind = EVENT_WHO, .pid = pid, .process = process, .start_ns = 1 } },
		{ .process = { .kind = EVENT_PROCESS,
			       .pid = pid,
			       .process = process,
			       .start_ns = 1 } },
		{ .thread = { .kind = EVENT_THREAD,
			      .pid = pid,
			      .tid = pid,
			      .process = process,
			      .pointer = 4096 } },
		{ .sample = { { .kind = EVENT_SAMPLE,
				.pid = pid,
				.tid = pid,
				.process = process,
				.value = 1,
				.ktime_ns = monotonic_ns() },
			      { .status = UNWIND_OUTSIDE } } },
	};

	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++)
		assert_int_equal(pipeline_record(p, &records[i], sizeof(records[i])), 0);
}

/* All records are taken while a look hangs. Returns whether the process got a command line. */
static bool record_beside_a_look(uint64_t process)
{
	_cleanup_(profile_freep) struct profile *profile = NULL;
	_cleanup_(discovery_freep) struct discovery *discovery = NULL;
	_cleanup_(pipeline_freep) struct pipeline *p = NULL;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(profile_new(&profile), 0);
	assert_int_equal(discovery_new(NULL, &discovery), 0);
	assert_int_equal(pipeline_new(NULL, discovery, profile, &ticks_alone, &p), 0);
	ask_blocking(discovery, fds[0]);
	feed(p, process);
	assert_int_equal(pipeline_step(p), 0);
	assert_int_equal(pipeline_stats(p)->samples, 0);
	assert_int_equal(pipeline_stats(p)->waiting, 1);
	assert_int_equal(write(fds[1], "", 1), 1);
	discovery_wait(discovery, LONG_NS);
	assert_int_equal(pipeline_settle(p, monotonic_ns(), PIPELINE_ENDS), 0);
	assert_int_equal(pipeline_stats(p)->samples, 1);
	assert_int_equal(pipeline_stats(p)->waiting, 0);
	close(fds[0]);
	close(fds[1]);
	return profile->processes.items[0].command_line;
}

/*
 * The command line is our own, if we are still who the records are of. On a crowded machine a look
 * may take longer than is waited for: then there is none.
 */
static void test_pipeline_record_waits_for_no_look(void **state)
{
	bool has_command_line = false;

	(void)state;
	for (int i = 0; i < ATTEMPTS && !has_command_line; i++)
		has_command_line = record_beside_a_look(OWN_PROCESS);
	assert_true(has_command_line);
	assert_false(record_beside_a_look(OWN_PROCESS + 1)); /* another program by then */
}

/* Settles while a look hangs, and again once it goes on. Returns whether the sample was then taken
 * up. */
static bool settle_beside_a_look(enum pipeline_wait wait)
{
	_cleanup_(profile_freep) struct profile *profile = NULL;
	_cleanup_(discovery_freep) struct discovery *discovery = NULL;
	_cleanup_(pipeline_freep) struct pipeline *p = NULL;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(profile_new(&profile), 0);
	assert_int_equal(discovery_new(NULL, &discovery), 0);
	assert_int_equal(pipeline_new(NULL, discovery, profile, &ticks_alone, &p), 0);
	ask_blocking(discovery, fds[0]);
	feed(p, OWN_PROCESS);
	assert_int_equal(pipeline_settle(p, monotonic_ns(), wait), 0);
	assert_int_equal(pipeline_stats(p)->waiting, 1);
	assert_int_equal(profile->samples.len, 0);
	assert_int_equal(write(fds[1], "", 1), 1);
	assert_int_equal(pipeline_settle(p, monotonic_ns(), wait), 0);
	discovery_wait(discovery, LONG_NS);
	close(fds[0]);
	close(fds[1]);
	return profile->samples.len;
}

/* On a crowded machine a look may take longer than is waited for. */
static void test_pipeline_settle_to_write_waits_for_a_look(void **state)
{
	bool is_taken_up = false;

	(void)state;
	for (int i = 0; i < ATTEMPTS && !is_taken_up; i++)
		is_taken_up = settle_beside_a_look(PIPELINE_WRITES);
	assert_true(is_taken_up);
}

#define FRAMES 3

/* Leaf first; all of them are <unknown>, as no code object is readable. */
struct framed_sample {
	struct sample_event head;
	struct sample_part part;
	struct frame_record frames[FRAMES];
};

static void put_stack(const struct profile *p, uint32_t stack, struct strbuf *out)
{
	const struct stack_entry *e = &stacktab_entries(p->stacks)[stack];

	if (!stack)
		return;
	put_stack(p, e->parent, out);
	strbuf_appendf(out, "%s%s", out->len ? ";" : "",
		       strtab_get(p->strings, frametab_get(p->frames, e->frame)->name));
}

static bool has_label(const struct profile *p, const struct sample *s, const char *name,
		      const char *value)
{
	const struct label_entry *e = &labeltab_entries(p->labels)[s->labels];

	return s->labels && !strcmp(strtab_get(p->strings, e->name), name) &&
	       !strcmp(strtab_get(p->strings, e->value), value);
}

static void test_pipeline_record_marks_what_threads_do(void **state)
{
	static const struct {
		const char *name;
		uint32_t flags[FRAMES]; /* besides FRAME_UNREADABLE */
		uint32_t sample_flags;
		struct pipeline_opts opts;
		const char *want;
	} cases[] = {
		/* clang-format off */
		{ "nothing", { 0 }, 0, { 0 }, "<unknown>;<unknown>;<unknown>" },
		{ "handles an exception", { 0 }, SAMPLE_HANDLES, { 0 },
		  "<unknown>;<unknown>;<unknown>" },
		{ "collects", { FRAME_COLLECTS }, SAMPLE_IN_GC, { 0 },
		  "<unknown>;<unknown>;<unknown>;<GC>" },
		{ "finalizer", { FRAME_ENTRY, FRAME_COLLECTS }, SAMPLE_IN_GC, { 0 },
		  "<unknown>;<unknown>;<GC>;<unknown>" },
		{ "C called, not asked for", { FRAME_ENTRY, FRAME_ENTRY, FRAME_ENTRY }, 0, { 0 },
		  "<unknown>;<unknown>;<unknown>" },
		{ "C called the leaf", { FRAME_ENTRY, 0, FRAME_ENTRY }, 0, { .has_native = true },
		  "<unknown>;<unknown>;<native>;<unknown>" },
		{ "C called its caller", { 0, FRAME_ENTRY, FRAME_ENTRY }, 0, { .has_native = true },
		  "<unknown>;<native>;<unknown>;<unknown>" },
		/* The same frames but for their flags, which the caches must tell apart. */
		{ "finalizer, in C's view", { FRAME_ENTRY, FRAME_COLLECTS }, SAMPLE_IN_GC,
		  { .has_native = true }, "<unknown>;<unknown>;<GC>;<native>;<unknown>" },
		{ "entered another interpreter", { 0, FRAME_INTERPRETER | FRAME_ENTRY }, 0, { 0 },
		  "<unknown>;<interpreter 4096>;<unknown>" },
		{ "in C's view", { 0, FRAME_INTERPRETER | FRAME_ENTRY }, 0, { .has_native = true },
		  "<unknown>;<native>;<interpreter 4096>;<unknown>" },
		/* clang-format on */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(profile_freep) struct profile *profile = NULL;
		_cleanup_(discovery_freep) struct discovery *discovery = NULL;
		_cleanup_(pipeline_freep) struct pipeline *p = NULL;
		const bool has_entered = cases[i].flags[1] & FRAME_INTERPRETER;
		struct framed_sample s = {
			{ .kind = EVENT_SAMPLE,
			  .value = 1,
			  .flags = cases[i].sample_flags,
			  .interpreter = has_entered ? 8 : 0 },
			{ .depth = FRAMES, .opcode = OPCODE_NONE },
			{ { 0 } },
		};

		for (int f = 0; f < FRAMES; f++)
			s.frames[f] = (struct frame_record){ 0x1000, 2,
							     FRAME_UNREADABLE | cases[i].flags[f] };
		assert_int_equal(profile_new(&profile), 0);
		assert_int_equal(discovery_new(NULL, &discovery), 0);
		assert_int_equal(pipeline_new(NULL, discovery, profile, &cases[i].opts, &p), 0);
		for (int again = 0; again < 2; again++)
			assert_int_equal(pipeline_record(p, &s, sizeof(s)), 0);
		assert_int_equal(pipeline_settle(p, monotonic_ns(), true), 0);
		assert_int_equal(profile->samples.len, 2);
		for (size_t n = 0; n < 2; n++) {
			_cleanup_(strbuf_releasep) struct strbuf got = STRBUF_INIT;
			const struct sample *sample = &profile->samples.items[n];

			put_stack(profile, sample->stack, &got);
			if (strcmp(strbuf_str(&got), cases[i].want))
				fail_msg("%s: got %s", cases[i].name, strbuf_str(&got));
			if (has_label(profile, sample, PROFILE_HANDLES_EXCEPTION, "yes") !=
				    !!(cases[i].sample_flags & SAMPLE_HANDLES) ||
			    has_label(profile, sample, PROFILE_INTERPRETER, "7") != has_entered)
				fail_msg("%s: label %u", cases[i].name, sample->labels);
		}
	}
}

static void test_pipeline_record_tells_events_from_ticks(void **state)
{
	_cleanup_(profile_freep) struct profile *profile = NULL;
	_cleanup_(discovery_freep) struct discovery *discovery = NULL;
	_cleanup_(pipeline_freep) struct pipeline *p = NULL;
	union record record = { .sample = { { .kind = EVENT_SAMPLE,
					      .source = SOURCE_EVENTS,
					      .pid = (uint32_t)getpid(),
					      .tid = (uint32_t)getpid(),
					      .process = OWN_PROCESS,
					      .value = 7 },
					    { .status = UNWIND_OUTSIDE } } };
	const struct pipeline_opts none = { 0 };
	const struct sample_kind *kind;

	(void)state;
	assert_int_equal(profile_new(&profile), 0);
	assert_int_equal(discovery_new(NULL, &discovery), 0);
	assert_int_equal(pipeline_new(NULL, discovery, profile, &none, &p), 0);
	feed(p, OWN_PROCESS);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pipeline_record(p, &record, SAMPLE_BYTES), 0);
	assert_int_equal(pipeline_settle(p, LONG_NS, true), 0);
	assert_int_equal(profile->samples.len, 3);
	assert_int_equal(profile->kinds.len, 1);
	kind = &profile->kinds.items[0];
	assert_string_equal(strtab_get(profile->strings, kind->name), "page-faults");
	assert_int_equal(kind->period, 10);
	assert_int_equal(kind->unit, UNIT_COUNT);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(profile->samples.items[i].value,
				 profile->samples.items[i].kind == KIND_TICKS ? 1 : 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pipeline_record_counts_what_it_refuses),
		cmocka_unit_test(test_pipeline_record_makes_kinds_of_times),
		cmocka_unit_test(test_pipeline_record_keeps_later_samples_for_the_next_part),
		cmocka_unit_test(test_pipeline_record_waits_for_no_look),
		cmocka_unit_test(test_pipeline_settle_to_write_waits_for_a_look),
		cmocka_unit_test(test_pipeline_record_marks_what_threads_do),
		cmocka_unit_test(test_pipeline_record_tells_events_from_ticks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
