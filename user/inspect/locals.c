/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/locals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Include/cpython/code.h */
#define CODE_OPTIMIZED 0x1 /* its variables are in slots, and not in a dict */
#define CODE_VARARGS 0x4
#define CODE_VARKEYWORDS 0x8
/* Include/internal/pycore_code.h, 3.11 on; given by us up to 3.10 */
#define KIND_HIDDEN 0x10 /* of a comprehension that is part of the function (3.12 on) */
#define KIND_LOCAL 0x20
#define KIND_CELL 0x40
#define KIND_FREE 0x80
/* Include/internal/pycore_stackref.h, 3.14 on: an int in the reference itself */
#define TAG_BITS 3
#define TAG_INT 3

struct variable {
	uint64_t name;  /* of a str */
	uint64_t value; /* of an object or, tagged, of none; 0: it has none */
	uint8_t kind;
	bool is_argument;
};

struct variables {
	struct variable items[LOCALS_MAX];
	size_t count, max; /* count <= max <= LOCALS_MAX */
	size_t left_out;
	uint8_t kind; /* of those that are added */
};

/* --- names ------------------------------------------------------------------------------------ */

static int add_name(struct object_reader *r, uint64_t name, void *arg)
{
	struct variables *v = arg;

	(void)r;
	if (v->count == v->max) {
		v->left_out++;
		return v->left_out > UINT16_MAX; /* no more of them are counted */
	}
	v->items[v->count++] = (struct variable){ .name = name, .kind = v->kind };
	return 0;
}

static int add_names(struct object_reader *r, uint64_t code, uint8_t field, uint8_t kind,
		     struct variables *v)
{
	uint64_t names;
	int e = object_get_pointer(r, code + r->head + field, &names);

	if (e < 0)
		return e;
	v->kind = kind;
	e = object_sequence_each(r, names, add_name, v);
	return e < 0 ? e : 0;
}

/* 3.11 on: a byte for each name. */
static int get_kinds(struct object_reader *r, uint64_t code, struct variables *v)
{
	uint8_t kinds[LOCALS_MAX];
	uint64_t bytes, len;
	int e;

	if ((e = object_get_pointer(r, code + r->head + r->layout->code_kinds, &bytes)) < 0 ||
	    (e = object_get_pointer(r, bytes + r->off->bytes_size, &len)) < 0)
		return e;
	if (len < v->count)
		return -EBADMSG;
	e = v->count ? object_get(r, bytes + r->off->bytes_data, kinds, v->count) : 0;
	for (size_t i = 0; !e && i < v->count; i++)
		v->items[i].kind = kinds[i];
	return e;
}

static int get_int(struct object_reader *r, uint64_t addr, int32_t *out)
{
	return object_get(r, addr, out, sizeof(*out));
}

static int mark_arguments(struct object_reader *r, uint64_t code, int32_t flags,
			  struct variables *v)
{
	const struct object_layout *l = r->layout;
	int32_t positional, keywords;
	int64_t count;
	int e;

	if ((e = get_int(r, code + r->head + l->code_argcount, &positional)) < 0 ||
	    (e = get_int(r, code + r->head + l->code_kwonlyargcount, &keywords)) < 0)
		return e;
	count = (int64_t)positional + keywords + !!(flags & CODE_VARARGS) +
		!!(flags & CODE_VARKEYWORDS);
	for (size_t i = 0; i < v->count && (int64_t)i < count; i++)
		v->items[i].is_argument = true;
	return 0;
}

static int get_names(struct object_reader *r, uint64_t code, int32_t flags, struct variables *v)
{
	const struct object_layout *l = r->layout;
	int e = add_names(r, code, l->code_names, KIND_LOCAL, v);

	if (!e && l->code_kinds != OFF_NONE_8)
		e = get_kinds(r, code, v);
	else if (!e && !(e = add_names(r, code, l->code_cellvars, KIND_CELL, v)))
		e = add_names(r, code, l->code_freevars, KIND_FREE, v);
	return e ? e : mark_arguments(r, code, flags, v);
}

/* --- values ----------------------------------------------------------------------------------- */

