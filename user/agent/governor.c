/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/governor.h"

#define PPM 1000000.0
#define RETURN_SHARE 0.9 /* of the budget: what is measured varies */

void governor_init(struct governor *g, uint64_t budget_ppm, uint64_t rate_hz, uint64_t rate_min_hz)
{
	uint64_t most = rate_min_hz ? rate_hz / rate_min_hz : rate_hz;

	*g = (struct governor){ .budget_ppm = budget_ppm,
				.stride_max = most ? (uint32_t)most : 1,
				.stride = 1 };
}

static uint32_t lower_rate(const struct governor *g, double excess)
{
	double stride = (double)g->stride * excess;

	if (stride >= (double)g->stride_max)
		return g->stride_max;
	return (uint32_t)stride + 1;
}

bool governor_update(struct governor *g, uint64_t cost_ns, uint64_t capacity_ns)
{
	uint32_t before = g->stride;
	double cost, budget = (double)g->budget_ppm;

	if (!capacity_ns)
		return false;
	cost = PPM * (double)cost_ns / (double)capacity_ns;
	g->cost_ppm = (uint64_t)cost;
	if (cost > budget)
		g->stride = lower_rate(g, cost / budget);
	else if (2 * cost <= RETURN_SHARE * budget)
		g->stride = (g->stride + 1) / 2;
	return g->stride != before;
}
