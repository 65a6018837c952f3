/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/offsets.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

/* As in bpf/python.h, which repeats the checks for the verifier. */
#define FRAME_BYTES 256
#define CODE_BYTES 256
#define TSTATE_BYTES 512
#define STRING_BYTES 128
#define GIL_BYTES 256 /* sizeof(struct _gil_runtime_state): 208, free-threaded 216 */
#define EXC_ITEM_BYTES 32
#define CONTEXTVAR_BYTES 128    /* sizeof(PyContextVar): 64, at most 80 */
#define INTERP_BYTES (1u << 20) /* sizeof(PyInterpreterState) is 0.1 to 0.5 MB in 3.13 to 3.15 */

struct offsets_row {
	uint8_t minor;
	uint8_t micro_first, micro_last;
	/*
	 * sizeof(_PyRuntimeState) on x86-64. 0: not compared, as it holds static objects (3.11 and
	 * later), whose number changes with patch releases and Py_DEBUG.
	 */
	uint64_t runtime_bytes;
	struct py_offsets off;
};

/*
 * gilstate follows the GIL's two mutexes in _PyRuntime up to 3.11, and a pthread_mutex_t takes 48
 * bytes in glibc on aarch64, 40 on x86-64 and in musl. All else is the same on both (LP64).
 */
#ifdef __aarch64__
#define MUTEXES 16
#else
#define MUTEXES 0
#endif

/* Read off CPython's headers. */
/* clang-format off */
/*
 * 3.6 and 3.7. head is sizeof(PyObject): their debug builds chain all objects (Py_TRACE_REFS), for
 * which each has two more pointers; from 3.8 on that is an option of its own, and refused.
 */
#define OLD(head, lasti)                                                                          \
	.is_debug = (head) == 32, .frame_kind = FRAME_OBJECT, .lines = LINES_LNOTAB,              \
	.lasti_unit = 1, .str_kind_shift = 2, .str_compact_bit = 5, .str_ascii_bit = 6,           \
	.interp_next = 0, .interp_threads_head = 8,                                               \
	.interp_gil = OFF_NONE,                                                                   \
	.tstate_prev = 0, .tstate_next = 8, .tstate_interp = 16, .tstate_frame = 24,              \
	.tstate_status = OFF_NONE, .tstate_native_thread_id = OFF_NONE,                           \
	.tstate_executor = OFF_NONE, .cframe_current = OFF_NONE,                                  \
	.interp_gc_collecting = OFF_NONE, .interp_gc_frame = OFF_NONE,                            \
	.interp_eval_frame = OFF_NONE,                                                            \
	.frame_code = (head) + 16, .frame_previous = (head) + 8, .frame_instr = (head) + (lasti), \
	.frame_owner = OFF_NONE, .frame_is_entry = OFF_NONE, .frame_tlbc_index = OFF_NONE,        \
	.frame_object = OFF_NONE, .frame_size = (head) + (lasti) + 8,                                                      \
	.code_firstlineno = (head) + 20, .code_filename = (head) + 80, .code_name = (head) + 88,  \
	.code_qualname = OFF_NONE, .code_linetable = (head) + 96, .code_adaptive = (head) + 24,      \
	.code_firsttraceable = OFF_NONE, .code_tlbc = OFF_NONE, .code_version = OFF_NONE,         \
	.code_size = (head) + 128,                                                                \
	.str_length = (head), .str_hash = (head) + 8, .str_state = (head) + 16,                   \
	.str_ascii_data = (head) + 32, .str_compact_data = (head) + 56,                           \
	.bytes_size = (head), .bytes_data = (head) + 16
#define OLD_3_6(head)                                                                              \
	OLD(head, 104), .runtime_interpreters_head = OFF_NONE, .runtime_tstate_current = OFF_NONE, \
	.runtime_gil = OFF_NONE, .gil_last_holder = OFF_NONE,                                      \
	.interp_id = OFF_NONE, .interp_modules = 16, .tstate_thread_id = 152, .tstate_size = 160, \
	.runtime_gc_collecting = OFF_NONE, .tstate_exc_info = OFF_NONE, .exc_value = OFF_NONE,     \
	.exc_previous = OFF_NONE, .tstate_context = OFF_NONE, .contextvar_hash = OFF_NONE
