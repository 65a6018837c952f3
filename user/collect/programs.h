/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_PROGRAMS_H
#define COLLECT_PROGRAMS_H

#include "collect/session.h"

/* The skeleton that bpftool makes: the BPF programs and their maps. Ends in pyebpf__destroy(). */
struct pyebpf;

/*
 * Configures the programs for a session, loads them and attaches those that no perf event drives.
 * Errors are those of session_open().
 */
int programs_start(const struct session_opts *opts, struct pyebpf **out);

#endif
