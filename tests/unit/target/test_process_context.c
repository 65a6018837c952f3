/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "target/process_context.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

struct text {
	char bytes[8192];
	size_t len;
};

static void put(struct text *t, const void *bytes, size_t len)
{
	assert_true(t->len + len <= sizeof(t->bytes));
	memcpy(t->bytes + t->len, bytes, len);
	t->len += len;
}

/* A field of bytes, fewer than 16384. */
static void put_field(struct text *t, unsigned number, const void *bytes, size_t len)
{
	const char head[] = { (char)(number << 3 | 2), (char)(len | 0x80), (char)(len >> 7) };

	put(t, head, sizeof(head));
	put(t, bytes, len);
}

static void put_string(struct text *t, unsigned number, const char *s)
{
	put_field(t, number, s, strlen(s));
}

/* A KeyValue with an AnyValue that is made already. */
static void put_pair(struct text *t, unsigned number, const char *key, const struct text *value)
{
	struct text pair = { .len = 0 };

	put_string(&pair, 1, key);
	put_field(&pair, 2, value->bytes, value->len);
	put_field(t, number, pair.bytes, pair.len);
}

static void put_text_pair(struct text *t, unsigned number, const char *key, const char *value)
{
	struct text any = { .len = 0 };

	put_string(&any, 1, value);
	put_pair(t, number, key, &any);
}

static const char *value_of(const struct process_context *c, const char *name)
{
	for (size_t i = 0; i < c->attributes.len; i++)
		if (!strcmp(c->attributes.items[i].name, name))
			return c->attributes.items[i].value;
	return NULL;
}

