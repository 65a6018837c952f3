/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/sample_words.h"

#include "export/json_parts.h"
#include "profile/kinds.h"

/* The mode of a recording of several kinds says them all. */
struct sample_kind_words sample_kind_of(const struct profile *p, const struct recording *r,
					const struct sample *s)
{
	const struct sample_kind *kind = s->kind ? &p->kinds.items[s->kind - 1] : NULL;

	if (kind)
		return (struct sample_kind_words){ strtab_get(p->strings, kind->name), kind->unit,
						   kind->period };
	return (struct sample_kind_words){
		p->kinds.len ? KINDS_CPU : json_tick_kind(r),
		r->interval_ns ? UNIT_NS : UNIT_COUNT,
		r->interval_ns ? r->interval_ns : 1,
	};
}
