/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "profile/gil.h"

#define MS 1000000ULL

static uint32_t intern(struct profile *p, const char *s)
{
	uint32_t id;

	assert_int_equal(strtab_intern(p->strings, s, strlen(s), &id), 0);
	return id;
}

static uint32_t push(struct profile *p, uint32_t caller, const char *name)
{
	struct frame f = { .name = intern(p, name) };
	uint32_t frame, stack;

	if (*name == '<')
		f.kind = FRAME_MARKER;
	else
		f.file = intern(p, "a.py");
	assert_int_equal(frametab_intern(p->frames, &f, &frame), 0);
	assert_int_equal(stacktab_intern(p->stacks, caller, frame, &stack), 0);
	return stack;
}

/* Kinds are 1 off-cpu, 2 gil-contention. */
struct fixture {
	struct profile *p;
	struct kinds kinds;
	struct gil gil;
};

static void add_kind(struct profile *p, const char *name, uint16_t want)
{
	struct sample_kind kind = { .name = intern(p, name), .unit = UNIT_NS, .period = 1 };
	uint16_t number;

	assert_int_equal(profile_add_kind(p, &kind, &number), 0);
	assert_int_equal(number, want);
}

static void set_up(struct fixture *f, const char *implementation)
{
	*f = (struct fixture){ 0 };
	assert_int_equal(profile_new(&f->p), 0);
	add_kind(f->p, KINDS_OFF_CPU, 1);
	add_kind(f->p, KINDS_GIL, 2);
	for (uint32_t i = 0; i < 2; i++) {
		struct process process = { .pid = 10 + i };
		struct thread thread = { .tid = 10 + i };

		process.implementation = intern(f->p, implementation);
		assert_int_equal(profile_add_process(f->p, &process, &thread.process), 0);
		assert_int_equal(profile_add_thread(f->p, &thread, &thread.process), 0);
	}
	assert_int_equal(kinds_choose(&f->kinds, f->p, KINDS_WALL), 0);
}

static void tear_down(struct fixture *f)
{
	gil_release(&f->gil);
	kinds_release(&f->kinds);
	profile_free(f->p);
}

/* name 'a' .. 'z' of a process, '<': <not sampled>; value_ms 0: as long as it is. */
struct row {
	char name;
	uint8_t process;
	uint32_t from_ms, lasts_ms, value_ms;
	bool is_unselected, is_episode;
	uint16_t gil;
};

/* clang-format off */
#define AT(name, process, from_ms, lasts_ms, value_ms) \
	{ name, process, from_ms, lasts_ms, value_ms, false, false, 0 }
#define EPISODE(name, process, from_ms, lasts_ms, value_ms) \
	{ name, process, from_ms, lasts_ms, value_ms, false, true, 0 }
#define UNSELECTED(name, process, from_ms, lasts_ms, value_ms) \
	{ name, process, from_ms, lasts_ms, value_ms, true, false, 0 }
#define OF(gil, name, from_ms, lasts_ms, value_ms) \
	{ name, 0, from_ms, lasts_ms, value_ms, false, false, gil }
/* clang-format on */

static void add(struct fixture *f, const struct row *row, uint16_t kind, const char *marker)
{
	struct sample s = {
		.time_ns = row->from_ms * MS,
		.duration_ns = row->lasts_ms * MS,
		.value = (row->value_ms ? row->value_ms : row->lasts_ms) * MS,
		.thread = row->process,
		.kind = kind,
		.flags = row->is_episode ? SAMPLE_BIT_EPISODE : 0,
		.gil = row->gil,
		.stack = push(f->p, 0,
			      row->name == '<' ? PROFILE_NOT_SAMPLED : (char[]){ row->name, 0 }),
	};

	if (marker)
		s.stack = push(f->p, s.stack, marker);
	assert_int_equal(gil_add(&f->gil, &f->kinds, f->p, &s, !row->is_unselected), 0);
}

