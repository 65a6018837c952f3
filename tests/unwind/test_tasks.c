/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The task that a sample is in: dicts, thread states and variables of all versions, and what is
 * none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "hamt.h"
#include "rows.h"

#define CORO 128 /* of a task; the name is behind it */
#define TASK_BYTES 160
#define FRAME_INSIDE 72 /* of a coroutine */
#define TSTATE_TASK 872
#define KEYS_BYTES 1024
#define ENTRIES 5 /* of the dict */
#define ABSENT 0x7fffdead0000ull
#define READS_MAX 256 /* of a sample, whatever the memory is */

struct setting {
	struct world w;
	struct hamt_types types;
	struct asyncio_row row;
	__u64 keys;
	__u64 frames[3]; /* of coroutines on the stack, root first */
	__u64 tasks[3];  /* of these */
};

static bool has_dict(const struct setting *s)
{
	return s->w.off->minor < 14;
}

static __u64 task_new(struct setting *s, __u64 frame, __u64 name)
{
	__u64 task = world_alloc(&s->w, TASK_BYTES), coro;

	if (s->row.is_frame_inside) {
		coro = frame - FRAME_INSIDE;
	} else {
		coro = world_alloc(&s->w, 64);
		memory_write_u64(s->w.m, coro + s->row.coro_frame, frame);
	}
	memory_write_u64(s->w.m, task + CORO, coro);
	memory_write_u64(s->w.m, task + CORO + 8, name);
	return task;
}

static __u64 name_new(struct setting *s, const char *name)
{
	return hamt_text(&s->w, &s->types, TEXT_ASCII, 1, name, strlen(name));
}

/* A dict of this version, with room for eight and nothing in it. */
static __u64 dict_new(struct setting *s)
{
	__u64 dict = world_alloc(&s->w, 64);

	s->keys = world_alloc(&s->w, KEYS_BYTES);
	memory_write_u64(s->w.m, dict + 32, s->keys);
	if (s->w.off->minor < 11) {
		memory_write_u64(s->w.m, s->keys + 8, 8);
		memory_write_u64(s->w.m, s->keys + 32, ENTRIES);
	} else {
		memory_write_u8(s->w.m, s->keys + 9, 3);
		memory_write_u8(s->w.m, s->keys + 10, 0);
		memory_write_u64(s->w.m, s->keys + 24, ENTRIES);
	}
	return dict;
}

static __u64 entry_of(const struct setting *s, unsigned at)
{
	return s->keys + (s->w.off->minor < 11 ? 40 : 32) + 8 + 24ull * at;
}

/* Some loop runs it. */
static void run_task(struct setting *s, unsigned at, __u64 task)
{
	if (!has_dict(s))
		memory_write_u64(s->w.m, s->w.tstate + TSTATE_TASK, task);
	else
		memory_write_u64(s->w.m, entry_of(s, at) + 16, task);
}

/* main, and three coroutines, of which each calls the next one by C. False: no asyncio there. */
static bool begin(struct setting *s, const struct py_offsets *off)
{
	static const char *const names[] = { "outer", "eager", "inner" };

	if (off->minor < 8 || off->is_free_threaded)
		return false;
	memset(s, 0, sizeof(*s));
	world_init(&s->w, off);
	hamt_types_init(&s->w, &s->types);
	s->row = (struct asyncio_row){ .process = WORLD_PROCESS,
				       .task_coro = CORO,
				       .task_name = CORO + 8,
				       .is_frame_inside = off->minor >= 11,
				       .coro_frame = off->minor >= 11 ? FRAME_INSIDE : 16,
				       .tstate_task = off->minor >= 14 ? TSTATE_TASK : 0 };
	if (has_dict(s))
		s->row.current_tasks = dict_new(s);
	world_enter(&s->w);
	world_push(&s->w, world_code(&s->w, "main"), 2);
	for (unsigned i = 0; i < 3; i++) {
		world_enter(&s->w);
		s->frames[i] = world_push_generator(&s->w, world_code(&s->w, names[i]), 2);
		s->tasks[i] = task_new(s, s->frames[i], name_new(s, names[i]));
	}
	world_publish(&s->w);
	return true;
}

