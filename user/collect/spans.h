/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_SPANS_H
#define COLLECT_SPANS_H

#include <stdint.h>

/*
 * Spans of waiting that no switch begins or ends within a recording: what session_open_spans() and
 * session_close_spans() do, with the programs of bpf/remote.bpf.c.
 */
struct pyebpf;

int spans_open(struct pyebpf *skel, uint32_t pid);
int spans_close(struct pyebpf *skel);

#endif
