/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/render.h"

#include <errno.h>
#include <string.h>

#include "inspect/number.h"
#include "inspect/quote.h"
#include "inspect/render_parts.h"
#include "inspect/secret.h"

#define NAME_BYTES 128 /* of a type's name, or of one that may be of a secret */
#define BASES_MAX 4    /* classes between a class and namedtuple's own */
#define LEVELS_MAX 24  /* of values in values, containers or not */
#define TEXT_MAX 65536 /* bytes of a str, whatever the limits are */

const struct render_limits render_short = {
	.depth = 4, .objects = 1, .entries = 64, .chars = 160, .bytes = 320, .reads = 2000
};
const struct render_limits render_full = {
	.depth = 8, .objects = 2, .entries = 1000, .chars = 8000, .bytes = 16384, .reads = 50000
};

static const struct render_limits *limits(const struct render *c)
{
	return c->options->limits;
}

/* --- what has begun is ended ------------------------------------------------------------------ */

bool render_next(struct render_list *list)
{
	struct render *c = list->c;

	if (list->is_cut || list->seen >= limits(c)->entries || c->out->len >= c->end ||
	    !c->reader->reads_left) {
		list->is_cut = true;
		return false;
	}
	if (list->seen++)
		strbuf_puts(c->out, list->separator);
	return true;
}

static void put_rest(struct strbuf *out, uint64_t count, uint64_t seen)
{
	strbuf_puts(out, "...");
	if (count > seen)
		strbuf_appendf(out, "+%llu", (unsigned long long)(count - seen));
}

static void put_error(struct render *c, int error)
{
	strbuf_puts(c->out, error == -E2BIG ? "..." : "<unreadable>");
}

void render_end(struct render_list *list, int error)
{
	if (error >= 0 && !list->is_cut)
		return;
	if (list->seen)
		strbuf_puts(list->c->out, list->separator);
	if (error < 0)
		put_error(list->c, error);
	else
		put_rest(list->c->out, list->count, list->seen);
}

bool render_open(struct render *c, uint64_t object, uint64_t count, const char *brackets)
{
	bool is_cycle = false;

	for (uint32_t i = 0; i < c->depth; i++)
		is_cycle |= c->path[i] == object;
	strbuf_putc(c->out, brackets[0]);
	if (!is_cycle && c->depth < limits(c)->depth) {
		c->path[c->depth++] = object;
		return true;
	}
	if (is_cycle || count)
		put_rest(c->out, is_cycle ? 0 : count, 0);
	strbuf_putc(c->out, brackets[1]);
	return false;
}

void render_close(struct render *c)
{
	c->depth--;
}

const char *render_last_part(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? dot + 1 : name;
}

/* --- str, bytes, int -------------------------------------------------------------------------- */

size_t render_chars(const struct render *c)
{
	return c->depth || c->objects ? limits(c)->chars / 2 : limits(c)->chars;
}

int render_text(struct render *c, uint64_t str)
{
	_cleanup_(strbuf_releasep) struct strbuf buf = STRBUF_INIT;
	struct object_text text;
	size_t size = render_chars(c) * 4;
	int e;

	size = size < TEXT_MAX ? size : TEXT_MAX;
	if (strbuf_reserve(&buf, size) < 0)
		return -ENOMEM;
	e = object_str(c->reader, str, buf.bytes, size, &text);
	if (e < 0)
		return e;
	if (text.len > render_chars(c) * text.kind)
		text.len = (uint32_t)(render_chars(c) * text.kind);
	quote_text(c->out, buf.bytes, text.len, text.kind);
	if (text.chars > text.len / text.kind)
		put_rest(c->out, text.chars, text.len / text.kind);
	return 0;
}

int render_bytes(struct render *c, uint64_t addr, uint64_t len)
{
	char bytes[OBJECT_READ_BYTES];
	size_t n = render_chars(c) < sizeof(bytes) ? render_chars(c) : sizeof(bytes);
	int e;

	n = len < n ? len : n;
	e = n ? object_get(c->reader, addr, bytes, n) : 0;
	if (e < 0)
		return e;
	quote_bytes(c->out, bytes, n);
	if (len > n)
		put_rest(c->out, len, n);
	return 0;
}

