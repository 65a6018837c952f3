/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TARGET_THREADING_H
#define TARGET_THREADING_H

/*
 * The names that Python's `threading` has given to threads: sys.modules["threading"]._active is a
 * dict of Thread objects by pthread_self(), each with a `_name`. The system knows them from 3.14
 * on, and then no more than 15 bytes of them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/events.h"

#define THREADING_CHARS_MAX 128 /* of a name; longer: cut */
#define THREADING_READS_MAX 16384
#define THREADING_READ_BYTES 4096

/* How an object's attributes are found. */
enum threading_attributes {
	ATTRIBUTES_DICT,     /* <= 3.10: a dict, where the type says */
	ATTRIBUTES_POINTERS, /* 3.11: before the object, a dict and a pointer to values */
	ATTRIBUTES_TAGGED,   /* 3.12: before it, one of the two: an odd pointer is of values */
	ATTRIBUTES_INLINE,   /* 3.13 on: a dict before it, or values behind its head */
};

/*
 * What is read beside what struct py_offsets has: byte offsets, of dict_* and type_* from the end
 * of PyObject, which differs between builds. Compared with CPython's headers by
 * tests/lint/offsets_check.c, but for keys_* before 3.11, which are in none of them.
 */
struct threading_layout {
	uint8_t minor_first, minor_last;
	uint8_t attributes;    /* enum threading_attributes */
	uint8_t keys_are_logs; /* keys_size is the binary logarithm of the index' size in bytes */
	uint8_t keys_size;     /* else the number of its places */
	uint8_t keys_kind;     /* 0: entries with a hash; OFF_NONE_8: all have */
	uint8_t keys_nentries;
	uint8_t keys_indices;
	uint8_t values_items; /* of PyDictValues, or in a dict's ma_values */
	uint16_t dict_keys, dict_values;
	uint16_t type_flags, type_dictoffset;
	uint16_t type_cached_keys; /* OFF_NONE: not needed */
};
#define OFF_NONE_8 0xff

/* Py_TPFLAGS_INLINE_VALUES (3.13 on), _MANAGED_DICT (3.11 on) */
#define THREADING_INLINE_VALUES (1u << 2)
#define THREADING_MANAGED_DICT (1u << 4)
/* Bytes before an object with the latter: its dict, and the values of 3.11 */
#define THREADING_DICT_BEFORE(is_free_threaded) ((is_free_threaded) ? 8 : 24)
#define THREADING_VALUES_BEFORE 32
/* In PyDictValues, 3.13 on; 0: they have moved into the dict */
#define THREADING_VALUES_VALID 3

/* NULL for a version whose objects are not known. */
const struct threading_layout *threading_layout_find(const struct py_offsets *off);

/* A process. read: len bytes at addr, at most THREADING_READ_BYTES; 0 or a negative errno. */
struct threading_process {
	int (*read)(void *arg, uint64_t addr, void *buf, size_t len);
	void *arg;
	uint64_t runtime; /* of its _PyRuntime, as struct proc_row has it */
	const struct py_offsets *off;
	uint64_t active; /* of its `_active`, kept from call to call, and not trusted; 0 at first */
};

/* A name as it lies in the process. */
struct threading_name {
	uint8_t kind; /* bytes a character: 1, 2, 4 */
	bool is_cut;
	uint16_t len; /* bytes, >= 1 */
	uint8_t bytes[THREADING_CHARS_MAX * 4];
};

/*
 * The name of the thread with this pthread_self(), in any interpreter of the process. Its memory is
 * taken for hostile, and changes meanwhile: at most THREADING_READS_MAX reads. That it was this
 * thread's is for the caller to see: it must live still, as another would have the same ident then.
 *
 * Returns 0, -ENOENT (no such thread there, or not a name), -ENOTSUP (a version not known), -E2BIG
 * (more to read than that), or what read() returned.
 */
int threading_name(struct threading_process *p, uint64_t ident, struct threading_name *out);

#endif
