/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "collect/sample.h"
#include "collect/times.h"
#include "collect/wait_words.h"

/* The samples of a thread sum up to its times, to the nanosecond, whatever comes and goes. */

#define TICK_NS 10000000ULL
#define MS 1000000ULL
#define S NS_PER_SECOND
#define TID 7
#define PROCESS 99
#define GIL 0x1000

struct record {
	struct sample_event head;
	struct sample_part part;
};

/* What was told, of a thread. */
struct told {
	uint64_t samples, cpu_ns, wait_ns[WAIT_WORDS], rest_cpu_ns, rest_wait_ns, blocked_ns;
	uint64_t last_ns, last_value, last_duration_ns, last_blocked_ns, last_thread;
	char comm[COMM_BYTES];
};

static int take(void *arg, const struct timed_sample *s)
{
	bool is_rest = sample_part(s->event)->status == UNWIND_NOT_SAMPLED;
	struct told *t = arg;

	assert_true(s->value > 0);
	t->samples += !is_rest;
	if (s->event->source == SOURCE_TICKS)
		t->cpu_ns += s->value;
	else
		t->wait_ns[s->event->wait] += s->value;
	if (is_rest && s->event->source == SOURCE_TICKS)
		t->rest_cpu_ns += s->value;
	else if (is_rest)
		t->rest_wait_ns += s->value;
	t->blocked_ns += s->blocked_ns;
	t->last_blocked_ns = s->blocked_ns;
	t->last_thread = s->event->thread;
	t->last_ns = s->event->ktime_ns;
	t->last_value = s->value;
	t->last_duration_ns = s->event->duration_ns;
	memcpy(t->comm, s->comm, sizeof(t->comm));
	return 0;
}

struct fixture {
	struct told told;
	struct times *times;
};

static void begin(struct fixture *f, bool has_all_ticks)
{
	const struct times_opts opts = {
		.interval_ns = TICK_NS, .has_all_ticks = has_all_ticks, .fn = take, .arg = &f->told
	};

	memset(f, 0, sizeof(*f));
	assert_int_equal(times_new(&opts, &f->times), 0);
}

static void end(struct fixture *f)
{
	times_free(f->times);
}

static void add(struct fixture *f, const struct sample_event *like)
{
	struct record r = { .head = *like, .part = { .opcode = OPCODE_NONE } };

	r.head.kind = EVENT_SAMPLE;
	r.head.tid = TID;
	r.head.process = like->process ? like->process : PROCESS;
	r.head.gil = like->gil ? like->gil : GIL;
	assert_int_equal(times_add_sample(f->times, &r.head), 0);
}

static void add_ticks(struct fixture *f, int count, uint64_t at_ns)
{
	for (int i = 0; i < count; i++)
		add(f, &(struct sample_event){ .value = 1, .ktime_ns = at_ns });
}

static void add_span(struct fixture *f, enum wait_reason wait, uint32_t flags, uint64_t value,
		     uint64_t at_ns)
{
	add(f, &(struct sample_event){ .source = SOURCE_SWITCHES,
				       .wait = wait,
				       .flags = flags,
				       .value = value,
				       .duration_ns = value,
				       .ktime_ns = at_ns });
}

static void add_process_span(struct fixture *f, uint64_t process, enum wait_reason wait,
			     uint64_t value, uint64_t at_ns)
{
	add(f, &(struct sample_event){ .source = SOURCE_SWITCHES,
				       .process = process,
				       .wait = wait,
				       .value = value,
				       .duration_ns = value,
				       .ktime_ns = at_ns });
}

static struct thread_times_event times_at(uint64_t now_ns, uint64_t cpu_ns)
{
	return (struct thread_times_event){ .kind = EVENT_THREAD_TIMES,
					    .pid = TID,
					    .process = PROCESS,
					    .tid = TID,
					    .gil = GIL,
					    .ktime_ns = now_ns,
					    .since_ns = S,
					    .cpu_ns = cpu_ns,
					    .comm = "worker" };
}

static void list(struct fixture *f, const struct thread_times_event *e, enum times_depth depth)
{
	times_begin_list(f->times, e->ktime_ns);
	assert_int_equal(times_list_thread(f->times, e), 0);
	assert_int_equal(times_settle(f->times, e->ktime_ns, depth), 0);
}

