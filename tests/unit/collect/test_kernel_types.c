/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/btf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "collect/kernel_types.h"
#include "tests/unit/skip.h"

static void release_btf(struct btf **btf)
{
	btf__free(*btf);
}

/* A file in memory, by the path that opens it. */
struct memory_file {
	int fd;
	char path[32];
};

static void memory_file_release(struct memory_file *f)
{
	closep(&f->fd);
}

static struct memory_file memory_file(const void *bytes, size_t size)
{
	struct memory_file f = { .fd = memfd_create("test", MFD_CLOEXEC) };

	assert_true(f.fd >= 0);
	assert_int_equal(file_write(f.fd, bytes, size), 0);
	snprintf(f.path, sizeof(f.path), "/proc/self/fd/%d", f.fd);
	return f;
}

/*
 * struct inner { int a; }; typedef struct inner inner_t;
 * struct outer { const inner_t in; struct outer *next; unsigned char bytes[3]; enum e e; int b:3;
 *                struct { int u; }; };
 * struct other { int x; }; int call(int, int); typedef int outer;
 */
static struct btf *small_btf(void)
{
	struct btf *b = btf__new_empty();
	int i, c, inner, t, k, p, arr, e, anon, proto;

	i = btf__add_int(b, "int", 4, BTF_INT_SIGNED);
	c = btf__add_int(b, "unsigned char", 1, 0);
	inner = btf__add_struct(b, "inner", 4);
	btf__add_field(b, "a", i, 0, 0);
	t = btf__add_typedef(b, "inner_t", inner);
	k = btf__add_const(b, t);
	p = btf__add_ptr(b, btf__type_cnt(b) + 4);
	arr = btf__add_array(b, i, c, 3);
	e = btf__add_enum(b, "e", 4);
	btf__add_enum_value(b, "E_ONE", 1);
	anon = btf__add_struct(b, NULL, 4);
	btf__add_field(b, "u", i, 0, 0);
	assert_int_equal(btf__add_struct(b, "outer", 32), p + 4);
	btf__add_field(b, "in", k, 0, 0);
	btf__add_field(b, "next", p, 64, 0);
	btf__add_field(b, "bytes", arr, 128, 0);
	btf__add_field(b, "e", e, 160, 0);
	btf__add_field(b, "b", i, 192, 3);
	btf__add_field(b, NULL, anon, 224, 0);
	btf__add_struct(b, "other", 4);
	btf__add_field(b, "x", i, 0, 0);
	proto = btf__add_func_proto(b, i);
	btf__add_func_param(b, "x", i);
	btf__add_func_param(b, "y", i);
	btf__add_func(b, "call", BTF_FUNC_GLOBAL, proto);
	btf__add_typedef(b, "outer", i);
	return b;
}

static struct memory_file small_file(const struct btf *b)
{
	uint32_t size;
	const void *bytes = btf__raw_data(b, &size);

	return memory_file(bytes, size);
}

static void test_kernel_types_find_tells_names_and_kinds_apart(void **state)
{
	_cleanup_(release_btf) struct btf *b = small_btf();
	_cleanup_(memory_file_release) struct memory_file file = small_file(b);
	_cleanup_(kernel_types_freep) struct kernel_types *k = NULL;
	struct kernel_type wanted[] = {
		{ "outer", BTF_KIND_STRUCT, 0 }, { "outer", BTF_KIND_TYPEDEF, 0 },
		{ "outer", BTF_KIND_UNION, 7 },  { "call", BTF_KIND_FUNC, 0 },
		{ "oute", BTF_KIND_STRUCT, 7 },  { "int", BTF_KIND_INT, 0 },
	};

	(void)state;
	assert_int_equal(kernel_types_open(file.path, &k), 0);
	kernel_types_find(k, wanted, sizeof(wanted) / sizeof(wanted[0]));
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		int want = btf__find_by_name_kind(b, wanted[i].name, wanted[i].kind);

		if (wanted[i].id != (want < 0 ? 0 : (uint32_t)want))
			fail_msg("%s: %u, not %d", wanted[i].name, wanted[i].id, want);
	}
	assert_int_equal(kernel_types_params(k, wanted[3].id), 2);
	assert_int_equal(kernel_types_params(k, wanted[0].id), -1);
	assert_int_equal(kernel_types_params(k, 1u << 30), -1);
}

/* The member of a struct that libbpf has read; its type, without modifiers, in *type. */
static const struct btf_member *member(const struct btf *b, const char *name, uint32_t index,
				       const struct btf_type **type)
{
	int id = btf__find_by_name_kind(b, name, BTF_KIND_STRUCT);
	const struct btf_member *m;

	assert_true(id > 0);
	m = btf_members(btf__type_by_id(b, id)) + index;
	*type = btf__type_by_id(b, btf__resolve_type(b, m->type));
	return m;
}

