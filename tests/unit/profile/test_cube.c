/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "profile/cube.h"
#include "profile/merge.h"

#define STACKS 60
#define THREADS 4 /* each is one more's other recording: THREADS / 2 are shown */
#define KINDS 2
#define LABELS 3
#define OPCODES 3
#define SHOWN (THREADS / 2)
#define SPAN_NS 1000

static uint32_t random_below(uint32_t n)
{
	static uint64_t state = 88172645463325252;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % n;
}

static uint32_t intern(struct profile *p, const char *text, unsigned int number)
{
	char name[32];
	uint32_t id;

	snprintf(name, sizeof(name), "%s%u", text, number);
	assert_int_equal(strtab_intern(p->strings, name, strlen(name), &id), 0);
	return id;
}

/* Recordings, the first two of the same process with the same threads; stacks of one frame each. */
static struct profile *make_profile(void)
{
	struct profile *p;
	uint32_t id;

	assert_int_equal(profile_new(&p), 0);
	for (uint32_t i = 0; i < OPCODES; i++) /* string ids 1 .. */
		intern(p, "opcode", i);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(profile_begin_recording(p, &id), 0);
	for (uint32_t i = 0; i < THREADS; i++) {
		struct process process = { .pid = 1, .recording = i / SHOWN };
		struct thread thread = { .tid = 1 + i % SHOWN };

		process.python_version = intern(p, "3.1", 2);
		assert_int_equal(profile_add_process(p, &process, &thread.process), 0);
		assert_int_equal(profile_add_thread(p, &thread, &id), 0);
		assert_int_equal(id, i);
		assert_int_equal(p->threads.items[i].same, i % SHOWN);
	}
	for (uint32_t i = 1; i < STACKS; i++) {
		struct frame f = { .line = i };
		uint32_t frame;

		assert_int_equal(frametab_intern(p->frames, &f, &frame), 0);
		assert_int_equal(stacktab_intern(p->stacks, 0, frame, &id), 0);
	}
	for (uint32_t i = 1; i < LABELS; i++)
		assert_int_equal(
			labeltab_add(p->labels, 0, intern(p, "key", 0), intern(p, "value", i), &id),
			0);
	for (unsigned int i = 1; i < KINDS; i++) {
		struct sample_kind kind = { .name = intern(p, "kind", i), .period = 1 };
		uint16_t kind_id;

		assert_int_equal(profile_add_kind(p, &kind, &kind_id), 0);
	}
	return p;
}

static void put(struct profile *p, const struct sample *s)
{
	assert_int_equal(profile_add_sample(p, s), 0);
}

static void take(struct cube *c, struct profile *p)
{
	assert_int_equal(cube_add(c, p), 0);
	profile_clear_samples(p);
}

static struct sample random_sample(uint32_t recording, uint64_t time_ns)
{
	return (struct sample){
		.time_ns = time_ns,
		.value = 1 + random_below(5),
		.thread = recording * SHOWN + random_below(SHOWN),
		.stack = random_below(STACKS),
		.labels = random_below(LABELS),
		.kind = (uint16_t)random_below(KINDS),
		.opcode = random_below(OPCODES + 1),
	};
}

/* What is left of a sample where these axes are told apart, as a number: rows are in its order. */
static size_t place_of(unsigned int axes, uint32_t key, uint32_t thread, uint32_t slot,
		       const struct cube_tag *t)
{
	size_t at = key;

	at = at * THREADS + (axes & CUBE_THREADS ? thread : 0);
	at = at * 2 * CUBE_BLOCKS_MAX + (axes & CUBE_TIME ? slot : 0);
	at = at * KINDS + t->kind;
	at = at * LABELS + (axes & CUBE_LABELS ? t->labels : 0);
	return at * (OPCODES + 1) + (axes & CUBE_OPCODES ? t->opcode : 0);
}

#define PLACES ((size_t)STACKS * THREADS * 2 * CUBE_BLOCKS_MAX * KINDS * LABELS * (OPCODES + 1))

static void want_sample(uint64_t *want, unsigned int axes, const struct profile *p,
			const struct sample *s, uint32_t slot)
{
	struct cube_tag t = { .labels = s->labels, .opcode = s->opcode, .kind = s->kind };

	want[place_of(axes, s->stack, p->threads.items[s->thread].same, slot, &t)] += s->value;
}

/* --- without time ----------------------------------------------------------------------------- */

