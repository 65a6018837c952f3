/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TARGET_OBJECT_H
#define TARGET_OBJECT_H

/*
 * Python's objects in the memory of another process: types, str, int, tuple, list, dict, set, and
 * the attributes of instances. All that is read is taken for hostile, and changes meanwhile: every
 * call may fail, a size is no more than what it takes reads to see, and a reader ends after so many
 * reads. That an address is
 * one of an object is checked where its type tells; an address that is none gives an error, or
 * nonsense of a bounded size.
 *
 * Functions return 0 (or what they say) and else -EFAULT or what read() returned, -E2BIG (the
 * reader's reads are used up), -EBADMSG (not such an object, or torn); without a message of
 * their own. Outputs are untouched then.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/events.h"

#define OBJECT_READ_BYTES 4096 /* of one read, at most */
#define OBJECT_TYPES 32        /* that a reader remembers: a power of two */

/*
 * What differs between versions, beside what struct py_offsets has: byte offsets, of objects'
 * fields from the end of PyObject, whose size differs between builds (py_offsets.str_length).
 * Compared with CPython's headers by tests/lint/offsets_check.c, but for keys_* before 3.11, which
 * are in none.
 */
struct object_layout {
	uint8_t minor_first, minor_last;
	uint8_t attributes;    /* enum object_attributes, bpf/events.h */
	uint8_t keys_are_logs; /* keys_size is the binary logarithm of the index' size in bytes */
	uint8_t keys_size;     /* else the number of its places */
	uint8_t keys_kind;     /* 0: entries with a hash; OFF_NONE_8: all have */
	uint8_t keys_nentries;
	uint8_t keys_indices;
	uint8_t values_items; /* of PyDictValues, or in a dict's ma_values */
	uint8_t tuple_items;
	uint8_t long_is_tagged; /* 3.12 on: lv_tag, not ob_size */
	uint8_t func_code;      /* PyFunctionObject */
	uint8_t func_qualname;
	uint8_t func_closure;
	uint8_t gen_qualname;  /* PyGenObject */
	uint8_t code_argcount; /* PyCodeObject */
	uint8_t code_kwonlyargcount;
	uint8_t code_locals; /* co_nlocalsplus; up to 3.10 co_nlocals */
	uint8_t code_flags;
	uint8_t code_names; /* co_localsplusnames; up to 3.10 co_varnames */
	uint8_t code_kinds; /* co_localspluskinds, or OFF_NONE_8: up to 3.10 these two */
	uint8_t code_cellvars, code_freevars;
	uint16_t frame_localsplus; /* PyFrameObject; OFF_NONE: at py_offsets.frame_size */
	uint8_t frame_locals;      /* f_locals; likewise, but from 3.11 on from the frame's start */
	uint16_t type_qualname;
	uint16_t type_cached_keys; /* OFF_NONE: not needed */
};
/* The same in all versions, from the end of PyObject, and compared likewise. */
#define OBJECT_SIZE 0 /* PyVarObject.ob_size */
#define OBJECT_TYPE_NAME 8
#define OBJECT_TYPE_BASICSIZE 16
#define OBJECT_TYPE_ITEMSIZE 24
#define OBJECT_TYPE_FLAGS 152
#define OBJECT_TYPE_MEMBERS 224
#define OBJECT_TYPE_BASE 240
#define OBJECT_TYPE_DICT 248 /* of heap types; of others NULL from 3.12 on */
#define OBJECT_TYPE_DICTOFFSET 272
#define OBJECT_LONG_DIGITS 8 /* of 30 bits in 4 bytes each */
#define OBJECT_LIST_ITEMS 8
#define OBJECT_DICT_USED 0
#define OBJECT_DICT_KEYS 16
#define OBJECT_DICT_VALUES 24
#define OBJECT_SET_USED 8
#define OBJECT_SET_MASK 16
#define OBJECT_SET_TABLE 24
#define OBJECT_MODULE_DICT 0
#define OBJECT_CELL 0
#define OBJECT_FLOAT 0
#define OBJECT_COMPLEX 0
#define OBJECT_BYTEARRAY_START 24 /* a pointer to the first byte */
#define OBJECT_SLICE 0            /* start, stop, step */
#define OBJECT_METHOD_FUNC 0
#define OBJECT_METHOD_SELF 8
#define OBJECT_CFUNCTION_DEF 0 /* a PyMethodDef, which starts with its name */
#define OBJECT_CFUNCTION_SELF 8
#define OBJECT_EXCEPTION_ARGS 8
#define OBJECT_DATE_DATA 9 /* of datetime, and time, too */
#define OBJECT_DATETIME_TZINFO 24
#define OBJECT_TIME_TZINFO 16
#define OBJECT_TIMEDELTA_DAYS 8 /* then seconds, microseconds: ints of C */

