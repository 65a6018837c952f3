/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/debug_offsets.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "target/offsets.h"

#define COOKIE "xdebugpy" /* _Py_Debug_Cookie */
#define VERSION_AT 8
#define FREE_THREADED_AT 16

/* What a size may be at most. Real ones: 0.4 MB, 0.4 MB, 888, 88, 240, 72. */
#define RUNTIME_SIZE_MAX (64u << 20)
#define INTERP_SIZE_MAX (1u << 20)
#define TSTATE_SIZE_MAX 8192
#define FRAME_SIZE_MAX 512
#define CODE_SIZE_MAX 512
#define STR_SIZE_MAX 512
#define GIL_SIZE_MAX 256 /* 208, free-threaded 216 */
#define GC_SIZE_MAX 4096 /* 216 to 256 */
/* interpreters.head follows the table, behind a few flags: 48 bytes in 3.13 to 3.15. */
#define INTERPRETERS_HEAD_MAX 256

/* clang-format off */
static const struct debug_shape shapes[] = {
	{ .minor = 13, .bytes = 584,
	  .runtime_size = 24, .interpreters_head = 40,
	  .interp_size = 48, .interp_id = 56, .interp_next = 64, .interp_threads_head = 72,
	  .interp_modules = 88, .interp_gil = 112, .interp_own_gil = 120,
	  .interp_own_gil_holder = 144,
	  .interp_gc = 80, .gc_size = 568, .gc_collecting = 576,
	  .tstate_size = 152, .tstate_prev = 160, .tstate_next = 168, .tstate_interp = 176,
	  .tstate_current_frame = 184, .tstate_thread_id = 192, .tstate_native_thread_id = 200,
	  .tstate_status = 216,
	  .frame_size = 224, .frame_previous = 232, .frame_executable = 240,
	  .frame_instr_ptr = 248, .frame_localsplus = 256, .frame_owner = 264,
	  .code_size = 272, .code_filename = 280, .code_name = 288, .code_qualname = 296,
	  .code_linetable = 304, .code_firstlineno = 312, .code_adaptive = 344,
	  .object_size = 352, .bytes_size = 520, .bytes_data = 528,
	  .str_size = 536, .str_state = 544, .str_length = 552, .str_ascii_size = 560 },
	{ .minor = 14, .bytes = 760,
	  .runtime_size = 24, .interpreters_head = 40,
	  .interp_size = 48, .interp_id = 56, .interp_next = 64, .interp_threads_head = 72,
	  .interp_modules = 96, .interp_gil = 120, .interp_own_gil = 128,
	  .interp_own_gil_holder = 152,
	  .interp_code_generation = 160,
	  .interp_gc = 88, .gc_size = 648, .gc_collecting = 656,
	  .tstate_size = 176, .tstate_prev = 184, .tstate_next = 192, .tstate_interp = 200,
	  .tstate_current_frame = 208, .tstate_thread_id = 216, .tstate_native_thread_id = 224,
	  .tstate_status = 240,
	  .frame_size = 248, .frame_previous = 256, .frame_executable = 264,
	  .frame_instr_ptr = 272, .frame_localsplus = 280, .frame_owner = 288,
	  .frame_tlbc_index = 304,
	  .code_size = 312, .code_filename = 320, .code_name = 328, .code_qualname = 336,
	  .code_linetable = 344, .code_firstlineno = 352, .code_adaptive = 384, .code_tlbc = 392,
	  .object_size = 400, .bytes_size = 600, .bytes_data = 608,
	  .str_size = 616, .str_state = 624, .str_length = 632, .str_ascii_size = 640 },
	{ .minor = 15, .bytes = 888,
	  .runtime_size = 24, .interpreters_head = 40,
	  .interp_size = 48, .interp_id = 56, .interp_next = 64, .interp_threads_head = 72,
	  .interp_modules = 96, .interp_gil = 120, .interp_own_gil = 128,
	  .interp_own_gil_holder = 152,
	  .interp_code_generation = 160,
	  .interp_gc = 88, .gc_size = 752, .gc_collecting = 760, .gc_frame = 768,
	  .tstate_size = 176, .tstate_prev = 184, .tstate_next = 192, .tstate_interp = 200,
	  .tstate_current_frame = 208, .tstate_thread_id = 240, .tstate_native_thread_id = 248,
	  .tstate_status = 264,
	  .frame_size = 312, .frame_previous = 320, .frame_executable = 328,
	  .frame_instr_ptr = 336, .frame_localsplus = 344, .frame_owner = 352,
	  .frame_tlbc_index = 368,
	  .code_size = 376, .code_filename = 384, .code_name = 392, .code_qualname = 400,
	  .code_linetable = 408, .code_firstlineno = 416, .code_adaptive = 448, .code_tlbc = 456,
	  .object_size = 464, .bytes_size = 696, .bytes_data = 704,
	  .str_size = 712, .str_state = 720, .str_length = 728, .str_ascii_size = 736,
	  .str_compact_size = 744 },
};

