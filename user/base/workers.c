/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/allowance.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/priority.h"
#include "base/process_limit.h"
#include "base/thread.h"
#include "base/workers.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_NS 500000000ULL /* with the first work that may be late */
#define PATIENCE_NEXT_NS 100000000ULL
#define PATIENCE_LATE_MAX 8
#define CALL_BUSY_TIMES 6 /* as long is a call waited for that only gets no CPU */
#define CALL_LOOK_NS 100000000ULL
#define CALL_BLOCKED_NS 2000000000ULL /* without a break: it hangs */
#define STATUS_BYTES_MAX 65536
#define SCHEDSTAT_BYTES_MAX 256
#define BEGIN_NS (10 * NS_PER_SECOND) /* without CPU until then, a new process has none */

enum work_state { WORK_WAITS, WORK_RUNS, WORK_DONE, WORK_LATE };

struct workers {
	struct workers_kind kind;
	pthread_mutex_t lock;   /* of all that follows */
	pthread_cond_t changed; /* somebody waits for a work, or for its end */
	struct work *waiting;   /* the one that a process is to take; NULL: none */
	struct work *done;      /* that were late, in no order */
	size_t late;            /* processes that are at one nobody waits for */
	size_t users;           /* processes, and the owner: the last one frees */
	void *context;          /* that a process has left: the next one's */
	uint64_t generation;    /* of the idle process: workers_renew() */
	bool has_idle;          /* one process waits for work, or will */
	bool is_ending;
};

int workers_say(int r)
{
	if (r == -EAGAIN)
		return err_set(-ENOMEM,
			       "start a process: it gets no CPU, or too many do not answer");
	return process_limit_say(r, "start a process");
}

static void release(struct workers *ws)
{
	bool is_last;

	pthread_mutex_lock(&ws->lock);
	is_last = !--ws->users;
	pthread_cond_broadcast(&ws->changed);
	pthread_mutex_unlock(&ws->lock);
	if (!is_last)
		return;
	for (struct work *w = ws->done, *next; w; w = next) {
		next = w->next;
		w->free(w);
	}
	if (ws->context)
		ws->kind.context_free(ws->context);
	pthread_cond_destroy(&ws->changed);
	pthread_mutex_destroy(&ws->lock);
	free(ws);
}

/* A process whose work was late is not needed any more: another has taken its place. */
static bool finish(struct workers *ws, struct work *w)
{
	if (w->state != WORK_LATE) {
		w->state = WORK_DONE;
		ws->has_idle = ws->kind.files == APART_NO_FILES || ws->kind.has_same_file;
		return ws->has_idle;
	}
	w->next = ws->done;
	ws->done = w;
	ws->late--;
	return false;
}

static uint64_t generation; /* of processes that are started now */

void workers_renew(void)
{
	__atomic_fetch_add(&generation, 1, __ATOMIC_RELAXED);
}

/* What a process begins with. */
struct reader {
	struct workers *ws;
	struct work *running; /* for who looks for leaks: it is on a stack that nobody knows of */
	uint64_t generation;
};

/* What a process before has left, or a new one. */
static bool begin_context(struct workers *ws, void **context)
{
	pthread_mutex_lock(&ws->lock);
	*context = ws->context;
	ws->context = NULL;
	pthread_mutex_unlock(&ws->lock);
	return *context || !ws->kind.context_new || !ws->kind.context_new(context);
}

/* Under the lock. The next process goes on with what this one knows. */
static void leave_context(struct workers *ws, void **context)
{
	if (ws->is_ending || ws->context)
		return;
	ws->context = *context;
	*context = NULL;
}

/* How often the calling process has left its CPU by itself. */
static long sleeps_so_far(void)
{
	struct rusage u;

	return getrusage(RUSAGE_THREAD, &u) < 0 ? 0 : u.ru_nvcsw;
}

/*
 * For how long it was in line for a CPU, by its own schedstat, which stays open: to open it takes
 * ten times as long. 0 where the kernel does not tell (CONFIG_SCHED_INFO).
 */
static uint64_t delay_so_far(int schedstat)
{
	char text[SCHEDSTAT_BYTES_MAX];
	ssize_t n = pread(schedstat, text, sizeof(text) - 1, 0);
	unsigned long long ns;

	if (n <= 0)
		return 0;
	text[n] = '\0';
	return sscanf(text, "%*u %llu", &ns) == 1 ? ns : 0;
}

static void do_work(struct work *w, void *context, int schedstat)
{
	uint64_t delay_ns = delay_so_far(schedstat), begin_ns = monotonic_ns();
	long sleeps = sleeps_so_far();

	__atomic_store_n(&w->worker, gettid(), __ATOMIC_RELAXED);
	allowance_begin(w->cpu_ns ?: ALLOWANCE_NONE);
	w->run(w, context);
	w->cpu_ns = allowance_used_ns();
	w->asleep_ns = 0;
	if (sleeps_so_far() != sleeps)
		w->asleep_ns = difference(monotonic_ns() - begin_ns,
					  w->cpu_ns + delay_so_far(schedstat) - delay_ns);
}

