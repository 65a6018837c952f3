/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_THREAD_NAME_H
#define COLLECT_THREAD_NAME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/events.h"
#include "symbolize/pystring.h"
#include "target/threading.h"

#define THREAD_NAME_BYTES PYSTRING_UTF8_BYTES(THREADING_CHARS_MAX * 4)

/* A thread of a target, as it was when its name was wanted. */
struct thread_place {
	pid_t pid, tid;    /* in our own PID namespace */
	uint64_t pointer;  /* pthread_self() */
	uint64_t start_ns; /* CLOCK_BOOTTIME */
	char comm[COMM_BYTES];
	uint64_t runtime;
	const struct py_offsets *off;
};

/*
 * What Python calls it: UTF-8 into out. It reads the target's memory, which may take as long as
 * that takes. *active: as in struct threading_process, one a process.
 *
 * Returns 0; -ENOENT: `threading` does not know it, or not yet; -ESRCH: it has ended, and another
 * may have its pthread_self() or its TID now; -ESTALE: the system has another name for it by now,
 * as Python may have; other errors as threading_name(). All without a message.
 */
int thread_name_read(const struct thread_place *thread, uint64_t *active,
		     char out[THREAD_NAME_BYTES]);

/* Signal 0 is sent to nobody. */
bool thread_has_ended(pid_t pid, pid_t tid);

#endif
