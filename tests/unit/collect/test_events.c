/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "collect/events.h"
#include "collect/tracefs.h"

static const struct event_rate by_default = { .freq_hz = 99 };

static void assert_text(const char *name, const char *got, const char *want)
{
	if ((got && want) ? strcmp(got, want) != 0 : got != want)
		fail_msg("%s: got \"%s\", want \"%s\"", name, got ? got : "-", want ? want : "-");
}

static void test_events_add_takes_them_apart(void **state)
{
	/* clang-format off */
	static const struct {
		const char *text;
		enum event_class class;
		const char *where, *provider, *what, *field;
		enum event_value value;
		uint8_t arg;
	} cases[] = {
		{ "sched:sched_switch", EVENT_CLASS_TRACEPOINT, "sched", NULL, "sched_switch", NULL, EVENT_ONE, 0 },
		{ "sched:sched_switch:prev_pid", EVENT_CLASS_TRACEPOINT, "sched", NULL, "sched_switch", "prev_pid", EVENT_FIELD, 0 },
		{ "sched:sched_switch:arg1", EVENT_CLASS_TRACEPOINT, "sched", NULL, "sched_switch", "arg1", EVENT_FIELD, 0 },
		{ "uprobe:/lib/libc.so.6:malloc", EVENT_CLASS_FUNCTION, "/lib/libc.so.6", NULL, "malloc", NULL, EVENT_ONE, 0 },
		{ "uprobe:libc.so.6:malloc:arg1", EVENT_CLASS_FUNCTION, "libc.so.6", NULL, "malloc", NULL, EVENT_ARG, 0 },
		{ "uprobe:./a:b:f:arg5", EVENT_CLASS_FUNCTION, "./a:b", NULL, "f", NULL, EVENT_ARG, 4 },
		{ "uprobe:/a:args", EVENT_CLASS_FUNCTION, "/a", NULL, "args", NULL, EVENT_ONE, 0 },
		{ "uprobe:/a:f:arg1x", EVENT_CLASS_FUNCTION, "/a:f", NULL, "arg1x", NULL, EVENT_ONE, 0 },
		{ "usdt:/usr/bin/python3:python:gc__start", EVENT_CLASS_PROBE, "/usr/bin/python3", "python", "gc__start", NULL, EVENT_ONE, 0 },
		{ "usdt:/a:b:c:arg12", EVENT_CLASS_PROBE, "/a", "b", "c", NULL, EVENT_ARG, 11 },
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(events_release) struct event_list list = { 0 };
		const struct event *e;

		if (events_add(&list, cases[i].text, &by_default) < 0)
			fail_msg("%s: %s", cases[i].text, err_message(-EINVAL));
		e = &list.items[0];
		assert_text(cases[i].text, e->name, cases[i].text);
		assert_text(cases[i].text, e->where, cases[i].where);
		assert_text(cases[i].text, e->provider, cases[i].provider);
		assert_text(cases[i].text, e->what, cases[i].what);
		assert_text(cases[i].text, e->field, cases[i].field);
		if (e->class != cases[i].class || e->config.value != cases[i].value ||
		    e->config.arg != cases[i].arg || e->unit != UNIT_COUNT || e->config.period != 1)
			fail_msg("%s: class %d, value %d of %d", cases[i].text, e->class,
				 e->config.value, e->config.arg);
	}
}

