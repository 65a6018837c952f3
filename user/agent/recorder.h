/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_RECORDER_H
#define AGENT_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/config.h"
#include "agent/metrics.h"
#include "base/cleanup.h"
#include "profile/profile.h"

/*
 * What samples: the BPF session and all that names what it finds, one window after another, and the
 * rate that cpu_budget leaves. Two may be there at once: a new one is ready before the old one
 * stops.
 */
struct recorder;

/* m is borrowed. Loads and attaches; nothing is recorded yet. A negative errno with a message. */
int recorder_new(const struct config *c, struct metrics *m, struct recorder **out);
void recorder_free(struct recorder *r);
DEFINE_CLEANUP(struct recorder *, recorder_free)

/* The first window begins. */
int recorder_start(struct recorder *r, const struct config *c);
void recorder_stop(struct recorder *r);

/* Readable when there is something to take up; and until when that has time, at most max_ms. */
int recorder_poll_fd(const struct recorder *r);
int recorder_timeout_ms(const struct recorder *r, int max_ms);

/* Takes up what there is. To be called every 50 ms or so. 0, or a negative errno with a message. */
int recorder_step(struct recorder *r);

/* Borrowed: of the window so far. */
struct profile *recorder_profile(struct recorder *r);

/* It has lasted long enough, or holds too much. */
bool recorder_is_window_over(const struct recorder *r);

/*
 * Ends the window: recorder_profile() is all of it then, until recorder_next_window(). is_last:
 * after recorder_stop().
 */
int recorder_end_window(struct recorder *r, bool is_last);
int recorder_next_window(struct recorder *r, const struct config *c);

/* What cpu_budget is and the rest of it has changed. */
int recorder_set_budget(struct recorder *r, const struct config *c);

#endif
