/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_LOCALS_H
#define INSPECT_LOCALS_H

/* The local variables of a frame. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "inspect/render.h"
#include "target/object.h"

enum inspect_local_kind {
	LOCAL_VARIABLE,
	LOCAL_ARGUMENT,
	LOCAL_FREE, /* of a function around it */
};

/* Text as of render.h. */
struct inspect_local {
	char *name;
	char *type;  /* NULL: it has no value now */
	char *value; /* likewise */
	enum inspect_local_kind kind;
	bool is_cell; /* shared with functions inside of it, or around it */
};

struct inspect_locals {
	struct inspect_local *items; /* arguments first, in the order of the code object */
	size_t len, cap;
	size_t left_out; /* more variables than LOCALS_MAX, or than there was room or time for */
	size_t bytes;    /* of text */
};
#define LOCALS_MAX 1000
#define LOCALS_LONG_VALUES 64 /* of a frame: as much text as so many values of the largest size */

struct locals_options {
	struct render_options render;
	bool has_self; /* with the attributes of the first argument, if it is self or cls */
};

/*
 * Of a frame (PyFrameObject, or _PyInterpreterFrame from 3.11 on) and its code object, by their
 * addresses. That they are still what they were is for the caller to see: the thread must not have
 * moved. What runs at module level or in the body of a class has names in a dict: shown are those
 * that are no `__name__`, function, class or module. A variable of which the value cannot be read
 * says so in its value.
 *
 * Returns 0, -ENOMEM, or an error of the reader when not even the names can be read; out is to be
 * released in any case.
 */
int locals_read(struct object_reader *r, uint64_t frame, uint64_t code,
		const struct locals_options *options, struct inspect_locals *out);

void locals_release(struct inspect_locals *l);

#endif
