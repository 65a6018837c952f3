/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/sweeper.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/apart.h"
#include "base/chance.h"
#include "base/clock.h"
#include "base/process_limit.h"
#include "base/thread.h"
#include "base/vec.h"
#include "inspect/asyncio_debug.h"
#include "inspect/pages.h"
#include "inspect/process_tasks.h"
#include "inspect/thread_files.h"

#define PROBE_NS \
	20000000ULL /* as long as there is no asyncio: so soon again, then half as long more */
#define PROBE_NS_MAX NS_PER_SECOND
#define LIST_NS NS_PER_SECOND /* threads are listed again where there should be a loop */
#define MISSED_MAX 20
#define END_NS (2 * NS_PER_SECOND) /* how long a look is waited for at the end */
#define EARLY_LOOKS 3 /* at a process, as long as it has no tasks: it is not older after them */
#define KEPT_MAX 64   /* that nobody takes: then the oldest go */

/*
 * CPU time for looks comes from two purses. Young processes have one of their own: each is looked
 * at again when it is about twice as old as it was, so that the last look of a short life is not an
 * early one, which would be taken for all of it.
 */
enum purse { PURSE_ALL, PURSE_YOUNG, PURSE_COUNT_ };

static const struct {
	uint64_t rest;      /* times what a look took */
	uint64_t credit_ns; /* of the rest can be had in advance */
} purses[PURSE_COUNT_] = {
	[PURSE_ALL] = { 115, 0 },
	[PURSE_YOUNG] = { 230, 10 * NS_PER_SECOND },
};

/* A process. What is not the thread's alone is guarded by the lock. */
struct swept {
	struct target_id id;
	bool is_busy, is_removed;
	uint64_t next_ns[PURSE_COUNT_]; /* its next look: whichever comes first */
	unsigned int looks;             /* without tasks */
	uint64_t since_ns;              /* its age counts from here; 0: it was never looked at */
	/* the thread's */
	uint64_t probe_ns;
	struct inspect_process *process; /* NULL: not opened yet */
	bool has_tasks;                  /* or may have */
	bool has_trio;                   /* some loop of the last sweep was trio's */
	unsigned int missed;
	bool has_debug, has_sought_debug;
	uint64_t listed_ns; /* its threads */
	uint64_t debug[ASYNCIO_DEBUG_WORDS];
};

struct swept_list {
	struct swept **items; /* a VEC, in order of their ids */
	size_t len, cap;
};

struct sweeper {
	pthread_t thread; /* that waits for the process */
	bool has_started;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool has_ended, should_end;
	struct swept_list targets;
	uint64_t free_ns[PURSE_COUNT_]; /* until then it rests */
	struct sweep *first, **last;
	size_t kept;
	struct inspector *inspector; /* the thread's, */
	struct pages pages;          /* as are these */
};

void sweep_free(struct sweep *sw)
{
	if (!sw)
		return;
	inspect_tasks_release(&sw->tasks);
	free(sw->comms);
	free(sw);
}

static void swept_free(struct swept *t)
{
	inspect_process_free(t->process);
	free(t);
}

/* --- one look --------------------------------------------------------------------------------- */

static const uint64_t *debug_of(const struct swept *t)
{
	return t->has_debug ? t->debug : NULL;
}

static int open_process(struct sweeper *s, struct swept *t)
{
	return t->process ? 0 : inspect_process_open(s->inspector, (pid_t)t->id.pid, &t->process);
}

static int list_threads(struct swept *t)
{
	t->listed_ns = monotonic_ns();
	return inspect_threads_list(t->process);
}

/* 1: it may have tasks, and its threads are known. */
static int probe(struct sweeper *s, struct swept *t)
{
	int r;

	if (t->has_tasks)
		return 1;
	if ((r = process_tasks_probe(t->process, &s->pages)) <= 0 || (r = list_threads(t)) < 0)
		return r;
	t->has_tasks = true;
	return 1;
}

/* A loop's, or that of a loop which only its thread's stack would tell: trio's. */
static bool has_unknown_thread(const struct swept *t, const struct inspect_tasks *tasks)
{
	if (!tasks->loops.len && monotonic_ns() - t->listed_ns > LIST_NS)
		return true;
	for (size_t i = 0; i < tasks->loops.len; i++)
		if (tasks->loops.items[i].ident && !tasks->loops.items[i].tid)
			return true;
	return false;
}

