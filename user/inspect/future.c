/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/future.h"

#include <errno.h>
#include <string.h>

#define TASK_BYTES 512 /* more than any version's */

/* --- made in C -------------------------------------------------------------------------------- */

static uint64_t field(const uint8_t *block, size_t at, size_t bytes)
{
	uint64_t value = 0;

	memcpy(&value, block + at, bytes);
	return value;
}

static int future_of_c(struct await_reader *a, struct future *f)
{
	const struct task_layout *l = &a->layout;
	bool is_task = kind_is_task(f->kind);
	size_t bytes = is_task ? l->task_bytes : l->future_state + sizeof(int);
	uint8_t block[TASK_BYTES] = { 0 };
	int e;

	if (l->awaited_by && !is_task)
		bytes = l->awaited_by_is_set + 1U;
	if (bytes > sizeof(block))
		return -EBADMSG;
	if ((e = object_get(&a->objects, f->address, block, bytes)) < 0)
		return e;
	f->is_done = field(block, l->future_state, sizeof(int));
	f->loop = field(block, l->loop, 8);
	f->callback = field(block, l->callback, 8);
	f->callbacks = field(block, l->callbacks, 8);
	f->source_traceback = field(block, l->source_traceback, 8);
	if (l->awaited_by) {
		f->awaited_by = field(block, l->awaited_by, 8);
		f->awaited_by_is_set = field(block, l->awaited_by_is_set, 1);
	}
	if (is_task) {
		f->coro = field(block, l->coro, 8);
		f->fut_waiter = field(block, l->fut_waiter, 8);
		f->name = field(block, l->name, 8);
	}
	return 0;
}

/* --- made in Python --------------------------------------------------------------------------- */

struct future_attributes {
	struct await_reader *a;
	struct future *f;
	bool has_state;
};

static int take_attribute(struct object_reader *r, const struct object_entry *entry, void *arg)
{
	struct future_attributes *attributes = arg;
	struct future *f = attributes->f;
	const struct {
		const char *name;
		uint64_t *value;
	} wanted[] = {
		{ "_loop", &f->loop },
		{ "_callbacks", &f->callbacks },
		{ "_source_traceback", &f->source_traceback },
		{ "_Future__asyncio_awaited_by", &f->awaited_by },
		{ "_coro", &f->coro },
		{ "_fut_waiter", &f->fut_waiter },
		{ "_name", &f->name },
	};
	int e;

	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		if ((e = object_str_is(r, entry->key, wanted[i].name)) != 0) {
			*wanted[i].value = entry->value;
			return e < 0 ? e : 0;
		}
	}
	if ((e = object_str_is(r, entry->key, "_state")) <= 0)
		return e;
	attributes->has_state = true;
	e = object_str_is(r, entry->value, "PENDING");
	f->is_done = !e;
	return e < 0 ? e : 0;
}

/* _state is an attribute of the class until it changes: 'PENDING'. */
static int future_of_python(struct await_reader *a, struct future *f)
{
	struct future_attributes attributes = { .a = a, .f = f };
	int e = object_attributes_each(&a->objects, f->address, take_attribute, &attributes);

	f->awaited_by_is_set = f->awaited_by != 0;
	return e;
}

int future_get(struct await_reader *a, uint64_t object, enum object_kind kind, struct future *out)
{
	struct future f = { .address = object, .kind = kind };
	int e = -EBADMSG;

	if (kind == KIND_FUTURE || kind == KIND_TASK)
		e = future_of_c(a, &f);
	else if (kind == KIND_PY_FUTURE || kind == KIND_PY_TASK)
		e = future_of_python(a, &f);
	if (!e)
		*out = f;
	return e;
}

/* --- what is to be called --------------------------------------------------------------------- */

struct callbacks {
	object_item_fn fn;
	void *arg;
};

/* An item of the list: a tuple, whose first item is the callback. */
static int take_callback(struct object_reader *r, uint64_t item, void *arg)
{
	const struct callbacks *c = arg;
	uint64_t callback;
	int e = object_get_pointer(r, item + r->head + r->layout->tuple_items, &callback);

	return e < 0 ? e : callback ? c->fn(r, callback, c->arg) : 0;
}

int future_callbacks_each(struct await_reader *a, const struct future *f, object_item_fn fn,
			  void *arg)
{
	struct callbacks c = { .fn = fn, .arg = arg };
	enum object_kind kind;
	int e = 0;

	if (f->callback && (e = object_kind(&a->kinds, &a->objects, f->callback, &kind)) < 0)
		return e;
	if (f->callback && kind != KIND_NONE && (e = fn(&a->objects, f->callback, arg)) != 0)
		return e;
	if ((e = object_kind(&a->kinds, &a->objects, f->callbacks, &kind)) < 0)
		return e;
	if (kind == KIND_NONE)
		return 0;
	return object_sequence_each(&a->objects, f->callbacks, take_callback, &c);
}
