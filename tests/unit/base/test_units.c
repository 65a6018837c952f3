/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "base/units.h"

#define UNTOUCHED UINT64_C(0xdeadbeef)

static const struct {
	const char *name;
	int (*parse)(const char *s, uint64_t *out);
	const char *in;
	int want;
	uint64_t value;
} parse_cases[] = {
	{ "hz: bare", units_parse_hz, "99", 0, 99 },
	{ "hz: k", units_parse_hz, "1k", 0, 1000 },
	{ "hz: khz", units_parse_hz, "10khz", 0, 10000 },
	{ "hz: case does not matter", units_parse_hz, "10kHz", 0, 10000 },
	{ "hz: fraction that is whole", units_parse_hz, "1.5k", 0, 1500 },
	{ "hz: fraction that is not", units_parse_hz, "0.5", -EINVAL, UNTOUCHED },
	{ "hz: mega", units_parse_hz, "1M", 0, 1000000 },
	{ "hz: largest", units_parse_hz, "18446744073709551615", 0, UINT64_MAX },
	{ "hz: one more", units_parse_hz, "18446744073709551616", -ERANGE, UNTOUCHED },
	{ "hz: overflow by unit", units_parse_hz, "18446744073709552k", -ERANGE, UNTOUCHED },
	{ "hz: empty", units_parse_hz, "", -EINVAL, UNTOUCHED },
	{ "hz: negative", units_parse_hz, "-1", -EINVAL, UNTOUCHED },
	{ "hz: plus", units_parse_hz, "+1", -EINVAL, UNTOUCHED },
	{ "hz: space", units_parse_hz, " 1", -EINVAL, UNTOUCHED },
	{ "hz: hexadecimal", units_parse_hz, "0x10", -EINVAL, UNTOUCHED },
	{ "hz: unit of time", units_parse_hz, "10ms", -EINVAL, UNTOUCHED },
	{ "hz: unit alone", units_parse_hz, "k", -EINVAL, UNTOUCHED },
	{ "hz: trailing text", units_parse_hz, "99 Hz", -EINVAL, UNTOUCHED },
	{ "ns: seconds", units_parse_ns, "30s", 0, UINT64_C(30000000000) },
	{ "ns: bare is seconds", units_parse_ns, "30", 0, UINT64_C(30000000000) },
	{ "ns: minutes", units_parse_ns, "2m", 0, UINT64_C(120000000000) },
	{ "ns: ms", units_parse_ns, "500ms", 0, 500000000 },
	{ "ns: hours", units_parse_ns, "1h", 0, UINT64_C(3600000000000) },
	{ "ns: days", units_parse_ns, "1d", 0, UINT64_C(86400000000000) },
	{ "ns: ns", units_parse_ns, "7ns", 0, 7 },
	{ "ns: fraction", units_parse_ns, "0.25s", 0, 250000000 },
	{ "ns: below one", units_parse_ns, "0.5ns", -EINVAL, UNTOUCHED },
	{ "ns: two points", units_parse_ns, "1.2.3s", -EINVAL, UNTOUCHED },
	{ "ns: point at the end", units_parse_ns, "1.s", -EINVAL, UNTOUCHED },
	{ "ns: too many digits", units_parse_ns, "0.00000000000000000001s", -ERANGE, UNTOUCHED },
	{ "ns: over 584 years", units_parse_ns, "300000d", -ERANGE, UNTOUCHED },
	{ "bytes: MiB", units_parse_bytes, "64MiB", 0, 64 << 20 },
	{ "bytes: M is binary", units_parse_bytes, "64M", 0, 64 << 20 },
	{ "bytes: MB is decimal", units_parse_bytes, "64MB", 0, 64000000 },
	{ "bytes: kB", units_parse_bytes, "1kB", 0, 1000 },
	{ "bytes: k", units_parse_bytes, "1k", 0, 1024 },
	{ "bytes: B", units_parse_bytes, "12B", 0, 12 },
	{ "bytes: 1.5G", units_parse_bytes, "1.5G", 0, UINT64_C(1610612736) },
	{ "bytes: 16 EiB", units_parse_bytes, "16777216T", -ERANGE, UNTOUCHED },
	{ "share: percent", units_parse_share, "10%", 0, 100000 },
	{ "share: fraction", units_parse_share, "0.5%", 0, 5000 },
	{ "share: above 100", units_parse_share, "250%", 0, 2500000 },
	{ "share: finer than ppm", units_parse_share, "0.00001%", -EINVAL, UNTOUCHED },
	{ "share: no sign", units_parse_share, "0.1", -EINVAL, UNTOUCHED },
	{ "share: nothing", units_parse_share, "0", 0, 0 },
	{ "share: nothing, with a sign", units_parse_share, "0%", 0, 0 },
	{ "share: space", units_parse_share, "10 %", -EINVAL, UNTOUCHED },
	{ "count: plain", units_parse_count, "1024", 0, 1024 },
	{ "count: no units", units_parse_count, "1k", -EINVAL, UNTOUCHED },
	{ "count: no point", units_parse_count, "1.0", -EINVAL, UNTOUCHED },
};

