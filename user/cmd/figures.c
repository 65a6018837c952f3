/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/figures.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "base/strbuf.h"

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
