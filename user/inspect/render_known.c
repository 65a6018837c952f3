/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/render_parts.h"

#include <errno.h>
#include <string.h>

#include "inspect/number.h"
#include "inspect/quote.h"

#define BASES_MAX 16
#define NAME_BYTES 64

/* --- constants and numbers -------------------------------------------------------------------- */

static int put_none(struct render *c, uint64_t object)
{
	(void)object;
	strbuf_puts(c->out, "None");
	return 0;
}

static int put_ellipsis(struct render *c, uint64_t object)
{
	(void)object;
	strbuf_puts(c->out, "Ellipsis");
	return 0;
}

static int put_not_implemented(struct render *c, uint64_t object)
{
	(void)object;
	strbuf_puts(c->out, "NotImplemented");
	return 0;
}

static int put_bool(struct render *c, uint64_t object)
{
	int64_t value;
	int e = object_long(c->reader, object, &value);

	if (e < 0)
		return e;
	strbuf_puts(c->out, value ? "True" : "False");
	return 0;
}

static int put_float(struct render *c, uint64_t object)
{
	double value;
	int e = object_get(c->reader, render_fields(c, object) + OBJECT_FLOAT, &value,
			   sizeof(value));

	if (e < 0)
		return e;
	number_float(c->out, value, true);
	return 0;
}

static int put_complex(struct render *c, uint64_t object)
{
	double parts[2];
	int e = object_get(c->reader, render_fields(c, object) + OBJECT_COMPLEX, parts,
			   sizeof(parts));

	if (e < 0)
		return e;
	number_complex(c->out, parts[0], parts[1]);
	return 0;
}

/* --- builtin containers and the like ---------------------------------------------------------- */

static int put_bytearray(struct render *c, uint64_t object)
{
	const size_t start = c->out->len;
	uint64_t size, bytes;
	int e;

	if ((e = object_get_pointer(c->reader, render_fields(c, object) + OBJECT_SIZE, &size)) <
		    0 ||
	    (e = object_get_pointer(c->reader, render_fields(c, object) + OBJECT_BYTEARRAY_START,
				    &bytes)) < 0)
		return e;
	strbuf_puts(c->out, "bytearray(");
	e = render_bytes(c, bytes, size);
	if (e < 0) {
		strbuf_truncate(c->out, start);
		return e;
	}
	strbuf_putc(c->out, ')');
	return 0;
}

/* So many objects one after another at the start of its fields, in brackets behind its name. */
static int put_fields(struct render *c, uint64_t object, const char *name, uint32_t count)
{
	uint64_t values[4];
	int e = object_get(c->reader, render_fields(c, object), values, 8 * count);

	if (e < 0)
		return e;
	strbuf_puts(c->out, name);
	if (!render_open(c, object, count, "()"))
		return 0;
	for (uint32_t i = 0; i < count; i++) {
		if (i)
			strbuf_puts(c->out, ", ");
		render_value(c, values[i]);
	}
	strbuf_putc(c->out, ')');
	render_close(c);
	return 0;
}

static int put_slice(struct render *c, uint64_t object)
{
	return put_fields(c, object, "slice", 3);
}

/* start, stop, step (Objects/rangeobject.c); a step of 1 is not written. */
static int put_range(struct render *c, uint64_t object)
{
	uint64_t step;
	int64_t value = 0;
	int e = object_get_pointer(c->reader, render_fields(c, object) + 16, &step);

	if (e < 0 || ((e = object_long(c->reader, step, &value)) < 0 && e != -ERANGE))
		return e;
	return put_fields(c, object, "range", value == 1 ? 2 : 3);
}

static int put_some_set(struct render *c, uint64_t object, const char *name)
{
	uint64_t count;
	size_t start = c->out->len;
	int e = object_get_pointer(c->reader, render_fields(c, object) + OBJECT_SET_USED, &count);

	if (e < 0)
		return e;
	if (!count || *name == 'f')
		strbuf_appendf(c->out, "%s(", name);
	e = count ? render_items(c, object, "{}") : 0;
	if (e < 0)
		strbuf_truncate(c->out, start);
	else if (!count || *name == 'f')
		strbuf_putc(c->out, ')');
	return e;
}

static int put_set(struct render *c, uint64_t object)
{
	return put_some_set(c, object, "set");
}

static int put_frozenset(struct render *c, uint64_t object)
{
	return put_some_set(c, object, "frozenset");
}

static int put_mappingproxy(struct render *c, uint64_t object)
{
	return put_fields(c, object, "mappingproxy", 1);
}

