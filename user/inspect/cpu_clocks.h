/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_CPU_CLOCKS_H
#define INSPECT_CPU_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

/*
 * The clocks by which the scheduler says when a thread was on a CPU (rq->clock_task of
 * kernel/sched/core.c). Each CPU has its own: it stands still while interrupts are handled or the
 * hypervisor has taken the CPU away. So a time of one CPU is compared with what its clock says now,
 * which takes to run there for a moment; a wait is told less what stood still meanwhile.
 */
struct cpu_clocks;

int cpu_clocks_new(struct cpu_clocks **out);
void cpu_clocks_free(struct cpu_clocks *c);
DEFINE_CLEANUP(struct cpu_clocks *, cpu_clocks_free)

/*
 * What CLOCK_MONOTONIC is ahead of the clock of a CPU. False: not known, as we may not run there or
 * the kernel does not say it.
 */
bool cpu_clocks_behind(struct cpu_clocks *c, unsigned cpu, int64_t *ns);

#endif
