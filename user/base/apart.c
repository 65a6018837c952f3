/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/apart.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/thread.h"

#define GUARD_BYTES 65536      /* a page, of whatever size */
#define STACK_BYTES (1u << 20) /* as much as is used is there */
#define LIVING_MAX 64          /* whose CPU time is known while they run */

#ifdef __SANITIZE_THREAD__ /* knows nothing of processes that share memory */
#define NEEDS_THREADS true
#else
#define NEEDS_THREADS false
#endif

/* Processes that run, and the CPU time of those that have ended. */
static struct {
	pthread_mutex_t lock;
	uint64_t ended_ns;
	int pids[LIVING_MAX]; /* 0: none */
} living = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void replace_pid(int from, int to, uint64_t ended_ns)
{
	bool is_done = false;

	pthread_mutex_lock(&living.lock);
	for (size_t i = 0; i < LIVING_MAX && !is_done; i++) {
		is_done = living.pids[i] == from;
		if (is_done)
			living.pids[i] = to;
	}
	living.ended_ns += ended_ns;
	pthread_mutex_unlock(&living.lock);
}

uint64_t apart_cpu_ns(void)
{
	uint64_t sum;

	pthread_mutex_lock(&living.lock);
	sum = living.ended_ns;
	for (size_t i = 0; i < LIVING_MAX; i++) {
		clockid_t clock;

		if (living.pids[i] && !clock_getcpuclockid(living.pids[i], &clock))
			sum += clock_ns(clock);
	}
	pthread_mutex_unlock(&living.lock);
	return sum;
}

static uint64_t used_ns(const struct rusage *u)
{
	return (uint64_t)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) * NS_PER_SECOND +
	       (uint64_t)(u->ru_utime.tv_usec + u->ru_stime.tv_usec) * 1000;
}

struct begin {
	void (*run)(void *arg);
	void *arg;
	enum apart_files files;
	int fd;
	pid_t parent;
};

/*
 * This process may outlive us: whoever reads our output would wait for it, and BPF programs would
 * stay attached.
 */
static void leave_files(enum apart_files files, int fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; i <= STDERR_FILENO && null >= 0; i++)
		if (i != null)
			dup2(null, i);
	if (files == APART_ALL_FILES)
		return;
	if (files == APART_NO_FILES || fd <= STDERR_FILENO)
		fd = STDERR_FILENO;
	else
		syscall(SYS_close_range, STDERR_FILENO + 1, fd - 1, 0);
	syscall(SYS_close_range, fd + 1, ~0U, 0);
}

static int begin(void *arg)
{
	const struct begin *b = arg;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != b->parent) /* it was killed before */
		return 0;
	prctl(PR_SET_NAME, "pyebpf-reader");
	leave_files(b->files, b->fd);
	b->run(b->arg);
	return 0;
}

/*
 * The process has the thread-local storage of the thread that waits for it, which does not use it
 * meanwhile: what malloc() and errno need is there.
 */
static void *start_and_wait(void *arg)
{
	_cleanup_(freep) struct begin *b = arg;
	char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
	struct rusage used = { 0 };
	int status = 0, pid = -1;

	if (stack != MAP_FAILED)
		mprotect(stack, GUARD_BYTES, PROT_NONE); /* what grows beyond it ends us */
	if (stack != MAP_FAILED && !NEEDS_THREADS)
		pid = clone(begin, stack + STACK_BYTES, CLONE_VM | CLONE_FS, b);
	if (pid < 0) {
		b->run(b->arg);
	} else {
		replace_pid(0, pid, 0);
		while (wait4(pid, &status, __WALL, &used) < 0 && errno == EINTR)
			;
		replace_pid(pid, 0, used_ns(&used));
	}
	/* A signal or a sanitizer ended it within run(): a lock may be held for ever. */
	if (status)
		abort();
	if (stack != MAP_FAILED)
		munmap(stack, STACK_BYTES);
	return NULL;
}

int apart_start(void (*run)(void *arg), void *arg, enum apart_files files, int fd,
		pthread_t *thread)
{
	struct begin *b = malloc(sizeof(*b));
	int r;

	if (!b)
		return -ENOMEM;
	*b = (struct begin){ run, arg, files, fd, getpid() };
	r = thread_start(start_and_wait, b, thread);
	if (r < 0)
		free(b);
	return r;
}

/* --- holding descriptors ---------------------------------------------------------------------- */

#define HELD_FIRST_MAX 8

struct apart_hold {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool may_close, has_closed;
	pid_t owner;
	int first[HELD_FIRST_MAX];
	size_t count;
};

static void close_held(const struct apart_hold *h)
{
	for (size_t i = 0; i < h->count; i++)
		if (h->first[i] >= 0)
			close(h->first[i]);
	syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0);
}

static void hold(void *arg)
{
	struct apart_hold *h = arg;

	pthread_mutex_lock(&h->lock);
	while (!h->may_close)
		pthread_cond_wait(&h->changed, &h->lock);
	pthread_mutex_unlock(&h->lock);
	if (getpid() != h->owner) /* else no process could be started, and they are the owner's */
		close_held(h);
	pthread_mutex_lock(&h->lock);
	h->has_closed = true;
	pthread_cond_broadcast(&h->changed);
	pthread_mutex_unlock(&h->lock);
}

struct apart_hold *apart_hold_begin(void)
{
	struct apart_hold *h = NEEDS_THREADS ? NULL : calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	pthread_mutex_init(&h->lock, NULL);
	cond_init_monotonic(&h->changed);
	h->owner = getpid();
	if (apart_start(hold, h, APART_ALL_FILES, -1, &h->thread) >= 0)
		return h;
	free(h);
	return NULL;
}

bool apart_hold_end(struct apart_hold *h, const int *first, size_t count, uint64_t ns)
{
	struct timespec until = deadline_of(monotonic_ns() + ns);
	int r = 0;

	if (!h)
		return true;
	pthread_mutex_lock(&h->lock);
	for (size_t i = 0; i < count && i < HELD_FIRST_MAX; i++)
		h->first[h->count++] = first[i];
	h->may_close = true;
	pthread_cond_broadcast(&h->changed);
	while (!h->has_closed && !r)
		r = pthread_cond_timedwait(&h->changed, &h->lock, &until);
	r = h->has_closed;
	pthread_mutex_unlock(&h->lock);
	if (!r) {
		pthread_detach(h->thread); /* what it uses is its own */
		return false;
	}
	pthread_join(h->thread, NULL);
	pthread_cond_destroy(&h->changed);
	pthread_mutex_destroy(&h->lock);
	free(h);
	return true;
}
