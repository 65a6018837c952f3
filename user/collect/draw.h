/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_DRAW_H
#define COLLECT_DRAW_H

#include <stdint.h>

/*
 * How the ticks of a CPU are drawn: which periods, and when the next one. Pure: chance comes from
 * outside, as numbers u, uniform in [0, 1).
 */
struct draw_plan {
	double rate_hz; /* of the drawn periods, on average: more than the ticks' own, see draw.c */
	double redraws_hz; /* of each CPU */
};

/* State of one CPU; starts as { 0 }. */
struct draw {
	double partner; /* of the factor drawn last, which the next draw takes; 0: it draws its own
			 */
};

/* freq_hz > 0: ticks a second that there shall be on each of `cpus` CPUs. */
struct draw_plan draw_plan(double freq_hz, int cpus);

/* The period from now on, ns, at least PERIOD_MIN_NS. */
uint64_t draw_period_ns(const struct draw_plan *plan, struct draw *d, double u);
#define PERIOD_MIN_NS 10000 /* a shorter one the kernel takes as this: kernel/events/core.c */

/* When the next period is drawn; this one was due at due_ns, and was set at set_ns. */
uint64_t draw_next_ns(const struct draw_plan *plan, uint64_t due_ns, uint64_t set_ns, double u);

/* The longest period that can come, ns. */
uint64_t draw_period_max_ns(const struct draw_plan *plan);

/* Ticks of an event whose period was set at set_ns, later than from_ns and not later than to_ns. */
uint64_t draw_count_ticks(uint64_t set_ns, uint64_t period_ns, uint64_t from_ns, uint64_t to_ns);

#endif
