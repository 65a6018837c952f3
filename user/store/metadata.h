/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef STORE_METADATA_H
#define STORE_METADATA_H

#include <stddef.h>

#include "profile/profile.h"

enum metadata_type {
	METADATA_NUMBER, /* uint64_t */
	METADATA_TEXT,   /* char * */
	METADATA_REAL,   /* double */
};

/* Fields of the metadata chunk. Ids are for ever; unknown ones are skipped. */
static const struct metadata_field {
	unsigned int id;
	enum metadata_type type;
	size_t offset;
} metadata_fields[] = {
	{ 1, METADATA_NUMBER, offsetof(struct metadata, start_realtime_ns) },
	{ 2, METADATA_NUMBER, offsetof(struct metadata, start_monotonic_ns) },
	{ 3, METADATA_NUMBER, offsetof(struct metadata, duration_ns) },
	{ 4, METADATA_NUMBER, offsetof(struct metadata, rate_hz) },
	{ 5, METADATA_NUMBER, offsetof(struct metadata, interval_ns) },
	{ 6, METADATA_NUMBER, offsetof(struct metadata, cpus) },
	{ 7, METADATA_NUMBER, offsetof(struct metadata, has_ended) },
	{ 8, METADATA_TEXT, offsetof(struct metadata, host) },
	{ 9, METADATA_TEXT, offsetof(struct metadata, kernel) },
	{ 10, METADATA_TEXT, offsetof(struct metadata, machine) },
	{ 11, METADATA_TEXT, offsetof(struct metadata, version) },
	{ 12, METADATA_TEXT, offsetof(struct metadata, command) },
	{ 13, METADATA_TEXT, offsetof(struct metadata, mode) },
	{ 14, METADATA_TEXT, offsetof(struct metadata, event) },
	{ 15, METADATA_TEXT, offsetof(struct metadata, target) },
	{ 16, METADATA_REAL, offsetof(struct metadata, work) },
	{ 17, METADATA_TEXT, offsetof(struct metadata, source) },
	{ 18, METADATA_NUMBER, offsetof(struct metadata, is_whole) },
	{ 19, METADATA_NUMBER, offsetof(struct metadata, is_summed) },
	{ 20, METADATA_TEXT, offsetof(struct metadata, cpu_model) },
	{ 21, METADATA_TEXT, offsetof(struct metadata, governor) },
	{ 22, METADATA_TEXT, offsetof(struct metadata, build) },
	{ 23, METADATA_TEXT, offsetof(struct metadata, hash_seed) },
	{ 24, METADATA_TEXT, offsetof(struct metadata, allocator) },
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

static inline double *metadata_real(struct metadata *m, const struct metadata_field *f)
{
	return (double *)((char *)m + f->offset);
}

#endif
