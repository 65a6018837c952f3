/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_RENDER_PARTS_H
#define INSPECT_RENDER_PARTS_H

/*
 * Between render.c, which knows what holds for all objects, and render_known.c, _buffer.c,
 * _datetime.c, _datetime64.c, _decimal.c, _numpy.c and _pandas.c: some types.
 */

#include "inspect/render.h"

struct render {
	struct object_reader *reader;
	const struct render_options *options;
	struct strbuf *out;
	size_t end;                      /* of out: behind it nothing begins */
	uint64_t path[RENDER_DEPTH_MAX]; /* containers that are open */
	uint32_t depth;
	uint32_t objects; /* with attributes that are open */
	uint32_t level;   /* of values in values */
};

/*
 * Functions return 0, or a negative errno of the reader and have appended nothing then: the caller
 * says that it could not be read. That memory is out is known to the strbuf.
 */

/* Any object; appends something in any case. */
void render_value(struct render *c, uint64_t object);

/* Entries of something between brackets, with a separator between, as far as there is room. */
struct render_list {
	struct render *c;
	const char *separator;
	uint64_t count; /* 0: not known */
	uint64_t seen;
	bool is_cut;
};

/* Begins the next entry; false: no more. */
bool render_next(struct render_list *list);
/* After the last: what was left out, or why there are no more: what ended their reading. */
void render_end(struct render_list *list, int error);

/* Opens a container. False: it is open already, or too deep; that is appended, in these brackets.
 */
bool render_open(struct render *c, uint64_t object, uint64_t count, const char *brackets);
void render_close(struct render *c);

int render_dict(struct render *c, uint64_t dict);
/* Of a view of a dict: between brackets. */
enum render_part { RENDER_KEYS, RENDER_VALUES, RENDER_ITEMS };
int render_dict_view(struct render *c, uint64_t view, enum render_part part);
int render_items(struct render *c, uint64_t object, const char *brackets);
/* Of a str. */
int render_text(struct render *c, uint64_t str);
/* Of bytes at an address. */
int render_bytes(struct render *c, uint64_t addr, uint64_t len);
/* Any object, but not with its attributes. */
void render_flat(struct render *c, uint64_t object);

/* Where an object's own fields begin. */
static inline uint64_t render_fields(const struct render *c, uint64_t object)
{
	return object + c->reader->head;
}

/* Characters of a str, digits of an int that are shown here. */
size_t render_chars(const struct render *c);

/* (3, 4): sizes of an array in each dimension. */
void render_shape(struct render *c, const int64_t *sizes, size_t count);

/* The last part of a dotted name. */
const char *render_last_part(const char *name);

int render_date(struct render *c, uint64_t object);
int render_datetime(struct render *c, uint64_t object);
int render_time(struct render *c, uint64_t object);
int render_timedelta(struct render *c, uint64_t object);
int render_timezone(struct render *c, uint64_t object);

int render_decimal(struct render *c, uint64_t object);
/* The class that is written in Python. */
int render_python_decimal(struct render *c, uint64_t object);

int render_array(struct render *c, uint64_t object);
int render_memoryview(struct render *c, uint64_t object);

/* PyArray_DatetimeMetaData: count of a unit, such as 25 seconds. */
struct numpy_unit {
	int32_t base, count;
};
/* Is it one that NumPy makes? What is asked or shown of it below is only of such a one. */
bool render_numpy_has_unit(const struct numpy_unit *unit);
bool render_numpy_is_generic(const struct numpy_unit *unit);
void render_numpy_unit(struct render *c, const struct numpy_unit *unit);
/* name: "datetime64" or "timedelta64". */
int render_datetime64(struct render *c, uint64_t object, const char *name);

/* PyArrayObject, without PyObject. */
struct numpy_array {
	uint64_t data;
	int32_t dimension_count, pad;
	uint64_t dimensions, strides, base, descriptor;
};

/* -EBADMSG: of a number of dimensions that is none. */
int render_numpy_get(struct render *c, uint64_t object, struct numpy_array *out);
/* PyArray_Descr, as far as it is the same in NumPy 1 and 2. */
struct numpy_descriptor {
	uint64_t scalar_type;
	char kind, code, order;
	uint8_t flags;
	int32_t number;
	/* different ones */
	uint64_t item_bytes; /* 0 where not known */
	uint64_t names;      /* a tuple, None or 0 */
	uint64_t metadata;   /* of times; 0: none */
};
int render_numpy_descriptor(struct render *c, uint64_t descriptor, struct numpy_descriptor *out);
int render_numpy_array(struct render *c, uint64_t object);
int render_data_frame(struct render *c, uint64_t object);
int render_not_a_time(struct render *c, uint64_t object);
/* As render_known(), of these types themselves. */
int render_numpy_scalar(struct render *c, uint64_t object, const char *name);

/* Types that are known by name, and subtypes of them: appends one, and returns 1. 0: it is none. */
int render_known(struct render *c, uint64_t object, const struct object_type *type,
		 const char *name);

#endif