static int get_slots(struct object_reader *r, uint64_t frame, struct variables *v)
{
	uint64_t block[OBJECT_READ_BYTES / 8];
	const size_t at_once = sizeof(block) / 8;
	uint64_t slots = frame + (r->layout->frame_localsplus == OFF_NONE
					  ? r->off->frame_size
					  : r->head + r->layout->frame_localsplus);
	int e = 0;

	for (size_t i = 0; i < v->count && !e; i++) {
		size_t left = v->count - i;

		if (i % at_once == 0)
			e = object_get(r, slots + 8 * i, block,
				       8 * (left < at_once ? left : at_once));
		v->items[i].value = e ? 0 : block[i % at_once];
	}
	return e;
}

static bool is_tagged_int(const struct object_reader *r, uint64_t value)
{
	return r->off->tagged_mask == TAG_BITS && (value & TAG_BITS) == TAG_INT;
}

static bool is_cell(struct object_reader *r, uint64_t object)
{
	char name[8];
	uint64_t type;

	return object && object_type(r, object, &type) >= 0 &&
	       object_type_name(r, type, name, sizeof(name)) >= 0 && !strcmp(name, "cell");
}

/* What is in a slot: an object, or one in a cell, which is not there before the function begins. */
static void resolve(struct object_reader *r, struct variable *v)
{
	if (is_tagged_int(r, v->value))
		return;
	v->value &= ~(uint64_t)r->off->tagged_mask;
	if (v->kind & (KIND_CELL | KIND_FREE) && is_cell(r, v->value))
		object_get_pointer(r, v->value + r->head + OBJECT_CELL, &v->value);
}

/* Up to 3.10 an argument that is shared has moved from its slot to a cell of the same name. */
static void merge_cell(struct variables *v, size_t cell)
{
	for (size_t i = 0; i < cell && v->items[i].is_argument; i++) {
		struct variable *argument = &v->items[i];

		if (argument->name != v->items[cell].name || argument->value)
			continue;
		argument->value = v->items[cell].value;
		argument->kind |= KIND_CELL;
		v->items[cell].kind = KIND_HIDDEN;
		v->items[cell].value = 0;
	}
}

static void get_values(struct object_reader *r, struct variables *v)
{
	for (size_t i = 0; i < v->count; i++) {
		resolve(r, &v->items[i]);
		if (v->items[i].kind == KIND_CELL && r->layout->code_kinds == OFF_NONE_8)
			merge_cell(v, i);
	}
}

static int get_slot_variables(struct object_reader *r, uint64_t frame, uint64_t code, int32_t flags,
			      struct variables *v)
{
	int e;

	if ((e = get_names(r, code, flags, v)) < 0 || (e = get_slots(r, frame, v)) < 0)
		return e;
	get_values(r, v);
	return 0;
}

/* --- namespaces ------------------------------------------------------------------------------- */

/* What a module and a class have for others to use, and of its own accord. */
static const char *const definitions[] = { "module", "function", "builtin_function_or_method" };

static bool is_definition(struct object_reader *r, const struct object_entry *entry)
{
	struct object_text text;
	char name[sizeof("builtin_function_or_method")], start[8];
	const struct object_type *type;

	if (object_str(r, entry->key, start, sizeof(start), &text) >= 0 && text.kind == 1 &&
	    text.len > 1 && start[0] == '_' && start[1] == '_')
		return true;
	if (object_type_of(r, entry->value, &type) < 0)
		return false;
	if (type->flags & OBJECT_IS_TYPE)
		return true;
	if (object_chars(r, type->name, name, sizeof(name)) < 0)
		return false;
	for (size_t i = 0; i < sizeof(definitions) / sizeof(*definitions); i++)
		if (!strcmp(name, definitions[i]))
			return true;
	return false;
}

static int add_entry(struct object_reader *r, const struct object_entry *entry, void *arg)
{
	struct variables *v = arg;
	size_t at = v->count;
	int e;

	if (is_definition(r, entry))
		return 0;
	e = add_name(r, entry->key, v);
	if (v->count > at)
		v->items[at].value = entry->value;
	return e;
}

/* f_locals: at module level the globals, of which there may be many. */
static int get_namespace(struct object_reader *r, uint64_t frame, uint32_t entries,
			 struct variables *v)
{
	const bool is_object = r->layout->frame_localsplus != OFF_NONE;
	uint64_t dict;
	int e = object_get_pointer(r, frame + (is_object ? r->head : 0) + r->layout->frame_locals,
				   &dict);