static int put_bytes(struct render *c, uint64_t object)
{
	const struct py_offsets *off = c->reader->off;
	uint64_t len;
	int e = object_get_pointer(c->reader, object + off->bytes_size, &len);

	return e < 0 ? e : render_bytes(c, object + off->bytes_data, len);
}

static int put_long(struct render *c, uint64_t object)
{
	uint32_t digits[NUMBER_DIGITS_MAX], top = 0;
	struct object_digits d;
	int e = object_long_digits(c->reader, object, &d), bits = 0;

	if (e < 0)
		return e;
	if (d.count > NUMBER_DIGITS_MAX) {
		e = object_get(c->reader, d.digits + 4 * (d.count - 1), &top, sizeof(top));
		if (e < 0)
			return e;
		for (; top; top >>= 1)
			bits++;
		strbuf_appendf(c->out, "<int of %llu bits>",
			       (unsigned long long)(d.count - 1) * OBJECT_DIGIT_BITS + bits);
		return 0;
	}
	e = d.count ? object_get(c->reader, d.digits, digits, d.count * sizeof(*digits)) : 0;
	if (e < 0)
		return e;
	for (uint64_t i = 0; i < d.count; i++)
		if (digits[i] >> OBJECT_DIGIT_BITS)
			return -EBADMSG;
	if (d.is_negative)
		strbuf_putc(c->out, '-');
	number_digits(c->out, digits, d.count, render_chars(c));
	return 0;
}

/* --- secrets ---------------------------------------------------------------------------------- */

/* Is this str, or bytes, the name of one? What cannot be read is none. */
static bool is_secret_name(struct render *c, uint64_t name)
{
	const struct py_offsets *off = c->reader->off;
	const struct object_type *type;
	struct object_text text;
	char buf[NAME_BYTES * 4];
	uint64_t len;

	if (c->options->has_secrets || !name || object_type_of(c->reader, name, &type) < 0)
		return false;
	if (type->flags & OBJECT_IS_BYTES) {
		if (object_get_pointer(c->reader, name + off->bytes_size, &len) < 0 ||
		    len > NAME_BYTES || !len ||
		    object_get(c->reader, name + off->bytes_data, buf, len) < 0)
			return false;
		return secret_is_name(buf, len);
	}
	if (!(type->flags & OBJECT_IS_STR) ||
	    object_str(c->reader, name, buf, sizeof(buf), &text) < 0 || text.chars > NAME_BYTES)
		return false;
	for (uint32_t i = 0; i < text.len / text.kind; i++)
		buf[i] = buf[i * text.kind]; /* letters of these names are ASCII */
	return secret_is_name(buf, text.len / text.kind);
}

/* Types whose values tell no secret. */
static const char *const harmless[] = {
	"NoneType", "bool", "function", "method", "builtin_function_or_method", "module",
};

static bool is_harmless(struct render *c, uint64_t object)
{
	const struct object_type *type;
	char name[NAME_BYTES];

	if (object_type_of(c->reader, object, &type) < 0)
		return false;
	if (type->flags & OBJECT_IS_TYPE)
		return true;
	if (object_chars(c->reader, type->name, name, sizeof(name)) < 0)
		return false;
	for (size_t i = 0; i < sizeof(harmless) / sizeof(*harmless); i++)
		if (!strcmp(name, harmless[i]))
			return true;
	return false;
}

static void put_masked(struct render *c, uint64_t object)
{
	if (is_harmless(c, object)) {
		render_value(c, object);
		return;
	}
	strbuf_puts(c->out, "<masked ");
	render_type(c->reader, object, c->out);
	strbuf_putc(c->out, '>');
}

static void put_value_of(struct render *c, uint64_t name, uint64_t object)
{
	if (is_secret_name(c, name))
		put_masked(c, object);
	else
		render_value(c, object);
}

/* --- containers ------------------------------------------------------------------------------- */

struct items {
	struct render_list list;
	bool is_pair, has_secret; /* of a name and a value; the name is that of a secret */
};