static void test_times_settle_scales_ticks_in_groups(void **state)
{
	static const struct {
		const char *name;
		int ticks;
		uint64_t at_ns, now_ns, cpu_ns;
		enum times_depth depth;
		uint64_t samples, told_ns, rest_ns;
	} cases[] = {
		/* clang-format off */
		{ "a group, and what does not divide", 16, S, 2 * S, 163 * MS + 5, TIMES_GROUPS,
		  16, 163 * MS + 5, 0 },
		{ "too few wait", 15, S, 2 * S, 163 * MS, TIMES_GROUPS, 0, 0, 0 },
		{ "too few, but old", 15, S, 9 * S, 163 * MS, TIMES_GROUPS, 15, 163 * MS, 0 },
		{ "too few, but all are wanted", 1, S, 2 * S, 3 * MS, TIMES_ALL, 1, 3 * MS, 0 },
		{ "ticks without time wait", 16, S, 2 * S, 15, TIMES_ALL, 0, 0, 0 },
		{ "at the end they are left out", 16, S, 2 * S, 0, TIMES_REST, 0, 0, 0 },
		{ "at the end a little time is of some", 16, S, 2 * S, 3, TIMES_REST, 3, 3, 0 },
		{ "ticks of after the list wait", 16, 3 * S, 2 * S, 163 * MS, TIMES_ALL, 0, 0, 0 },
		{ "time without ticks waits", 0, S, 20 * S, 163 * MS, TIMES_ALL, 0, 0, 0 },
		{ "at the end it is not sampled", 0, S, 20 * S, 163 * MS, TIMES_REST,
		  0, 163 * MS, 163 * MS },
		/* clang-format on */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct thread_times_event e = times_at(cases[i].now_ns, cases[i].cpu_ns);
		struct fixture f;

		begin(&f, true);
		add_ticks(&f, cases[i].ticks, cases[i].at_ns);
		list(&f, &e, cases[i].depth);
		if (f.told.samples != cases[i].samples || f.told.cpu_ns != cases[i].told_ns ||
		    f.told.rest_cpu_ns != cases[i].rest_ns)
			fail_msg("%s: %llu samples of %llu ns, %llu not sampled", cases[i].name,
				 (unsigned long long)f.told.samples,
				 (unsigned long long)f.told.cpu_ns,
				 (unsigned long long)f.told.rest_cpu_ns);
		end(&f);
	}
}

static void test_times_settle_keeps_the_credit_of_what_had_no_ticks(void **state)
{
	struct thread_times_event e = times_at(2 * S, 5 * MS);
	struct fixture f;

	(void)state;
	begin(&f, true);
	list(&f, &e, TIMES_ALL);
	assert_int_equal(f.told.cpu_ns, 0);
	e = times_at(3 * S, 9 * MS);
	add_ticks(&f, 1, 3 * S);
	list(&f, &e, TIMES_ALL);
	assert_int_equal(f.told.cpu_ns, 9 * MS);
	list(&f, &e, TIMES_REST);
	assert_int_equal(f.told.samples, 1);
	assert_int_equal(f.told.cpu_ns, 9 * MS);
	end(&f);
}

static void test_times_settle_scales_short_spans_by_class_and_keeps_long_ones(void **state)
{
	struct thread_times_event e = times_at(5 * S, 0);
	struct fixture f;

	(void)state;
	begin(&f, true);
	e.short_ns[CLASS_SLEEP] = 100 * MS;
	e.short_ns[CLASS_READ] = 30 * MS;
	e.long_ns[CLASS_READ] = 2 * S;
	e.unseen_ns = 3;
	for (int i = 0; i < 16; i++)
		add_span(&f, WAIT_SLEEP, SAMPLE_SHORT, 10 * MS, 2 * S);
	add_span(&f, WAIT_READ_PIPE, SAMPLE_SHORT, 10 * MS, 2 * S);
	add_span(&f, WAIT_READ_SOCKET, SAMPLE_SHORT, 10 * MS, 2 * S);
	add_span(&f, WAIT_READ_SOCKET, 0, S, 3 * S);
	list(&f, &e, TIMES_GROUPS);
	assert_int_equal(f.told.wait_ns[WAIT_SLEEP], 100 * MS);
	assert_int_equal(f.told.wait_ns[WAIT_READ_PIPE], 0);
	assert_int_equal(f.told.wait_ns[WAIT_READ_SOCKET], S);
	list(&f, &e, TIMES_REST);
	assert_int_equal(f.told.wait_ns[WAIT_READ_PIPE], 15 * MS);
	assert_int_equal(f.told.wait_ns[WAIT_READ_SOCKET], S + 15 * MS);
	assert_int_equal(f.told.wait_ns[WAIT_OF_CLASS(CLASS_READ)], S); /* one that was lost */
	assert_int_equal(f.told.wait_ns[WAIT_NONE], 3);
	assert_int_equal(f.told.rest_wait_ns, S + 3);
	end(&f);
}

