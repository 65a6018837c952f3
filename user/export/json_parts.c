/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/json_parts.h"

const char *const json_frame_types[FRAME_TYPE_COUNT] = {
	[FRAME_PYTHON] = "python", [FRAME_NATIVE] = "native", [FRAME_KERNEL] = "kernel",
	[FRAME_MARKER] = "marker", [FRAME_TASK] = "task",
};

const char *const json_units[] = {
	[UNIT_NS] = "ns",
	[UNIT_BYTES] = "bytes",
	[UNIT_COUNT] = "count",
};

const char *json_tick_kind(const struct recording *r)
{
	if (r->interval_ns || r->other_unit.period)
		return r->mode ? r->mode : "cpu";
	return r->event && r->mode ? r->event : "samples";
}

uint64_t json_scaled(uint64_t value, uint64_t period)
{
	uint64_t product;

	return __builtin_mul_overflow(value, period, &product) ? UINT64_MAX : product;
}

void json_interned(struct json *j, const struct profile *p, uint32_t string)
{
	if (string)
		json_string_len(j, strtab_get(p->strings, string), strtab_len(p->strings, string));
	else
		json_null(j);
}

void json_frame_fields(struct json *j, const struct profile *p, const struct frame *f,
		       uint32_t file, bool has_line)
{
	json_interned(j, p, f->name);
	json_interned(j, p, file);
	if (frame_told_line(f) && has_line)
		json_u64(j, frame_told_line(f));
	else
		json_null(j);
	json_string(j, json_frame_types[f->kind]);
}

void json_no_frame_fields(struct json *j)
{
	json_string(j, PROFILE_NO_FRAMES);
	json_null(j);
	json_null(j);
	json_string(j, json_frame_types[FRAME_MARKER]);
}
