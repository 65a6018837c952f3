/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_SPANS_H
#define COLLECT_SPANS_H

#include <stdint.h>

#include "base/cleanup.h"

/*
 * Spans of waiting that no switch begins or ends within a recording: what session_open_spans() and
 * session_close_spans() do, with the iterator of bpf/remote.bpf.c. It reads the threads' memory and
 * waits for their pages, so that it is run by a thread that can be left behind.
 */
struct pyebpf;
struct spans;

/* skel is borrowed. */
int spans_new(struct pyebpf *skel, struct spans **out);
void spans_free(struct spans *sp);
DEFINE_CLEANUP(struct spans *, spans_free)

/* May be called by any thread. */
int spans_open(struct spans *sp, uint32_t pid);
int spans_close(struct spans *sp, uint64_t at_ns);
/* now: CLOCK_MONOTONIC. Does nothing while a pass rests, or another one runs. By one thread. */
int spans_look_ahead(struct spans *sp, uint64_t now);

#endif
