/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_GOVERNOR_H
#define AGENT_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Holds what the agent costs within a share of the machine's CPU time, by the stride: how many
 * ticks one sample stands for. Over the budget the stride grows by as much as the cost exceeds it.
 * It is halved again where twice the cost would still fit, since half the stride costs at most
 * that: under a steady load the rate comes to rest.
 */
struct governor {
	uint64_t budget_ppm; /* of capacity_ns */
	uint32_t stride_max;
	uint32_t stride;   /* 1: every tick */
	uint64_t cost_ppm; /* as last measured */
};

/* rate_hz: of ticks, rate_min_hz: what is left of it at least, and at least 1. */
void governor_init(struct governor *g, uint64_t budget_ppm, uint64_t rate_hz, uint64_t rate_min_hz);

/*
 * Takes up what was spent since the last call, and of how much CPU time: elapsed time times CPUs.
 * True: the stride is another now.
 */
bool governor_update(struct governor *g, uint64_t cost_ns, uint64_t capacity_ns);

#endif
