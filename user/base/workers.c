/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/clock.h"
#include "base/thread.h"
#include "base/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES (1u << 20) /* of a process: as much as is used is there */

#ifdef __SANITIZE_THREAD__ /* knows nothing of processes that share memory */
#define NEEDS_THREADS true
#else
#define NEEDS_THREADS false
#endif

const char workers_late_words[] =
	"its memory or its files do not answer: a network mount that hangs?";

enum work_state { WORK_WAITS, WORK_RUNS, WORK_DONE, WORK_LATE };

struct workers {
	struct workers_kind kind;
	pthread_mutex_t lock;   /* of all that follows */
	pthread_cond_t changed; /* somebody waits for a work, or for its end */
	struct work *waiting;   /* the one that a process is to take; NULL: none */
	struct work *done;      /* that were late, in no order */
	size_t late;            /* processes that are at one nobody waits for */
	size_t users;           /* processes, and the owner: the last one frees */
	uint64_t generation;    /* of the idle process: workers_renew() */
	bool has_idle;          /* one process waits for work, or will */
	bool is_ending;
};

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
	pthread_cond_destroy(&ws->changed);
	pthread_mutex_destroy(&ws->lock);
	free(ws);
}

/* A process whose work was late is not needed any more: another has taken its place. */
static bool finish(struct workers *ws, struct work *w)
{
	if (w->state != WORK_LATE) {
		w->state = WORK_DONE;
		ws->has_idle = ws->kind.files == WORKERS_NO_FILES;
		pthread_cond_broadcast(&ws->changed);
		return ws->has_idle;
	}
	w->next = ws->done;
	ws->done = w;
	ws->late--;
	return false;
}

static uint64_t cpu_ns;     /* of all works */
static uint64_t generation; /* of processes that are started now */

void workers_renew(void)
{
	__atomic_fetch_add(&generation, 1, __ATOMIC_RELAXED);
}

uint64_t workers_cpu_ns(void)
{
	return __atomic_load_n(&cpu_ns, __ATOMIC_RELAXED);
}

static void run(struct work *w, void *context)
{
	uint64_t start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	w->run(w, context);
	__atomic_fetch_add(&cpu_ns, clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns, __ATOMIC_RELAXED);
}

/* What a process begins with. */
struct begin {
	struct workers *ws;
	struct work *running; /* for who looks for leaks: it is on a stack that nobody knows of */
	uint64_t generation;
	int fd;
};

static void work_all_the_time(struct begin *b)
{
	struct workers *ws = b->ws;
	uint64_t own = b->generation;
	void *context = NULL;
	bool has_context = !ws->kind.context_new || !ws->kind.context_new(&context);
	bool is_needed = has_context;

	pthread_mutex_lock(&ws->lock);
	if (!has_context) {
		ws->has_idle = false;
		pthread_cond_broadcast(&ws->changed);
	}
	while (is_needed && !ws->is_ending && ws->generation == own) {
		struct work *w = ws->waiting;

		if (!w) {
			pthread_cond_wait(&ws->changed, &ws->lock);
			continue;
		}
		ws->waiting = NULL;
		w->state = WORK_RUNS;
		pthread_mutex_unlock(&ws->lock);
		b->running = w;
		run(w, context);
		pthread_mutex_lock(&ws->lock);
		is_needed = finish(ws, w);
	}
	pthread_mutex_unlock(&ws->lock);
	if (has_context && ws->kind.context_free)
		ws->kind.context_free(context);
	release(ws);
}

/* --- the process ------------------------------------------------------------------------------ */

/*
 * This process may outlive us: whoever reads our output would wait for it, and BPF programs would
 * stay attached. What is printed here goes nowhere.
 */
static void leave_files(enum workers_files left, int fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; i <= STDERR_FILENO && null >= 0; i++)
		if (i != null)
			dup2(null, i);
	if (left == WORKERS_ALL_FILES)
		return;
	if (left == WORKERS_NO_FILES || fd <= STDERR_FILENO)
		fd = STDERR_FILENO;
	else
		syscall(SYS_close_range, STDERR_FILENO + 1, fd - 1, 0);
	syscall(SYS_close_range, fd + 1, ~0U, 0);
}

static int begin(void *arg)
{
	struct begin *b = arg;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "pyebpf-reader");
	leave_files(b->ws->kind.files, b->fd);
	work_all_the_time(b);
	return 0;
}

/*
 * A thread that starts the process and waits for it. The process has the thread's thread-local
 * storage, which the thread does not use meanwhile: what malloc() and errno need is there.
 */
static void *start_and_wait(void *arg)
{
	_cleanup_(freep) struct begin *b = arg;
	char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
	int status = 0, pid = -1;

	if (stack != MAP_FAILED && !NEEDS_THREADS)
		pid = clone(begin, stack + STACK_BYTES, CLONE_VM | CLONE_FS, b);
	if (pid < 0)
		work_all_the_time(b);
	while (pid > 0 && waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		abort(); /* a lock may be held for ever */
	if (stack != MAP_FAILED)
		munmap(stack, STACK_BYTES);
	return NULL;
}

/* Under the lock. */
static int start_process(struct workers *ws, int fd)
{
	struct begin *b = malloc(sizeof(*b));
	int r;

	if (!b)
		return -ENOMEM;
	ws->generation = __atomic_load_n(&generation, __ATOMIC_RELAXED);
	*b = (struct begin){ .ws = ws, .generation = ws->generation, .fd = fd };
	r = thread_start(start_and_wait, b, NULL);
	if (r < 0) {
		free(b);
		return r == -EAGAIN ? r : -ENOMEM;
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

int workers_run(struct workers *ws, struct work *w, uint64_t ns)
{
	struct timespec end = timespec_of(monotonic_ns() + ns);
	int r = 0;

	pthread_mutex_lock(&ws->lock);
	if (ws->has_idle && ws->generation != __atomic_load_n(&generation, __ATOMIC_RELAXED))
		ws->has_idle = false; /* it ends as soon as it sees that it is of another one */
	if (!ws->has_idle)
		r = ws->late < WORKERS_MAX ? start_process(ws, w->fd) : -EAGAIN;
	if (r < 0) {
		pthread_mutex_unlock(&ws->lock);
		return r;
	}
	w->state = WORK_WAITS;
	ws->waiting = w;
	pthread_cond_broadcast(&ws->changed);
	while (w->state != WORK_DONE && (ws->has_idle || w->state != WORK_WAITS) && !r)
		r = -pthread_cond_timedwait(&ws->changed, &ws->lock, &end);
	if (w->state == WORK_DONE) {
		r = 0;
	} else if (w->state == WORK_WAITS) { /* its process has not come to it */
		ws->waiting = NULL;
		r = -EAGAIN;
	} else {
		w->state = WORK_LATE;
		ws->late++;
		ws->has_idle = false;
		r = -EINPROGRESS;
	}
	pthread_mutex_unlock(&ws->lock);
	return r;
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