/* What the table does not say. In an unknown version the offsets are left out. */
static const struct unsaid_row {
	uint8_t minor;
	bool is_free_threaded;
	uint8_t tagged_mask, str_kind_shift, str_compact_bit, str_ascii_bit;
	uint16_t frame_object, code_firsttraceable, code_version;
	uint16_t tstate_executor, tstate_exc_info, tstate_context, contextvar_hash;
	uint16_t interp_eval_frame;
	uint32_t debug_runtime; /* debug builds have 8 bytes more in front of it, and a _PyRuntime of this
				   size at least */
} unsaid[] = {
	{ 13, false, .tagged_mask = 0, .str_kind_shift = 2, .str_compact_bit = 5, .str_ascii_bit = 6,
	  .frame_object = 48, .code_firsttraceable = 184, .code_version = 92, .tstate_executor = OFF_NONE,
	  .tstate_exc_info = 120, .tstate_context = 208, .contextvar_hash = 56, .interp_eval_frame = 8472, .debug_runtime = 290000 },
	{ 13, true, .tagged_mask = 0, .str_kind_shift = 2, .str_compact_bit = 5, .str_ascii_bit = 6,
	  .frame_object = 48, .code_firsttraceable = 200, .code_version = 108, .tstate_executor = OFF_NONE,
	  .tstate_exc_info = 120, .tstate_context = 208, .contextvar_hash = 48, .interp_eval_frame = 8488, .debug_runtime = 340000 },
	{ 14, false, .tagged_mask = 3, .str_kind_shift = 2, .str_compact_bit = 5, .str_ascii_bit = 6,
	  .frame_object = 48, .code_firsttraceable = 192, .code_version = 92, .tstate_executor = 272,
	  .tstate_exc_info = 120, .tstate_context = 208, .contextvar_hash = 56, .interp_eval_frame = 8520, .debug_runtime = 325000 },
	{ 14, true, .tagged_mask = 1, .str_kind_shift = 8, .str_compact_bit = 11, .str_ascii_bit = 12,
	  .frame_object = 48, .code_firsttraceable = 208, .code_version = 108, .tstate_executor = 272,
	  .tstate_exc_info = 120, .tstate_context = 208, .contextvar_hash = 48, .interp_eval_frame = 8560, .debug_runtime = 374000 },
	{ 15, false, .tagged_mask = 3, .str_kind_shift = 2, .str_compact_bit = 5, .str_ascii_bit = 6,
	  .frame_object = 48, .code_firsttraceable = 192, .code_version = 92, .tstate_executor = 304,
	  .tstate_exc_info = 144, .tstate_context = 232, .contextvar_hash = 56, .interp_eval_frame = 8472, .debug_runtime = 355000 },
	{ 15, true, .tagged_mask = 3, .str_kind_shift = 8, .str_compact_bit = 11, .str_ascii_bit = 12,
	  .frame_object = 48, .code_firsttraceable = 208, .code_version = 108, .tstate_executor = 304,
	  .tstate_exc_info = 144, .tstate_context = 232, .contextvar_hash = 48, .interp_eval_frame = 8488, .debug_runtime = 418000 },
};
/* clang-format on */

