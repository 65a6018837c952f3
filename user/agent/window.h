/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_WINDOW_H
#define AGENT_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "agent/config.h"
#include "agent/origins.h"
#include "profile/profile.h"

/*
 * What was recorded in one window -> request bodies for an output's engine, each within its
 * limits: a profile for each service and container, split where it is too large for one.
 *
 * Command lines and environments are looked at for the service's name and are not in the bodies.
 */

/* samples: ticks in it. A negative result ends window_encode(), which returns it. */
typedef int (*window_body_fn)(void *arg, uint64_t samples, const void *body, size_t len);

struct window_stats {
	uint64_t samples;  /* ticks */
	uint64_t services; /* with samples */
	uint64_t merged;   /* services beyond the limit, counted as one: "other" */
	uint64_t bytes;    /* of the bodies */
	uint64_t excluded; /* ticks of services that the configuration leaves out */
};

/*
 * The samples of p, its metadata and duration set; they may come back in another order. origins has
 * looked at all processes of p.
 */
int window_encode(const struct config *config, enum engine engine, const struct origins *origins,
		  struct profile *p, window_body_fn fn, void *arg, struct window_stats *out);

#endif
