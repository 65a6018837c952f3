/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_FIGURES_H
#define CMD_FIGURES_H

#include <stdint.h>

#include "base/units.h"
#include "cmd/terminal.h"
#include "export/value_type.h"
#include "profile/profile.h"

/* Columns of tables: the larger, the brighter. " 12.3%"; whole > 0. */
void put_percent(struct line *l, uint64_t part, uint64_t whole);

/* Eleven columns: value_text(). */
void put_value(struct line *l, uint64_t value, struct value_unit of);

/* Are there as many samples as the value says, but for their weights? Of others it is a sum. */
static inline bool value_is_tick(struct value_unit of)
{
	return of.unit == UNIT_COUNT || (of.unit == UNIT_NS && of.period > 1);
}

/* What a column of them is called: "time", "bytes", "samples". */
const char *value_word(struct value_unit of);

/* Of a process that has one: process_put_place(). */
void put_place(struct line *l, enum style style, const struct profile *p,
	       const struct process *process);

#endif
