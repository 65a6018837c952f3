/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/checksum.h"
#include "store/column.h"

#define COUNT_MAX 5000

enum shape { CONSTANT, RUNS, SMALL, GEOMETRIC, OUTLIERS, WIDE, CYCLE, FULL };

static uint64_t value_of(enum shape shape, size_t i)
{
	uint64_t random = ((uint64_t)rand() << 31 ^ (uint64_t)rand()) * 0x9e3779b97f4a7c15;

	switch (shape) {
	case CONSTANT:
		return 77;
	case RUNS:
		return i / 50 * 1000;
	case SMALL:
		return random >> 62;
	case GEOMETRIC:
		return (uint64_t)__builtin_ctzll(random | UINT64_C(1) << 40);
	case OUTLIERS:
		return i % 100 == 7 ? UINT64_MAX - i : 0;
	case WIDE:
		return random >> 30;
	case CYCLE:
		return i % 37 * 1001;
	default:
		return random;
	}
}

static void test_column_decode_gives_back_what_was_encoded(void **state)
{
	static const struct {
		const char *name;
		enum shape shape;
		size_t bytes_max; /* of COUNT_MAX numbers: that the encoding fits the shape */
	} cases[] = {
		{ "constant", CONSTANT, 2 },
		{ "runs", RUNS, 400 },
		{ "two bits each", SMALL, 1260 },
		{ "mostly small", GEOMETRIC, 1320 },
		{ "rare large ones", OUTLIERS, 1300 },
		{ "34 bits", WIDE, COUNT_MAX * 34 / 8 + 10 },
		{ "a cycle", CYCLE, 200 },
		{ "64 bits", FULL, COUNT_MAX * 8 + 10 },
	};
	static const size_t counts[] = { 0, 1, 2, 7, 8, 9, 63, 64, 99, 1000, COUNT_MAX };
	static uint64_t values[COUNT_MAX], got[COUNT_MAX];
	struct column_coder z = { 0 };
	struct bytes out = { 0 };

	(void)state;
	assert_int_equal(vec_reserve(&out, 1), 0);
	srand(1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
			size_t count = counts[k];
			const uint8_t *p, *end;

			for (size_t n = 0; n < count; n++)
				values[n] = value_of(cases[i].shape, n);
			out.len = 0;
			assert_int_equal(column_encode(&z, &out, values, count), 0);
			p = out.items;
			end = p + out.len;
			memset(got, 0xee, sizeof(got));
			if (column_decode(&z, &p, end, UINT64_MAX, got, count) || p != end ||
			    memcmp(values, got, count * sizeof(*got)))
				fail_msg("%s, %zu numbers: came back wrong", cases[i].name, count);
			if (count == COUNT_MAX && out.len > cases[i].bytes_max)
				fail_msg("%s: %zu bytes, want at most %zu", cases[i].name, out.len,
					 cases[i].bytes_max);
		}
	}
	column_coder_release(&z);
	vec_release(&out);
}

/* Each prefix lies in memory of its own size, so that a sanitizer sees any read beyond it. */
static void test_column_decode_refuses_every_prefix(void **state)
{
	static uint64_t values[300], got[300];
	struct column_coder z = { 0 };
	struct bytes out = { 0 };

	(void)state;
	srand(2);
	for (enum shape shape = CONSTANT; shape <= FULL; shape++) {
		for (size_t n = 0; n < 300; n++)
			values[n] = value_of(shape, n);
		out.len = 0;
		assert_int_equal(column_encode(&z, &out, values, 300), 0);
		for (size_t len = 0; len < out.len; len++) {
			uint8_t *copy = malloc(len + !len);
			const uint8_t *p = copy;

			assert_non_null(copy);
			memcpy(copy, out.items, len);
			if (column_decode(&z, &p, copy + len, UINT64_MAX, got, 300) != -EBADMSG)
				fail_msg("shape %d: %zu of %zu bytes were accepted", shape, len,
					 out.len);
			assert_ptr_equal(p, copy);
			free(copy);
		}
	}
	column_coder_release(&z);
	vec_release(&out);
}

