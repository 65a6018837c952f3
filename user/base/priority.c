/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/priority.h"

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

static bool set_nice(int nice, uint64_t flags)
{
	struct sched_attr attr = { .size = sizeof(attr),
				   .sched_policy = SCHED_NORMAL,
				   .sched_flags = flags,
				   .sched_nice = nice };

	return !syscall(SYS_sched_setattr, 0, &attr, 0);
}

void priority_give_back(struct priority *p)
{
	if (p->is_raised)
		set_nice(0, 0);
	p->is_raised = false;
}

static void raise_it(struct priority *p)
{
	bool is_normal = syscall(SYS_sched_getscheduler, 0) == SCHED_NORMAL;

	if (is_normal && !getpriority(PRIO_PROCESS, 0))
		set_nice(PRIORITY_NICE, p->is_inherited ? 0 : SCHED_FLAG_RESET_ON_FORK);
	p->is_raised = is_normal && getpriority(PRIO_PROCESS, 0) == PRIORITY_NICE;
}

void priority_keep(struct priority *p, uint64_t now_ns)
{
	uint64_t passed = now_ns - p->looked_ns, used;

	if (p->looked_ns && passed < NS_PER_SECOND)
		return;
	used = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (p->looked_ns && used - p->used_ns > passed / PRIORITY_SHARE)
		priority_give_back(p);
	else if (!p->is_raised)
		raise_it(p);
	p->looked_ns = now_ns;
	p->used_ns = used;
}
