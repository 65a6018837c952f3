/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_WINDOW_H
#define AGENT_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "agent/config.h"
#include "agent/origins.h"
#include "agent/services.h"
#include "profile/profile.h"

/*
 * What was recorded in one window -> request bodies for an output's engine, each within its
 * limits: a profile for each service and container and kind of samples, which is a series of its
 * own to engines, split where it is too large for one.
 *
 * Command lines and environments are looked at for the service's name and are not in the bodies.
 */

/* samples in it: ticks, or what of another kind was recorded one by one. A negative result ends
 * window_encode(), which returns it. */
typedef int (*window_body_fn)(void *arg, uint64_t samples, const void *body, size_t len);

struct window_stats {
	uint64_t samples;  /* ticks, or samples of other kinds */
	uint64_t services; /* with samples */
	uint64_t merged;   /* services without a place of their own, counted as one: "other" */
	uint64_t bytes;    /* of the bodies */
	uint64_t excluded; /* samples of services that the configuration leaves out */
};

/* What a sample counts for where samples are counted: values of other kinds than ticks are none. */
static inline uint64_t window_samples_of(const struct sample *s)
{
	return s->kind == KIND_TICKS ? s->value : 1;
}

/*
 * The samples of p, its metadata and duration set; they may come back in another order. origins has
 * looked at all processes of p; services is that of all windows.
 */
int window_encode(const struct config *config, enum engine engine, const struct origins *origins,
		  struct services *services, struct profile *p, window_body_fn fn, void *arg,
		  struct window_stats *out);

#endif
