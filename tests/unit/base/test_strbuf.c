/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/strbuf.h"

static void test_strbuf_appends_of_every_kind_add_up(void **state)
{
	_cleanup_(strbuf_releasep) struct strbuf b = STRBUF_INIT;

	(void)state;
	assert_string_equal(strbuf_str(&b), "");
	assert_int_equal(strbuf_puts(&b, "a"), 0);
	assert_int_equal(strbuf_putc(&b, ';'), 0);
	assert_int_equal(strbuf_append(&b, "x\0y", 3), 0);
	assert_int_equal(strbuf_appendf(&b, "%d-%s", 42, "z"), 0);
	assert_int_equal(b.len, 9);
	assert_memory_equal(strbuf_str(&b), "a;x\0y42-z", 10);
	strbuf_truncate(&b, 2);
	assert_string_equal(strbuf_str(&b), "a;");
	assert_int_equal(strbuf_append(&b, NULL, 0), 0);
	assert_int_equal(b.len, 2);
}

static void test_strbuf_grows_past_every_boundary(void **state)
{
	_cleanup_(strbuf_releasep) struct strbuf b = STRBUF_INIT;

	(void)state;
	for (unsigned int i = 0; i < 10000; i++) {
		assert_int_equal(strbuf_putc(&b, (char)('a' + i % 26)), 0);
		assert_true(b.cap > b.len);
	}
	for (unsigned int i = 0; i < 10000; i++)
		if (b.bytes[i] != (char)('a' + i % 26))
			fail_msg("byte %u is %d", i, b.bytes[i]);
	assert_int_equal(b.bytes[10000], 0);
}

static void test_strbuf_failure_sticks_and_keeps_the_text(void **state)
{
	_cleanup_(strbuf_releasep) struct strbuf b = STRBUF_INIT;

	(void)state;
	strbuf_puts(&b, "kept");
	assert_int_equal(strbuf_reserve(&b, SIZE_MAX), -ENOMEM);
	assert_int_equal(strbuf_puts(&b, "!"), -ENOMEM);
	assert_int_equal(strbuf_error(&b), -ENOMEM);
	assert_string_equal(strbuf_str(&b), "kept");
	assert_null(strbuf_take(&b));
	assert_int_equal(strbuf_puts(&b, "new"), 0);
	assert_string_equal(strbuf_str(&b), "new");
}

static void test_strbuf_take_hands_over(void **state)
{
	_cleanup_(freep) char *empty = NULL;
	_cleanup_(freep) char *s = NULL;
	struct strbuf b = STRBUF_INIT;

	(void)state;
	empty = strbuf_take(&b);
	assert_string_equal(empty, "");
	strbuf_puts(&b, "mine");
	s = strbuf_take(&b);
	assert_string_equal(s, "mine");
	assert_null(b.bytes);
	assert_int_equal(b.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strbuf_appends_of_every_kind_add_up),
		cmocka_unit_test(test_strbuf_grows_past_every_boundary),
		cmocka_unit_test(test_strbuf_failure_sticks_and_keeps_the_text),
		cmocka_unit_test(test_strbuf_take_hands_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
