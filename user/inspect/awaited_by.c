/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "inspect/future.h"

#define METHOD_FUNCTION \
	0 /* PyMethodObject, PyCFunctionObject, partialobject: from their head's end */
#define METHOD_SELF 8
#define BUILTIN_METHOD 0
#define BUILTIN_SELF 8
#define PARTIAL_ARGS 8
#define DEQUE_LEFT_BLOCK 8 /* dequeobject */
#define DEQUE_LEFT_INDEX 24
#define DEQUE_ITEMS 8 /* in a block, behind the pointer to the one before */
#define DEQUE_BLOCK_ITEMS 64
#define DEQUE_ITEMS_MAX 1024 /* that are looked at */

/* What stands between a task and those who wait for it: futures, each looked at once. */
struct search {
	struct await_reader *a;
	object_item_fn fn;
	void *arg;
	uint64_t futures[AWAITED_BY_FUTURES_MAX];
	size_t len;
};

static int add_future(struct search *s, uint64_t future)
{
	for (size_t i = 0; i < s->len; i++)
		if (s->futures[i] == future)
			return 0;
	if (s->len < AWAITED_BY_FUTURES_MAX)
		s->futures[s->len++] = future;
	return 0;
}

/* Some object is told of it when it is done, or it is noted as one that waits for it. */
static int add_waiter(struct object_reader *r, uint64_t object, void *arg)
{
	struct search *s = arg;
	enum object_kind kind;
	int e = object_kind(&s->a->kinds, r, object, &kind);

	if (e < 0)
		return e;
	if (kind_is_task(kind))
		return s->fn(r, object, s->arg);
	return kind_is_future(kind) ? add_future(s, object) : 0;
}

static int add_attribute(struct search *s, uint64_t object, const char *name)
{
	uint64_t value;
	int e = object_attribute(&s->a->objects, object, name, &value);

	if (e == -ENOENT)
		return 0;
	return e < 0 ? e : add_waiter(&s->a->objects, value, s);
}

/* The futures of those who wait in get() of a queue. */
static int add_getters(struct search *s, uint64_t queue)
{
	struct object_reader *r = &s->a->objects;
	uint64_t getters, count, block, index, item;
	int e = object_attribute(r, queue, "_getters", &getters);

	if (e == -ENOENT)
		return 0;
	if (e < 0 || (e = object_get_pointer(r, getters + r->head, &count)) < 0 ||
	    (e = object_get_pointer(r, getters + r->head + DEQUE_LEFT_BLOCK, &block)) < 0 ||
	    (e = object_get_pointer(r, getters + r->head + DEQUE_LEFT_INDEX, &index)) < 0)
		return e;
	for (unsigned int i = 0; i < count && i < DEQUE_ITEMS_MAX; i++, index++) {
		if (index >= DEQUE_BLOCK_ITEMS) { /* the next block: behind the items */
			e = object_get_pointer(r, block + DEQUE_ITEMS + 8ULL * DEQUE_BLOCK_ITEMS,
					       &block);
			index = 0;
		}
		if (e < 0 ||
		    (e = object_get_pointer(r, block + DEQUE_ITEMS + 8 * index, &item)) < 0 ||
		    (e = add_waiter(r, item, s)) != 0)
			return e;
	}
	return 0;
}

/* A group of anyio knows the task that waits for it by its cancel scope. */
static int add_host_task(struct search *s, uint64_t group)
{
	uint64_t scope;
	int e = object_attribute(&s->a->objects, group, "cancel_scope", &scope);

	if (e == -ENOENT)
		return 0;
	return e < 0 ? e : add_attribute(s, scope, "_host_task");
}

static int add_queue_of(struct search *s, uint64_t object)
{
	uint64_t queue;
	int e = object_attribute(&s->a->objects, object, "_done", &queue);

	if (e == -ENOENT)
		return 0;
	return e < 0 ? e : add_getters(s, queue);
}

/* What a callback holds on to. A task there is not one that waits: it may be to be cancelled. */
static int add_held(struct search *s, uint64_t object)
{
	enum object_kind kind;
	int e = object_kind(&s->a->kinds, &s->a->objects, object, &kind);

	if (e < 0)
		return e;
	switch (kind) {
	case KIND_FUTURE:
	case KIND_PY_FUTURE:
		return add_future(s, object);
	case KIND_TASK_GROUP:
		return add_attribute(s, object, "_parent_task");
	case KIND_ANYIO_TASK_GROUP:
		return add_host_task(s, object);
	case KIND_QUEUE:
		return add_getters(s, object);
	case KIND_AS_COMPLETED:
		return add_queue_of(s, object);
	default:
		return 0;
	}
}

