/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "collect/listing.h"

/* A row of the kernel's: a pid, how often it began another program, and when it was started. */
struct row {
	uint32_t pid, exec_id;
	uint64_t start_ns;
};

/* Its identity, and since when it is there, as this test has them. */
static uint64_t identity(const struct row *row)
{
	return row->pid * 100 + row->exec_id * 10 + row->start_ns;
}

/* Looks up who is not known yet, as of time `number`. How many that were. */
static unsigned int list(struct listing *l, const struct row *rows, size_t count, uint64_t number)
{
	unsigned int asked = 0;

	assert_int_equal(listing_begin(l), 0);
	for (size_t i = 0; i < count; i++) {
		const struct row *row = &rows[i];
		const struct listed made = { .pid = row->pid,
					     .exec_id = row->exec_id,
					     .start_ns = row->start_ns,
					     .process = identity(row),
					     .since_ns = number };

		if (listing_find(l, row->pid, row->exec_id, row->start_ns))
			continue;
		assert_int_equal(listing_add(l, &made), 0);
		asked++;
	}
	return asked;
}

#define A               \
	{               \
		7, 0, 1 \
	}
#define A_AFTER_EXEC    \
	{               \
		7, 1, 1 \
	}
#define A_OF_ANOTHER    \
	{               \
		7, 0, 2 \
	} /* the pid is used again */
#define B               \
	{               \
		8, 0, 1 \
	}

static void test_listing_asks_once_and_forgets_who_is_gone(void **state)
{
	static const struct {
		const char *name;
		struct row rows[4];
		unsigned int asked;
		size_t held;
		struct row whose; /* of whom a sweep comes then, and since when it is there */
		uint64_t since;
	} steps[] = {
		{ "all are new", { A, B }, 2, 2, A, 1 },
		{ "none is", { B, A }, 0, 2, B, 1 },
		{ "another program in its place, a late sweep of the one before",
		  { A_AFTER_EXEC, B },
		  1,
		  3,
		  A,
		  1 },
		{ "and of the new one", { A_AFTER_EXEC, B }, 0, 3, A_AFTER_EXEC, 3 },
		{ "the one before is forgotten", { A_AFTER_EXEC, B }, 0, 2, A, 0 },
		{ "gone, a late sweep", { B }, 0, 2, A_AFTER_EXEC, 3 },
		{ "its pid used again", { B, A_OF_ANOTHER }, 1, 3, A_OF_ANOTHER, 7 },
		{ "one was not listed once", { A_OF_ANOTHER }, 0, 2, B, 1 },
		{ "and is known still", { A_OF_ANOTHER, B }, 0, 2, B, 1 },
		{ "nobody", { { 0 } }, 0, 2, B, 1 },
		{ "nobody for two", { { 0 } }, 0, 2, B, 1 },
		{ "nobody for three", { { 0 } }, 0, 0, B, 0 },
	};
	struct listing l = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		const struct listed *listed;
		size_t count = 0;
		unsigned int asked;
		uint64_t since;

		while (steps[i].rows[count].pid)
			count++;
		asked = list(&l, steps[i].rows, count, i + 1);
		listed = listing_get(&l, identity(&steps[i].whose));
		since = listed ? listed->since_ns : 0;
		if (asked != steps[i].asked || l.items.len != steps[i].held ||
		    since != steps[i].since)
			fail_msg("%s: asked for %u, holds %zu, there since %llu", steps[i].name,
				 asked, l.items.len, (unsigned long long)since);
	}
	listing_release(&l);
}

static void test_listing_end_is_of_who_is_listed(void **state)
{
	const struct row rows[] = { A, B };
	struct listing l = { 0 };

	(void)state;
	listing_end(&l, identity(&rows[0]), 5);
	assert_null(listing_get(&l, identity(&rows[0])));
	list(&l, rows, 2, 1);
	listing_end(&l, identity(&rows[0]), 5);
	assert_int_equal(listing_get(&l, identity(&rows[0]))->until_ns, 5);
	assert_int_equal(listing_get(&l, identity(&rows[1]))->until_ns, 0);
	list(&l, &rows[1], 1, 2);
	assert_int_equal(listing_get(&l, identity(&rows[0]))->until_ns, 5);
	listing_release(&l);
}

/* A machine that starts processes all day holds those of three listings. */
static void test_listing_does_not_grow(void **state)
{
	struct listing l = { 0 };

	(void)state;
	for (uint32_t number = 1; number <= 1000; number++) {
		struct row rows[50];

		for (uint32_t i = 0; i < 50; i++)
			rows[i] = (struct row){ number * 50 + i, 0, number };
		assert_int_equal(list(&l, rows, 50, number), 50);
		assert_true(l.items.len <= 150);
	}
	listing_release(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_listing_asks_once_and_forgets_who_is_gone),
		cmocka_unit_test(test_listing_end_is_of_who_is_listed),
		cmocka_unit_test(test_listing_does_not_grow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