static const struct py_scratch *sample(struct setting *s)
{
	unwinder_set_asyncio(&s->row);
	memory_use(s->w.m);
	world_unwind(&s->w);
	return unwinder_scratch();
}

/* How many frames are those of a task: at most one, at `at` from the leaf. */
static unsigned roots_of(const struct py_scratch *r, unsigned *at)
{
	unsigned count = 0;

	for (unsigned i = 0; i < r->walk.depth; i++)
		if (r->records[i].flags & FRAME_TASK_ROOT) {
			count++;
			*at = i;
		}
	return count;
}

static void check(const char *row, const char *name, const struct setting *s,
		  const struct py_scratch *r, int want)
{
	unsigned at = 0, roots = roots_of(r, &at);

	if (want < 0 && (r->async.task || roots || r->labels.count))
		world_fail(row, name, "a task is told");
	if (want < 0)
		return;
	if (r->async.task != s->tasks[want] || r->async.frame != s->frames[want])
		world_fail(row, name, "not that task");
	else if (roots != 1 || at != 2u - (unsigned)want)
		world_fail(row, name, "%u roots, one at %u", roots, at);
}

static void test_find_tasks_tells_the_innermost(void **state)
{
	static const struct {
		const char *name;
		int runs[4]; /* by entry: a task, -1: nothing, -2: one that is on no stack */
		int want;
	} cases[] = {
		{ "none", { -1, -1, -1, -1 }, -1 },
		{ "the outermost", { 0, -1, -1, -1 }, 0 },
		{ "the innermost", { 2, -1, -1, -1 }, 2 },
		{ "another loop's", { -2, -1, -1, -1 }, -1 },
		{ "two loops", { -2, -1, 1, -1 }, 1 },
		{ "an eager one on its maker", { 0, 2, -1, -1 }, 2 },
		{ "of several the innermost", { 0, 1, -2, -2 }, 1 },
	};
	struct setting s;

	(void)state;
	for (unsigned i = 0; i < row_count; i++)
		for (unsigned k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
			if (!begin(&s, &rows[i].off))
				break;
			for (unsigned n = 0; n < (has_dict(&s) ? 4 : 1); n++) {
				int task = cases[k].runs[n];

				if (task >= 0)
					run_task(&s, n, s.tasks[task]);
				else if (task == -2)
					run_task(&s, n, task_new(&s, world_alloc(&s.w, 256), 0));
			}
			/* Without a dict there is one, the first. */
			if (has_dict(&s) || cases[k].runs[1] < 0)
				check(rows[i].name, cases[k].name, &s, sample(&s),
				      has_dict(&s) || cases[k].runs[0] >= 0 ? cases[k].want : -1);
			world_release(&s.w);
		}
}

/* trio's loop has the task in a variable; from 3.14 on with a tag where no object lies. */
static void test_find_tasks_by_a_variable(void **state)
{
	static const struct {
		const char *name;
		int runs; /* a task, -1: none, -2: one that is on no stack */
		__u64 tag;
		int want;
	} cases[] = {
		{ "none", -1, 0, -1 },
		{ "one on the stack", 1, 0, 1 },
		{ "with a tag", 1, 1, 1 },
		{ "the last one that ran", -2, 0, -1 },
	};
	struct setting s;

	(void)state;
	for (unsigned i = 0; i < row_count; i++)
		for (unsigned k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
			__u64 task;

			if (!begin(&s, &rows[i].off))
				break;
			task = cases[k].runs >= 0    ? s.tasks[cases[k].runs]
			       : cases[k].runs == -2 ? task_new(&s, world_alloc(&s.w, 256), 0)
						     : 0;
			s.row.is_variable = 1;
			s.row.tstate_task = 0;
			s.row.current_tasks = world_alloc(&s.w, 8);
			memory_write_u64(s.w.m, s.row.current_tasks, task | cases[k].tag);
			check(rows[i].name, cases[k].name, &s, sample(&s), cases[k].want);
			s.row.current_tasks = ABSENT;
			check(rows[i].name, "a variable that is not there", &s, sample(&s), -1);
			world_release(&s.w);
		}
}