static char name_of(const struct fixture *f, uint32_t function)
{
	return function == GIL_NOBODY
		       ? '-'
		       : *strtab_get(f->p->strings, f->gil.functions.items[function].name);
}

/* "ab 100 2, cb 50 0": waiter, holder, ms, episodes */
static void put_rows(const struct fixture *f, char *out, size_t size)
{
	size_t used = 0;

	*out = '\0';
	for (size_t i = 0; i < f->gil.rows.len; i++) {
		const struct gil_row *row = &f->gil.rows.items[i];

		used += (size_t)snprintf(out + used, size - used, "%s%c%c %.0f %.0f", i ? ", " : "",
					 name_of(f, row->waiter), name_of(f, row->holder),
					 row->ns / MS, row->episodes);
	}
}

static void test_who_waited_for_whom(void **state)
{
	static const struct {
		const char *name;
		struct row waits[4], holds[4];
		const char *want;
		double waited_ms;
	} cases[] = {
		{ "one holds, one waits",
		  { EPISODE('a', 0, 0, 100, 0) },
		  { AT('b', 0, 10, 0, 50), AT('b', 0, 60, 0, 50) },
		  "ab 100 1",
		  100 },
		{ "not sampled: of holds it meets what is left of all that waited",
		  { AT('a', 0, 0, 90, 0), AT('<', 0, 0, 1000, 10) },
		  { AT('b', 0, 50, 0, 70), AT('c', 0, 500, 0, 30) },
		  "ab 70 0, ac 20 0, <c 10 0",
		  100 },
		{ "holders take turns: the episode is of the first",
		  { EPISODE('a', 0, 0, 100, 0) },
		  { AT('b', 0, 10, 0, 70), AT('c', 0, 80, 0, 30) },
		  "ab 70 1, ac 30 0",
		  100 },
		{ "two wait for one",
		  { AT('a', 0, 0, 100, 0), AT('c', 0, 50, 50, 0) },
		  { AT('b', 0, 20, 0, 50), AT('b', 0, 70, 0, 100) },
		  "ab 100 0, cb 50 0",
		  150 },
		{ "a span that holds it, by overlap",
		  { AT('a', 0, 0, 100, 0), AT('c', 0, 90, 30, 0) },
		  { AT('b', 0, 60, 60, 70) },
		  "ab 40 0, cb 30 0",
		  130 },
		{ "a span that was kept by chance stands for several",
		  { AT('a', 0, 10, 1, 30), AT('c', 0, 10, 1, 10) },
		  { AT('b', 0, 10, 0, 40) },
		  "ab 30 0, cb 10 0",
		  40 },
		{ "what meets none is of all that is left",
		  { AT('a', 0, 10, 10, 30), AT('c', 0, 30, 10, 10) },
		  { AT('b', 0, 50, 0, 20), AT('d', 0, 15, 0, 5) },
		  "ab 14 0, cb 6 0, ad 5 0",
		  40 },
		{ "no more is met than was waited, of those that it meets and of all",
		  { AT('a', 0, 0, 10, 0), AT('c', 0, 20, 5, 0) },
		  { AT('b', 0, 5, 0, 30), AT('d', 0, 40, 0, 30) },
		  "ab 10 0, cd 3 0, cb 2 0",
		  15 },
		{ "other processes have a GIL of their own",
		  { AT('a', 0, 0, 100, 0), AT('c', 1, 0, 100, 0) },
		  { AT('b', 0, 10, 0, 100), AT('d', 1, 10, 0, 90) },
		  "ab 100 0, cd 90 0",
		  200 },
		{ "each interpreter has a GIL of its own",
		  { OF(1, 'a', 0, 100, 0), OF(2, 'c', 0, 100, 0) },
		  { OF(1, 'b', 10, 0, 100), OF(2, 'd', 10, 0, 90), OF(3, 'e', 20, 0, 80) },
		  "ab 100 0, cd 90 0, -e 80 0",
		  200 },
		{ "what is of no GIL that is known is of the only one",
		  { OF(1, 'a', 0, 100, 0), OF(0, '<', 0, 1000, 20) },
		  { OF(1, 'b', 10, 0, 120) },
		  "ab 100 0, <b 20 0",
		  120 },
		{ "of several it is of none",
		  { OF(1, 'a', 0, 100, 0), OF(2, 'c', 0, 100, 0), OF(0, '<', 0, 1000, 20) },
		  { OF(1, 'b', 10, 0, 120), OF(2, 'd', 10, 0, 60) },
		  "ab 100 0, cd 60 0, <- 20 0",
		  220 },
		{ "only waits that are selected have rows, all have their part",
		  { AT('a', 0, 0, 100, 0), UNSELECTED('c', 0, 0, 100, 0) },
		  { AT('b', 0, 10, 0, 200) },
		  "ab 100 0",
		  100 },
		{ "nobody was seen to hold it",
		  { EPISODE('a', 0, 0, 100, 0) },
		  { AT(0, 0, 0, 0, 0) },
		  "a- 100 1",
		  100 },
		{ "nobody was seen to wait",
		  { AT(0, 0, 0, 0, 0) },
		  { AT('b', 0, 10, 0, 40) },
		  "-b 40 0",
		  0 },
		{ "an episode that no hold met",
		  { EPISODE('a', 0, 0, 10, 0), AT('a', 0, 50, 10, 0) },
		  { AT('b', 0, 55, 0, 20) },
		  "ab 20 1",
		  20 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f;
		char found[256];

		set_up(&f, "CPython");
		for (size_t k = 0; k < 4 && cases[i].holds[k].name; k++)
			add(&f, &cases[i].holds[k], 2, NULL);
		for (size_t k = 0; k < 4 && cases[i].waits[k].name; k++)
			add(&f, &cases[i].waits[k], 1, "<GIL>");
		assert_int_equal(gil_finish(&f.gil), 0);
		put_rows(&f, found, sizeof(found));
		if (strcmp(found, cases[i].want) != 0)
			fail_msg("%s: %s, want %s", cases[i].name, found, cases[i].want);
		if (fabs(f.gil.waited_ns / MS - cases[i].waited_ms) > 1e-6)
			fail_msg("%s: waited %g ms", cases[i].name, f.gil.waited_ns / MS);
		tear_down(&f);
	}
}

static uint32_t random_below(uint32_t end)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)((state >> 33) % end);
}

