/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_PROFILER_H
#define AGENT_PROFILER_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/config.h"
#include "agent/metrics.h"
#include "base/cleanup.h"
#include "profile/profile.h"

/*
 * Profiles one window after another, at the rate that cpu_budget leaves. Two may be there at once:
 * a new one is ready before the old one stops.
 */
struct profiler;

/* m is borrowed. Loads and attaches; nothing is recorded yet. A negative errno with a message. */
int profiler_new(const struct config *c, struct metrics *m, struct profiler **out);
void profiler_free(struct profiler *p);
DEFINE_CLEANUP(struct profiler *, profiler_free)

/* The first window begins. */
int profiler_start(struct profiler *p, const struct config *c);

/*
 * Takes up what there is, after a wait for it of at most max_ms, or until fd is readable. To be
 * called all the time. 0, or a negative errno with a message.
 */
int profiler_step(struct profiler *p, int fd, int max_ms);

/* Borrowed: of the window so far. */
struct profile *profiler_profile(struct profiler *p);

/* It has lasted long enough, or holds too much. */
bool profiler_is_window_over(const struct profiler *p);

/* Ends the window: profiler_profile() is all of it then, until profiler_next_window(). */
int profiler_end_window(struct profiler *p);
int profiler_next_window(struct profiler *p, const struct config *c);

/* Ends the last one. */
int profiler_finish(struct profiler *p);

/* What cpu_budget is and the rest of it has changed. */
int profiler_set_budget(struct profiler *p, const struct config *c);

#endif
