/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "import/austin_values.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profile/kinds.h"

#define VERSION_BYTES_MAX 32
#define TIME_US_MAX (UINT64_C(1) << 50) /* 35 years */

/* Austin's word, ours. */
static const char *const modes[][2] = {
	[AUSTIN_WALL] = { "wall", KINDS_WALL },
	[AUSTIN_CPU] = { "cpu", KINDS_CPU },
	[AUSTIN_MEMORY] = { "memory", "memory" },
	[AUSTIN_FULL] = { "full", KINDS_WALL ",memory" },
};

int austin_describe(struct recording *r)
{
	r->is_summed = 1; /* nobody knows when a sample was */
	r->has_ended = 1;
	return recording_set_text(&r->source, "Austin");
}

static int set_version(struct recording *r, struct span version)
{
	char text[VERSION_BYTES_MAX + 8];

	if (version.len > VERSION_BYTES_MAX)
		version.len = VERSION_BYTES_MAX;
	snprintf(text, sizeof(text), "Austin %.*s", (int)version.len, version.bytes);
	return recording_set_text(&r->source, text);
}

int austin_metadata(struct austin_values *a, struct recording *r, struct span key,
		    struct span value)
{
	uint64_t us;

	if (span_is(key, "austin"))
		return set_version(r, value);
	if (span_is(key, "interval") && span_number(value, TIME_US_MAX, &us) && us)
		r->rate_hz = (1000000 + us / 2) / us;
	if (span_is(key, "duration") && span_number(value, TIME_US_MAX, &us))
		r->duration_ns = us * 1000;
	if (!span_is(key, "mode"))
		return 0;
	for (enum austin_mode i = AUSTIN_WALL; i <= AUSTIN_FULL; i++)
		if (span_is(value, modes[i][0])) {
			a->mode = i;
			return recording_set_text(&r->mode, modes[i][1]);
		}
	return 0;
}

static int add_kinds(struct austin_values *a, struct profile *p)
{
	/* in full mode idle samples are no CPU time; in wall mode Austin does not tell */
	const char *time = a->mode == AUSTIN_WALL ? KINDS_WALL : KINDS_CPU;
	int r = 0;

	if (a->mode == AUSTIN_UNKNOWN) {
		a->time = (struct intake_values){ .name = "value", .unit = UNIT_COUNT, .scale = 1 };
		return intake_values_init(&a->time, p);
	}
	a->time = (struct intake_values){ .name = time, .unit = UNIT_NS, .scale = 1000 };
	a->idle = (struct intake_values){ .name = KINDS_OFF_CPU, .unit = UNIT_NS, .scale = 1000 };
	a->memory = (struct intake_values){ .name = "memory", .unit = UNIT_BYTES, .scale = 1 };
	if (a->mode != AUSTIN_MEMORY)
		r = intake_values_init(&a->time, p);
	if (a->mode == AUSTIN_FULL && !r)
		r = intake_values_init(&a->idle, p);
	if ((a->mode == AUSTIN_FULL || a->mode == AUSTIN_MEMORY) && !r)
		r = intake_values_init(&a->memory, p);
	return r;
}

int austin_add(struct austin_values *a, struct profile *p, struct sample s,
	       const struct austin_metrics *m)
{
	int r = a->is_ready ? 0 : add_kinds(a, p);

	a->is_ready = !r;
	if (!r && m->time_us)
		r = intake_value(m->is_idle ? &a->idle : &a->time, p, s, m->time_us);
	if (!r && m->memory_bytes)
		r = intake_value(&a->memory, p, s, m->memory_bytes);
	return r;
}
