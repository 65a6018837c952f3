/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/cpu_clocks.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "inspect/thread_files.h"

#define CPUS_MAX CPU_SETSIZE

struct cpu_clocks {
	struct {
		bool is_known, was_asked;
		int64_t behind_ns;
	} of_cpu[CPUS_MAX];
};

int cpu_clocks_new(struct cpu_clocks **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void cpu_clocks_free(struct cpu_clocks *c)
{
	free(c);
}

/* Just back on the CPU, we were last seen there now. */
static bool ask(unsigned cpu, int64_t *behind_ns)
{
	_cleanup_(closep) int folder = thread_folder_open(getpid(), gettid());
	uint64_t exec_start_ns;
	unsigned int now;

	nanosleep(&(struct timespec){ .tv_nsec = 1 }, NULL);
	/* not sched_getcpu(): it reads what the kernel wrote for the thread that we have our TLS of
	 */
	if (folder < 0 || syscall(SYS_getcpu, &now, NULL, NULL) < 0 || now != cpu ||
	    thread_sched_read(folder, &exec_start_ns) < 0)
		return false;
	*behind_ns = (int64_t)(monotonic_ns() - exec_start_ns);
	return true;
}

static bool ask_there(unsigned cpu, int64_t *behind_ns)
{
	cpu_set_t before, there;
	bool is_known;

	CPU_ZERO(&there);
	CPU_SET(cpu, &there);
	if (sched_getaffinity(0, sizeof(before), &before) < 0 ||
	    sched_setaffinity(0, sizeof(there), &there) < 0)
		return false;
	is_known = ask(cpu, behind_ns);
	sched_setaffinity(0, sizeof(before), &before);
	return is_known;
}

bool cpu_clocks_behind(struct cpu_clocks *c, unsigned cpu, int64_t *ns)
{
	if (cpu >= CPUS_MAX)
		return false;
	if (!c->of_cpu[cpu].was_asked) {
		c->of_cpu[cpu].was_asked = true;
		c->of_cpu[cpu].is_known = ask_there(cpu, &c->of_cpu[cpu].behind_ns);
	}
	*ns = c->of_cpu[cpu].behind_ns;
	return c->of_cpu[cpu].is_known;
}
