/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "profile/idle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/module.h"
#include "profile/waits.h"

#define ITSELF             \
	{                  \
		NULL, NULL \
	}
#define ANY                \
	{                  \
		NULL, NULL \
	}

/* Paths are of the standard library, CPython 3.6 to 3.15, and of packages of PyPI. */
/* clang-format off */
const struct idle_rule idle_rules[] = {
	{ { "concurrent/futures/thread.py", "_worker" }, ITSELF, .what = "pool worker" },
	{ { "concurrent/futures/process.py", "_process_worker" },
	  { "multiprocessing/queues.py", "get" }, .what = "pool worker" },
	{ { "multiprocessing/pool.py", "worker" }, ITSELF, .what = "pool worker" },
	{ { "multiprocessing/pool.py", "worker" }, { "multiprocessing/queues.py", "get" },
	  .what = "pool worker" },
	{ { "multiprocessing/pool.py", "worker" }, { "queue.py", "get" }, .what = "pool worker" },
	{ { "gevent/threadpool.py", "run" }, { "gevent/_threading.py", "get" },
	  .what = "pool worker" },
	{ { "waitress/task.py", "handler_thread" }, { "threading.py", "wait" },
	  .what = "pool worker" },
	{ { "trio/_core/_thread_cache.py", "_work" }, ITSELF, .what = "pool worker" },
	{ { "logging/handlers.py", "dequeue" }, { "queue.py", "get" }, .what = "worker of a queue" },
	{ { "multiprocessing/queues.py", "_feed" }, { "threading.py", "wait" },
	  .what = "worker of a queue" },

	/* what keeps a pool */
	{ { "concurrent/futures/process.py", "wait_result_broken_or_wakeup" },
	  { "multiprocessing/connection.py", "wait" }, .what = "pool manager" },
	{ { "concurrent/futures/process.py", "_queue_management_worker" },
	  { "multiprocessing/connection.py", "wait" }, .what = "pool manager" },
	{ { "multiprocessing/pool.py", "_handle_workers" }, { "multiprocessing/pool.py", NULL },
	  .what = "pool manager" },
	{ { "multiprocessing/pool.py", "_handle_workers" }, ITSELF, .what = "pool manager" },
	{ { "multiprocessing/pool.py", "_handle_tasks" }, ITSELF, .what = "pool manager" },
	{ { "multiprocessing/pool.py", "_handle_tasks" }, { "queue.py", "get" },
	  .what = "pool manager" },
	{ { "multiprocessing/pool.py", "_handle_results" }, ITSELF, .what = "pool manager" },
	{ { "multiprocessing/pool.py", "_handle_results" }, { "multiprocessing/connection.py", "recv" },
	  .what = "pool manager" },
	{ { "multiprocessing/pool.py", "_handle_results" }, { "queue.py", "get" },
	  .what = "pool manager" },
	{ { "multiprocessing/resource_tracker.py", "main" }, ITSELF, .what = "pool manager" },
	{ { "multiprocessing/semaphore_tracker.py", "main" }, ITSELF, .what = "pool manager" },
	{ { "multiprocessing/forkserver.py", "main" }, { "selectors.py", "select" },
	  .what = "pool manager" },
	{ { "multiprocessing/managers.py", "serve_forever" }, { "threading.py", "wait" },
	  .what = "pool manager" },

	{ { "asyncio/base_events.py", "_run_once" }, { "selectors.py", "select" },
	  .what = "event loop" },
	{ { "asyncio/runners.py", "run" }, ITSELF, .what = "event loop" }, /* uvloop: C below it */
	{ { "trio/_core/_io_epoll.py", "get_events" }, ITSELF, .what = "event loop" },
	{ { "gevent/hub.py", "run" }, ITSELF, .what = "event loop" },
	{ { "eventlet/hubs/poll.py", "do_poll" }, ITSELF, .what = "event loop" },
	{ { "eventlet/hubs/epolls.py", "do_poll" }, ITSELF, .what = "event loop" },
	{ { "eventlet/hubs/selects.py", "wait" }, ITSELF, .what = "event loop" },
	{ { "twisted/internet/epollreactor.py", "doPoll" }, ITSELF, .what = "event loop" },
	{ { "twisted/internet/pollreactor.py", "doPoll" }, ITSELF, .what = "event loop" },
	{ { "kombu/utils/eventio.py", "poll" }, ITSELF, .what = "event loop" },
	{ { "asyncore.py", NULL }, ITSELF, .what = "event loop" },
	{ { "waitress/wasyncore.py", NULL }, ITSELF, .what = "event loop" },

	{ { "socketserver.py", "serve_forever" }, { "selectors.py", "select" }, .what = "server" },
	{ ANY, { "socket.py", "accept" }, .what = "server" },
	{ { "gunicorn/workers/sync.py", "wait" }, ITSELF, .what = "server" },
	{ { "gunicorn/workers/gthread.py", NULL }, { "selectors.py", "select" }, .what = "server" },
	{ { "gunicorn/arbiter.py", "sleep" }, ITSELF, .what = "arbiter" },
	{ { "gunicorn/arbiter.py", "wait_for_signals" }, ITSELF, .what = "arbiter" },
	{ { "gunicorn/arbiter.py", "wait_for_signals" }, { "queue.py", "get" }, .what = "arbiter" },

	{ { "threading.py", "run" }, { "threading.py", "wait" }, .what = "timer" },
	{ { "sched.py", "run" }, ITSELF, .what = "timer" },
	{ { "apscheduler/schedulers/blocking.py", "_main_loop" }, { "threading.py", "wait" },
	  .what = "timer" },

	/* the main thread, until the others have ended */
	{ { "threading.py", "_shutdown" }, ITSELF, .what = "exit" },
	{ { "threading.py", "_shutdown" }, { "threading.py", "join" }, .what = "exit" },
	{ { "concurrent/futures/thread.py", "_python_exit" }, { "threading.py", "join" },
	  .what = "exit" },

	/* a thread's own loop: after those of the library, which are such, too */
	{ ANY, { "queue.py", "get" }, .of_thread = true, .what = "worker of a queue" },
	{ ANY, { "threading.py", "wait" }, .of_thread = true, .what = "timer" },

	/* threads of C libraries; an embedding server's workers */
	{ { NULL, PROFILE_OUTSIDE_PYTHON }, ITSELF, .what = "outside Python" },
	{ .what = NULL },
};
/* clang-format on */

