/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/governor.h"

#include "base/clock.h"

#define PPM 1000000.0
#define RETURN_SHARE 0.9 /* of the budget: what is measured varies */
#define AT_ONCE 2.0      /* times the budget */
#define MEASURE_NS (30 * NS_PER_SECOND)
#define RETURN_NS (60 * NS_PER_SECOND)
#define RETURN_MAX_NS (3600 * NS_PER_SECOND)

void governor_init(struct governor *g, uint64_t budget_ppm, uint64_t rate_hz, uint64_t rate_min_hz)
{
	uint64_t most = rate_min_hz ? rate_hz / rate_min_hz : rate_hz;

	*g = (struct governor){ .budget_ppm = budget_ppm,
				.stride_max = most ? (uint32_t)most : 1,
				.stride = 1,
				.return_ns = RETURN_NS };
}

static void measure_anew(struct governor *g)
{
	g->cost_ns = g->capacity_ns = g->elapsed_ns = 0;
}

static uint32_t lower_rate(const struct governor *g, double excess)
{
	double stride = (double)g->stride * excess;

	if (stride >= (double)g->stride_max)
		return g->stride_max;
	return (uint32_t)stride + 1;
}

static void grow(struct governor *g, double excess)
{
	g->stride = lower_rate(g, excess);
	g->calm_ns = 0;
	if (g->has_returned && g->return_ns < RETURN_MAX_NS)
		g->return_ns *= 2;
	g->has_returned = false;
	measure_anew(g);
}

static void halve(struct governor *g)
{
	g->stride = (g->stride + 1) / 2;
	g->has_returned = true;
	measure_anew(g);
}

bool governor_update(struct governor *g, uint64_t cost_ns, uint64_t elapsed_ns, uint64_t cpus)
{
	uint32_t before = g->stride;
	double now, cost, budget = (double)g->budget_ppm;

	if (!elapsed_ns)
		return false;
	now = PPM * (double)cost_ns / (double)(elapsed_ns * cpus);
	g->cost_ns += cost_ns;
	g->capacity_ns += elapsed_ns * cpus;
	g->elapsed_ns += elapsed_ns;
	g->calm_ns += elapsed_ns;
	cost = PPM * (double)g->cost_ns / (double)g->capacity_ns;
	g->cost_ppm = (uint64_t)cost;
	if (now > AT_ONCE * budget)
		grow(g, now / budget);
	else if (g->elapsed_ns < MEASURE_NS)
		return false;
	else if (cost > budget)
		grow(g, cost / budget);
	else if (2 * cost <= RETURN_SHARE * budget && g->calm_ns >= g->return_ns && g->stride > 1)
		halve(g);
	else
		measure_anew(g);
	return g->stride != before;
}
