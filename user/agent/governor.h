/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_GOVERNOR_H
#define AGENT_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Holds what the agent costs within a share of the machine's CPU time, by the stride: how many
 * ticks one sample stands for. Over the budget the stride grows by as much as the cost exceeds it:
 * at once where that is twice as much, else by the cost of half a minute, since that of a few
 * seconds varies. It is halved again where twice the cost would still fit, since half the stride
 * costs at most that: under a steady load the rate comes to rest. Where it has to grow again after
 * that, it is halved only after twice the time, up to an hour.
 */
struct governor {
	uint64_t budget_ppm; /* of capacity_ns */
	uint32_t stride_max;
	uint32_t stride;   /* 1: every tick */
	uint64_t cost_ppm; /* as last measured */
	/* Of the rest: since the stride changed, or half a minute was over. */
	uint64_t cost_ns, capacity_ns, elapsed_ns;
	uint64_t calm_ns;   /* since it grew last */
	uint64_t return_ns; /* how long it has to be calm before it is halved */
	bool has_returned;  /* it was halved since it grew last */
};

/* rate_hz: of ticks, rate_min_hz: what is left of it at least, and at least 1. */
void governor_init(struct governor *g, uint64_t budget_ppm, uint64_t rate_hz, uint64_t rate_min_hz);

/*
 * Takes up what was spent since the last call, elapsed_ns ago, on so many CPUs. True: the stride is
 * another now.
 */
bool governor_update(struct governor *g, uint64_t cost_ns, uint64_t elapsed_ns, uint64_t cpus);

#endif
