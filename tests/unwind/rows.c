/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "rows.h"

#include <stddef.h>

/* clang-format off */

#define COMMON .tstate_prev = 0, .tstate_next = 8, .tstate_interp = 16
/* exc_info, what follows of the item, gc.collecting in _PyRuntime and in the interpreter, gc.frame */
#define STATE(info, value, runtime, interp, frame)                                          \
	.tstate_exc_info = info, .exc_value = value, .exc_previous = (value) ? 24 : 8,      \
	.runtime_gc_collecting = runtime, .interp_gc_collecting = interp, .interp_gc_frame = frame
/* PyThreadState.context, and the hash in PyContextVar */
#define CONTEXT(context, hash) .tstate_context = context, .contextvar_hash = hash
/* What differs of objects: user/target/object.c. */
#define OBJECTS_OLD                                                                         \
	.objects = { .attributes = ATTRIBUTES_DICT, .keys_size = 8, .keys_kind = OFF_NONE_8,   \
		     .keys_nentries = 32, .keys_indices = 40, .tuple_items = 8 }
#define OBJECTS(where, items, tuple, cached_keys)                                           \
	.objects = { .attributes = where, .keys_are_logs = 1, .keys_size = 9, .keys_kind = 10, \
		     .keys_nentries = 24, .keys_indices = 32, .values_items = items,          \
		     .tuple_items = tuple, .type_cached_keys = cached_keys }
#define NO_STATUS .tstate_status = OFF_NONE
#define STATUS(at) .tstate_status = at, .status_bound_gilstate = 8, .status_active = 16

#define STRINGS(ascii, compact)                                             \
	.str_kind_shift = 2, .str_compact_bit = 5, .str_ascii_bit = 6,      \
	.str_length = 16, .str_hash = 24, .str_state = 32,                  \
	.str_ascii_data = ascii, .str_compact_data = compact,               \
	.bytes_size = 16, .bytes_data = 32
#define STRINGS_FREE_THREADED(kind, compact, ascii)                                   \
	.str_kind_shift = kind, .str_compact_bit = compact, .str_ascii_bit = ascii,   \
	.str_length = 32, .str_hash = 40, .str_state = 48,                            \
	.str_ascii_data = 56, .str_compact_data = 72,                                 \
	.bytes_size = 32, .bytes_data = 48

#define FRAME_OBJECTS(lasti)                                                               \
	.frame_kind = FRAME_OBJECT, .tstate_frame = 24, .cframe_current = OFF_NONE,         \
	.tstate_executor = OFF_NONE, .tstate_size = 264,                                   \
	.frame_previous = 24, .frame_code = 32, .frame_instr = lasti,                      \
	.frame_owner = OFF_NONE, .frame_is_entry = OFF_NONE, .frame_tlbc_index = OFF_NONE, \
	.frame_object = OFF_NONE, .frame_size = lasti + 8

#define CODE_OLD(first, file, size)                                                     \
	.code_firstlineno = first, .code_filename = file, .code_name = file + 8,         \
	.code_qualname = OFF_NONE, .code_linetable = file + 16,                         \
	.code_adaptive = first + (first == 36 ? 4 : 8), .code_firsttraceable = OFF_NONE, \
	.code_tlbc = OFF_NONE, .code_version = OFF_NONE, .code_size = size
#define CODE_NEW(first, file, traceable, adaptive, tlbc, version)                       \
	.code_firstlineno = first, .code_filename = file, .code_name = file + 8,         \
	.code_qualname = file + 16, .code_linetable = file + 24,                        \
	.code_adaptive = adaptive, .code_firsttraceable = traceable,                    \
	.code_tlbc = tlbc, .code_version = version, .code_size = adaptive

#define FRAMES_INTERNAL(executor, owner, tlbc, size)                                    \
	.tstate_executor = executor, .tstate_size = 312,                                \
	.frame_kind = FRAME_INTERNAL, .lines = LINES_LOCATIONS, .owner_boundary = 3,    \
	.tstate_frame = 72, .cframe_current = OFF_NONE, .runtime_tstate_current = OFF_NONE, \
	.frame_previous = 8, .frame_code = 0, .frame_instr = 56,                        \
	.frame_owner = owner, .frame_is_entry = OFF_NONE, .frame_tlbc_index = tlbc,     \
	.frame_object = 48, .frame_size = size