static int put_view(struct render *c, uint64_t object, const char *name, enum render_part part)
{
	const size_t start = c->out->len;
	int e;

	strbuf_puts(c->out, name);
	strbuf_putc(c->out, '(');
	e = render_dict_view(c, object, part);
	if (e < 0)
		strbuf_truncate(c->out, start);
	else
		strbuf_putc(c->out, ')');
	return e;
}

static int put_keys(struct render *c, uint64_t object)
{
	return put_view(c, object, "dict_keys", RENDER_KEYS);
}

static int put_values(struct render *c, uint64_t object)
{
	return put_view(c, object, "dict_values", RENDER_VALUES);
}

static int put_entries(struct render *c, uint64_t object)
{
	return put_view(c, object, "dict_items", RENDER_ITEMS);
}

static int put_ordered_keys(struct render *c, uint64_t object)
{
	return put_view(c, object, "odict_keys", RENDER_KEYS);
}

static int put_ordered_values(struct render *c, uint64_t object)
{
	return put_view(c, object, "odict_values", RENDER_VALUES);
}

static int put_ordered_entries(struct render *c, uint64_t object)
{
	return put_view(c, object, "odict_items", RENDER_ITEMS);
}

void render_shape(struct render *c, const int64_t *sizes, size_t count)
{
	strbuf_putc(c->out, '(');
	for (size_t i = 0; i < count; i++)
		strbuf_appendf(c->out, "%s%lld", i ? ", " : "", (long long)sizes[i]);
	strbuf_puts(c->out, count == 1 ? ",)" : ")");
}

/* --- code ------------------------------------------------------------------------------------- */

/* <KIND NAME at 0x...>, the name a str in this field. */
static int put_code(struct render *c, uint64_t object, const char *kind, uint32_t name_at)
{
	uint64_t name;
	int e = object_get_pointer(c->reader, render_fields(c, object) + name_at, &name);

	if (e < 0)
		return e;
	strbuf_appendf(c->out, "<%s ", kind);
	render_name(c->reader, name, c->out);
	strbuf_appendf(c->out, " at 0x%llx>", (unsigned long long)object);
	return 0;
}

static int put_function(struct render *c, uint64_t object)
{
	return put_code(c, object, "function", c->reader->layout->func_qualname);
}

static int put_generator(struct render *c, uint64_t object)
{
	return put_code(c, object, "generator object", c->reader->layout->gen_qualname);
}

static int put_coroutine(struct render *c, uint64_t object)
{
	return put_code(c, object, "coroutine object", c->reader->layout->gen_qualname);
}

static int put_async_generator(struct render *c, uint64_t object)
{
	return put_code(c, object, "async_generator object", c->reader->layout->gen_qualname);
}

void render_flat(struct render *c, uint64_t object)
{
	const uint32_t objects = c->objects;

	c->objects = c->options->limits->objects;
	render_value(c, object);
	c->objects = objects;
}

static int put_method(struct render *c, uint64_t object)
{
	uint64_t func, self, name = 0;
	int e;

	if ((e = object_get_pointer(c->reader, render_fields(c, object) + OBJECT_METHOD_FUNC,
				    &func)) < 0 ||
	    (e = object_get_pointer(c->reader, render_fields(c, object) + OBJECT_METHOD_SELF,
				    &self)) < 0)
		return e;
	object_get_pointer(c->reader, render_fields(c, func) + c->reader->layout->func_qualname,
			   &name);
	strbuf_puts(c->out, "<bound method ");
	render_name(c->reader, name, c->out);
	strbuf_puts(c->out, " of ");
	render_flat(c, self);
	strbuf_putc(c->out, '>');
	return 0;
}

static int put_builtin_function(struct render *c, uint64_t object)
{
	_cleanup_(strbuf_releasep) struct strbuf type = STRBUF_INIT;
	char name[NAME_BYTES];
	uint64_t def, self, chars;
	int e, len;

	if ((e = object_get_pointer(c->reader, render_fields(c, object) + OBJECT_CFUNCTION_DEF,
				    &def)) < 0 ||
	    (e = object_get_pointer(c->reader, render_fields(c, object) + OBJECT_CFUNCTION_SELF,
				    &self)) < 0 ||
	    (e = object_get_pointer(c->reader, def, &chars)) < 0 ||
	    (e = len = object_chars(c->reader, chars, name, sizeof(name))) < 0)
		return e;
	if (self)
		render_type(c->reader, self, &type);
	if (!self || !strcmp(strbuf_str(&type), "module")) {
		strbuf_puts(c->out, "<built-in function ");
		quote_name(c->out, name, len, 1);
		strbuf_putc(c->out, '>');
		return 0;
	}
	strbuf_puts(c->out, "<built-in method ");
	quote_name(c->out, name, len, 1);
	strbuf_appendf(c->out, " of %s object at 0x%llx>", strbuf_str(&type),
		       (unsigned long long)self);
	return 0;
}

