/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/sweeper.h"
#include "collect/task_stacks.h"
#include "tests/no_kernel.h"

/* Sweeps are made up: what becomes of them is known. Times are since the start of the recording. */

#define SECONDS(n) ((uint64_t)((n)*NS_PER_SECOND))
#define START SECONDS(1) /* long ago: no processes are listed anew, which would end all graphs */
#define TASKS 6
#define TWO_CLOCKS_S 0.1 /* between two looks at clocks, on a busy machine */

int session_add_layout(struct session *s, const struct py_offsets *off)
{
	(void)s;
	(void)off;
	return -ENOSPC;
}

/* --- a sweeper that gives what it was given ----------------------------------------------------
 */

struct sweeper {
	struct sweep *next;
	uint64_t charged_ns;
};

static struct sweeper swept;

int sweeper_new(struct sweeper **out)
{
	swept = (struct sweeper){ 0 };
	*out = &swept;
	return 0;
}

void sweep_free(struct sweep *sw)
{
	if (!sw)
		return;
	inspect_tasks_release(&sw->tasks);
	free(sw->comms);
	free(sw);
}

void sweeper_free(struct sweeper *s)
{
	sweep_free(s->next);
}

int sweeper_set_targets(struct sweeper *s, const struct target_id *targets, size_t count)
{
	(void)s;
	(void)targets;
	(void)count;
	return 0;
}

