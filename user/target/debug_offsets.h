/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TARGET_DEBUG_OFFSETS_H
#define TARGET_DEBUG_OFFSETS_H

/*
 * _Py_DebugOffsets, with which _PyRuntime begins from CPython 3.13 on: a cookie, the version, and
 * the offsets of what a debugger reads. The struct changes with each minor version, not within one
 * (Include/internal/pycore_debug_offsets.h, in 3.13 pycore_runtime.h).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/events.h"

#define DEBUG_OFFSETS_HEAD 24   /* cookie, version, free_threaded: the same in every version */
#define DEBUG_OFFSETS_BYTES 888 /* of the largest struct known: what to read for the parser */

/*
 * The struct of one minor version: where each number that we want is, in bytes. 0: not there.
 * Each number is an uint64_t.
 */
struct debug_shape {
	uint8_t minor;
	uint16_t bytes; /* sizeof(_Py_DebugOffsets) */
	uint16_t runtime_size, interpreters_head;
	uint16_t interp_size, interp_id, interp_next, interp_threads_head, interp_modules;
	uint16_t interp_code_generation, interp_gil, interp_own_gil, interp_own_gil_holder;
	uint16_t interp_gc, gc_size, gc_collecting, gc_frame; /* the last two in the first */
	uint16_t tstate_size, tstate_prev, tstate_next, tstate_interp, tstate_current_frame;
	uint16_t tstate_thread_id, tstate_native_thread_id, tstate_status;
	uint16_t frame_size, frame_previous, frame_executable, frame_instr_ptr, frame_localsplus;
	uint16_t frame_owner, frame_tlbc_index;
	uint16_t code_size, code_filename, code_name, code_qualname, code_linetable;
	uint16_t code_firstlineno, code_adaptive, code_tlbc;
	uint16_t object_size, bytes_size, bytes_data;
	uint16_t str_size, str_state, str_length, str_ascii_size, str_compact_size;
};

/* NULL for a minor version that is not known. */
const struct debug_shape *debug_shape_find(unsigned minor);

/* Do these bytes begin with a cookie? Then *version is the PY_VERSION_HEX behind it. */
bool debug_offsets_version(const void *bytes, size_t len, uint32_t *version);

/*
 * The layout in the first len bytes of a _PyRuntime, which may be anything. Free-threaded builds
 * too. A minor version later than those known, and pre-releases, are read as the nearest known one
 * if that gives a layout without a contradiction, and marked is_best_effort.
 *
 * Returns 0, -ENODATA (no cookie), -ENOTSUP (a version that cannot be read), -EBADMSG (a number
 * that cannot be right), all with a message; then *out is untouched.
 */
int debug_offsets_parse(const void *bytes, size_t len, struct py_offsets *out);

#endif
