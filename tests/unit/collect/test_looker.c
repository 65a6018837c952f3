/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "collect/look_budget.h"
#include "collect/looker.h"

#define PATIENCE_NS (30 * NS_PER_SECOND)
#define ATTEMPTS 100000
#define READ_BYTES (LOOK_BUDGET_BYTES / 16)

/* Our own process is the target. */

/* A reader process may get no CPU within the time of a look: then the caller asks again. */
static int read_there(struct looker *l, const char *there, char *copy, size_t len, size_t steady)
{
	uint64_t until_ns = monotonic_ns() + PATIENCE_NS;
	int r;

	do
		r = looker_read(l, getpid(), (uintptr_t)there, copy, len, steady);
	while (r == -EBUSY && !looker_refused(l) && monotonic_ns() < until_ns);
	return r;
}

static void test_looker_read_copies_memory(void **state)
{
	_cleanup_(looker_freep) struct looker *l = NULL;
	const char there[] = "what is there";
	char copy[sizeof(there)];

	(void)state;
	assert_int_equal(looker_new(&l), 0);
	assert_int_equal(read_there(l, there, copy, sizeof(copy), 1), 0);
	assert_string_equal(copy, there);
	assert_int_equal(read_there(l, NULL, copy, sizeof(copy), 0), -EFAULT);
	assert_int_equal(looker_refused(l), 0);
	assert_false(looker_has_late(l));
}

/* By bytes, or by time where the machine is slow. */
static void test_looker_refuses_what_is_beyond_a_budget(void **state)
{
	_cleanup_(looker_freep) struct looker *l = NULL;
	_cleanup_(freep) char *there = calloc(1, READ_BYTES);
	_cleanup_(freep) char *copy = malloc(READ_BYTES);
	struct sighting late;
	int r = 0;

	(void)state;
	assert_true(there && copy);
	assert_int_equal(looker_new(&l), 0);
	for (int i = 0; i < ATTEMPTS && !looker_refused(l); i++) {
		r = looker_read(l, getpid(), (uintptr_t)there, copy, READ_BYTES, 0);
		assert_false(looker_next(l, &late));
	}
	assert_int_equal(looker_refused(l), 1);
	assert_int_equal(r, -EBUSY);
	assert_string_equal(err_message(r), "looks at it take too long, or too much");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_looker_read_copies_memory),
		cmocka_unit_test(test_looker_refuses_what_is_beyond_a_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
