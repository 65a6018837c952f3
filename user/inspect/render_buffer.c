/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/render_parts.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "inspect/number.h"
#include "inspect/quote.h"

/*
 * array.array and memoryview: arrayobject of Modules/arraymodule.c, PyMemoryViewObject and
 * Py_buffer of Include; the same from 3.6 to 3.15.
 */

#define DIMENSIONS_MAX 64 /* PyBUF_MAX_NDIM */
#define FORMAT_BYTES 64
#define CHUNK_BYTES 512 /* of an array's items in one read: a multiple of every size of an item */

/* --- array.array ------------------------------------------------------------------------------ */

enum item_kind { ITEM_INT, ITEM_UINT, ITEM_FLOAT, ITEM_COMPLEX, ITEM_TEXT };

static const struct item {
	const char *code;
	enum item_kind kind;
	uint8_t bytes;
} items[] = {
	{ "b", ITEM_INT, 1 },      { "B", ITEM_UINT, 1 },      { "h", ITEM_INT, 2 },
	{ "H", ITEM_UINT, 2 },     { "i", ITEM_INT, 4 },       { "I", ITEM_UINT, 4 },
	{ "l", ITEM_INT, 8 },      { "L", ITEM_UINT, 8 },      { "q", ITEM_INT, 8 },
	{ "Q", ITEM_UINT, 8 },     { "e", ITEM_FLOAT, 2 },     { "f", ITEM_FLOAT, 4 },
	{ "d", ITEM_FLOAT, 8 },    { "u", ITEM_TEXT, 4 },      { "w", ITEM_TEXT, 4 },
	{ "Zf", ITEM_COMPLEX, 8 }, { "Zd", ITEM_COMPLEX, 16 },
};

struct array_object {
	uint64_t size; /* of items */
	uint64_t items, allocated;
	uint64_t descriptor;
};

/* struct arraydescr: up to 3.14 code is one character. */
struct array_descriptor {
	char code[4];
	int32_t item_bytes;
};

/* IEEE 754 binary16: a sign, 5 bits of exponent, 10 of mantissa. */
static double half_of(uint16_t bits)
{
	const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
	double value;

	if (exponent == 31)
		value = mantissa ? (double)NAN : (double)INFINITY;
	else
		value = exponent ? ldexp(mantissa + 1024, exponent - 25) : ldexp(mantissa, -24);
	return bits >> 15 ? -value : value;
}

static double float_of(const uint8_t *bytes, size_t size)
{
	uint16_t half;
	float single;
	double value;

	if (size == sizeof(half)) {
		memcpy(&half, bytes, sizeof(half));
		return half_of(half);
	}
	if (size == sizeof(single)) {
		memcpy(&single, bytes, sizeof(single));
		return (double)single;
	}
	memcpy(&value, bytes, sizeof(value));
	return value;
}

static void put_item(struct render *c, const struct item *item, const uint8_t *bytes)
{
	const unsigned int unused = 64 - 8 * (item->bytes & 7);
	const size_t half = item->bytes / 2;
	uint64_t value = 0;

	switch (item->kind) {
	case ITEM_FLOAT:
		number_float(c->out, float_of(bytes, item->bytes), true);
		return;
	case ITEM_COMPLEX:
		number_complex(c->out, float_of(bytes, half), float_of(bytes + half, half));
		return;
	default:
		break;
	}
	memcpy(&value, bytes, item->bytes);
	if (item->kind == ITEM_UINT)
		strbuf_appendf(c->out, "%llu", (unsigned long long)value);
	else
		strbuf_appendf(c->out, "%lld",
			       item->bytes == 8
				       ? (long long)value
				       : (long long)((int64_t)(value << unused) >> unused));
}

static int put_items(struct render_list *list, const struct item *item, uint64_t at)
{
	struct render *c = list->c;
	const uint64_t in_chunk = CHUNK_BYTES / item->bytes;
	uint8_t chunk[CHUNK_BYTES];

	for (uint64_t i = 0; i < list->count; i++) {
		uint64_t left = list->count - i, count = left < in_chunk ? left : in_chunk;
		int e = 0;

		if (!(i % in_chunk))
			e = object_get(c->reader, at + i * item->bytes, chunk, count * item->bytes);
		if (e < 0)
			return e;
		if (!render_next(list))
			return 0;
		put_item(c, item, chunk + i % in_chunk * item->bytes);
	}
	return 0;
}

