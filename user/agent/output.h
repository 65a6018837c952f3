/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_OUTPUT_H
#define AGENT_OUTPUT_H

#include <stdbool.h>

#include "agent/config.h"
#include "agent/metrics.h"
#include "base/cleanup.h"
#include "profile/profile.h"

/*
 * Where windows go, with what is known of the processes in them: to each output of a configuration,
 * which is files, or an engine that has a spool and a sender of its own, so that none waits for
 * another. A new one is ready before the old one ends, and takes over the spools whose folders are
 * the same.
 */
struct output;

/*
 * Opens what c names. Nothing is sent before output_start(). Both are borrowed, and `before` (NULL:
 * there is none) is, until output_start() or output_free(). A negative errno with a message.
 */
int output_new(const struct config *c, struct metrics *m, struct output *before,
	       struct output **out);

/* Sends from now on. `before` has ended; it is freed. */
int output_start(struct output *o, struct output *before);

/* All end at once: what goes at once is sent (agent/sender.h). */
void output_stop(struct output *o);
bool output_has_ended(struct output *o);
void output_free(struct output *o);
DEFINE_CLEANUP(struct output *, output_free)

/* Looks at the processes of p that are new. 0 or -ENOMEM. */
int output_look(struct output *o, const struct profile *p);

/*
 * Takes a window over. 0 or -ENOMEM: a disk that is full, or whatever else is lost, is logged and
 * counted.
 */
int output_take(struct output *o, struct profile *p);

#endif