static void check_cells(const struct cube *c, uint64_t *want)
{
	const struct cube_cell *last = NULL;

	for (size_t i = 0; i < c->all.cells.len; i++) {
		const struct cube_cell *cell = &c->all.cells.items[i];
		const struct cube_tag *t = &c->tags.items[cell->tag];
		uint64_t *place = &want[place_of(c->axes, cell->stack, t->thread, 0, t)];

		assert_int_equal(cell->value, *place);
		*place = 0;
		assert_int_equal(t->thread == CUBE_NO_THREAD, !(c->axes & CUBE_THREADS));
		if (last && last->tag == cell->tag)
			assert_true(last->stack < cell->stack);
		else if (last)
			assert_true(last->tag < cell->tag &&
				    c->tags.items[last->tag].thread <= t->thread);
		last = cell;
	}
	for (size_t i = 0; i < PLACES; i++)
		assert_int_equal(want[i], 0);
}

static void test_each_axis_is_told_apart_where_it_is_asked_for(void **state)
{
	uint64_t *want = calloc(PLACES, sizeof(*want));

	(void)state;
	for (unsigned int axes = 0; axes < CUBE_TIME; axes++) {
		struct cube c = { .axes = axes };
		struct profile *p = make_profile();

		for (int chunk = 0; chunk < 5; chunk++) {
			for (uint32_t i = random_below(700); i > 0; i--) {
				struct sample s = random_sample(random_below(2), i);

				want_sample(want, axes, p, &s, 0);
				put(p, &s);
			}
			take(&c, p);
		}
		assert_int_equal(cube_finish(&c, p), 0);
		check_cells(&c, want);
		cube_release(&c);
		profile_free(p);
	}
	free(want);
}

/* --- with time -------------------------------------------------------------------------------- */

/* Parts as they are handed out. */
struct taken {
	struct cube_row *rows[CUBE_PARTS];
	size_t count[CUBE_PARTS];
	int error; /* what to return */
};

static int take_rows(void *context, size_t part, const struct cube_row *rows, size_t count)
{
	struct taken *taken = context;

	taken->rows[part] = malloc((count + 1) * sizeof(*rows));
	memcpy(taken->rows[part], rows, count * sizeof(*rows));
	taken->count[part] = count;
	return taken->error;
}

/* keys NULL: the stacks are. */
static size_t rows_by(const struct cube *c, const uint32_t *const keys[CUBE_SIDES], uint32_t count,
		      struct cube_row **rows)
{
	struct taken taken = { .error = 0 };
	const struct cube_taker taker = { take_rows, &taken };
	uint32_t *same = malloc(count * sizeof(*same));
	const uint32_t *const stacks[CUBE_SIDES] = { same, same };
	size_t found = 0;

	for (uint32_t i = 0; i < count; i++)
		same[i] = i;
	assert_int_equal(cube_by_key(c, c->blocks, keys ? keys : stacks, count, &taker), 0);
	for (size_t i = 0; i < CUBE_PARTS; i++)
		found += taken.count[i];
	*rows = malloc((found + 1) * sizeof(**rows));
	found = 0;
	for (size_t i = 0; i < CUBE_PARTS; i++) {
		memcpy(*rows + found, taken.rows[i], taken.count[i] * sizeof(**rows));
		found += taken.count[i];
		free(taken.rows[i]);
	}
	free(same);
	return found;
}

/* Two runs, one a side, as long as SPAN_NS; what a slot is of is known by the time. */
static void fill_runs(struct cube *c, struct profile *p, uint64_t *want)
{
	for (uint32_t run = 0; run < 2; run++) {
		assert_int_equal(
			cube_begin_run(c, run ? CUBE_CURRENT : CUBE_BASE, "x", 1 + run, SPAN_NS),
			0);
		for (int chunk = 0; chunk < 4; chunk++) {
			for (uint32_t i = random_below(800); i > 0; i--) {
				struct sample s = random_sample(run, random_below(SPAN_NS));
				uint64_t block = s.time_ns * c->blocks / SPAN_NS;

				s.thread = run * SHOWN + random_below(SHOWN);
				want_sample(want, c->axes, p, &s,
					    run * c->blocks + (uint32_t)block);
				put(p, &s);
			}
			take(c, p);
		}
	}
}

static void check_rows(const struct cube *c, uint64_t *want)
{
	struct cube_row *rows;
	size_t count = rows_by(c, NULL, STACKS, &rows), last = 0;

	for (size_t i = 0; i < count; i++) {
		const struct cube_tag *t = &c->tags.items[rows[i].tag];
		size_t at = place_of(c->axes, rows[i].key, t->thread, rows[i].slot, t);

		assert_true(!i || at > last);
		assert_int_equal(rows[i].value, want[at]);
		want[at] = 0;
		last = at;
	}
	for (size_t i = 0; i < PLACES; i++)
		assert_int_equal(want[i], 0);
	free(rows);
}

