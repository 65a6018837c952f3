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

#include "agent/batch.h"
#include "base/gzip.h"

/* What a window makes of a series: packed for Pyroscope. */
static void pack(enum engine engine, const char *text, struct strbuf *out)
{
	struct gzip *g;
	char *bytes;
	size_t len;
	FILE *f = open_memstream(&bytes, &len);

	assert_non_null(f);
	if (engine == ENGINE_PYROSCOPE || engine == ENGINE_OTLP) {
		assert_int_equal(gzip_new(f, &g), 0);
		assert_int_equal(gzip_write(g, text, strlen(text)), 0);
		assert_int_equal(gzip_finish(g), 0);
		gzip_free(g);
	} else {
		fputs(text, f);
	}
	assert_int_equal(fclose(f), 0);
	strbuf_truncate(out, 0);
	assert_int_equal(strbuf_append(out, bytes, len), 0);
	free(bytes);
}

static int add(struct batch *b, enum engine engine, uint64_t number, bool is_suspect,
	       const char *text)
{
	_cleanup_(strbuf_releasep) struct strbuf body = STRBUF_INIT;
	struct spool_entry e = { .number = number, .is_suspect = is_suspect };

	pack(engine, text, &body);
	return batch_add(b, engine, &e, body.bytes, body.len);
}

static void assert_body(struct batch *b, enum engine engine, const char *want)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;

	assert_int_equal(batch_finish(b, engine), 0);
	if (engine == ENGINE_PARCA)
		strbuf_append(&text, b->body.bytes, b->body.len);
	else
		assert_int_equal(gzip_unpack(b->body.bytes, b->body.len, 1 << 24, &text), 0);
	assert_string_equal(strbuf_str(&text), want);
	batch_release(b);
}

static void test_batch_joins_series(void **state)
{
	static const enum engine engines[] = { ENGINE_PYROSCOPE, ENGINE_PARCA };

	(void)state;
	for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++) {
		struct batch b = { .count = 0 };

		assert_int_equal(add(&b, engines[i], 1, false, "{\"series\":[{\"a\":1}]}"), 1);
		assert_int_equal(add(&b, engines[i], 2, false, "{\"series\":[{\"b\":\"]}\"}]}"), 1);
		assert_int_equal(add(&b, engines[i], 3, false, "{\"series\":[{},{}]}"), 1);
		assert_int_equal(b.count, 3);
		assert_int_equal(b.entries[1].number, 2);
		assert_body(&b, engines[i], "{\"series\":[{\"a\":1},{\"b\":\"]}\"},{},{}]}");
	}
}

static void test_batch_of_one_is_sent_as_it_is(void **state)
{
	static const struct {
		const char *name;
		enum engine engine;
		bool is_suspect;
		const char *text, *other;
	} cases[] = {
		{ "one that failed before", ENGINE_PYROSCOPE, true, "{\"series\":[{}]}",
		  "{\"series\":[{}]}" },
		{ "not of our making", ENGINE_PYROSCOPE, false, "{ \"series\": [{}]}",
		  "{\"series\":[{}]}" },
		{ "nothing in it", ENGINE_PYROSCOPE, false, "{\"series\":[]}",
		  "{\"series\":[{}]}" },
		{ "one dictionary a message", ENGINE_OTLP, false, "abc", "def" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct batch b = { .count = 0 };

		assert_int_equal(add(&b, cases[i].engine, 1, cases[i].is_suspect, cases[i].text),
				 1);
		if (add(&b, cases[i].engine, 2, false, cases[i].other) || b.count != 1)
			fail_msg("%s: joined", cases[i].name);
		assert_body(&b, cases[i].engine, cases[i].text);
		assert_int_equal(add(&b, cases[i].engine, 1, false, "{\"series\":[{\"a\":1}]}"), 1);
		if (cases[i].engine == ENGINE_PYROSCOPE && cases[i].is_suspect &&
		    add(&b, cases[i].engine, 2, true, cases[i].text))
			fail_msg("%s: joined behind another", cases[i].name);
		batch_release(&b);
	}
}

static void test_batch_has_bounds(void **state)
{
	char *large = malloc(2 * BATCH_BYTES_MAX);
	struct batch b = { .count = 0 };

	(void)state;
	assert_non_null(large);
	for (int i = 0; i < BATCH_ENTRIES_MAX; i++)
		assert_int_equal(add(&b, ENGINE_PARCA, 1, false, "{\"series\":[{}]}"), 1);
	assert_int_equal(add(&b, ENGINE_PARCA, 1, false, "{\"series\":[{}]}"), 0);
	batch_release(&b);

	snprintf(large, 2 * BATCH_BYTES_MAX, "{\"series\":[%0*d]}", (int)BATCH_ENTRY_BYTES, 0);
	assert_int_equal(add(&b, ENGINE_PARCA, 1, false, large), 1);
	assert_int_equal(add(&b, ENGINE_PARCA, 2, false, "{\"series\":[{}]}"), 0);
	assert_body(&b, ENGINE_PARCA, large);

	/* packed it is small: it is not unpacked for ever */
	snprintf(large, 2 * BATCH_BYTES_MAX, "{\"series\":[%0*d]}", (int)BATCH_BYTES_MAX, 0);
	assert_int_equal(add(&b, ENGINE_PYROSCOPE, 1, false, large), 1);
	assert_int_equal(add(&b, ENGINE_PYROSCOPE, 2, false, "{\"series\":[{}]}"), 0);
	assert_body(&b, ENGINE_PYROSCOPE, large);
	free(large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_batch_joins_series),
		cmocka_unit_test(test_batch_of_one_is_sent_as_it_is),
		cmocka_unit_test(test_batch_has_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