static bool is_trio(const struct inspect_loop *loop)
{
	return !strcmp(loop->type, "trio.run");
}

/*
 * trio's loop is found on its thread's stack, which may be torn if that does not rest: then nobody
 * knows of its tasks, rather than that there are none. Not for ever, as it may have ended.
 */
static bool is_missed(struct swept *t, const struct inspect_tasks *tasks)
{
	if (t->has_trio && !tasks->loops.len && t->missed++ < MISSED_MAX)
		return true;
	t->missed = 0;
	t->has_trio = false;
	for (size_t i = 0; i < tasks->loops.len; i++)
		t->has_trio |= is_trio(&tasks->loops.items[i]);
	return false;
}

static int read_tasks(struct sweeper *s, struct swept *t, struct sweep *sw)
{
	inspect_tasks_release(&sw->tasks);
	return process_tasks_sweep(s->inspector, t->process, debug_of(t), &s->pages, &sw->tasks);
}

/* The kernel looks for one kind of tasks: of asyncio's, where a process has both. */
static bool is_of_trio(const struct inspect_tasks *tasks)
{
	for (size_t i = 0; i < tasks->loops.len; i++)
		if (!is_trio(&tasks->loops.items[i]))
			return false;
	return tasks->trio.variable;
}

/* Where the kernel finds the task that runs. */
static int fill_row(const struct swept *t, struct sweep *sw)
{
	struct task_layout l;
	int r = task_layout_find(&t->process->runtime.offsets, &l);

	if (r < 0)
		return r;
	if (t->has_debug)
		task_layout_apply_debug(&l, t->debug);
	sw->row = (struct asyncio_row){ .process = t->id.process,
					.coro_frame = l.frame,
					.is_frame_inside = l.await >= AWAIT_OPARG };
	if (is_of_trio(&sw->tasks)) {
		sw->row.current_tasks = sw->tasks.trio.variable;
		sw->row.is_variable = true;
		sw->row.task_coro = sw->tasks.trio.coro;
		sw->row.task_name = sw->tasks.trio.name;
		return 0;
	}
	sw->row.tstate_task = l.running_task;
	sw->row.task_coro = l.coro;
	sw->row.task_name = l.name;
	if (!l.running_task)
		sw->row.current_tasks = sw->tasks.current_tasks;
	return 0;
}

static int name_threads(const struct swept *t, struct sweep *sw)
{
	sw->comms = calloc(sw->tasks.loops.len + 1, sizeof(*sw->comms));
	if (!sw->comms)
		return -ENOMEM;
	for (size_t i = 0; i < sw->tasks.loops.len; i++) {
		_cleanup_(closep) int folder = -1, fd = -1;
		pid_t tid = sw->tasks.loops.items[i].tid;
		struct thread_status status;

		folder = tid ? thread_folder_open(t->process->door, tid) : -1;
		fd = folder < 0 ? -1 : thread_status_open(folder);
		if (fd >= 0 && thread_status_read(fd, &status) >= 0)
			memcpy(sw->comms[i], status.comm, COMM_BYTES);
	}
	return 0;
}

/* From 3.14 on asyncio tells where its structs have what is wanted, once it is imported. */
static int read_again_by_debug(struct sweeper *s, struct swept *t, struct sweep *sw)
{
	if (t->has_sought_debug || !sw->tasks.has_asyncio)
		return 0;
	t->has_sought_debug = true;
	t->has_debug = asyncio_debug_find(t->process, t->debug) >= 0;
	return t->has_debug ? read_tasks(s, t, sw) : 0;
}

static int look(struct sweeper *s, struct swept *t, struct sweep *sw)
{
	int r;

	if ((r = probe(s, t)) <= 0)
		return r;
	if ((r = read_tasks(s, t, sw)) < 0 || (r = read_again_by_debug(s, t, sw)) < 0)
		return r;
	if (has_unknown_thread(t, &sw->tasks) &&
	    ((r = list_threads(t)) < 0 || (r = read_tasks(s, t, sw)) < 0))
		return r;
	if (is_missed(t, &sw->tasks))
		return -EAGAIN;
	if ((sw->tasks.has_asyncio || sw->tasks.trio.variable) && (r = fill_row(t, sw)) < 0)
		return r;
	return name_threads(t, sw);
}