static int put_module(struct render *c, uint64_t object)
{
	uint64_t dict, name;
	int e;

	if ((e = object_get_pointer(c->reader, render_fields(c, object) + OBJECT_MODULE_DICT,
				    &dict)) < 0 ||
	    (e = object_dict_get_str(c->reader, dict, "__name__", &name)) < 0)
		return e;
	strbuf_puts(c->out, "<module '");
	render_name(c->reader, name, c->out);
	strbuf_puts(c->out, "'>");
	return 0;
}

static int put_weakref(struct render *c, uint64_t object)
{
	uint64_t referent; /* None where it is gone; <= 3.13 None, too */
	int e = object_get_pointer(c->reader, render_fields(c, object), &referent);

	if (e < 0)
		return e;
	strbuf_appendf(c->out, "<weakref at 0x%llx; to ", (unsigned long long)object);
	render_flat(c, referent);
	strbuf_putc(c->out, '>');
	return 0;
}

/* --- collections ------------------------------------------------------------------------------ */

/* dequeobject (Modules/_collectionsmodule.c): the same from 3.6 to 3.15. */
#define DEQUE_BLOCK_ITEMS 64
struct deque {
	uint64_t size, left, right, left_index, right_index, state;
	int64_t maxlen;
};

static int put_deque_items(struct render_list *list, const struct deque *deque)
{
	struct render *c = list->c;
	uint64_t block[DEQUE_BLOCK_ITEMS + 2]; /* left link, items, right link */
	uint64_t at = deque->left, index = deque->left_index;

	for (uint64_t i = 0; i < deque->size; i++, index++) {
		int e = 0;

		if (index == DEQUE_BLOCK_ITEMS) {
			at = block[DEQUE_BLOCK_ITEMS + 1];
			index = 0;
		}
		if (!i || !index)
			e = object_get(c->reader, at, block, sizeof(block));
		if (e < 0)
			return e;
		if (!render_next(list))
			return 0;
		render_value(c, block[1 + index]);
	}
	return 0;
}

static int put_deque(struct render *c, uint64_t object)
{
	struct render_list list = { .c = c, .separator = ", " };
	struct deque deque;
	int e = object_get(c->reader, render_fields(c, object), &deque, sizeof(deque));

	if (e < 0)
		return e;
	if (deque.left_index >= DEQUE_BLOCK_ITEMS && deque.size)
		return -EBADMSG;
	strbuf_puts(c->out, "deque(");
	list.count = deque.size;
	if (render_open(c, object, deque.size, "[]")) {
		render_end(&list, put_deque_items(&list, &deque));
		strbuf_putc(c->out, ']');
		render_close(c);
	}
	if (deque.maxlen >= 0)
		strbuf_appendf(c->out, ", maxlen=%lld", (long long)deque.maxlen);
	strbuf_putc(c->out, ')');
	return 0;
}

static int put_ordered_dict(struct render *c, uint64_t object)
{
	const size_t start = c->out->len;
	int e;

	strbuf_puts(c->out, "OrderedDict(");
	e = render_dict(c, object);
	if (e < 0)
		strbuf_truncate(c->out, start);
	else
		strbuf_putc(c->out, ')');
	return e;
}

/* A dict, and behind it default_factory. */
static int put_default_dict(struct render *c, uint64_t object)
{
	const size_t start = c->out->len;
	uint64_t factory;
	int e = object_get_pointer(c->reader, render_fields(c, object) + 32, &factory);

	if (e < 0)
		return e;
	strbuf_puts(c->out, "defaultdict(");
	if (factory)
		render_flat(c, factory);
	else
		strbuf_puts(c->out, "None");
	strbuf_puts(c->out, ", ");
	e = render_dict(c, object);
	if (e < 0)
		strbuf_truncate(c->out, start);
	else
		strbuf_putc(c->out, ')');
	return e;
}

/* --- the table -------------------------------------------------------------------------------- */