static void test_times_settle_waits_for_times_that_know_a_long_span(void **state)
{
	struct thread_times_event e = times_at(5 * S, 0);
	struct fixture f;

	(void)state;
	begin(&f, true);
	add_span(&f, WAIT_LOCK, 0, 3 * S, 5 * S);
	list(&f, &e, TIMES_ALL);
	assert_int_equal(f.told.samples, 0);
	e.long_ns[CLASS_LOCK] = 3 * S;
	list(&f, &e, TIMES_GROUPS);
	assert_int_equal(f.told.wait_ns[WAIT_LOCK], 3 * S);
	end(&f);
}

static void test_times_settle_tells_time_once_though_its_sample_comes_late(void **state)
{
	struct thread_times_event e = times_at(5 * S, 0);
	struct fixture f;

	(void)state;
	begin(&f, true);
	e.long_ns[CLASS_LOCK] = 3 * S;
	list(&f, &e, TIMES_REST);
	assert_int_equal(f.told.rest_wait_ns, 3 * S);
	assert_int_equal(f.told.last_ns, 5 * S);
	assert_int_equal(f.told.last_duration_ns, 4 * S); /* it was somewhere in here */
	add_span(&f, WAIT_LOCK, 0, 3 * S, 4 * S);
	list(&f, &e, TIMES_REST);
	assert_int_equal(f.told.samples, 0);
	end(&f);
}

/* The list comes some time after the part's end: what it knows of later has no later time. */
static void test_times_settle_tells_the_rest_up_to_the_end_of_the_part(void **state)
{
	struct thread_times_event e = times_at(5 * S, 30 * MS);
	struct fixture f;

	(void)state;
	begin(&f, true);
	e.long_ns[CLASS_LOCK] = 3 * S;
	times_begin_list(f.times, e.ktime_ns);
	assert_int_equal(times_list_thread(f.times, &e), 0);
	assert_int_equal(times_settle(f.times, 4 * S, TIMES_REST), 0);
	assert_int_equal(f.told.rest_cpu_ns, 30 * MS);
	assert_int_equal(f.told.rest_wait_ns, 3 * S);
	assert_int_equal(f.told.last_ns, 4 * S);
	assert_int_equal(f.told.last_duration_ns, 3 * S);

	/* One that began after it. */
	e = times_at(6 * S, 0);
	e.since_ns = 5 * S;
	e.unseen_ns = S;
	times_begin_list(f.times, e.ktime_ns);
	assert_int_equal(times_list_thread(f.times, &e), 0);
	assert_int_equal(times_settle(f.times, 4 * S, TIMES_REST), 0);
	assert_int_equal(f.told.last_ns, 5 * S);
	assert_int_equal(f.told.last_duration_ns, 0);
	end(&f);
}

