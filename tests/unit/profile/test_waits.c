/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "profile/waits.h"

static uint32_t intern(struct profile *p, const char *s)
{
	uint32_t id;

	assert_int_equal(strtab_intern(p->strings, s, strlen(s), &id), 0);
	return id;
}

static uint32_t push(struct profile *p, const char *name, enum frame_type kind)
{
	struct frame f = { .name = intern(p, name), .kind = (uint8_t)kind };
	uint32_t frame, stack;

	assert_int_equal(frametab_intern(p->frames, &f, &frame), 0);
	assert_int_equal(stacktab_intern(p->stacks, 0, frame, &stack), 0);
	return stack;
}

static void test_markers_of_waiting(void **state)
{
	static const struct {
		const char *name;
		enum frame_type kind;
		bool want;
	} cases[] = {
		{ "<lock>", FRAME_MARKER, true },
		{ "<GIL>", FRAME_MARKER, true },
		{ "<read: socket>", FRAME_MARKER, true },
		{ "<wait: process>", FRAME_MARKER, true },
		{ "<other: getdents64>", FRAME_MARKER, true },
		{ "<page fault>", FRAME_MARKER, true },
		{ "<lock: file>", FRAME_MARKER, true },
		{ "<native>", FRAME_MARKER, false },
		{ "<GC>", FRAME_MARKER, false },
		{ "<not sampled>", FRAME_MARKER, false },
		{ "<outside Python>", FRAME_MARKER, false },
		{ "<lock>", FRAME_PYTHON, false },
		{ "lock", FRAME_MARKER, false },
	};
	struct profile *p;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if ((wait_of_stack(p, push(p, cases[i].name, cases[i].kind)) != 0) != cases[i].want)
			fail_msg("%s", cases[i].name);
	assert_int_equal(wait_of_stack(p, 0), 0);
	profile_free(p);
}

static uint16_t add_kind(struct profile *p, const char *name, enum sample_unit unit)
{
	struct sample_kind kind = { .name = intern(p, name), .unit = (uint8_t)unit, .period = 1 };
	uint16_t number;

	assert_int_equal(profile_add_kind(p, &kind, &number), 0);
	return number;
}

/* Ticks and ns, threads that are one, and kinds that are no time of theirs. */
static void test_what_threads_did(void **state)
{
	struct thread thread = { .tid = 7 };
	struct process process = { .pid = 7 };
	struct kinds kinds = { 0 };
	struct waits w = { 0 };
	uint32_t lock, poll, code;
	uint16_t off_cpu, gil, memory;
	uint64_t ns[2] = { 0 };
	struct profile *p;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	off_cpu = add_kind(p, KINDS_OFF_CPU, UNIT_NS);
	gil = add_kind(p, KINDS_GIL, UNIT_NS);
	memory = add_kind(p, "memory", UNIT_BYTES);
	for (uint32_t i = 0; i < 2; i++) { /* of two recordings of one process */
		assert_int_equal(profile_begin_recording(p, &process.recording), 0);
		assert_int_equal(profile_add_process(p, &process, &thread.process), 0);
		assert_int_equal(profile_add_thread(p, &thread, &code), 0);
	}
	profile_recording(p)->interval_ns = 1000;
	lock = push(p, "<lock>", FRAME_MARKER);
	poll = push(p, "<poll>", FRAME_MARKER);
	code = push(p, "f", FRAME_PYTHON);
	{
		const struct sample samples[] = {
			{ .value = 3, .stack = code },
			{ .value = 500, .stack = lock, .kind = off_cpu },
			{ .value = 40, .stack = lock, .kind = off_cpu, .thread = 1 },
			{ .value = 8, .stack = poll, .kind = off_cpu },
			{ .value = 2, .stack = code, .kind = off_cpu },
			{ .value = 1000000, .stack = code, .kind = gil },
			{ .value = 1000000, .stack = code, .kind = memory },
		};

		assert_int_equal(kinds_choose(&kinds, p, KINDS_WALL), 0);
		for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
			assert_int_equal(waits_add(&w, &kinds, p, &samples[i]), 0);
	}
	assert_int_equal(waits_ns(&w, WAITS_CPU), 3000);
	assert_int_equal(waits_ns(&w, WAITS_UNKNOWN), 2);
	assert_int_equal(waits_waited_ns(&w), 550);
	assert_int_equal(w.rows.len, 4);
	assert_string_equal(strtab_get(p->strings, w.rows.items[2].marker), "<lock>");
	waits_sum_threads(&w, p, 2, ns);
	assert_int_equal(ns[0] + ns[1], 540);
	assert_int_equal(ns[p->threads.items[1].same] > 0, 1);
	waits_release(&w);
	kinds_release(&kinds);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_markers_of_waiting),
		cmocka_unit_test(test_what_threads_did),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
