/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef STORE_METADATA_H
#define STORE_METADATA_H

#include <stdbool.h>
#include <stddef.h>

#include "profile/profile.h"

/* Fields of the metadata chunk. Ids are for ever; unknown ones are skipped. */
static const struct metadata_field {
	unsigned int id;
	bool is_text; /* char *, else uint64_t */
	size_t offset;
} metadata_fields[] = {
	{ 1, false, offsetof(struct metadata, start_realtime_ns) },
	{ 2, false, offsetof(struct metadata, start_monotonic_ns) },
	{ 3, false, offsetof(struct metadata, duration_ns) },
	{ 4, false, offsetof(struct metadata, rate_hz) },
	{ 5, false, offsetof(struct metadata, interval_ns) },
	{ 6, false, offsetof(struct metadata, cpus) },
	{ 7, false, offsetof(struct metadata, has_ended) },
	{ 8, true, offsetof(struct metadata, host) },
	{ 9, true, offsetof(struct metadata, kernel) },
	{ 10, true, offsetof(struct metadata, machine) },
	{ 11, true, offsetof(struct metadata, version) },
	{ 12, true, offsetof(struct metadata, command) },
	{ 13, true, offsetof(struct metadata, mode) },
	{ 14, true, offsetof(struct metadata, event) },
	{ 15, true, offsetof(struct metadata, target) },
};
#define METADATA_FIELDS (sizeof(metadata_fields) / sizeof(metadata_fields[0]))

static inline uint64_t *metadata_number(struct metadata *m, const struct metadata_field *f)
{
	return (uint64_t *)((char *)m + f->offset);
}

static inline char **metadata_text(struct metadata *m, const struct metadata_field *f)
{
	return (char **)((char *)m + f->offset);
}

#endif
