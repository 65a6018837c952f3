/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
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
	assert_int_equal(pipeline_new(NULL, discovery, profile, 0, &p), 0);
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
	assert_int_equal(pipeline_new(NULL, discovery, profile, 0, &p), 0);
	ask_blocking(discovery, fds[0]);
	feed(p, process);
	assert_int_equal(pipeline_step(p), 0);
	assert_int_equal(pipeline_stats(p)->samples, 0);
	assert_int_equal(pipeline_stats(p)->waiting, 1);
	assert_int_equal(write(fds[1], "", 1), 1);
	discovery_wait(discovery, LONG_NS);
	assert_int_equal(pipeline_settle(p, monotonic_ns(), true), 0);
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
	const struct sample_kind *kind;

	(void)state;
	assert_int_equal(profile_new(&profile), 0);
	assert_int_equal(discovery_new(NULL, &discovery), 0);
	assert_int_equal(pipeline_new(NULL, discovery, profile, 0, &p), 0);
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
		cmocka_unit_test(test_pipeline_record_waits_for_no_look),
		cmocka_unit_test(test_pipeline_record_tells_events_from_ticks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