#define SHAPES (sizeof(shapes) / sizeof(*shapes))

const struct debug_shape *debug_shape_find(unsigned minor)
{
	for (size_t i = 0; i < SHAPES; i++)
		if (shapes[i].minor == minor)
			return &shapes[i];
	return NULL;
}

static const struct unsaid_row *unsaid_find(unsigned minor, bool is_free_threaded)
{
	for (size_t i = 0; i < sizeof(unsaid) / sizeof(*unsaid); i++)
		if (unsaid[i].minor == minor && unsaid[i].is_free_threaded == is_free_threaded)
			return &unsaid[i];
	return NULL;
}

static uint64_t word(const void *bytes, size_t at)
{
	uint64_t value;

	memcpy(&value, (const char *)bytes + at, sizeof(value));
	return value;
}

bool debug_offsets_version(const void *bytes, size_t len, uint32_t *version)
{
	if (len < DEBUG_OFFSETS_HEAD || memcmp(bytes, COOKIE, sizeof(COOKIE) - 1) ||
	    word(bytes, VERSION_AT) > UINT32_MAX)
		return false;
	*version = word(bytes, VERSION_AT);
	return true;
}

/* A field of a struct: its offset, its own size, and the size of the struct it must fit in. */
struct member {
	const char *name;
	uint16_t at;   /* of the number in the table, 0: not there, left alone */
	uint8_t bytes; /* of the field */
	uint16_t to;   /* in struct py_offsets */
	uint8_t to_bytes;
	uint64_t first, end; /* the field lies in here */
};

static int copy_member(const void *bytes, const struct member *m, struct py_offsets *out)
{
	uint64_t value;
	uint32_t narrow;

	if (!m->at)
		return 0;
	value = word(bytes, m->at);
	if (value < m->first || value > m->end || m->bytes > m->end - value || value % m->bytes ||
	    (m->to_bytes == 2 && value >= OFF_NONE))
		return err_set(-EBADMSG, "_Py_DebugOffsets: %s is %llu", m->name,
			       (unsigned long long)value);
	narrow = value; /* little-endian, as all we read */
	memcpy((char *)out + m->to, &narrow, m->to_bytes);
	return 0;
}

static int check_size(const char *name, uint64_t size, uint64_t least, uint64_t most)
{
	if (size >= least && size <= most && size % 8 == 0)
		return 0;
	return err_set(-EBADMSG, "_Py_DebugOffsets: the size of %s is %llu", name,
		       (unsigned long long)size);
}

/* The collector's state is a struct in PyInterpreterState. */
static int read_collector(const void *bytes, const struct debug_shape *s, uint64_t interp,
			  struct py_offsets *out)
{
	const uint64_t gc = word(bytes, s->interp_gc), size = word(bytes, s->gc_size);
	const uint64_t collecting = word(bytes, s->gc_collecting);
	const uint64_t frame = s->gc_frame ? word(bytes, s->gc_frame) : 0;

	if (size < 16 || size > GC_SIZE_MAX || gc > interp - size || gc % 8 ||
	    collecting > size - 4 || collecting % 4 || frame > size - 8 || frame % 8)
		return err_set(-EBADMSG,
			       "_Py_DebugOffsets: collecting is %llu, frame %llu, in %llu bytes at "
			       "%llu",
			       (unsigned long long)collecting, (unsigned long long)frame,
			       (unsigned long long)size, (unsigned long long)gc);
	out->interp_gc_collecting = (uint32_t)(gc + collecting);
	if (frame)
		out->interp_gc_frame = (uint32_t)(gc + frame);
	return 0;
}

