/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/services.h"

#define MAX 40
#define OWN (MAX / SERVICES_OWNER_SHARE)
#define BEGIN_NS 5000000000ULL

enum { ALICE = 1, MALLORY = 2 };

static struct services *new_services(void)
{
	struct services *s;

	assert_int_equal(services_new(MAX, &s), 0);
	return s;
}

/* How many of so many new services of an owner, from this identity on, have a place. */
static unsigned int flood(struct services *s, uint64_t owner, uint64_t from, unsigned int count,
			  uint64_t now_ns)
{
	unsigned int admitted = 0;

	for (unsigned int i = 0; i < count; i++)
		admitted += services_admit(s, from + i, owner, now_ns);
	return admitted;
}

static void test_an_owner_has_a_part_of_the_places(void **state)
{
	_cleanup_(services_freep) struct services *s = new_services();

	(void)state;
	assert_int_equal(flood(s, MALLORY, 1000, 500, BEGIN_NS), OWN);
	assert_true(services_admit(s, 1, ALICE, BEGIN_NS));
	assert_int_equal(flood(s, SERVICES_NO_OWNER, 5000, 500, BEGIN_NS), MAX - OWN - 1);
	assert_false(services_admit(s, 2, ALICE, BEGIN_NS));
}

static void test_who_was_there_first_stays(void **state)
{
	_cleanup_(services_freep) struct services *s = new_services();

	(void)state;
	assert_true(services_admit(s, 1, ALICE, BEGIN_NS));
	for (uint64_t window = 0; window < 1000; window++) {
		uint64_t now = BEGIN_NS + window * 15000000000ULL;

		flood(s, MALLORY, 1000 + 100 * window, 100, now);
		assert_true(services_admit(s, 1, ALICE, now));
		assert_true(services_admit(s, 2 + window % 3, ALICE, now));
	}
}

static void test_places_come_back_after_an_hour(void **state)
{
	_cleanup_(services_freep) struct services *s = new_services();

	(void)state;
	assert_int_equal(flood(s, MALLORY, 1000, 500, BEGIN_NS), OWN);
	assert_int_equal(flood(s, MALLORY, 2000, 500, BEGIN_NS + SERVICES_KEPT_NS - 1), 0);
	assert_int_equal(flood(s, MALLORY, 3000, 500, BEGIN_NS + SERVICES_KEPT_NS), OWN);
}

static void test_places_are_kept_with_another_configuration(void **state)
{
	_cleanup_(services_freep) struct services *before = new_services(), *s = new_services();

	(void)state;
	assert_true(services_admit(before, 1, ALICE, BEGIN_NS));
	services_take(s, before);
	assert_int_equal(flood(s, SERVICES_NO_OWNER, 1000, 500, BEGIN_NS), MAX - 1);
	assert_true(services_admit(s, 1, ALICE, BEGIN_NS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_owner_has_a_part_of_the_places),
		cmocka_unit_test(test_who_was_there_first_stays),
		cmocka_unit_test(test_places_come_back_after_an_hour),
		cmocka_unit_test(test_places_are_kept_with_another_configuration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