static int put_item(struct object_reader *r, uint64_t item, void *arg)
{
	struct items *items = arg;
	struct render *c = items->list.c;

	(void)r;
	if (!render_next(&items->list))
		return 1;
	if (items->has_secret)
		put_masked(c, item);
	else
		render_value(c, item);
	items->has_secret = items->is_pair && items->list.seen == 1 && is_secret_name(c, item);
	return 0;
}

int render_items(struct render *c, uint64_t object, const char *brackets)
{
	struct items items = { .list = { .c = c, .separator = ", " } };
	bool is_sequence = brackets[0] != '{';
	uint64_t count;
	int e = object_length(c->reader, object, &count);

	if (e < 0)
		return e;
	if (!render_open(c, object, count, brackets))
		return 0;
	items.list.count = count;
	items.is_pair = is_sequence && count == 2;
	e = is_sequence ? object_sequence_each(c->reader, object, put_item, &items)
			: object_set_each(c->reader, object, put_item, &items);
	render_end(&items.list, e);
	if (count == 1 && brackets[0] == '(')
		strbuf_putc(c->out, ',');
	strbuf_putc(c->out, brackets[1]);
	render_close(c);
	return 0;
}

static int put_entry(struct object_reader *r, const struct object_entry *entry, void *arg)
{
	struct render_list *list = arg;
	struct render *c = list->c;

	(void)r;
	if (!render_next(list))
		return 1;
	render_value(c, entry->key);
	strbuf_puts(c->out, ": ");
	put_value_of(c, entry->key, entry->value);
	return 0;
}

int render_dict(struct render *c, uint64_t dict)
{
	struct render_list list = { .c = c, .separator = ", " };
	int e = object_get_pointer(c->reader, dict + c->reader->head + OBJECT_DICT_USED,
				   &list.count);

	if (e < 0)
		return e;
	if (!render_open(c, dict, list.count, "{}"))
		return 0;
	render_end(&list, object_dict_each(c->reader, dict, put_entry, &list));
	strbuf_putc(c->out, '}');
	render_close(c);
	return 0;
}

struct view {
	struct render_list list;
	enum render_part part;
};

/* One of a view: its key, its value, or both. */
static int put_viewed(struct object_reader *r, const struct object_entry *entry, void *arg)
{
	struct view *view = arg;
	struct render *c = view->list.c;

	(void)r;
	if (!render_next(&view->list))
		return 1;
	if (view->part == RENDER_VALUES) {
		put_value_of(c, entry->key, entry->value);
		return 0;
	}
	if (view->part == RENDER_ITEMS)
		strbuf_putc(c->out, '(');
	render_value(c, entry->key);
	if (view->part == RENDER_ITEMS) {
		strbuf_puts(c->out, ", ");
		put_value_of(c, entry->key, entry->value);
		strbuf_putc(c->out, ')');
	}
	return 0;
}

/* _PyDictViewObject: PyObject, and the dict. */
int render_dict_view(struct render *c, uint64_t object, enum render_part part)
{
	struct view view = { .list = { .c = c, .separator = ", " }, .part = part };
	const struct object_type *type;
	uint64_t dict;
	int e;

	if ((e = object_get_pointer(c->reader, render_fields(c, object), &dict)) < 0 ||
	    (e = object_type_of(c->reader, dict, &type)) < 0)
		return e;
	if (!(type->flags & OBJECT_IS_DICT))
		return -EBADMSG;
	e = object_get_pointer(c->reader, render_fields(c, dict) + OBJECT_DICT_USED,
			       &view.list.count);
	if (e < 0)
		return e;
	if (!render_open(c, dict, view.list.count, "[]"))
		return 0;
	render_end(&view.list, object_dict_each(c->reader, dict, put_viewed, &view));
	strbuf_putc(c->out, ']');
	render_close(c);
	return 0;
}

/* --- attributes ------------------------------------------------------------------------------- */

/* The dict that the attributes are in, of which a type made in C has a member, too. */
static bool is_own_dict(struct render *c, const struct object_entry *entry)
{
	char name[NAME_BYTES];

	return !entry->key && object_chars(c->reader, entry->slot_name, name, sizeof(name)) >= 0 &&
	       !strcmp(name, "__dict__");
}