static int read_table(const void *bytes, const struct debug_shape *s, bool is_free_threaded,
		      struct py_offsets *out)
{
	const uint64_t runtime = word(bytes, s->runtime_size);
	const uint64_t interp = word(bytes, s->interp_size);
	const uint64_t own_gil = word(bytes, s->interp_own_gil);
	const uint64_t tstate = word(bytes, s->tstate_size);
	const uint64_t frame = word(bytes, s->frame_size);
	const uint64_t localsplus = word(bytes, s->frame_localsplus);
	const uint64_t code = word(bytes, s->code_size);
	const uint64_t adaptive = word(bytes, s->code_adaptive);
	const uint64_t object = word(bytes, s->object_size);
	const uint64_t ascii = word(bytes, s->str_ascii_size);
	const uint64_t compact =
		s->str_compact_size ? word(bytes, s->str_compact_size) : ascii + 16;
	int r = 0;
/* clang-format off */
#define MEMBER(from, to, size, first, end) \
	{ #from, s->from, size, offsetof(struct py_offsets, to), sizeof(out->to), first, end }
	const struct member members[] = {
		MEMBER(interpreters_head, runtime_interpreters_head, 8, s->bytes,
		       s->bytes + INTERPRETERS_HEAD_MAX),
		MEMBER(interp_id, interp_id, 8, 0, interp),
		MEMBER(interp_next, interp_next, 8, 0, interp),
		MEMBER(interp_threads_head, interp_threads_head, 8, 0, interp),
		MEMBER(interp_modules, interp_modules, 8, 8, interp),
		MEMBER(interp_gil, interp_gil, 8, 8, interp),
		MEMBER(interp_own_gil_holder, gil_last_holder, 8, own_gil + 8, own_gil + GIL_SIZE_MAX),
		MEMBER(interp_code_generation, interp_code_generation, 8, 8, interp),
		MEMBER(tstate_prev, tstate_prev, 8, 0, tstate),
		MEMBER(tstate_next, tstate_next, 8, 0, tstate),
		MEMBER(tstate_interp, tstate_interp, 8, 0, tstate),
		MEMBER(tstate_current_frame, tstate_frame, 8, 0, tstate),
		MEMBER(tstate_thread_id, tstate_thread_id, 8, 0, tstate),
		MEMBER(tstate_native_thread_id, tstate_native_thread_id, 8, 0, tstate),
		MEMBER(tstate_status, tstate_status, 4, 0, tstate),
		MEMBER(frame_previous, frame_previous, 8, 0, localsplus),
		MEMBER(frame_executable, frame_code, 8, 0, localsplus),
		MEMBER(frame_instr_ptr, frame_instr, 8, 0, localsplus),
		MEMBER(frame_owner, frame_owner, 1, 0, localsplus),
		MEMBER(frame_localsplus, frame_size, 8, 8, frame),
		MEMBER(code_filename, code_filename, 8, object, adaptive),
		MEMBER(code_name, code_name, 8, object, adaptive),
		MEMBER(code_qualname, code_qualname, 8, object, adaptive),
		MEMBER(code_linetable, code_linetable, 8, object, adaptive),
		MEMBER(code_firstlineno, code_firstlineno, 4, object, adaptive),
		MEMBER(code_adaptive, code_adaptive, 8, object, code),
		MEMBER(code_adaptive, code_size, 8, object, code),
		MEMBER(bytes_size, bytes_size, 8, object, object + 8),
		MEMBER(bytes_data, bytes_data, 8, object + 8, object + 32),
		MEMBER(str_length, str_length, 8, object, object + 8),
		MEMBER(str_state, str_state, 4, object + 16, ascii),
	};
	const struct member free_threaded_members[] = {
		MEMBER(frame_tlbc_index, frame_tlbc_index, 4, 0, localsplus),
		MEMBER(code_tlbc, code_tlbc, 8, object, adaptive),
	};
#undef MEMBER
	/* clang-format on */

	if (check_size("_PyRuntime", runtime, s->bytes + 64, RUNTIME_SIZE_MAX) < 0 ||
	    check_size("PyInterpreterState", interp, 1024, INTERP_SIZE_MAX) < 0 ||
	    check_size("PyThreadState", tstate, 256, TSTATE_SIZE_MAX) < 0 ||
	    check_size("_PyInterpreterFrame", frame, 64, FRAME_SIZE_MAX) < 0 ||
	    check_size("PyCodeObject", code, 128, CODE_SIZE_MAX) < 0 ||
	    check_size("PyObject", object, is_free_threaded ? 32 : 16, is_free_threaded ? 32 : 16) <
		    0 ||
	    check_size("PyASCIIObject", ascii, object + 24, STR_SIZE_MAX) < 0 ||
	    check_size("PyCompactUnicodeObject", compact, ascii + 8, STR_SIZE_MAX) < 0 ||
	    check_size("PyUnicodeObject", word(bytes, s->str_size), compact, STR_SIZE_MAX) < 0)
		return -EBADMSG;
	for (size_t i = 0; !r && i < sizeof(members) / sizeof(*members); i++)
		r = copy_member(bytes, &members[i], out);
	for (size_t i = 0; !r && is_free_threaded &&
			   i < sizeof(free_threaded_members) / sizeof(*free_threaded_members);
	     i++)
		r = copy_member(bytes, &free_threaded_members[i], out);
	out->gil_last_holder -= own_gil;
	if (!r)
		r = read_collector(bytes, s, interp, out);
	out->runtime_size = (uint32_t)runtime;
	out->str_ascii_data = ascii;
	out->str_compact_data = compact;
	out->str_hash = out->str_length + 8; /* PyASCIIObject: length, hash, state */
	return r;
}

static int check_distinct(const char *name, const uint16_t *offsets, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < i; j++)
			if (offsets[i] == offsets[j])
				return err_set(-EBADMSG, "_Py_DebugOffsets: two fields of %s at %u",
					       name, offsets[i]);
	return 0;
}

