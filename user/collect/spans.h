/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_SPANS_H
#define COLLECT_SPANS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

/*
 * Spans of waiting that no switch begins or ends within a recording, and those that last, by passes
 * of the iterator of bpf/remote.bpf.c. A pass reads the threads' memory and waits for their pages,
 * so that a process of its own runs it, which can be left behind (base/workers.h). All but
 * spans_open() is for one thread.
 */
struct pyebpf;
struct spans;

/* skel is borrowed. */
int spans_new(struct pyebpf *skel, struct spans **out);
void spans_free(struct spans *sp);
DEFINE_CLEANUP(struct spans *, spans_free)

/* As a session begins: all threads of processes that are recorded, from started_ns on. */
int spans_begin(struct spans *sp);

/* By any thread: those of a process are in the recording from now on. A later step visits them. */
void spans_open(struct spans *sp, uint32_t pid);

/* See session_close_spans(), session_visit_threads(). may_look_ahead: spans are sampled at their
 * end (session.has_exit_hook), so that those that last are sampled before. */
int spans_close(struct spans *sp, uint64_t at_ns);
int spans_step(struct spans *sp, bool may_look_ahead);

/* How long may be waited until the next step: max_ms at most. */
int spans_patience(struct spans *sp, int max_ms);

#endif
