/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_SERVICES_H
#define AGENT_SERVICES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/clock.h"

/*
 * Which services are told apart, over all windows. A process names its service itself, so that one
 * user could fill an engine with series, or take the places of others. A service that is known
 * keeps its place until it has had no samples for an hour. One owner (target/owner.h) has at most a
 * quarter of the places.
 */
struct services;

#define SERVICES_KEPT_NS (3600 * NS_PER_SECOND)
#define SERVICES_OWNER_SHARE 4

#define SERVICES_NO_OWNER 0 /* root outside of containers, who may have all */

/* max: services.max of the configuration. 0 or -ENOMEM. */
int services_new(uint64_t max, struct services **out);
void services_free(struct services *s);
DEFINE_CLEANUP(struct services *, services_free)

/* The services of `before` keep their places, now in s, which has none yet. */
void services_take(struct services *s, struct services *before);

/*
 * Whether a service has a place, or gets one. identity: the same for the same service; owner: who
 * has samples of it now, who only counts for one that is new; now_ns: CLOCK_MONOTONIC.
 */
bool services_admit(struct services *s, uint64_t identity, uint64_t owner, uint64_t now_ns);

#endif