static uint64_t own_cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Its CPU time is without what is done once. */
static void sweep(struct sweeper *s, struct swept *t, struct sweep *sw)
{
	uint64_t cpu_ns;

	sw->target = t->id;
	sw->r = open_process(s, t);
	cpu_ns = own_cpu_ns();
	sw->begin_ns = monotonic_ns();
	if (sw->r >= 0)
		sw->r = look(s, t, sw);
	sw->end_ns = monotonic_ns();
	if (sw->r < 0)
		snprintf(sw->text, sizeof(sw->text), "%s", err_message(sw->r));
	err_clear();
	sw->cpu_ns = own_cpu_ns() - cpu_ns;
}

/* --- the process ------------------------------------------------------------------------------ */

/* From half to one and a half of it, evenly. */
static uint64_t draw(uint64_t ns)
{
	return ns / 2 + (uint64_t)((double)ns * chance_share());
}

static void rest(struct sweeper *s, enum purse purse, uint64_t cpu_ns)
{
	uint64_t now = monotonic_ns(), *free_ns = &s->free_ns[purse];

	*free_ns = (*free_ns > now ? *free_ns : now) + draw(purses[purse].rest * cpu_ns);
}

/* A look that is due. Of those that wait for CPU time the one that was wanted first is next. */
struct turn {
	struct swept *target; /* NULL: there is none */
	enum purse purse;
	uint64_t due_ns, wanted_ns;
};

static bool is_before(const struct turn *a, const struct turn *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->wanted_ns < b->wanted_ns;
}

static struct turn next_turn(const struct sweeper *s)
{
	struct turn next = { .due_ns = UINT64_MAX };

	for (size_t i = 0; i < s->targets.len; i++)
		for (enum purse purse = 0; purse < PURSE_COUNT_; purse++) {
			struct swept *t = s->targets.items[i];
			uint64_t free_ns = difference(s->free_ns[purse], purses[purse].credit_ns);
			uint64_t wanted_ns = t->next_ns[purse];
			struct turn turn = { t, purse, wanted_ns > free_ns ? wanted_ns : free_ns,
					     wanted_ns };

			if (is_before(&turn, &next))
				next = turn;
		}
	return next;
}

static void wait_until(struct sweeper *s, uint64_t at_ns)
{
	struct timespec at = deadline_of(at_ns);

	if (at_ns == UINT64_MAX)
		pthread_cond_wait(&s->changed, &s->lock);
	else
		pthread_cond_timedwait(&s->changed, &s->lock, &at);
}

static void keep(struct sweeper *s, struct sweep *sw)
{
	if (s->kept == KEPT_MAX) {
		struct sweep *oldest = s->first;

		s->first = oldest->next;
		sweep_free(oldest);
		s->kept--;
	}
	*s->last = sw;
	s->last = &sw->next;
	s->kept++;
}

static uint64_t probe_ns(struct swept *t)
{
	t->probe_ns = !t->probe_ns                 ? PROBE_NS
		      : t->probe_ns < PROBE_NS_MAX ? t->probe_ns * 3 / 2
						   : PROBE_NS_MAX;
	return t->probe_ns;
}

static void schedule(struct swept *t, const struct sweep *sw)
{
	uint64_t now = monotonic_ns(), *next_ns = t->next_ns;
	bool is_early = !sw->tasks.tasks.len && ++t->looks < EARLY_LOOKS;

	if (is_early || !t->since_ns)
		t->since_ns = now;
	next_ns[PURSE_ALL] = next_ns[PURSE_YOUNG] = UINT64_MAX;
	if (sw->r == -ENOTSUP)
		return;
	if (sw->r >= 0 && t->has_tasks) {
		t->probe_ns = 0;
		next_ns[PURSE_ALL] = now + draw(SWEEP_NS);
		next_ns[PURSE_YOUNG] = now + draw(now - t->since_ns + PROBE_NS);
	} else {
		next_ns[is_early ? PURSE_YOUNG : PURSE_ALL] = now + probe_ns(t);
	}
}

/* Unlocked while it looks. */
static void visit(struct sweeper *s, struct swept *t, enum purse purse)
{
	struct sweep *sw = calloc(1, sizeof(*sw));

	if (!sw) {
		t->next_ns[purse] = monotonic_ns() + PROBE_NS_MAX;
		return;
	}
	t->is_busy = true;
	pthread_mutex_unlock(&s->lock);
	sweep(s, t, sw);
	pthread_mutex_lock(&s->lock);
	t->is_busy = false;
	rest(s, purse, sw->cpu_ns);
	schedule(t, sw);
	if (t->is_removed) {
		swept_free(t);
		sweep_free(sw);
	} else {
		keep(s, sw);
	}
}

