/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "base/err.h"
#include "base/parallel.h"

struct work {
	unsigned int *times;
	int *errors;
};

static void count_turn(void *work, size_t i)
{
	struct work *w = work;

	w->times[i]++;
	w->errors[i] = err_set(-(int)i - 1, "turn %zu", i);
}

static void test_parallel_run_does_each_once(void **state)
{
	static const size_t counts[] = { 0, 1, 2, PARALLEL_MAX, PARALLEL_MAX + 1, 10000 };

	(void)state;
	for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
		struct work w = { calloc(counts[c] + 1, sizeof(*w.times)),
				  calloc(counts[c] + 1, sizeof(*w.errors)) };

		assert_non_null(w.times);
		assert_non_null(w.errors);
		parallel_run(counts[c], count_turn, &w);
		for (size_t i = 0; i < counts[c]; i++) {
			assert_int_equal(w.times[i], 1);
			assert_int_equal(w.errors[i], -(int)i - 1);
		}
		assert_int_equal(w.times[counts[c]], 0);
		free(w.times);
		free(w.errors);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parallel_run_does_each_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
