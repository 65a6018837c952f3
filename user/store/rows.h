/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef STORE_ROWS_H
#define STORE_ROWS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "profile/profile.h"

/*
 * Rows whose columns say what they are (FORMAT.md, "Described rows"): one table for writer and
 * reader. Ids are for ever; a reader skips those it does not know, and what is not there is 0.
 */
enum row_type {
	ROW_U8,
	ROW_U32,
	ROW_U64,
	ROW_STRING, /* uint32_t, a string id */
};

struct row_field {
	unsigned int id; /* rising; 0 ends the table */
	enum row_type type;
	size_t offset;
};

/* Ids of other tables are the file's own where a row has them, and so are these: */
struct place_row {
	uint32_t step; /* process, less that of the row before */
	uint32_t container, pod_uid, pod_name, pod_namespace;
};

static const struct row_field process_fields[] = {
	{ 1, ROW_U32, offsetof(struct process, pid) },
	{ 2, ROW_U32, offsetof(struct process, ns_pid) },
	{ 3, ROW_U32, offsetof(struct process, ppid) },
	{ 4, ROW_U64, offsetof(struct process, start_ns) },
	{ 5, ROW_STRING, offsetof(struct process, name) },
	{ 6, ROW_STRING, offsetof(struct process, command_line) },
	{ 7, ROW_STRING, offsetof(struct process, python_version) },
	{ 8, ROW_STRING, offsetof(struct process, implementation) },
	{ 9, ROW_STRING, offsetof(struct process, executable) },
	{ 0, ROW_U8, 0 },
};

static const struct row_field thread_fields[] = {
	{ 1, ROW_U32, offsetof(struct thread, process) },
	{ 2, ROW_U32, offsetof(struct thread, tid) },
	{ 3, ROW_STRING, offsetof(struct thread, name) },
	{ 4, ROW_U64, offsetof(struct thread, start_ns) },
	{ 0, ROW_U8, 0 },
};

static const struct row_field place_fields[] = {
	{ 1, ROW_U32, offsetof(struct place_row, step) },
	{ 2, ROW_STRING, offsetof(struct place_row, container) },
	{ 3, ROW_STRING, offsetof(struct place_row, pod_uid) },
	{ 4, ROW_STRING, offsetof(struct place_row, pod_name) },
	{ 5, ROW_STRING, offsetof(struct place_row, pod_namespace) },
	{ 0, ROW_U8, 0 },
};

static const struct row_field source_fields[] = {
	{ 1, ROW_STRING, offsetof(struct source_version, file) },
	{ 2, ROW_U64, offsetof(struct source_version, digest) },
	{ 0, ROW_U8, 0 },
};

static const struct row_field kind_fields[] = {
	{ 1, ROW_STRING, offsetof(struct sample_kind, name) },
	{ 2, ROW_STRING, offsetof(struct sample_kind, event) },
	{ 3, ROW_U64, offsetof(struct sample_kind, period) },
	{ 4, ROW_U8, offsetof(struct sample_kind, unit) },
	{ 0, ROW_U8, 0 },
};

static const struct row_field label_fields[] = {
	{ 1, ROW_U32, offsetof(struct label_entry, parent) },
	{ 2, ROW_STRING, offsetof(struct label_entry, name) },
	{ 3, ROW_STRING, offsetof(struct label_entry, value) },
	{ 0, ROW_U8, 0 },
};

static inline uint64_t row_get(const struct row_field *f, const void *row)
{
	const char *at = (const char *)row + f->offset;

	switch (f->type) {
	case ROW_U8:
		return *(const uint8_t *)at;
	case ROW_U64:
		return *(const uint64_t *)at;
	case ROW_U32:
	case ROW_STRING:
		break;
	}
	return *(const uint32_t *)at;
}

static inline void row_set(const struct row_field *f, void *row, uint64_t v)
{
	char *at = (char *)row + f->offset;

	switch (f->type) {
	case ROW_U8:
		*(uint8_t *)at = (uint8_t)v;
		return;
	case ROW_U64:
		*(uint64_t *)at = v;
		return;
	case ROW_U32:
	case ROW_STRING:
		*(uint32_t *)at = (uint32_t)v;
	}
}

#endif