static void test_rows_are_in_order_and_complete(void **state)
{
	uint64_t *want = calloc(PLACES, sizeof(*want));

	(void)state;
	for (unsigned int axes = CUBE_TIME; axes < 2 * CUBE_TIME; axes++) {
		struct cube c = { .axes = axes, .blocks = 80, .blocks_min = 80 };
		struct profile *p = make_profile();

		fill_runs(&c, p, want);
		assert_int_equal(cube_finish(&c, p), 0);
		check_rows(&c, want);
		cube_release(&c);
		profile_free(p);
	}
	free(want);
}

static void test_rows_by_another_key_of_each_side(void **state)
{
	static const uint32_t keys[CUBE_SIDES][3] = { { 0, 1, 1 }, { 0, 2, 1 } };
	const uint32_t *const key_of[CUBE_SIDES] = { keys[0], keys[1] };
	static const struct cube_row want[] = { { 1, 0, 0, 5 }, { 1, 0, 4, 9 }, { 2, 0, 4, 7 } };
	struct cube c = { .axes = CUBE_TIME, .blocks = 4, .blocks_min = 4 };
	struct profile *p = make_profile();
	struct cube_row *rows;

	(void)state;
	assert_int_equal(cube_begin_run(&c, CUBE_BASE, "a", 1, CUBE_NO_TIMES), 0);
	put(p, &(struct sample){ .stack = 1, .value = 2 });
	put(p, &(struct sample){ .stack = 2, .value = 3, .time_ns = 99 });
	take(&c, p);
	assert_int_equal(cube_begin_run(&c, CUBE_CURRENT, "b", 2, CUBE_NO_TIMES), 0);
	put(p, &(struct sample){ .stack = 1, .value = 7 });
	put(p, &(struct sample){ .stack = 2, .value = 9 });
	take(&c, p);
	assert_int_equal(cube_finish(&c, p), 0);
	assert_int_equal(rows_by(&c, key_of, 3, &rows), 3);
	for (size_t i = 0; i < 3; i++)
		assert_true(rows[i].key == want[i].key && rows[i].slot == want[i].slot &&
			    rows[i].value == want[i].value);
	free(rows);
	cube_release(&c);
	profile_free(p);
}

static void test_rows_what_the_taker_returns(void **state)
{
	static const uint32_t keys[] = { 0, 1 };
	const uint32_t *const key_of[CUBE_SIDES] = { keys, keys };
	struct taken taken = { .error = -EXDEV };
	const struct cube_taker taker = { take_rows, &taken };
	struct cube c = { .axes = CUBE_TIME };
	struct profile *p = make_profile();

	(void)state;
	assert_int_equal(cube_begin_run(&c, CUBE_CURRENT, "x", 0, 0), 0);
	put(p, &(struct sample){ .stack = 1, .value = 2 });
	take(&c, p);
	assert_int_equal(cube_by_key(&c, c.blocks, key_of, 2, &taker), -EXDEV);
	for (size_t i = 0; i < CUBE_PARTS; i++)
		free(taken.rows[i]);
	cube_release(&c);
	profile_free(p);
}

/* --- blocks ----------------------------------------------------------------------------------- */