	v->kind = KIND_LOCAL;
	v->max = v->max < entries ? v->max : entries;
	if (!e)
		e = object_dict_each(r, dict, add_entry, v);
	return e < 0 ? e : 0;
}

static int get_variables(struct object_reader *r, uint64_t frame, uint64_t code, uint32_t entries,
			 struct variables *v)
{
	int32_t flags;
	int e = get_int(r, code + r->head + r->layout->code_flags, &flags);

	if (e < 0)
		return e;
	return flags & CODE_OPTIMIZED ? get_slot_variables(r, frame, code, flags, v)
				      : get_namespace(r, frame, entries, v);
}

/* --- as text ---------------------------------------------------------------------------------- */

/* The one argument whose attributes are wanted only now and then. */
static bool is_self(struct object_reader *r, const struct variables *v, size_t i)
{
	return !i && v->items[i].is_argument &&
	       (object_str_is(r, v->items[i].name, "self") == 1 ||
		object_str_is(r, v->items[i].name, "cls") == 1);
}

static int put_value(struct object_reader *r, const struct variable *v,
		     const struct render_options *options, struct inspect_local *out)
{
	_cleanup_(strbuf_releasep) struct strbuf type = STRBUF_INIT, value = STRBUF_INIT;

	if (is_tagged_int(r, v->value)) {
		strbuf_puts(&type, "int");
		strbuf_appendf(&value, "%lld", (long long)((int64_t)v->value >> 2));
	} else {
		render_type(r, v->value, &type);
		render_named(r, v->name, v->value, options, &value);
	}
	out->type = strbuf_take(&type);
	out->value = strbuf_take(&value);
	return out->type && out->value ? 0 : -ENOMEM;
}

static int put_variable(struct object_reader *r, const struct variable *v,
			const struct render_options *options, struct inspect_locals *out)
{
	_cleanup_(strbuf_releasep) struct strbuf name = STRBUF_INIT;
	struct inspect_local local = {
		.kind = v->is_argument        ? LOCAL_ARGUMENT
			: v->kind & KIND_FREE ? LOCAL_FREE
					      : LOCAL_VARIABLE,
		.is_cell = v->kind & (KIND_CELL | KIND_FREE),
	};
	int e = vec_reserve(out, 1);

	render_name(r, v->name, &name);
	local.name = strbuf_take(&name);
	if (!e && local.name && v->value)
		e = put_value(r, v, options, &local);
	if (e < 0 || !local.name) {
		free(local.name);
		free(local.type);
		free(local.value);
		return -ENOMEM;
	}
	out->items[out->len++] = local;
	out->bytes += strlen(local.name) + (local.value ? strlen(local.value) : 0) +
		      (local.type ? strlen(local.type) : 0);
	return 0;
}

static int put_variables(struct object_reader *r, const struct variables *v,
			 const struct locals_options *options, struct inspect_locals *out)
{
	const size_t most = (size_t)LOCALS_LONG_VALUES * options->render.limits->bytes;
	int e = 0;

	for (size_t i = 0; i < v->count && !e; i++) {
		struct render_options render = options->render;

		if (v->items[i].kind & KIND_HIDDEN && !v->items[i].value)
			continue;
		if (!r->reads_left || out->bytes >= most) {
			out->left_out++;
			continue;
		}
		render.is_flat = !options->has_self && is_self(r, v, i);
		e = put_variable(r, &v->items[i], &render, out);
	}
	return e;
}

int locals_read(struct object_reader *r, uint64_t frame, uint64_t code,
		const struct locals_options *options, struct inspect_locals *out)
{
	_cleanup_(freep) struct variables *v = malloc(sizeof(*v));
	int e;

	*out = (struct inspect_locals){ 0 };
	if (!v)
		return -ENOMEM;
	v->count = 0;
	v->left_out = 0;
	v->max = LOCALS_MAX;
	e = get_variables(r, frame, code, options->render.limits->entries, v);
	if (e < 0)
		return e;
	out->left_out = v->left_out;
	return put_variables(r, v, options, out);
}

void locals_release(struct inspect_locals *l)
{
	for (size_t i = 0; i < l->len; i++) {
		free(l->items[i].name);
		free(l->items[i].type);
		free(l->items[i].value);
	}
	free(l->items);
	*l = (struct inspect_locals){ 0 };
}
