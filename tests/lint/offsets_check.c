/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Compares the layout that pyebpf uses for one CPython with that CPython's own headers, field by
 * field. Compiled against each by offsets_check.py; links user/target/offsets.c and
 * debug_offsets.c. A field of struct py_offsets that is not named here does not compile.
 */
#define Py_BUILD_CORE 1
#include "Python.h"
#include "frameobject.h"
#include "datetime.h"
#if PY_MINOR_VERSION == 7
#include "internal/context.h"
#include "internal/pystate.h"
#elif PY_MINOR_VERSION >= 8
#include "internal/pycore_context.h"
#include "internal/pycore_pystate.h"
#endif
#if PY_MINOR_VERSION >= 9
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"
#endif
#if PY_MINOR_VERSION >= 11
#include "internal/pycore_moduleobject.h"
#include "internal/pycore_code.h"
#include "internal/pycore_dict.h"
#include "internal/pycore_frame.h"
#include "internal/pycore_object.h"
#endif
#if PY_MINOR_VERSION == 13
#include "internal/pycore_ceval.h"
#include "internal/pycore_runtime_init.h"
#endif
#if PY_MINOR_VERSION >= 14
#include "internal/pycore_debug_offsets.h"
#include "internal/pycore_interpframe.h"
#include "internal/pycore_stackref.h"
#endif

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#undef WAIT_LOCK     /* of pythread.h */
#define stat stat_id /* an enum there, a struct in <sys/stat.h>, which Python.h includes */
#undef WAIT_LOCK     /* of pythread.h; an enum there */
#include "bpf/context_layout.h"
#include "bpf/events.h"
#undef stat
#include "base/err.h"
#include "inspect/task_layout.h"
#include "inspect/value_stack.h"
#include "target/debug_offsets.h"
#include "target/object.h"
#include "target/offsets.h"

#ifdef Py_GIL_DISABLED
#define FREE_THREADED 1
#else
#define FREE_THREADED 0
#endif

#if PY_MINOR_VERSION == 11 || PY_MINOR_VERSION == 12
_Static_assert(offsetof(_PyInterpreterFrame, stacktop) ==
		       offsetof(_PyInterpreterFrame, prev_instr) + 8,
	       "py_opcode_of_cframe() reads what follows prev_instr");
#endif

#if PY_MINOR_VERSION >= 8 && !FREE_THREADED
#define TO_COLLECTING(member)                             \
	(offsetof(struct _gc_runtime_state, collecting) - \
	 offsetof(struct _gc_runtime_state, member))
_Static_assert((TO_COLLECTING(generations) == GC_LISTS_TO_COLLECTING(PY_MINOR_VERSION) ||
		TO_COLLECTING(generations) ==
			GC_LISTS_TO_COLLECTING(PY_MINOR_VERSION) + GC_LISTS_ALIGNED_LESS) &&
		       TO_COLLECTING(permanent_generation) ==
			       GC_FROZEN_TO_COLLECTING(PY_MINOR_VERSION) &&
		       sizeof(struct gc_generation) == GC_GENERATION_BYTES &&
		       NUM_GENERATIONS == GC_GENERATIONS,
	       "the collector's lists");
#endif
#if PY_MINOR_VERSION >= 11
_Static_assert(offsetof(PyFrameObject, f_frame) == sizeof(PyObject) + 8, "f_frame");
_Static_assert(offsetof(PyFrameObject, f_lineno) == sizeof(PyObject) + 24, "FRAME_OBJECT_LINENO");
#else
_Static_assert(offsetof(PyFrameObject, f_lineno) == offsetof(PyFrameObject, f_lasti) + 4,
	       "py_line() reads what follows f_lasti");
#endif

/* clang-format off */
#define FIELDS(X)                                                                         \
	X(minor) X(micro) X(is_free_threaded) X(is_debug) X(frame_kind) X(lines)          \
	X(lasti_unit) X(owner_boundary) X(tagged_mask) X(status_bound_gilstate)           \
	X(status_active) X(is_best_effort) X(str_kind_shift) X(str_compact_bit)           \
	X(str_ascii_bit) X(is_jit)                                                        \
	X(runtime_interpreters_head) X(runtime_tstate_current)                            \
	X(interp_next) X(interp_threads_head) X(interp_id) X(interp_code_generation)      \
	X(interp_modules) X(interp_gil) X(runtime_gil) X(gil_last_holder)                 \
	X(interp_gc_collecting) X(interp_gc_frame) X(interp_eval_frame)                   \
	X(runtime_size)                                                                   \
	X(tstate_prev) X(tstate_next) X(tstate_interp) X(tstate_frame) X(tstate_status)   \
	X(tstate_thread_id) X(tstate_native_thread_id) X(tstate_executor)                 \
	X(tstate_exc_info) X(tstate_context) X(tstate_size) X(cframe_current) X(tstate_cframe) X(exc_value) X(exc_previous)  \
	X(runtime_gc_collecting)                                                          \
	X(frame_code) X(frame_previous) X(frame_instr) X(frame_object) X(frame_owner)     \
	X(frame_is_entry)                                                                 \
	X(frame_tlbc_index) X(frame_size)                                                 \
	X(code_firstlineno) X(code_filename) X(code_name) X(code_qualname)                \
	X(code_linetable) X(code_adaptive) X(code_firsttraceable) X(code_tlbc)            \
	X(code_version) X(code_size)                                                      \
	X(str_length) X(str_hash) X(str_state) X(str_ascii_data) X(str_compact_data)      \
	X(bytes_size) X(bytes_data) X(contextvar_hash) X(pthread_bytes) X(pthread_tid)
