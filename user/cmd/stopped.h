/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_STOPPED_H
#define CMD_STOPPED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/strbuf.h"
#include "cmd/record.h"

/* Targets that a signal has stopped: they do not run, and a recording of them seems to fail. */

/* Is it stopped, and not by a tracer? */
bool stopped_is(pid_t pid);

/* "pid 412 is stopped by a signal (SIGSTOP, Ctrl-Z)" 0 or -ENOMEM. */
int stopped_put(pid_t pid, struct strbuf *out);

/*
 * Looks at the targets twice a second, where that takes no more than 1 % of a CPU. The PID of one
 * that has been stopped since the last look, one at a time; 0: of none. Children and members of a
 * cgroup count once the recorder knows them, the processes of -a do not. Or a negative errno.
 */
pid_t stopped_step(struct record_run *r, uint64_t now_ns);

/* That one, and what it means for the samples of these modes, enum session_mode. 0 or -ENOMEM. */
int stopped_put_note(pid_t pid, unsigned int modes, struct strbuf *out);

/*
 * One of the targets that is stopped now; 0: none. Children and members of a cgroup count as well,
 * the processes of -a do not.
 */
pid_t stopped_find(const struct record_targets *t);

void stopped_watch_release(struct stopped_watch *w);

#endif
