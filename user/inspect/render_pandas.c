/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/render_parts.h"

#include <errno.h>
#include <string.h>

/*
 * pandas 1.1 to 3.1. A DataFrame has a BlockManager in _mgr, whose axes are two Index: of the
 * columns and of the rows. An Index has its labels in _data, a NumPy array or one of pandas' own
 * around such a one; a RangeIndex has a range, a MultiIndex an array for each of its levels.
 */

#define LAYERS_MAX 4 /* of arrays around arrays */
#define NAME_BYTES 64

/* BlockManager from 1.3 on, and NDArrayBacked: after PyObject. */
struct block_manager {
	uint64_t methods, blocks, axes;
};
struct backed_array {
	uint64_t methods, array;
};

static bool has_flag(struct render *c, uint64_t object, uint64_t flag)
{
	const struct object_type *type;

	return object_type_of(c->reader, object, &type) >= 0 && type->flags & flag;
}

static bool is_named(struct render *c, uint64_t object, const char *name)
{
	char found[NAME_BYTES];
	uint64_t type;

	return object && object_type(c->reader, object, &type) >= 0 &&
	       object_type_name(c->reader, type, found, sizeof(found)) >= 0 && !strcmp(found, name);
}

/* The list of axes: two Index. */
static int get_axes(struct render *c, uint64_t frame, uint64_t axes[2])
{
	struct block_manager fields;
	uint64_t manager, list, count, items;
	int e = object_attribute(c->reader, frame, "_mgr", &manager);

	if (e < 0)
		return e;
	if (object_attribute(c->reader, manager, "axes", &list) < 0) {
		e = object_get(c->reader, render_fields(c, manager), &fields, sizeof(fields));
		if (e < 0)
			return e;
		list = fields.axes;
	}
	if (!has_flag(c, list, OBJECT_IS_LIST))
		return -EBADMSG;
	if ((e = object_length(c->reader, list, &count)) < 0)
		return e;
	if (count != 2)
		return -EBADMSG;
	e = object_get_pointer(c->reader, render_fields(c, list) + OBJECT_LIST_ITEMS, &items);
	return e < 0 ? e : object_get(c->reader, items, axes, 16);
}

/* The NumPy array in arrays of pandas. */
static int get_array(struct render *c, uint64_t object, uint64_t *out)
{
	struct backed_array fields;

	for (int i = 0; i < LAYERS_MAX; i++) {
		if (is_named(c, object, "numpy.ndarray")) {
			*out = object;
			return 0;
		}
		if (object_attribute(c->reader, object, "_ndarray", &fields.array) < 0 &&
		    object_attribute(c->reader, object, "_data", &fields.array) < 0 &&
		    object_attribute(c->reader, object, "_codes", &fields.array) < 0 &&
		    object_get(c->reader, render_fields(c, object), &fields, sizeof(fields)) < 0)
			return -EBADMSG;
		object = fields.array;
	}
	return -EBADMSG;
}

struct first {
	uint64_t item;
};

static int take_first(struct object_reader *r, uint64_t item, void *arg)
{
	struct first *first = arg;

	(void)r;
	first->item = item;
	return 1;
}

/* Of a MultiIndex: codes of its first level, in a FrozenList around a list, or that is one. */
static int get_codes(struct render *c, uint64_t index, uint64_t *out)
{
	struct first first = { 0 };
	uint64_t list;
	int e = object_attribute(c->reader, index, "_codes", &list);

	if (e < 0)
		return e;
	if (!has_flag(c, list, OBJECT_IS_LIST) &&
	    (e = object_attribute(c->reader, list, "_data", &list)) < 0)
		return e;
	if (!has_flag(c, list, OBJECT_IS_LIST | OBJECT_IS_TUPLE))
		return -EBADMSG;
	e = object_sequence_each(c->reader, list, take_first, &first);
	if (e < 0)
		return e;
	*out = first.item;
	return first.item ? 0 : -EBADMSG;
}