/* Not under the lock, for which who is woken would wait at once. */
static void wake_others(struct workers *ws)
{
	pthread_mutex_unlock(&ws->lock);
	pthread_cond_broadcast(&ws->changed);
	pthread_mutex_lock(&ws->lock);
}

static void work_all_the_time(void *arg)
{
	_cleanup_(closep) int schedstat = file_open_regular("/proc/thread-self/schedstat", NULL);
	_cleanup_(freep) struct reader *own = arg;
	struct workers *ws = own->ws;
	struct priority priority = { 0 };
	void *context = NULL;
	bool has_context = begin_context(ws, &context), is_needed = has_context;

	if (schedstat < 0)
		err_clear();
	pthread_mutex_lock(&ws->lock);
	if (!has_context) {
		ws->has_idle = false;
		pthread_cond_broadcast(&ws->changed);
	}
	while (is_needed && !ws->is_ending && ws->generation == own->generation) {
		struct work *w = ws->waiting;

		if (ws->kind.is_urgent)
			priority_keep(&priority, monotonic_ns());
		if (!w) {
			pthread_cond_wait(&ws->changed, &ws->lock);
			continue;
		}
		ws->waiting = NULL;
		w->state = WORK_RUNS;
		pthread_mutex_unlock(&ws->lock);
		own->running = w;
		do_work(w, context, schedstat);
		pthread_mutex_lock(&ws->lock);
		is_needed = finish(ws, w);
		wake_others(ws);
	}
	leave_context(ws, &context);
	if (is_needed) { /* workers_renew(), or the end */
		ws->has_idle = false;
		pthread_cond_broadcast(&ws->changed);
	}
	pthread_mutex_unlock(&ws->lock);
	if (context && ws->kind.context_free)
		ws->kind.context_free(context);
	release(ws);
}

/* Under the lock. */
static int start_process(struct workers *ws, int fd)
{
	struct reader *own = malloc(sizeof(*own));
	int r;

	if (!own)
		return -ENOMEM;
	ws->generation = __atomic_load_n(&generation, __ATOMIC_RELAXED);
	*own = (struct reader){ .ws = ws, .generation = ws->generation };
	r = apart_start(work_all_the_time, own, ws->kind.files, fd, NULL);
	if (r < 0) {
		free(own);
		return r;
	}
	ws->users++;
	ws->has_idle = true;
	return 0;
}

int workers_new(const struct workers_kind *kind, struct workers **out)
{
	struct workers *ws = calloc(1, sizeof(*ws));

	if (!ws)
		return -ENOMEM;
	ws->kind = *kind;
	ws->users = 1;
	pthread_mutex_init(&ws->lock, NULL);
	cond_init_monotonic(&ws->changed);
	*out = ws;
	return 0;
}

void workers_free(struct workers *ws)
{
	if (!ws)
		return;
	pthread_mutex_lock(&ws->lock);
	ws->is_ending = true;
	pthread_cond_broadcast(&ws->changed);
	while (ws->users > 1 + ws->late)
		pthread_cond_wait(&ws->changed, &ws->lock);
	pthread_mutex_unlock(&ws->lock);
	release(ws);
}

/* Under the lock. workers_renew(): the next process is a new one. */
static void retire_idle(struct workers *ws)
{
	uint64_t newest = __atomic_load_n(&generation, __ATOMIC_RELAXED);

	if (!ws->has_idle || ws->generation == newest)
		return;
	ws->generation = newest;
	pthread_cond_broadcast(&ws->changed);
	while (ws->has_idle)
		pthread_cond_wait(&ws->changed, &ws->lock); /* it is idle: it comes */
}

int workers_start(struct workers *ws, struct work *w)
{
	int r = 0;

	pthread_mutex_lock(&ws->lock);
	retire_idle(ws);
	if (!ws->has_idle)
		r = ws->late < WORKERS_MAX ? start_process(ws, w->fd) : -EAGAIN;
	if (!r) {
		w->state = WORK_WAITS;
		ws->waiting = w;
	}
	pthread_mutex_unlock(&ws->lock);
	pthread_cond_broadcast(&ws->changed); /* who is woken would wait for the lock */
	return r;
}

bool workers_wait(struct workers *ws, struct work *w, uint64_t ns)
{
	struct timespec end = deadline_of(monotonic_ns() + ns);
	bool is_done;
	int r = 0;

	pthread_mutex_lock(&ws->lock);
	while (w->state != WORK_DONE && (ws->has_idle || w->state != WORK_WAITS) && !r)
		r = pthread_cond_timedwait(&ws->changed, &ws->lock, &end);
	is_done = w->state == WORK_DONE;
	pthread_mutex_unlock(&ws->lock);
	return is_done;
}

int workers_leave(struct workers *ws, struct work *w)
{
	int r = 0;

	pthread_mutex_lock(&ws->lock);
	if (w->state == WORK_WAITS) { /* its process has not come to it */
		ws->waiting = NULL;
		r = -EAGAIN;
	} else if (w->state != WORK_DONE) {
		w->state = WORK_LATE;
		ws->late++;
		ws->has_idle = false;
		r = -EINPROGRESS;
	}
	pthread_mutex_unlock(&ws->lock);
	return r;
}