/* PyTypeObject.tp_flags: of which a type is, or is a subtype of. */
#define OBJECT_IS_LONG (1u << 24)
#define OBJECT_IS_LIST (1u << 25)
#define OBJECT_IS_TUPLE (1u << 26)
#define OBJECT_IS_BYTES (1u << 27)
#define OBJECT_IS_STR (1u << 28)
#define OBJECT_IS_DICT (1u << 29)
#define OBJECT_IS_EXCEPTION (1u << 30)
#define OBJECT_IS_TYPE (1u << 31)
#define OBJECT_TYPE_HEAP (1u << 9)
#define OBJECT_TYPE_READY (1u << 12)
#define OBJECT_TYPE_INLINE_VALUES (1u << 2) /* 3.13 on */
#define OBJECT_TYPE_MANAGED_DICT (1u << 4)  /* 3.11 on */

/* Bytes before an object with the latter: its dict, and the values of 3.11. */
#define OBJECT_DICT_BEFORE(is_free_threaded) ((is_free_threaded) ? 8 : 24)
#define OBJECT_VALUES_BEFORE 32
/* In PyDictValues, 3.13 on; 0: they have moved into the dict. */
#define OBJECT_VALUES_VALID 3

/* NULL for a version whose objects are not known. */
const struct object_layout *object_layout_find(const struct py_offsets *off);

/* What the sampler needs of that, into off->objects: zeros for such a version. */
void object_layout_tell(struct py_offsets *off);

/* What a type says of its objects. */
struct object_type {
	uint64_t address;
	uint64_t name; /* of a C string: object_type_name() */
	uint64_t basicsize, itemsize;
	uint64_t flags;
	uint64_t members; /* of PyMemberDefs, or 0 */
	uint64_t base;    /* of a type, or 0 */
	uint64_t dict;    /* tp_dict */
	int64_t dictoffset;
};

/*
 * A process while it is read. read: len bytes at addr, at most OBJECT_READ_BYTES; 0 or a negative
 * errno. Starts in object_reader_init(), needs no end.
 */
struct object_reader {
	int (*read)(void *arg, uint64_t addr, void *buf, size_t len);
	void *arg;
	const struct py_offsets *off; /* borrowed */
	const struct object_layout *layout;
	uint32_t head;       /* sizeof(PyObject) */
	uint32_t reads_left; /* may be raised again by its owner */
	struct object_type types[OBJECT_TYPES];
};

/* 0, or -ENOTSUP: a version whose objects are not known. */
int object_reader_init(struct object_reader *r, const struct py_offsets *off, uint32_t reads,
		       int (*read)(void *arg, uint64_t addr, void *buf, size_t len), void *arg);

/* Bytes at an address; the one way to memory. */
int object_get(struct object_reader *r, uint64_t addr, void *buf, size_t len);
int object_get_pointer(struct object_reader *r, uint64_t addr, uint64_t *out);

/* A C string, cut at size - 1 bytes: the bytes without the NUL. Any bytes: not for a terminal. */
int object_chars(struct object_reader *r, uint64_t addr, char *out, size_t size);

/* --- types ------------------------------------------------------------------------------------ */

/* The address of an object's type. */
int object_type(struct object_reader *r, uint64_t object, uint64_t *type);

