/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>

#include "base/varint.h"

static void test_varint_get_rows(void **state)
{
	static const struct {
		const char *name;
		uint8_t bytes[12];
		size_t len;
		int want;
		uint64_t value;
		size_t used;
	} cases[] = {
		{ "zero", { 0 }, 1, 0, 0, 1 },
		{ "one byte at most 127", { 0x7f }, 1, 0, 127, 1 },
		{ "DWARF 5 figure 22: 128", { 0x80, 1 }, 2, 0, 128, 2 },
		{ "DWARF 5 figure 22: 12857", { 0xb9, 0x64 }, 2, 0, 12857, 2 },
		{ "the rest is left", { 5, 6 }, 2, 0, 5, 1 },
		{ "zero-padded", { 0x80, 0x80, 0 }, 3, 0, 0, 3 },
		{ "largest",
		  { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1 },
		  10,
		  0,
		  UINT64_MAX,
		  10 },
		{ "bit 64 set",
		  { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2 },
		  10,
		  -EBADMSG,
		  0,
		  0 },
		{ "eleven bytes",
		  { 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0 },
		  11,
		  -EBADMSG,
		  0,
		  0 },
		{ "nothing there", { 0 }, 0, -EBADMSG, 0, 0 },
		{ "cut off", { 0x80, 0x80 }, 2, -EBADMSG, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint8_t *p = cases[i].bytes;
		uint64_t v = 0;
		int r = varint_get(&p, p + cases[i].len, &v);

		if (r != cases[i].want || v != cases[i].value ||
		    (size_t)(p - cases[i].bytes) != cases[i].used)
			fail_msg("%s: got %d, %" PRIu64 ", %td bytes", cases[i].name, r, v,
				 p - cases[i].bytes);
	}
}

static void test_varint_round_trips_around_every_power_of_two(void **state)
{
	(void)state;
	for (unsigned int bit = 0; bit < 64; bit++) {
		for (int delta = -1; delta <= 1; delta++) {
			uint64_t v = (UINT64_C(1) << bit) + (uint64_t)delta, got = 0;
			uint8_t buf[VARINT_MAX_BYTES], *w = buf;
			const uint8_t *p = buf;

			assert_int_equal(varint_put(&w, buf + sizeof(buf), v), 0);
			assert_int_equal(w - buf, varint_size(v));
			assert_int_equal(varint_get(&p, w, &got), 0);
			assert_true(got == v && p == w);

			p = buf;
			assert_int_equal(varint_get(&p, w - 1, &got), -EBADMSG);
			assert_ptr_equal(p, buf);
			w = buf;
			assert_int_equal(varint_put(&w, buf + varint_size(v) - 1, v), -ENOBUFS);
			assert_ptr_equal(w, buf);
		}
	}
}

static void test_varint_get_max_refuses_more(void **state)
{
	static const uint8_t bytes[] = { 0x80, 1 };
	const uint8_t *p = bytes;
	uint64_t v = 7;

	(void)state;
	assert_int_equal(varint_get_max(&p, bytes + 2, 127, &v), -EBADMSG);
	assert_ptr_equal(p, bytes);
	assert_int_equal(v, 7);
	assert_int_equal(varint_get_max(&p, bytes + 2, 128, &v), 0);
	assert_int_equal(v, 128);
}

static void test_zigzag_rows(void **state)
{
	static const struct {
		const char *name;
		int64_t plain;
		uint64_t coded;
	} cases[] = {
		{ "0", 0, 0 },
		{ "-1", -1, 1 },
		{ "1", 1, 2 },
		{ "-2", -2, 3 },
		{ "largest", INT64_MAX, UINT64_MAX - 1 },
		{ "smallest", INT64_MIN, UINT64_MAX },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t buf[VARINT_MAX_BYTES], *w = buf;
		const uint8_t *p = buf;
		int64_t got;

		if (zigzag_encode(cases[i].plain) != cases[i].coded ||
		    zigzag_decode(cases[i].coded) != cases[i].plain)
			fail_msg("%s: coded as %" PRIu64, cases[i].name,
				 zigzag_encode(cases[i].plain));
		assert_int_equal(varint_put_signed(&w, buf + sizeof(buf), cases[i].plain), 0);
		assert_int_equal(varint_get_signed(&p, w, &got), 0);
		assert_true(got == cases[i].plain);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_varint_get_rows),
		cmocka_unit_test(test_varint_round_trips_around_every_power_of_two),
		cmocka_unit_test(test_varint_get_max_refuses_more),
		cmocka_unit_test(test_zigzag_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
