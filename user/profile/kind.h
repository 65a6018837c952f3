/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_KIND_H
#define PROFILE_KIND_H

#include <stdint.h>

/* The numbers are those of the file format. */
enum sample_unit {
	UNIT_NS = 0,
	UNIT_BYTES = 1,
	UNIT_COUNT = 2,
};

/*
 * What samples are of. Kind 0 of a profile is not in its table: the ticks of a sample's recording,
 * whose event and interval that one knows.
 */
#define KIND_TICKS 0
#define KINDS_MAX 255 /* in a table */

struct sample_kind {
	uint32_t name;   /* string ids: "off-cpu" */
	uint32_t event;  /* "sched_switch"; 0: not known */
	uint64_t period; /* what a sample's value of 1 is, in the unit; 1: values are of the unit */
	uint8_t unit;    /* enum sample_unit */
};

/* What a value of 1 is. */
struct value_unit {
	uint64_t period; /* >= 1 */
	uint8_t unit;    /* enum sample_unit */
};

#endif
