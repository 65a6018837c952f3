/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "export/timeline.h"

#define FAR 200000 /* more than are put in order at a time */

static struct profile *profile_with(unsigned int threads)
{
	struct process process = { .pid = 1 };
	struct profile *p;
	uint32_t index;

	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(profile_add_process(p, &process, &index), 0);
	for (unsigned int i = 0; i < threads; i++) {
		struct thread t = { .process = 0, .tid = 10 + i };

		assert_int_equal(profile_add_thread(p, &t, &index), 0);
	}
	return p;
}

static void add(struct timeline *t, struct profile *p, struct sample s)
{
	profile_clear_samples(p);
	assert_int_equal(profile_add_sample(p, &s), 0);
	assert_int_equal(timeline_add(t, p, NULL), 0);
}

static void test_all_that_is_kept(void **state)
{
	static const struct sample samples[] = {
		{ .time_ns = 5, .value = 1, .stack = 7, .cpu = 1, .flags = 3 },
		{ .time_ns = 9, .duration_ns = 4, .value = 1, .stack = 7, .cpu = 1, .flags = 3 },
		{ .time_ns = 20, .value = 300, .stack = 2, .labels = 9, .flags = UINT16_MAX },
		{ .time_ns = SAMPLE_TIME_MAX, .value = 1, .stack = UINT32_MAX, .cpu = UINT16_MAX },
	};
	_cleanup_(profile_freep) struct profile *p = profile_with(1);
	_cleanup_(timeline_release) struct timeline t = { 0 };
	struct timeline_cursor c;

	(void)state;
	for (size_t i = 0; i < 4; i++)
		add(&t, p, samples[i]);
	assert_int_equal(timeline_finish(&t, p), 0);
	assert_int_equal(t.lists.len, 1);
	assert_int_equal(t.lists.items[0].count, 4);
	assert_int_equal(t.lists.items[0].total, 303);
	c = timeline_begin(&t.lists.items[0]);
	for (size_t i = 0; i < 4; i++) {
		assert_true(timeline_next(&c));
		assert_int_equal(c.entry.time_ns, samples[i].time_ns);
		assert_int_equal(c.entry.duration_ns, samples[i].duration_ns);
		assert_int_equal(c.entry.value, samples[i].value);
		assert_int_equal(c.entry.stack, samples[i].stack);
		assert_int_equal(c.entry.labels, samples[i].labels);
		assert_int_equal(c.entry.cpu, samples[i].cpu);
		assert_int_equal(c.entry.flags, samples[i].flags);
	}
	assert_false(timeline_next(&c));
}

/* Ten thousand too late, again and again; what has one time stays as it came. */
static void test_order(void **state)
{
	_cleanup_(profile_freep) struct profile *p = profile_with(2);
	_cleanup_(timeline_release) struct timeline t = { 0 };
	uint64_t count = 0, last_time = 0, last_stack = 0;

	(void)state;
	for (uint32_t i = 0; i < FAR; i++) {
		uint32_t late = i % 7 == 0 && i > 10000 ? 10000 : 0;

		add(&t, p,
		    (struct sample){
			    .time_ns = (i - late) / 2, .value = 1, .thread = i & 1, .stack = i });
	}
	assert_int_equal(timeline_finish(&t, p), 0);
	assert_int_equal(t.lists.len, 2);
	for (uint32_t list = 0; list < 2; list++) {
		struct timeline_cursor c = timeline_begin(&t.lists.items[list]);

		assert_int_equal(t.lists.items[list].thread, list);
		for (last_time = last_stack = 0; timeline_next(&c); count++) {
			assert_true(c.entry.time_ns >= last_time);
			if (c.entry.time_ns == last_time)
				assert_true(c.entry.stack >= last_stack);
			last_time = c.entry.time_ns;
			last_stack = c.entry.stack;
		}
	}
	assert_int_equal(count, FAR);
}

/* Kinds and threads that come later, in any order. */
static void test_lists(void **state)
{
	_cleanup_(profile_freep) struct profile *p = profile_with(3);
	_cleanup_(timeline_release) struct timeline t = { 0 };
	struct sample_kind bytes = { .name = 1, .period = 1, .unit = UNIT_BYTES };
	uint16_t kind;

	(void)state;
	add(&t, p, (struct sample){ .value = 1, .thread = 2 });
	assert_int_equal(profile_add_kind(p, &bytes, &kind), 0);
	add(&t, p, (struct sample){ .value = 4096, .thread = 0, .kind = kind });
	add(&t, p, (struct sample){ .value = 1, .thread = 2 });
	add(&t, p, (struct sample){ .value = 2, .thread = 0 });
	assert_int_equal(timeline_finish(&t, p), 0);
	assert_int_equal(t.lists.len, 3);
	assert_int_equal(t.lists.items[0].thread, 0);
	assert_int_equal(t.lists.items[0].kind, TIMELINE_TIME);
	assert_int_equal(t.lists.items[1].kind, kind);
	assert_int_equal(t.lists.items[1].unit, UNIT_BYTES);
	assert_int_equal(t.lists.items[1].total, 4096);
	assert_int_equal(t.lists.items[2].thread, 2);
	assert_int_equal(t.lists.items[2].count, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_that_is_kept),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