static void test_kernel_types_write_has_what_is_held_by_value(void **state)
{
	_cleanup_(release_btf) struct btf *b = small_btf(), *got = NULL;
	_cleanup_(memory_file_release) struct memory_file file = small_file(b);
	_cleanup_(memory_file_release) struct memory_file out = memory_file("", 0);
	_cleanup_(kernel_types_freep) struct kernel_types *k = NULL;
	struct kernel_type wanted[] = { { "outer", BTF_KIND_STRUCT, 0 },
					{ "none", BTF_KIND_STRUCT, 0 } };
	const struct btf_type *t;

	(void)state;
	assert_int_equal(kernel_types_open(file.path, &k), 0);
	kernel_types_find(k, wanted, 2);
	assert_int_equal(kernel_types_write(k, wanted, 2, out.fd), 0);
	got = btf__parse(out.path, NULL);
	assert_non_null(got);
	assert_true(btf__find_by_name_kind(got, "other", BTF_KIND_STRUCT) < 0);
	assert_true(btf__find_by_name_kind(got, "call", BTF_KIND_FUNC) < 0);
	assert_int_equal(btf__resolve_size(got, btf__find_by_name(got, "outer")), 32);
	assert_string_equal(btf__name_by_offset(got, member(got, "outer", 0, &t)->name_off), "in");
	assert_string_equal(btf__name_by_offset(got, t->name_off), "inner");
	assert_int_equal(member(got, "outer", 1, &t)->offset & 0xffffff, 64);
	assert_true(btf_is_ptr(t));
	assert_int_equal(t->type, 0);
	member(got, "outer", 2, &t);
	assert_true(btf_is_array(t));
	assert_int_equal(btf_array(t)->nelems, 3);
	assert_int_equal(btf__resolve_size(got, btf_array(t)->type), 1);
	member(got, "outer", 3, &t);
	assert_true(btf_is_enum(t));
	assert_int_equal(member(got, "outer", 4, &t)->offset, 3u << 24 | 192);
	assert_int_equal(member(got, "outer", 5, &t)->name_off, 0);
	assert_string_equal(btf__name_by_offset(got, btf_members(t)->name_off), "u");
}

static void test_kernel_types_open_refuses_what_is_none(void **state)
{
	_cleanup_(release_btf) struct btf *b = small_btf();
	uint32_t size, h = sizeof(struct btf_header);
	const unsigned char *bytes = btf__raw_data(b, &size);
	_cleanup_(freep) unsigned char *copy = malloc(size);
	const struct {
		const char *name;
		size_t size, at;
		uint32_t value;
	} cases[] = {
		{ "nothing", 0, 0, BTF_MAGIC | BTF_VERSION << 16 },
		{ "half a header", 12, 0, BTF_MAGIC | BTF_VERSION << 16 },
		{ "cut off", size - 1, 0, BTF_MAGIC | BTF_VERSION << 16 },
		{ "no magic", size, 0, 0 },
		{ "types beyond the end", size, offsetof(struct btf_header, type_len), size },
		{ "types that start at no word", size, offsetof(struct btf_header, type_off), 2 },
		{ "strings beyond the end", size, offsetof(struct btf_header, str_off), 1u << 31 },
		{ "no strings", size, offsetof(struct btf_header, str_len), 0 },
		{ "a name beyond the strings", size, h, size },
		{ "a kind that there is not", size, h + 4, 31u << 24 },
		{ "more members than bytes", size, h + 4, BTF_KIND_STRUCT << 24 | 0xffff },
	};

	(void)state;
	assert_non_null(copy);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(memory_file_release) struct memory_file file = { .fd = -1 };
		struct kernel_types *k = NULL;
		int r;

		memcpy(copy, bytes, size);
		memcpy(copy + cases[i].at, &cases[i].value, sizeof(cases[i].value));
		file = memory_file(copy, cases[i].size);
		r = kernel_types_open(file.path, &k);
		if (r != -EBADMSG || k)
			fail_msg("%s: %d", cases[i].name, r);
	}
}

/* Where this machine lets us read them. */
static void test_kernel_types_are_those_that_libbpf_finds(void **state)
{
	_cleanup_(kernel_types_freep) struct kernel_types *k = NULL;
	_cleanup_(release_btf) struct btf *b = NULL, *got = NULL;
	_cleanup_(memory_file_release) struct memory_file out = memory_file("", 0);
	struct kernel_type wanted[] = { { "task_struct", BTF_KIND_STRUCT, 0 },
					{ "bpf_iter_task", BTF_KIND_FUNC, 0 } };
	const struct btf_type *all, *some;

	(void)state;
	if (access(KERNEL_TYPES_PATH, R_OK) < 0)
		SKIP("the kernel's types may not be read here");
	assert_int_equal(kernel_types_open(KERNEL_TYPES_PATH, &k), 0);
	kernel_types_find(k, wanted, 2);
	b = btf__parse(KERNEL_TYPES_PATH, NULL);
	assert_non_null(b);
	for (int i = 0; i < 2; i++)
		assert_int_equal(wanted[i].id,
				 btf__find_by_name_kind(b, wanted[i].name, wanted[i].kind));
	assert_int_equal(kernel_types_write(k, wanted, 1, out.fd), 0);
	got = btf__parse(out.path, NULL);
	assert_non_null(got);
	all = btf__type_by_id(b, wanted[0].id);
	some = btf__type_by_id(got, btf__find_by_name_kind(got, "task_struct", BTF_KIND_STRUCT));
	assert_int_equal(some->size, all->size);
	assert_int_equal(btf_vlen(some), btf_vlen(all));
	for (int i = 0; i < btf_vlen(all); i++) {
		const struct btf_member *m = btf_members(all) + i, *n = btf_members(some) + i;

		assert_int_equal(m->offset, n->offset);
		assert_string_equal(btf__name_by_offset(b, m->name_off),
				    btf__name_by_offset(got, n->name_off));
		assert_int_equal(btf__resolve_size(b, m->type), btf__resolve_size(got, n->type));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernel_types_find_tells_names_and_kinds_apart),
		cmocka_unit_test(test_kernel_types_write_has_what_is_held_by_value),
		cmocka_unit_test(test_kernel_types_open_refuses_what_is_none),
		cmocka_unit_test(test_kernel_types_are_those_that_libbpf_finds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