#define OLD_3_7(head, current)                                                                    \
	OLD(head, 88), .runtime_interpreters_head = 24,                                           \
	.runtime_gil = (current) - 216, .gil_last_holder = 8,                                     \
	.runtime_tstate_current = (current) + MUTEXES, .interp_id = 16, .interp_modules = 40,     \
	.tstate_thread_id = 176, .tstate_size = 264,                                               \
	.runtime_gc_collecting = (current) - 848, .tstate_exc_info = 144, .exc_value = 8,         \
	.exc_previous = 24, .tstate_context = 256, .contextvar_hash = (head) + 40

/*
 * 3.7.4 aligned PyGC_Head to 16 bytes instead of 8 (bpo-27987), and four of them stand in front of
 * gilstate in _PyRuntime.
 */
static const struct offsets_row rows[] = {
	{ .minor = 6, .micro_last = 255, .off = { OLD_3_6(16) } },
	{ .minor = 6, .micro_last = 255, .off = { OLD_3_6(32) } },
	{ .minor = 7, .micro_last = 3, .runtime_bytes = 1432, .off = { OLD_3_7(16, 1392) } },
	{ .minor = 7, .micro_last = 3, .runtime_bytes = 1432, .off = { OLD_3_7(32, 1392) } },
	{ .minor = 7, .micro_first = 4, .micro_last = 255, .runtime_bytes = 1520, .off = {
		OLD_3_7(16, 1480) } },
	{ .minor = 7, .micro_first = 4, .micro_last = 255, .runtime_bytes = 1520, .off = {
		OLD_3_7(32, 1480) } },
	{ .minor = 8, .micro_first = 0, .micro_last = 255, .runtime_bytes = 1464, .off = {
		.frame_kind = FRAME_OBJECT, .lines = LINES_LNOTAB, .lasti_unit = 1,
		.str_kind_shift = 2, .str_compact_bit = 5, .str_ascii_bit = 6,
		.runtime_interpreters_head = 32, .runtime_tstate_current = 1368 + MUTEXES,
		.runtime_gil = 1152, .interp_gil = OFF_NONE, .gil_last_holder = 8,
		.interp_next = 0, .interp_threads_head = 8, .interp_id = 16, .interp_modules = 56,
		.runtime_gc_collecting = 544, .interp_gc_collecting = OFF_NONE,
		.interp_gc_frame = OFF_NONE, .interp_eval_frame = OFF_NONE, .tstate_exc_info = 144, .exc_value = 8, .exc_previous = 24,
		.tstate_prev = 0, .tstate_next = 8, .tstate_interp = 16, .tstate_frame = 24,
		.tstate_status = OFF_NONE, .tstate_thread_id = 176,
		.tstate_native_thread_id = OFF_NONE, .tstate_executor = OFF_NONE,
		.tstate_context = 240, .tstate_size = 248, .cframe_current = OFF_NONE,
		.frame_code = 32, .frame_previous = 24, .frame_instr = 104,
		.frame_owner = OFF_NONE, .frame_is_entry = OFF_NONE, .frame_tlbc_index = OFF_NONE,
		.frame_object = OFF_NONE, .frame_size = 112,
		.code_firstlineno = 40, .code_filename = 104, .code_name = 112,
		.code_qualname = OFF_NONE, .code_linetable = 120, .code_adaptive = 48,
		.code_firsttraceable = OFF_NONE, .code_tlbc = OFF_NONE, .code_version = OFF_NONE,
		.code_size = 176,
		.str_length = 16, .str_hash = 24, .str_state = 32, .str_ascii_data = 48,
		.str_compact_data = 72, .bytes_size = 16, .bytes_data = 32,
		.contextvar_hash = 56 } },
	{ .minor = 9, .micro_first = 0, .micro_last = 255, .runtime_bytes = 656, .off = {
		.frame_kind = FRAME_OBJECT, .lines = LINES_LNOTAB, .lasti_unit = 1,
		.str_kind_shift = 2, .str_compact_bit = 5, .str_ascii_bit = 6,
		.runtime_interpreters_head = 32, .runtime_tstate_current = 568 + MUTEXES,
		.runtime_gil = 352, .interp_gil = OFF_NONE, .gil_last_holder = 8,
		.interp_next = 0, .interp_threads_head = 8, .interp_id = 24, .interp_modules = 856,
		.runtime_gc_collecting = OFF_NONE, .interp_gc_collecting = 816,
		.interp_gc_frame = OFF_NONE, .interp_eval_frame = OFF_NONE, .tstate_exc_info = 144, .exc_value = 8, .exc_previous = 24,
		.tstate_prev = 0, .tstate_next = 8, .tstate_interp = 16, .tstate_frame = 24,
		.tstate_status = OFF_NONE, .tstate_thread_id = 176,
		.tstate_native_thread_id = OFF_NONE, .tstate_executor = OFF_NONE,
		.tstate_context = 240, .tstate_size = 248, .cframe_current = OFF_NONE,
		.frame_code = 32, .frame_previous = 24, .frame_instr = 104,
		.frame_owner = OFF_NONE, .frame_is_entry = OFF_NONE, .frame_tlbc_index = OFF_NONE,
		.frame_object = OFF_NONE, .frame_size = 112,
		.code_firstlineno = 40, .code_filename = 104, .code_name = 112,
		.code_qualname = OFF_NONE, .code_linetable = 120, .code_adaptive = 48,
		.code_firsttraceable = OFF_NONE, .code_tlbc = OFF_NONE, .code_version = OFF_NONE,
		.code_size = 176,
		.str_length = 16, .str_hash = 24, .str_state = 32, .str_ascii_data = 48,
		.str_compact_data = 72, .bytes_size = 16, .bytes_data = 32,
		.contextvar_hash = 56 } },
	{ .minor = 10, .micro_first = 0, .micro_last = 255, .runtime_bytes = 672, .off = {
		.frame_kind = FRAME_OBJECT, .lines = LINES_DELTAS, .lasti_unit = 2,
		.str_kind_shift = 2, .str_compact_bit = 5, .str_ascii_bit = 6,
		.runtime_interpreters_head = 32, .runtime_tstate_current = 568 + MUTEXES,
		.runtime_gil = 352, .interp_gil = OFF_NONE, .gil_last_holder = 8,
		.interp_next = 0, .interp_threads_head = 8, .interp_id = 24, .interp_modules = 856,
		.runtime_gc_collecting = OFF_NONE, .interp_gc_collecting = 816,
		.interp_gc_frame = OFF_NONE, .interp_eval_frame = OFF_NONE, .tstate_exc_info = 144, .exc_value = 8, .exc_previous = 24,
		.tstate_prev = 0, .tstate_next = 8, .tstate_interp = 16, .tstate_frame = 24,
		.tstate_status = OFF_NONE, .tstate_thread_id = 176,
		.tstate_native_thread_id = OFF_NONE, .tstate_executor = OFF_NONE,
		.tstate_context = 240, .tstate_size = 248, .cframe_current = OFF_NONE, .tstate_cframe = 48,
		.frame_code = 32, .frame_previous = 24, .frame_instr = 96,
		.frame_owner = OFF_NONE, .frame_is_entry = OFF_NONE, .frame_tlbc_index = OFF_NONE,
		.frame_object = OFF_NONE, .frame_size = 104,
		.code_firstlineno = 40, .code_filename = 104, .code_name = 112,
		.code_qualname = OFF_NONE, .code_linetable = 120, .code_adaptive = 48,
		.code_firsttraceable = OFF_NONE, .code_tlbc = OFF_NONE, .code_version = OFF_NONE,
		.code_size = 176,
		.str_length = 16, .str_hash = 24, .str_state = 32, .str_ascii_data = 48,
		.str_compact_data = 72, .bytes_size = 16, .bytes_data = 32,
		.contextvar_hash = 56 } },
	{ .minor = 11, .micro_first = 0, .micro_last = 255, .off = {
		.frame_kind = FRAME_CFRAME, .lines = LINES_LOCATIONS,
		.str_kind_shift = 2, .str_compact_bit = 5, .str_ascii_bit = 6,
		.runtime_interpreters_head = 40, .runtime_tstate_current = 576 + MUTEXES,
		.runtime_gil = 360, .interp_gil = OFF_NONE, .gil_last_holder = 8,
		.interp_next = 0, .interp_threads_head = 16, .interp_id = 48, .interp_modules = 888,
		.runtime_gc_collecting = OFF_NONE, .interp_gc_collecting = 848,
		.interp_gc_frame = OFF_NONE, .interp_eval_frame = 1424, .tstate_exc_info = 120, .exc_value = 0, .exc_previous = 8,
		.tstate_prev = 0, .tstate_next = 8, .tstate_interp = 16, .tstate_frame = 56,
		.tstate_status = OFF_NONE, .tstate_thread_id = 152,
		.tstate_native_thread_id = 160, .tstate_executor = OFF_NONE, .tstate_context = 224, .tstate_size = 232,
		.cframe_current = 8, .tstate_cframe = 56,
		.frame_code = 32, .frame_previous = 48, .frame_instr = 56,
		.frame_owner = 69, .frame_is_entry = 68, .frame_tlbc_index = OFF_NONE,
		.frame_object = 40, .frame_size = 72,
		.code_firstlineno = 72, .code_filename = 112, .code_name = 120,
		.code_qualname = 128, .code_linetable = 136, .code_adaptive = 184,
		.code_firsttraceable = 168, .code_tlbc = OFF_NONE, .code_version = OFF_NONE,
		.code_size = 184,
		.str_length = 16, .str_hash = 24, .str_state = 32, .str_ascii_data = 48,
		.str_compact_data = 72, .bytes_size = 16, .bytes_data = 32,
		.contextvar_hash = 56 } },
	{ .minor = 12, .micro_first = 0, .micro_last = 255, .off = {
		.frame_kind = FRAME_CFRAME, .lines = LINES_LOCATIONS,
		.owner_boundary = 3, .status_bound_gilstate = 8, .status_active = 16,
		.str_kind_shift = 2, .str_compact_bit = 5, .str_ascii_bit = 6,
		.runtime_interpreters_head = 40, .runtime_tstate_current = OFF_NONE,
		.runtime_gil = OFF_NONE, .interp_gil = 384, .gil_last_holder = 8,
		.interp_next = 0, .interp_threads_head = 72, .interp_id = 8, .interp_modules = 944,
		.runtime_gc_collecting = OFF_NONE, .interp_gc_collecting = 312,
		.interp_gc_frame = OFF_NONE, .interp_eval_frame = 1744, .tstate_exc_info = 104, .exc_value = 0, .exc_previous = 8,
		.tstate_prev = 0, .tstate_next = 8, .tstate_interp = 16, .tstate_frame = 56,
		.tstate_status = 24, .tstate_thread_id = 136,
		.tstate_native_thread_id = 144, .tstate_executor = OFF_NONE, .tstate_context = 208, .tstate_size = 216,
		.cframe_current = 0, .tstate_cframe = 56,
		.frame_code = 0, .frame_previous = 8, .frame_instr = 56,
		.frame_owner = 70, .frame_is_entry = OFF_NONE, .frame_tlbc_index = OFF_NONE,
		.frame_object = 48, .frame_size = 72,
		.code_firstlineno = 68, .code_filename = 112, .code_name = 120,
		.code_qualname = 128, .code_linetable = 136, .code_adaptive = 192,
		.code_firsttraceable = 176, .code_tlbc = OFF_NONE, .code_version = 92,
		.code_size = 192,
		.str_length = 16, .str_hash = 24, .str_state = 32, .str_ascii_data = 40,
		.str_compact_data = 56, .bytes_size = 16, .bytes_data = 32,
		.contextvar_hash = 56 } },
};
/* clang-format on */

