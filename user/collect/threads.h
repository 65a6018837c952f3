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
 * The threads that samples are of, under the names that they had then. What Python calls them is
 * read from their processes, which give them names some time after they began, and may give them
 * others later: where a thread begins, where the kernel's name for it changes, and ever less often
 * in between. No sample waits for a name.
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

/* A sample has come: its thread's name is to be asked for, if that is due. 0 or -ENOMEM. */
int threads_ask_name(struct threads *ts, const struct sample_event *e);

/* Asks for the names that are due: one question a process, where it has no more than some dozens.
 * To be called whenever the ring was emptied. 0 or -ENOMEM. */
int threads_ask(struct threads *ts);

/* Whether there were new threads before the last threads_ask(): the kernel wakes nobody for further
 * ones for THREAD_WAKEUP_NS. */
bool threads_may_come(const struct threads *ts);

/*
 * The sample's thread in the profile, by the name that it had then. One that was never introduced
 * (its record was lost) is the latest with its TID, or goes without a name until it is. 0 or
 * -ENOMEM.
 */
int threads_id(struct threads *ts, const struct sample_event *e, uint32_t *id);

/*
 * Before samples are written: asks for names that are not known yet, and again for those that may
 * have changed. 0 or -ENOMEM.
 */
int threads_settle(struct threads *ts);

/* Whether a name is asked for that is not known yet. */
bool threads_is_asking(const struct threads *ts);

/* Forgets all ids, and the threads of processes that are not known any more. 0 or -ENOMEM. */
int threads_forget_ids(struct threads *ts);

size_t threads_bytes(const struct threads *ts);

#endif
