/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "bpf/events.h"
#include "collect/discover.h"
#include "collect/pipeline.h"
#include "profile/profile.h"

/* What the ring brings is checked like foreign bytes; no kernel is needed for that. */

union record {
	uint8_t kind;
	struct sample_event sample;
	struct code_event code;
	struct lines_event lines;
	struct process_event process;
	uint8_t bytes[sizeof(struct sample_event) + sizeof(struct frame_record)];
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
		{ "ends within its head", sizeof(struct sample_event) - 1, { .kind = EVENT_SAMPLE }, true },
		{ "sample without weight", sizeof(struct sample_event),
		  { .sample = { .kind = EVENT_SAMPLE, .status = UNWIND_FAULT } }, true },
		{ "sample with more frames than it holds", sizeof(struct sample_event),
		  { .sample = { .kind = EVENT_SAMPLE, .weight = 1, .depth = 1 } }, true },
		{ "sample of no known status", sizeof(struct sample_event),
		  { .sample = { .kind = EVENT_SAMPLE, .weight = 1, .status = UNWIND_UNIDENTIFIED + 1 } }, true },
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pipeline_record_counts_what_it_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