void version_format(uint32_t hex, char out[VERSION_TEXT_BYTES])
{
	static const char *const levels[16] = { [0xa] = "a", [0xb] = "b", [0xc] = "rc" };
	const char *level = levels[VERSION_LEVEL(hex)];
	int n = snprintf(out, VERSION_TEXT_BYTES, "%u.%u.%u", VERSION_MAJOR(hex),
			 VERSION_MINOR(hex), VERSION_MICRO(hex));

	if (level && n < VERSION_TEXT_BYTES)
		snprintf(out + n, VERSION_TEXT_BYTES - n, "%s%u", level, hex & 0xf);
}

int offsets_find(uint32_t version, uint64_t runtime_bytes, bool has_trace_refs,
		 struct py_offsets *out)
{
	const struct offsets_row *row = rows, *end = rows + sizeof(rows) / sizeof(*rows);
	char text[VERSION_TEXT_BYTES];
	bool is_known = false;

	version_format(version, text);
	for (; row < end; row++) {
		if (VERSION_MAJOR(version) != 3 || VERSION_MINOR(version) != row->minor ||
		    VERSION_MICRO(version) < row->micro_first ||
		    VERSION_MICRO(version) > row->micro_last)
			continue;
		is_known = true;
		if (has_trace_refs == row->off.is_debug)
			break;
	}
	if (!is_known)
		return err_set(-ENOTSUP, "CPython %s is not supported", text);
	if (VERSION_LEVEL(version) < VERSION_LEVEL_CANDIDATE)
		return err_set(-ENOTSUP, "CPython %s is a pre-release: not supported", text);
	if (row == end)
		return err_set(-ENOTSUP, "CPython %s built with trace-refs is not supported", text);
	if (row->runtime_bytes && runtime_bytes && runtime_bytes != row->runtime_bytes &&
	    runtime_bytes != row->runtime_bytes + MUTEXES)
		return err_set(-EBADMSG,
			       "unknown build of CPython %s: its _PyRuntime takes %llu bytes, "
			       "not %llu",
			       text, (unsigned long long)runtime_bytes,
			       (unsigned long long)row->runtime_bytes + MUTEXES);
	*out = row->off;
	if (runtime_bytes && runtime_bytes == row->runtime_bytes) /* musl's mutexes take 40 */
		out->runtime_tstate_current -= MUTEXES;
	out->minor = VERSION_MINOR(version);
	out->micro = VERSION_MICRO(version);
	return 0;
}

