/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TARGET_OFFSETS_H
#define TARGET_OFFSETS_H

/*
 * The layouts of the CPython builds that do not describe themselves: 3.6 to 3.12, with the GIL.
 * Every field of every row is compared with CPython's own headers by tests/lint/offsets_check.c.
 */

#include <stdbool.h>
#include <stdint.h>

#include "bpf/events.h"

/* PY_VERSION_HEX: 0xMMmmpplS, major, minor, micro, level (a, b, c, f) and serial. */
#define VERSION_HEX(major, minor, micro, level) \
	((uint32_t)(major) << 24 | (minor) << 16 | (micro) << 8 | (level) << 4)
#define VERSION_MAJOR(hex) ((hex) >> 24)
#define VERSION_MINOR(hex) ((hex) >> 16 & 0xff)
#define VERSION_MICRO(hex) ((hex) >> 8 & 0xff)
#define VERSION_LEVEL(hex) ((hex) >> 4 & 0xf)
#define VERSION_LEVEL_CANDIDATE                                          \
	0xc /* from the first release candidate on layouts do not change \
	     */
#define VERSION_LEVEL_FINAL 0xf

#define VERSION_TEXT_BYTES 24

/* "3.8.18", "3.15.0b2". */
void version_format(uint32_t hex, char out[VERSION_TEXT_BYTES]);

/*
 * The layout of this version. runtime_bytes is the size of _PyRuntime, 0 if not known;
 * has_trace_refs: built with Py_TRACE_REFS, as debug builds of 3.6 and 3.7 are. 3.6 has no
 * _PyRuntime: its runtime_* are OFF_NONE, as the linker says where they are.
 *
 * Returns 0, -ENOTSUP (no row for it: other minors, pre-releases, trace-refs from 3.8 on), -EBADMSG
 * (_PyRuntime is not as large as in that version), both with a message.
 */
int offsets_find(uint32_t version, uint64_t runtime_bytes, bool has_trace_refs,
		 struct py_offsets *out);

/*
 * Can a process with these offsets be read without a surprise? That is what the unwinder relies on:
 * every offset inside what it reads at once, aligned, and present where the frame kind needs it.
 * Returns 0 or -EBADMSG with the name of the first field that is not.
 */
int offsets_check(const struct py_offsets *off);

#endif
