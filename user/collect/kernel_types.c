/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/kernel_types.h"

#include <errno.h>
#include <linux/btf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "base/vec.h"

#define BYTES_MAX (256u << 20)
#define FILTER_BITS 1024

struct kernel_types {
	void *bytes;
	size_t size;
	bool is_mapped;
	const char *strings;
	size_t strings_size;
	const struct btf_type **types; /* by id; [0]: void, NULL */
	uint32_t count;                /* with void */
};

/* Bytes that follow the head of a type, or -1. */
static ssize_t tail_bytes(const struct btf_type *t)
{
	size_t vlen = BTF_INFO_VLEN(t->info);

	switch (BTF_INFO_KIND(t->info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return sizeof(uint32_t);
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return 0;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return vlen * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return vlen * sizeof(struct btf_enum);
	case BTF_KIND_FUNC_PROTO:
		return vlen * sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return vlen * sizeof(struct btf_var_secinfo);
	case BTF_KIND_ENUM64:
		return vlen * sizeof(struct btf_enum64);
	default:
		return -1;
	}
}

static int malformed(const char *path)
{
	return err_set(-EBADMSG, "%s: no description of types that we can read", path);
}

/* Linux 6.16 maps the file; before, it is read, a page at a time whatever is asked for. */
static int load(const char *path, struct kernel_types *k)
{
	_cleanup_(closep) int fd = -1;
	struct stat st;
	ssize_t n;

	fd = file_open_regular(path, &st);
	if (fd < 0)
		return fd;
	if (st.st_size <= 0 || st.st_size > BYTES_MAX)
		return malformed(path);
	k->size = st.st_size;
	k->bytes = mmap(NULL, k->size, PROT_READ, MAP_PRIVATE, fd, 0);
	k->is_mapped = k->bytes != MAP_FAILED;
	if (k->is_mapped)
		return 0;
	k->bytes = malloc(k->size);
	if (!k->bytes)
		return -ENOMEM;
	n = file_pread(fd, k->bytes, k->size, 0);
	if (n < 0)
		return err_set(n, "%s: %s", path, strerror(-n));
	return (size_t)n == k->size ? 0 : malformed(path);
}

/* Where each type is. */
static int index_types(const char *path, struct kernel_types *k, const char *at, size_t size)
{
	VEC(const struct btf_type *) types = VEC_INIT;
	const char *end = at + size;
	int r = vec_reserve(&types, size / 24); /* 24 bytes each, on average */

	if (!r)
		r = vec_push(&types, NULL);
	while (!r && at < end) {
		const struct btf_type *t = (const void *)at;
		ssize_t tail = (size_t)(end - at) < sizeof(*t) ? -1 : tail_bytes(t);

		if (tail < 0 || (size_t)(end - at) < sizeof(*t) + tail ||
		    t->name_off >= k->strings_size)
			r = malformed(path);
		else if (!(r = vec_push(&types, t)))
			at += sizeof(*t) + tail;
	}
	k->types = types.items;
	k->count = types.len;
	return r;
}

int kernel_types_open(const char *path, struct kernel_types **out)
{
	_cleanup_(kernel_types_freep) struct kernel_types *k = calloc(1, sizeof(*k));
	const struct btf_header *h;
	size_t left;
	int r;

	if (!k)
		return -ENOMEM;
	r = load(path, k);
	if (r < 0)
		return r;
	h = k->bytes;
	if (k->size < sizeof(*h) || h->magic != BTF_MAGIC || h->hdr_len < sizeof(*h) ||
	    h->hdr_len > k->size || h->hdr_len % 4)
		return malformed(path);
	left = k->size - h->hdr_len;
	if (h->type_off > left || h->type_len > left - h->type_off || h->type_off % 4 ||
	    h->str_off > left || h->str_len > left - h->str_off || !h->str_len)
		return malformed(path);
	k->strings = (const char *)k->bytes + h->hdr_len + h->str_off;
	k->strings_size = h->str_len;
	if (k->strings[k->strings_size - 1])
		return malformed(path);
	r = index_types(path, k, (const char *)k->bytes + h->hdr_len + h->type_off, h->type_len);
	if (r < 0)
		return r;
	*out = take_ptr(k);
	return 0;
}

void kernel_types_free(struct kernel_types *k)
{
	if (!k)
		return;
	if (k->is_mapped)
		munmap(k->bytes, k->size);
	else
		free(k->bytes);
	free(k->types);
	free(k);
}

static const char *name_of(const struct kernel_types *k, const struct btf_type *t)
{
	return k->strings + t->name_off;
}

/* Of a kind and the first letters of a name. */
static uint32_t filter_bit(uint32_t kind, const char *name)
{
	uint32_t h = kind;

	for (int i = 0; i < 6 && name[i]; i++)
		h = h * 31 + (unsigned char)name[i];
	return (h * 0x9e3779b1u) >> 22; /* FILTER_BITS */
}

void kernel_types_find(const struct kernel_types *k, struct kernel_type *wanted, size_t count)
{
	uint64_t filter[FILTER_BITS / 64] = { 0 };
	uint32_t kinds = 0;

	for (size_t i = 0; i < count; i++) {
		uint32_t bit = filter_bit(wanted[i].kind, wanted[i].name);

		wanted[i].id = 0;
		kinds |= 1u << wanted[i].kind;
		filter[bit / 64] |= 1ull << bit % 64;
	}
	for (uint32_t id = 1; id < k->count; id++) {
		const struct btf_type *t = k->types[id];
		uint32_t kind = BTF_INFO_KIND(t->info), bit;

		if (!(kinds >> kind & 1))
			continue;
		bit = filter_bit(kind, name_of(k, t));
		if (!(filter[bit / 64] >> bit % 64 & 1))
			continue;
		for (size_t i = 0; i < count; i++)
			if (!wanted[i].id && wanted[i].kind == kind &&
			    !strcmp(wanted[i].name, name_of(k, t)))
				wanted[i].id = id;
	}
}

int kernel_types_params(const struct kernel_types *k, uint32_t function)
{
	const struct btf_type *f = function < k->count ? k->types[function] : NULL, *p;

	if (!f || BTF_INFO_KIND(f->info) != BTF_KIND_FUNC)
		return -1;
	p = f->type < k->count ? k->types[f->type] : NULL;
	if (!p || BTF_INFO_KIND(p->info) != BTF_KIND_FUNC_PROTO)
		return -1;
	return BTF_INFO_VLEN(p->info);
}

/* An excerpt that is being written: its types in their order, and the new ids by the old ones. */
struct excerpt {
	const struct kernel_types *k;
	VEC(uint32_t) ids;
	uint32_t *new_ids;
	struct strbuf types, strings;
};

static void excerpt_release(struct excerpt *e)
{
	vec_release(&e->ids);
	free(e->new_ids);
	strbuf_release(&e->types);
	strbuf_release(&e->strings);
}

/* Others nothing holds by value. */
static bool is_data(uint32_t kind)
{
	return kind != BTF_KIND_FUNC && kind != BTF_KIND_FUNC_PROTO && kind != BTF_KIND_VAR &&
	       kind != BTF_KIND_DATASEC && kind != BTF_KIND_DECL_TAG;
}

/* -ENOMEM, or 0. Of an id that there is not: void. */
static int excerpt_add(struct excerpt *e, uint32_t id)
{
	int r;

	if (!id || id >= e->k->count || e->new_ids[id] ||
	    !is_data(BTF_INFO_KIND(e->k->types[id]->info)))
		return 0;
	r = vec_push(&e->ids, id);
	if (!r)
		e->new_ids[id] = e->ids.len;
	return r;
}

static bool is_reference(uint32_t kind)
{
	return kind == BTF_KIND_TYPEDEF || kind == BTF_KIND_VOLATILE || kind == BTF_KIND_CONST ||
	       kind == BTF_KIND_RESTRICT || kind == BTF_KIND_TYPE_TAG;
}

/* What a type holds by value. */
static int excerpt_follow(struct excerpt *e, const struct btf_type *t)
{
	const struct btf_member *members = (const void *)(t + 1);
	const struct btf_array *array = (const void *)(t + 1);
	uint32_t kind = BTF_INFO_KIND(t->info);
	int r = 0;

	if (is_reference(kind))
		return excerpt_add(e, t->type);
	if (kind == BTF_KIND_ARRAY) {
		r = excerpt_add(e, array->type);
		return r ? r : excerpt_add(e, array->index_type);
	}
	if (kind != BTF_KIND_STRUCT && kind != BTF_KIND_UNION)
		return 0;
	for (uint32_t i = 0; i < BTF_INFO_VLEN(t->info) && !r; i++)
		r = excerpt_add(e, members[i].type);
	return r;
}

static uint32_t new_id(const struct excerpt *e, uint32_t id)
{
	return id < e->k->count ? e->new_ids[id] : 0;
}

/* *out: where the copy of a name is. */
static int put_name(struct excerpt *e, uint32_t offset, uint32_t *out)
{
	const char *name = offset < e->k->strings_size ? e->k->strings + offset : "";

	*out = *name ? e->strings.len : 0;
	return *name ? strbuf_append(&e->strings, name, strlen(name) + 1) : 0;
}

static int put_members(struct excerpt *e, const struct btf_type *t)
{
	const struct btf_member *members = (const void *)(t + 1);
	int r = 0;

	for (uint32_t i = 0; i < BTF_INFO_VLEN(t->info) && !r; i++) {
		struct btf_member m = members[i];

		m.type = new_id(e, m.type);
		r = put_name(e, m.name_off, &m.name_off);
		if (!r)
			r = strbuf_append(&e->types, &m, sizeof(m));
	}
	return r;
}

/* Enumerations lose their values: nobody asks for these here. */
static int put_type(struct excerpt *e, const struct btf_type *t)
{
	uint32_t kind = BTF_INFO_KIND(t->info);
	struct btf_type head = *t;
	struct btf_array array;
	int r;

	if (kind == BTF_KIND_PTR)
		head.type = 0;
	else if (is_reference(kind))
		head.type = new_id(e, t->type);
	else if (kind == BTF_KIND_ENUM || kind == BTF_KIND_ENUM64)
		head.info &= ~0xffffu;
	r = put_name(e, t->name_off, &head.name_off);
	if (!r)
		r = strbuf_append(&e->types, &head, sizeof(head));
	if (r)
		return r;
	switch (kind) {
	case BTF_KIND_INT:
		return strbuf_append(&e->types, t + 1, sizeof(uint32_t));
	case BTF_KIND_ARRAY:
		memcpy(&array, t + 1, sizeof(array));
		array.type = new_id(e, array.type);
		array.index_type = new_id(e, array.index_type);
		return strbuf_append(&e->types, &array, sizeof(array));
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return put_members(e, t);
	default:
		return 0;
	}
}

static int excerpt_write(struct excerpt *e, int fd)
{
	struct btf_header h = { .magic = BTF_MAGIC, .version = BTF_VERSION, .hdr_len = sizeof(h) };
	int r;

	h.type_len = e->types.len;
	h.str_off = h.type_len;
	h.str_len = e->strings.len;
	if ((r = file_write(fd, &h, sizeof(h))) < 0 ||
	    (r = file_write(fd, e->types.bytes, e->types.len)) < 0 ||
	    (r = file_write(fd, e->strings.bytes, e->strings.len)) < 0)
		return err_set(r, "write the kernel's types: %s", strerror(-r));
	return 0;
}

int kernel_types_write(const struct kernel_types *k, const struct kernel_type *types, size_t count,
		       int fd)
{
	_cleanup_(excerpt_release) struct excerpt e = { .k = k,
							.types = STRBUF_INIT,
							.strings = STRBUF_INIT };
	int r;

	e.new_ids = calloc(k->count, sizeof(*e.new_ids));
	if (!e.new_ids || strbuf_append(&e.strings, "", 1) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		if ((r = excerpt_add(&e, types[i].id)) < 0)
			return r;
	for (size_t i = 0; i < e.ids.len; i++)
		if ((r = excerpt_follow(&e, k->types[e.ids.items[i]])) < 0)
			return r;
	for (size_t i = 0; i < e.ids.len; i++)
		if ((r = put_type(&e, k->types[e.ids.items[i]])) < 0)
			return r;
	return excerpt_write(&e, fd);
}
