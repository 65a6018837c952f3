/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

struct job {
	void (*work)(void *context, size_t i);
	void *context;
	size_t count;
	atomic_size_t next;
};

static void *take_turns(void *of)
{
	struct job *job = of;
	size_t i;

	while ((i = atomic_fetch_add(&job->next, 1)) < job->count)
		job->work(job->context, i);
	return NULL;
}

static size_t cpu_count(void)
{
	cpu_set_t cpus;

	return sched_getaffinity(0, sizeof(cpus), &cpus) ? 1 : (size_t)CPU_COUNT(&cpus);
}

void parallel_run(size_t count, void (*work)(void *context, size_t i), void *context)
{
	struct job job = { .work = work, .context = context, .count = count };
	size_t cpus = cpu_count(), more = 0;
	pthread_t threads[PARALLEL_MAX];

	while (more + 1 < count && more + 1 < cpus && more + 1 < PARALLEL_MAX &&
	       !pthread_create(&threads[more], NULL, take_turns, &job))
		more++;
	take_turns(&job);
	while (more)
		pthread_join(threads[--more], NULL);
}
