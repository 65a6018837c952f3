/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_CONTEXT_LAYOUT_H
#define BPF_CONTEXT_LAYOUT_H

/*
 * Where things are in contexts and the objects that they hold, in bytes from the end of PyObject:
 * the same in 3.7 to 3.15. What differs is in struct py_offsets. Compared with CPython's headers by
 * tests/lint/offsets_check.c, but for the array and the collision, which are in none of them.
 */

#define CONTEXT_VARS 8     /* PyContext.ctx_vars */
#define CONTEXTVAR_NAME 0  /* PyContextVar.var_name */
#define HAMT_ROOT 0        /* PyHamtObject.h_root */
#define HAMT_SIZE 0        /* of a bitmap or a collision: ob_size, two for each pair */
#define HAMT_BITS 8        /* b_bitmap */
#define HAMT_PAIRS 16      /* b_array, c_array */
#define HAMT_CHILDREN 0    /* a_array */
#define HAMT_HEAD_BYTES 16 /* read of any node, behind PyObject */
#define TYPE_NAME 8        /* PyTypeObject.tp_name */
#define TYPE_BASICSIZE 16  /* tp_basicsize */
#define TYPE_FLAGS 152     /* tp_flags */
#define TYPE_DICTOFFSET 272
#define INT_TAG 0 /* ob_size, from 3.12 on lv_tag */
#define INT_DIGITS 8
#define DICT_KEYS 16   /* PyDictObject.ma_keys, and behind it ma_values */
#define TUPLE_SIZE 0   /* ob_size; the items: struct py_object_offsets */
#define VALUES_VALID 3 /* of PyDictValues, 3.13 on: 0: they have moved into the dict */

/* Before an object with a managed dict: that, and the values of 3.11. */
#define DICT_BEFORE(is_free_threaded) ((is_free_threaded) ? 8 : 24)
#define VALUES_BEFORE 32

#define TYPE_HAS_VALUES (1u << 2) /* Py_TPFLAGS_INLINE_VALUES, 3.13 on */
#define TYPE_HAS_DICT (1u << 4)   /* Py_TPFLAGS_MANAGED_DICT, 3.11 on */
#define TYPE_IS_INT (1u << 24)    /* Py_TPFLAGS_LONG_SUBCLASS */
#define TYPE_IS_TUPLE (1u << 26)
#define TYPE_IS_STR (1u << 28) /* Py_TPFLAGS_UNICODE_SUBCLASS */
#define TYPE_IS_DICT (1u << 29)

#endif
