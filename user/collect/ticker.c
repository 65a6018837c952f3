/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/ticker.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/chance.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/thread.h"
#include "collect/draw.h"

#define WARM_UP_MAX_NS 100000000ULL
#define LOOK_NS NS_PER_SECOND /* at which CPUs are there */

/* One CPU. Times are of CLOCK_MONOTONIC. */
struct cpu {
	int fd;              /* -1: offline, or left out */
	bool is_left_out;    /* it has no ticks */
	uint64_t offline_ns; /* when it was so last */
	uint32_t weight;     /* ticks that one of its events stands for */
	uint64_t set_ns;     /* when the period was set */
	uint64_t period_ns;
	uint64_t from_ns;    /* ticks before were counted, or do not count */
	uint64_t next_ns;    /* when the next period is drawn */
	uint64_t enabled_ns; /* when the event began to run; what it counts is the time since */
	struct draw draw;
};

struct ticker {
	struct ticker_opts opts;
	struct draw_plan plan;
	uint64_t opened_ns, looked_ns;
	pthread_mutex_t lock; /* of all that follows */
	pthread_cond_t changed;
	pthread_t thread;
	bool has_thread;
	bool should_end;
	bool is_counting;   /* between ticker_start() and ticker_stop() */
	uint32_t stride;    /* of what is drawn from now on */
	uint64_t expected;  /* ticks of the time up to each CPU's from_ns */
	uint64_t unwatched; /* ticks of time in which CPUs may have been online without an event */
	uint64_t started_ns, stopped_ns; /* 0: not yet */
	struct cpu cpus[];
};

/* Takes up the ticks of one CPU until then. */
static void count_until(struct ticker *t, struct cpu *c, uint64_t until_ns)
{
	if (t->is_counting && until_ns > c->from_ns)
		t->expected +=
			c->weight * draw_count_ticks(c->set_ns, c->period_ns, c->from_ns, until_ns);
	c->from_ns = until_ns;
}

/* What the sampler on that CPU is to know of its ticks: it may read while this is written. */
static void tell_sampler(struct ticker *t, const struct cpu *c, uint64_t set_ns, uint64_t period_ns)
{
	struct cpu_ticks *told = &t->opts.ticks[c - t->cpus];

	__atomic_store_n(&told->set_ns, set_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&told->period_ns, period_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&told->weight, t->is_counting ? t->stride : 0, __ATOMIC_RELAXED);
}

/* Draws the next period of a CPU. The kernel sets it there, somewhere within the call. */
static int redraw(struct ticker *t, struct cpu *c)
{
	uint64_t period_ns = draw_period_ns(&t->plan, &c->draw, chance_share());
	uint64_t before = monotonic_ns(), after, middle;

	tell_sampler(t, c, before, period_ns);
	if (ioctl(c->fd, PERF_EVENT_IOC_PERIOD, &period_ns) < 0)
		return err_set(-errno, "change the rate of perf events: %s", strerror(errno));
	after = monotonic_ns();
	middle = before + (after - before) / 2;
	count_until(t, c, middle);
	c->set_ns = middle;
	c->period_ns = period_ns;
	c->weight = t->stride;
	c->next_ns = draw_next_ns(&t->plan, c->next_ns, after, chance_share());
	return 0;
}

/* The CPU whose next period is drawn first; NULL: none is online. */
static struct cpu *find_next(struct ticker *t)
{
	struct cpu *next = NULL;

	for (struct cpu *c = t->cpus; c < t->cpus + t->opts.cpus; c++)
		if (c->fd >= 0 && (!next || c->next_ns < next->next_ns))
			next = c;
	return next;
}

static int ticking_cpus(const struct ticker *t)
{
	return t->opts.only_count ? (int)t->opts.only_count : t->opts.cpus;
}

