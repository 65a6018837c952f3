/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_SENDER_H
#define AGENT_SENDER_H

#include <stdbool.h>

#include "agent/config.h"
#include "agent/metrics.h"
#include "agent/spool.h"
#include "base/cleanup.h"

/*
 * A thread that sends what is in a spool, oldest first, by the rules of verdict.h: several series a
 * request, several requests at a time. After one that failed there is a pause, and then one request
 * alone until it goes well. It holds no state that matters: an entry leaves the spool when the
 * engine has answered for it.
 */
struct sender;

/*
 * All are borrowed and must outlive the sender; age_max_ns is the spool's. Nothing is sent before
 * sender_start().
 */
int sender_new(const struct config_output *c, uint64_t age_max_ns, struct spool *spool,
	       struct metrics_output *m, struct sender **out);
int sender_start(struct sender *s);

/* There is something new in the spool. */
void sender_wake(struct sender *s);

/*
 * It is to end. It sends on as long as that goes well, for ten seconds at most. Two seconds without
 * an answer are the end in any case: requests that are under way then are given up, what they hold
 * stays in the spool.
 */
void sender_stop(struct sender *s);

/* It sends no more. */
bool sender_has_ended(struct sender *s);

/* Stops, if nobody has yet, waits for the end, and frees. */
void sender_free(struct sender *s);
DEFINE_CLEANUP(struct sender *, sender_free)

#endif