static const struct {
	const char *name;   /* tp_name */
	const char *module; /* __module__ of a class made in Python; NULL: it is made in C */
	int (*put)(struct render *c, uint64_t object);
} known[] = {
	{ "NoneType", NULL, put_none },
	{ "ellipsis", NULL, put_ellipsis },
	{ "NotImplementedType", NULL, put_not_implemented },
	{ "bool", NULL, put_bool },
	{ "float", NULL, put_float },
	{ "complex", NULL, put_complex },
	{ "bytearray", NULL, put_bytearray },
	{ "slice", NULL, put_slice },
	{ "range", NULL, put_range },
	{ "set", NULL, put_set },
	{ "frozenset", NULL, put_frozenset },
	{ "mappingproxy", NULL, put_mappingproxy },
	{ "dict_keys", NULL, put_keys },
	{ "dict_values", NULL, put_values },
	{ "dict_items", NULL, put_entries },
	{ "odict_keys", NULL, put_ordered_keys },
	{ "odict_values", NULL, put_ordered_values },
	{ "odict_items", NULL, put_ordered_entries },
	{ "memoryview", NULL, render_memoryview },
	{ "array.array", NULL, render_array },
	{ "decimal.Decimal", NULL, render_decimal },
	{ "Decimal", "decimal", render_python_decimal },
	{ "function", NULL, put_function },
	{ "generator", NULL, put_generator },
	{ "coroutine", NULL, put_coroutine },
	{ "async_generator", NULL, put_async_generator },
	{ "method", NULL, put_method },
	{ "builtin_function_or_method", NULL, put_builtin_function },
	{ "module", NULL, put_module },
	{ "weakref", NULL, put_weakref },
	{ "weakref.ReferenceType", NULL, put_weakref },
	{ "collections.deque", NULL, put_deque },
	{ "collections.OrderedDict", NULL, put_ordered_dict },
	{ "collections.defaultdict", NULL, put_default_dict },
	{ "datetime.date", NULL, render_date },
	{ "datetime.datetime", NULL, render_datetime },
	{ "datetime.time", NULL, render_time },
	{ "datetime.timedelta", NULL, render_timedelta },
	{ "datetime.timezone", NULL, render_timezone },
	{ "numpy.ndarray", NULL, render_numpy_array },
	{ "DataFrame", "pandas", render_data_frame },
	{ "DataFrame", "pandas.core.frame", render_data_frame }, /* up to 2.x */
	{ "NaTType", "pandas.api.typing", render_not_a_time },
	{ "NaTType", "pandas._libs.tslibs.nattype", render_not_a_time }, /* up to 2.x */
};

static bool is_of_module(struct render *c, uint64_t dict, const char *module)
{
	uint64_t name;

	return dict && object_dict_get_str(c->reader, dict, "__module__", &name) >= 0 &&
	       object_str_is(c->reader, name, module) == 1;
}

/* A class written in Python may have the name of a builtin type, without a dot. */
static int find_known(struct render *c, const struct object_type *type, const char *name)
{
	const bool is_class = type->flags & OBJECT_TYPE_HEAP && !strchr(name, '.');
	const uint64_t dict = type->dict;

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strcmp(name, known[i].name) && is_class == !!known[i].module &&
		    (!is_class || is_of_module(c, dict, known[i].module)))
			return (int)i;
	return -1;
}

/* The row of the type, or of its nearest base that has one; -1: none, < -1: an errno. */
static int find_base(struct render *c, const struct object_type *type, const char *name,
		     bool *is_exact)
{
	char base_name[NAME_BYTES];
	uint64_t base = type->base;
	int row = find_known(c, type, name);

	*is_exact = row >= 0;
	for (int i = 0; row < 0 && base && i < BASES_MAX; i++) {
		const struct object_type *found;

		if (object_type_get(c->reader, base, &found) < 0 || !found->base || /* object */
		    object_chars(c->reader, found->name, base_name, sizeof(base_name)) < 0)
			return -1;
		base = found->base;
		row = find_known(c, found, base_name);
	}
	return row;
}

int render_known(struct render *c, uint64_t object, const struct object_type *type,
		 const char *name)
{
	const size_t start = c->out->len;
	bool is_exact;
	int e = render_numpy_scalar(c, object, name), row;

	if (e < 0)
		strbuf_truncate(c->out, start);
	if (e)
		return e;
	row = find_base(c, type, name, &is_exact);
	if (row < 0)
		return 0;
	name = render_last_part(name);
	if (!is_exact) {
		quote_name(c->out, name, strlen(name), 1);
		strbuf_putc(c->out, '(');
	}
	e = known[row].put(c, object);
	if (e < 0) {
		strbuf_truncate(c->out, start);
		/* An instance of a class made in Python can still be shown by its attributes. */
		return known[row].module && e != -E2BIG ? 0 : e;
	}
	if (!is_exact)
		strbuf_putc(c->out, ')');
	return 1;
}