static int put_slot(struct render *c, const struct object_entry *entry)
{
	char name[NAME_BYTES];
	int len = object_chars(c->reader, entry->slot_name, name, sizeof(name));

	if (len < 0)
		return len;
	quote_name(c->out, name, len, 1);
	strbuf_putc(c->out, '=');
	if (!c->options->has_secrets && secret_is_name(name, len))
		put_masked(c, entry->value);
	else
		render_value(c, entry->value);
	return 0;
}

static int put_attribute(struct object_reader *r, const struct object_entry *entry, void *arg)
{
	struct render_list *list = arg;
	struct render *c = list->c;

	if (is_own_dict(c, entry))
		return 0;
	if (!render_next(list))
		return 1;
	if (!entry->key)
		return put_slot(c, entry);
	render_name(r, entry->key, c->out);
	strbuf_putc(c->out, '=');
	put_value_of(c, entry->key, entry->value);
	return 0;
}

/* <Name attribute=value ...>, or <Name at 0x...>. */
static int put_instance(struct render *c, uint64_t object, const char *name)
{
	struct render_list list = { .c = c, .separator = " " };
	bool is_flat = c->objects >= limits(c)->objects || c->depth >= limits(c)->depth ||
		       (c->options->is_flat && !c->depth);
	int e = 0;

	strbuf_putc(c->out, '<');
	quote_name(c->out, name, strlen(name), 1);
	strbuf_putc(c->out, ' ');
	if (!is_flat) {
		c->path[c->depth++] = object;
		c->objects++;
		e = object_attributes_each(c->reader, object, put_attribute, &list);
		c->objects--;
		c->depth--;
	}
	if (list.seen)
		render_end(&list, e);
	else
		strbuf_appendf(c->out, "at 0x%llx", (unsigned long long)object);
	strbuf_putc(c->out, '>');
	return 0;
}

/* --- subtypes of builtin types ---------------------------------------------------------------- */

/* The names of a namedtuple's fields, a tuple; or 0. */
static uint64_t fields_of(struct render *c, const struct object_type *type)
{
	const struct object_type *t;
	uint64_t fields, base = type->address;

	for (int i = 0; i < BASES_MAX && base; i++) {
		if (object_type_get(c->reader, base, &t) < 0 || !(t->flags & OBJECT_TYPE_HEAP))
			return 0;
		base = t->base;
		if (object_dict_get_str(c->reader, t->dict, "_fields", &fields) < 0)
			continue;
		if (object_type_of(c->reader, fields, &t) < 0 || !(t->flags & OBJECT_IS_TUPLE))
			return 0;
		return fields;
	}
	return 0;
}

struct named_items {
	struct items items;
	uint64_t fields; /* a tuple's items, in memory */
	uint64_t field_count;
};

static int put_named_item(struct object_reader *r, uint64_t item, void *arg)
{
	struct named_items *named = arg;
	struct render *c = named->items.list.c;
	uint64_t name = 0;

	if (!render_next(&named->items.list))
		return 1;
	if (named->items.list.seen <= named->field_count &&
	    !object_get_pointer(r, named->fields + 8 * (named->items.list.seen - 1), &name)) {
		render_name(r, name, c->out);
		strbuf_putc(c->out, '=');
	}
	put_value_of(c, name, item);
	return 0;
}

static int put_namedtuple(struct render *c, uint64_t object, uint64_t fields, const char *name)
{
	struct named_items named = {
		.items.list = { .c = c, .separator = ", " },
		.fields = fields + c->reader->head + c->reader->layout->tuple_items,
	};
	uint64_t count;
	int e;

	if ((e = object_length(c->reader, object, &count)) < 0 ||
	    (e = object_length(c->reader, fields, &named.field_count)) < 0)
		return e;
	quote_name(c->out, name, strlen(name), 1);
	if (!render_open(c, object, count, "()"))
		return 0;
	named.items.list.count = count;
	render_end(&named.items.list,
		   object_sequence_each(c->reader, object, put_named_item, &named));
	strbuf_putc(c->out, ')');
	render_close(c);
	return 0;
}