/* clang-format on */

#define SIZE(field) +sizeof(((struct py_offsets *)0)->field)
/* The last of it, where objects have what is in them, is user/target/object.c's to fill in. */
_Static_assert(0 FIELDS(SIZE) == offsetof(struct py_offsets, objects),
	       "a field is missing in FIELDS");

_Static_assert(offsetof(PyTypeObject, tp_name) == sizeof(PyObject) + 8 &&
		       offsetof(PyObject, ob_type) == sizeof(PyObject) - 8,
	       "py_is_none() counts from sizeof(PyObject)");

#if PY_MINOR_VERSION >= 7
/* What bpf/python_context.h counts from sizeof(PyObject). */
#define BEHIND_HEAD(type, member, at) \
	_Static_assert(offsetof(type, member) == sizeof(PyObject) + (at), #member)
BEHIND_HEAD(PyContext, ctx_vars, CONTEXT_VARS);
BEHIND_HEAD(PyContextVar, var_name, CONTEXTVAR_NAME);
BEHIND_HEAD(PyHamtObject, h_root, HAMT_ROOT);
BEHIND_HEAD(PyTypeObject, tp_name, TYPE_NAME);
BEHIND_HEAD(PyTypeObject, tp_flags, TYPE_FLAGS);
BEHIND_HEAD(PyTypeObject, tp_basicsize, TYPE_BASICSIZE);
BEHIND_HEAD(PyTypeObject, tp_dictoffset, TYPE_DICTOFFSET);
BEHIND_HEAD(PyDictObject, ma_keys, DICT_KEYS);
BEHIND_HEAD(PyDictObject, ma_values, DICT_KEYS + 8);
BEHIND_HEAD(PyVarObject, ob_size, TUPLE_SIZE);
#if PY_MINOR_VERSION >= 12
BEHIND_HEAD(struct _longobject, long_value.lv_tag, INT_TAG);
BEHIND_HEAD(struct _longobject, long_value.ob_digit, INT_DIGITS);
#else
BEHIND_HEAD(struct _longobject, ob_base.ob_size, INT_TAG);
BEHIND_HEAD(struct _longobject, ob_digit, INT_DIGITS);
#endif
#endif
#if PY_MINOR_VERSION >= 12
BEHIND_HEAD(PyHamtNode_Bitmap, ob_base.ob_size, HAMT_SIZE);
BEHIND_HEAD(PyHamtNode_Bitmap, b_bitmap, HAMT_BITS);
BEHIND_HEAD(PyHamtNode_Bitmap, b_array, HAMT_PAIRS);
#endif

/* Numbers of bit-fields are only seen by setting them. */
static unsigned str_bits(int which)
{
	PyASCIIObject object;
	unsigned bits;

	memset(&object, 0, sizeof(object));
	if (which == 0)
		object.state.kind = 1;
	else if (which == 1)
		object.state.compact = 1;
	else
		object.state.ascii = 1;
	memcpy(&bits, &object.state, sizeof(bits));
	return bits;
}

#if PY_MINOR_VERSION >= 12
static unsigned status_bits(int which)
{
	static PyThreadState tstate;
	unsigned bits;

	memset(&tstate._status, 0, sizeof(tstate._status));
	if (which == 0)
		tstate._status.bound_gilstate = 1;
	else
		tstate._status.active = 1;
	memcpy(&bits, &tstate._status, sizeof(bits));
	return bits;
}
#endif

/* What the headers say. */
static struct py_offsets expected(void)
{
	struct py_offsets e;

	memset(&e, 0, sizeof(e));
	e.minor = PY_MINOR_VERSION;
	e.micro = PY_MICRO_VERSION;
	e.is_free_threaded = FREE_THREADED;
	e.is_best_effort = PY_MINOR_VERSION >= 13 && PY_RELEASE_LEVEL < PY_RELEASE_LEVEL_GAMMA;
	e.str_kind_shift = __builtin_ctz(str_bits(0));
	e.str_compact_bit = __builtin_ctz(str_bits(1));
	e.str_ascii_bit = __builtin_ctz(str_bits(2));

#if PY_MINOR_VERSION == 6
	e.runtime_interpreters_head = OFF_NONE;
	e.interp_id = OFF_NONE;
#else
	e.runtime_interpreters_head = offsetof(_PyRuntimeState, interpreters.head);
	e.interp_id = offsetof(struct _is, id);
#endif
	e.runtime_tstate_current = OFF_NONE;
	e.runtime_gil = OFF_NONE;
	e.interp_gil = OFF_NONE;
	e.gil_last_holder = OFF_NONE;
	e.interp_next = offsetof(struct _is, next);
#if defined(Py_DEBUG) && PY_MINOR_VERSION <= 7
	e.is_debug = 1;
#endif
	e.tstate_prev = offsetof(PyThreadState, prev);
	e.tstate_next = offsetof(PyThreadState, next);
	e.tstate_interp = offsetof(PyThreadState, interp);
	e.tstate_thread_id = offsetof(PyThreadState, thread_id);
	e.tstate_status = OFF_NONE;
	e.tstate_native_thread_id = OFF_NONE;
	e.tstate_executor = OFF_NONE;
	e.runtime_gc_collecting = OFF_NONE;
	e.interp_gc_collecting = OFF_NONE;
	e.interp_gc_frame = OFF_NONE;
	e.interp_eval_frame = OFF_NONE;
#if PY_MINOR_VERSION == 6
	e.tstate_exc_info = OFF_NONE;
	e.exc_value = OFF_NONE;
	e.exc_previous = OFF_NONE;
	e.tstate_context = OFF_NONE;
	e.contextvar_hash = OFF_NONE;
#else
	e.tstate_context = offsetof(PyThreadState, context);
	e.contextvar_hash = offsetof(PyContextVar, var_hash);
	e.tstate_exc_info = offsetof(PyThreadState, exc_info);
	e.exc_value = offsetof(_PyErr_StackItem, exc_value);
	e.exc_previous = offsetof(_PyErr_StackItem, previous_item);
#endif
#if PY_MINOR_VERSION == 7 || PY_MINOR_VERSION == 8
	e.runtime_gc_collecting = offsetof(_PyRuntimeState, gc.collecting);
#elif PY_MINOR_VERSION >= 9
	e.interp_gc_collecting = offsetof(struct _is, gc.collecting);
#endif
#if PY_MINOR_VERSION >= 11
	e.interp_eval_frame = offsetof(struct _is, eval_frame);
#endif
#if PY_MINOR_VERSION >= 15
	e.interp_gc_frame = offsetof(struct _is, gc.frame);
#endif
	e.cframe_current = OFF_NONE;
	e.frame_object = OFF_NONE;
	e.frame_owner = OFF_NONE;
	e.frame_is_entry = OFF_NONE;
	e.frame_tlbc_index = OFF_NONE;
	e.code_firstlineno = offsetof(PyCodeObject, co_firstlineno);
	e.code_filename = offsetof(PyCodeObject, co_filename);
	e.code_name = offsetof(PyCodeObject, co_name);
	e.code_qualname = OFF_NONE;
	e.code_firsttraceable = OFF_NONE;
	e.code_tlbc = OFF_NONE;
	e.code_version = OFF_NONE;
	e.str_length = offsetof(PyASCIIObject, length);
	e.str_hash = offsetof(PyASCIIObject, hash);
	e.str_state = offsetof(PyASCIIObject, state);
	e.str_ascii_data = sizeof(PyASCIIObject);
	e.str_compact_data = sizeof(PyCompactUnicodeObject);
	e.bytes_size = offsetof(PyVarObject, ob_size);
	e.bytes_data = offsetof(PyBytesObject, ob_sval);

#if PY_MINOR_VERSION >= 7 && PY_MINOR_VERSION <= 11
	e.runtime_tstate_current = offsetof(_PyRuntimeState, gilstate.tstate_current);
#endif
#if PY_MINOR_VERSION >= 7 && PY_MINOR_VERSION <= 11
	e.runtime_gil = offsetof(_PyRuntimeState, ceval.gil);
#elif PY_MINOR_VERSION >= 12
	e.interp_gil = offsetof(struct _is, ceval.gil);
#endif
#if PY_MINOR_VERSION >= 7
	e.gil_last_holder = offsetof(struct _gil_runtime_state, last_holder);
#endif
#if PY_MINOR_VERSION <= 10
	e.interp_threads_head = offsetof(struct _is, tstate_head);
	e.interp_modules = offsetof(struct _is, modules);
	e.frame_kind = FRAME_OBJECT;
	e.lines = PY_MINOR_VERSION == 10 ? LINES_DELTAS : LINES_LNOTAB;
	e.lasti_unit = PY_MINOR_VERSION == 10 ? 2 : 1;
	e.tstate_frame = offsetof(PyThreadState, frame);
	e.frame_code = offsetof(PyFrameObject, f_code);
	e.frame_previous = offsetof(PyFrameObject, f_back);
	e.frame_instr = offsetof(PyFrameObject, f_lasti);
	e.frame_size = offsetof(PyFrameObject, f_lineno) + sizeof(int);
	e.code_adaptive = offsetof(PyCodeObject, co_code);
	e.code_size = sizeof(PyCodeObject);
#else
	e.interp_threads_head = offsetof(struct _is, threads.head);
	e.lines = LINES_LOCATIONS;
	e.tstate_native_thread_id = offsetof(PyThreadState, native_thread_id);
	e.frame_previous = offsetof(_PyInterpreterFrame, previous);
	e.frame_object = offsetof(_PyInterpreterFrame, frame_obj);
	e.frame_owner = offsetof(_PyInterpreterFrame, owner);
	e.frame_size = offsetof(_PyInterpreterFrame, localsplus);
	e.code_qualname = offsetof(PyCodeObject, co_qualname);
	e.code_adaptive = offsetof(PyCodeObject, co_code_adaptive);
	e.code_firsttraceable = offsetof(PyCodeObject, _co_firsttraceable);
	e.code_size = offsetof(PyCodeObject, co_code_adaptive);
#endif
#if PY_MINOR_VERSION <= 9
	e.code_linetable = offsetof(PyCodeObject, co_lnotab);
#else
	e.code_linetable = offsetof(PyCodeObject, co_linetable);
#endif
#if PY_MINOR_VERSION == 10
	e.tstate_cframe = offsetof(PyThreadState, cframe);
#endif
#if PY_MINOR_VERSION == 11
	e.frame_is_entry = offsetof(_PyInterpreterFrame, is_entry);
#endif
#if PY_MINOR_VERSION == 11 || PY_MINOR_VERSION == 12
	e.frame_kind = FRAME_CFRAME;
	e.tstate_frame = offsetof(PyThreadState, cframe);
	e.tstate_cframe = offsetof(PyThreadState, cframe);
	e.cframe_current = offsetof(_PyCFrame, current_frame);
	e.frame_code = offsetof(_PyInterpreterFrame, f_code);
	e.frame_instr = offsetof(_PyInterpreterFrame, prev_instr);
#endif
#if PY_MINOR_VERSION == 11
	e.interp_modules = offsetof(struct _is, modules);
#elif PY_MINOR_VERSION >= 12
	e.interp_modules = offsetof(struct _is, imports.modules);
#endif
#if PY_MINOR_VERSION >= 12
	e.tstate_status = offsetof(PyThreadState, _status);
	e.status_bound_gilstate = status_bits(0);
	e.status_active = status_bits(1);
	e.code_version = offsetof(PyCodeObject, co_version);
#endif
#if PY_MINOR_VERSION == 12 || PY_MINOR_VERSION == 13
	e.owner_boundary = FRAME_OWNED_BY_CSTACK;
#endif
#if PY_MINOR_VERSION >= 13
	e.runtime_size = sizeof(_PyRuntimeState);
	e.frame_kind = FRAME_INTERNAL;
	e.tstate_frame = offsetof(PyThreadState, current_frame);
	e.frame_code = offsetof(_PyInterpreterFrame, f_executable);
	e.frame_instr = offsetof(_PyInterpreterFrame, instr_ptr);
#endif
#if PY_MINOR_VERSION >= 14
	e.owner_boundary = FRAME_OWNED_BY_INTERPRETER;
	e.tagged_mask = Py_TAG_BITS;
	e.interp_code_generation = offsetof(struct _is, _code_object_generation);
	e.tstate_executor = offsetof(PyThreadState, current_executor);
#if FREE_THREADED
	e.frame_tlbc_index = offsetof(_PyInterpreterFrame, tlbc_index);
	e.code_tlbc = offsetof(PyCodeObject, co_tlbc);
#endif
#endif
	if (e.is_best_effort) {
		e.tstate_executor = OFF_NONE;
		e.tstate_exc_info = OFF_NONE;
		e.tstate_context = OFF_NONE;
		e.contextvar_hash = OFF_NONE;
		e.frame_object = OFF_NONE;
		e.code_firsttraceable = OFF_NONE;
		e.code_version = OFF_NONE;
	}
	e.tstate_size = e.tstate_thread_id + 8;
	if (e.tstate_native_thread_id != OFF_NONE)
		e.tstate_size = e.tstate_native_thread_id + 8;
	if (e.tstate_executor != OFF_NONE)
		e.tstate_size = e.tstate_executor + 8;
	if (e.tstate_context != OFF_NONE && e.tstate_context + 8 > e.tstate_size)
		e.tstate_size = e.tstate_context + 8;
	return e;
}

#if PY_MINOR_VERSION == 13
/* Not linked with the objects that the rest of it points to: they are zero here. */
static _PyRuntimeState runtime = _PyRuntimeState_INIT(runtime, _Py_Debug_Cookie);
#define TABLE runtime.debug_offsets
#elif PY_MINOR_VERSION >= 14
static _Py_DebugOffsets table = _Py_DebugOffsets_INIT(_Py_Debug_Cookie);
#define TABLE table
#endif

#if PY_MINOR_VERSION >= 13
/* Numbers that happen to be equal would hide that the wrong one is read: compare where they are. */
static int check_shape(void)
{
	const struct debug_shape *s = debug_shape_find(PY_MINOR_VERSION);
	int bad = 0;

	if (!s)
		return 1;
#define AT(field, member)                                                               \
	if (s->field != offsetof(_Py_DebugOffsets, member)) {                           \
		printf("  debug_shape.%s: %u, the headers say %zu\n", #field, s->field, \
		       offsetof(_Py_DebugOffsets, member));                             \
		bad++;                                                                  \
	}
	AT(runtime_size, runtime_state.size)
	AT(interpreters_head, runtime_state.interpreters_head)
	AT(interp_size, interpreter_state.size)
	AT(interp_id, interpreter_state.id)
	AT(interp_next, interpreter_state.next)
	AT(interp_threads_head, interpreter_state.threads_head)
	AT(interp_modules, interpreter_state.imports_modules)
	AT(interp_gil, interpreter_state.ceval_gil)
	AT(interp_own_gil, interpreter_state.gil_runtime_state)
	AT(interp_own_gil_holder, interpreter_state.gil_runtime_state_holder)
	AT(interp_gc, interpreter_state.gc)
	AT(gc_size, gc.size)
	AT(gc_collecting, gc.collecting)
	AT(tstate_size, thread_state.size)
	AT(tstate_prev, thread_state.prev)
	AT(tstate_next, thread_state.next)
	AT(tstate_interp, thread_state.interp)
	AT(tstate_current_frame, thread_state.current_frame)
	AT(tstate_thread_id, thread_state.thread_id)
	AT(tstate_native_thread_id, thread_state.native_thread_id)
	AT(tstate_status, thread_state.status)
	AT(frame_size, interpreter_frame.size)
	AT(frame_previous, interpreter_frame.previous)
	AT(frame_executable, interpreter_frame.executable)
	AT(frame_instr_ptr, interpreter_frame.instr_ptr)
	AT(frame_localsplus, interpreter_frame.localsplus)
	AT(frame_owner, interpreter_frame.owner)
	AT(code_size, code_object.size)
	AT(code_filename, code_object.filename)
	AT(code_name, code_object.name)
	AT(code_qualname, code_object.qualname)
	AT(code_linetable, code_object.linetable)
	AT(code_firstlineno, code_object.firstlineno)
	AT(code_adaptive, code_object.co_code_adaptive)
	AT(object_size, pyobject.size)
	AT(bytes_size, bytes_object.ob_size)
	AT(bytes_data, bytes_object.ob_sval)
	AT(str_size, unicode_object.size)
	AT(str_state, unicode_object.state)
	AT(str_length, unicode_object.length)
	AT(str_ascii_size, unicode_object.asciiobject_size)
#if PY_MINOR_VERSION >= 14
	AT(interp_code_generation, interpreter_state.code_object_generation)
	AT(frame_tlbc_index, interpreter_frame.tlbc_index)
	AT(code_tlbc, code_object.co_tlbc)
#endif
#if PY_MINOR_VERSION >= 15
	AT(str_compact_size, unicode_object.compactunicodeobject_size)
	AT(gc_frame, gc.frame)
#endif
#undef AT
	if (s->bytes != sizeof(_Py_DebugOffsets)) {
		printf("  debug_shape.bytes: %u, the headers say %zu\n", s->bytes,
		       sizeof(_Py_DebugOffsets));
		bad++;
	}
	return bad;
}
#endif

#if PY_MINOR_VERSION >= 11
_Static_assert(OBJECT_TYPE_MANAGED_DICT == Py_TPFLAGS_MANAGED_DICT, "flag");
#endif
#if PY_MINOR_VERSION == 11 || PY_MINOR_VERSION >= 13
_Static_assert(-OBJECT_DICT_BEFORE(FREE_THREADED) == MANAGED_DICT_OFFSET, "before the object");
#endif
#if PY_MINOR_VERSION >= 13
_Static_assert(OBJECT_TYPE_INLINE_VALUES == Py_TPFLAGS_INLINE_VALUES, "flag");
_Static_assert(OBJECT_VALUES_VALID == offsetof(struct _dictvalues, valid), "their state");
#endif
_Static_assert(OBJECT_IS_LONG == Py_TPFLAGS_LONG_SUBCLASS, "flag");
_Static_assert(OBJECT_IS_LIST == Py_TPFLAGS_LIST_SUBCLASS, "flag");
_Static_assert(OBJECT_IS_TUPLE == Py_TPFLAGS_TUPLE_SUBCLASS, "flag");
_Static_assert(OBJECT_IS_BYTES == Py_TPFLAGS_BYTES_SUBCLASS, "flag");
_Static_assert(OBJECT_IS_STR == Py_TPFLAGS_UNICODE_SUBCLASS, "flag");
_Static_assert(OBJECT_IS_DICT == Py_TPFLAGS_DICT_SUBCLASS, "flag");
_Static_assert(OBJECT_IS_EXCEPTION == Py_TPFLAGS_BASE_EXC_SUBCLASS, "flag");
_Static_assert(OBJECT_IS_TYPE == Py_TPFLAGS_TYPE_SUBCLASS, "flag");
_Static_assert(OBJECT_TYPE_HEAP == Py_TPFLAGS_HEAPTYPE, "flag");
_Static_assert(OBJECT_TYPE_READY == Py_TPFLAGS_READY, "flag");
_Static_assert(OBJECT_DIGIT_BITS == PyLong_SHIFT && sizeof(digit) == 4, "digits of an int");

#define BEHIND_HEAD(type, member) (offsetof(type, member) - sizeof(PyObject))
#define ASSERT_AT(name, type, member) _Static_assert(name == BEHIND_HEAD(type, member), #name)

ASSERT_AT(OBJECT_SIZE, PyVarObject, ob_size);
ASSERT_AT(OBJECT_TYPE_NAME, PyTypeObject, tp_name);
ASSERT_AT(OBJECT_TYPE_BASICSIZE, PyTypeObject, tp_basicsize);
ASSERT_AT(OBJECT_TYPE_ITEMSIZE, PyTypeObject, tp_itemsize);
ASSERT_AT(OBJECT_TYPE_FLAGS, PyTypeObject, tp_flags);
ASSERT_AT(OBJECT_TYPE_MEMBERS, PyTypeObject, tp_members);
ASSERT_AT(OBJECT_TYPE_BASE, PyTypeObject, tp_base);
ASSERT_AT(OBJECT_TYPE_DICT, PyTypeObject, tp_dict);
ASSERT_AT(OBJECT_TYPE_DICTOFFSET, PyTypeObject, tp_dictoffset);
#if PY_MINOR_VERSION >= 12
ASSERT_AT(OBJECT_SIZE, PyLongObject, long_value.lv_tag);
ASSERT_AT(OBJECT_LONG_DIGITS, PyLongObject, long_value.ob_digit);
#else
ASSERT_AT(OBJECT_LONG_DIGITS, PyLongObject, ob_digit);
#endif
ASSERT_AT(OBJECT_LIST_ITEMS, PyListObject, ob_item);
ASSERT_AT(OBJECT_DICT_USED, PyDictObject, ma_used);
ASSERT_AT(OBJECT_DICT_KEYS, PyDictObject, ma_keys);
ASSERT_AT(OBJECT_DICT_VALUES, PyDictObject, ma_values);
ASSERT_AT(OBJECT_SET_USED, PySetObject, used);
ASSERT_AT(OBJECT_SET_MASK, PySetObject, mask);
ASSERT_AT(OBJECT_SET_TABLE, PySetObject, table);
ASSERT_AT(OBJECT_CELL, PyCellObject, ob_ref);
ASSERT_AT(OBJECT_FLOAT, PyFloatObject, ob_fval);
ASSERT_AT(OBJECT_COMPLEX, PyComplexObject, cval);
ASSERT_AT(OBJECT_BYTEARRAY_START, PyByteArrayObject, ob_start);
ASSERT_AT(OBJECT_SLICE, PySliceObject, start);
ASSERT_AT(OBJECT_METHOD_FUNC, PyMethodObject, im_func);
ASSERT_AT(OBJECT_METHOD_SELF, PyMethodObject, im_self);
ASSERT_AT(OBJECT_CFUNCTION_DEF, PyCFunctionObject, m_ml);
ASSERT_AT(OBJECT_CFUNCTION_SELF, PyCFunctionObject, m_self);
ASSERT_AT(OBJECT_EXCEPTION_ARGS, PyBaseExceptionObject, args);
ASSERT_AT(OBJECT_DATE_DATA, PyDateTime_Date, data);
ASSERT_AT(OBJECT_DATE_DATA, PyDateTime_DateTime, data);
ASSERT_AT(OBJECT_DATE_DATA, PyDateTime_Time, data);
ASSERT_AT(OBJECT_DATE_DATA - 1, PyDateTime_DateTime, hastzinfo);
ASSERT_AT(OBJECT_DATETIME_TZINFO, PyDateTime_DateTime, tzinfo);
ASSERT_AT(OBJECT_TIME_TZINFO, PyDateTime_Time, tzinfo);
ASSERT_AT(OBJECT_TIMEDELTA_DAYS, PyDateTime_Delta, days);
_Static_assert(sizeof(PyDictObject) - sizeof(PyObject) == 32, "what a defaultdict has behind it");
_Static_assert(sizeof(setentry) == 16, "pairs of a key and its hash");
_Static_assert(sizeof(PyUnicodeObject) == sizeof(PyCompactUnicodeObject) + 8,
	       "the data of a str that is not compact is behind it");
#if PY_MINOR_VERSION >= 11
ASSERT_AT(OBJECT_MODULE_DICT, PyModuleObject, md_dict);
#endif

/* What the headers say of objects. */
static struct object_layout expected_objects(void)
{
	struct object_layout e = {
		.minor_first = PY_MINOR_VERSION,
		.minor_last = PY_MINOR_VERSION,
		.tuple_items = BEHIND_HEAD(PyTupleObject, ob_item),
		.long_is_tagged = PY_MINOR_VERSION >= 12,
		.func_code = BEHIND_HEAD(PyFunctionObject, func_code),
		.func_qualname = BEHIND_HEAD(PyFunctionObject, func_qualname),
		.func_closure = BEHIND_HEAD(PyFunctionObject, func_closure),
		.type_qualname = BEHIND_HEAD(PyHeapTypeObject, ht_qualname),
		.type_cached_keys = OFF_NONE,
		.gen_qualname = BEHIND_HEAD(PyGenObject, gi_qualname),
		.code_argcount = BEHIND_HEAD(PyCodeObject, co_argcount),
		.code_kwonlyargcount = BEHIND_HEAD(PyCodeObject, co_kwonlyargcount),
		.code_flags = BEHIND_HEAD(PyCodeObject, co_flags),
		/* Not in the headers: Objects/dict-common.h of 3.6 to 3.10. */
		.keys_size = 8,
		.keys_kind = OFF_NONE_8,
		.keys_nentries = 32,
		.keys_indices = 40,
	};

#if PY_MINOR_VERSION >= 11
	e.attributes = PY_MINOR_VERSION == 11   ? ATTRIBUTES_POINTERS
		       : PY_MINOR_VERSION == 12 ? ATTRIBUTES_TAGGED
						: ATTRIBUTES_INLINE;
	e.type_cached_keys = BEHIND_HEAD(PyHeapTypeObject, ht_cached_keys);
	e.keys_are_logs = 1;
	e.keys_size = offsetof(PyDictKeysObject, dk_log2_index_bytes);
	e.keys_kind = offsetof(PyDictKeysObject, dk_kind);
	e.keys_nentries = offsetof(PyDictKeysObject, dk_nentries);
	e.keys_indices = offsetof(PyDictKeysObject, dk_indices);
	e.values_items = offsetof(struct _dictvalues, values);
	e.code_locals = BEHIND_HEAD(PyCodeObject, co_nlocalsplus);
	e.code_names = BEHIND_HEAD(PyCodeObject, co_localsplusnames);
	e.code_kinds = BEHIND_HEAD(PyCodeObject, co_localspluskinds);
	e.code_cellvars = OFF_NONE_8;
	e.code_freevars = OFF_NONE_8;
	e.frame_localsplus = OFF_NONE;
	e.frame_locals = offsetof(_PyInterpreterFrame, f_locals);
#else
	e.code_locals = BEHIND_HEAD(PyCodeObject, co_nlocals);
	e.code_names = BEHIND_HEAD(PyCodeObject, co_varnames);
	e.code_kinds = OFF_NONE_8;
	e.code_cellvars = BEHIND_HEAD(PyCodeObject, co_cellvars);
	e.code_freevars = BEHIND_HEAD(PyCodeObject, co_freevars);
	e.frame_localsplus = BEHIND_HEAD(PyFrameObject, f_localsplus);
	e.frame_locals = BEHIND_HEAD(PyFrameObject, f_locals);
#endif
	return e;
}

static int check_objects(const struct py_offsets *off)
{
	const struct object_layout *got = object_layout_find(off);
	struct object_layout want = expected_objects();
	int bad = 0;

	if (!got || got->minor_first > off->minor || got->minor_last < off->minor) {
		printf("  no object_layout\n");
		return 1;
	}
	if (off->str_length != sizeof(PyObject)) {
		printf("  str_length is not the size of PyObject\n");
		bad++;
	}
#define SAME(field)                                                            \
	if (got->field != want.field) {                                        \
		printf("  object_layout.%s: %u, the headers say %u\n", #field, \
		       (unsigned)got->field, (unsigned)want.field);            \
		bad++;                                                         \
	}
	SAME(attributes)
	SAME(keys_are_logs)
	SAME(keys_size)
	SAME(keys_kind)
	SAME(keys_nentries)
	SAME(keys_indices)
	SAME(values_items)
	SAME(tuple_items)
	SAME(long_is_tagged)
	SAME(func_code)
	SAME(func_qualname)
	SAME(func_closure)
	SAME(gen_qualname)
	SAME(code_argcount)
	SAME(code_kwonlyargcount)
	SAME(code_locals)
	SAME(code_flags)
	SAME(code_names)
	SAME(code_kinds)
	SAME(code_cellvars)
	SAME(code_freevars)
	SAME(frame_localsplus)
	SAME(frame_locals)
	SAME(type_qualname)
	SAME(type_cached_keys)
#undef SAME
	return bad;
}

/* The value stack of a frame. */
static struct value_stack_layout expected_stack(void)
{
	const size_t head = sizeof(PyObject);
	struct value_stack_layout e = { .code_stacksize =
						offsetof(PyCodeObject, co_stacksize) - head };

#if PY_MINOR_VERSION >= 11
	e.localsplus = offsetof(_PyInterpreterFrame, localsplus);
	e.code_nlocalsplus = offsetof(PyCodeObject, co_nlocalsplus) - head;
	e.code_exceptiontable = offsetof(PyCodeObject, co_exceptiontable) - head;
#else
	e.iblock = offsetof(PyFrameObject, f_iblock);
	e.blockstack = offsetof(PyFrameObject, f_blockstack);
	e.valuestack = offsetof(PyFrameObject, f_valuestack);
#endif
#if PY_MINOR_VERSION >= 14
	e.stackpointer = offsetof(_PyInterpreterFrame, stackpointer);
#endif
	return e;
}

static int check_stack(void)
{
	const struct value_stack_layout *got = value_stack_layout_find(PY_MINOR_VERSION);
	struct value_stack_layout want = expected_stack();
	int bad = 0;

	if (!got) {
		printf("%s", PY_MINOR_VERSION >= 8 ? "  no value_stack_layout\n" : "");
		return PY_MINOR_VERSION >= 8;
	}
#define SAME(field)                                                                 \
	if (got->field != want.field) {                                             \
		printf("  value_stack_layout.%s: %u, the headers say %u\n", #field, \
		       (unsigned)got->field, (unsigned)want.field);                 \
		bad++;                                                              \
	}
	SAME(iblock)
	SAME(blockstack)
	SAME(valuestack)
	SAME(localsplus)
	SAME(stackpointer)
	SAME(code_stacksize)
	SAME(code_nlocalsplus)
	SAME(code_exceptiontable)
#undef SAME
	return bad;
}

int main(void)
{
	struct py_offsets want = expected(), got;
	int bad = 0, r;

#if PY_MINOR_VERSION >= 13
	bad += check_shape();
	r = debug_offsets_parse(&TABLE, sizeof(TABLE), &got);
#elif PY_MINOR_VERSION >= 7
	r = offsets_find(PY_VERSION_HEX, sizeof(_PyRuntimeState), want.is_debug, &got);
#else
	r = offsets_find(PY_VERSION_HEX, 0, want.is_debug, &got);
#endif
	if (r < 0) {
		printf("  %s\n", err_message(r));
		return 1;
	}
#define COMPARE(field)                                                              \
	if (got.field != want.field) {                                              \
		printf("  %s: %ld, the headers say %ld\n", #field, (long)got.field, \
		       (long)want.field);                                           \
		bad++;                                                              \
	}
	FIELDS(COMPARE)
	bad += check_objects(&got);
	bad += check_stack();
	if (PY_MINOR_VERSION == 6) /* as the linker may place them */
		got.runtime_interpreters_head = 16;
	r = offsets_check(&got);
	if (r < 0) {
		printf("  %s\n", err_message(r));
		bad++;
	}
	return bad != 0;
}