static void sweeper_run(void *arg)
{
	struct sweeper *s = arg;

	pthread_mutex_lock(&s->lock);
	while (!s->should_end) {
		struct turn turn = next_turn(s);

		if (turn.due_ns > monotonic_ns())
			wait_until(s, turn.due_ns);
		else
			visit(s, turn.target, turn.purse);
	}
	s->has_ended = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

/* --- its owner's side ------------------------------------------------------------------------- */

int sweeper_new(struct sweeper **out)
{
	struct sweeper *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	r = inspector_new(&s->inspector);
	if (r < 0) {
		free(s);
		return r;
	}
	pthread_mutex_init(&s->lock, NULL);
	cond_init_monotonic(&s->changed);
	s->last = &s->first;
	*out = s;
	return 0;
}

/* With the first targets: by then the recorder has given up its rights. Under the lock. */
static int start(struct sweeper *s)
{
	int r = apart_start(sweeper_run, s, APART_NO_FILES, -1, &s->thread);

	s->has_started = !r;
	return r < 0 ? process_limit_say(r, "start a process") : 0;
}

static bool await_end(struct sweeper *s)
{
	struct timespec until = deadline_of(monotonic_ns() + END_NS);
	int r = 0;

	if (!s->has_started)
		return true;

	pthread_mutex_lock(&s->lock);
	s->should_end = true;
	pthread_cond_broadcast(&s->changed);
	while (!s->has_ended && r != ETIMEDOUT)
		r = pthread_cond_timedwait(&s->changed, &s->lock, &until);
	r = s->has_ended;
	pthread_mutex_unlock(&s->lock);
	return r;
}

void sweeper_free(struct sweeper *s)
{
	struct sweep *sw;

	if (!s)
		return;
	if (!await_end(s)) {
		pthread_detach(s->thread); /* it hangs, and keeps what it has */
		return;
	}
	inspector_free(s->inspector); /* a process of its workers is the sweeper's own */
	if (s->has_started)
		pthread_join(s->thread, NULL);
	while ((sw = sweeper_take(s)))
		sweep_free(sw);
	for (size_t i = 0; i < s->targets.len; i++)
		swept_free(s->targets.items[i]);
	vec_release(&s->targets);
	pages_release(&s->pages);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

int target_id_compare(const void *a, const void *b)
{
	const struct target_id *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static void remove_target(struct swept *t)
{
	if (t->is_busy)
		t->is_removed = true;
	else
		swept_free(t);
}

/* Both are in order: who is in both stays as it is. */
int sweeper_set_targets(struct sweeper *s, const struct target_id *targets, size_t count)
{
	struct swept_list kept = VEC_INIT;
	size_t old = 0;
	int r;

	pthread_mutex_lock(&s->lock);
	r = vec_reserve(&kept, count);
	for (size_t i = 0; i < count && !r; i++) {
		struct swept *t = NULL;
		int order = 1;

		while (old < s->targets.len &&
		       (order = target_id_compare(&s->targets.items[old]->id, &targets[i])) < 0)
			remove_target(s->targets.items[old++]);
		if (old < s->targets.len && !order)
			t = s->targets.items[old++];
		else if ((t = calloc(1, sizeof(*t))))
			t->id = targets[i];
		if (t)
			kept.items[kept.len++] = t;
		else
			r = -ENOMEM;
	}
	while (old < s->targets.len)
		remove_target(s->targets.items[old++]);
	vec_release(&s->targets);
	s->targets = kept;
	if (!r && count && !s->has_started)
		r = start(s);
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	return r;
}

struct sweep *sweeper_take(struct sweeper *s)
{
	struct sweep *sw;

	pthread_mutex_lock(&s->lock);
	sw = s->first;
	if (sw) {
		s->first = sw->next;
		s->kept--;
		if (!s->first)
			s->last = &s->first;
	}
	pthread_mutex_unlock(&s->lock);
	return sw;
}

void sweeper_charge(struct sweeper *s, uint64_t ns)
{
	pthread_mutex_lock(&s->lock);
	rest(s, PURSE_ALL, ns);
	pthread_mutex_unlock(&s->lock);
}