static void test_times_end_thread_tells_all_of_it(void **state)
{
	struct thread_times_event e = times_at(5 * S, 20 * MS);
	struct fixture f;

	(void)state;
	begin(&f, true);
	e.long_ns[CLASS_SLEEP] = S;
	add(&f, &(struct sample_event){ .value = 1, .thread = 11, .ktime_ns = 2 * S });
	assert_int_equal(times_end_thread(f.times, &e), 0);
	times_begin_list(f.times, 6 * S);
	assert_int_equal(times_settle(f.times, 6 * S, TIMES_GROUPS), 0);
	assert_int_equal(f.told.cpu_ns, 20 * MS);
	assert_int_equal(f.told.rest_wait_ns, S);
	assert_int_equal(f.told.last_thread, 11);
	assert_string_equal(f.told.comm, "worker");
	assert_int_equal(times_bytes(f.times) > 0, 1);

	/* Another thread of that number, which has nothing to do with it. */
	e = times_at(7 * S, 4 * MS);
	e.since_ns = 6 * S;
	add_ticks(&f, 1, 7 * S);
	list(&f, &e, TIMES_REST);
	assert_int_equal(f.told.cpu_ns, 24 * MS);
	assert_int_equal(times_sum(f.times)->threads, 2);
	end(&f);
}

static void test_times_list_thread_of_another_start_ends_the_one_before(void **state)
{
	struct thread_times_event e = times_at(5 * S, 20 * MS);
	struct fixture f;

	(void)state;
	begin(&f, true);
	list(&f, &e, TIMES_ALL);
	e = times_at(7 * S, 4 * MS);
	e.since_ns = 6 * S;
	list(&f, &e, TIMES_REST);
	assert_int_equal(f.told.rest_cpu_ns, 24 * MS);
	end(&f);
}

/* A process executes another program, and the end of the one before is lost. */
static void test_times_list_thread_of_another_start_leaves_it_its_samples(void **state)
{
	struct thread_times_event e = times_at(5 * S, 20 * MS);
	struct fixture f;

	(void)state;
	begin(&f, true);
	list(&f, &e, TIMES_ALL);
	add_ticks(&f, 1, 5500 * MS); /* of the one before */
	add_ticks(&f, 2, 7 * S);
	e = times_at(7 * S, 4 * MS);
	e.since_ns = 6 * S;
	list(&f, &e, TIMES_REST);
	assert_int_equal(f.told.rest_cpu_ns, 20 * MS);
	assert_int_equal(f.told.samples, 3);
	assert_int_equal(f.told.cpu_ns, 20 * MS + TICK_NS + 4 * MS);
	assert_int_equal(times_sum(f.times)->threads, 2);
	end(&f);
}

/* The list of the one behind was read before the ring. */
static void test_times_end_thread_comes_after_the_next_one_is_listed(void **state)
{
	struct thread_times_event before = times_at(5 * S, 20 * MS), e = times_at(7 * S, 4 * MS);

	(void)state;
	e.since_ns = 6 * S;
	for (int is_known = 0; is_known < 2; is_known++) {
		struct fixture f;

		begin(&f, true);
		if (is_known)
			list(&f, &before, TIMES_ALL);
		times_begin_list(f.times, e.ktime_ns);
		assert_int_equal(times_list_thread(f.times, &e), 0);
		before.cpu_ns = 30 * MS;
		assert_int_equal(times_end_thread(f.times, &before), 0);
		assert_int_equal(times_settle(f.times, e.ktime_ns, TIMES_GROUPS), 0);
		assert_int_equal(f.told.rest_cpu_ns, 30 * MS);
		assert_int_equal(times_end_thread(f.times, &e), 0);
		assert_int_equal(times_settle(f.times, e.ktime_ns, TIMES_GROUPS), 0);
		assert_int_equal(f.told.rest_cpu_ns, 34 * MS);
		assert_int_equal(times_sum(f.times)->threads, 2);
		end(&f);
	}
}

/* The same, and the ring has samples of the one before: its wait takes nothing from the one behind,
 * which waited as well. */