const struct row rows[] = {
	/* 3.6 has no _PyRuntime: its interp_head plays that part. */
	{ "3.6", { .minor = 6, .micro = 15, .lines = LINES_LNOTAB, .lasti_unit = 1, COMMON, CONTEXT(OFF_NONE, OFF_NONE), STATE(OFF_NONE, OFF_NONE, OFF_NONE, OFF_NONE, OFF_NONE), NO_STATUS,
		.runtime_interpreters_head = 0, .runtime_tstate_current = OFF_NONE,
		.interp_next = 0, .interp_threads_head = 8, .interp_id = OFF_NONE,
		.tstate_thread_id = 152, .tstate_native_thread_id = OFF_NONE,
		FRAME_OBJECTS(120), CODE_OLD(36, 96, 144), STRINGS(48, 72) } },
	{ "3.7", { .minor = 7, .micro = 16, .lines = LINES_LNOTAB, .lasti_unit = 1, COMMON, OBJECTS_OLD, CONTEXT(256, 56), STATE(144, 8, 632, OFF_NONE, OFF_NONE), NO_STATUS,
		.runtime_interpreters_head = 24, .runtime_tstate_current = 1480,
		.interp_next = 0, .interp_threads_head = 8, .interp_id = 16,
		.tstate_thread_id = 176, .tstate_native_thread_id = OFF_NONE,
		FRAME_OBJECTS(104), CODE_OLD(36, 96, 144), STRINGS(48, 72) } },
	{ "3.8", { .minor = 8, .micro = 18, .lines = LINES_LNOTAB, .lasti_unit = 1, COMMON, OBJECTS_OLD, CONTEXT(240, 56), STATE(144, 8, 544, OFF_NONE, OFF_NONE), NO_STATUS,
		.runtime_interpreters_head = 32, .runtime_tstate_current = 1368,
		.interp_next = 0, .interp_threads_head = 8, .interp_id = 16,
		.tstate_thread_id = 176, .tstate_native_thread_id = OFF_NONE,
		FRAME_OBJECTS(104), CODE_OLD(40, 104, 176), STRINGS(48, 72) } },
	{ "3.9", { .minor = 9, .micro = 18, .lines = LINES_LNOTAB, .lasti_unit = 1, COMMON, OBJECTS_OLD, CONTEXT(240, 56), STATE(144, 8, OFF_NONE, 816, OFF_NONE), NO_STATUS,
		.runtime_interpreters_head = 32, .runtime_tstate_current = 568,
		.interp_next = 0, .interp_threads_head = 8, .interp_id = 24,
		.tstate_thread_id = 176, .tstate_native_thread_id = OFF_NONE,
		FRAME_OBJECTS(104), CODE_OLD(40, 104, 176), STRINGS(48, 72) } },
	{ "3.10", { .minor = 10, .micro = 13, .lines = LINES_DELTAS, .lasti_unit = 2, COMMON, OBJECTS_OLD, CONTEXT(240, 56), STATE(144, 8, OFF_NONE, 816, OFF_NONE), NO_STATUS,
		.runtime_interpreters_head = 32, .runtime_tstate_current = 568,
		.interp_next = 0, .interp_threads_head = 8, .interp_id = 24,
		.tstate_thread_id = 176, .tstate_native_thread_id = OFF_NONE,
		FRAME_OBJECTS(96), .tstate_cframe = 48, CODE_OLD(40, 104, 176), STRINGS(48, 72) } },
	{ "3.11", { .minor = 11, .micro = 7, .lines = LINES_LOCATIONS, COMMON, OBJECTS(ATTRIBUTES_POINTERS, 0, 8, 856), CONTEXT(224, 56), STATE(120, 0, OFF_NONE, 848, OFF_NONE), NO_STATUS,
		.runtime_interpreters_head = 40, .runtime_tstate_current = 576,
		.interp_next = 0, .interp_threads_head = 16, .interp_id = 48,
		.tstate_thread_id = 152, .tstate_native_thread_id = 160,
		.tstate_executor = OFF_NONE, .tstate_size = 232,
		.frame_kind = FRAME_CFRAME, .tstate_frame = 56, .cframe_current = 8, .tstate_cframe = 56,
		.frame_previous = 48, .frame_code = 32, .frame_instr = 56,
		.frame_owner = 69, .frame_is_entry = 68, .frame_tlbc_index = OFF_NONE, .frame_object = 40, .frame_size = 70,
		CODE_NEW(72, 112, 168, 184, OFF_NONE, OFF_NONE), STRINGS(48, 72) } },
	{ "3.12", { .minor = 12, .micro = 1, .lines = LINES_LOCATIONS, COMMON, OBJECTS(ATTRIBUTES_TAGGED, 0, 8, 864), CONTEXT(208, 56), STATE(104, 0, OFF_NONE, 312, OFF_NONE), STATUS(24),
		.owner_boundary = 3,
		.runtime_interpreters_head = 40, .runtime_tstate_current = OFF_NONE,
		.interp_next = 0, .interp_threads_head = 72, .interp_id = 8,
		.tstate_thread_id = 136, .tstate_native_thread_id = 144,
		.tstate_executor = OFF_NONE, .tstate_size = 216,
		.frame_kind = FRAME_CFRAME, .tstate_frame = 56, .cframe_current = 0, .tstate_cframe = 56,
		.frame_previous = 8, .frame_code = 0, .frame_instr = 56,
		.frame_owner = 70, .frame_is_entry = OFF_NONE, .frame_tlbc_index = OFF_NONE,
		.frame_object = 48, .frame_size = 71,
		CODE_NEW(68, 112, 176, 192, OFF_NONE, 92), STRINGS(40, 56) } },
	{ "3.13", { .minor = 13, COMMON, OBJECTS(ATTRIBUTES_INLINE, 8, 8, 864), CONTEXT(208, 56), STATE(120, 0, OFF_NONE, 7600, OFF_NONE), STATUS(32),
		.runtime_interpreters_head = 632,
		.interp_next = 7264, .interp_threads_head = 7344, .interp_id = 7272,
		.tstate_thread_id = 152, .tstate_native_thread_id = 160,
		FRAMES_INTERNAL(OFF_NONE, 70, OFF_NONE, 71),
		CODE_NEW(68, 112, 184, 200, OFF_NONE, 92), STRINGS(40, 56) } },
	{ "3.13t", { .minor = 13, .is_free_threaded = 1, COMMON, OBJECTS(ATTRIBUTES_INLINE, 8, 8, 864), CONTEXT(208, 48), STATE(120, 0, OFF_NONE, 7600, OFF_NONE), STATUS(32),
		.runtime_interpreters_head = 632,
		.interp_next = 7264, .interp_threads_head = 7344, .interp_id = 7272,
		.tstate_thread_id = 152, .tstate_native_thread_id = 160,
		FRAMES_INTERNAL(OFF_NONE, 70, OFF_NONE, 71),
		CODE_NEW(84, 128, 200, 216, OFF_NONE, 108), STRINGS_FREE_THREADED(2, 5, 6) } },
	{ "3.14", { .minor = 14, .micro = 10, .tagged_mask = 1, COMMON, OBJECTS(ATTRIBUTES_INLINE, 8, 16, 864), CONTEXT(208, 56), STATE(120, 0, OFF_NONE, 7600, OFF_NONE), STATUS(32),
		.runtime_interpreters_head = 808,
		.interp_next = 7272, .interp_threads_head = 7344, .interp_id = 7280,
		.interp_code_generation = 7992,
		.tstate_thread_id = 152, .tstate_native_thread_id = 160,
		FRAMES_INTERNAL(272, 74, OFF_NONE, 75),
		CODE_NEW(68, 112, 192, 208, OFF_NONE, 92), STRINGS(40, 56) } },
	{ "3.14t", { .minor = 14, .micro = 10, .is_free_threaded = 1, .tagged_mask = 1, COMMON, OBJECTS(ATTRIBUTES_INLINE, 8, 16, 864), CONTEXT(208, 48), STATE(120, 0, OFF_NONE, 7600, OFF_NONE),
		STATUS(32), .runtime_interpreters_head = 808,
		.interp_next = 7272, .interp_threads_head = 7344, .interp_id = 7280,
		.interp_code_generation = 8024,
		.tstate_thread_id = 152, .tstate_native_thread_id = 160,
		FRAMES_INTERNAL(272, 78, 72, 79),
		CODE_NEW(84, 128, 208, 232, 224, 108), STRINGS_FREE_THREADED(8, 11, 12) } },
	{ "3.15", { .minor = 15, .micro = 2, .tagged_mask = 3, COMMON, OBJECTS(ATTRIBUTES_INLINE, 8, 16, 872), CONTEXT(232, 56), STATE(144, 0, OFF_NONE, 7512, 7520), STATUS(32),
		.runtime_interpreters_head = 936,
		.interp_next = 7264, .interp_threads_head = 7336, .interp_id = 7272,
		.interp_code_generation = 7944,
		.tstate_thread_id = 176, .tstate_native_thread_id = 184,
		FRAMES_INTERNAL(304, 74, OFF_NONE, 75),
		CODE_NEW(68, 112, 192, 208, OFF_NONE, 92), STRINGS(40, 56) } },
	{ "3.15t", { .minor = 15, .micro = 2, .is_free_threaded = 1, .tagged_mask = 3, COMMON, OBJECTS(ATTRIBUTES_INLINE, 8, 16, 872), CONTEXT(232, 48), STATE(144, 0, OFF_NONE, 7512, 7520),
		STATUS(32), .runtime_interpreters_head = 936,
		.interp_next = 7264, .interp_threads_head = 7336, .interp_id = 7272,
		.interp_code_generation = 7952,
		.tstate_thread_id = 176, .tstate_native_thread_id = 184,
		FRAMES_INTERNAL(304, 78, 72, 79),
		CODE_NEW(84, 128, 208, 232, 224, 108), STRINGS_FREE_THREADED(8, 11, 12) } },
};

/* clang-format on */

const unsigned row_count = sizeof(rows) / sizeof(rows[0]);
