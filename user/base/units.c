/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/units.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"

struct unit {
	const char *name; /* NULL ends a table */
	uint64_t factor;
};

static const struct unit hz_units[] = {
	{ "", 1 },        { "hz", 1 },        { "k", 1000 }, { "khz", 1000 },
	{ "m", 1000000 }, { "mhz", 1000000 }, { NULL, 0 },
};

#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_MIN (60 * NS_PER_S)
#define NS_PER_H (60 * NS_PER_MIN)
#define NS_PER_D (24 * NS_PER_H)

static const struct unit ns_units[] = {
	{ "", NS_PER_S },  { "s", NS_PER_S },   { "ms", 1000000 },     { "us", 1000 },
	{ "ns", 1 },       { "m", NS_PER_MIN }, { "min", NS_PER_MIN }, { "h", NS_PER_H },
	{ "d", NS_PER_D }, { NULL, 0 },
};

static const struct unit byte_units[] = {
	{ "", 1 },
	{ "b", 1 },
	{ "k", UINT64_C(1) << 10 },
	{ "kib", UINT64_C(1) << 10 },
	{ "m", UINT64_C(1) << 20 },
	{ "mib", UINT64_C(1) << 20 },
	{ "g", UINT64_C(1) << 30 },
	{ "gib", UINT64_C(1) << 30 },
	{ "t", UINT64_C(1) << 40 },
	{ "tib", UINT64_C(1) << 40 },
	{ "kb", UINT64_C(1000) },
	{ "mb", UINT64_C(1000000) },
	{ "gb", UINT64_C(1000000000) },
	{ "tb", UINT64_C(1000000000000) },
	{ NULL, 0 },
};

static const struct unit share_units[] = { { "%", 10000 }, { NULL, 0 } };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* digits [. digits] unit, exactly: value x factor must be whole and fit. */
static int parse(const char *s, const struct unit *units, uint64_t *out)
{
	unsigned __int128 product;
	uint64_t mantissa = 0, scale = 1;
	bool after_point = false;
	const char *p = s;

	if (!is_digit(*p))
		return -EINVAL;
	for (; is_digit(*p) || (*p == '.' && !after_point && is_digit(p[1])); p++) {
		if (*p == '.') {
			after_point = true;
			continue;
		}
		if (__builtin_mul_overflow(mantissa, 10, &mantissa) ||
		    __builtin_add_overflow(mantissa, (uint64_t)(*p - '0'), &mantissa) ||
		    (after_point && __builtin_mul_overflow(scale, 10, &scale)))
			return -ERANGE;
	}
	for (; units->name; units++)
		if (!strcasecmp(p, units->name))
			break;
	if (!units->name)
		return -EINVAL;

	product = (unsigned __int128)mantissa * units->factor;
	if (product % scale)
		return -EINVAL;
	if (product / scale > UINT64_MAX)
		return -ERANGE;
	*out = (uint64_t)(product / scale);
	return 0;
}

static int parse_named(const char *s, const struct unit *units, const char *what, uint64_t *out)
{
	int r = parse(s, units, out);

	if (r == -ERANGE)
		return err_set(r, "'%s' is too large", s);
	if (r < 0)
		return err_set(r, "'%s' is not %s", s, what);
	return 0;
}

int units_parse_hz(const char *s, uint64_t *hz)
{
	return parse_named(s, hz_units, "a frequency such as 99, 1k or 10khz", hz);
}

int units_parse_ns(const char *s, uint64_t *ns)
{
	return parse_named(s, ns_units, "a time such as 30s, 2m, 500ms or 1h", ns);
}

int units_parse_bytes(const char *s, uint64_t *bytes)
{
	return parse_named(s, byte_units, "a size such as 64MiB, 512k or 1GB", bytes);
}

int units_parse_share(const char *s, uint64_t *ppm)
{
	if (!strcmp(s, "0")) {
		*ppm = 0;
		return 0;
	}
	return parse_named(s, share_units, "a share such as 10% or 0.5%", ppm);
}