int target_id_compare(const void *a, const void *b)
{
	const struct target_id *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

struct sweep *sweeper_take(struct sweeper *s)
{
	return take_ptr(s->next);
}

void sweeper_charge(struct sweeper *s, uint64_t ns)
{
	s->charged_ns += ns;
}

/* A task, whose only frame is called like it, and who awaits it: " a b", before it or behind. */
struct made_task {
	const char *name;
	const char *awaited_by;
	enum task_state state;
	bool is_unsure;
};

#define ALONE(n)            \
	{                   \
		.name = (n) \
	}
#define AWAITED(n, by)                          \
	{                                       \
		.name = (n), .awaited_by = (by) \
	}
#define IN(n, s)                          \
	{                                 \
		.name = (n), .state = (s) \
	}

static uint32_t place_of(const struct made_task *tasks, const char *name, size_t len)
{
	for (uint32_t i = 0; i < TASKS && tasks[i].name; i++)
		if (strlen(tasks[i].name) == len && !memcmp(tasks[i].name, name, len))
			return i;
	fail_msg("no task %.*s", (int)len, name);
	return 0;
}

static void add_task(struct inspect_tasks *t, const struct made_task *tasks, uint32_t i)
{
	const struct made_task *made = &tasks[i];
	struct inspect_task task = { .id = 100 + i,
				     .name = made->name,
				     .coroutine = "coroutine",
				     .state = made->state,
				     .is_unsure = made->is_unsure,
				     .frames = (uint32_t)t->frames.len,
				     .frames_len = 1,
				     .awaited_by = (uint32_t)t->links.len };
	struct task_frame frame = { .name = made->name,
				    .file = "/srv/app.py",
				    .frame = 200 + i,
				    .line = 3,
				    .first_line = 1 };
	const char *at = made->awaited_by ? made->awaited_by : "";

	while (*at) {
		size_t len = strcspn(++at, " ");

		assert_int_equal(vec_push(&t->links, place_of(tasks, at, len)), 0);
		task.awaited_by_len++;
		at += len;
	}
	assert_int_equal(vec_push(&t->frames, frame), 0);
	assert_int_equal(vec_push(&t->tasks, task), 0);
}

static void give_sweep(const struct made_task *tasks, uint64_t begin_ns, uint64_t end_ns)
{
	struct sweep *sw = calloc(1, sizeof(*sw));
	const struct inspect_loop loop = { .tid = getpid() };

	assert_non_null(sw);
	sw->target = (struct target_id){ OWN_PROCESS, (uint32_t)getpid() };
	sw->begin_ns = START + begin_ns;
	sw->end_ns = START + end_ns;
	sw->tasks.has_asyncio = true;
	assert_int_equal(vec_push(&sw->tasks.loops, loop), 0);
	for (uint32_t i = 0; i < TASKS && tasks[i].name; i++)
		add_task(&sw->tasks, tasks, i);
	sw->comms = calloc(1, sizeof(*sw->comms));
	assert_non_null(sw->comms);
	assert_null(swept.next);
	swept.next = sw;
}

/* --- what is recorded ---------------------------------------------------------------------------
 */

struct recorded {
	struct profile *profile;
	struct discovery *discovery;
	struct processes *processes;
	struct threads *threads;
	struct task_stacks *tasks;
};

static void meet_process(struct recorded *r)
{
	const struct sample_event e = { .pid = (uint32_t)getpid(), .process = OWN_PROCESS };

	assert_int_equal(processes_introduce(r->processes, &e, NULL), 0);
}

/* Of targets, which rows say, or of all that is met, as this process is. */
static void begin_of(struct recorded *r, bool has_filter)
{
	struct task_stacks_opts opts = { .has_time = true,
					 .start_ns = START,
					 .has_filter = has_filter };

	own_row.start_ns = 0;
	*r = (struct recorded){ 0 };
	assert_int_equal(profile_new(&r->profile), 0);
	assert_int_equal(discovery_new(NULL, &r->discovery), 0);
	assert_int_equal(processes_new(r->discovery, r->profile, &r->processes), 0);
	assert_int_equal(threads_new(NULL, r->discovery, r->profile, r->processes, &r->threads), 0);
	if (!has_filter)
		meet_process(r);
	opts.profile = r->profile;
	opts.processes = r->processes;
	opts.threads = r->threads;
	assert_int_equal(task_stacks_new(&opts, &r->tasks), 0);
}

static void begin(struct recorded *r)
{
	begin_of(r, false);
}

static void end(struct recorded *r)
{
	task_stacks_free(r->tasks);
	threads_free(r->threads);
	processes_free(r->processes);
	discovery_free(r->discovery);
	profile_free(r->profile);
}

/* "main;load": root first. */
static void describe(const struct profile *p, uint32_t stack, char *out, size_t size)
{
	const struct stack_entry *entries = stacktab_entries(p->stacks);
	const char *name;
	size_t len;

	*out = 0;
	if (!stack)
		return;
	describe(p, entries[stack].parent, out, size);
	name = strtab_get(p->strings, frametab_get(p->frames, entries[stack].frame)->name);
	len = strlen(out);
	snprintf(out + len, size - len, "%s%s", len ? ";" : "", name);
}

static uint32_t loop_stack(struct profile *p)
{
	struct frame f = { .line = 1, .first_line = 1 };
	uint32_t frame, stack;

	assert_int_equal(strtab_intern(p->strings, "loop", 4, &f.name), 0);
	assert_int_equal(frametab_intern(p->frames, &f, &frame), 0);
	assert_int_equal(stacktab_intern(p->stacks, 0, frame, &stack), 0);
	return stack;
}

/* --- samples
 * -------------------------------------------------------------------------------------- */

static void test_task_stacks_find_has_those_who_await_it(void **state)
{
	static const struct {
		const char *name;
		struct made_task tasks[TASKS];
		uint32_t of;
		bool has_loop;
		const char *stacks[3]; /* of one sample after the other */
	} cases[] = {
		/* clang-format off */
		{ "nobody", { ALONE("main") }, 0, false, { "", "" } },
		{ "a chain", { ALONE("main"), AWAITED("load", " main"), AWAITED("fetch", " load") }, 2, false,
		  { "main;load", "main;load" } },
		{ "those who await it are read later", { AWAITED("fetch", " load"), AWAITED("load", " main"), ALONE("main") },
		  0, false, { "main;load", "main;load" } },
		{ "several take turns", { ALONE("a"), ALONE("b"), AWAITED("both", " a b") }, 2, false, { "a", "b", "a" } },
		{ "several ways from one", { ALONE("main"), AWAITED("a", " main"), AWAITED("b", " main"), AWAITED("both", " a b") },
		  3, false, { "main;a", "main;b", "main;a" } },
		{ "a cycle ends where it began", { AWAITED("x", " y"), AWAITED("y", " x") }, 0, false, { "y", "y" } },
		{ "awaits itself", { AWAITED("x", " x") }, 0, false, { "", "" } },
		{ "on the loop's frames", { ALONE("main"), AWAITED("load", " main") }, 1, true, { "loop;main" } },
		{ "nobody, on the loop's frames", { ALONE("main") }, 0, true, { "loop" } },
		/* clang-format on */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct sample_event e = { .process = OWN_PROCESS,
						.task = 100 + cases[i].of,
						.coro_frame = 200 + cases[i].of,
						.ktime_ns = START + SECONDS(1) };
		struct recorded r;
		uint32_t below, stack;
		char got[128];

		begin(&r);
		below = cases[i].has_loop ? loop_stack(r.profile) : 0;
		give_sweep(cases[i].tasks, SECONDS(1), SECONDS(1));
		assert_int_equal(task_stacks_step(r.tasks, 0), 1);
		for (size_t k = 0; k < 3 && cases[i].stacks[k]; k++) {
			assert_int_equal(task_stacks_find(r.tasks, &e, false, below, &stack), 0);
			describe(r.profile, stack, got, sizeof(got));
			if (strcmp(got, cases[i].stacks[k]) != 0)
				fail_msg("%s, %zu: \"%s\"", cases[i].name, k, got);
		}
		assert_int_equal(task_stacks_stats(r.tasks)->unseen, 0);
		end(&r);
	}
}

static void test_task_stacks_find_waits_for_a_sweep_that_may_see_it(void **state)
{
	static const struct {
		const char *name;
		struct sample_event e;
		bool has_sweep, allow_unknown;
		int r;
		uint64_t unseen;
	} cases[] = {
		/* clang-format off */
		{ "no sweep yet", { .task = 100, .coro_frame = 200 }, false, false, -EAGAIN, 0 },
		{ "and none is waited for", { .task = 100, .coro_frame = 200 }, false, true, 0, 1 },
		{ "it came after the sweep", { .task = 107, .coro_frame = 207, .ktime_ns = START + SECONDS(3) },
		  true, false, -EAGAIN, 0 },
		{ "it was gone at the sweep", { .task = 107, .coro_frame = 207, .ktime_ns = START + SECONDS(1) },
		  true, false, 0, 1 },
		{ "another one at its address", { .task = 100, .coro_frame = 999, .ktime_ns = START + SECONDS(1) },
		  true, false, 0, 1 },
		{ "seen", { .task = 100, .coro_frame = 200, .ktime_ns = START + SECONDS(3) }, true, false, 0, 0 },
		/* clang-format on */
	};
	static const struct made_task tasks[TASKS] = { ALONE("main") };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sample_event e = cases[i].e;
		struct recorded r;
		uint32_t stack;
		int got;

		begin(&r);
		e.process = OWN_PROCESS;
		if (cases[i].has_sweep)
			give_sweep(tasks, SECONDS(2), SECONDS(2));
		assert_int_equal(task_stacks_step(r.tasks, 0), cases[i].has_sweep);
		got = task_stacks_find(r.tasks, &e, cases[i].allow_unknown, 0, &stack);
		if (got != cases[i].r || task_stacks_stats(r.tasks)->unseen != cases[i].unseen)
			fail_msg("%s: %d, %llu unseen", cases[i].name, got,
				 (unsigned long long)task_stacks_stats(r.tasks)->unseen);
		end(&r);
	}
}