static void test_times_samples_come_after_the_next_one_is_listed(void **state)
{
	struct thread_times_event before = times_at(5 * S, 0), e = times_at(9 * S, 0);

	(void)state;
	e.since_ns = 6 * S;
	e.process = PROCESS + 1;
	e.long_ns[CLASS_SLEEP] = S;
	for (int is_known = 0; is_known < 2; is_known++) {
		struct fixture f;

		begin(&f, true);
		before.long_ns[CLASS_SLEEP] = 0;
		if (is_known)
			list(&f, &before, TIMES_ALL);
		times_begin_list(f.times, e.ktime_ns);
		assert_int_equal(times_list_thread(f.times, &e), 0);
		add_span(&f, WAIT_SLEEP, 0, 3 * S, 4500 * MS);
		before.long_ns[CLASS_SLEEP] = 4 * S;
		assert_int_equal(times_end_thread(f.times, &before), 0);
		add_process_span(&f, PROCESS + 1, WAIT_SLEEP, S, 8 * S);
		assert_int_equal(times_settle(f.times, e.ktime_ns, TIMES_GROUPS), 0);
		assert_int_equal(f.told.samples, 2);
		assert_int_equal(f.told.wait_ns[WAIT_SLEEP], 4 * S);
		assert_int_equal(f.told.rest_wait_ns, S);
		list(&f, &e, TIMES_REST);
		assert_int_equal(f.told.samples, 2);
		assert_int_equal(f.told.rest_wait_ns, S);
		assert_int_equal(times_sum(f.times)->threads, 2);
		end(&f);
	}
}

/* An exec: the thread samples its last wait in the program before as the first thing in the next.
 */
static void test_times_samples_come_after_the_end_of_their_program(void **state)
{
	struct thread_times_event before = times_at(5 * S, 0), e = times_at(9 * S, 0);
	struct fixture f;

	(void)state;
	begin(&f, true);
	before.long_ns[CLASS_READ] = 3 * S;
	assert_int_equal(times_end_thread(f.times, &before), 0);
	add_span(&f, WAIT_READ_FILE, 0, 3 * S, 4500 * MS);
	add_process_span(&f, PROCESS + 1, WAIT_READ_FILE, S, 8 * S);
	e.since_ns = 5 * S;
	e.process = PROCESS + 1;
	e.long_ns[CLASS_READ] = S;
	list(&f, &e, TIMES_GROUPS);
	list(&f, &e, TIMES_REST);
	assert_int_equal(f.told.samples, 2);
	assert_int_equal(f.told.wait_ns[WAIT_READ_FILE], 4 * S);
	assert_int_equal(f.told.rest_wait_ns, 0);
	end(&f);
}

static void test_times_settle_ends_threads_that_are_no_longer_listed(void **state)
{
	struct thread_times_event e = times_at(5 * S, 20 * MS);
	struct fixture f;

	(void)state;
	begin(&f, true);
	list(&f, &e, TIMES_GROUPS);
	add_ticks(&f, 3, 6 * S); /* its end was lost, and what it used until then */
	for (int i = 0; i < 2; i++) {
		times_begin_list(f.times, 7 * S);
		assert_int_equal(times_settle(f.times, 7 * S, TIMES_GROUPS), 0);
	}
	assert_int_equal(f.told.rest_cpu_ns, 20 * MS);
	assert_int_equal(f.told.cpu_ns, 20 * MS + 3 * TICK_NS);
	end(&f);
}

static void test_times_settle_without_times_takes_samples_as_they_came(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, true);
	add_ticks(&f, 2, S);
	add_span(&f, WAIT_LOCK, 0, 5, S);
	times_begin_list(f.times, 2 * S);
	assert_int_equal(times_settle(f.times, 2 * S, TIMES_GROUPS), 0);
	assert_int_equal(f.told.samples, 0); /* it may be listed yet */
	assert_int_equal(times_settle(f.times, 9 * S, TIMES_GROUPS), 0);
	assert_int_equal(f.told.cpu_ns, 2 * TICK_NS);
	assert_int_equal(f.told.wait_ns[WAIT_LOCK], 5);
	end(&f);
}

static void test_times_of_some_ticks_do_not_scale_them(void **state)
{
	struct thread_times_event e = times_at(5 * S, 500 * MS);
	struct fixture f;

	(void)state;
	begin(&f, false);
	add_ticks(&f, 2, 2 * S);
	list(&f, &e, TIMES_REST);
	assert_int_equal(f.told.cpu_ns, 2 * TICK_NS);
	assert_int_equal(f.told.rest_cpu_ns, 0);
	assert_int_equal(times_sum(f.times)->cpu_ns, 500 * MS);
	end(&f);
}

static void add_open_with(struct fixture *f, uint64_t begin_ns, uint32_t flags)
{
	add(f, &(struct sample_event){ .source = SOURCE_SWITCHES,
				       .flags = SAMPLE_OPEN | flags,
				       .value = 1,
				       .ktime_ns = begin_ns });
}