static int put_characters(struct render *c, const struct array_object *array)
{
	uint8_t text[OBJECT_READ_BYTES];
	uint64_t most = render_chars(c) < sizeof(text) / 4 ? render_chars(c) : sizeof(text) / 4;
	uint64_t count = array->size < most ? array->size : most;
	int e = object_get(c->reader, array->items, text, 4 * count);

	if (e < 0)
		return e;
	quote_text(c->out, text, 4 * count, 4);
	if (array->size > count)
		strbuf_appendf(c->out, "...+%llu", (unsigned long long)(array->size - count));
	return 0;
}

int render_array(struct render *c, uint64_t object)
{
	struct render_list list = { .c = c, .separator = ", " };
	const struct item *item = items, *end = items + sizeof(items) / sizeof(*items);
	struct array_object array;
	struct array_descriptor descriptor;
	int e;

	if ((e = object_get(c->reader, render_fields(c, object), &array, sizeof(array))) < 0 ||
	    (e = object_get(c->reader, array.descriptor, &descriptor, sizeof(descriptor))) < 0)
		return e;
	descriptor.code[sizeof(descriptor.code) - 1] = '\0';
	while (item < end && strcmp(item->code, descriptor.code))
		item++;
	if (item == end || descriptor.item_bytes != item->bytes)
		return -EBADMSG;
	strbuf_appendf(c->out, "array('%s'", item->code);
	list.count = array.size;
	if (array.size)
		strbuf_puts(c->out, ", ");
	if (array.size && item->kind == ITEM_TEXT) {
		e = put_characters(c, &array);
	} else if (array.size && render_open(c, object, array.size, "[]")) {
		render_end(&list, put_items(&list, item, array.items));
		strbuf_putc(c->out, ']');
		render_close(c);
	}
	strbuf_putc(c->out, ')');
	return e;
}

/* --- memoryview ------------------------------------------------------------------------------- */

enum { VIEW_RELEASED = 1, VIEW_C = 2, VIEW_SCALAR = 8 }; /* _Py_MEMORYVIEW_... */

/* PyMemoryViewObject after PyObject, up to the end of its Py_buffer's pointers. */
struct memory_view {
	uint64_t size, managed, hash;
	int32_t flags, pad;
	uint64_t exports;
	uint64_t buffer, object, len, item_bytes;
	int32_t is_read_only, dimension_count;
	uint64_t format, shape, strides;
};

static int put_dimensions(struct render *c, const char *name, uint64_t at, size_t count)
{
	int64_t sizes[DIMENSIONS_MAX];
	int e = count ? object_get(c->reader, at, sizes, 8 * count) : 0;

	if (e < 0)
		return e;
	strbuf_appendf(c->out, " %s=", name);
	render_shape(c, sizes, count);
	return 0;
}

static int put_format(struct render *c, uint64_t chars)
{
	char format[FORMAT_BYTES] = "B"; /* what NULL means */
	int e = chars ? object_chars(c->reader, chars, format, sizeof(format)) : 1;

	if (e < 0)
		return e;
	strbuf_puts(c->out, " format=");
	quote_text(c->out, format, (size_t)e, 1);
	return 0;
}

/* <memoryview of bytes shape=(2,) format='B' b'ab'>: the bytes where they lie one after another. */
int render_memoryview(struct render *c, uint64_t object)
{
	struct memory_view view;
	int e = object_get(c->reader, render_fields(c, object), &view, sizeof(view));

	if (e < 0)
		return e;
	if (view.flags & VIEW_RELEASED) {
		strbuf_appendf(c->out, "<released memoryview at 0x%llx>",
			       (unsigned long long)object);
		return 0;
	}
	if (view.dimension_count < 0 || view.dimension_count > DIMENSIONS_MAX)
		return -EBADMSG;
	strbuf_puts(c->out, "<memoryview");
	if (view.object) {
		strbuf_puts(c->out, " of ");
		render_type(c->reader, view.object, c->out);
	}
	if ((e = put_dimensions(c, "shape", view.shape, (size_t)view.dimension_count)) < 0 ||
	    (e = put_format(c, view.format)) < 0)
		return e;
	if (view.flags & (VIEW_C | VIEW_SCALAR)) {
		strbuf_putc(c->out, ' ');
		e = render_bytes(c, view.buffer, view.len);
	} else {
		e = put_dimensions(c, "strides", view.strides, (size_t)view.dimension_count);
	}
	strbuf_putc(c->out, '>');
	return e;
}