/* --- task time
 * -------------------------------------------------------------------------------------- */

/* Of one stack and label, in seconds. */
static double time_of(const struct profile *p, const char *stack, const char *label)
{
	uint64_t ns = 0;
	char got[128];

	for (size_t i = 0; i < p->samples.len; i++) {
		const struct sample *s = &p->samples.items[i];
		const struct label_entry *task = &labeltab_entries(p->labels)[s->labels];

		describe(p, s->stack, got, sizeof(got));
		if (!strcmp(got, stack) && s->labels &&
		    !strcmp(strtab_get(p->strings, task->value), label))
			ns += s->value;
	}
	return (double)ns / NS_PER_SECOND;
}

/* Sweeps at 1 s and, from 2.5 to 3.5, at 3 s of a recording of 5: they stand for 1.75 s and 3.25.
 */
static void test_task_stacks_settle_counts_where_tasks_wait(void **state)
{
	static const struct {
		const char *name;
		struct made_task first[TASKS], second[TASKS];
		const char *stack, *label;
		double want, unsure;
	} cases[] = {
		/* clang-format off */
		{ "waits all the time", { ALONE("main") }, { ALONE("main") }, "main", "main", 5, 0 },
		{ "asyncio made up its name", { ALONE("Task-7") }, { ALONE("Task-7") }, "Task-7", "coroutine", 5, 0 },
		{ "waits at first", { ALONE("main") }, { IN("main", TASK_RUNNING) }, "main", "main", 1.75, 0 },
		{ "waits then", { IN("main", TASK_RUNNING) }, { ALONE("main") }, "main", "main", 3.25, 0 },
		{ "waits for its turn", { IN("main", TASK_READY) }, { ALONE("main") }, "main;<ready>", "main",
		  1.75, 0 },
		{ "in the one that it waits for", { ALONE("main"), AWAITED("load", " main") },
		  { ALONE("main"), AWAITED("load", " main") }, "main;load", "load", 5, 0 },
		{ "not where it waits for one", { ALONE("main"), AWAITED("load", " main") },
		  { ALONE("main"), AWAITED("load", " main") }, "main", "main", 0, 0 },
		{ "two await it: half of it", { ALONE("a"), ALONE("b"), AWAITED("both", " a b") },
		  { ALONE("a"), ALONE("b"), AWAITED("both", " a b") }, "b;both", "both", 2.5, 0 },
		{ "one that changed meanwhile", { { .name = "main", .is_unsure = true } }, { ALONE("main") }, "main", "main",
		  3.25, 1.75 },
		/* clang-format on */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct recorded r;
		double got, unsure;

		begin(&r);
		give_sweep(cases[i].first, SECONDS(1), SECONDS(1));
		assert_int_equal(task_stacks_step(r.tasks, 0), 1);
		give_sweep(cases[i].second, SECONDS(2.5), SECONDS(3.5));
		assert_int_equal(task_stacks_step(r.tasks, 0), 1);
		assert_int_equal(task_stacks_settle(r.tasks, START + SECONDS(5)), 0);
		got = time_of(r.profile, cases[i].stack, cases[i].label);
		unsure = (double)task_stacks_stats(r.tasks)->unsure_ns / NS_PER_SECOND;
		if (got != cases[i].want || unsure != cases[i].unsure)
			fail_msg("%s: %f s, %f s unsure", cases[i].name, got, unsure);
		assert_int_equal(task_stacks_stats(r.tasks)->sweeps, 2);
		end(&r);
	}
}