static void add_open(struct fixture *f, uint64_t begin_ns)
{
	add_open_with(f, begin_ns, 0);
}

static void end_span(struct fixture *f, uint64_t begin_ns, uint64_t end_ns, uint64_t value)
{
	const struct span_end_event e = { .kind = EVENT_SPAN_END,
					  .wait = WAIT_POLL,
					  .syscall = SYSCALL_NONE,
					  .tid = TID,
					  .process = PROCESS,
					  .begin_ns = begin_ns,
					  .ktime_ns = end_ns,
					  .value = value,
					  .blocked_ns = value / 2 };

	assert_int_equal(times_end_span(f->times, &e), 0);
}

static void test_times_end_span_completes_the_sample_of_its_beginning(void **state)
{
	struct thread_times_event e = times_at(9 * S, 0);
	struct fixture f;

	(void)state;
	begin(&f, true);
	e.long_ns[CLASS_POLL] = 3 * S;
	add_ticks(&f, 1, 2 * S);
	add_open(&f, 2 * S);
	list(&f, &e, TIMES_REST); /* it goes on beyond the part */
	assert_int_equal(f.told.rest_wait_ns, 3 * S);
	end_span(&f, 2 * S, 9 * S, 7 * S);
	e.long_ns[CLASS_POLL] = 10 * S;
	e.ktime_ns = 10 * S;
	list(&f, &e, TIMES_ALL);
	assert_int_equal(f.told.wait_ns[WAIT_POLL], 7 * S);
	assert_int_equal(f.told.last_ns, 9 * S);
	assert_int_equal(f.told.last_duration_ns, 7 * S);

	add_open(&f, 10 * S);
	end_span(&f, 10 * S, 11 * S, 0); /* not kept */
	add_open(&f, 12 * S);            /* its end is lost */
	add_open(&f, 14 * S);
	end_span(&f, 13 * S, 15 * S, 2 * S); /* of another */
	e.ktime_ns = 20 * S;
	list(&f, &e, TIMES_REST);
	assert_int_equal(f.told.samples, 1);
	end(&f);
}

static void test_times_samples_carry_what_others_waited_meanwhile(void **state)
{
	struct thread_times_event e = times_at(5 * S, 30 * MS);
	struct fixture f;

	(void)state;
	begin(&f, true);
	e.short_ns[CLASS_SLEEP] = 40 * MS;
	e.long_ns[CLASS_GIL] = 100 * MS;
	add(&f, &(struct sample_event){ .value = 2, .blocked_ns = 40 * MS, .ktime_ns = 2 * S });
	add(&f, &(struct sample_event){ .source = SOURCE_SWITCHES,
					.wait = WAIT_SLEEP,
					.flags = SAMPLE_SHORT,
					.value = 10 * MS,
					.duration_ns = 2 * MS,
					.blocked_ns = 5 * MS,
					.ktime_ns = 2 * S });
	list(&f, &e, TIMES_ALL);
	assert_int_equal(f.told.blocked_ns, 60 * MS + 20 * MS);
	assert_int_equal(times_sum(f.times)->blocked_ns, 80 * MS);
	end(&f);
}

/* Ticks count who waits, also who has just been woken: all together are told what was waited. */
static void test_times_tell_no_more_of_who_held_a_gil_than_was_waited(void **state)
{
	struct thread_times_event e = times_at(5 * S, 40 * MS);
	struct sample_event tick = { .value = 1, .blocked_ns = 30 * MS, .ktime_ns = 2 * S };
	struct fixture f;

	(void)state;
	begin(&f, true);
	for (int i = 0; i < 4; i++)
		add(&f, &tick);
	e.short_ns[CLASS_GIL] = 20 * MS;
	e.long_ns[CLASS_GIL] = 40 * MS;
	list(&f, &e, TIMES_ALL);
	assert_int_equal(f.told.blocked_ns, 60 * MS);
	assert_int_equal(f.told.last_blocked_ns, 15 * MS);

	tick.ktime_ns = 6 * S;
	add(&f, &tick);
	e = times_at(7 * S, 50 * MS);
	e.short_ns[CLASS_GIL] = 20 * MS;
	e.long_ns[CLASS_GIL] = 41 * MS;
	list(&f, &e, TIMES_ALL);
	assert_int_equal(f.told.blocked_ns, 61 * MS);

	tick.gil = 2 * GIL; /* nobody waited for that one */
	tick.ktime_ns = 8 * S;
	add(&f, &tick);
	e = times_at(9 * S, 60 * MS);
	e.long_ns[CLASS_GIL] = 41 * MS;
	list(&f, &e, TIMES_REST);
	assert_int_equal(f.told.blocked_ns, 61 * MS);
	end(&f);
}

