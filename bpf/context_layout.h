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
#define TYPE_FLAGS 152     /* tp_flags */
#define INT_TAG 0          /* ob_size, from 3.12 on lv_tag */
#define INT_DIGITS 8

#endif
