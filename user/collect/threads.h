/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_THREADS_H
#define COLLECT_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "bpf/events.h"
#include "collect/discover.h"
#include "collect/processes.h"
#include "collect/session.h"
#include "profile/profile.h"

/*
 * The threads that samples are of, and what Python calls them: read from their processes, which
 * give them names some time after they began, and may give them others later.
 */
struct threads;

/* All four are borrowed and must outlive it. */
int threads_new(struct session *session, struct discovery *discovery, struct profile *profile,
		struct processes *processes, struct threads **out);
void threads_free(struct threads *ts);
DEFINE_CLEANUP(struct threads *, threads_free)

/* A thread at its first sample, or under another name than before. 0 or -ENOMEM. */
int threads_add(struct threads *ts, const struct thread_event *e);

/* The process of threads that may have come before it is known. 0 or -ENOMEM. */
int threads_meet_process(struct threads *ts, uint64_t process);

/*
 * The thread of a record that no sampler has sent, by its kernel name (COMM_BYTES), unless it is
 * known. 0 or -ENOMEM.
 */
int threads_introduce(struct threads *ts, const struct sample_event *e, const char *comm);

/* A sample has come: if its thread's name is awaited, it is asked for. 0 or -ENOMEM. */
int threads_ask_name(struct threads *ts, const struct sample_event *e);

/* Whether the name of the sample's thread may come yet. */
bool threads_is_awaited(const struct threads *ts, const struct sample_event *e);

/*
 * The sample's thread in the profile. One that was never introduced (its record was lost) goes
 * without a name until it is. 0 or -ENOMEM.
 */
int threads_id(struct threads *ts, const struct sample_event *e, uint32_t *id);

/*
 * Asks again for names, where they may have changed, and for the last time for those that are
 * awaited. 0 or -ENOMEM.
 */
int threads_settle(struct threads *ts, uint64_t now_ns);

/* Forgets all ids, and the threads of processes that are not known any more. 0 or -ENOMEM. */
int threads_forget_ids(struct threads *ts);

size_t threads_bytes(const struct threads *ts);

#endif
