/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "diff/input.h"
#include "export/slots.h"

static struct profile *profile_with_stacks(uint32_t count)
{
	struct process process = { .pid = 1 };
	struct thread thread = { .tid = 1 };
	struct frame f = { .line = 1 };
	struct profile *p;
	uint32_t frame, id;

	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(profile_add_process(p, &process, &thread.process), 0);
	assert_int_equal(profile_add_thread(p, &thread, &id), 0);
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
	struct sample sample = { .stack = stack, .time_ns = time_ns, .value = weight };

	assert_int_equal(profile_add_sample(p, &sample), 0);
	assert_int_equal(slots_add(s, p), 0);
	profile_clear_samples(p);
}

/* Parts as they are handed out. */
struct taken {
	struct slot_row *rows[SLOTS_PARTS];
	size_t count[SLOTS_PARTS];
	int error; /* what to return */
};

static int take(void *context, size_t part, const struct slot_row *rows, size_t count)
{
	struct taken *taken = context;

	taken->rows[part] = malloc((count + 1) * sizeof(*rows));
	memcpy(taken->rows[part], rows, count * sizeof(*rows));
	taken->count[part] = count;
	return taken->error;
}

static size_t rows_by(const struct slots *s, const uint32_t *const key_of[SLOT_SIDES],
		      uint32_t keys, struct slot_row **rows)
{
	struct taken taken = { .error = 0 };
	const struct slots_taker taker = { take, &taken };
	size_t count = 0;

	assert_int_equal(slots_by_key(s, key_of, keys, &taker), 0);
	for (size_t i = 0; i < SLOTS_PARTS; i++)
		count += taken.count[i];
	*rows = malloc((count + 1) * sizeof(**rows));
	count = 0;
	for (size_t i = 0; i < SLOTS_PARTS; i++) {
		memcpy(*rows + count, taken.rows[i], taken.count[i] * sizeof(**rows));
		count += taken.count[i];
		free(taken.rows[i]);
	}
	return count;
}

static size_t rows_of(const struct slots *s, uint32_t stacks, struct slot_row **rows)
{
	return rows_by(s, NULL, stacks, rows);
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
		struct sample sample = { .stack = 1, .value = 1, .opcode = opcodes[i] };

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
			struct sample sample = { .stack = i, .time_ns = t, .value = 1 };

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

#define STACKS 500
#define KEYS 100
#define THREADS 3
#define SLOTS 8 /* of two runs */
#define OPCODES 3

/* Ticks by key, thread, slot, opcode: one after the other, rows are in order of this index. */
static size_t place_of(uint32_t key, uint32_t thread, uint32_t slot, uint32_t opcode)
{
	return ((key * THREADS + thread) * SLOTS + slot) * OPCODES + opcode;
}

static void fill_block(struct diff_block *block, uint32_t slot, const uint32_t *key_of,
		       uint64_t *want)
{
	for (uint32_t i = 0; i < 2 * STACKS; i++) {
		uint32_t random = (i * SLOTS + slot) * 2654435761u >> 8;
		struct diff_cell cell = { .stack = random % STACKS, .ticks = 1 + random % 5 };
		struct diff_tag tag = { .thread = random / STACKS % THREADS,
					.opcode = random / 7 % OPCODES };

		assert_int_equal(vec_push(&block->cells, cell), 0);
		assert_int_equal(vec_push(&block->tags, tag), 0);
		want[place_of(key_of[cell.stack], tag.thread, slot, tag.opcode)] += cell.ticks;
	}
}

static void test_slots_by_key_sums_kept_blocks_of_both_sides(void **state)
{
	static uint32_t keys[SLOT_SIDES][STACKS];
	static uint64_t want[KEYS * THREADS * SLOTS * OPCODES];
	const uint32_t *const key_of[SLOT_SIDES] = { keys[SLOT_BASE], keys[SLOT_CURRENT] };
	struct diff_block blocks[SLOTS] = { { .ticks = 0 } };
	struct slots s = { .blocks = SLOTS / 2 };
	struct slot_row *rows;
	size_t count, places = 0;

	(void)state;
	for (uint32_t i = 0; i < STACKS; i++) {
		keys[SLOT_BASE][i] = i * i % KEYS;
		keys[SLOT_CURRENT][i] = i * 7 % 10; /* few, with many rows each */
	}
	assert_int_equal(slots_begin_run(&s, SLOT_BASE, "a", SLOTS_NO_TIMES), 0);
	assert_int_equal(slots_begin_run(&s, SLOT_CURRENT, "b", SLOTS_NO_TIMES), 0);
	for (uint32_t i = 0; i < SLOTS; i++) {
		struct slot_block kept = { i, &blocks[i] };

		fill_block(&blocks[i], i, keys[i / s.blocks], want);
		assert_int_equal(vec_push(&s.kept, kept), 0);
	}
	count = rows_by(&s, key_of, KEYS, &rows);
	for (size_t i = 0, last = 0; i < count; i++) {
		size_t at = place_of(rows[i].stack, rows[i].thread, rows[i].slot, rows[i].opcode);

		assert_true(!i || at > last);
		assert_true(rows[i].ticks == want[last = at]);
	}
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		places += want[i] > 0;
	assert_int_equal(count, places);
	free(rows);
	slots_release(&s);
	for (size_t i = 0; i < SLOTS; i++) {
		vec_release(&blocks[i].cells);
		vec_release(&blocks[i].tags);
	}
}

static void test_slots_by_key_returns_what_the_taker_did(void **state)
{
	struct taken taken = { .error = -EXDEV };
	const struct slots_taker taker = { take, &taken };
	struct profile *p = profile_with_stacks(1);
	struct slots s = { 0 };

	(void)state;
	assert_int_equal(slots_begin_run(&s, SLOT_CURRENT, "x", 639), 0);
	add(&s, p, 1, 0, 1);
	assert_int_equal(slots_by_key(&s, NULL, 2, &taker), -EXDEV);
	for (size_t i = 0; i < SLOTS_PARTS; i++)
		free(taken.rows[i]);
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
		cmocka_unit_test(test_slots_by_key_sums_kept_blocks_of_both_sides),
		cmocka_unit_test(test_slots_by_key_returns_what_the_taker_did),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
