/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/syscall.h>

#include "collect/wait_words.h"

static void test_wait_text_has_words_for_all(void **state)
{
	static const struct {
		unsigned int wait;
		uint16_t syscall;
		const char *want;
	} cases[] = {
		{ WAIT_READ_SOCKET, SYS_read, "read: socket" },
		{ WAIT_PROCESS, SYSCALL_NONE, "wait: process" },
		{ WAIT_LOCK_FILE, SYS_flock, "lock: file" },
		{ WAIT_OTHER, SYS_io_uring_enter, "other: io_uring_enter" },
		{ WAIT_OTHER, SYS_msgrcv, "other: msgrcv" },
		{ WAIT_OTHER, SYSCALL_NONE, "other" },
		{ WAIT_OTHER, 9999, "other" },
		{ WAIT_OF_CLASS(CLASS_READ), SYSCALL_NONE, "read" },
		{ WAIT_OF_CLASS(CLASS_OTHER), SYSCALL_NONE, "other" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(wait_text(cases[i].wait, cases[i].syscall).s, cases[i].want);
	for (unsigned int i = WAIT_NONE + 1; i < WAIT_WORDS; i++)
		assert_true(*wait_text(i, SYSCALL_NONE).s);
}

static void test_syscall_names_fit(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < UINT16_MAX; i++)
		if (syscall_name(i))
			assert_true(strlen(syscall_name(i)) + sizeof("other: ") < WAIT_TEXT_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wait_text_has_words_for_all),
		cmocka_unit_test(test_syscall_names_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
