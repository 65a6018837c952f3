/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/digest.h"

/* FIPS 180-2's "abc": ba7816bf 8f01cfea... */
static void test_digest_of_is_the_start_of_sha256(void **state)
{
	(void)state;
	assert_true(digest_of("abc", 3) == UINT64_C(0xeacf018fbf1678ba));
	assert_true(digest_of("abd", 3) != digest_of("abc", 3));
	assert_true(digest_of(NULL, 0) == UINT64_C(0x141cfc9842c4b0e3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_digest_of_is_the_start_of_sha256),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