/* What a field must satisfy. */
struct field_rule {
	const char *name;
	uint16_t offset; /* in struct py_offsets */
	uint8_t bytes;   /* 2 or 4: its width there */
	uint8_t align;   /* what is read there: 8, 4 or 1 bytes */
	uint32_t limit;  /* the read ends here */
	bool is_needed;  /* OFF_NONE will not do */
};

static int rule_check(const struct py_offsets *off, const struct field_rule *rule)
{
	uint32_t value = 0;

	memcpy(&value, (const char *)off + rule->offset, rule->bytes);
	if (value == OFF_NONE) /* no offset: odd, and behind all that is read of single bytes */
		return rule->is_needed ? -EBADMSG : 0;
	if (value % rule->align || value > rule->limit || rule->align > rule->limit - value)
		return -EBADMSG;
	return 0;
}

int offsets_check(const struct py_offsets *off)
{
	const bool is_object = off->frame_kind == FRAME_OBJECT;
	const bool is_cframe = off->frame_kind == FRAME_CFRAME;
/* clang-format off */
#define RULE(field, align, limit, is_needed) \
	{ #field, offsetof(struct py_offsets, field), sizeof(off->field), align, limit, is_needed }
	const struct field_rule rules[] = {
		RULE(runtime_interpreters_head, 8, 32768, true),
		RULE(runtime_tstate_current, 8, 32768, false),
		RULE(interp_next, 8, INTERP_BYTES, true),
		RULE(interp_threads_head, 8, INTERP_BYTES, true),
		RULE(interp_id, 8, INTERP_BYTES, off->minor > 6),
		RULE(interp_code_generation, 8, INTERP_BYTES, false),
		RULE(interp_modules, 8, INTERP_BYTES, true),
		RULE(runtime_gil, 8, 32768, false),
		RULE(interp_gil, 8, INTERP_BYTES, false),
		RULE(gil_last_holder, 8, GIL_BYTES, off->minor > 6),
		RULE(interp_gc_collecting, 4, INTERP_BYTES, false),
		RULE(interp_gc_frame, 8, INTERP_BYTES, false),
		RULE(interp_eval_frame, 8, INTERP_BYTES, false),
		RULE(runtime_gc_collecting, 4, 32768, false),
		RULE(tstate_prev, 8, off->tstate_size, true),
		RULE(tstate_next, 8, off->tstate_size, true),
		RULE(tstate_interp, 8, off->tstate_size, true),
		RULE(tstate_frame, 8, off->tstate_size, true),
		RULE(tstate_status, 4, off->tstate_size,
		     off->status_bound_gilstate || off->status_active),
		RULE(tstate_thread_id, 8, off->tstate_size, true),
		RULE(tstate_native_thread_id, 8, off->tstate_size, false),
		RULE(tstate_executor, 8, off->tstate_size, false),
		RULE(tstate_exc_info, 8, off->tstate_size, false),
		RULE(tstate_context, 8, off->tstate_size, false),
		RULE(exc_value, 8, EXC_ITEM_BYTES, off->tstate_exc_info != OFF_NONE),
		RULE(exc_previous, 8, EXC_ITEM_BYTES, off->tstate_exc_info != OFF_NONE),
		RULE(tstate_size, 1, TSTATE_BYTES + 1, true),
		RULE(cframe_current, 8, 64, is_cframe),
		RULE(tstate_cframe, 8, off->tstate_size, false),
		RULE(frame_code, 8, off->frame_size, true),
		RULE(frame_previous, 8, off->frame_size, true),
		RULE(frame_instr, is_object ? 4 : 8, off->frame_size, true),
		RULE(frame_object, 8, off->frame_size, false),
		RULE(frame_owner, 1, off->frame_size, !is_object),
		RULE(frame_is_entry, 1, off->frame_size, !is_object && !off->owner_boundary),
		RULE(frame_tlbc_index, 4, off->frame_size, false),
		RULE(code_firstlineno, 4, off->code_size, true),
		RULE(code_filename, 8, off->code_size, true),
		RULE(code_name, 8, off->code_size, true),
		RULE(code_qualname, 8, off->code_size, !is_object),
		RULE(code_linetable, 8, off->code_size, true),
		RULE(code_adaptive, 8, is_object ? off->code_size : CODE_BYTES + 8, true),
		RULE(code_firsttraceable, 4, off->code_size, false),
		RULE(code_tlbc, 8, off->code_size, false),
		RULE(code_version, 4, off->code_size, false),
		RULE(frame_size, 1, FRAME_BYTES + 1, true),
		RULE(code_size, 1, CODE_BYTES + 1, true),
		RULE(str_length, 8, off->str_ascii_data, true),
		RULE(str_hash, 8, off->str_ascii_data, true),
		RULE(str_state, 4, off->str_ascii_data, true),
		RULE(str_ascii_data, 8, STRING_BYTES, true),
		RULE(str_compact_data, 8, STRING_BYTES, true),
		RULE(bytes_size, 8, off->bytes_data, true),
		RULE(bytes_data, 8, STRING_BYTES, true),
		RULE(contextvar_hash, 8, CONTEXTVAR_BYTES, false),
	};
#undef RULE
	/* clang-format on */

	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		if (rule_check(off, &rules[i]) < 0)
			return err_set(-EBADMSG, "offset %s out of bounds", rules[i].name);
	if (off->str_kind_shift > 29 || off->str_compact_bit > 31 || off->str_ascii_bit > 31)
		return err_set(-EBADMSG, "string state bits out of bounds");
	return 0;
}