static void test_events_add_refuses(void **state)
{
	static const struct {
		const char *text;
		int want;
	} cases[] = {
		{ "", -ENOENT },
		{ "page_faults", -ENOENT },
		{ ":", -EINVAL },
		{ "sched:", -EINVAL },
		{ ":sched_switch", -EINVAL },
		{ "../../etc:passwd", -EINVAL },
		{ "..:sched_switch", -EINVAL },
		{ "sched:..", -EINVAL },
		{ "sched:a/b", -EINVAL },
		{ "sched:sched_switch:", -EINVAL },
		{ "sched:sched_switch:a:b", -EINVAL },
		{ "uprobe:", -EINVAL },
		{ "uprobe:f", -EINVAL },
		{ "uprobe:/a:", -EINVAL },
		{ "uprobe::f", -EINVAL },
		{ "uprobe:f:arg1", -EINVAL },
		{ "uprobe:/a:f:arg0", -EINVAL },
		{ "uprobe:/a:f:arg6", -EINVAL },
		{ "uprobe:/a:f:arg99999999999999999999", -EINVAL },
		{ "usdt:/a:b", -EINVAL },
		{ "usdt::b:c", -EINVAL },
		{ "usdt:/a:b:c:arg13", -EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(events_release) struct event_list list = { 0 };
		int got = events_add(&list, cases[i].text, &by_default);

		if (got != cases[i].want || list.len)
			fail_msg("%s: got %d, want %d", cases[i].text, got, cases[i].want);
	}
}

static void test_events_add_refuses_what_is_there(void **state)
{
	_cleanup_(events_release) struct event_list list = { 0 };
	char text[32];

	(void)state;
	assert_int_equal(events_add(&list, "faults", &by_default), 0);
	assert_int_equal(events_add(&list, "page-faults", &by_default), -EINVAL);
	for (int i = 1; i < EVENTS_MAX; i++) {
		snprintf(text, sizeof(text), "group:name%d", i);
		assert_int_equal(events_add(&list, text, &by_default), 0);
	}
	assert_int_equal(events_add(&list, "group:one_more", &by_default), -EOVERFLOW);
	assert_int_equal(events_add_memory(&list), -EOVERFLOW);
}

static void test_events_add_has_a_rate_where_there_are_many(void **state)
{
	static const struct {
		const char *text;
		struct event_rate rate;
		const char *name;
		enum sample_unit unit;
		uint32_t freq_hz;
		uint64_t period;
		enum event_value value;
	} cases[] = {
		/* clang-format off */
		{ "page-faults", { 0, 99 }, "page-faults", UNIT_COUNT, 0, 1, EVENT_ONE },
		{ "faults", { 100, 99 }, "page-faults", UNIT_COUNT, 0, 100, EVENT_ONE },
		{ "cs", { 0, 99 }, "context-switches", UNIT_COUNT, 0, 1, EVENT_ONE },
		{ "cpu-clock", { 0, 100 }, "cpu-clock", UNIT_NS, 0, 10000000, EVENT_ONE },
		{ "task-clock", { 1000000, 100 }, "task-clock", UNIT_NS, 0, 1000000, EVENT_ONE },
		{ "cpu-cycles", { 0, 99 }, "cycles", UNIT_COUNT, 99, 1, EVENT_PERIOD },
		{ "LLC-load-misses", { 10000, 99 }, "LLC-load-misses", UNIT_COUNT, 0, 10000, EVENT_ONE },
		{ "sched:sched_switch", { 7, 99 }, "sched:sched_switch", UNIT_COUNT, 0, 7, EVENT_ONE },
		/* clang-format on */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(events_release) struct event_list list = { 0 };
		const struct event *e;

		assert_int_equal(events_add(&list, cases[i].text, &cases[i].rate), 0);
		e = &list.items[0];
		assert_text(cases[i].text, e->name, cases[i].name);
		if (e->unit != cases[i].unit || e->freq_hz != cases[i].freq_hz ||
		    e->config.period != cases[i].period || e->config.value != cases[i].value)
			fail_msg("%s: %u Hz, period %u, value %d", cases[i].text, e->freq_hz,
				 (unsigned int)e->config.period, e->config.value);
	}
}

static void test_event_rows_have_one_name_each(void **state)
{
	(void)state;
	for (size_t i = 0; i < event_rows_count; i++) {
		const struct event_row *row = &event_rows[i];

		assert_true(*row->name && *row->words && !strchr(row->name, ':'));
		for (size_t j = 0; j < i; j++)
			if (!strcmp(row->name, event_rows[j].name) ||
			    (row->type == event_rows[j].type &&
			     row->config == event_rows[j].config))
				fail_msg("%s: twice", row->name);
	}
}

static const char format[] = "name: sched_switch\nID: 313\nformat:\n"
			     "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			     "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
			     "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
			     "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
			     "\tfield:__data_loc char[] name;\toffset:28;\tsize:4;\tsigned:0;\n"
			     "\tfield:const char * path;\toffset:32;\tsize:8;\tsigned:0;\n"
			     "\tfield:long size;\toffset:40;\tsize:8;\tsigned:1;\n"
			     "\tfield:u8 torn;\toffset:48;\n"
			     "\tfield:struct x odd;\toffset:56;\tsize:24;\tsigned:0;\n"
			     "\tfield:int far;\toffset:70000;\tsize:4;\tsigned:0;\n"
			     "\nprint fmt: \"field:x\", REC->prev_pid";

static void test_tracefs_parse_field(void **state)
{
	static const struct {
		const char *field;
		int want;
		struct tracefs_field is;
	} cases[] = {
		{ "common_type", 0, { 0, 2, false } },
		{ "prev_pid", 0, { 24, 4, true } },
		{ "path", 0, { 32, 8, false } },
		{ "size", 0, { 40, 8, true } },
		{ "prev_comm", -EINVAL, { 0 } },
		{ "name", -EINVAL, { 0 } },
		{ "torn", -EINVAL, { 0 } },
		{ "odd", -EINVAL, { 0 } },
		{ "far", -EINVAL, { 0 } },
		{ "pid", -ENOENT, { 0 } },
		{ "x", -ENOENT, { 0 } },
		{ "", -ENOENT, { 0 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tracefs_field is = { 0 };
		int got = tracefs_parse_field(format, cases[i].field, &is);

		if (got != cases[i].want || is.offset != cases[i].is.offset ||
		    is.bytes != cases[i].is.bytes || is.is_signed != cases[i].is.is_signed)
			fail_msg("%s: %d: %u bytes at %u", cases[i].field, got, is.bytes,
				 is.offset);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events_add_takes_them_apart),
		cmocka_unit_test(test_events_add_refuses),
		cmocka_unit_test(test_events_add_refuses_what_is_there),
		cmocka_unit_test(test_events_add_has_a_rate_where_there_are_many),
		cmocka_unit_test(test_event_rows_have_one_name_each),
		cmocka_unit_test(test_tracefs_parse_field),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
