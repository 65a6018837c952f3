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
#include <zlib.h>

#include "base/gzip.h"

/* Noise and runs: what is hard to compress and what is not. */
static unsigned char *make_bytes(size_t len)
{
	unsigned char *bytes = malloc(len + 1);
	uint64_t random = 1;

	assert_non_null(bytes);
	for (size_t i = 0; i < len; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		bytes[i] = i / 4096 % 2 ? 'a' : (unsigned char)(random >> 56);
	}
	return bytes;
}

static void assert_inflates_to(const char *packed, size_t packed_len, const unsigned char *bytes,
			       size_t len)
{
	unsigned char *back = malloc(len + 1);
	z_stream s = { .next_in = (unsigned char *)packed, .avail_in = (unsigned int)packed_len };

	assert_non_null(back);
	s.next_out = back;
	s.avail_out = (unsigned int)len + 1;
	assert_int_equal(inflateInit2(&s, 15 + 16), Z_OK);
	assert_int_equal(inflate(&s, Z_FINISH), Z_STREAM_END);
	assert_int_equal(s.total_out, len);
	assert_int_equal(s.avail_in, 0);
	assert_memory_equal(back, bytes, len);
	inflateEnd(&s);
	free(back);
}

static void test_gzip_reads_back(void **state)
{
	static const struct {
		const char *name;
		size_t len, part;
	} cases[] = {
		{ "nothing", 0, 1 },          { "one byte", 1, 1 },
		{ "byte by byte", 10000, 1 }, { "more than the buffer", 300000, 300000 },
		{ "odd parts", 200000, 777 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned char *bytes = make_bytes(cases[i].len);
		struct gzip *g;
		char *packed;
		size_t len, at = 0;
		FILE *out = open_memstream(&packed, &len);

		assert_int_equal(gzip_new(out, &g), 0);
		while (at < cases[i].len) {
			size_t left = cases[i].len - at;
			size_t part = left < cases[i].part ? left : cases[i].part;

			assert_int_equal(gzip_write(g, bytes + at, part), 0);
			at += part;
		}
		assert_int_equal(gzip_finish(g), 0);
		gzip_free(g);
		assert_int_equal(fclose(out), 0);
		assert_inflates_to(packed, len, bytes, cases[i].len);
		free(packed);
		free(bytes);
	}
}

static void test_gzip_unpack_is_bounded(void **state)
{
	unsigned char *bytes = make_bytes(100000);
	struct strbuf back = STRBUF_INIT;
	struct gzip *g;
	char *packed;
	size_t len;
	FILE *out = open_memstream(&packed, &len);

	(void)state;
	assert_int_equal(gzip_new(out, &g), 0);
	assert_int_equal(gzip_write(g, bytes, 100000), 0);
	assert_int_equal(gzip_finish(g), 0);
	gzip_free(g);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(gzip_unpack(packed, len, 100000, &back), 0);
	assert_int_equal(back.len, 100000);
	assert_memory_equal(back.bytes, bytes, 100000);
	assert_int_equal(gzip_unpack(packed, len, 99999, &back), -EFBIG);
	assert_int_equal(gzip_unpack(packed, len - 1, 100000, &back), -EBADMSG);
	assert_int_equal(gzip_unpack("plain text", 10, 100000, &back), -EBADMSG);
	assert_int_equal(gzip_unpack("", 0, 100000, &back), -EBADMSG);
	packed[len / 2] ^= 1;
	assert_int_equal(gzip_unpack(packed, len, 100000, &back), -EBADMSG);
	strbuf_release(&back);
	free(packed);
	free(bytes);
}

static void test_gzip_tells_a_full_disk(void **state)
{
	unsigned char *bytes = make_bytes(1 << 20);
	FILE *out = fopen("/dev/full", "w");
	struct gzip *g;

	(void)state;
	assert_non_null(out);
	assert_int_equal(gzip_new(out, &g), 0);
	assert_int_equal(gzip_write(g, bytes, 1 << 20), -EIO);
	gzip_free(g);
	fclose(out);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gzip_reads_back),
		cmocka_unit_test(test_gzip_unpack_is_bounded),
		cmocka_unit_test(test_gzip_tells_a_full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
