/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/render_parts.h"

#include <errno.h>
#include <string.h>

#include "inspect/number.h"
#include "inspect/quote.h"

/* NumPy's scalars and arrays: Include of NumPy 1.7 to 2.x, arrayscalars.h and ndarraytypes.h. */

#define DIMENSIONS_MAX 64 /* NPY_MAXDIMS of 2.x */
#define NAME_BYTES 64

enum kind { KIND_BOOL, KIND_INT, KIND_UINT, KIND_FLOAT };

/* What is behind PyObject, in so many bytes. */
static const struct scalar {
	const char *name; /* tp_name */
	enum kind kind;
	uint8_t bytes;
} scalars[] = {
	{ "numpy.bool", KIND_BOOL, 1 },      { "numpy.bool_", KIND_BOOL, 1 },
	{ "numpy.int8", KIND_INT, 1 },       { "numpy.int16", KIND_INT, 2 },
	{ "numpy.int32", KIND_INT, 4 },      { "numpy.int64", KIND_INT, 8 },
	{ "numpy.longlong", KIND_INT, 8 },   { "numpy.intc", KIND_INT, 4 },
	{ "numpy.uint8", KIND_UINT, 1 },     { "numpy.uint16", KIND_UINT, 2 },
	{ "numpy.uint32", KIND_UINT, 4 },    { "numpy.uint64", KIND_UINT, 8 },
	{ "numpy.ulonglong", KIND_UINT, 8 }, { "numpy.uintc", KIND_UINT, 4 },
	{ "numpy.float32", KIND_FLOAT, 4 },  { "numpy.float64", KIND_FLOAT, 8 },
};

static void put_float(struct render *c, const struct scalar *scalar, const void *value)
{
	double number;
	float single;

	if (scalar->bytes == sizeof(single)) {
		memcpy(&single, value, sizeof(single));
		number_single(c->out, single);
		return;
	}
	memcpy(&number, value, sizeof(number));
	number_float(c->out, number, true);
}

static void put_whole(struct render *c, const struct scalar *scalar, uint64_t value)
{
	const unsigned int unused = 64 - 8 * scalar->bytes;

	if (scalar->kind == KIND_INT)
		strbuf_appendf(c->out, "%lld", (long long)((int64_t)(value << unused) >> unused));
	else
		strbuf_appendf(c->out, "%llu", (unsigned long long)value);
}

int render_numpy_scalar(struct render *c, uint64_t object, const char *name)
{
	const struct scalar *scalar = scalars;
	const struct scalar *end = scalars + sizeof(scalars) / sizeof(*scalars);
	uint64_t value = 0;
	int e;

	while (scalar < end && strcmp(scalar->name, name))
		scalar++;
	if (scalar == end)
		return 0;
	e = object_get(c->reader, render_fields(c, object), &value, scalar->bytes);
	if (e < 0)
		return e;
	if (scalar->kind == KIND_BOOL) {
		strbuf_puts(c->out, value ? "np.True_" : "np.False_");
		return 1;
	}
	strbuf_appendf(c->out, "np.%s(", render_last_part(name));
	if (scalar->kind == KIND_FLOAT)
		put_float(c, scalar, &value);
	else
		put_whole(c, scalar, value);
	strbuf_putc(c->out, ')');
	return 1;
}

/* PyArrayObject, without PyObject; and a descriptor begins with the type of its scalars. */
struct array {
	uint64_t data;
	int32_t dimension_count, pad;
	uint64_t dimensions, strides, base, descriptor;
};

static int put_shape(struct render *c, const struct array *array)
{
	uint64_t shape[DIMENSIONS_MAX];
	const size_t count = (size_t)array->dimension_count;
	int e = count ? object_get(c->reader, array->dimensions, shape, 8 * count) : 0;

	if (e < 0)
		return e;
	strbuf_puts(c->out, "<numpy.ndarray shape=(");
	for (size_t i = 0; i < count; i++)
		strbuf_appendf(c->out, "%s%lld", i ? ", " : "", (long long)shape[i]);
	strbuf_puts(c->out, count == 1 ? ",)" : ")");
	return 0;
}

int render_numpy_array(struct render *c, uint64_t object)
{
	struct array array;
	char name[NAME_BYTES];
	uint64_t type;
	int e = object_get(c->reader, render_fields(c, object), &array, sizeof(array));

	if (e < 0)
		return e;
	if (array.dimension_count < 0 || array.dimension_count > DIMENSIONS_MAX)
		return -EBADMSG;
	e = put_shape(c, &array);
	if (e < 0)
		return e;
	if (object_get_pointer(c->reader, render_fields(c, array.descriptor), &type) >= 0 &&
	    (e = object_type_name(c->reader, type, name, sizeof(name))) >= 0) {
		strbuf_puts(c->out, " dtype=");
		quote_name(c->out, render_last_part(name), strlen(render_last_part(name)), 1);
	}
	strbuf_putc(c->out, '>');
	return 0;
}