static void test_column_decode_refuses_malformed_columns(void **state)
{
	static const struct {
		const char *name;
		uint8_t bytes[24];
		size_t len;
		uint64_t max;
		int want;
	} cases[] = {
		{ "constant", { 0, 9 }, 2, 9, 0 },
		{ "constant above the limit", { 0, 9 }, 2, 8, -EBADMSG },
		{ "unknown encoding", { 6, 1, 1, 1, 1 }, 5, 255, -EBADMSG },
		{ "bits", { 2, 2, 0xe4 }, 3, 3, 0 },
		{ "bits above the limit", { 2, 2, 0xe4 }, 3, 2, -EBADMSG },
		{ "no bits", { 2, 0, 0xe4 }, 3, 255, -EBADMSG },
		{ "65 bits", { 2, 65, 0 }, 3, 255, -EBADMSG },
		{ "Rice", { 3, 0, 0x0a }, 3, 1, 0 },
		{ "Rice shift of 64", { 3, 64, 0x0a }, 3, 1, -EBADMSG },
		{ "ones without end", { 3, 0, 0xff, 0xff }, 4, UINT64_MAX, -EBADMSG },
		{ "planes", { 4, 1, 1, 2, 3, 4 }, 6, 4, 0 },
		{ "plane above the limit", { 4, 1, 1, 2, 3, 4 }, 6, 3, -EBADMSG },
		{ "no planes", { 4, 0, 1, 2, 3, 4 }, 6, 4, -EBADMSG },
		{ "nine planes", { 4, 9, 1, 2, 3, 4 }, 6, 4, -EBADMSG },
		{ "runs", { 1, 2, 4, 1, 5, 6, 4, 1, 0, 1 }, 10, 6, 0 },
		{ "runs too short", { 1, 2, 4, 1, 5, 6, 0, 0 }, 8, 6, -EBADMSG },
		{ "runs too long", { 1, 2, 4, 1, 5, 6, 0, 2 }, 8, 6, -EBADMSG },
		{ "more runs than numbers", { 1, 5, 0, 1, 0, 0 }, 6, 6, -EBADMSG },
		{ "no runs", { 1, 0 }, 2, 6, -EBADMSG },
		{ "runs within runs", { 1, 1, 1, 1, 0, 5, 0, 0, 0, 3 }, 10, 6, -EBADMSG },
		{ "zstd: no frame", { 5, 1, 4, 1, 2, 3, 4 }, 7, 255, -EBADMSG },
		{ "zstd: beyond the end", { 5, 1, 200, 1, 0, 0 }, 6, 255, -EBADMSG },
		{ "zstd: a raw frame of 4 bytes",
		  { 5, 1, 13, 0x28, 0xb5, 0x2f, 0xfd, 0x20, 4, 0x21, 0, 0, 1, 2, 3, 4 },
		  16,
		  255,
		  0 },
		{ "zstd: a frame that says 5 bytes",
		  { 5, 1, 13, 0x28, 0xb5, 0x2f, 0xfd, 0x20, 5, 0x21, 0, 0, 1, 2, 3, 4 },
		  16,
		  255,
		  -EBADMSG },
		{ "zstd: a frame that says nothing",
		  { 5, 1, 13, 0x28, 0xb5, 0x2f, 0xfd, 0x00, 0, 0x21, 0, 0, 1, 2, 3, 4 },
		  16,
		  255,
		  -EBADMSG },
	};
	struct column_coder z = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint8_t *p = cases[i].bytes;
		uint64_t got[4];
		int r = column_decode(&z, &p, p + cases[i].len, cases[i].max, got, 4);

		/* Runs in the table are of three numbers. */
		if (cases[i].bytes[0] == 1) {
			p = cases[i].bytes;
			r = column_decode(&z, &p, p + cases[i].len, cases[i].max, got, 3);
		}
		if (r != cases[i].want)
			fail_msg("%s: got %d, want %d", cases[i].name, r, cases[i].want);
	}
	column_coder_release(&z);
}

static void test_text_decode_gives_back_what_was_encoded(void **state)
{
	static const struct {
		const char *name;
		size_t count, bytes_max;
	} cases[] = {
		{ "none", 0, 0 },
		{ "short", 10, 12 },
		{ "long", 4000, 400 },
	};
	struct column_coder z = { 0 };
	struct bytes out = { 0 };
	uint8_t text[4000];

	(void)state;
	assert_int_equal(vec_reserve(&out, 1), 0);
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t) "/usr/lib/python3/dist-packages/"[i % 31];
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint8_t *p, *got;

		out.len = 0;
		assert_int_equal(text_encode(&z, &out, text, cases[i].count), 0);
		p = out.items;
		if (out.len > cases[i].bytes_max ||
		    text_decode(&z, &p, out.items + out.len, cases[i].count, &got) ||
		    p != out.items + out.len || memcmp(got, text, cases[i].count))
			fail_msg("%s: %zu bytes, came back wrong", cases[i].name, out.len);
	}
	column_coder_release(&z);
	vec_release(&out);
}

static void test_crc32c_of_known_bytes(void **state)
{
	static const struct {
		const char *name;
		const char *bytes;
		size_t len;
		uint32_t want;
	} cases[] = {
		{ "nothing", "", 0, 0 },
		{ "check value", "123456789", 9, 0xe3069283 },
		{ "32 zeros (RFC 3720, B.4)",
		  "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 32,
		  0x8a9136aa },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t got = crc32c((const uint8_t *)cases[i].bytes, cases[i].len);

		if (got != cases[i].want)
			fail_msg("%s: got %08x, want %08x", cases[i].name, got, cases[i].want);
	}
}

/* A bit at a time, as the definition has it. */
static uint32_t crc32c_by_bits(const uint8_t *bytes, size_t len)
{
	uint32_t crc = UINT32_MAX;

	for (size_t bit = 0; bit < 8 * len; bit++) {
		crc ^= bytes[bit / 8] >> bit % 8 & 1;
		crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

static void test_crc32c_of_every_length(void **state)
{
	uint8_t bytes[67]; /* the first is left out: no alignment */

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 151 + 7);
	for (size_t len = 0; len + 1 < sizeof(bytes); len++)
		assert_int_equal(crc32c(bytes + 1, len), crc32c_by_bits(bytes + 1, len));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_column_decode_gives_back_what_was_encoded),
		cmocka_unit_test(test_column_decode_refuses_every_prefix),
		cmocka_unit_test(test_column_decode_refuses_malformed_columns),
		cmocka_unit_test(test_text_decode_gives_back_what_was_encoded),
		cmocka_unit_test(test_crc32c_of_known_bytes),
		cmocka_unit_test(test_crc32c_of_every_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