static void start_own(uint64_t start_ns)
{
	own_row.start_ns = start_ns + clock_ns(CLOCK_BOOTTIME) - monotonic_ns();
}

static void end_own(struct task_stacks *ts, uint64_t end_ns)
{
	const struct thread_times_event e = { .pid = (uint32_t)getpid(),
					      .tid = (uint32_t)getpid(),
					      .process = OWN_PROCESS,
					      .ktime_ns = end_ns };

	assert_int_equal(task_stacks_end_thread(ts, &e), 0);
}

/*
 * A process that begins at 1 s and is listed at 2 s, swept at 3 s and at 4 s, and not there any
 * more at the listing of 6 s.
 */
static void test_task_stacks_has_all_of_a_short_life(void **state)
{
	static const struct made_task tasks[TASKS] = { ALONE("main") };
	static const struct {
		const char *name;
		double ended; /* 0: nobody says when */
		double want, variance;
	} cases[] = {
		{ "from its begin to its end", 5, 4, (2 * 2 + 1 * 1) / 2. },
		{ "its end was lost", 0, 5, (2 * 2 + 2 * 2) / 2. },
		{ "what ended before was one of its threads", 3.5, 5, (2 * 2 + 2 * 2) / 2. },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct recorded r;
		uint64_t base;
		double got, variance;

		begin(&r);
		base = monotonic_ns();
		start_own(base + SECONDS(1));
		assert_int_equal(task_stacks_step(r.tasks, base + SECONDS(2)), 0);
		give_sweep(tasks, base - START + SECONDS(3), base - START + SECONDS(3));
		assert_int_equal(task_stacks_step(r.tasks, base + SECONDS(3)), 1);
		if (cases[i].ended > 0)
			end_own(r.tasks, base + SECONDS(cases[i].ended));
		own_row.start_ns = 0;
		give_sweep(tasks, base - START + SECONDS(4), base - START + SECONDS(4));
		assert_int_equal(task_stacks_step(r.tasks, base + SECONDS(6)), 1);
		assert_int_equal(task_stacks_settle(r.tasks, base + SECONDS(8)), 0);
		got = time_of(r.profile, "main", "main");
		variance = task_stacks_stats(r.tasks)->variance_ns2 / NS_PER_SECOND / NS_PER_SECOND;
		if (fabs(got - cases[i].want) > TWO_CLOCKS_S ||
		    fabs(variance - cases[i].variance) > TWO_CLOCKS_S)
			fail_msg("%s: %f s, variance %f", cases[i].name, got, variance);
		assert_int_equal(task_stacks_stats(r.tasks)->unmet, 0);
		end(&r);
	}
}