/* What calls a thread's target, or is overridden by it. */
static const struct idle_place starters[] = { { "threading.py", "run" },
					      { "threading.py", "_bootstrap_inner" } };

/* Waits that somebody else ends, and nothing that the thread needs to go on with its work. */
static const char *const own_needs[] = { "<runnable>", WAIT_MARKER_GIL, "<page fault>", "<disk>",
					 "<stopped>" };

void idle_release(struct idle *idle)
{
	vec_release(&idle->stacks);
	vec_release(&idle->ns);
}

static bool is_any(const struct idle_place *place)
{
	return !place->file && !place->function;
}

/* A frame's place, for many comparisons. */
struct spot {
	const char *function; /* its last part */
	const char *file;
	size_t file_len;
};

static struct spot spot_of(const struct profile *p, uint32_t frame)
{
	const struct frame *f = frametab_get(p->frames, frame);
	const char *name = strtab_get(p->strings, f->name);
	const char *dot = memrchr(name, '.', strtab_len(p->strings, f->name));

	return (struct spot){ dot ? dot + 1 : name, strtab_get(p->strings, f->file),
			      strtab_len(p->strings, f->file) };
}

static bool is_at(const struct spot *spot, const struct idle_place *place)
{
	if (place->function && strcmp(place->function, spot->function) != 0)
		return false;
	return !place->file || path_has_tail(spot->file, spot->file_len, place->file);
}

