/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_VALUE_TYPE_H
#define EXPORT_VALUE_TYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"
#include "profile/profile.h"

/*
 * What the kinds of samples are called where others store and show them: an engine knows a profile
 * type by five names, SERIES:TYPE:UNIT:PERIOD TYPE:PERIOD UNIT. docs/fleet.md says whose names
 * these are.
 */

#define VALUE_NAME_BYTES 64

/* Texts are constant but for those of a kind that no table knows: its event's name is in `name`. */
struct value_type {
	const char *series;
	const char *type, *unit;
	const char *period_type, *period_unit; /* NULL: what it counts has no period */
	uint64_t period;                       /* of a sample, in its unit; >= 1 */
	uint64_t scale;                        /* a value of 1 is so many of the unit */
	bool is_ticks;                         /* values are ticks; scale 0: of unknown length */
	bool is_dynamic;                       /* series, type and period type are `name` */
	char name[VALUE_NAME_BYTES];           /* letters, digits and _ */
};

/* Parca shows time off the CPU under a name of its own. */
enum value_names { VALUE_NAMES_COMMON, VALUE_NAMES_PARCA };

/*
 * Of a kind of p as samples have it. KIND_TICKS of a selection of one kind (select_describe()) is
 * that kind.
 */
void value_type_of(const struct profile *p, uint16_t kind, enum value_names names,
		   struct value_type *out);

static inline const char *value_series(const struct value_type *v)
{
	return v->is_dynamic ? v->name : v->series;
}

static inline const char *value_name(const struct value_type *v)
{
	return v->is_dynamic ? v->name : v->type;
}

static inline const char *value_period_type(const struct value_type *v)
{
	return v->is_dynamic ? v->name : v->period_type;
}

/* value times scale; what is beyond is cut at INT64_MAX, as formats have signed numbers. */
int64_t value_scaled(uint64_t value, uint64_t scale);

/*
 * "1.2 s", "12.3 MiB", "1,234": rounded here and nowhere before. Longer than 2^64 ns only in text,
 * where a count may be any number.
 */
struct units_text value_text(uint64_t value, struct value_unit of);

#endif
