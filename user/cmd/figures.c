/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/figures.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "base/strbuf.h"

struct units_text time_text(uint64_t ticks, uint64_t interval_ns)
{
	struct units_text text;
	uint64_t ns;

	if (!__builtin_mul_overflow(ticks, interval_ns, &ns))
		return units_ns(ns);
	snprintf(text.s, sizeof(text.s), "%.0f years",
		 (double)ticks * (double)interval_ns / (365.25 * 86400e9));
	return text;
}

void put_percent(struct line *l, uint64_t part, uint64_t whole)
{
	double percent = 100 * (double)part / (double)whole;

	line_putf(l,
		  percent >= 10  ? STYLE_HOT
		  : percent >= 1 ? STYLE_WARM
				 : STYLE_PLAIN,
		  "%5.1f%%", percent);
}

void put_time(struct line *l, uint64_t ticks, uint64_t interval_ns)
{
	line_putf(l, STYLE_PLAIN, "%11s",
		  interval_ns ? time_text(ticks, interval_ns).s : units_count(ticks).s);
}

void put_place(struct line *l, enum style style, const struct profile *p,
	       const struct process *process)
{
	_cleanup_(strbuf_releasep) struct strbuf place = STRBUF_INIT;

	process_put_place(p, process, &place);
	line_put_foreign(l, style, strbuf_str(&place), place.len);
}
