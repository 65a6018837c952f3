/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_SENDER_H
#define AGENT_SENDER_H

#include "agent/config.h"
#include "agent/metrics.h"
#include "agent/spool.h"
#include "base/cleanup.h"

/*
 * A thread that sends what is in a spool, oldest first, by the rules of verdict.h. It holds no
 * state that matters: an entry leaves the spool when the engine has answered for it.
 */
struct sender;

/* All are borrowed and must outlive the sender. */
int sender_new(const struct config *c, struct spool *spool, struct metrics *m, struct sender **out);

/* There is something new in the spool. */
void sender_wake(struct sender *s);

/*
 * Sends on for up to ten seconds, as long as it goes well, and the request that is under way to its
 * end; then stops the thread and frees.
 */
void sender_free(struct sender *s);
DEFINE_CLEANUP(struct sender *, sender_free)

#endif