static void test_units_parse_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(parse_cases) / sizeof(parse_cases[0]); i++) {
		uint64_t v = UNTOUCHED;
		int r = parse_cases[i].parse(parse_cases[i].in, &v);

		if (r != parse_cases[i].want || v != parse_cases[i].value)
			fail_msg("%s: got %d, %" PRIu64 ", want %d, %" PRIu64, parse_cases[i].name,
				 r, v, parse_cases[i].want, parse_cases[i].value);
	}
}

static void test_units_parse_shows_text_and_examples(void **state)
{
	uint64_t v;

	(void)state;
	assert_string_equal(err_message(units_parse_hz("fast", &v)),
			    "'fast' is not a frequency such as 99, 1k or 10khz");
	assert_string_equal(err_message(units_parse_ns("300000d", &v)), "'300000d' is too large");
}

static const struct {
	struct units_text (*format)(uint64_t);
	uint64_t in;
	const char *want;
} format_cases[] = {
	{ units_ns, 0, "0 ns" },
	{ units_ns, 999, "999 ns" },
	{ units_ns, 1000, "1 us" },
	{ units_ns, 1234567, "1.2 ms" },
	{ units_ns, 999499, "999 us" },
	{ units_ns, 999500, "1 ms" },
	{ units_ns, 149450000, "149 ms" },
	{ units_ns, UINT64_C(1200000000), "1.2 s" },
	{ units_ns, UINT64_C(34500000000), "34.5 s" },
	{ units_ns, UINT64_C(59949999999), "59.9 s" },
	{ units_ns, UINT64_C(59950000000), "1 min" },
	{ units_ns, UINT64_C(125000000000), "2 min 5 s" },
	{ units_ns, UINT64_C(3599500000000), "1 h" },
	{ units_ns, UINT64_C(4320000000000), "1 h 12 min" },
	{ units_ns, UINT64_C(273600000000000), "3 d 4 h" },
	{ units_ns, UINT64_MAX, "213504 d" },
	{ units_bytes, 0, "0 B" },
	{ units_bytes, 1023, "1023 B" },
	{ units_bytes, 1024, "1 KiB" },
	{ units_bytes, 3565158, "3.4 MiB" },
	{ units_bytes, (1 << 20) - 1, "1 MiB" },
	{ units_bytes, UINT64_C(200) << 20, "200 MiB" },
	{ units_bytes, UINT64_MAX, "16 EiB" },
	{ units_count, 0, "0" },
	{ units_count, 999, "999" },
	{ units_count, 1000, "1,000" },
	{ units_count, 12345, "12,345" },
	{ units_count, UINT64_MAX, "18,446,744,073,709,551,615" },
	{ units_hz, 0, "0" },
	{ units_hz, 99, "99" },
	{ units_hz, 1500, "1500" },
	{ units_hz, 100000, "100k" },
	{ units_hz, 1000000, "1M" },
	{ units_ns_exact, 0, "0s" },
	{ units_ns_exact, 500000000, "500ms" },
	{ units_ns_exact, UINT64_C(30000000000), "30s" },
	{ units_ns_exact, UINT64_C(90000000000), "90s" },
	{ units_ns_exact, UINT64_C(86400000000000), "24h" },
	{ units_ns_exact, 1001, "1001ns" },
	{ units_share, 100000, "10%" },
	{ units_share, 5000, "0.5%" },
	{ units_share, 1, "0.0001%" },
};

static void test_units_format_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(format_cases) / sizeof(format_cases[0]); i++) {
		struct units_text got = format_cases[i].format(format_cases[i].in);

		if (strcmp(got.s, format_cases[i].want))
			fail_msg("row %zu: %" PRIu64 " became \"%s\", want \"%s\"", i,
				 format_cases[i].in, got.s, format_cases[i].want);
	}
}

static void test_units_exact_forms_read_back(void **state)
{
	(void)state;
	for (uint64_t v = 1; v < UINT64_MAX / 30; v = v * 3 + v % 7) {
		uint64_t hz = 0, ns = 0;

		assert_int_equal(units_parse_hz(units_hz(v).s, &hz), 0);
		assert_int_equal(units_parse_ns(units_ns_exact(v).s, &ns), 0);
		assert_true(hz == v && ns == v);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_units_parse_rows),
		cmocka_unit_test(test_units_parse_shows_text_and_examples),
		cmocka_unit_test(test_units_format_rows),
		cmocka_unit_test(test_units_exact_forms_read_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
