/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/json_frame.h"

const char *const json_frame_types[FRAME_TYPE_COUNT] = {
	[FRAME_PYTHON] = "python", [FRAME_NATIVE] = "native", [FRAME_KERNEL] = "kernel",
	[FRAME_MARKER] = "marker", [FRAME_TASK] = "task",
};

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
	if (f->line && has_line)
		json_u64(j, f->line);
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
