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

	if (!strcmp(name, "numpy.datetime64") || !strcmp(name, "numpy.timedelta64")) {
		e = render_datetime64(c, object, render_last_part(name));
		return e < 0 ? e : 1;
	}
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

/* --- arrays ----------------------------------------------------------------------------------- */

int render_numpy_get(struct render *c, uint64_t object, struct numpy_array *out)
{
	struct numpy_array array;
	int e = object_get(c->reader, render_fields(c, object), &array, sizeof(array));

	if (e < 0)
		return e;
	if (array.dimension_count < 0 || array.dimension_count > DIMENSIONS_MAX)
		return -EBADMSG;
	*out = array;
	return 0;
}

static int put_shape(struct render *c, const struct numpy_array *array)
{
	int64_t shape[DIMENSIONS_MAX];
	const size_t count = (size_t)array->dimension_count;
	int e = count ? object_get(c->reader, array->dimensions, shape, 8 * count) : 0;

	if (e < 0)
		return e;
	strbuf_puts(c->out, "<numpy.ndarray shape=");
	render_shape(c, shape, count);
	return 0;
}

/* --- what they are of ------------------------------------------------------------------------- */

#define ALIGNMENT_MAX 64
#define TYPES_MAX 256 /* NPY_USERDEF: types of others begin there */
#define AUXILIARY 32  /* bytes of NpyAuxData, before a numpy_unit */

/* _PyArray_LegacyDescr of NumPy 2 and PyArray_Descr of NumPy 1, without PyObject, as far as here.
 */
struct descriptor_2 {
	uint64_t scalar_type;
	uint8_t letters[8];
	uint64_t flags, item_bytes, alignment, metadata, hash, reserved[2];
	uint64_t subarray, fields, names, unit;
};
struct descriptor_1 {
	uint64_t scalar_type;
	uint8_t letters[8];
	int32_t item_bytes, alignment;
	uint64_t subarray, fields, names, functions, metadata, unit;
};

/* What NumPy 1 has in the place of the alignment is a pointer, or 0. */
int render_numpy_descriptor(struct render *c, uint64_t descriptor, struct numpy_descriptor *out)
{
	struct descriptor_2 new;
	struct descriptor_1 old;
	int e = object_get(c->reader, render_fields(c, descriptor), &old, sizeof(old));

	if (e < 0)
		return e;
	memset(out, 0, sizeof(*out));
	memcpy(out, &old, 16); /* up to number */
	out->item_bytes = (uint64_t)old.item_bytes;
	out->names = old.names;
	out->metadata = old.unit;
	if (!old.fields || old.fields > ALIGNMENT_MAX)
		return 0;
	e = object_get(c->reader, render_fields(c, descriptor), &new, sizeof(new));
	if (e < 0)
		return e;
	out->item_bytes = new.item_bytes;
	out->names = new.names;
	out->metadata = new.unit;
	return 0;
}

static void put_scalar_type(struct render *c, const struct numpy_descriptor *d)
{
	char name[NAME_BYTES];
	const char *last;
	size_t len;

	if (object_type_name(c->reader, d->scalar_type, name, sizeof(name)) < 0) {
		strbuf_putc(c->out, '?');
		return;
	}
	last = render_last_part(name);
	len = strlen(last);
	if (len > 1 && last[len - 1] == '_') /* bool_, object_ */
		len--;
	quote_name(c->out, last, len, 1);
}

/* datetime64[ns]. */
static void put_times(struct render *c, const struct numpy_descriptor *d)
{
	struct numpy_unit unit;

	if (d->order == '>')
		strbuf_puts(c->out, d->kind == 'M' ? ">M8" : ">m8");
	else
		strbuf_puts(c->out, d->kind == 'M' ? "datetime64" : "timedelta64");
	if (!d->metadata ||
	    object_get(c->reader, d->metadata + AUXILIARY, &unit, sizeof(unit)) < 0 ||
	    !render_numpy_has_unit(&unit) || render_numpy_is_generic(&unit))
		return;
	strbuf_putc(c->out, '[');
	render_numpy_unit(c, &unit);
	strbuf_putc(c->out, ']');
}

static bool is_tuple(struct render *c, uint64_t object)
{
	const struct object_type *type;

	return object && object_type_of(c->reader, object, &type) >= 0 &&
	       type->flags & OBJECT_IS_TUPLE;
}

/* float64, >f4. Not by the type of its scalars: longlong is another name of int64. */
static void put_number_type(struct render *c, const struct numpy_descriptor *d)
{
	const char *name = d->kind == 'i' ? "int" : d->kind == 'u' ? "uint" : "float";

	if (d->order == '>')
		strbuf_appendf(c->out, ">%c%llu", d->kind, (unsigned long long)d->item_bytes);
	else
		strbuf_appendf(c->out, "%s%llu", d->kind == 'c' ? "complex" : name,
			       (unsigned long long)d->item_bytes * 8);
}

/* As str(dtype), but of those with fields. */
static void put_type(struct render *c, const struct numpy_descriptor *d)
{
	const unsigned long long bytes = d->item_bytes;

	if (d->number < 0 || d->number >= TYPES_MAX)
		put_scalar_type(c, d);
	else if (d->kind == 'M' || d->kind == 'm')
		put_times(c, d);
	else if (d->kind == 'U')
		strbuf_appendf(c->out, "%cU%llu", d->order == '>' ? '>' : '<', bytes / 4);
	else if (d->kind == 'S')
		strbuf_appendf(c->out, "|S%llu", bytes);
	else if (d->kind == 'V' && is_tuple(c, d->names))
		strbuf_puts(c->out, "void");
	else if (d->kind == 'V')
		strbuf_appendf(c->out, "|V%llu", bytes);
	else if (d->kind && strchr("iufc", d->kind))
		put_number_type(c, d);
	else
		put_scalar_type(c, d);
}

int render_numpy_array(struct render *c, uint64_t object)
{
	struct numpy_array array;
	struct numpy_descriptor descriptor;
	int e = render_numpy_get(c, object, &array);

	if (e < 0 || (e = put_shape(c, &array)) < 0)
		return e;
	if (render_numpy_descriptor(c, array.descriptor, &descriptor) >= 0) {
		strbuf_puts(c->out, " dtype=");
		put_type(c, &descriptor);
		if (descriptor.kind == 'V' && is_tuple(c, descriptor.names)) {
			strbuf_puts(c->out, " fields=");
			render_value(c, descriptor.names);
		}
	}
	strbuf_putc(c->out, '>');
	return 0;
}