static void test_task_stacks_counts_who_ended_before_a_sweep(void **state)
{
	struct recorded r;
	uint64_t base;

	(void)state;
	begin(&r);
	base = monotonic_ns();
	end_own(r.tasks, base + SECONDS(1));
	assert_int_equal(task_stacks_step(r.tasks, base + SECONDS(2)), 0);
	assert_int_equal(task_stacks_stats(r.tasks)->unmet, 1);
	end(&r);
}

/* Until then nobody knows what to say of it. */
static void test_task_stacks_keeps_the_time_of_who_is_met_later(void **state)
{
	static const struct made_task tasks[TASKS] = { ALONE("main") };
	struct recorded r;

	(void)state;
	begin_of(&r, true);
	give_sweep(tasks, SECONDS(1), SECONDS(1));
	assert_int_equal(task_stacks_step(r.tasks, 0), 1);
	give_sweep(tasks, SECONDS(3), SECONDS(3));
	assert_int_equal(task_stacks_step(r.tasks, 0), 1);
	assert_int_equal(r.profile->samples.len, 0);
	meet_process(&r);
	assert_int_equal(task_stacks_settle(r.tasks, START + SECONDS(5)), 0);
	assert_true(time_of(r.profile, "main", "main") == 5);
	end(&r);
}

static void test_task_stacks_tells_of_whom_it_cannot_read(void **state)
{
	struct recorded r;
	struct sweep *sw = calloc(1, sizeof(*sw));

	(void)state;
	begin(&r);
	assert_non_null(sw);
	sw->target = (struct target_id){ OWN_PROCESS, 412 };
	sw->r = -ENOTSUP;
	snprintf(sw->text, sizeof(sw->text), "tasks of this version");
	swept.next = sw;
	assert_int_equal(task_stacks_step(r.tasks, 0), 1);
	assert_int_equal(task_stacks_stats(r.tasks)->failed_pid, 412);
	assert_string_equal(task_stacks_stats(r.tasks)->failed, "tasks of this version");
	assert_int_equal(task_stacks_stats(r.tasks)->failed_count, 1);
	assert_false(task_stacks_stats(r.tasks)->has_asyncio);
	end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_task_stacks_find_has_those_who_await_it),
		cmocka_unit_test(test_task_stacks_find_waits_for_a_sweep_that_may_see_it),
		cmocka_unit_test(test_task_stacks_settle_counts_where_tasks_wait),
		cmocka_unit_test(test_task_stacks_has_all_of_a_short_life),
		cmocka_unit_test(test_task_stacks_counts_who_ended_before_a_sweep),
		cmocka_unit_test(test_task_stacks_keeps_the_time_of_who_is_met_later),
		cmocka_unit_test(test_task_stacks_tells_of_whom_it_cannot_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