static bool is_starter(const struct spot *spot)
{
	for (size_t i = 0; i < sizeof(starters) / sizeof(starters[0]); i++)
		if (is_at(spot, &starters[i]))
			return true;
	return false;
}

/* Of the innermost Python frame of a stack, which is `frame`; caller: what the stack was before. */
static void judge_python(const struct profile *p, uint32_t frame, const struct idle_stack *caller,
			 struct idle_stack *s)
{
	struct spot at = spot_of(p, frame),
		    by = caller->python ? spot_of(p, caller->python - 1) : at;

	s->is_target = caller->python && is_starter(&by) && !is_starter(&at);
	for (uint8_t i = 0; idle_rules[i].what && !s->rule; i++) {
		const struct idle_rule *rule = &idle_rules[i];
		bool is_itself = is_any(&rule->callee);

		if (is_itself && !is_any(&rule->waiter) && is_at(&at, &rule->waiter))
			s->leaf_rule = i + 1;
		if (!is_itself && caller->python && (!rule->of_thread || caller->is_target) &&
		    is_at(&at, &rule->callee) && is_at(&by, &rule->waiter))
			s->rule = i + 1;
	}
}

static bool is_for_others(const char *marker)
{
	for (size_t i = 0; i < sizeof(own_needs) / sizeof(own_needs[0]); i++)
		if (!strcmp(own_needs[i], marker))
			return false;
	return true;
}

static struct idle_stack judge(const struct profile *p, uint32_t frame,
			       const struct idle_stack *caller)
{
	const struct frame *f = frametab_get(p->frames, frame);
	struct idle_stack s = *caller;

	s.is_for_others = false;
	if (f->kind == FRAME_PYTHON) {
		s.leaf_rule = 0;
		judge_python(p, frame, caller, &s);
		s.python = frame + 1;
	} else if (wait_is_marker(p, frame)) {
		s.is_for_others = is_for_others(strtab_get(p->strings, f->name));
	} else if (!strcmp(strtab_get(p->strings, f->name), PROFILE_OUTSIDE_PYTHON)) {
		judge_python(p, frame, caller, &s);
	}
	return s;
}

/* Callers come before callees. */
int idle_judge(struct idle *idle, const struct profile *p)
{
	const struct stack_entry *entries = stacktab_entries(p->stacks);
	uint32_t count = stacktab_count(p->stacks);
	int r = 0;

	while (idle->stacks.len < count && !r) {
		uint32_t id = (uint32_t)idle->stacks.len;
		struct idle_stack s = { 0 };

		if (id)
			s = judge(p, entries[id].frame, &idle->stacks.items[entries[id].parent]);
		r = vec_push(&idle->stacks, s);
	}
	return r;
}

int idle_count(struct idle *idle, uint8_t rule, uint64_t ns)
{
	int r = 0;

	while (idle->ns.len < rule && !r)
		r = vec_push(&idle->ns, 0);
	if (!r)
		idle->ns.items[rule - 1] += ns;
	return r;
}

static int compare_sums(const void *a, const void *b)
{
	const struct idle_sum *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return strcmp(x->what, y->what);
}

int idle_sum(const struct idle *idle, struct idle_sums *out)
{
	int r = 0;

	for (size_t i = 0; i < idle->ns.len && !r; i++) {
		struct idle_sum sum = { idle_rules[i].what, idle->ns.items[i] };
		size_t at = 0;

		if (!sum.ns)
			continue;
		while (at < out->len && strcmp(out->items[at].what, sum.what) != 0)
			at++;
		if (at < out->len)
			out->items[at].ns += sum.ns;
		else
			r = vec_push(out, sum);
	}
	if (!r && out->len)
		qsort(out->items, out->len, sizeof(*out->items), compare_sums);
	return r;
}
