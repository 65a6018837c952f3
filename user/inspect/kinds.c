/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/kinds.h"

#include <errno.h>
#include <string.h>

#define BASES_MAX 16
#define TYPE_DICT 248 /* PyTypeObject.tp_dict, from the end of PyObject */

/* The start of the module in which Cython keeps its types, each version its own: _cython_3_1_2 */
#define CYTHON "_cython_"

struct kind_row {
	const char *name;   /* tp_name */
	const char *module; /* __module__ of a class made in Python; CYTHON; NULL: made in C */
	enum object_kind kind;
};

static const struct kind_row rows[] = {
	{ "coroutine", NULL, KIND_COROUTINE },
	{ "generator", NULL, KIND_GENERATOR },
	{ "async_generator", NULL, KIND_ASYNC_GENERATOR },
	{ "coroutine_wrapper", NULL, KIND_WRAPPER },
	{ "async_generator_asend", NULL, KIND_WRAPPER },
	{ "async_generator_athrow", NULL, KIND_WRAPPER },
	{ "anext_awaitable", NULL, KIND_WRAPPER },
	{ "_asyncio.FutureIter", NULL, KIND_WRAPPER },
	{ "coroutine", CYTHON, KIND_CYTHON },
	{ "iterable_coroutine", CYTHON, KIND_CYTHON },
	{ "generator", CYTHON, KIND_CYTHON },
	{ "async_generator", CYTHON, KIND_CYTHON },
	{ "coroutine_wrapper", CYTHON, KIND_WRAPPER },
	{ "async_generator_asend", CYTHON, KIND_WRAPPER },
	{ "async_generator_athrow", CYTHON, KIND_WRAPPER },
	{ "_asyncio.Future", NULL, KIND_FUTURE },
	{ "_asyncio.Task", NULL, KIND_TASK },
	{ "Future", "asyncio.futures", KIND_PY_FUTURE },
	{ "Task", "asyncio.tasks", KIND_PY_TASK },
	{ "method", NULL, KIND_METHOD },
	{ "builtin_function_or_method", NULL, KIND_BUILTIN },
	{ "function", NULL, KIND_FUNCTION },
	{ "functools.partial", NULL, KIND_PARTIAL },
	{ "TaskWakeupMethWrapper", NULL, KIND_WAKEUP },
	{ "TaskGroup", "asyncio.taskgroups", KIND_TASK_GROUP },
	{ "TaskGroup", "anyio._backends._asyncio", KIND_ANYIO_TASK_GROUP },
	{ "Queue", "asyncio.queues", KIND_QUEUE },
	{ "_AsCompletedIterator", "asyncio.tasks", KIND_AS_COMPLETED },
	{ "Task", "trio.lowlevel", KIND_TRIO_TASK },
	{ "Runner", "trio._core._run", KIND_TRIO_RUNNER },
	{ "greenlet.greenlet", NULL, KIND_GREENLET },
	{ "NoneType", NULL, KIND_NONE },
	{ "float", NULL, KIND_FLOAT },
	{ "cell", NULL, KIND_CELL },
};

void object_kinds_release(struct object_kinds *k)
{
	address_map_release(&k->map);
}

/*
 * What a type says of itself. Not object_type_get(), which wants one that is ready: what awaits
 * asynchronous generators is not in 3.8 and 3.9, as long as nobody asks it for an attribute.
 */
struct type {
	uint64_t address;
	uint64_t basicsize, flags, base;
	char name[96]; /* cut */
};

static int read_type(struct object_reader *r, uint64_t address, struct type *out)
{
	const uint64_t at = address + r->head;
	uint64_t name;
	int e;

	if ((e = object_get_pointer(r, at + OBJECT_TYPE_NAME, &name)) < 0 ||
	    (e = object_get_pointer(r, at + OBJECT_TYPE_BASICSIZE, &out->basicsize)) < 0 ||
	    (e = object_get_pointer(r, at + OBJECT_TYPE_FLAGS, &out->flags)) < 0 ||
	    (e = object_get_pointer(r, at + OBJECT_TYPE_BASE, &out->base)) < 0 ||
	    (e = object_chars(r, name, out->name, sizeof(out->name))) < 0)
		return e;
	out->address = address;
	return 0;
}

/* Is this class of that module? */
static int is_of_module(struct object_reader *r, uint64_t type, const char *module)
{
	uint64_t dict, name;
	int e;

	if ((e = object_get_pointer(r, type + r->head + TYPE_DICT, &dict)) < 0 ||
	    (e = object_dict_get_str(r, dict, "__module__", &name)) < 0)
		return e;
	return object_str_is(r, name, module);
}

/* The type's name without Cython's module; NULL: the type is none of Cython's. */
static const char *name_in_cython(const struct type *t)
{
	const char *dot = strncmp(t->name, CYTHON, strlen(CYTHON)) ? NULL : strchr(t->name, '.');

	return dot ? dot + 1 : NULL;
}

static int is_of_row(struct object_reader *r, const struct type *t, const struct kind_row *row)
{
	bool is_heap = t->flags & OBJECT_TYPE_HEAP;
	const char *in_cython = name_in_cython(t);

	if (row->module && !strcmp(row->module, CYTHON))
		return in_cython && !strcmp(row->name, in_cython);
	if (strcmp(row->name, t->name) != 0)
		return 0;
	/* A class that Python made has no dot in its name. */
	if (!row->module)
		return !is_heap || strchr(t->name, '.');
	return is_heap ? is_of_module(r, t->address, row->module) : 0;
}

/* The row of just this type. -ENOENT: none. */
static int row_of(struct object_reader *r, const struct type *t, enum object_kind *out)
{
	int e;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		e = is_of_row(r, t, &rows[i]);
		if (e == -E2BIG)
			return e;
		if (e > 0) {
			*out = rows[i].kind;
			return 0;
		}
	}
	return -ENOENT;
}

static int kind_of_type(struct object_kinds *k, struct object_reader *r, uint64_t address,
			enum object_kind *out)
{
	enum object_kind kind;
	struct type type;
	int e;

	*out = KIND_OTHER;
	for (int i = 0; i < BASES_MAX && address; i++, address = type.base) {
		if ((e = read_type(r, address, &type)) < 0)
			return e;
		e = row_of(r, &type, &kind);
		if (e == -ENOENT)
			continue;
		if (e < 0)
			return e;
		if (kind != KIND_TASK || type.basicsize == k->task_bytes)
			*out = kind;
		return 0;
	}
	return 0;
}

/* Of a type, whose objects are all alike in this. */
static int known_kind(struct object_kinds *k, struct object_reader *r, uint64_t type,
		      enum object_kind *out)
{
	uint32_t known = address_map_get(&k->map, type);
	int e;

	if (known != ADDRESS_NONE) {
		*out = (enum object_kind)known;
		return 0;
	}
	e = kind_of_type(k, r, type, out);
	return e < 0 ? e : address_map_put(&k->map, type, *out);
}

int object_kind(struct object_kinds *k, struct object_reader *r, uint64_t object,
		enum object_kind *out)
{
	struct address_slot *recent;
	uint64_t type;
	int e;

	if (!object) {
		*out = KIND_NONE;
		return 0;
	}
	if ((e = object_type(r, object, &type)) < 0)
		return e;
	if (!type)
		return -EBADMSG;
	recent = &k->recent[type / 16 % KINDS_RECENT];
	if (recent->address != type) {
		if ((e = known_kind(k, r, type, out)) < 0)
			return e;
		*recent = (struct address_slot){ .address = type, .index = *out };
	}
	*out = (enum object_kind)recent->index;
	return 0;
}