/* Two pointers cannot share a place. */
static int check_overlaps(const struct py_offsets *off)
{
	const uint16_t tstate[] = { off->tstate_prev,      off->tstate_next,
				    off->tstate_interp,    off->tstate_frame,
				    off->tstate_thread_id, off->tstate_native_thread_id,
				    off->tstate_status };
	const uint16_t frame[] = { off->frame_previous, off->frame_code, off->frame_instr };
	const uint16_t code[] = { off->code_filename, off->code_name, off->code_qualname,
				  off->code_linetable };

	if (check_distinct("PyThreadState", tstate, sizeof(tstate) / sizeof(*tstate)) < 0 ||
	    check_distinct("_PyInterpreterFrame", frame, sizeof(frame) / sizeof(*frame)) < 0 ||
	    check_distinct("PyCodeObject", code, sizeof(code) / sizeof(*code)) < 0)
		return -EBADMSG;
	return 0;
}

/* How much of PyThreadState has to be read. */
static uint16_t tstate_end(const struct py_offsets *off)
{
	const uint16_t fields[] = { off->tstate_prev,      off->tstate_next,
				    off->tstate_interp,    off->tstate_frame,
				    off->tstate_thread_id, off->tstate_native_thread_id,
				    off->tstate_status,    off->tstate_executor,
				    off->tstate_exc_info,  off->tstate_context };
	uint16_t end = 0;

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		if (fields[i] != OFF_NONE && fields[i] + 8 > end)
			end = fields[i] + 8;
	return end;
}