int units_parse_count(const char *s, uint64_t *count)
{
	static const struct unit none[] = { { "", 1 }, { NULL, 0 } };

	if (strchr(s, '.'))
		return err_set(-EINVAL, "'%s' is not a whole number", s);
	return parse_named(s, none, "a whole number", count);
}

/* number/unit_size with the digits units.h promises; 128 bits as number may be close to 2^64. */
static struct units_text scaled(uint64_t number, uint64_t unit_size, const char *unit)
{
	unsigned __int128 half = unit_size / 2;
	uint64_t tenths = (uint64_t)(((unsigned __int128)number * 10 + half) / unit_size);
	uint64_t whole = (uint64_t)((number + half) / unit_size);
	struct units_text t;

	if (tenths < 1000 && tenths % 10)
		snprintf(t.s, sizeof(t.s), "%u.%u %s", (unsigned int)tenths / 10,
			 (unsigned int)tenths % 10, unit);
	else
		snprintf(t.s, sizeof(t.s), "%llu %s", (unsigned long long)whole, unit);
	return t;
}

/* Two units next to each other, rounded to the lower one. */
static struct units_text two_units(uint64_t ns, uint64_t high, const char *high_name, uint64_t low,
				   const char *low_name)
{
	struct units_text t;
	uint64_t lows = ns / low + (ns % low >= low / 2);
	unsigned long long upper = lows / (high / low), rest = lows % (high / low);

	if (rest)
		snprintf(t.s, sizeof(t.s), "%llu %s %llu %s", upper, high_name, rest, low_name);
	else
		snprintf(t.s, sizeof(t.s), "%llu %s", upper, high_name);
	return t;
}

/* Thresholds sit where rounding would carry into the next unit. */
struct units_text units_ns(uint64_t ns)
{
	if (ns < 1000)
		return scaled(ns, 1, "ns");
	if (ns < 999500)
		return scaled(ns, 1000, "us");
	if (ns < 999500000)
		return scaled(ns, 1000000, "ms");
	if (ns < 59950000000)
		return scaled(ns, NS_PER_S, "s");
	if (ns < NS_PER_H - NS_PER_S / 2)
		return two_units(ns, NS_PER_MIN, "min", NS_PER_S, "s");
	if (ns < NS_PER_D - NS_PER_MIN / 2)
		return two_units(ns, NS_PER_H, "h", NS_PER_MIN, "min");
	return two_units(ns, NS_PER_D, "d", NS_PER_H, "h");
}

struct units_text units_bytes(uint64_t bytes)
{
	static const char *const names[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	unsigned int i = 0;
	uint64_t unit = 1;

	/* 1023.5 of a unit would be shown as 1024 */
	while (i < 6 && bytes >= unit * 1024 - unit / 2) {
		unit *= 1024;
		i++;
	}
	return scaled(bytes, unit, names[i]);
}

struct units_text units_count(uint64_t count)
{
	char digits[24];
	struct units_text t;
	int n = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)count);
	size_t used = 0;

	for (int i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			t.s[used++] = ',';
		t.s[used++] = digits[i];
	}
	t.s[used] = '\0';
	return t;
}

/* The largest unit that divides number; units from large to small, the last with factor 1. */
static struct units_text exact(uint64_t number, const struct unit *units)
{
	struct units_text t;

	while (units->factor > 1 && (number == 0 || number % units->factor))
		units++;
	snprintf(t.s, sizeof(t.s), "%llu%s", (unsigned long long)(number / units->factor),
		 units->name);
	return t;
}

struct units_text units_hz(uint64_t hz)
{
	static const struct unit units[] = { { "M", 1000000 }, { "k", 1000 }, { "", 1 } };

	return exact(hz, units);
}

struct units_text units_ns_exact(uint64_t ns)
{
	static const struct unit units[] = {
		{ "h", NS_PER_H }, { "m", NS_PER_MIN }, { "s", NS_PER_S },
		{ "ms", 1000000 }, { "us", 1000 },      { "ns", 1 },
	};

	return ns ? exact(ns, units) : (struct units_text){ "0s" };
}

struct units_text units_share(uint64_t ppm)
{
	struct units_text t;

	snprintf(t.s, sizeof(t.s), "%.10g%%", (double)ppm / 1e4);
	return t;
}
