/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "inspect/number.h"
#include "inspect/quote.h"
#include "inspect/secret.h"

static void expect(const char *name, struct strbuf *got, const char *want)
{
	if (strcmp(strbuf_str(got), want))
		fail_msg("%s: got %s, want %s", name, strbuf_str(got), want);
	strbuf_release(got);
}

/* What repr() of CPython 3.13 gives. */
static void test_quote_text(void **state)
{
	static const struct {
		const char *name;
		uint32_t text[8];
		const char *want;
	} cases[] = {
		{ "plain", { 'a', ' ', '~' }, "'a ~'" },
		{ "empty", { 0 }, "''" },
		{ "a single quote", { 'i', '\'', 's' }, "\"i's\"" },
		{ "both quotes", { '\'', '"' }, "'\\'\"'" },
		{ "a backslash", { '\\' }, "'\\\\'" },
		{ "lines", { '\t', '\n', '\r' }, "'\\t\\n\\r'" },
		{ "escape", { 0x1b, 0x7f, 0x9b }, "'\\x1b\\x7f\\x9b'" },
		{ "letters", { 0xe9, 0x20ac, 0x1f40d }, "'\u00e9\u20ac\U0001f40d'" },
		{ "directions", { 0x202e, 0x2066, 0x200f }, "'\\u202e\\u2066\\u200f'" },
		{ "nothing to see",
		  { 0xad, 0x200b, 0xfeff, 0xe0041 },
		  "'\\xad\\u200b\\ufeff\\U000e0041'" },
		{ "lone surrogate", { 0xdc80 }, "'\\udc80'" },
		{ "no code point", { 0x110000, UINT32_MAX }, "'\\U00110000\\Uffffffff'" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct strbuf out = STRBUF_INIT;
		size_t len = 0;

		while (len < 8 && cases[i].text[len])
			len++;
		assert_int_equal(quote_text(&out, cases[i].text, 4 * len, 4), 0);
		expect(cases[i].name, &out, cases[i].want);
	}
}

static void test_quote_text_of_each_width(void **state)
{
	struct strbuf out = STRBUF_INIT;

	(void)state;
	quote_text(&out, "a\xe9", 2, 1);
	expect("Latin-1", &out, "'a\u00e9'");
	quote_text(&out, (uint16_t[]){ 0x3b1, 'b' }, 4, 2);
	expect("16 bits", &out, "'\u03b1b'");
	quote_text(&out, (uint16_t[]){ 0x3b1, 'b' }, 3, 2);
	expect("half a character", &out, "'\u03b1'");
	quote_text(&out, (uint16_t[]){ 0xfdd0, 0xfffe }, 4, 2);
	expect("noncharacters", &out, "'\\ufdd0\\ufffe'");
	quote_text(&out, (uint32_t[]){ 0x1ffff }, 4, 4);
	expect("a noncharacter of another plane", &out, "'\\U0001ffff'");
	quote_name(&out, "a\n'b'\\", 6, 1);
	expect("a name", &out, "a\\n'b'\\\\");
	quote_bytes(&out, "a\0\xff'\n", 5);
	expect("bytes", &out, "b\"a\\x00\\xff'\\n\"");
}

static void test_number_float(void **state)
{
	static const struct {
		double value;
		const char *want;
	} cases[] = {
		{ 0.0, "0.0" },
		{ -0.0, "-0.0" },
		{ 1.0, "1.0" },
		{ 0.1, "0.1" },
		{ 1.0 / 3, "0.3333333333333333" },
		{ 100.0, "100.0" },
		{ 123456.789, "123456.789" },
		{ 9999999999999998.0, "9999999999999998.0" },
		{ 1e16, "1e+16" },
		{ 1.5e300, "1.5e+300" },
		{ 0.0001, "0.0001" },
		{ 0.00001, "1e-05" },
		{ 5e-324, "5e-324" },
		{ 1.7976931348623157e308, "1.7976931348623157e+308" },
		{ -2.5, "-2.5" },
		{ 0x1p-24, "5.960464477539063e-08" }, /* of 16 digits the nearest reads otherwise */
		{ 0x1p-44, "5.684341886080802e-14" },
		{ __builtin_inf(), "inf" },
		{ -__builtin_inf(), "-inf" },
		{ __builtin_nan(""), "nan" },
	};
	struct strbuf out = STRBUF_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		number_float(&out, cases[i].value, true);
		expect("float", &out, cases[i].want);
	}
	number_float(&out, 2.0, false);
	expect("part of a complex", &out, "2");
}

static void test_number_digits(void **state)
{
	static uint32_t most[NUMBER_DIGITS_MAX];
	static const struct {
		const char *name;
		uint32_t digits[4];
		size_t count, shown;
		const char *want;
	} cases[] = {
		{ "none", { 0 }, 0, 10, "0" },
		{ "zeros", { 0, 0 }, 2, 10, "0" },
		{ "one", { 7 }, 1, 10, "7" },
		{ "two", { 0, 1 }, 2, 10, "1073741824" },
		{ "three", { 0, 0, 1 }, 3, 30, "1152921504606846976" },
		{ "cut", { 0, 0, 1 }, 3, 4, "1152...+15" },
		{ "zeros inside", { 1000000000 & 0x3fffffff, 0 }, 2, 10, "1000000000" },
	};
	struct strbuf out = STRBUF_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint32_t digits[4];

		memcpy(digits, cases[i].digits, sizeof(digits));
		number_digits(&out, digits, cases[i].count, cases[i].shown);
		expect(cases[i].name, &out, cases[i].want);
	}
	for (size_t i = 0; i < NUMBER_DIGITS_MAX; i++)
		most[i] = (1u << 30) - 1;
	number_digits(&out, most, NUMBER_DIGITS_MAX, 3); /* 2^14400 - 1 */
	expect("the longest", &out, "679...+4332");
}

static void test_secret_is_name(void **state)
{
	static const struct {
		const char *name;
		bool want;
	} cases[] = {
		{ "password", true },
		{ "PASSWORD", true },
		{ "db_passwd", true },
		{ "token", true },
		{ "accessToken", true },
		{ "refresh_tokens", true },
		{ "tokenizer", false },
		{ "token_count", false },
		{ "client_secret", true },
		{ "X-Api-Key", true },
		{ "apikey", true },
		{ "Authorization", true },
		{ "Set-Cookie", true },
		{ "private_key", true },
		{ "key", false },
		{ "author", false },
		{ "pwd", true },
		{ "cwd", false },
		{ "", false },
		{ "session_id", true },
		{ "Proxy-Authorization", true },
		{ "aws_access_key_id", true },
	};
	char longest[400];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (secret_is_name(cases[i].name, strlen(cases[i].name)) != cases[i].want)
			fail_msg("%s", cases[i].name);
	memset(longest, 'x', sizeof(longest));
	memcpy(longest + 392, "password", 8);
	assert_true(secret_is_name(longest, sizeof(longest)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quote_text),
		cmocka_unit_test(test_quote_text_of_each_width),
		cmocka_unit_test(test_number_float),
		cmocka_unit_test(test_number_digits),
		cmocka_unit_test(test_secret_is_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
