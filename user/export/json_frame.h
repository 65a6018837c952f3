/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_JSON_FRAME_H
#define EXPORT_JSON_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "profile/profile.h"

/* By enum frame_type: what JSON calls them. */
extern const char *const json_frame_types[FRAME_TYPE_COUNT];

/* A string of p; null for 0. */
void json_interned(struct json *j, const struct profile *p, uint32_t string);

/* Into an open array: name, file (a string of p, or 0), line, type. */
void json_frame_fields(struct json *j, const struct profile *p, const struct frame *f,
		       uint32_t file, bool has_line);

/* The same of a stack without frames. */
void json_no_frame_fields(struct json *j);

#endif
