/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/figures.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "base/strbuf.h"

struct units_text value_text(uint64_t value, struct value_unit of)
{
	struct units_text text;
	uint64_t scaled;

	if (__builtin_mul_overflow(value, of.period, &scaled)) {
		if (of.unit == UNIT_NS)
			snprintf(text.s, sizeof(text.s), "%.0f years",
				 (double)value * (double)of.period / (365.25 * 86400e9));
		else
			snprintf(text.s, sizeof(text.s), "%.3g", (double)value * (double)of.period);
		return text;
	}
	switch (of.unit) {
	case UNIT_NS:
		return units_ns(scaled);
	case UNIT_BYTES:
		return units_bytes(scaled);
	default:
		return units_count(scaled);
	}
}

const char *value_word(struct value_unit of)
{
	static const char *const words[] = {
		[UNIT_NS] = "time", [UNIT_BYTES] = "bytes", [UNIT_COUNT] = "samples"
	};

	return of.unit < sizeof(words) / sizeof(words[0]) ? words[of.unit] : words[UNIT_COUNT];
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

void put_value(struct line *l, uint64_t value, struct value_unit of)
{
	line_putf(l, STYLE_PLAIN, "%11s", value_text(value, of).s);
}

void put_place(struct line *l, enum style style, const struct profile *p,
	       const struct process *process)
{
	_cleanup_(strbuf_releasep) struct strbuf place = STRBUF_INIT;

	process_put_place(p, process, &place);
	line_put_foreign(l, style, strbuf_str(&place), place.len);
}
