/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_FIGURES_H
#define CMD_FIGURES_H

#include <stdint.h>

#include "base/units.h"
#include "cmd/terminal.h"
#include "profile/profile.h"

/* Columns of tables: the larger, the brighter. " 12.3%"; whole > 0. */
void put_percent(struct line *l, uint64_t part, uint64_t whole);

/* Ticks as time, eleven columns; as a count where the event does not tell time: interval_ns 0. */
void put_time(struct line *l, uint64_t ticks, uint64_t interval_ns);

/* Longer than 2^64 ns only in text, where a count may be any number. */
struct units_text time_text(uint64_t ticks, uint64_t interval_ns);

/* Of a process that has one: process_put_place(). */
void put_place(struct line *l, enum style style, const struct profile *p,
	       const struct process *process);

#endif
