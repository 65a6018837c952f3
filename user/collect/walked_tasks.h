/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_WALKED_TASKS_H
#define COLLECT_WALKED_TASKS_H

#include <stdint.h>

#include "base/cleanup.h"
#include "bpf/events.h"
#include "target/proc.h"

/*
 * Processes and what they have run, on a kernel without iterators, which needs type information of
 * its own for them: by a BPF program that follows the kernel's list (bpf/tasks.bpf.c), and by
 * /proc.
 */
struct walked_tasks;
struct pyebpf;

/* What is wrong with a file of types by which the kernel makes no sense: -EOPNOTSUPP, said. */
int walked_tasks_misfit(const char *btf);

/*
 * Of programs that are loaded, which are to live longer. btf: by which types. -EOPNOTSUPP with a
 * message if by these our own process is not among those found, or is not as it is.
 */
int walked_tasks_new(const struct pyebpf *skel, const char *btf, struct walked_tasks **out);
void walked_tasks_free(struct walked_tasks *w);
DEFINE_CLEANUP(struct walked_tasks *, walked_tasks_free)

/* All processes, to fn. Stops at its first negative result and returns that. */
int walked_tasks_list(struct walked_tasks *w, int (*fn)(const struct task_record *r, void *arg),
		      void *arg);

/* CPU time of the threads of a process that live, ns; 0: it is gone. */
uint64_t threads_cpu_time(pid_t pid);

#endif
