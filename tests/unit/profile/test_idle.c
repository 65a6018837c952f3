/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "profile/idle.h"

#define LIB "/usr/lib/python3.12/"
#define STARTED LIB "threading.py:Thread._bootstrap_inner;" LIB "threading.py:Thread.run;"
#define OWN_RUN LIB "threading.py:_bootstrap_inner;"
#define WAIT ";" LIB "threading.py:Condition.wait"

/* "FILE:NAME", or "<marker>". */
static uint32_t push(struct profile *p, uint32_t caller, char *text)
{
	char *colon = *text == '<' ? NULL : strrchr(text, ':'), *name = colon ? colon + 1 : text;
	struct frame f = { .kind = colon ? FRAME_PYTHON : FRAME_MARKER };
	uint32_t frame, stack;

	if (colon) {
		*colon = '\0';
		assert_int_equal(strtab_intern(p->strings, text, strlen(text), &f.file), 0);
	}
	assert_int_equal(strtab_intern(p->strings, name, strlen(name), &f.name), 0);
	assert_int_equal(frametab_intern(p->frames, &f, &frame), 0);
	assert_int_equal(stacktab_intern(p->stacks, caller, frame, &stack), 0);
	return stack;
}

static void test_which_waits_are_idle(void **state)
{
	static const struct {
		const char *name, *stack, *want;
	} cases[] = {
		{ "a pool's worker", STARTED LIB "concurrent/futures/thread.py:_worker;<lock>",
		  "pool worker" },
		{ "its task",
		  STARTED LIB "concurrent/futures/thread.py:_worker;/srv/a.py:task;<lock>", "" },
		{ "its task waits for a queue",
		  STARTED LIB "concurrent/futures/thread.py:_worker;/srv/a.py:task;" LIB
			      "queue.py:Queue.get" WAIT ";<lock>",
		  "" },
		{ "it has work, and no CPU",
		  STARTED LIB "concurrent/futures/thread.py:_worker;<runnable>", "" },
		{ "it has work, and no GIL",
		  STARTED LIB "concurrent/futures/thread.py:_worker;<GIL>", "" },
		{ "it computes", STARTED LIB "concurrent/futures/thread.py:_worker", "" },
		{ "with its native frame's marker",
		  STARTED LIB "concurrent/futures/thread.py:_worker;<native>;<lock>",
		  "pool worker" },
		{ "a thread's own loop over a queue",
		  STARTED "/srv/a.py:loop;" LIB "queue.py:Queue.get" WAIT ";<lock>",
		  "worker of a queue" },
		{ "of a class of its own",
		  OWN_RUN "/srv/a.py:Worker.run;" LIB "queue.py:Queue.get" WAIT ";<lock>",
		  "worker of a queue" },
		{ "deeper in it is no loop",
		  STARTED "/srv/a.py:loop;/srv/a.py:ask;" LIB "queue.py:Queue.get" WAIT ";<lock>",
		  "" },
		{ "the main thread's queue",
		  "/srv/a.py:<module>;" LIB "queue.py:Queue.get" WAIT ";<lock>", "" },
		{ "a process pool's child",
		  "/srv/a.py:<module>;" LIB "multiprocessing/pool.py:worker;" LIB
		  "multiprocessing/queues.py:get;" LIB
		  "multiprocessing/connection.py:_ConnectionBase.recv_bytes;<read: pipe>",
		  "pool worker" },
		{ "asyncio",
		  "/srv/a.py:<module>;" LIB "asyncio/base_events.py:BaseEventLoop._run_once;" LIB
		  "selectors.py:EpollSelector.select;<poll>",
		  "event loop" },
		{ "a callback of asyncio",
		  LIB "asyncio/base_events.py:BaseEventLoop._run_once;" LIB
		      "asyncio/events.py:Handle._run;/srv/a.py:handle;<sleep>",
		  "" },
		{ "a select of one's own",
		  "/srv/a.py:ask;" LIB "selectors.py:EpollSelector.select;<poll>", "" },
		{ "http.server",
		  "/srv/a.py:<module>;" LIB "socketserver.py:BaseServer.serve_forever;" LIB
		  "selectors.py:_PollLikeSelector.select;<poll>",
		  "server" },
		{ "an accept loop", "/srv/a.py:serve;" LIB "socket.py:socket.accept;<read: socket>",
		  "server" },
		{ "a timer",
		  OWN_RUN LIB "threading.py:Timer.run;" LIB "threading.py:Event.wait" WAIT
			      ";<lock>",
		  "timer" },
		{ "a thread's loop with an event",
		  STARTED "/srv/a.py:flush;" LIB "threading.py:Event.wait" WAIT ";<lock>",
		  "timer" },
		{ "the end of the main thread", LIB "threading.py:_shutdown;<lock>", "exit" },
		{ "a thread of a C library", "<outside Python>;<lock>", "outside Python" },
		{ "own code of such a name", "/srv/thread.py:_worker;<lock>", "" },
		{ "gunicorn", "/v/site-packages/gunicorn/workers/sync.py:SyncWorker.wait;<poll>",
		  "server" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char copy[1024], *rest = copy, *frame;
		struct idle idle = { 0 };
		struct profile *p;
		uint32_t stack = 0;
		uint8_t rule;

		assert_int_equal(profile_new(&p), 0);
		snprintf(copy, sizeof(copy), "%s", cases[i].stack);
		while ((frame = strsep(&rest, ";")))
			stack = push(p, stack, frame);
		assert_int_equal(idle_judge(&idle, p), 0);
		rule = idle_rule_of(&idle, stack);
		if (strcmp(rule ? idle_rules[rule - 1].what : "", cases[i].want) != 0)
			fail_msg("%s: '%s', want '%s'", cases[i].name,
				 rule ? idle_rules[rule - 1].what : "", cases[i].want);
		idle_release(&idle);
		profile_free(p);
	}
}

static uint8_t first_of(const char *what)
{
	uint8_t i = 0;

	while (strcmp(idle_rules[i].what, what) != 0)
		i++;
	return i + 1;
}

static void test_what_is_left_out_is_summed(void **state)
{
	struct idle_sums sums = VEC_INIT;
	struct idle idle = { 0 };

	(void)state;
	assert_int_equal(idle_count(&idle, 3, 5), 0); /* both are of pools' workers */
	assert_int_equal(idle_count(&idle, 1, 4), 0);
	assert_int_equal(idle_count(&idle, first_of("event loop"), 20), 0);
	assert_int_equal(idle_sum(&idle, &sums), 0);
	assert_int_equal(sums.len, 2);
	assert_string_equal(sums.items[0].what, "event loop");
	assert_int_equal(sums.items[1].ns, 9);
	vec_release(&sums);
	idle_release(&idle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_which_waits_are_idle),
		cmocka_unit_test(test_what_is_left_out_is_summed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
