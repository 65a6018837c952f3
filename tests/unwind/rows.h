/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef UNWIND_ROWS_H
#define UNWIND_ROWS_H

#include "bpf/events.h"

/*
 * One struct py_offsets for each CPython minor, written down apart from user/target: sizeof and
 * offsetof of 3.6.15, 3.7.16, 3.8.18, 3.9.18, 3.10.13, 3.11.7, 3.12.1, 3.13.0, 3.14.10 and 3.15.2
 * headers on x86-64 (t: with Py_GIL_DISABLED).
 */
struct row {
	const char *name;
	struct py_offsets off;
};

extern const struct row rows[];
extern const unsigned row_count;

#endif