static void *draw_all_the_time(void *arg)
{
	struct ticker *t = arg;

	pthread_mutex_lock(&t->lock);
	while (!t->should_end) {
		struct cpu *next = find_next(t);
		uint64_t now = monotonic_ns(), due = next ? next->next_ns : now + NS_PER_SECOND;
		struct timespec until = deadline_of(due);

		if (due > now)
			pthread_cond_timedwait(&t->changed, &t->lock, &until);
		else if (redraw(t, next) < 0)
			next->next_ns = now + NS_PER_SECOND; /* its period stays as it is */
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

static int start_thread(struct ticker *t)
{
	int r = thread_start_or_say(draw_all_the_time, t, &t->thread);

	t->has_thread = !r;
	return r;
}

static void end_thread(struct ticker *t)
{
	if (!t->has_thread)
		return;
	pthread_mutex_lock(&t->lock);
	t->should_end = true;
	pthread_cond_signal(&t->changed);
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->thread, NULL);
	t->has_thread = false;
}

/* -ENODEV: the CPU is offline. */
static int event_open(struct ticker *t, struct cpu *c)
{
	uint64_t now = monotonic_ns();
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = draw_period_ns(&t->plan, &c->draw, chance_share()),
		.disabled = 1,
	};
	_cleanup_(closep) int fd = -1;

	fd = syscall(SYS_perf_event_open, &attr, -1, (int)(c - t->cpus), -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, t->opts.program_fd) < 0)
		return err_set(-errno, "put the sampler on a perf event: %s", strerror(errno));
	tell_sampler(t, c, now, attr.sample_period);
	if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
		return err_set(-errno, "switch perf events: %s", strerror(errno));
	c->fd = take_fd(fd);
	c->weight = t->stride;
	c->set_ns = c->from_ns = c->enabled_ns = now;
	c->period_ns = attr.sample_period;
	c->next_ns = draw_next_ns(&t->plan, now, now, chance_share());
	return 0;
}

static void event_close(struct cpu *c)
{
	closep(&c->fd);
	c->fd = -1;
}

/* Events for all CPUs that are online and have none. */
static int open_events(struct ticker *t)
{
	for (struct cpu *c = t->cpus; c < t->cpus + t->opts.cpus; c++) {
		int r;

		if (c->fd >= 0 || c->is_left_out)
			continue;
		r = event_open(t, c);
		if (r == -ENODEV)
			c->offline_ns = monotonic_ns();
		else if (!r && t->is_counting)
			t->unwatched +=
				(c->set_ns - c->offline_ns) * t->opts.freq_hz / NS_PER_SECOND;
		if (r == -EMFILE)
			return err_set(r, "open perf events: one a CPU is more than the open files "
					  "that are allowed");
		if (r < 0 && r != -ENODEV)
			return err_set(r, "open perf events: %s", strerror(-r));
	}
	return 0;
}

static void leave_out_others(struct ticker *t)
{
	for (int i = 0; i < t->opts.cpus; i++)
		t->cpus[i].is_left_out = t->opts.only_count > 0;
	for (size_t i = 0; i < t->opts.only_count; i++)
		if (t->opts.only[i] < (uint32_t)t->opts.cpus)
			t->cpus[t->opts.only[i]].is_left_out = false;
}

static int check_only(const struct ticker *t)
{
	for (size_t i = 0; i < t->opts.only_count; i++) {
		uint32_t number = t->opts.only[i];

		if (number >= (uint32_t)t->opts.cpus || t->cpus[number].fd < 0)
			return err_set(-ENODEV, "--cpus: CPU %u is not online", number);
	}
	return 0;
}

int ticker_new(const struct ticker_opts *opts, struct ticker **out)
{
	_cleanup_(ticker_freep) struct ticker *t = NULL;
	int r;

	t = calloc(1, sizeof(*t) + (size_t)opts->cpus * sizeof(t->cpus[0]));
	if (!t)
		return -ENOMEM;
	t->opts = *opts;
	t->stride = 1;
	leave_out_others(t);
	t->plan = draw_plan(opts->freq_hz, ticking_cpus(t));
	for (int i = 0; i < opts->cpus; i++)
		t->cpus[i].fd = -1;
	pthread_mutex_init(&t->lock, NULL);
	cond_init_monotonic(&t->changed);
	t->opened_ns = t->looked_ns = monotonic_ns();
	r = open_events(t);
	if (r < 0)
		return r;
	if ((r = check_only(t)) < 0)
		return r;
	*out = take_ptr(t);
	return 0;
}

