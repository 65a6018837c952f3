/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The numbers themselves are compared with CPython's headers by tests/lint/offsets_check.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "target/offsets.h"

static void test_version_format_writes_levels(void **state)
{
	static const struct {
		uint32_t hex;
		const char *want;
	} cases[] = {
		{ 0x030812f0, "3.8.18" },    { 0x030f02f0, "3.15.2" },
		{ 0x030e00a7, "3.14.0a7" },  { 0x030e00b1, "3.14.0b1" },
		{ 0x030c00c2, "3.12.0rc2" }, { 0xffffffff, "255.255.255" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char text[VERSION_TEXT_BYTES];

		version_format(cases[i].hex, text);
		assert_string_equal(text, cases[i].want);
	}
}

static void test_offsets_find_takes_what_it_knows(void **state)
{
	static const struct {
		const char *name;
		uint32_t version;
		uint64_t runtime_bytes;
		int want;
		const char *message; /* a part of it */
		bool has_trace_refs;
	} cases[] = {
		{ "3.7.0", 0x030700f0, 1432, 0, NULL, false },
		{ "3.7.3", 0x030703f0, 1432, 0, NULL, false },
		{ "3.7.4", 0x030704f0, 1520, 0, NULL, false },
		{ "3.7.16, debug", 0x030710f0, 1520, 0, NULL, true },
		{ "3.7.3, size of 3.7.4", 0x030703f0, 1520, -EBADMSG,
		  "unknown build of CPython 3.7.3: its _PyRuntime takes 1520 bytes, not 14",
		  false },
		{ "3.7.4, size of 3.7.3", 0x030704f0, 1432, -EBADMSG,
		  "unknown build of CPython 3.7.4: its _PyRuntime takes 1432 bytes, not 15",
		  false },
		{ "3.7, alpha", 0x030700a1, 1432, -ENOTSUP,
		  "CPython 3.7.0a1 is a pre-release: not supported", false },
		{ "3.8", 0x030812f0, 1464, 0, NULL, false },
		{ "3.8, trace-refs", 0x030812f0, 1464, -ENOTSUP,
		  "CPython 3.8.18 built with trace-refs is not supported", true },
		{ "3.8, size not known", 0x030812f0, 0, 0, NULL, false },
		{ "3.9", 0x030900f0, 656, 0, NULL, false },
		{ "3.10", 0x030a0df0, 672, 0, NULL, false },
		{ "3.10, size of 3.9", 0x030a0df0, 656, -EBADMSG,
		  "unknown build of CPython 3.10.13: its _PyRuntime takes 656 bytes, not 6",
		  false },
		{ "3.11, any size", 0x030b07f0, 170000, 0, NULL, false },
		{ "3.12", 0x030c01f0, 459944, 0, NULL, false },
		{ "3.12, release candidate", 0x030c00c1, 459944, 0, NULL, false },
		{ "3.12, alpha", 0x030c00a5, 459944, -ENOTSUP,
		  "CPython 3.12.0a5 is a pre-release: not supported", false },
		{ "2.7", 0x020712f0, 0, -ENOTSUP, "CPython 2.7.18 is not supported", false },
		{ "3.5", 0x030503f0, 0, -ENOTSUP, "CPython 3.5.3 is not supported", false },
		{ "3.13 describes itself", 0x030d00f0, 0, -ENOTSUP, "CPython 3.13.0", false },
		{ "4.8", 0x040800f0, 1464, -ENOTSUP, "CPython 4.8.0", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct py_offsets off = { .minor = 99 };
		int r = offsets_find(cases[i].version, cases[i].runtime_bytes,
				     cases[i].has_trace_refs, &off);

		if (r != cases[i].want)
			fail_msg("%s: got %d, want %d", cases[i].name, r, cases[i].want);
		if (r < 0 && !strstr(err_message(r), cases[i].message))
			fail_msg("%s: %s", cases[i].name, err_message(r));
		if (r < 0 && off.minor != 99)
			fail_msg("%s: output touched", cases[i].name);
		if (!r && (off.minor != VERSION_MINOR(cases[i].version) ||
			   off.micro != VERSION_MICRO(cases[i].version)))
			fail_msg("%s: another version: 3.%u.%u", cases[i].name, off.minor,
				 off.micro);
		if (!r && offsets_check(&off) < 0)
			fail_msg("%s: %s", cases[i].name, err_message(-EBADMSG));
	}
}

static void test_offsets_check_names_the_bad_field(void **state)
{
	static const struct {
		const char *want; /* a part of the message */
		uint32_t version;
		size_t at, bytes;
		uint32_t value;
	} cases[] = {
#define CASE(field, version, value)                            \
	{ #field, version, offsetof(struct py_offsets, field), \
	  sizeof(((struct py_offsets *)0)->field), value }
		CASE(runtime_interpreters_head, 0x030812f0, OFF_NONE),
		CASE(runtime_interpreters_head, 0x030812f0, 33),
		CASE(runtime_interpreters_head, 0x030812f0, 32768),
		CASE(interp_next, 0x030812f0, 1u << 20),
		CASE(interp_threads_head, 0x030812f0, UINT32_MAX - 7),
		CASE(tstate_thread_id, 0x030812f0, 264),
		CASE(tstate_frame, 0x030c01f0, 148),
		CASE(tstate_executor, 0x030c01f0, 216),
		CASE(tstate_size, 0x030812f0, 513),
		CASE(tstate_status, 0x030c01f0, OFF_NONE),
		CASE(cframe_current, 0x030c01f0, OFF_NONE),
		CASE(frame_owner, 0x030c01f0, OFF_NONE),
		CASE(frame_owner, 0x030c01f0, 72),
		CASE(frame_is_entry, 0x030b07f0, OFF_NONE),
		CASE(frame_instr, 0x030812f0, 112),
		CASE(frame_object, 0x030c01f0, 72),
		CASE(frame_size, 0x030812f0, 257),
		CASE(code_size, 0x030812f0, 257),
		CASE(code_name, 0x030812f0, 176),
		CASE(code_qualname, 0x030b07f0, OFF_NONE),
		CASE(code_adaptive, 0x030b07f0, 264),
		CASE(str_state, 0x030812f0, 48),
		CASE(str_compact_data, 0x030812f0, 128),
		CASE(bytes_data, 0x030812f0, OFF_NONE),
#undef CASE
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct py_offsets off;

		assert_int_equal(offsets_find(cases[i].version, 0, false, &off), 0);
		memcpy((char *)&off + cases[i].at, &cases[i].value, cases[i].bytes);
		if (offsets_check(&off) != -EBADMSG)
			fail_msg("%s = %u: accepted", cases[i].want, cases[i].value);
		/* The size of a struct shows by the first field behind it. */
		if (!strstr(cases[i].want, "_size") &&
		    !strstr(err_message(-EBADMSG), cases[i].want))
			fail_msg("%s = %u: %s", cases[i].want, cases[i].value,
				 err_message(-EBADMSG));
	}
}

/* 3.6 has no _PyRuntime: what takes its place must be filled in before anything is read. */
static void test_offsets_find_leaves_out_the_runtime_of_3_6(void **state)
{
	struct py_offsets off;

	(void)state;
	for (int debug = 0; debug < 2; debug++) {
		assert_int_equal(offsets_find(0x03060ff0, 0, debug, &off), 0);
		assert_int_equal(off.minor, 6);
		assert_int_equal(off.is_debug, debug);
		assert_int_equal(off.frame_code, debug ? 48 : 32);
		assert_int_equal(off.runtime_tstate_current, OFF_NONE);
		assert_int_equal(offsets_check(&off), -EBADMSG);
		assert_non_null(strstr(err_message(-EBADMSG), "runtime_interpreters_head"));
		off.runtime_interpreters_head = 16;
		assert_int_equal(offsets_check(&off), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_version_format_writes_levels),
		cmocka_unit_test(test_offsets_find_takes_what_it_knows),
		cmocka_unit_test(test_offsets_find_leaves_out_the_runtime_of_3_6),
		cmocka_unit_test(test_offsets_check_names_the_bad_field),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