static void test_process_context_parse_tells_values(void **state)
{
	static const struct {
		const char *name;
		const char *value; /* an AnyValue */
		size_t len;
		const char *want; /* NULL: it is left out */
	} cases[] = {
		{ "string", "\x0a\x03one", 5, "one" },
		{ "empty string", "\x0a\x00", 2, "" },
		{ "no UTF-8", "\x0a\x03\xff\0a", 5,
		  "\xef\xbf\xbd\xef\xbf\xbd"
		  "a" },
		{ "bool", "\x10\x01", 2, "true" },
		{ "false", "\x10\x00", 2, "false" },
		{ "int", "\x18\x2a", 2, "42" },
		{ "negative", "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, "-1" },
		{ "double", "\x21\0\0\0\0\0\0\xe0\x3f", 9, "0.5" },
		{ "the last of two", "\x0a\x01x\x18\x07", 5, "7" },
		{ "array", "\x2a\x03\x0a\x01x", 5, NULL },
		{ "nothing", "", 0, NULL },
		{ "a field of tomorrow", "\x7d\0\0\0\0", 5, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct text resource = { .len = 0 }, all = { .len = 0 }, any = { .len = 0 };
		struct process_context c = { 0 };
		const char *got;

		put(&any, cases[i].value, cases[i].len);
		put_pair(&resource, 1, "service.name", &any);
		put_field(&all, 1, resource.bytes, resource.len);
		assert_int_equal(process_context_parse(all.bytes, all.len, &c), 0);
		got = value_of(&c, "service.name");
		if (!got != !cases[i].want || (got && strcmp(got, cases[i].want) != 0))
			fail_msg("%s: '%s'", cases[i].name, got ?: "none");
		process_context_release(&c);
	}
}

static void put_keys(struct text *t)
{
	struct text array = { .len = 0 }, any = { .len = 0 }, item = { .len = 0 };

	put_string(&item, 1, "http.route");
	put_field(&array, 1, item.bytes, item.len);
	put_field(&array, 1, "", 0);
	put_field(&array, 1, item.bytes, item.len);
	put_field(&any, 5, array.bytes, array.len);
	put_pair(t, 2, "threadlocal.attribute_key_map", &any);
}

static void test_process_context_parse_knows_threads(void **state)
{
	static const struct {
		const char *schema;
		bool is_known;
	} cases[] = { { "tls_v1", true },
		      { "tlsdesc_v1_dev", true },
		      { "tls_v12", false },
		      { "go_pprof_labels_v1", false },
		      { "", false } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct text all = { .len = 0 };
		struct process_context c = { 0 };

		put_keys(&all);
		put_text_pair(&all, 2, "threadlocal.schema_version", cases[i].schema);
		put_text_pair(&all, 2, "threadlocal.schema", "tls_v1");
		assert_int_equal(process_context_parse(all.bytes, all.len, &c), 0);
		if (c.has_threads != cases[i].is_known)
			fail_msg("'%s': %d", cases[i].schema, c.has_threads);
		assert_int_equal(c.keys.len, 3);
		assert_string_equal(c.keys.items[0], "http.route");
		assert_string_equal(c.keys.items[1], "");
		assert_int_equal(c.attributes.len, 0);
		process_context_release(&c);
	}
}

static void test_process_context_parse_keeps_its_limits(void **state)
{
	struct text resource = { .len = 0 }, all = { .len = 0 };
	struct process_context c = { 0 };
	char name[16], value[2 * PROCESS_CONTEXT_TEXT_MAX];

	(void)state;
	memset(value, 'x', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	put_text_pair(&resource, 1, "long", value);
	for (int i = 1; i < 2 * PROCESS_CONTEXT_ATTRIBUTES_MAX; i++) {
		snprintf(name, sizeof(name), "a%d", i);
		put_text_pair(&resource, 1, name, "v");
	}
	put_field(&all, 1, resource.bytes, resource.len);
	assert_int_equal(process_context_parse(all.bytes, all.len, &c), 0);
	assert_int_equal(c.attributes.len, PROCESS_CONTEXT_ATTRIBUTES_MAX);
	assert_int_equal(strlen(value_of(&c, "long")), PROCESS_CONTEXT_TEXT_MAX);
	process_context_release(&c);
}

/* Cut anywhere it is refused, or what there is of it is taken; with any byte changed likewise. */
static void test_process_context_parse_takes_any_bytes(void **state)
{
	struct text resource = { .len = 0 }, all = { .len = 0 };
	int r;

	(void)state;
	put_text_pair(&resource, 1, "service.name", "checkout");
	put_field(&all, 1, resource.bytes, resource.len);
	put_keys(&all);
	for (size_t i = 0; i < all.len; i++) {
		struct process_context c = { 0 };
		char *cut = malloc(i + 1), kept = all.bytes[i];

		assert_non_null(cut);
		memcpy(cut, all.bytes, i);
		r = process_context_parse(cut, i, &c);
		assert_true(r == 0 || r == -EBADMSG);
		process_context_release(&c);
		free(cut);
		for (unsigned byte = 0; byte < 256; byte++) {
			all.bytes[i] = (char)byte;
			r = process_context_parse(all.bytes, all.len, &c);
			assert_true(r == 0 || r == -EBADMSG);
			process_context_release(&c);
		}
		all.bytes[i] = kept;
	}
}

struct header {
	char signature[8];
	uint32_t version, bytes;
	uint64_t published_ns, payload;
};

/* Of this process, as the OTEP says it is published. */
static struct header *publish(const struct text *t)
{
	_cleanup_(closep) int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);
	struct header *h;

	assert_true(fd >= 0 && !ftruncate(fd, getpagesize()));
	h = mmap(NULL, (size_t)getpagesize(), PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(h, MAP_FAILED);
	*h = (struct header){ .version = 2,
			      .bytes = (uint32_t)t->len,
			      .published_ns = 12345,
			      .payload = (uintptr_t)t->bytes };
	memcpy(h->signature, "OTEL_CTX", sizeof(h->signature));
	prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, h, getpagesize(), "OTEL_CTX");
	return h;
}

static void test_process_context_read_takes_what_is_published(void **state)
{
	static struct text all, resource;
	struct process_context c = { 0 };
	struct header *h, kept;

	(void)state;
	assert_int_equal(process_context_read(getpid(), &c), -ENOENT);
	put_text_pair(&resource, 1, "service.name", "checkout");
	put_field(&all, 1, resource.bytes, resource.len);
	h = publish(&all);
	kept = *h;
	assert_int_equal(process_context_read(getpid(), &c), 0);
	assert_string_equal(value_of(&c, "service.name"), "checkout");
	assert_int_equal(c.published_ns, 12345);
	process_context_release(&c);
	h->published_ns = 0;
	assert_int_equal(process_context_read(getpid(), &c), -ENOENT);
	*h = kept;
	h->version = 1;
	assert_int_equal(process_context_read(getpid(), &c), -EBADMSG);
	*h = kept;
	h->signature[0] = 'o';
	assert_int_equal(process_context_read(getpid(), &c), -EBADMSG);
	*h = kept;
	h->bytes = PROCESS_CONTEXT_BYTES_MAX + 1;
	assert_int_equal(process_context_read(getpid(), &c), -EBADMSG);
	*h = kept;
	h->payload = 8;
	assert_int_equal(process_context_read(getpid(), &c), -EFAULT);
	munmap(h, (size_t)getpagesize());
	err_clear();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_process_context_parse_tells_values),
		cmocka_unit_test(test_process_context_parse_knows_threads),
		cmocka_unit_test(test_process_context_parse_keeps_its_limits),
		cmocka_unit_test(test_process_context_parse_takes_any_bytes),
		cmocka_unit_test(test_process_context_read_takes_what_is_published),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