/*
 * Waiters 'a' to 'f' and holders 'A' to 'F', each of the GIL of its letter: whatever meets what,
 * and however much is said to be held, each waited no longer than it did, for its own GIL.
 */
static void test_no_more_is_met_than_was_waited(void **state)
{
	(void)state;
	for (int round = 0; round < 300; round++) {
		const uint32_t gils = 1 + random_below(6);
		double waited[6] = { 0 }, met[6] = { 0 };
		struct fixture f;

		set_up(&f, "CPython");
		for (int i = 0; i < 60; i++) {
			uint32_t of = random_below(gils), from_ms = random_below(500);
			struct row hold =
				OF((uint16_t)(of + 1), (char)('A' + of), from_ms,
				   random_below(2) * random_below(40), 1 + random_below(60));
			struct row wait = OF((uint16_t)(of + 1), (char)('a' + of), from_ms,
					     1 + random_below(50), random_below(2) * 50);

			wait.is_unselected = random_below(8) == 0;
			if (random_below(2)) {
				add(&f, &hold, 2, NULL);
				continue;
			}
			add(&f, &wait, 1, "<GIL>");
			waited[of] += wait.is_unselected ? 0
				      : wait.value_ms    ? wait.value_ms
							 : wait.lasts_ms;
		}
		assert_int_equal(gil_finish(&f.gil), 0);
		for (size_t i = 0; i < f.gil.rows.len; i++) {
			const struct gil_row *row = &f.gil.rows.items[i];

			if (row->waiter == GIL_NOBODY || row->holder == GIL_NOBODY)
				continue;
			assert_int_equal(name_of(&f, row->waiter) - 'a',
					 name_of(&f, row->holder) - 'A');
			met[name_of(&f, row->waiter) - 'a'] += row->ns / MS;
		}
		for (int i = 0; i < 6; i++)
			if (met[i] > waited[i] + 1e-6)
				fail_msg("%d: %c waited %g ms, met %g", round, 'a' + i, waited[i],
					 met[i]);
		tear_down(&f);
	}
}