static int put_exception(struct render *c, uint64_t object, const char *name)
{
	size_t at;
	uint64_t args, count = 0;
	int e = object_get_pointer(c->reader, object + c->reader->head + OBJECT_EXCEPTION_ARGS,
				   &args);

	if (e < 0 || (e = object_length(c->reader, args, &count)) < 0)
		return e;
	name = render_last_part(name);
	quote_name(c->out, name, strlen(name), 1);
	e = render_items(c, args, "()");
	at = c->out->len - 2;
	if (!e && count == 1 && !strcmp(c->out->bytes + at, ",)")) {
		strbuf_truncate(c->out, at); /* repr() writes ValueError('x'), not ('x',) */
		strbuf_putc(c->out, ')');
	}
	return 0;
}

/* <class 'module.Name'>. */
static int put_class(struct render *c, uint64_t object)
{
	const struct object_type *type;
	char name[NAME_BYTES];
	uint64_t qualname, module;
	int e;

	if ((e = object_type_get(c->reader, object, &type)) < 0)
		return e;
	if (!(type->flags & OBJECT_TYPE_HEAP)) {
		if ((e = object_chars(c->reader, type->name, name, sizeof(name))) < 0)
			return e;
		strbuf_puts(c->out, "<class '");
		quote_name(c->out, name, e, 1);
		strbuf_puts(c->out, "'>");
		return 0;
	}
	e = type->dict ? object_dict_get_str(c->reader, type->dict, "__module__", &module)
		       : -ENOENT;
	strbuf_puts(c->out, "<class '");
	if (!e && object_str_is(c->reader, module, "builtins") != 1) {
		render_name(c->reader, module, c->out);
		strbuf_putc(c->out, '.');
	}
	e = object_get_pointer(
		c->reader, object + c->reader->head + c->reader->layout->type_qualname, &qualname);
	render_name(c->reader, e < 0 ? 0 : qualname, c->out);
	strbuf_puts(c->out, "'>");
	return 0;
}

/* --- any object ------------------------------------------------------------------------------- */

/* A class made by enum.EnumMeta, as it is called from 3.11 on as well? */
static bool is_enum(struct render *c, const struct object_type *type)
{
	char name[16];
	uint64_t meta;

	return type->flags & OBJECT_TYPE_HEAP &&
	       object_type(c->reader, type->address, &meta) >= 0 &&
	       object_type_name(c->reader, meta, name, sizeof(name)) >= 0 &&
	       (!strcmp(name, "EnumMeta") || !strcmp(name, "EnumType"));
}

/* <Colour.RED: 1>. */
static int put_enum(struct render *c, uint64_t object, const char *type_name)
{
	const struct object_type *type;
	uint64_t name, value;
	int e;

	if ((e = object_attribute(c->reader, object, "_name_", &name)) < 0 ||
	    (e = object_attribute(c->reader, object, "_value_", &value)) < 0)
		return e;
	if (c->depth >= limits(c)->depth)
		return put_instance(c, object, type_name);
	strbuf_putc(c->out, '<');
	quote_name(c->out, type_name, strlen(type_name), 1);
	e = object_type_of(c->reader, name, &type);
	if (e >= 0 && type->flags & OBJECT_IS_STR) { /* of flags together it may be None */
		strbuf_putc(c->out, '.');
		render_name(c->reader, name, c->out);
	}
	strbuf_puts(c->out, ": ");
	c->path[c->depth++] = object; /* in its own value, by a hostile hand */
	render_value(c, value);
	c->depth--;
	strbuf_putc(c->out, '>');
	return 0;
}

static int put_by_flags(struct render *c, uint64_t object, uint64_t flags)
{
	if (flags & OBJECT_IS_LONG)
		return put_long(c, object);
	if (flags & OBJECT_IS_STR)
		return render_text(c, object);
	if (flags & OBJECT_IS_BYTES)
		return put_bytes(c, object);
	if (flags & OBJECT_IS_TUPLE)
		return render_items(c, object, "()");
	if (flags & OBJECT_IS_LIST)
		return render_items(c, object, "[]");
	return render_dict(c, object);
}

