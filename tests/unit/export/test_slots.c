/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "export/slots.h"

static struct profile *profile_with_stacks(uint32_t count)
{
	struct frame f = { .line = 1 };
	struct profile *p;
	uint32_t frame, id;

	assert_int_equal(profile_new(&p), 0);
	for (uint32_t i = 1; i <= count; i++) {
		f.line = i;
		assert_int_equal(frametab_intern(p->frames, &f, &frame), 0);
		assert_int_equal(stacktab_intern(p->stacks, 0, frame, &id), 0);
	}
	return p;
}

static void add(struct slots *s, struct profile *p, uint32_t stack, uint64_t time_ns,
		uint32_t weight)
{
	struct sample sample = { .stack = stack, .time_ns = time_ns, .weight = weight };

	assert_int_equal(profile_add_sample(p, &sample), 0);
	assert_int_equal(slots_add(s, p), 0);
	profile_clear_samples(p);
}

static size_t rows_of(const struct slots *s, uint32_t stacks, struct slot_row **rows)
{
	size_t count;

	assert_int_equal(slots_rows_by(s, NULL, stacks, rows, &count), 0);
	return count;
}

static void test_slots_rows_are_sorted_and_summed(void **state)
{
	static const struct slot_row want[] = { { 1, 0, 0, 5, 0 },
						{ 1, 0, 320, 2, 0 },
						{ 2, 0, 0, 1, 0 } };
	struct profile *p = profile_with_stacks(2);
	struct slots s = { 0 };
	struct slot_row *rows;

	(void)state;
	assert_int_equal(slots_begin_run(&s, SLOT_CURRENT, "x", 639), 0);
	add(&s, p, 2, 0, 1);
	add(&s, p, 1, 0, 2);
	add(&s, p, 1, 320, 2);
	add(&s, p, 1, 0, 3); /* back again: a second row until they are sorted */
	assert_int_equal(rows_of(&s, 3, &rows), 3);
	assert_memory_equal(rows, want, sizeof(want));
	assert_int_equal(slots_blocks_used(&s, s.runs.items), 321);
	free(rows);
	slots_release(&s);
	profile_free(p);
}

static void test_slots_rows_are_kept_apart_by_opcode(void **state)
{
	static const struct slot_row want[] = { { 1, 0, 0, 3, 0 },
						{ 1, 0, 0, 2, 7 },
						{ 1, 0, 0, 5, 9 } };
	static const uint32_t opcodes[] = { 9, 0, 7, 9, 0, 7, 9, 9, 0, 9 };
	struct profile *p = profile_with_stacks(1);
	struct slots s = { 0 };
	struct slot_row *rows;

	(void)state;
	assert_int_equal(slots_begin_run(&s, SLOT_CURRENT, "x", 639), 0);
	for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		struct sample sample = { .stack = 1, .weight = 1, .opcode = opcodes[i] };

		assert_int_equal(profile_add_sample(p, &sample), 0);
	}
	assert_int_equal(slots_add(&s, p), 0);
	assert_int_equal(rows_of(&s, 2, &rows), 3);
	assert_memory_equal(rows, want, sizeof(want));
	free(rows);
	slots_release(&s);
	profile_free(p);
}

static void test_slots_ticks_beyond_32_bits_take_several_rows(void **state)
{
	struct profile *p = profile_with_stacks(1);
	struct slots s = { 0 };
	struct slot_row *rows;
	uint64_t sum = 0;
	size_t count;

	(void)state;
	assert_int_equal(slots_begin_run(&s, SLOT_CURRENT, "x", SLOTS_NO_TIMES), 0);
	for (int i = 0; i < 3; i++)
		add(&s, p, 1, 0, UINT32_MAX);
	count = rows_of(&s, 2, &rows);
	for (size_t i = 0; i < count; i++)
		sum += rows[i].ticks;
	assert_true(sum == 3 * (uint64_t)UINT32_MAX);
	assert_int_equal(slots_blocks_used(&s, s.runs.items), 1);
	free(rows);
	slots_release(&s);
	profile_free(p);
}

static void test_slots_an_unknown_span_doubles(void **state)
{
	struct profile *p = profile_with_stacks(1);
	struct slots s = { 0 };
	struct slot_row *rows;

	(void)state;
	assert_int_equal(slots_begin_run(&s, SLOT_CURRENT, "x", 0), 0);
	add(&s, p, 1, 0, 1);
	add(&s, p, 1, 999999999, 1);  /* the last of one second */
	add(&s, p, 1, 3000000000, 1); /* so blocks are of four: 6.25 ms */
	assert_true(s.runs.items[0].span_ns == 4000000000);
	assert_int_equal(rows_of(&s, 2, &rows), 3);
	assert_int_equal(rows[0].slot, 0);
	assert_int_equal(rows[1].slot, 159);
	assert_int_equal(rows[2].slot, 480);
	free(rows);
	slots_release(&s);
	profile_free(p);
}

static void test_slots_runs_have_slots_of_their_own(void **state)
{
	struct profile *p = profile_with_stacks(1);
	struct slots s = { 0 };
	struct slot_row *rows;

	(void)state;
	assert_int_equal(slots_begin_run(&s, SLOT_BASE, "a", 639), 0);
	add(&s, p, 1, 5, 1);
	assert_int_equal(slots_begin_run(&s, SLOT_CURRENT, "b", 639), 0);
	add(&s, p, 1, 5, 1);
	assert_int_equal(rows_of(&s, 2, &rows), 2);
	assert_int_equal(rows[0].slot, 5);
	assert_int_equal(rows[1].slot, SLOTS_BLOCKS_MAX + 5);
	free(rows);
	slots_release(&s);
	profile_free(p);
}

static void test_slots_too_many_rows_make_longer_blocks(void **state)
{
	const uint32_t stacks = 60000;
	struct profile *p = profile_with_stacks(stacks);
	struct slots s = { 0 };
	struct slot_row *rows;
	uint64_t sum = 0;
	size_t count;

	(void)state;
	assert_int_equal(slots_begin_run(&s, SLOT_CURRENT, "x", 639), 0);
	for (uint64_t t = 0; t < 40; t++) {
		for (uint32_t i = 1; i <= stacks; i++) {
			struct sample sample = { .stack = i, .time_ns = t, .weight = 1 };

			assert_int_equal(profile_add_sample(p, &sample), 0);
		}
		assert_int_equal(slots_add(&s, p), 0);
		profile_clear_samples(p);
	}
	count = rows_of(&s, stacks + 1, &rows);
	for (size_t i = 0; i < count; i++)
		sum += rows[i].ticks;
	assert_true(s.blocks < SLOTS_BLOCKS_MAX && s.blocks >= SLOTS_BLOCKS_MIN);
	assert_true(count <= SLOTS_ROWS_MAX);
	assert_true(sum == 40 * (uint64_t)stacks);
	free(rows);
	slots_release(&s);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slots_rows_are_sorted_and_summed),
		cmocka_unit_test(test_slots_rows_are_kept_apart_by_opcode),
		cmocka_unit_test(test_slots_ticks_beyond_32_bits_take_several_rows),
		cmocka_unit_test(test_slots_an_unknown_span_doubles),
		cmocka_unit_test(test_slots_runs_have_slots_of_their_own),
		cmocka_unit_test(test_slots_too_many_rows_make_longer_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