/* Locks of builds that have a GIL are no contention for it. */
static void test_locks_of_free_threaded_builds(void **state)
{
	const struct row waits = AT('a', 0, 0, 100, 0), shorts = AT('a', 0, 200, 1, 10);

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct fixture f;
		char found[256];

		set_up(&f, i ? "CPython free-threaded" : "CPython");
		add(&f, &waits, 1, "<lock>");
		add(&f, &shorts, 1, "<lock>");
		add(&f, &waits, 1, "<sleep>");
		assert_int_equal(gil_finish(&f.gil), 0);
		put_rows(&f, found, sizeof(found));
		assert_string_equal(found, i ? "a- 110 11" : "");
		assert_int_equal(f.gil.is_free_threaded, i);
		tear_down(&f);
	}
}

/* Waits are in the file when they end, after the ticks of who held it; memory stays bounded. */
static void test_millions(void **state)
{
	const uint32_t count = 3 * GIL_PENDING_MAX / 2, wait_ms = 50;
	struct fixture f;
	size_t most = 0;

	(void)state;
	set_up(&f, "CPython");
	for (uint32_t i = 0; i < count; i++) {
		struct row hold = AT((char)('b' + i / 1000 % 3), 0, i, 0, 1);
		struct row wait = AT((char)('m' + i % 200 / 100), 0, i + 1 - wait_ms, wait_ms, 0);

		add(&f, &hold, 2, NULL);
		if (i % wait_ms == wait_ms - 1)
			add(&f, &wait, 1, "<GIL>");
		most = f.gil.pending > most ? f.gil.pending : most;
	}
	assert_int_equal(gil_finish(&f.gil), 0);
	assert_true(most <= GIL_PENDING_MAX);
	assert_int_equal(f.gil.rows.len, 6);
	for (size_t i = 0; i < f.gil.rows.len; i++)
		if (fabs(f.gil.rows.items[i].ns / MS / count - 1.0 / 6) > 0.001)
			fail_msg("row %zu: %g ms", i, f.gil.rows.items[i].ns / MS);
	tear_down(&f);
}

static void test_by_holder(void **state)
{
	const struct row waits[] = { AT('a', 0, 0, 100, 0), AT('c', 0, 0, 100, 0) };
	const struct row holds[] = { AT('b', 0, 10, 0, 60), AT('d', 0, 20, 0, 140) };
	struct gil_rows rows = VEC_INIT;
	struct fixture f;

	(void)state;
	set_up(&f, "CPython");
	for (size_t i = 0; i < 2; i++) {
		add(&f, &waits[i], 1, "<GIL>");
		add(&f, &holds[i], 2, "<disk>");
	}
	assert_int_equal(gil_finish(&f.gil), 0);
	assert_int_equal(gil_by_holder(&f.gil, &rows), 0);
	assert_int_equal(rows.len, 2);
	assert_int_equal(name_of(&f, rows.items[0].holder), 'd');
	assert_true(fabs(rows.items[0].ns / MS - 140) < 1e-6);
	assert_true(fabs(rows.items[1].ns / MS - 60) < 1e-6);
	vec_release(&rows);
	tear_down(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_waited_for_whom),
		cmocka_unit_test(test_no_more_is_met_than_was_waited),
		cmocka_unit_test(test_locks_of_free_threaded_builds),
		cmocka_unit_test(test_millions),
		cmocka_unit_test(test_by_holder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