/* The waiters are known from the next list, and other threads may end before it, too. */
static void test_times_end_thread_tells_who_held_a_gil_with_the_next_list(void **state)
{
	struct thread_times_event holder = times_at(5 * S, 40 * MS), waiter = times_at(6 * S, 0);
	struct sample_event tick = { .value = 1, .blocked_ns = 30 * MS, .ktime_ns = 2 * S };
	struct fixture f;

	(void)state;
	begin(&f, true);
	for (uint64_t i = 1; i <= 2; i++) {
		add_ticks(&f, 1, 2 * S);
		for (int j = 0; j < 3; j++)
			add(&f, &tick);
		assert_int_equal(times_end_thread(f.times, &holder), 0);
		waiter.tid = TID + 1;
		waiter.long_ns[CLASS_GIL] = i * 60 * MS;
		list(&f, &waiter, TIMES_ALL);
		assert_int_equal(f.told.blocked_ns, i * 60 * MS);
		assert_int_equal(f.told.last_blocked_ns, 20 * MS);
		holder.since_ns++;
	}
	end(&f);
}

/* Who left the CPU without it is not who the others waited for. */
static void test_times_end_span_tells_what_others_waited_of_who_held_the_gil(void **state)
{
	struct thread_times_event e = times_at(9 * S, 0);
	struct fixture f;

	(void)state;
	begin(&f, true);
	e.long_ns[CLASS_POLL] = 6 * S;
	e.long_ns[CLASS_GIL] = 2 * S;
	add_open_with(&f, 1 * S, SAMPLE_HOLDS_GIL);
	end_span(&f, 1 * S, 3 * S, 2 * S);
	add_open_with(&f, 4 * S, 0);
	end_span(&f, 4 * S, 8 * S, 4 * S);
	list(&f, &e, TIMES_ALL);
	assert_int_equal(f.told.wait_ns[WAIT_POLL], 6 * S);
	assert_int_equal(f.told.blocked_ns, 1 * S);
	end(&f);
}

static void test_times_refuses_what_no_sampler_sends(void **state)
{
	const struct span_end_event bad[] = {
		{ .wait = WAIT_COUNT_, .tid = TID },
		{ .wait = WAIT_NONE, .value = 1, .tid = TID },
		{ .wait = WAIT_LOCK, .tid = TID, .begin_ns = 2, .ktime_ns = 1 },
	};
	struct thread_times_event e = times_at(0, 0);
	struct fixture f;

	(void)state;
	begin(&f, true);
	assert_int_equal(times_end_thread(f.times, &e), -EBADMSG);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(times_end_span(f.times, &bad[i]), -EBADMSG);
	end(&f);
}

static void test_times_is_due_when_much_waits_or_for_long(void **state)
{
	struct thread_times_event e = times_at(5 * S, 0);
	struct fixture f;

	(void)state;
	begin(&f, true);
	times_begin_list(f.times, 10 * S);
	assert_false(times_is_due(f.times, 100 * S));
	add_ticks(&f, 1, 10 * S);
	assert_false(times_is_due(f.times, 11 * S));
	assert_true(times_is_due(f.times, 12 * S));
	while (!times_is_full(f.times))
		add_ticks(&f, 1, 10 * S);
	assert_true(times_is_due(f.times, 11 * S));
	assert_int_equal(times_settle(f.times, 11 * S, TIMES_ALL), 0);
	assert_false(times_is_due(f.times, 11 * S));

	while (!times_is_full(f.times)) {
		assert_int_equal(times_end_thread(f.times, &e), 0);
		e.tid++;
	}
	assert_int_equal(times_settle(f.times, 11 * S, TIMES_ALL), 0);
	assert_false(times_is_due(f.times, 100 * S));
	end(&f);
}