static int add_cell(struct object_reader *r, uint64_t cell, void *arg)
{
	uint64_t object;
	int e = object_get_pointer(r, cell + r->head + OBJECT_CELL, &object);

	return e < 0 ? e : object ? add_held(arg, object) : 0;
}

static int add_argument(struct object_reader *r, uint64_t object, void *arg)
{
	(void)r;
	return add_held(arg, object);
}

static int function_code(struct await_reader *a, uint64_t function, const struct code_object **out)
{
	struct object_reader *r = &a->objects;
	uint64_t code;
	int e = object_get_pointer(r, function + r->head + r->layout->func_code, &code);

	return e < 0 ? e : code_objects_get(a->codes, r, code, out);
}

static int follow_function(struct search *s, uint64_t function)
{
	struct object_reader *r = &s->a->objects;
	uint64_t closure;
	int e = object_get_pointer(r, function + r->head + r->layout->func_closure, &closure);

	return e < 0 ? e : closure ? object_sequence_each(r, closure, add_cell, s) : 0;
}

/* Task.__wakeup of a task made in Python is such a method, and no other of its methods waits. */
static int follow_method(struct search *s, uint64_t method)
{
	struct object_reader *r = &s->a->objects;
	const struct code_object *code;
	enum object_kind kind;
	uint64_t self, function;
	int e;

	if ((e = object_get_pointer(r, method + r->head + METHOD_SELF, &self)) < 0 ||
	    (e = object_kind(&s->a->kinds, r, self, &kind)) < 0)
		return e;
	if (!kind_is_task(kind))
		return add_held(s, self);
	if ((e = object_get_pointer(r, method + r->head + METHOD_FUNCTION, &function)) < 0 ||
	    (e = object_kind(&s->a->kinds, r, function, &kind)) < 0 || kind != KIND_FUNCTION ||
	    (e = function_code(s->a, function, &code)) < 0)
		return e;
	return strcmp(code->own_name, "__wakeup") ? 0 : add_waiter(r, self, s);
}

/* The same of one made in C: a function whose self is the task. */
static int follow_builtin(struct search *s, uint64_t builtin)
{
	struct object_reader *r = &s->a->objects;
	uint64_t method, chars, self;
	char name[24];
	int e;

	if ((e = object_get_pointer(r, builtin + r->head + BUILTIN_METHOD, &method)) < 0 ||
	    (e = object_get_pointer(r, method, &chars)) < 0 ||
	    (e = object_chars(r, chars, name, sizeof(name))) < 0)
		return e;
	if (strcmp(name, "task_wakeup") != 0)
		return 0;
	e = object_get_pointer(r, builtin + r->head + BUILTIN_SELF, &self);
	return e < 0 ? e : self ? add_waiter(r, self, s) : 0;
}

static int follow_callback(struct object_reader *r, uint64_t callback, void *arg)
{
	struct search *s = arg;
	enum object_kind kind;
	uint64_t object;
	int e = object_kind(&s->a->kinds, r, callback, &kind);

	if (e < 0)
		return e;
	switch (kind) {
	case KIND_FUNCTION:
		return follow_function(s, callback);
	case KIND_METHOD:
		return follow_method(s, callback);
	case KIND_BUILTIN:
		return follow_builtin(s, callback);
	case KIND_WAKEUP:
		e = object_get_pointer(r, callback + r->head, &object);
		return e < 0 ? e : add_waiter(r, object, s);
	case KIND_PARTIAL:
		e = object_get_pointer(r, callback + r->head + PARTIAL_ARGS, &object);
		return e < 0 ? e : object_sequence_each(r, object, add_argument, s);
	default:
		return 0;
	}
}

static int follow_future(struct search *s, const struct future *f)
{
	struct object_reader *r = &s->a->objects;
	enum object_kind kind;
	int e;

	if (f->awaited_by) {
		if ((e = object_kind(&s->a->kinds, r, f->awaited_by, &kind)) < 0)
			return e;
		if (f->awaited_by_is_set && kind != KIND_NONE)
			e = object_set_each(r, f->awaited_by, add_waiter, s);
		else
			e = add_waiter(r, f->awaited_by, s);
		if (e)
			return e;
	}
	return future_callbacks_each(s->a, f, follow_callback, s);
}

int awaited_by_each(struct await_reader *a, const struct future *task, object_item_fn fn, void *arg)
{
	struct search s = { .a = a, .fn = fn, .arg = arg };
	enum object_kind kind;
	struct future f;
	int e = follow_future(&s, task);

	for (size_t i = 0; !e && i < s.len; i++) {
		if ((e = object_kind(&a->kinds, &a->objects, s.futures[i], &kind)) < 0 ||
		    (e = future_get(a, s.futures[i], kind, &f)) < 0)
			return e;
		e = follow_future(&s, &f);
	}
	return e;
}