static void test_read_task_name_leaves_made_up_ones_out(void **state)
{
	static const struct {
		const char *name, *text; /* NULL: an int */
		const char *want;        /* NULL: none */
	} cases[] = {
		{ "given", "upload", "upload" }, { "made up", "Task-17", NULL },
		{ "an int", NULL, NULL },        { "like one that is made up", "Task-A", "Task-A" },
		{ "short", "Task", "Task" },     { "empty", "", "" },
	};
	const struct label_value *v;
	struct setting s;
	__u32 seven = 7;

	(void)state;
	for (unsigned i = 0; i < row_count; i++)
		for (unsigned k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
			const struct py_scratch *r;
			const char *want = cases[k].want;

			if (!begin(&s, &rows[i].off))
				break;
			run_task(&s, 0,
				 task_new(&s, s.frames[0],
					  cases[k].text ? name_new(&s, cases[k].text)
							: hamt_int(&s.w, s.types.integer, false,
								   &seven, 1)));
			r = sample(&s);
			v = &r->labels.values[0];
			if (r->labels.count != !!want ||
			    !!(r->walk.flags & SAMPLE_TASK_NAMED) != !!want)
				world_fail(rows[i].name, cases[k].name, "%u names",
					   r->labels.count);
			else if (want && (v->number != LABEL_TASK || v->bytes != strlen(want) ||
					  memcmp(v->value, want, v->bytes) != 0))
				world_fail(rows[i].name, cases[k].name, "another name");
			world_release(&s.w);
		}
}

/* Dicts that are torn, or none: no task, and not many reads. */
static void test_find_tasks_ends(void **state)
{
	static const struct {
		const char *name;
		unsigned at_3_8, at_3_11; /* of the keys */
		__u64 value;
		bool is_told; /* all the same */
	} cases[] = {
		{ "entries without end", 32, 24, ~0ull, true },
		{ "no entries", 32, 24, 0, false },
		{ "a table of 2^60", 8, 8, 0x3c3c3c3c3c3c3c3cull, false },
	};
	struct setting s;

	(void)state;
	for (unsigned i = 0; i < row_count; i++)
		for (unsigned k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
			size_t reads;

			if (!begin(&s, &rows[i].off))
				break;
			run_task(&s, 0, s.tasks[0]);
			if (has_dict(&s)) {
				memory_write_u64(s.w.m,
						 s.keys + (s.w.off->minor < 11 ? cases[k].at_3_8
									       : cases[k].at_3_11),
						 cases[k].value);
				check(rows[i].name, cases[k].name, &s, sample(&s),
				      cases[k].is_told ? 0 : -1);
				reads = memory_reads(s.w.m);
				if (reads > READS_MAX)
					world_fail(rows[i].name, cases[k].name, "%zu reads", reads);
			}
			world_release(&s.w);
		}
}

static void test_find_tasks_survives_what_is_not_there(void **state)
{
	struct setting s;

	(void)state;
	for (unsigned i = 0; i < row_count; i++) {
		if (!begin(&s, &rows[i].off))
			continue;
		run_task(&s, 0, ABSENT);
		check(rows[i].name, "a task", &s, sample(&s), -1);
		memory_write_u64(s.w.m, s.tasks[0] + CORO, ABSENT);
		run_task(&s, 0, s.tasks[0]);
		check(rows[i].name, "a coroutine", &s, sample(&s), -1);
		if (has_dict(&s)) {
			memory_write_u64(s.w.m, s.row.current_tasks + 32, ABSENT);
			check(rows[i].name, "keys", &s, sample(&s), -1);
			s.row.current_tasks = ABSENT;
			check(rows[i].name, "a dict", &s, sample(&s), -1);
		}
		world_release(&s.w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_find_tasks_tells_the_innermost),
		WORLD_TEST(test_find_tasks_by_a_variable),
		WORLD_TEST(test_read_task_name_leaves_made_up_ones_out),
		WORLD_TEST(test_find_tasks_ends),
		WORLD_TEST(test_find_tasks_survives_what_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
