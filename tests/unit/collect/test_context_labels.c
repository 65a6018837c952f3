/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "collect/context_labels.h"

#define LONGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void test_context_labels_add_reads_what_is_asked_for(void **state)
{
	static const struct {
		const char *text, *name, *variable; /* NULL: refused, */
		int error;                          /* by this */
	} cases[] = {
		{ "route=contextvar:route", "route", "route", 0 },
		{ "http.route=contextvar:my route", "http.route", "my route", 0 },
		{ "_a-1=contextvar:" LONGEST, "_a-1", LONGEST, 0 },
		{ "a=contextvar:b=c", "a", "b=c", 0 },
		{ "a=contextvar:" LONGEST "x", NULL, NULL, -EINVAL },
		{ "a=contextvar:\xc3\xa4", NULL, NULL, -EINVAL },
		{ "a=contextvar:", NULL, NULL, -EINVAL },
		{ "a=contextvar", NULL, NULL, -EINVAL },
		{ "a=contex", NULL, NULL, -EINVAL },
		{ "a=global:x", NULL, NULL, -EINVAL },
		{ "a", NULL, NULL, -EINVAL },
		{ "", NULL, NULL, -EINVAL },
		{ "=contextvar:x", NULL, NULL, -EINVAL },
		{ "1a=contextvar:x", NULL, NULL, -EINVAL },
		{ "a b=contextvar:x", NULL, NULL, -EINVAL },
		{ "wait=contextvar:x", NULL, NULL, -EEXIST },
		{ "handles-exception=contextvar:x", NULL, NULL, -EEXIST },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct context_label_list list = { 0 };
		int r = context_labels_add(&list, cases[i].text);

		if (r != cases[i].error || list.len != (r ? 0 : 1))
			fail_msg("'%s': %d, %zu labels", cases[i].text, r, list.len);
		if (r < 0 && !*err_message(r))
			fail_msg("'%s': no message", cases[i].text);
		if (!r && (strcmp(list.items[0].name, cases[i].name) != 0 ||
			   list.items[0].config.name_bytes != strlen(cases[i].variable) ||
			   memcmp(list.items[0].config.name, cases[i].variable,
				  strlen(cases[i].variable)) != 0))
			fail_msg("'%s': another name", cases[i].text);
		context_labels_release(&list);
	}
}

static void test_context_labels_add_knows_opentelemetry(void **state)
{
	static const char variable[] = "current_context";
	static const struct {
		const char *name;
		enum label_part part;
		unsigned id_bytes;
	} want[] = { { "trace_id", LABEL_TRACE_ID, 16 }, { "span_id", LABEL_SPAN_ID, 8 } };
	struct context_label_list list = { 0 };

	(void)state;
	assert_int_equal(context_labels_add(&list, "otel"), 0);
	assert_int_equal(list.len, 2);
	for (size_t i = 0; i < list.len; i++) {
		assert_string_equal(list.items[i].name, want[i].name);
		assert_int_equal(list.items[i].config.part, want[i].part);
		assert_int_equal(list.items[i].id_bytes, want[i].id_bytes);
		assert_int_equal(list.items[i].config.name_bytes, strlen(variable));
		assert_memory_equal(list.items[i].config.name, variable, strlen(variable));
	}
	assert_int_equal(context_labels_add(&list, "otel"), -EEXIST);
	assert_int_equal(context_labels_add(&list, "span_id=contextvar:x"), -EEXIST);
	assert_int_equal(context_labels_add(&list, "otel=contextvar:x"), 0);
	context_labels_release(&list);
}

static void test_context_labels_add_takes_each_name_once(void **state)
{
	struct context_label_list list = { 0 };
	char text[32];

	(void)state;
	assert_int_equal(context_labels_add(&list, "a=contextvar:x"), 0);
	assert_int_equal(context_labels_add(&list, "a=contextvar:y"), -EEXIST);
	assert_int_equal(context_labels_add(&list, "b=contextvar:x"), 0);
	for (int i = 2; i < CONTEXT_LABELS_MAX; i++) {
		snprintf(text, sizeof(text), "l%d=contextvar:x", i);
		assert_int_equal(context_labels_add(&list, text), 0);
	}
	assert_int_equal(context_labels_add(&list, "c=contextvar:x"), -EOVERFLOW);
	assert_int_equal(list.len, CONTEXT_LABELS_MAX);
	context_labels_release(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_context_labels_add_reads_what_is_asked_for),
		cmocka_unit_test(test_context_labels_add_knows_opentelemetry),
		cmocka_unit_test(test_context_labels_add_takes_each_name_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
