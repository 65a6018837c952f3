/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* read_threads PID COUNT [bpf]: reads all threads of a process COUNT times, as `pyebpf dump` does
 * without printing; by BPF, loaded before, or without. Prints threads, frames, those read
 * consistently, and ms: best, median, CPU time of the median. tests/bench/dump.py drives it. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "collect/own_walks.h"
#include "inspect/process.h"

#define COUNT_MAX 10000

struct cost {
	uint64_t wall_ns, cpu_ns;
};

static int by_wall(const void *a, const void *b)
{
	const struct cost *x = a, *y = b;

	return (x->wall_ns > y->wall_ns) - (x->wall_ns < y->wall_ns);
}

static int read_once(struct inspector *in, pid_t pid, struct cost *cost, bool is_last)
{
	_cleanup_(inspect_process_freep) struct inspect_process *p = NULL;
	uint64_t wall_ns = monotonic_ns(), cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	size_t frames = 0, consistent = 0;
	int r = inspect_process_open(in, pid, &p);

	if (r >= 0)
		r = inspect_process_read(in, p);
	if (r < 0)
		return r;
	cost->wall_ns = monotonic_ns() - wall_ns;
	cost->cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
	for (size_t i = 0; i < p->thread_count; i++) {
		frames += p->threads[i].frame_count;
		consistent += p->threads[i].is_consistent;
	}
	if (is_last)
		printf("%zu %zu %zu ", p->thread_count, frames, consistent);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct inspect_kernel kernel = { .run = own_walks_run,
						      .look = own_walks_look };
	_cleanup_(own_walks_freep) struct own_walks *own = NULL;
	_cleanup_(inspector_freep) struct inspector *in = NULL;
	static struct cost costs[COUNT_MAX];
	size_t count = argc == 3 || argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
	int r;

	if (!count || count > COUNT_MAX) {
		fprintf(stderr, "usage: read_threads PID COUNT [bpf]\n");
		return 2;
	}
	r = inspector_new(&in);
	if (r >= 0 && argc == 4 && (r = own_walks_new(&own)) >= 0 &&
	    (r = own_walks_load(own)) >= 0) {
		in->kernel = &kernel;
		in->kernel_arg = own;
	}
	for (size_t i = 0; i < count && r >= 0; i++)
		r = read_once(in, (pid_t)strtol(argv[1], NULL, 10), &costs[i], i + 1 == count);
	if (r < 0) {
		fprintf(stderr, "%s\n", err_message(r));
		return 1;
	}
	qsort(costs, count, sizeof(*costs), by_wall);
	printf("%.2f %.2f %.2f\n", (double)costs[0].wall_ns / 1e6,
	       (double)costs[count / 2].wall_ns / 1e6, (double)costs[count / 2].cpu_ns / 1e6);
	return 0;
}
