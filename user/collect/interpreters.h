/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_INTERPRETERS_H
#define COLLECT_INTERPRETERS_H

#include <stdint.h>

#include "base/cleanup.h"
#include "bpf/events.h"
#include "collect/session.h"
#include "target/runtime.h"

/*
 * The interpreters that were met, by the index of their layout: at most LAYOUTS_MAX, which stay as
 * they are and where they are. One thread adds, any may read.
 */
struct interpreters;

/* What people call an interpreter. Valid until interpreters_free(). */
struct interpreter_text {
	const char *version;        /* "3.12.1" */
	const char *implementation; /* "CPython" */
	const char *path;           /* the file its code is mapped from */
	const char *build;          /* its build ID, hexadecimal */
};

int interpreters_new(struct interpreters **out);
void interpreters_free(struct interpreters *is);
DEFINE_CLEANUP(struct interpreters *, interpreters_free)

/*
 * Index of an interpreter's layout, told to the kernel side at first sight; -ENOSPC past
 * LAYOUTS_MAX, -ENOMEM.
 */
int interpreters_add(struct interpreters *is, struct session *session, const struct py_runtime *rt);

/* NULL for an index that was never given out. */
const struct py_offsets *interpreters_layout(struct interpreters *is, uint32_t layout);

/* All "" for an unknown layout. */
void interpreters_describe(struct interpreters *is, uint32_t layout, struct interpreter_text *out);

#endif
