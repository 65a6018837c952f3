/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/value_type.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const char *const units[] = {
	[UNIT_NS] = "nanoseconds",
	[UNIT_BYTES] = "bytes",
	[UNIT_COUNT] = "count",
};

/*
 * off_cpu without a period is what OpenTelemetry's eBPF profiler sends and Pyroscope stores as such
 * (pkg/ingester/otlp/convert.go); Parca titles wallclock/nanoseconds:samples/count "Off-CPU"
 * (ProfileTypeSelector.tsx); wall is async-profiler's; mutex delay is Go's, and means the same:
 * what others waited is told of who kept them waiting. Memory is resident growth, which none of
 * the heap's types is.
 */
static const struct {
	const char *kind;
	enum sample_unit unit;
	enum value_names names;
	const char *series, *type, *period_type, *period_unit;
} rows[] = {
	{ "off-cpu", UNIT_NS, VALUE_NAMES_PARCA, "off_cpu", "wallclock", "samples", "count" },
	{ "off-cpu", UNIT_NS, VALUE_NAMES_COMMON, "off_cpu", "off_cpu", NULL, NULL },
	{ "wall", UNIT_NS, VALUE_NAMES_COMMON, "wall", "wall", "wall", "nanoseconds" },
	{ "gil-contention", UNIT_NS, VALUE_NAMES_COMMON, "mutex", "delay", "mutex", "count" },
	{ "memory", UNIT_BYTES, VALUE_NAMES_COMMON, "memory", "rss_growth", "memory", "bytes" },
};

static const struct value_type cpu_time = {
	.series = "process_cpu",
	.type = "cpu",
	.unit = "nanoseconds",
	.period_type = "cpu",
	.period_unit = "nanoseconds",
	.period = 1,
	.scale = 1,
};

static bool find_row(const char *kind, enum value_names names, struct value_type *out)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(rows[i].kind, kind) != 0 ||
		    (rows[i].names != names && rows[i].names != VALUE_NAMES_COMMON))
			continue;
		*out = (struct value_type){ .series = rows[i].series,
					    .type = rows[i].type,
					    .unit = units[rows[i].unit],
					    .period_type = rows[i].period_type,
					    .period_unit = rows[i].period_unit,
					    .period = 1,
					    .scale = 1 };
		return true;
	}
	return false;
}

/* A kind named as its event: "page-faults" is page_faults. Colons part the names of a type. */
static void name_of_event(const char *kind, uint8_t unit, uint64_t period, struct value_type *out)
{
	*out = (struct value_type){ .unit = units[unit],
				    .period_unit = units[unit],
				    .period = period,
				    .scale = period,
				    .is_dynamic = true };
	snprintf(out->name, sizeof(out->name), "%s", kind);
	for (char *c = out->name; *c; c++)
		if (!isalnum((unsigned char)*c))
			*c = '_';
}

/* Ticks, or what was selected, of which the recording tells then. */
static void type_of_ticks(const struct profile *p, enum value_names names, struct value_type *out)
{
	const struct recording *m = profile_recording(p);
	bool is_known = m->mode && find_row(m->mode, names, out);

	if (!m->interval_ns && m->other_unit.period && !is_known) {
		name_of_event(m->mode, m->other_unit.unit, m->other_unit.period, out);
		return;
	}
	if (!is_known)
		*out = cpu_time;
	if (is_known && m->interval_ns <= 1)
		return;
	out->is_ticks = m->interval_ns != 1;
	out->period = m->interval_ns ? m->interval_ns : 1;
	out->scale = m->interval_ns;
}

void value_type_of(const struct profile *p, uint16_t kind, enum value_names names,
		   struct value_type *out)
{
	const struct sample_kind *k;
	const char *name;

	if (kind == KIND_TICKS) {
		type_of_ticks(p, names, out);
		return;
	}
	k = &p->kinds.items[kind - 1];
	name = strtab_get(p->strings, k->name);
	if (!strcmp(name, cpu_time.type)) {
		*out = cpu_time;
		out->period = profile_recording(p)->interval_ns ?: 1;
	} else if (!find_row(name, names, out)) {
		name_of_event(name, k->unit, k->period, out);
	}
}

int64_t value_scaled(uint64_t value, uint64_t scale)
{
	int64_t product;

	return __builtin_mul_overflow(value, scale, &product) ? INT64_MAX : product;
}

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