/* What is at such an address. Borrowed: until the next call with this reader. */
int object_type_get(struct object_reader *r, uint64_t type, const struct object_type **out);

/* Both. */
int object_type_of(struct object_reader *r, uint64_t object, const struct object_type **out);

/*
 * tp_name, cut: of a class its __name__, of a type made in C mostly with its module in front
 * ("collections.deque"). The bytes without the NUL; any bytes.
 */
int object_type_name(struct object_reader *r, uint64_t type, char *out, size_t size);

/* --- values ----------------------------------------------------------------------------------- */

/* A str as it lies there, or its start. */
struct object_text {
	uint64_t chars; /* of all of it */
	uint32_t len;   /* bytes that were copied, whole characters */
	uint8_t kind;   /* bytes a character: 1, 2, 4 */
	bool is_cut;    /* there is more than that */
};

/* buf: at least 4 bytes; at most OBJECT_READ_BYTES times 16 are copied. Subtypes of str, too. */
int object_str(struct object_reader *r, uint64_t object, void *buf, size_t size,
	       struct object_text *out);

/* Is it this ASCII text, of at most 100 bytes? 1, 0 (also what cannot be read), or -E2BIG. */
int object_str_is(struct object_reader *r, uint64_t object, const char *text);

/* An int's digits, least significant first, in memory at .digits: count of them. */
struct object_digits {
	uint64_t digits;
	uint64_t count; /* 0: zero; not checked any further */
	bool is_negative;
};
#define OBJECT_DIGIT_BITS 30

int object_long_digits(struct object_reader *r, uint64_t object, struct object_digits *out);

/* The value of an int or bool; -ERANGE if it does not fit. */
int object_long(struct object_reader *r, uint64_t object, int64_t *out);

/* --- containers ------------------------------------------------------------------------------- */

/*
 * Each of these calls back for one entry after another until a callback returns what is not 0,
 * which is returned then. 0 at the end.
 */
typedef int (*object_item_fn)(struct object_reader *r, uint64_t item, void *arg);

struct object_entry {
	uint64_t key;       /* of an object; 0: an attribute in a slot */
	uint64_t slot_name; /* of a C string then */
	uint64_t hash;      /* only of dicts whose keys are not all str, else 0 */
	uint64_t value;
};
typedef int (*object_entry_fn)(struct object_reader *r, const struct object_entry *entry,
			       void *arg);

/* Entries of a tuple, list, dict, set or frozenset (and subtypes) by what it says itself. */
int object_length(struct object_reader *r, uint64_t object, uint64_t *out);

/* Of a tuple or list. An item may be 0: one that was not set yet. */
int object_sequence_each(struct object_reader *r, uint64_t object, object_item_fn fn, void *arg);

/* In the order of the table. */
int object_set_each(struct object_reader *r, uint64_t object, object_item_fn fn, void *arg);

/* In the order in which they were added. Neither key nor value is 0. The type is not checked. */
int object_dict_each(struct object_reader *r, uint64_t dict, object_entry_fn fn, void *arg);

/* The value of a key that is a str with this text (object_str_is()); -ENOENT: there is none. */
int object_dict_get_str(struct object_reader *r, uint64_t dict, const char *name, uint64_t *value);

/* --- attributes ------------------------------------------------------------------------------- */

/* Of the instance: its dict, or values, and then its __slots__, those of base types last. */
int object_attributes_each(struct object_reader *r, uint64_t object, object_entry_fn fn, void *arg);

/* Where instances of a type have a slot: bytes from the object. -ENOENT: no such one. */
int object_slot(struct object_reader *r, uint64_t type, const char *name, uint64_t *offset);

/* -ENOENT: no such attribute of the instance. */
int object_attribute(struct object_reader *r, uint64_t object, const char *name, uint64_t *value);

/* What a module of an interpreter calls by this name: sys.modules[module].name. */
int object_global(struct object_reader *r, uint64_t interp, const char *module, const char *name,
		  uint64_t *value);

#endif