static void test_an_unknown_span_doubles(void **state)
{
	static const uint64_t times[] = { 0, 999999999 /* the last of a second */, 3000000000 };
	static const uint32_t slots[] = { 0, 159, 480 }; /* of four seconds: 6.25 ms each */
	struct cube c = { .axes = CUBE_TIME };
	struct profile *p = make_profile();
	struct cube_row *rows;

	(void)state;
	assert_int_equal(cube_begin_run(&c, CUBE_CURRENT, "x", 0, 0), 0);
	for (size_t i = 0; i < 3; i++)
		put(p, &(struct sample){ .stack = 1, .value = 1, .time_ns = times[i] });
	take(&c, p);
	assert_int_equal(cube_finish(&c, p), 0);
	assert_true(cube_run(&c)->span_ns == 4000000000);
	assert_int_equal(cube_run(&c)->block_count, 481);
	assert_int_equal(rows_by(&c, NULL, STACKS, &rows), 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(rows[i].slot, slots[i]);
	free(rows);
	cube_release(&c);
	profile_free(p);
}

/* An index rounds: what is beyond what it says is of the last block. */
static void test_a_known_span_does_not(void **state)
{
	struct cube c = { .axes = CUBE_TIME };
	struct profile *p = make_profile();

	(void)state;
	assert_int_equal(cube_begin_run(&c, CUBE_CURRENT, "x", 0, 1000), 0);
	put(p, &(struct sample){ .stack = 1, .value = 1, .time_ns = UINT64_MAX / 2 });
	put(p, &(struct sample){ .stack = 1, .value = 2, .time_ns = 999 });
	take(&c, p);
	assert_int_equal(cube_run(&c)->blocks[CUBE_BLOCKS_MAX - 1].value, 3);
	assert_int_equal(cube_run(&c)->blocks[CUBE_BLOCKS_MAX - 1].cells.len, 1);
	cube_release(&c);
	profile_free(p);
}

static void test_too_many_cells_make_longer_blocks(void **state)
{
	const uint32_t stacks = 60000;
	struct cube c = { .axes = CUBE_TIME };
	struct profile *p = make_profile();
	struct cube_row *rows;
	uint64_t sum = 0;
	size_t count;

	(void)state;
	for (uint32_t i = STACKS; i <= stacks; i++) {
		struct frame f = { .line = i };
		uint32_t frame, id;

		assert_int_equal(frametab_intern(p->frames, &f, &frame), 0);
		assert_int_equal(stacktab_intern(p->stacks, 0, frame, &id), 0);
	}
	assert_int_equal(cube_begin_run(&c, CUBE_CURRENT, "x", 0, 640), 0);
	for (uint64_t t = 0; t < 40; t++) {
		for (uint32_t i = 1; i <= stacks; i++)
			put(p, &(struct sample){ .stack = i, .time_ns = t, .value = 1 });
		take(&c, p);
	}
	count = rows_by(&c, NULL, stacks + 1, &rows);
	for (size_t i = 0; i < count; i++)
		sum += rows[i].value;
	assert_true(c.blocks < CUBE_BLOCKS_MAX && c.blocks >= CUBE_BLOCKS_MIN);
	assert_true(count <= CUBE_CELLS_MAX);
	assert_true(sum == 40 * (uint64_t)stacks);
	free(rows);
	cube_release(&c);
	profile_free(p);
}

/* Threads that take turns, with more tags than the table of hints has room for. */
static void test_cells_of_a_stack_and_tag_do_not_pile_up(void **state)
{
	struct cube c = { .axes = CUBE_THREADS };
	struct profile *p = make_profile();
	struct thread thread = { 0 };
	const int turns = 2 * CUBE_CELLS_MAX / 3000;
	uint32_t threads[3000];

	(void)state;
	for (uint32_t i = 0; i < 3000; i++) {
		thread.tid = 100 + i;
		assert_int_equal(profile_add_thread(p, &thread, &threads[i]), 0);
	}
	for (int turn = 0; turn < turns; turn++) {
		for (uint32_t i = 0; i < 3000; i++)
			put(p, &(struct sample){ .thread = threads[i], .stack = 1, .value = 1 });
		take(&c, p);
	}
	assert_true(c.all.cells.len <= CUBE_CELLS_MAX + 3000);
	assert_int_equal(cube_finish(&c, p), 0);
	assert_int_equal(c.all.cells.len, 3000);
	for (size_t i = 0; i < 3000; i++)
		assert_int_equal(c.all.cells.items[i].value, turns);
	cube_release(&c);
	profile_free(p);
}

/* Of runs of 4 blocks, 10 ns each where that is known; the value of each block in use. */
static void test_a_span_is_of_all_blocks_that_it_covers(void **state)
{
	static const struct {
		const char *name;
		unsigned int axes;
		uint64_t known_ns; /* 0: not known; then the blocks are of 250 ms */
		struct sample span;
		uint32_t blocks;
		uint64_t want[4];
	} cases[] = {
		{ "where it is not asked for: the first one",
		  CUBE_TIME,
		  40,
		  { .time_ns = 5, .duration_ns = 20, .value = 20 },
		  1,
		  { 20 } },
		{ "as much of each as it covers",
		  CUBE_TIME | CUBE_SPANS,
		  40,
		  { .time_ns = 5, .duration_ns = 20, .value = 20 },
		  3,
		  { 5, 10, 5 } },
		{ "up to a border",
		  CUBE_TIME | CUBE_SPANS,
		  40,
		  { .time_ns = 10, .duration_ns = 20, .value = 20 },
		  3,
		  { 0, 10, 10 } },
		{ "what stands for more",
		  CUBE_TIME | CUBE_SPANS,
		  40,
		  { .time_ns = 5, .duration_ns = 10, .value = 2001 },
		  2,
		  { 1000, 1001 } },
		{ "less than there are blocks",
		  CUBE_TIME | CUBE_SPANS,
		  40,
		  { .time_ns = 0, .duration_ns = 40, .value = 2 },
		  4,
		  { 0, 1, 0, 1 } },
		{ "a block beyond the last sample's begin",
		  CUBE_TIME | CUBE_SPANS,
		  40,
		  { .time_ns = 25, .duration_ns = 20, .value = 20 },
		  4,
		  { 0, 0, 5, 15 } },
		{ "further beyond: blocks of twice the length",
		  CUBE_TIME | CUBE_SPANS,
		  40,
		  { .time_ns = 25, .duration_ns = 50, .value = 50 },
		  4,
		  { 0, 15, 20, 15 } },
		{ "of unknown length",
		  CUBE_TIME | CUBE_SPANS,
		  0,
		  { .time_ns = 500000000, .duration_ns = 1000000000, .value = 1000 },
		  3,
		  { 0, 500, 500 } },
		{ "without times",
		  CUBE_TIME | CUBE_SPANS,
		  CUBE_NO_TIMES,
		  { .time_ns = 5, .duration_ns = 20, .value = 20 },
		  1,
		  { 20 } },
		{ "a duration that no file should have",
		  CUBE_TIME | CUBE_SPANS,
		  0,
		  { .time_ns = 1, .duration_ns = UINT64_MAX, .value = 4 },
		  3,
		  { 0, 1, 3 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cube c = { .axes = cases[i].axes, .blocks = 4, .blocks_min = 4 };
		struct profile *p = make_profile();
		const struct cube_run *run;

		assert_int_equal(cube_begin_run(&c, CUBE_CURRENT, "x", 0, cases[i].known_ns), 0);
		put(p, &cases[i].span);
		take(&c, p);
		run = cube_run(&c);
		if (run->block_count != cases[i].blocks || run->value != cases[i].span.value)
			fail_msg("%s: %u blocks", cases[i].name, run->block_count);
		for (uint32_t b = 0; b < run->block_count; b++)
			if (run->blocks[b].value != cases[i].want[b])
				fail_msg("%s: block %u: %llu", cases[i].name, b,
					 (unsigned long long)run->blocks[b].value);
		cube_release(&c);
		profile_free(p);
	}
}

/* --- sums ------------------------------------------------------------------------------------- */

static void test_sums_of_stacks_and_threads(void **state)
{
	struct cube c = { .axes = CUBE_TIME };
	struct profile *p = make_profile();
	uint64_t of_stack[CUBE_SIDES + 1][KINDS][STACKS] = { { { 0 } } };
	struct cube_sum of_thread[KINDS][THREADS] = { { { 0 } } }, sums[THREADS];
	uint64_t values[STACKS];

	(void)state;
	for (uint32_t run = 0; run < 2; run++) {
		assert_int_equal(cube_begin_run(&c, (uint8_t)run, "x", 1 + run, 0), 0);
		for (int i = 0; i < 3000; i++) {
			struct sample s = random_sample(run, 1 + random_below(1u << 31));
			struct cube_sum *t = &of_thread[s.kind][p->threads.items[s.thread].same];

			of_stack[run][s.kind][s.stack] += s.value;
			of_stack[CUBE_SIDES][s.kind][s.stack] += s.value;
			t->value += s.value;
			t->count++;
			if (!t->first_ns || s.time_ns < t->first_ns)
				t->first_ns = s.time_ns;
			if (s.time_ns > t->last_ns)
				t->last_ns = s.time_ns;
			put(p, &s);
		}
		take(&c, p);
	}
	for (uint16_t kind = 0; kind < KINDS; kind++) {
		for (uint32_t side = 0; side <= CUBE_SIDES; side++) {
			memset(values, 0, sizeof(values));
			cube_sum_stacks(&c, side < CUBE_SIDES ? (uint8_t)side : CUBE_BOTH_SIDES,
					kind, values);
			assert_memory_equal(values, of_stack[side][kind], sizeof(values));
		}
		memset(sums, 0, sizeof(sums));
		cube_sum_threads(&c, p, kind, sums);
		assert_memory_equal(sums, of_thread[kind], sizeof(sums));
	}
	memset(values, 0, sizeof(values));
	cube_sum_stacks(&c, CUBE_BOTH_SIDES, CUBE_ALL_KINDS, values);
	for (size_t i = 0; i < STACKS; i++)
		for (uint16_t kind = 0; kind < KINDS; kind++)
			values[i] -= of_stack[CUBE_SIDES][kind][i];
	for (size_t i = 0; i < STACKS; i++)
		assert_int_equal(values[i], 0);
	memset(sums, 0, sizeof(sums));
	cube_sum_threads(&c, p, KINDS, sums); /* a kind that nothing is of */
	assert_true(!sums[0].value && !sums[1].value);
	cube_release(&c);
	profile_free(p);
}

/* The one that had most ticks, of those that are known to be Python. */
static void test_process_of_a_run(void **state)
{
	struct cube c = { .axes = CUBE_TIME };
	struct profile *p = make_profile();
	uint32_t threads[3];

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		struct process process = { .pid = 10 + i, .recording = 2 };
		struct thread thread = { .tid = 1 };

		process.python_version = i < 2 ? intern(p, "3.1", i) : 0;
		assert_int_equal(profile_add_process(p, &process, &thread.process), 0);
		assert_int_equal(profile_add_thread(p, &thread, &threads[i]), 0);
	}
	assert_int_equal(cube_begin_run(&c, CUBE_CURRENT, "a", 1, 0), 0);
	assert_int_equal(cube_begin_run(&c, CUBE_CURRENT, "b", 2, 0), 0);
	for (uint32_t i = 0; i < 3; i++)
		put(p, &(struct sample){ .thread = threads[i], .stack = 1, .value = 1 + i });
	take(&c, p);
	assert_int_equal(cube_finish(&c, p), 0);
	assert_int_equal(c.runs.items[0].process, CUBE_NO_PROCESS);
	assert_int_equal(p->processes.items[c.runs.items[1].process].pid, 11);
	cube_release(&c);
	profile_free(p);
}

/* --- joined ----------------------------------------------------------------------------------- */

static void test_join_is_as_if_read_one_after_the_other(void **state)
{
	uint64_t *want = calloc(PLACES, sizeof(*want));

	(void)state;
	for (unsigned int axes = CUBE_TIME; axes < 2 * CUBE_TIME; axes++) {
		struct cube c = { .axes = axes, .blocks = 80, .blocks_min = 80 }, other = c;
		struct profile *p = make_profile(), *from = make_profile();
		struct profile_ids ids = { 0 };

		for (uint32_t run = 0; run < 2; run++) {
			struct cube *to = run ? &other : &c;
			struct profile *of = run ? from : p;

			assert_int_equal(cube_begin_run(to, (uint8_t)run, "x", 1 + run, SPAN_NS),
					 0);
			for (int i = 0; i < 2000; i++) {
				struct sample s = random_sample(run, random_below(SPAN_NS));
				uint64_t block = s.time_ns * 80 / SPAN_NS;

				want_sample(want, axes, of, &s, run * 80 + (uint32_t)block);
				put(of, &s);
			}
			take(to, of);
		}
		assert_int_equal(profile_merge(p, from, &ids), 0);
		assert_int_equal(cube_join(&c, &other, p, &ids), 0);
		assert_int_equal(cube_finish(&c, p), 0);
		assert_int_equal(c.runs.len, 2);
		assert_int_equal(c.runs.items[1].recording, ids.recordings[2]);
		check_rows(&c, want);
		profile_ids_release(&ids);
		cube_release(&other);
		cube_release(&c);
		profile_free(from);
		profile_free(p);
	}
	free(want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_axis_is_told_apart_where_it_is_asked_for),
		cmocka_unit_test(test_rows_are_in_order_and_complete),
		cmocka_unit_test(test_rows_by_another_key_of_each_side),
		cmocka_unit_test(test_rows_what_the_taker_returns),
		cmocka_unit_test(test_an_unknown_span_doubles),
		cmocka_unit_test(test_a_known_span_does_not),
		cmocka_unit_test(test_too_many_cells_make_longer_blocks),
		cmocka_unit_test(test_cells_of_a_stack_and_tag_do_not_pile_up),
		cmocka_unit_test(test_a_span_is_of_all_blocks_that_it_covers),
		cmocka_unit_test(test_sums_of_stacks_and_threads),
		cmocka_unit_test(test_process_of_a_run),
		cmocka_unit_test(test_join_is_as_if_read_one_after_the_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