int debug_offsets_parse(const void *bytes, size_t len, struct py_offsets *out)
{
	struct py_offsets off = {
		.frame_kind = FRAME_INTERNAL,
		.lines = LINES_LOCATIONS,
		.owner_boundary = 3,        /* FRAME_OWNED_BY_CSTACK, from 3.14 _BY_INTERPRETER */
		.status_bound_gilstate = 8, /* bit-fields of PyThreadState._status */
		.status_active = 16,
		.runtime_tstate_current = OFF_NONE,
		.runtime_gil = OFF_NONE,
		.runtime_gc_collecting = OFF_NONE,
		.interp_gc_collecting = OFF_NONE,
		.interp_gc_frame = OFF_NONE,
		.interp_eval_frame = OFF_NONE,
		.tstate_executor = OFF_NONE,
		.tstate_exc_info = OFF_NONE,
		.tstate_context = OFF_NONE,
		.contextvar_hash = OFF_NONE,
		.exc_value = 0, /* _PyErr_StackItem */
		.exc_previous = 8,
		.cframe_current = OFF_NONE,
		.frame_object = OFF_NONE,
		.frame_is_entry = OFF_NONE,
		.frame_tlbc_index = OFF_NONE,
		.code_tlbc = OFF_NONE,
		.code_firsttraceable = OFF_NONE,
		.code_version = OFF_NONE,
	};
	const struct debug_shape *shape, *newest = &shapes[SHAPES - 1];
	const struct unsaid_row *row;
	char text[VERSION_TEXT_BYTES], why[128];
	uint64_t free_threaded;
	uint32_t version;
	bool is_known;
	int r;

	if (!debug_offsets_version(bytes, len, &version))
		return err_set(-ENODATA, "no _Py_DebugOffsets");
	version_format(version, text);
	shape = debug_shape_find(VERSION_MINOR(version));
	if (!shape && VERSION_MINOR(version) > newest->minor)
		shape = newest;
	if (VERSION_MAJOR(version) != 3 || !shape)
		return err_set(-ENOTSUP, "CPython %s: not a version with _Py_DebugOffsets", text);
	if (len < shape->bytes)
		return err_set(-EBADMSG, "CPython %s: _Py_DebugOffsets is cut", text);
	free_threaded = word(bytes, FREE_THREADED_AT);
	if (free_threaded > 1)
		return err_set(-EBADMSG, "CPython %s: _Py_DebugOffsets: free_threaded is %llu",
			       text, (unsigned long long)free_threaded);
	is_known = shape->minor == VERSION_MINOR(version) &&
		   VERSION_LEVEL(version) >= VERSION_LEVEL_CANDIDATE;

	r = read_table(bytes, shape, free_threaded, &off);
	if (!r)
		r = check_overlaps(&off);
	row = unsaid_find(shape->minor, free_threaded);
	off.minor = VERSION_MINOR(version);
	off.micro = VERSION_MICRO(version);
	off.is_free_threaded = free_threaded;
	off.is_best_effort = !is_known;
	off.tagged_mask = row->tagged_mask;
	off.str_kind_shift = row->str_kind_shift;
	off.str_compact_bit = row->str_compact_bit;
	off.str_ascii_bit = row->str_ascii_bit;
	if (is_known) {
		off.frame_object = row->frame_object;
		off.code_firsttraceable = row->code_firsttraceable;
		off.code_version = row->code_version;
		off.tstate_executor = row->tstate_executor;
		off.tstate_exc_info = row->tstate_exc_info;
		off.tstate_context = row->tstate_context;
		off.interp_eval_frame =
			row->interp_eval_frame + (off.runtime_size >= row->debug_runtime ? 8 : 0);
		off.contextvar_hash = row->contextvar_hash;
	}
	off.tstate_size = tstate_end(&off);
	if (!r)
		r = offsets_check(&off);
	if (r < 0 && !is_known) {
		snprintf(why, sizeof(why), "%s", err_message(r));
		return err_set(-ENOTSUP, "CPython %s is not supported: %s", text, why);
	}
	if (r < 0)
		return err_wrap(r, "CPython %s", text);
	*out = off;
	return 0;
}
