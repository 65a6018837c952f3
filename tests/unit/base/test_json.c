/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

static FILE *stream;
static char *text;
static size_t text_size;

static void start(struct json *j)
{
	stream = open_memstream(&text, &text_size);
	assert_non_null(stream);
	json_init(j, stream);
}

static void expect(struct json *j, const char *name, const char *want)
{
	assert_int_equal(json_finish(j), 0);
	fclose(stream);
	if (strcmp(text, want))
		fail_msg("%s: got %s, want %s", name, text, want);
	free(text);
}

static void test_json_places_commas_and_brackets(void **state)
{
	struct json j;

	(void)state;
	start(&j);
	json_object(&j);
	json_key(&j, "a");
	json_u64(&j, UINT64_MAX);
	json_key(&j, "b");
	json_array(&j);
	json_i64(&j, INT64_MIN);
	json_object(&j);
	json_end(&j);
	json_array(&j);
	json_end(&j);
	json_bool(&j, true);
	json_bool(&j, false);
	json_null(&j);
	json_written(&j, "[1]", 3);
	json_end(&j);
	json_key(&j, "c\n");
	json_object(&j);
	json_key(&j, "d");
	json_string(&j, "");
	json_end(&j);
	json_end(&j);
	expect(&j, "nesting",
	       "{\"a\":18446744073709551615,\"b\":[-9223372036854775808,{},[],true,false,null,[1]],"
	       "\"c\\n\":{\"d\":\"\"}}");
}

static void test_json_array_lines_gives_each_element_a_line(void **state)
{
	struct json j;

	(void)state;
	start(&j);
	json_object(&j);
	json_key(&j, "rows");
	json_array_lines(&j);
	for (unsigned int i = 0; i < 2; i++) {
		json_array(&j);
		json_u64(&j, i);
		json_u64(&j, i);
		json_end(&j);
	}
	json_end(&j);
	json_key(&j, "empty");
	json_array_lines(&j);
	json_end(&j);
	json_end(&j);
	expect(&j, "lines", "{\"rows\":[\n[0,0],\n[1,1]\n],\"empty\":[]}");
}

static void test_json_nests_to_its_limit(void **state)
{
	char want[2 * JSON_MAX_DEPTH + 1];
	struct json j;

	(void)state;
	start(&j);
	for (int i = 0; i < JSON_MAX_DEPTH; i++) {
		want[i] = '[';
		want[2 * JSON_MAX_DEPTH - 1 - i] = ']';
		json_array(&j);
	}
	want[2 * JSON_MAX_DEPTH] = '\0';
	for (int i = 0; i < JSON_MAX_DEPTH; i++)
		json_end(&j);
	expect(&j, "depth", want);
}

static void test_json_string_rows(void **state)
{
#define BAD "\xef\xbf\xbd"
	static const struct {
		const char *name;
		const char *in;
		size_t len;
		const char *want;
	} cases[] = {
		{ "plain", "<module>", 8, "\"<module>\"" },
		{ "quote and backslash", "a\"b\\c", 5, "\"a\\\"b\\\\c\"" },
		{ "short escapes", "\n\r\t", 3, "\"\\n\\r\\t\"" },
		{ "control characters", "\0\x01\x1f\x7f", 4, "\"\\u0000\\u0001\\u001f\\u007f\"" },
		{ "script end", "</script><!--<", 14, "\"\\u003c/script>\\u003c!--<\"" },
		{ "two bytes", "\xc3\xa9", 2, "\"\xc3\xa9\"" },
		{ "four bytes", "\xf0\x9f\x90\x8d", 4, "\"\xf0\x9f\x90\x8d\"" },
		{ "line separators", "\xe2\x80\xa8\xe2\x80\xa9", 6, "\"\\u2028\\u2029\"" },
		{ "C1 controls", "\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0", 8,
		  "\"\\u0080\\u009b\\u009f\xc2\xa0\"" },
		{ "writing direction", "\xe2\x80\xae\xe2\x81\xa6\xe2\x80\x8e\xd8\x9c", 11,
		  "\"\\u202e\\u2066\\u200e\\u061c\"" },
		{ "byte order mark", "\xef\xbb\xbf", 3, "\"\\ufeff\"" },
		{ "noncharacters", "\xef\xbf\xbe\xef\xb7\x90\xf4\x8f\xbf\xbf", 10,
		  "\"\\ufffe\\ufdd0\\udbff\\udfff\"" },
		{ "a real U+FFFD", BAD, 3, "\"" BAD "\"" },
		{ "lone continuation", "a\x80z", 3, "\"a" BAD "z\"" },
		{ "overlong slash", "\xc0\xaf", 2, "\"" BAD BAD "\"" },
		{ "surrogate", "\xed\xa0\x80", 3, "\"" BAD BAD BAD "\"" },
		{ "beyond U+10FFFF", "\xf4\x90\x80\x80", 4, "\"" BAD BAD BAD BAD "\"" },
		{ "cut at the end", "\xe2\x82", 2, "\"" BAD "\"" },
		{ "cut, then text", "\xf0\x9f\x90x", 4, "\"" BAD "x\"" },
		{ "cut by a quote", "\xc3\"", 2, "\"" BAD "\\\"\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct json j;

		start(&j);
		json_string_len(&j, cases[i].in, cases[i].len);
		expect(&j, cases[i].name, cases[i].want);
	}
}

static void test_json_double_rows(void **state)
{
	static const struct {
		const char *name;
		double in;
		const char *want;
	} cases[] = {
		{ "whole", 2, "2" },
		{ "shortest", 0.1, "0.1" },
		{ "needs 17 digits", 0.1 + 0.2, "0.30000000000000004" },
		{ "negative zero", -0.0, "-0" },
		{ "large", 1e300, "1e+300" },
		{ "fifteen digits", -999999999999999.0, "-999999999999999" },
		{ "sixteen digits", 1e15, "1e+15" },
		{ "sixteen digits, all of use", 1234567890123456.0, "1234567890123456" },
		{ "not a number", NAN, "null" },
		{ "infinite", -INFINITY, "null" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct json j;

		start(&j);
		json_double(&j, cases[i].in);
		expect(&j, cases[i].name, cases[i].want);
	}
}

static void test_json_float_rows(void **state)
{
	static const struct {
		const char *name;
		float in;
		const char *want;
	} cases[] = {
		{ "whole", 2, "2" },
		{ "not the double next to it", 0.1f, "0.1" },
		{ "six digits", 1.0f / 3, "0.333333" },
		{ "small", 4.094e-22f, "4.094e-22" },
		{ "large", 1.5e6f, "1500000" },
		{ "infinite", INFINITY, "null" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct json j;

		start(&j);
		json_float(&j, cases[i].in);
		expect(&j, cases[i].name, cases[i].want);
	}
}

static void test_json_finish_reports_a_stream_that_failed(void **state)
{
	struct json j;
	FILE *full = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(full);
	setvbuf(full, NULL, _IONBF, 0);
	json_init(&j, full);
	json_string(&j, "lost");
	assert_int_equal(json_finish(&j), -EIO);
	fclose(full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json_places_commas_and_brackets),
		cmocka_unit_test(test_json_array_lines_gives_each_element_a_line),
		cmocka_unit_test(test_json_nests_to_its_limit),
		cmocka_unit_test(test_json_string_rows),
		cmocka_unit_test(test_json_double_rows),
		cmocka_unit_test(test_json_float_rows),
		cmocka_unit_test(test_json_finish_reports_a_stream_that_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
