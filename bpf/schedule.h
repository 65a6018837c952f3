/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_SCHEDULE_H
#define BPF_SCHEDULE_H

/* How a thread is given something to do before it goes on. */

#include "bpf/events.h"

/*
 * bpf_task_work_schedule_resume() of Linux 7.0, with a fifth argument (filled in by the verifier)
 * bpf_task_work_schedule_resume_impl() of 6.18. Not the signal form: that makes a thread which is
 * about to sleep in the kernel return as if a signal had come. map is any map whose value holds a
 * bpf_task_work. User space puts the function that the kernel has in place of this number, before
 * it loads the program: a weak __ksym is refused by libbpf where the prototypes differ, and where
 * it is absent and the BTF of modules may not be read (without CAP_SYS_ADMIN).
 */
static long (*task_work_schedule)(struct task_struct *task, struct bpf_task_work *work, void *map,
				  int (*callback)(struct bpf_map *map, void *key, void *value),
				  void *aux) = (void *)TASK_WORK_SCHEDULE;

#endif