int workers_run(struct workers *ws, struct work *w, uint64_t ns)
{
	int r = workers_start(ws, w);

	return r < 0 || workers_wait(ws, w, ns) ? r : workers_leave(ws, w);
}

static bool has_begun(struct workers *ws, const struct work *w)
{
	bool has_begun;

	pthread_mutex_lock(&ws->lock);
	has_begun = w->state != WORK_WAITS;
	pthread_mutex_unlock(&ws->lock);
	return has_begun;
}

int workers_run_patiently(struct workers *ws, struct work *w, uint64_t ns)
{
	uint64_t until_ns = monotonic_ns() + BEGIN_NS;
	bool is_last = false;
	int r = workers_start(ws, w);

	if (r < 0)
		return r;
	while (!is_last) {
		is_last = has_begun(ws, w) || monotonic_ns() >= until_ns;
		if (workers_wait(ws, w, ns))
			return 0;
	}
	return workers_leave(ws, w);
}

struct work *workers_next(struct workers *ws)
{
	struct work *w;

	pthread_mutex_lock(&ws->lock);
	w = ws->done;
	if (w)
		ws->done = w->next;
	pthread_mutex_unlock(&ws->lock);
	return w;
}

size_t workers_late(struct workers *ws)
{
	size_t late;

	pthread_mutex_lock(&ws->lock);
	late = ws->late;
	pthread_mutex_unlock(&ws->lock);
	return late;
}

/* Reads the wait that a process is in; all zeros if it runs, or is to run. */
static void read_wait(int pid, struct work_wait *out)
{
	_cleanup_(freep) char *text = NULL;
	unsigned long long switches;
	const char *state, *count;
	char path[40];
	size_t len;

	*out = (struct work_wait){ 0 };
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (file_read(path, STATUS_BYTES_MAX, &text, &len) < 0) {
		err_clear();
		return;
	}
	state = strstr(text, "\nState:\t");
	count = strstr(text, "\nvoluntary_ctxt_switches:");
	if (!state || !count || !strchr("SD", state[8]) ||
	    sscanf(count, "\nvoluntary_ctxt_switches: %llu", &switches) != 1)
		return;
	*out = (struct work_wait){ monotonic_ns(), switches };
}

bool workers_is_blocked(const struct work *w, struct work_wait *wait)
{
	int pid = __atomic_load_n(&w->worker, __ATOMIC_RELAXED);
	struct work_wait now = { 0 };

	if (pid)
		read_wait(pid, &now);
	if (wait->since_ns && now.since_ns && now.switches == wait->switches)
		now.since_ns = wait->since_ns;
	*wait = now;
	return now.since_ns;
}

const char *workers_late_words(const struct work *w)
{
	struct work_wait wait = { 0 };

	return workers_is_blocked(w, &wait) ? WORK_BLOCKED_WORDS
					    : "it was not looked at in time: the machine is busy";
}

uint64_t workers_patience_ns(struct workers *ws)
{
	size_t late = workers_late(ws);

	if (late >= PATIENCE_LATE_MAX)
		return 0;
	return late ? PATIENCE_NEXT_NS : PATIENCE_NS;
}

/* --- a single call ---------------------------------------------------------------------------- */

struct call {
	struct work work;
	void (*run)(void *arg);
	void *arg;
};

static void call_run(struct work *w, void *context)
{
	struct call *c = (struct call *)w;

	(void)context;
	c->run(c->arg);
}

static void call_free(struct work *w)
{
	free(w);
}

/* Waits for ns, then for as long as it waits for nothing but a CPU. Returns as workers_run(). */
static int call_wait(struct workers *ws, struct work *w, uint64_t ns)
{
	uint64_t until_ns = monotonic_ns() + CALL_BUSY_TIMES * ns, step_ns = ns;
	struct work_wait wait = { 0 };
	int r = workers_start(ws, w);

	if (r < 0)
		return r;
	while (!workers_wait(ws, w, step_ns)) {
		uint64_t now_ns = monotonic_ns();

		step_ns = CALL_LOOK_NS;
		if (now_ns >= until_ns ||
		    (workers_is_blocked(w, &wait) && now_ns - wait.since_ns >= CALL_BLOCKED_NS))
			return workers_leave(ws, w);
	}
	return 0;
}

int workers_call(void (*run)(void *arg), void *arg, uint64_t ns)
{
	const struct workers_kind kind = { .files = APART_ALL_FILES };
	_cleanup_(workers_freep) struct workers *ws = NULL;
	struct call *c = calloc(1, sizeof(*c));
	int r = c ? workers_new(&kind, &ws) : -ENOMEM;

	if (r < 0) {
		free(c);
		return r;
	}
	*c = (struct call){ { .run = call_run, .free = call_free }, run, arg };
	r = call_wait(ws, &c->work, ns);
	if (r == -EINPROGRESS)
		return err_set(-ETIMEDOUT, "%s", workers_late_words(&c->work));
	free(c);
	return r;
}
