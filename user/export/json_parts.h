/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_JSON_PARTS_H
#define EXPORT_JSON_PARTS_H

/* What all that is written as JSON has in common. */

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "profile/profile.h"

/* By enum frame_type: what JSON calls them. */
extern const char *const json_frame_types[FRAME_TYPE_COUNT];

/* By enum sample_unit. */
extern const char *const json_units[];

/* What the ticks of a recording of one kind are called. */
const char *json_tick_kind(const struct recording *r);

/* A value in its kind's unit; saturates, as a hostile file's periods may be anything. */
uint64_t json_scaled(uint64_t value, uint64_t period);

/* A string of p; null for 0. */
void json_interned(struct json *j, const struct profile *p, uint32_t string);

/* Into an open array: name, file (a string of p, or 0), line, type. */
void json_frame_fields(struct json *j, const struct profile *p, const struct frame *f,
		       uint32_t file, bool has_line);

/* The same of a stack without frames. */
void json_no_frame_fields(struct json *j);

#endif