/* How many labels an Index has. */
static int get_length(struct render *c, uint64_t index, int64_t *out)
{
	struct numpy_array array;
	uint64_t object, length;
	int e;

	if (object_attribute(c->reader, index, "_range", &object) >= 0) {
		if (!is_named(c, object, "range"))
			return -EBADMSG;
		e = object_get_pointer(c->reader, render_fields(c, object) + 24, &length);
		return e < 0 ? e : object_long(c->reader, length, out);
	}
	if (object_attribute(c->reader, index, "_data", &object) < 0 &&
	    (e = get_codes(c, index, &object)) < 0)
		return e;
	if ((e = get_array(c, object, &object)) < 0 ||
	    (e = render_numpy_get(c, object, &array)) < 0)
		return e;
	if (!array.dimension_count)
		return -EBADMSG;
	return object_get(c->reader, array.dimensions, out, sizeof(*out));
}

/* --- names of columns ------------------------------------------------------------------------- */

static int put_labels(struct render *c, uint64_t object)
{
	struct render_list list = { .c = c, .separator = ", " };
	struct numpy_array array;
	struct numpy_descriptor descriptor;
	int64_t count, stride, number;
	uint64_t item;
	bool is_number;
	int e;

	if ((e = render_numpy_get(c, object, &array)) < 0 ||
	    (e = render_numpy_descriptor(c, array.descriptor, &descriptor)) < 0)
		return e;
	is_number = descriptor.kind == 'i' && descriptor.item_bytes == 8 && descriptor.order != '>';
	if (array.dimension_count != 1 || (!is_number && descriptor.kind != 'O'))
		return -ENOTSUP;
	if ((e = object_get(c->reader, array.dimensions, &count, 8)) < 0 ||
	    (e = object_get(c->reader, array.strides, &stride, 8)) < 0)
		return e;
	if (count < 0)
		return -EBADMSG;
	if (!render_open(c, object, (uint64_t)count, "[]"))
		return 0;
	list.count = (uint64_t)count;
	for (uint64_t i = 0; i < list.count; i++) {
		e = object_get_pointer(c->reader, array.data + i * (uint64_t)stride, &item);
		if (e < 0 || !render_next(&list))
			break;
		memcpy(&number, &item, sizeof(number));
		if (is_number)
			strbuf_appendf(c->out, "%lld", (long long)number);
		else
			render_value(c, item);
	}
	render_end(&list, e);
	strbuf_putc(c->out, ']');
	render_close(c);
	return 0;
}

static void put_columns(struct render *c, uint64_t index)
{
	uint64_t object;

	if (object_attribute(c->reader, index, "_range", &object) >= 0 &&
	    is_named(c, object, "range")) {
		render_value(c, object);
		return;
	}
	if (object_attribute(c->reader, index, "_data", &object) >= 0 &&
	    get_array(c, object, &object) >= 0 && put_labels(c, object) >= 0)
		return;
	strbuf_putc(c->out, '<');
	render_type(c->reader, index, c->out);
	strbuf_putc(c->out, '>');
}

static void put_length(struct render *c, uint64_t index)
{
	int64_t length;

	if (get_length(c, index, &length) < 0)
		strbuf_putc(c->out, '?');
	else
		strbuf_appendf(c->out, "%lld", (long long)length);
}

/* <pandas.DataFrame shape=(2, 1) columns=['a']>; ? is a number that is not known. */
int render_data_frame(struct render *c, uint64_t object)
{
	uint64_t axes[2];
	int e = get_axes(c, object, axes);

	if (e < 0)
		return e;
	strbuf_puts(c->out, "<pandas.DataFrame shape=(");
	put_length(c, axes[1]);
	strbuf_puts(c->out, ", ");
	put_length(c, axes[0]);
	strbuf_puts(c->out, ") columns=");
	put_columns(c, axes[0]);
	strbuf_putc(c->out, '>');
	return 0;
}

int render_not_a_time(struct render *c, uint64_t object)
{
	(void)object;
	strbuf_puts(c->out, "NaT");
	return 0;
}
