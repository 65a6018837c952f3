/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/render_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/*
 * NumPy's datetime64 and timedelta64: PyDatetimeScalarObject of arrayscalars.h, the same from NumPy
 * 1.7 to 2.x. Calendars as in datetime.c of NumPy: Gregorian at any time.
 */

/* NPY_DATETIMEUNIT: 3 was business days. */
enum unit {
	UNIT_YEAR,
	UNIT_MONTH,
	UNIT_WEEK,
	UNIT_DAY = 4,
	UNIT_HOUR,
	UNIT_MINUTE,
	UNIT_SECOND,
	UNIT_ATTOSECOND = 13,
	UNIT_GENERIC
};

static const char *const units[] = { "Y",  "M",  "W",  NULL, "D",  "h",  "m",      "s",
				     "ms", "us", "ns", "ps", "fs", "as", "generic" };

#define DAY_SECONDS 86400
#define NOT_A_TIME INT64_MIN

struct scalar {
	int64_t value;
	struct numpy_unit unit;
};

/* 64 bits of attoseconds are 9 s, of days more than 64 bits of seconds. */
__extension__ typedef __int128 wide;

static wide divide_down(wide value, wide by, wide *rest)
{
	wide quotient = value / by;

	*rest = value % by;
	if (*rest < 0) {
		*rest += by;
		quotient--;
	}
	return quotient;
}

/* The date of a day, counted from 1970-01-01. Years of 400 begin in March, of the year 0. */
static int put_date(struct render *c, wide day)
{
	wide of_era, era = divide_down(day + 719468, 146097, &of_era), year, month;

	year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	day = of_era - (365 * year + year / 4 - year / 100);
	month = (5 * day + 2) / 153;
	day -= (153 * month + 2) / 5 - 1;
	month += month < 10 ? 3 : -9;
	year += era * 400 + (month <= 2);
	if (year != (int64_t)year)
		return -EBADMSG;
	strbuf_appendf(c->out, "%04lld-%02d-%02d", (long long)year, (int)month, (int)day);
	return 0;
}

static int put_months(struct render *c, wide months, bool has_month)
{
	wide month, year = 1970 + divide_down(months, 12, &month);

	if (year != (int64_t)year)
		return -EBADMSG;
	strbuf_appendf(c->out, "%04lld", (long long)year);
	if (has_month)
		strbuf_appendf(c->out, "-%02d", (int)month + 1);
	return 0;
}

/* Hours, and further down to the unit. */
static void put_clock(struct render *c, wide time, int base)
{
	wide per_second = 1, fraction;
	int seconds, digits = base > UNIT_SECOND ? 3 * (base - UNIT_SECOND) : 0;

	for (int i = 0; i < digits; i++)
		per_second *= 10;
	if (base < UNIT_SECOND)
		time *= base == UNIT_HOUR ? 3600 : 60;
	seconds = (int)divide_down(time, per_second, &fraction);
	strbuf_appendf(c->out, "T%02d", seconds / 3600);
	if (base >= UNIT_MINUTE)
		strbuf_appendf(c->out, ":%02d", seconds / 60 % 60);
	if (base >= UNIT_SECOND)
		strbuf_appendf(c->out, ":%02d", seconds % 60);
	if (digits)
		strbuf_appendf(c->out, ".%0*llu", digits, (unsigned long long)fraction);
}

/* -EBADMSG: of a year that NumPy has no number for. */
static int put_time(struct render *c, const struct scalar *scalar)
{
	const int base = scalar->unit.base;
	wide value = (wide)scalar->value * scalar->unit.count, in_day = 1, time;

	int e;

	if (base <= UNIT_MONTH)
		return put_months(c, base == UNIT_YEAR ? value * 12 : value, base == UNIT_MONTH);
	if (base <= UNIT_DAY)
		return put_date(c, base == UNIT_WEEK ? value * 7 : value);
	if (base < UNIT_SECOND)
		in_day = base == UNIT_HOUR ? 24 : 1440;
	else
		in_day = DAY_SECONDS;
	for (int i = UNIT_SECOND; i < base; i++)
		in_day *= 1000;
	e = put_date(c, divide_down(value, in_day, &time));
	if (e >= 0)
		put_clock(c, time, base);
	return e;
}

bool render_numpy_has_unit(const struct numpy_unit *unit)
{
	return unit->base >= 0 && unit->base <= UNIT_GENERIC && units[unit->base] &&
	       unit->count > 0;
}

void render_numpy_unit(struct render *c, const struct numpy_unit *unit)
{
	if (unit->count != 1)
		strbuf_appendf(c->out, "%d", unit->count);
	strbuf_puts(c->out, units[unit->base]);
}

bool render_numpy_is_generic(const struct numpy_unit *unit)
{
	return unit->base == UNIT_GENERIC;
}

int render_datetime64(struct render *c, uint64_t object, const char *name)
{
	const bool is_span = !strcmp(name, "timedelta64");
	struct scalar scalar;
	bool has_unit; /* is written: where the text does not tell */
	int e = object_get(c->reader, render_fields(c, object), &scalar, sizeof(scalar));

	if (e < 0)
		return e;
	if (!render_numpy_has_unit(&scalar.unit))
		return -EBADMSG;
	has_unit = is_span || scalar.unit.count != 1 || scalar.unit.base == UNIT_HOUR;
	strbuf_appendf(c->out, "np.%s(", name);
	if (scalar.value == NOT_A_TIME) {
		strbuf_puts(c->out, "'NaT'");
		has_unit = true;
	} else if (is_span || render_numpy_is_generic(&scalar.unit)) {
		strbuf_appendf(c->out, "%lld", (long long)scalar.value);
	} else {
		strbuf_putc(c->out, '\'');
		if ((e = put_time(c, &scalar)) < 0)
			return e;
		strbuf_putc(c->out, '\'');
	}
	if (has_unit && !render_numpy_is_generic(&scalar.unit)) {
		strbuf_puts(c->out, ",'");
		render_numpy_unit(c, &scalar.unit);
		strbuf_putc(c->out, '\'');
	}
	strbuf_putc(c->out, ')');
	return 0;
}