/* Chance decides what a thread does, what is lost of it and when it is looked at. */
static void run_by_chance(unsigned int seed)
{
	struct thread_times_event e = times_at(S, 0);
	uint64_t waited = 0;
	struct fixture f;

	srand(seed);
	begin(&f, true);
	for (int i = 0; i < 2000; i++) {
		uint64_t ns = (uint64_t)rand() % (30 * MS) + 1;
		enum wait_reason wait = 1 + rand() % (WAIT_COUNT_ - 1);
		enum wait_class class = (enum wait_class)(rand() % CLASS_COUNT_);

		e.ktime_ns += ns;
		switch (rand() % 8) {
		case 0:
		case 1:
			e.cpu_ns += ns;
			if (rand() % 3)
				add_ticks(&f, rand() % 4, e.ktime_ns);
			break;
		case 2:
			e.short_ns[class] += ns;
			if (rand() % 3)
				add_span(&f, wait, SAMPLE_SHORT, ns, e.ktime_ns);
			break;
		case 3:
			e.long_ns[class] += ns;
			if (rand() % 3)
				add_span(&f, wait, 0, ns, e.ktime_ns);
			break;
		case 4:
			e.unseen_ns += ns;
			break;
		default:
			if (rand() % 4 == 0)
				list(&f, &e, rand() % 20 ? TIMES_GROUPS : TIMES_REST);
		}
	}
	assert_int_equal(times_end_thread(f.times, &e), 0);
	assert_int_equal(times_settle(f.times, e.ktime_ns, TIMES_GROUPS), 0);
	for (int i = 0; i < CLASS_COUNT_; i++)
		waited += e.short_ns[i] + e.long_ns[i];
	assert_int_equal(f.told.cpu_ns, e.cpu_ns);
	for (int i = 0; i < WAIT_WORDS; i++)
		waited -= f.told.wait_ns[i];
	assert_int_equal(waited + e.unseen_ns, 0);
	end(&f);
}

static void test_times_sum_up_to_the_nanosecond(void **state)
{
	(void)state;
	for (unsigned int seed = 0; seed < 50; seed++)
		run_by_chance(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_times_settle_scales_ticks_in_groups),
		cmocka_unit_test(test_times_settle_keeps_the_credit_of_what_had_no_ticks),
		cmocka_unit_test(test_times_settle_scales_short_spans_by_class_and_keeps_long_ones),
		cmocka_unit_test(test_times_settle_waits_for_times_that_know_a_long_span),
		cmocka_unit_test(test_times_settle_tells_time_once_though_its_sample_comes_late),
		cmocka_unit_test(test_times_settle_tells_the_rest_up_to_the_end_of_the_part),
		cmocka_unit_test(test_times_end_thread_tells_all_of_it),
		cmocka_unit_test(test_times_list_thread_of_another_start_ends_the_one_before),
		cmocka_unit_test(test_times_list_thread_of_another_start_leaves_it_its_samples),
		cmocka_unit_test(test_times_end_thread_comes_after_the_next_one_is_listed),
		cmocka_unit_test(test_times_samples_come_after_the_next_one_is_listed),
		cmocka_unit_test(test_times_samples_come_after_the_end_of_their_program),
		cmocka_unit_test(test_times_settle_ends_threads_that_are_no_longer_listed),
		cmocka_unit_test(test_times_settle_without_times_takes_samples_as_they_came),
		cmocka_unit_test(test_times_of_some_ticks_do_not_scale_them),
		cmocka_unit_test(test_times_end_span_completes_the_sample_of_its_beginning),
		cmocka_unit_test(test_times_samples_carry_what_others_waited_meanwhile),
		cmocka_unit_test(test_times_tell_no_more_of_who_held_a_gil_than_was_waited),
		cmocka_unit_test(test_times_end_thread_tells_who_held_a_gil_with_the_next_list),
		cmocka_unit_test(test_times_end_span_tells_what_others_waited_of_who_held_the_gil),
		cmocka_unit_test(test_times_refuses_what_no_sampler_sends),
		cmocka_unit_test(test_times_is_due_when_much_waits_or_for_long),
		cmocka_unit_test(test_times_sum_up_to_the_nanosecond),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
