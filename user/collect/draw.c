/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/draw.h"

/*
 * A redraw throws the running period away, half a period on average: with J redraws a second that
 * is J / 2 ticks a second, which the rate of the periods makes up for.
 *
 * What is drawn is the rate, not the period: the mean of 1 / period is what gives the number of
 * ticks (periods of +-30 % would give 3.2 % too many). Rates come in pairs r, 2 - r, so that their
 * mean is right after each two: over 8 s at 1 kHz the number of ticks scatters by 0.4 %, without
 * by 1.4 %.
 *
 * The gaps between redraws are random too: fixed ones are in step with loops of their own. They
 * follow one another as planned, however late the thread that draws is woken: gaps that were longer
 * by that would be fewer redraws than the rate makes up for (10 ms late on average: 1.6 % too many
 * ticks at 99 Hz, 0.6 % at 19 Hz).
 */
#define REDRAWS_HZ 20      /* half of it scatters 1.2 times as much, a tenth 1.4 times */
#define REDRAWS_MIN_HZ 5   /* of machines with many CPUs */
#define REDRAWS_ALL_HZ 400 /* of all CPUs: 26 us each, 1 % of a CPU */
#define PERIODS_A_GAP 4    /* at least, on average */
#define RATE_SPREAD 0.3    /* rates are 1 +- this */
#define GAP_SPREAD 0.5
#define NS_PER_SECOND 1e9

struct draw_plan draw_plan(double freq_hz, int cpus)
{
	double redraws_hz = (double)REDRAWS_ALL_HZ / (cpus > 0 ? cpus : 1);

	if (redraws_hz > REDRAWS_HZ)
		redraws_hz = REDRAWS_HZ;
	if (redraws_hz < REDRAWS_MIN_HZ)
		redraws_hz = REDRAWS_MIN_HZ;
	if (redraws_hz > freq_hz / PERIODS_A_GAP)
		redraws_hz = freq_hz / PERIODS_A_GAP;
	return (struct draw_plan){ .rate_hz = freq_hz + redraws_hz / 2, .redraws_hz = redraws_hz };
}

uint64_t draw_period_ns(const struct draw_plan *plan, struct draw *d, double u)
{
	double factor = d->partner > 0 ? d->partner : 1 + RATE_SPREAD * (2 * u - 1);
	double period = NS_PER_SECOND / (plan->rate_hz * factor);

	d->partner = d->partner > 0 ? 0 : 2 - factor;
	return period > PERIOD_MIN_NS ? (uint64_t)period : PERIOD_MIN_NS;
}

uint64_t draw_next_ns(const struct draw_plan *plan, uint64_t due_ns, uint64_t set_ns, double u)
{
	double gap = NS_PER_SECOND / plan->redraws_hz * (1 + GAP_SPREAD * (2 * u - 1));
	uint64_t next_ns = (due_ns < set_ns ? due_ns : set_ns) + (uint64_t)gap;

	return next_ns > set_ns ? next_ns : set_ns;
}

uint64_t draw_period_max_ns(const struct draw_plan *plan)
{
	return (uint64_t)(NS_PER_SECOND / (plan->rate_hz * (1 - RATE_SPREAD)));
}

static uint64_t ticks_until(uint64_t set_ns, uint64_t period_ns, uint64_t until_ns)
{
	return until_ns > set_ns ? (until_ns - set_ns) / period_ns : 0;
}

uint64_t draw_count_ticks(uint64_t set_ns, uint64_t period_ns, uint64_t from_ns, uint64_t to_ns)
{
	return ticks_until(set_ns, period_ns, to_ns) - ticks_until(set_ns, period_ns, from_ns);
}
