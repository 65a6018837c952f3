/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/utf8.h"
#include "symbolize/pystring.h"

#define TEXT(s) s, sizeof(s) - 1

static void test_pystring_utf8_converts_each_kind(void **state)
{
	static const struct {
		const char *name;
		unsigned kind;
		bool is_cut;
		const char *bytes;
		size_t len;
		const char *want;
		size_t want_len;
	} cases[] = {
		{ "empty", 1, false, TEXT(""), TEXT("") },
		{ "ascii", 1, false, TEXT("run.<locals>.f"), TEXT("run.<locals>.f") },
		{ "latin-1", 1, false, TEXT("caf\xe9\xff\x80"), TEXT("caf\u00e9\u00ff\xc2\x80") },
		{ "NUL and control characters stay", 1, false, TEXT("a\0b\n\x7f"),
		  TEXT("a\0b\n\x7f") },
		{ "kind 2", 2, false, TEXT("a\0\xe9\0\x2d\x4e"), TEXT("a\u00e9\u4e2d") },
		{ "kind 2 noncharacter", 2, false, TEXT("\xff\xff"), TEXT("\xef\xbf\xbf") },
		{ "lone surrogate", 2, false, TEXT("\x00\xd8"), TEXT("\\ud800") },
		{ "surrogateescape", 2, false, TEXT("\x80\xdc\xff\xdc"), TEXT("\\udc80\\udcff") },
		{ "pairs are not joined", 2, false, TEXT("\x3d\xd8\x00\xde"),
		  TEXT("\\ud83d\\ude00") },
		{ "around surrogates", 2, false, TEXT("\xff\xd7\x00\xe0"),
		  TEXT("\xed\x9f\xbf\ue000") },
		{ "kind 4", 4, false, TEXT("a\0\0\0\x00\xf6\x01\0"), TEXT("a\U0001f600") },
		{ "kind 4 surrogate", 4, false, TEXT("\xff\xdf\0\0"), TEXT("\\udfff") },
		{ "last code point", 4, false, TEXT("\xff\xff\x10\0"), TEXT("\xf4\x8f\xbf\xbf") },
		{ "beyond 10FFFF", 4, false, TEXT("\x00\x00\x11\0\xff\xff\xff\xff"),
		  TEXT("\ufffd\ufffd") },
		{ "odd length, kind 2", 2, false, TEXT("a\0b"), TEXT("a\ufffd") },
		{ "odd length, kind 4", 4, false, TEXT("a\0\0\0b\0\0"), TEXT("a\ufffd") },
		{ "only half a unit", 2, false, TEXT("a"), TEXT("\ufffd") },
		{ "cut", 1, true, TEXT("abc"), TEXT("abc\u2026") },
		{ "cut to nothing", 4, true, TEXT(""), TEXT("\u2026") },
		{ "cut inside a unit", 2, true, TEXT("a\0b"), TEXT("a\u2026") },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pystring s = { .bytes = (const uint8_t *)cases[i].bytes,
				      .len = cases[i].len,
				      .kind = cases[i].kind,
				      .is_cut = cases[i].is_cut };
		char out[64];
		ssize_t got = pystring_utf8(&s, out, PYSTRING_UTF8_BYTES(s.len));

		if (got != (ssize_t)cases[i].want_len ||
		    memcmp(out, cases[i].want, cases[i].want_len + 1) != 0)
			fail_msg("%s: got %zd \"%s\"", cases[i].name, got, got < 0 ? "" : out);
	}
}

static void test_pystring_utf8_refuses(void **state)
{
	static const struct {
		const char *name;
		unsigned kind;
		size_t len, out_size;
		ssize_t want;
	} cases[] = {
		{ "unread string", 0, 0, 16, -EINVAL },
		{ "kind 3", 3, 3, 16, -EINVAL },
		{ "hostile kind", 4096, 3, 16, -EINVAL },
		{ "buffer one short", 1, 3, 12, -ENOBUFS },
		{ "length that wraps", 1, SIZE_MAX, 16, -ENOBUFS },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pystring s = { .bytes = (const uint8_t *)"abc",
				      .len = cases[i].len,
				      .kind = cases[i].kind };
		char out[16] = "x";
		ssize_t got = pystring_utf8(&s, out, cases[i].out_size);

		if (got != cases[i].want || out[0] != 'x')
			fail_msg("%s: got %zd", cases[i].name, got);
	}
}

/* A cut string of surrogates needs each byte of the bound. */
static void test_pystring_utf8_bytes_is_exact(void **state)
{
	struct pystring s = {
		.bytes = (const uint8_t *)"\x80\xdc\x81\xdc", .len = 4, .kind = 2, .is_cut = true
	};
	char out[PYSTRING_UTF8_BYTES(4)];

	(void)state;
	assert_int_equal(pystring_utf8(&s, out, sizeof(out)), sizeof(out) - 1);
	assert_string_equal(out, "\\udc80\\udc81\u2026");
}

/* Every value of one code point comes back from the decoder, or is escaped or replaced. */
static void test_pystring_utf8_writes_every_code_point(void **state)
{
	(void)state;
	for (uint32_t c = 0; c < 0x110100; c++) {
		uint8_t bytes[4] = { (uint8_t)c, (uint8_t)(c >> 8), (uint8_t)(c >> 16), 0 };
		struct pystring s = { .bytes = bytes, .len = 4, .kind = 4 };
		char out[PYSTRING_UTF8_BYTES(4)];
		ssize_t len = pystring_utf8(&s, out, sizeof(out));
		uint32_t got = 0;

		if (c >= 0xd800 && c <= 0xdfff) {
			assert_int_equal(len, 6);
			assert_memory_equal(out, "\\ud", 3);
			continue;
		}
		assert_true(len > 0 && utf8_decode(out, (size_t)len, &got) == (size_t)len);
		assert_int_equal(got, c > 0x10ffff ? UTF8_REPLACEMENT : c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pystring_utf8_converts_each_kind),
		cmocka_unit_test(test_pystring_utf8_refuses),
		cmocka_unit_test(test_pystring_utf8_bytes_is_exact),
		cmocka_unit_test(test_pystring_utf8_writes_every_code_point),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
