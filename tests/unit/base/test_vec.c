/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "base/vec.h"

struct pair {
	uint32_t a, b;
};

static void test_vec_push_keeps_order_while_growing(void **state)
{
	VEC(struct pair) v = VEC_INIT;

	(void)state;
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(vec_push(&v, ((struct pair){ i, i * 2 })), 0);
	assert_int_equal(v.len, 1000);
	for (uint32_t i = 0; i < 1000; i++)
		if (v.items[i].a != i || v.items[i].b != i * 2)
			fail_msg("item %u is {%u, %u}", i, v.items[i].a, v.items[i].b);
	vec_release(&v);
	assert_null(v.items);
	assert_int_equal(v.len, 0);
}

static void test_vec_push_evaluates_its_item_before_moving(void **state)
{
	VEC(uint32_t) v = VEC_INIT;

	(void)state;
	assert_int_equal(vec_push(&v, 7), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(vec_push(&v, v.items[0]), 0);
	assert_int_equal(v.items[100], 7);
	vec_release(&v);
}

static void test_vec_append_copies_a_run(void **state)
{
	static const uint32_t run[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
	VEC(uint32_t) v = VEC_INIT;

	(void)state;
	assert_int_equal(vec_append(&v, run, 0), 0);
	assert_int_equal(vec_append(&v, run, 10), 0);
	assert_int_equal(vec_append(&v, run + 8, 2), 0);
	assert_int_equal(v.len, 12);
	assert_memory_equal(v.items, run, sizeof(run));
	assert_int_equal(v.items[11], 10);
	vec_release(&v);
}

static void test_vec_refuses_sizes_that_overflow(void **state)
{
	VEC(struct pair) v = VEC_INIT;

	(void)state;
	assert_int_equal(vec_push(&v, ((struct pair){ 1, 2 })), 0);
	assert_int_equal(vec_reserve(&v, SIZE_MAX), -ENOMEM);
	assert_int_equal(vec_reserve(&v, SIZE_MAX / sizeof(struct pair)), -ENOMEM);
	assert_int_equal(vec_reserve(&v, PTRDIFF_MAX / sizeof(struct pair)), -ENOMEM);
	assert_int_equal(v.len, 1);
	assert_int_equal(v.items[0].b, 2);
	vec_release(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vec_push_keeps_order_while_growing),
		cmocka_unit_test(test_vec_push_evaluates_its_item_before_moving),
		cmocka_unit_test(test_vec_append_copies_a_run),
		cmocka_unit_test(test_vec_refuses_sizes_that_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