/* What is a builtin type, or holds what one holds. */
static int put_builtin(struct render *c, uint64_t object, const struct object_type *type,
		       const char *name)
{
	const size_t start = c->out->len;
	bool is_subtype = type->flags & OBJECT_TYPE_HEAP || strchr(name, '.');
	uint64_t fields;
	int e;

	if (type->flags & OBJECT_IS_TYPE)
		return put_class(c, object);
	if (type->flags & OBJECT_IS_EXCEPTION)
		return put_exception(c, object, name);
	fields = type->flags & OBJECT_IS_TUPLE ? fields_of(c, type) : 0;
	if (fields)
		return put_namedtuple(c, object, fields, name);
	if (is_subtype) {
		name = render_last_part(name);
		quote_name(c->out, name, strlen(name), 1);
		strbuf_putc(c->out, '(');
	}
	e = put_by_flags(c, object, type->flags);
	if (e < 0)
		strbuf_truncate(c->out, start);
	else if (is_subtype)
		strbuf_putc(c->out, ')');
	return e;
}

static int put_object(struct render *c, uint64_t object)
{
	const uint64_t builtin = OBJECT_IS_LONG | OBJECT_IS_LIST | OBJECT_IS_TUPLE |
				 OBJECT_IS_BYTES | OBJECT_IS_STR | OBJECT_IS_DICT |
				 OBJECT_IS_EXCEPTION | OBJECT_IS_TYPE;
	const struct object_type *found;
	struct object_type type;
	char name[NAME_BYTES];
	int e;

	if ((e = object_type_of(c->reader, object, &found)) < 0)
		return e;
	type = *found; /* borrowed only until the next object */
	if ((e = object_chars(c->reader, type.name, name, sizeof(name))) < 0)
		return e;
	if (is_enum(c, &type) && !(type.flags & OBJECT_IS_TYPE)) {
		e = put_enum(c, object, name);
		if (!e || e == -E2BIG)
			return e;
	}
	e = render_known(c, object, &type, name);
	if (e)
		return e < 0 ? e : 0;
	if (type.flags & builtin)
		return put_builtin(c, object, &type, name);
	return put_instance(c, object, name);
}

void render_value(struct render *c, uint64_t object)
{
	int e;

	if (c->out->len >= c->end || c->level >= LEVELS_MAX) {
		strbuf_puts(c->out, "...");
		return;
	}
	c->level++;
	e = put_object(c, object);
	c->level--;
	if (e < 0)
		put_error(c, e);
}

/* --- from outside ----------------------------------------------------------------------------- */

int render_named(struct object_reader *r, uint64_t name, uint64_t object,
		 const struct render_options *options, struct strbuf *out)
{
	const uint32_t reads = r->reads_left;
	uint32_t most = reads < options->limits->reads ? reads : options->limits->reads;
	struct render c = { .reader = r,
			    .options = options,
			    .out = out,
			    .end = out->len + options->limits->bytes };

	r->reads_left = most;
	put_value_of(&c, name, object);
	r->reads_left = reads - (most - r->reads_left);
	return strbuf_error(out);
}

int render_object(struct object_reader *r, uint64_t object, const struct render_options *options,
		  struct strbuf *out)
{
	return render_named(r, 0, object, options, out);
}

int render_type(struct object_reader *r, uint64_t object, struct strbuf *out)
{
	char name[NAME_BYTES];
	uint64_t type;
	int e = object_type(r, object, &type);

	if (!e)
		e = object_type_name(r, type, name, sizeof(name));
	if (e < 0)
		return strbuf_putc(out, '?');
	return quote_name(out, name, strlen(name), 1);
}

int render_name(struct object_reader *r, uint64_t str, struct strbuf *out)
{
	char buf[NAME_BYTES * 4];
	struct object_text text;

	if (!str || object_str(r, str, buf, sizeof(buf), &text) < 0)
		return strbuf_putc(out, '?');
	quote_name(out, buf, text.len, text.kind);
	return text.is_cut ? strbuf_puts(out, "...") : strbuf_error(out);
}