void ticker_free(struct ticker *t)
{
	if (!t)
		return;
	end_thread(t);
	for (int i = 0; i < t->opts.cpus; i++)
		event_close(&t->cpus[i]);
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

static void warm_up(const struct ticker *t)
{
	uint64_t period_ns = draw_period_max_ns(&t->plan), until, now = monotonic_ns();
	struct timespec left;

	until = t->opened_ns + (period_ns < WARM_UP_MAX_NS ? period_ns : WARM_UP_MAX_NS);
	if (until <= now)
		return;
	left = timespec_of(until - now);
	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

int ticker_start(struct ticker *t)
{
	uint64_t now;

	warm_up(t);
	t->started_ns = now = monotonic_ns();
	t->is_counting = true;
	for (struct cpu *c = t->cpus; c < t->cpus + t->opts.cpus; c++) {
		c->from_ns = now;
		tell_sampler(t, c, c->set_ns, c->period_ns);
	}
	return start_thread(t);
}

void ticker_stop(struct ticker *t)
{
	uint64_t now;

	end_thread(t);
	now = monotonic_ns();
	for (struct cpu *c = t->cpus; c < t->cpus + t->opts.cpus; c++)
		if (c->fd >= 0)
			count_until(t, c, now);
	if (t->is_counting)
		t->stopped_ns = now;
	t->is_counting = false;
	for (struct cpu *c = t->cpus; c < t->cpus + t->opts.cpus; c++)
		tell_sampler(t, c, c->set_ns, c->period_ns);
	/* Takes its time, in which no other CPU may count on. */
	for (struct cpu *c = t->cpus; c < t->cpus + t->opts.cpus; c++)
		event_close(c);
}

int ticker_set_stride(struct ticker *t, uint32_t stride)
{
	int r = 0;

	pthread_mutex_lock(&t->lock);
	t->stride = stride;
	t->plan = draw_plan((double)t->opts.freq_hz / stride, ticking_cpus(t));
	for (struct cpu *c = t->cpus; c < t->cpus + t->opts.cpus && !r; c++)
		if (c->fd >= 0)
			r = redraw(t, c);
	pthread_mutex_unlock(&t->lock);
	return r;
}

/*
 * An event whose CPU goes offline stops for ever, also when the CPU comes back, as all but one do
 * when a machine has slept. *end_ns: when that was, by the time that the event has counted.
 */
static bool has_stopped(const struct cpu *c, uint64_t now, uint64_t *end_ns)
{
	uint64_t counted_ns;

	if (read(c->fd, &counted_ns, sizeof(counted_ns)) != sizeof(counted_ns))
		counted_ns = 0;
	*end_ns = c->enabled_ns + counted_ns;
	return *end_ns + LOOK_NS / 2 < now;
}

int ticker_follow_cpus(struct ticker *t)
{
	uint64_t now = monotonic_ns(), end_ns;
	int r;

	if (now - t->looked_ns < LOOK_NS)
		return 0;
	t->looked_ns = now;
	pthread_mutex_lock(&t->lock);
	for (struct cpu *c = t->cpus; c < t->cpus + t->opts.cpus; c++) {
		if (c->fd < 0 || !has_stopped(c, now, &end_ns))
			continue;
		count_until(t, c, end_ns);
		event_close(c);
		c->offline_ns = end_ns;
	}
	r = open_events(t);
	pthread_cond_signal(&t->changed);
	pthread_mutex_unlock(&t->lock);
	return r;
}

uint64_t ticker_expected(struct ticker *t)
{
	uint64_t now, expected;

	pthread_mutex_lock(&t->lock);
	now = monotonic_ns();
	for (struct cpu *c = t->cpus; c < t->cpus + t->opts.cpus; c++)
		if (c->fd >= 0)
			count_until(t, c, now);
	expected = t->expected;
	pthread_mutex_unlock(&t->lock);
	return expected;
}

uint64_t ticker_left_out(struct ticker *t)
{
	uint64_t until = t->stopped_ns ? t->stopped_ns : monotonic_ns();
	long others = sysconf(_SC_NPROCESSORS_ONLN) - ticking_cpus(t);

	if (!t->opts.only_count || !t->started_ns || others <= 0)
		return 0;
	return (uint64_t)others * t->opts.freq_hz * (until - t->started_ns) / NS_PER_SECOND;
}

uint64_t ticker_unwatched(struct ticker *t)
{
	uint64_t unwatched;

	pthread_mutex_lock(&t->lock);
	unwatched = t->unwatched;
	pthread_mutex_unlock(&t->lock);
	return unwatched;
}
