/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "collect/modes.h"
#include "collect/session.h"

static void test_modes_put_names_what_is_recorded(void **state)
{
	static const struct {
		unsigned int modes;
		const char *want;
	} cases[] = {
		{ MODE_CPU, "cpu" },
		{ MODE_WALL, "wall" },
		{ MODE_OFF_CPU, "off-cpu" },
		{ MODE_OFF_CPU | MODE_GIL, "off-cpu,gil" },
		{ MODE_GIL | MODE_EXCEPTION, "gil,exception" },
		{ MODE_WALL | MODE_MEMORY, "wall,memory" },
		{ MODE_CPU | MODE_EVENTS, "cpu" },
		{ MODE_EVENTS, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;

		assert_int_equal(modes_put(cases[i].modes, &text), 0);
		assert_string_equal(strbuf_str(&text), cases[i].want);
	}
}

static void test_modes_of_words_joins_them(void **state)
{
	unsigned int all = 0;

	(void)state;
	assert_int_equal(modes_of_words(0), 0);
	for (unsigned int i = 0; mode_words[i]; i++) {
		_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;

		all |= 1u << i;
		assert_int_equal(modes_put(modes_of_words(1u << i), &text), 0);
		assert_string_equal(strbuf_str(&text), mode_words[i]);
	}
	assert_int_equal(modes_of_words(all), MODE_WALL | MODE_GIL | MODE_EXCEPTION | MODE_MEMORY);
}

static void test_modes_parse_reads_what_modes_put_made(void **state)
{
	static const struct {
		const char *text;
		int r;
		unsigned int modes;
	} cases[] = {
		{ "cpu", 0, MODE_CPU },
		{ "wall", 0, MODE_WALL },
		{ "off-cpu,gil", 0, MODE_OFF_CPU | MODE_GIL },
		{ "memory,cpu", 0, MODE_CPU | MODE_MEMORY },
		{ "", -EINVAL, 0 },
		{ "cpu,", -EINVAL, 0 },
		{ "cp", -EINVAL, 0 },
		{ "cpux", -EINVAL, 0 },
		{ "wall,exception", -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned int modes = 0;

		if (modes_parse(cases[i].text, &modes) != cases[i].r || modes != cases[i].modes)
			fail_msg("'%s': %x", cases[i].text, modes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_modes_put_names_what_is_recorded),
		cmocka_unit_test(test_modes_of_words_joins_them),
		cmocka_unit_test(test_modes_parse_reads_what_modes_put_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
